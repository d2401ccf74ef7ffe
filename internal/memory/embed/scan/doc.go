// Package scan finds the stored vectors nearest to a query by looking at all of
// them: an exact search by cosine, without a graph or clusters to build, tune
// or lose neighbours in.
//
// A vector is scaled to length one and kept as fixed-point numbers of 24 bits in
// two planes: the upper 8 bits (codes) beside each other, and the lower 16 bits
// (fine) beside each other. A search multiplies the query with the codes of
// every vector, a pass over one byte a number. The distance between a vector
// and its codes is known, so by the Cauchy–Schwarz inequality each product gives
// an upper and a lower bound of the cosine; only vectors whose upper bound
// reaches the k-th best are multiplied again with all 24 bits. What is left out
// cannot be among the best k: the result is that of a loop over all vectors,
// not an estimate of it.
//
// 24 bits are as precise as the float32 numbers that they come from (half a unit
// in the last place of the vector's largest number), and take three bytes a
// number instead of the five that float32 beside int8 would.
//
// An Index belongs to one model and one dimension. It may be used by any number
// of goroutines at once. It does no I/O; a store fills it from its blobs, whose
// encoding is defined here too (AppendFloats, AppendCode).
package scan
