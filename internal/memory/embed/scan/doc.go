// Package scan finds the stored vectors nearest to a query by looking at all of
// them: an exact search by cosine, without a graph or clusters to build, tune
// or lose neighbours in.
//
// A vector is scaled to length one and kept three times over, each time in more
// detail. A search passes over the first form of all vectors, four bits a number,
// after a rotation that spreads each vector evenly over its numbers. Angles say how
// far the result can be off: with θ the angle between a vector and its rounded form,
// known since it was stored, and φ that between the form and the query, the cosine
// is between cos(φ+θ) and cos(φ−θ). Only vectors that can reach the k-th best so far
// are multiplied in the second form, eight bits a number (codes), and of these only
// those that still can in the third, 24 bits (codes and fine). What is left out
// cannot be among the best k: the result is that of a loop over all vectors, not an
// estimate of it.
//
// 24 bits are as precise as the float32 numbers that they come from (half a unit
// in the last place of the vector's largest number). All three forms take three and
// a half bytes a number.
//
// An Index belongs to one model and one dimension. It may be used by any number
// of goroutines at once. It does no I/O; a store fills it from its blobs, whose
// encoding is defined here too (AppendFloats, AppendCode).
package scan
