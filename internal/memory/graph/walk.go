package graph

import (
	"iter"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Direction says which edges of a node a walk takes.
type Direction string

// The directions.
const (
	Both Direction = "both"
	Out  Direction = "out" // from src to dst
	In   Direction = "in"  // from dst to src
)

// Walk says which edges may be taken. The zero value takes all of them, both
// ways.
type Walk struct {
	Direction Direction // "" for Both
	EdgeTypes []string  // any of these; all if empty
}

func (w Walk) check() error {
	if !slices.Contains([]Direction{"", Both, Out, In}, w.Direction) {
		return &memory.FieldError{Field: "direction", Reason: "must be both, out or in"}
	}
	for _, t := range w.EdgeTypes {
		if err := checkEdgeType("edge_types", t); err != nil {
			return err
		}
	}
	return nil
}

// from yields the edges that may be taken from a node, and the node at the other
// end where there is one: first those that leave it.
func (w Walk) from(v *View, id string) iter.Seq2[*Edge, *Node] {
	return func(yield func(*Edge, *Node) bool) {
		take := func(edges iter.Seq[*Edge], end func(*Edge) string) bool {
			for e := range edges {
				if len(w.EdgeTypes) > 0 && !slices.Contains(w.EdgeTypes, e.Type) {
					continue
				}
				if n := v.Node(end(e)); n != nil && !yield(e, n) {
					return false
				}
			}
			return true
		}
		if w.Direction != In && !take(v.Out(id), func(e *Edge) string { return e.Dst }) {
			return
		}
		if w.Direction != Out {
			take(v.In(id), func(e *Edge) string { return e.Src })
		}
	}
}

// Near is a node and how many edges away it is.
type Near struct {
	Node  *Node
	Depth int
}

// Neighbourhood is what lies around a node.
type Neighbourhood struct {
	Nodes     []Near  // the nearest first, itself not among them
	Edges     []*Edge // those walked between it and Nodes, each once
	Truncated bool    // more nodes are within reach than were asked for
}

// Neighbours returns the nodes within depth edges of a node, at most limit, and
// the edges that lead there. ErrNotFound where there is no such node.
func (v *View) Neighbours(id string, depth, limit int, w Walk) (Neighbourhood, error) {
	if err := w.check(); err != nil {
		return Neighbourhood{}, err
	}
	if v.Node(id) == nil {
		return Neighbourhood{}, noNode(id)
	}
	found := Neighbourhood{Nodes: []Near{}, Edges: []*Edge{}}
	reached, walked := map[string]bool{id: true}, map[*Edge]bool{}
	ring := []string{id}
	for d := 1; d <= depth && len(ring) > 0 && !found.Truncated; d++ {
		var next []string
		for _, at := range ring {
			for e, n := range w.from(v, at) {
				if !reached[n.ID] {
					if len(found.Nodes) == limit {
						found.Truncated = true
						continue
					}
					reached[n.ID] = true
					found.Nodes = append(found.Nodes, Near{n, d})
					next = append(next, n.ID)
				}
				if !walked[e] {
					walked[e] = true
					found.Edges = append(found.Edges, e)
				}
			}
		}
		ring = next
	}
	return found, nil
}

// Path is a way between two nodes: each edge joins two nodes that follow each
// other. Without a way both lists are empty.
type Path struct {
	Nodes []*Node
	Edges []*Edge
}

// Path returns a shortest way between two nodes, of several always the same.
// ErrNotFound where one of them is no node.
func (v *View) Path(from, to string, w Walk) (Path, error) {
	if err := w.check(); err != nil {
		return Path{}, err
	}
	for _, id := range []string{from, to} {
		if v.Node(id) == nil {
			return Path{}, noNode(id)
		}
	}
	// Two searches that meet see far less than one that goes all the way.
	a, b := newFlood(from, w), newFlood(to, w.reversed())
	meeting, met := from, from == to
	for !met && len(a.ring) > 0 && len(b.ring) > 0 {
		if len(a.ring) <= len(b.ring) {
			meeting, met = a.spread(v, b)
		} else {
			meeting, met = b.spread(v, a)
		}
	}
	p := Path{Nodes: []*Node{}, Edges: []*Edge{}}
	if !met {
		return p, nil
	}
	for at := meeting; at != from; at = a.came[at].from {
		p.Nodes, p.Edges = append(p.Nodes, v.Node(a.came[at].from)), append(p.Edges, a.came[at].edge)
	}
	slices.Reverse(p.Nodes)
	slices.Reverse(p.Edges)
	p.Nodes = append(p.Nodes, v.Node(meeting))
	for at := meeting; at != to; at = b.came[at].from {
		p.Nodes, p.Edges = append(p.Nodes, v.Node(b.came[at].from)), append(p.Edges, b.came[at].edge)
	}
	return p, nil
}

func (w Walk) reversed() Walk {
	switch w.Direction {
	case Out:
		w.Direction = In
	case In:
		w.Direction = Out
	}
	return w
}

// flood is a search in all directions that grows by one edge at a time.
type flood struct {
	walk Walk
	came map[string]step // of each node reached: from where
	ring []string        // those reached last
}

// step is how a search came to a node.
type step struct {
	from string
	edge *Edge
}

func newFlood(id string, w Walk) *flood {
	return &flood{walk: w, came: map[string]step{id: {}}, ring: []string{id}}
}

// spread grows the search by one edge, and ends at the first node that another
// one has reached: as long as both grow by whole rings, that is on a shortest way.
func (f *flood) spread(v *View, other *flood) (meeting string, met bool) {
	var next []string
	for _, at := range f.ring {
		for e, n := range f.walk.from(v, at) {
			if _, known := f.came[n.ID]; known {
				continue
			}
			f.came[n.ID] = step{at, e}
			if _, met := other.came[n.ID]; met {
				return n.ID, true
			}
			next = append(next, n.ID)
		}
	}
	f.ring = next
	return "", false
}

func noNode(id string) error {
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "the graph has no node %s", quoted(id)), "graph search finds nodes by their words")
}
