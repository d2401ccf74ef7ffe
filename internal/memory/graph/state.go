package graph

import (
	"container/heap"
	"iter"
	"slices"
)

// state is a graph in memory. Nodes and edges stand in the order in which they
// were first added; a removed one leaves a hole.
type state struct {
	nodes []*Node
	edges []*Edge
	ends  map[string]int32 // of each id that is a node or the end of an edge: its place in spots
	spots []spot
	edge  map[string]int32   // position of an edge
	kinds map[string][]int32 // positions of nodes of a type, ascending
	dying deaths

	liveNodes, liveEdges int
}

// spot is what is known of one id.
type spot struct {
	node    int32   // position of the node, none where there is no such node
	out, in []int32 // positions of edges, in the order in which they were put
}

const none = -1

func newState() *state {
	return &state{ends: map[string]int32{}, edge: map[string]int32{}, kinds: map[string][]int32{}}
}

// sized returns an empty state with room for so many nodes and edges.
func sized(nodes, edges int) *state {
	return &state{
		nodes: make([]*Node, 0, nodes), edges: make([]*Edge, 0, edges), spots: make([]spot, 0, nodes),
		ends: make(map[string]int32, nodes), edge: make(map[string]int32, edges), kinds: map[string][]int32{},
	}
}

// spotOf returns the place of an id, and makes it if need be.
func (s *state) spotOf(id string) *spot {
	at, known := s.ends[id]
	if !known {
		at = int32(len(s.spots))
		s.spots = append(s.spots, spot{node: none})
		s.ends[id] = at
	}
	return &s.spots[at]
}

func (s *state) node(id string) *Node {
	at, known := s.ends[id]
	if !known || s.spots[at].node == none {
		return nil
	}
	return s.nodes[s.spots[at].node]
}

func (s *state) edgeByID(id string) *Edge {
	at, known := s.edge[id]
	if !known {
		return nil
	}
	return s.edges[at]
}

// putNode adds a node, or puts it in the place of the one with its id.
func (s *state) putNode(n *Node) {
	spot := s.spotOf(n.ID)
	at, known := spot.node, false // known: its death is
	if at == none {
		at = int32(len(s.nodes))
		spot.node = at
		s.nodes = append(s.nodes, n)
		s.liveNodes++
		s.kinds[n.Type] = append(s.kinds[n.Type], at)
	} else {
		old := s.nodes[at]
		s.nodes[at] = n
		if death, mortal := old.expiry(); mortal {
			again, _ := n.expiry()
			known = n.TTL != nil && again == death
		}
		if old.Type != n.Type {
			s.kinds[old.Type] = without(s.kinds[old.Type], at)
			list := s.kinds[n.Type]
			i, _ := slices.BinarySearch(list, at)
			s.kinds[n.Type] = slices.Insert(list, i, at)
		}
	}
	if death, mortal := n.expiry(); mortal && !known {
		heap.Push(&s.dying, mortality{death, n.ID})
	}
}

// putEdge adds an edge, or puts it in the place of the one with its id.
func (s *state) putEdge(e *Edge) {
	at, known := s.edge[e.ID]
	if known {
		s.unlink(at)
		s.edges[at] = e
	} else {
		at = int32(len(s.edges))
		s.edges = append(s.edges, e)
		s.edge[e.ID] = at
		s.liveEdges++
	}
	src := s.spotOf(e.Src)
	src.out = append(src.out, at)
	dst := s.spotOf(e.Dst)
	dst.in = append(dst.in, at)
}

// unlink takes an edge from the lists of its ends.
func (s *state) unlink(at int32) {
	e := s.edges[at]
	src := s.spotOf(e.Src)
	src.out = without(src.out, at)
	dst := s.spotOf(e.Dst)
	dst.in = without(dst.in, at)
}

func without(list []int32, at int32) []int32 {
	i := slices.Index(list, at)
	if i < 0 {
		return list
	}
	return slices.Delete(list, i, i+1)
}

func (s *state) removeEdge(id string) {
	at, known := s.edge[id]
	if !known {
		return
	}
	s.unlink(at)
	s.edges[at] = nil
	delete(s.edge, id)
	s.liveEdges--
}

// removeNode removes a node and the edges at it.
func (s *state) removeNode(id string) {
	spot := s.spotOf(id)
	if spot.node == none {
		return
	}
	s.removeNodeOnly(id)
	for _, at := range slices.Concat(spot.out, spot.in) {
		if e := s.edges[at]; e != nil {
			s.removeEdge(e.ID)
		}
	}
}

