package graph

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Tx is a graph that is being changed. Use it within the function that it was
// given to.
type Tx struct {
	View
	store   *Store
	touched delta
	back    []func() // undo what was done, the last first
}

// Now returns the time in Unix seconds.
func (tx *Tx) Now() float64 { return tx.store.now() }

// NewID returns an id that is new: the prefix, _ and 32 hex digits.
func (tx *Tx) NewID(prefix string) string { return prefix + "_" + tx.store.opts.NewID() }

// AddNode adds a node, or puts it in the place of the one with its id, and
// returns it as it is stored.
func (tx *Tx) AddNode(n *Node) (*Node, error) {
	if n.ID == "" {
		return nil, missing("id")
	}
	if n.Type == "" {
		return nil, missing("node_type")
	}
	old := tx.Node(n.ID)
	if limit := tx.store.limits.Nodes; old == nil && !fits(tx.state.liveNodes+1, limit) {
		return nil, memory.WithHint(memory.Errorf(memory.ErrDenied, "the graph has %d nodes, the most that would be read again", limit),
			"set AINL_GRAPH_MEMORY_MAX_NODES to more")
	}
	n, err := tx.store.cleanNode(n)
	if err != nil {
		return nil, err
	}
	tx.putNode(n)
	return n, nil
}

// putNode puts a node that was checked.
func (tx *Tx) putNode(n *Node) {
	st := tx.state
	if old := st.node(n.ID); old != nil {
		tx.back = append(tx.back, func() { st.putNode(old) })
	} else {
		tx.back = append(tx.back, func() { st.removeNodeOnly(n.ID) })
	}
	st.putNode(n)
	tx.touched.node(n.ID, true)
}

// AddEdge adds an edge, or puts it in the place of the one with its id, and
// returns it as it is stored. Its type must be one of EdgeTypes; its ends need
// not exist.
//
// An edge that believes takes its confidence from its meta, if given there. One
// that contradicts marks those of its ends that exist: has_contradiction in the
// payload's metadata, and the other end in ContradictedBy, once.
func (tx *Tx) AddEdge(e *Edge) (*Edge, error) {
	switch {
	case e.ID == "":
		return nil, missing("id")
	case e.Src == "":
		return nil, missing("src")
	case e.Dst == "":
		return nil, missing("dst")
	}
	if err := checkEdgeType("edge_type", e.Type); err != nil {
		return nil, err
	}
	e, err := tx.store.cleanEdge(e)
	if err != nil {
		return nil, err
	}
	switch e.Type {
	case Believes:
		if e, err = believed(e); err != nil {
			return nil, err
		}
	case Contradicts:
		for _, end := range [][2]string{{e.Src, e.Dst}, {e.Dst, e.Src}} {
			if n := tx.Node(end[0]); n != nil {
				if n, err = contradicted(n, end[1]); err != nil {
					return nil, err
				}
				tx.putNode(n)
			}
		}
	}
	tx.putEdge(e)
	return e, nil
}

// putEdge puts an edge that was checked.
func (tx *Tx) putEdge(e *Edge) {
	st := tx.state
	if old := st.edgeByID(e.ID); old != nil {
		tx.back = append(tx.back, func() { st.putEdge(old) })
	} else {
		tx.back = append(tx.back, func() { st.removeEdge(e.ID) })
	}
	st.putEdge(e)
	tx.touched.edge(e.ID, true)
}

// RemoveNode removes a node and the edges at it; it reports whether there was
// such a node. Contradictions that its edges have marked stay marked. A removal
// cannot be held in memory: with Write.Hold, Update fails.
func (tx *Tx) RemoveNode(id string) bool {
	if tx.Node(id) == nil {
		return false
	}
	for _, e := range slices.Concat(slices.Collect(tx.Out(id)), slices.Collect(tx.In(id))) {
		tx.RemoveEdge(e.ID)
	}
	tx.back = append(tx.back, tx.state.takeNode(id))
	tx.touched.drop([]string{id})
	return true
}

// RemoveEdge removes an edge; it reports whether there was one. Like RemoveNode
// it leaves marks as they are and cannot be held in memory.
func (tx *Tx) RemoveEdge(id string) bool {
	if tx.Edge(id) == nil {
		return false
	}
	tx.back = append(tx.back, tx.state.takeEdge(id))
	tx.touched.cut(id)
	return true
}

