// Package weave ties an agent's graph to its memory and its work.
//
// A Follower lets the graph follow the items of the working store, as the
// archive follows the log: every accepted item is a node, the people, places,
// projects, tools and decisions that it speaks of are nodes that it is joined
// to, and an item contradicts the one that it supersedes. That part of the graph
// is derived: it is a function of the items, made again at any time, and what is
// forgotten leaves it. A Walker finds the items that lie near those that a
// question names. A Recorder writes down what happens while an agent works,
// behind its back: nothing waits for it and nothing fails with it.
//
// docs/GRAPH.md describes the nodes and edges.
package weave