// removeNodeOnly removes a node and leaves the edges at it.
func (s *state) removeNodeOnly(id string) {
	spot := s.spotOf(id)
	if spot.node == none {
		return
	}
	n := s.nodes[spot.node]
	s.kinds[n.Type] = without(s.kinds[n.Type], spot.node)
	s.nodes[spot.node] = nil
	spot.node = none
	s.liveNodes--
}

// takeNode removes a node that has no edges; the function that it returns puts
// it back in its place.
func (s *state) takeNode(id string) (back func()) {
	at := s.spotOf(id).node
	n := s.nodes[at]
	s.removeNodeOnly(id)
	return func() {
		s.nodes[at], s.spotOf(id).node = n, at
		s.liveNodes++
		list := s.kinds[n.Type]
		i, _ := slices.BinarySearch(list, at)
		s.kinds[n.Type] = slices.Insert(list, i, at)
	}
}

// takeEdge removes an edge; the function that it returns puts it back in its
// place.
func (s *state) takeEdge(id string) (back func()) {
	at := s.edge[id]
	e := s.edges[at]
	s.removeEdge(id)
	return func() {
		s.edges[at], s.edge[id] = e, at
		s.liveEdges++
		src, dst := s.spotOf(e.Src), s.spotOf(e.Dst)
		src.out = ascending(src.out, at)
		dst.in = ascending(dst.in, at)
	}
}

// ascending puts a position into a list before the first that is behind it.
func ascending(list []int32, at int32) []int32 {
	i := slices.IndexFunc(list, func(other int32) bool { return other > at })
	if i < 0 {
		return append(list, at)
	}
	return slices.Insert(list, i, at)
}

// expired removes the nodes that are dead at now, with the edges at them, and
// returns their ids.
func (s *state) expired(now float64) []string {
	var dead []string
	for len(s.dying) > 0 && now > s.dying[0].at {
		m := heap.Pop(&s.dying).(mortality)
		n := s.node(m.id)
		if n == nil {
			continue
		}
		if at, mortal := n.expiry(); mortal && now > at { // else it was replaced
			s.removeNode(m.id)
			dead = append(dead, m.id)
		}
	}
	return dead
}

// someExpired reports whether expired would have something to do.
func (s *state) someExpired(now float64) bool { return len(s.dying) > 0 && now > s.dying[0].at }

func (s *state) allNodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range s.nodes {
			if n != nil && !yield(n) {
				return
			}
		}
	}
}

func (s *state) allEdges() iter.Seq[*Edge] {
	return func(yield func(*Edge) bool) {
		for _, e := range s.edges {
			if e != nil && !yield(e) {
				return
			}
		}
	}
}

func (s *state) nodesOf(kind string) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, at := range s.kinds[kind] {
			if !yield(s.nodes[at]) {
				return
			}
		}
	}
}

// edgesAt yields the edges that leave a node, or those that lead to it.
func (s *state) edgesAt(id string, list func(*spot) []int32) iter.Seq[*Edge] {
	return func(yield func(*Edge) bool) {
		at, known := s.ends[id]
		if !known {
			return
		}
		for _, e := range list(&s.spots[at]) {
			if !yield(s.edges[e]) {
				return
			}
		}
	}
}

// mortality is when a node dies.
type mortality struct {
	at float64
	id string
}

// deaths is a heap, the next one first. An entry may be out of date.
type deaths []mortality

func (d deaths) Len() int           { return len(d) }
func (d deaths) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deaths) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *deaths) Push(m any) { *d = append(*d, m.(mortality)) }

// Pop implements heap.Interface.
func (d *deaths) Pop() any {
	old := *d
	m := old[len(old)-1]
	*d = old[:len(old)-1]
	return m
}

// sparse reports whether most of the state is holes.
func (s *state) sparse() bool {
	return len(s.nodes)+len(s.edges) > 1024+2*(s.liveNodes+s.liveEdges)
}

// compact returns the state without its holes.
func (s *state) compact() *state {
	c := sized(s.liveNodes, s.liveEdges)
	for n := range s.allNodes() {
		c.putNode(n)
	}
	for e := range s.allEdges() {
		c.putEdge(e)
	}
	return c
}