// undo takes all changes back.
func (tx *Tx) undo() {
	for _, back := range slices.Backward(tx.back) {
		back()
	}
}

// believed takes the confidence of an edge from its meta.
func believed(e *Edge) (*Edge, error) {
	given := gjson.GetBytes(e.Meta, "confidence")
	if !given.Exists() {
		return e, nil
	}
	c, ok := numberOf(given)
	if !ok {
		return nil, &memory.FieldError{Field: "meta.confidence", Reason: "must be a number"}
	}
	b := *e
	b.Confidence = c
	return &b, nil
}

// contradicted marks a node as contradicted by another.
func contradicted(n *Node, by string) (*Node, error) {
	payload, err := membersOf("payload", n.Payload)
	if err != nil {
		return nil, err
	}
	var metadata []Member
	for _, m := range payload {
		if m.Name == "metadata" && string(m.Value) != "null" {
			if metadata, err = membersOf("payload.metadata", m.Value); err != nil {
				return nil, err
			}
		}
	}
	metadata = setMember(metadata, "has_contradiction", json.RawMessage("true"))
	payload = setMember(payload, "metadata", appendMembers(nil, metadata))
	return n.with(func(c *Node) {
		c.Payload = appendMembers(nil, payload)
		if !slices.Contains(c.ContradictedBy, by) {
			c.ContradictedBy = append(c.ContradictedBy, by)
		}
	}), nil
}

// membersOf reads the members of an object of valid JSON; nil stands for {}.
func membersOf(field string, raw json.RawMessage) ([]Member, error) {
	if raw == nil {
		return nil, nil
	}
	row := gjson.ParseBytes(raw)
	if !row.IsObject() {
		return nil, &memory.FieldError{Field: field, Reason: "must be an object"}
	}
	var members []Member
	row.ForEach(func(key, v gjson.Result) bool {
		members = setMember(members, key.String(), json.RawMessage(v.Raw))
		return true
	})
	return members, nil
}

func appendMembers(b []byte, members []Member) []byte {
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRaw(append(appendText(b, m.Name), ':'), m.Value)
	}
	return append(b, '}')
}

// delta names what has changed. The values tell whether this process changed
// it, or it came with a snapshot.
type delta struct {
	nodes, edges map[string]bool
	drops        map[string]bool // nodes that were removed, with the edges at them
	cuts         map[string]bool // edges that were removed
}

// empty reports whether everything is on disk.
func (d *delta) empty() bool { return len(d.nodes)+len(d.edges)+len(d.drops)+len(d.cuts) == 0 }

func (d *delta) node(id string, own bool) {
	if d.nodes == nil {
		d.nodes = map[string]bool{}
	}
	d.nodes[id] = own
}

func (d *delta) edge(id string, own bool) {
	if d.edges == nil {
		d.edges = map[string]bool{}
	}
	d.edges[id] = own
}

func (d *delta) drop(ids []string) {
	if d.drops == nil {
		d.drops = map[string]bool{}
	}
	for _, id := range ids {
		d.drops[id] = true
		delete(d.nodes, id)
	}
}

func (d *delta) cut(id string) {
	if d.cuts == nil {
		d.cuts = map[string]bool{}
	}
	d.cuts[id] = true
	delete(d.edges, id)
}

// removes reports whether something was taken away.
func (d *delta) removes() bool { return len(d.drops)+len(d.cuts) > 0 }

func (d *delta) add(more delta) {
	d.drop(slices.Collect(maps.Keys(more.drops)))
	for id := range more.cuts {
		d.cut(id)
	}
	for id, own := range more.nodes {
		d.node(id, own)
	}
	for id, own := range more.edges {
		d.edge(id, own)
	}
}

func (d *delta) any() bool { return len(d.nodes)+len(d.edges)+len(d.drops)+len(d.cuts) > 0 }

func (d *delta) clone() delta {
	return delta{maps.Clone(d.nodes), maps.Clone(d.edges), maps.Clone(d.drops), maps.Clone(d.cuts)}
}
