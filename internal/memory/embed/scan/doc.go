// Package scan finds the stored vectors nearest to a query by looking at all of
// them: an exact search by cosine, without a graph or clusters to build, tune
// or lose neighbours in.
//
// A vector is scaled to length one and kept in several forms, each in more
// detail. A search passes over the first form of all vectors, four bits a number,
// after a rotation that spreads each vector evenly over its numbers. Angles say how
// far the result can be off: with θ the angle between a vector and its rounded form,
// known since it was stored, and φ that between the form and the query, the cosine
// is between cos(φ+θ) and cos(φ−θ). Only vectors that can reach the k-th best so far
// are multiplied in the second form, eight bits a number (codes), and of these only
// those that still can in the third, 24 bits (codes and fine).
//
// A pass is as fast as memory, so in 256 dimensions and more the upper two of the
// four bits come first, which rule out most where vectors lie in clusters. There,
// too, what rounding leaves out of a turned vector is not taken to point straight at
// the query, but to be off by at most seven standard deviations of the angle between
// two directions that have nothing to do with each other. The chance that one of the best k is
// missed for that is about 1 in 10^12; in fewer dimensions and in the later forms
// nothing is left to chance. Otherwise the result is that of a loop over all vectors,
// not an estimate of it.
//
// 24 bits are as precise as the float32 numbers that they come from (half a unit
// in the last place of the vector's largest number). All forms together take three
// and a half bytes a number.
//
// An Index belongs to one model and one dimension. It may be used by any number
// of goroutines at once. It does no I/O; a store fills it from its blobs, whose
// encoding is defined here too (AppendFloats, AppendCode).
package scan
