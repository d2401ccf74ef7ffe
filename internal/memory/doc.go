// Package memory holds the words of the domain: agents, events, items, episodes
// and the kinds of error. It does no I/O and imports only the standard library.
package memory
