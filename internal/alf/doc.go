// Package alf reads and writes the Agent Life Format: an agent's identity,
// principals, credentials (what there is, never the secret), memory records and
// the files that they were taken from, in one ZIP archive (.alf), and the
// difference of two of them (.alf-delta).
//
// The package knows the format only: where records come from and what becomes
// of them is its callers' business. Archives are untrusted: sizes, names and
// JSON are checked before anything is believed, and members that the package
// does not know are kept at every level. Records are streamed in both
// directions; no archive is held in memory.
//
// Layout, spelling and rules follow the ALF specification 1.0.0 as the client
// alf 0.1.0 reads and writes it; where the two differ the client's form is
// written and both are read.
package alf
