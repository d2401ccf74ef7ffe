// Package graph is the graph memory: typed nodes and edges in one JSON file,
//
//	{"nodes": [...], "edges": [...]}
//
// in the shape and order of the AINL adapter ainl_graph_memory, which other
// programs read and write too. docs/GRAPH.md has the format, the names and
// where the behaviour differs from the reference, with the reasons.
//
// A Store holds the whole graph in memory, with indexes by id, type and
// neighbour. A small graph is written as a whole at each change, through a
// temporary file; above Limits.JournalFrom a change is one line appended to
// graph.json.journal, which is folded into the JSON when the store is closed,
// when it has grown, and on demand. Either way a change is durable when it is
// acknowledged, and happens as a whole or not at all. Several processes may
// use one file: each change is made under a lock, on what the others left.
package graph
