package graph

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The node types of the contract. The set is open: a file may hold others.
const (
	Episodic   = "episodic"
	Semantic   = "semantic"
	Procedural = "procedural"
	Persona    = "persona"
	Patch      = "patch"
)

// Member is one member of a JSON object, with its value as it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Node is one vertex. A node in a store never changes: a change puts another
// in its place, so that a *Node may be kept, and one that was seen before is
// the same pointer as long as the node is the same.
type Node struct {
	ID      string
	Type    string
	AgentID string // a label within the store; it selects none
	Label   string
	Payload json.RawMessage // an object; nil stands for {}
	Tags    []string

	CreatedAt float64  // Unix seconds
	TTL       *float64 // seconds; the node is gone when now > CreatedAt + TTL

	// ContradictedBy are the ids at the other ends of contradicts edges.
	ContradictedBy []string

	// The cognitive vitals of an episode, as they were written: text, or a
	// number. nil where unset.
	VitalsGate, VitalsPhase, VitalsTrust json.RawMessage

	// Extra are members that are not known here. They are kept, in their order.
	Extra []Member
}

// ParseNode reads a node as the contract writes it. Texts are also taken from
// numbers and booleans, and numbers from texts. What is missing or cannot be
// read is a FieldError.
func ParseNode(raw []byte) (*Node, error) {
	row, err := parseRow("node", raw)
	if err != nil {
		return nil, err
	}
	return nodeOf(row)
}

// nodeOf reads a row of valid JSON. The node's texts are parts of the row's.
func nodeOf(row gjson.Result) (*Node, error) {
	if !row.IsObject() {
		return nil, &memory.FieldError{Field: "node", Reason: "must be an object"}
	}
	n := &Node{}
	r := reader{}
	created := false
	row.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			n.ID = r.text("id", v)
		case "node_type":
			n.Type = r.text("node_type", v)
		case "agent_id":
			n.AgentID = r.text("agent_id", v)
			r.has(hasAgent)
		case "label":
			n.Label = r.text("label", v)
		case "payload":
			n.Payload = r.object("payload", v)
		case "tags":
			n.Tags = r.texts("tags", v)
		case "created_at":
			n.CreatedAt, created = r.number("created_at", v), true
		case "ttl":
			n.TTL = r.optionalNumber("ttl", v)
		case "contradicted_by":
			n.ContradictedBy = r.oneOrMoreTexts("contradicted_by", v)
		case "vitals_gate":
			n.VitalsGate = optional(v)
		case "vitals_phase":
			n.VitalsPhase = optional(v)
		case "vitals_trust":
			n.VitalsTrust = optional(v)
		default:
			n.Extra = setMember(n.Extra, key.String(), json.RawMessage(v.Raw))
		}
		return r.err == nil
	})
	switch {
	case r.err != nil:
		return nil, r.err
	case n.ID == "":
		return nil, missing("id")
	case n.Type == "":
		return nil, missing("node_type")
	case r.seen&hasAgent == 0:
		return nil, missing("agent_id")
	case !created:
		return nil, missing("created_at")
	}
	return n, nil
}

// setMember sets a member in its place, or adds it at the end.
func setMember(members []Member, name string, value json.RawMessage) []Member {
	for i := range members {
		if members[i].Name == name {
			members[i].Value = value
			return members
		}
	}
	return append(members, Member{name, value})
}

// MarshalJSON writes the node in the contract's shape and order.
func (n *Node) MarshalJSON() ([]byte, error) { return n.appendJSON(nil), nil }

// appendJSON appends the node as one line of compact JSON.
func (n *Node) appendJSON(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), n.ID)
	b = appendText(append(b, `,"node_type":`...), n.Type)
	b = appendText(append(b, `,"agent_id":`...), n.AgentID)
	b = appendText(append(b, `,"label":`...), n.Label)
	b = appendObject(append(b, `,"payload":`...), n.Payload)
	b = appendTexts(append(b, `,"tags":`...), n.Tags)
	b = appendNumber(append(b, `,"created_at":`...), n.CreatedAt)
	b = append(b, `,"ttl":`...)
	if n.TTL == nil {
		b = append(b, "null"...)
	} else {
		b = appendNumber(b, *n.TTL)
	}
	b = appendTexts(append(b, `,"contradicted_by":`...), n.ContradictedBy)
	for _, v := range []Member{{"vitals_gate", n.VitalsGate}, {"vitals_phase", n.VitalsPhase}, {"vitals_trust", n.VitalsTrust}} {
		if v.Value != nil {
			b = appendMember(b, v)
		}
	}
	for _, m := range n.Extra {
		b = appendMember(b, m)
	}
	return append(b, '}')
}

// expiry is the last instant at which the node is there; ok is false where it
// has none.
func (n *Node) expiry() (at float64, ok bool) {
	if n.TTL == nil {
		return 0, false
	}
	return n.CreatedAt + *n.TTL, true
}

// with returns a copy of the node for a change. Lists are copied, since a node
// in a store never changes.
func (n *Node) with(change func(*Node)) *Node {
	c := *n
	c.Tags = slices.Clone(n.Tags)
	c.ContradictedBy = slices.Clone(n.ContradictedBy)
	c.Extra = slices.Clone(n.Extra)
	change(&c)
	return &c
}
