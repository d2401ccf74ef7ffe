package graph

import (
	"bytes"
	"encoding/json"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// NodeRow is a node as an operation shows it, in the contract's shape. Numbers
// keep their digits.
type NodeRow struct {
	ID             string         `json:"id"`
	NodeType       string         `json:"node_type" jsonschema:"episodic, semantic, procedural, persona or patch"`
	AgentID        string         `json:"agent_id" jsonschema:"whose node it is, within this graph"`
	Label          string         `json:"label"`
	Payload        map[string]any `json:"payload"`
	Tags           []string       `json:"tags"`
	CreatedAt      float64        `json:"created_at" jsonschema:"Unix seconds"`
	TTL            *float64       `json:"ttl" jsonschema:"seconds; null for a node that stays"`
	ContradictedBy []string       `json:"contradicted_by"`
	VitalsGate     any            `json:"vitals_gate,omitempty"`
	VitalsPhase    any            `json:"vitals_phase,omitempty"`
	VitalsTrust    any            `json:"vitals_trust,omitempty"`
	Extra          map[string]any `json:"extra,omitempty" jsonschema:"members that are not of the contract"`
}

// Row returns the node for an operation's answer.
func (n *Node) Row() (NodeRow, error) {
	r := NodeRow{ID: n.ID, NodeType: n.Type, AgentID: n.AgentID, Label: n.Label, Tags: notNil(n.Tags), CreatedAt: n.CreatedAt, TTL: n.TTL,
		ContradictedBy: notNil(n.ContradictedBy), Payload: map[string]any{}}
	if n.Payload != nil {
		if err := decodeNumbers(n.Payload, &r.Payload); err != nil {
			return NodeRow{}, err
		}
	}
	for _, v := range []struct {
		raw json.RawMessage
		to  *any
	}{{n.VitalsGate, &r.VitalsGate}, {n.VitalsPhase, &r.VitalsPhase}, {n.VitalsTrust, &r.VitalsTrust}} {
		if v.raw != nil {
			if err := decodeNumbers(v.raw, v.to); err != nil {
				return NodeRow{}, err
			}
		}
	}
	var err error
	r.Extra, err = extraRow(n.Extra)
	return r, err
}

// EdgeRow is an edge as an operation shows it.
type EdgeRow struct {
	ID         string         `json:"id"`
	Src        string         `json:"src"`
	Dst        string         `json:"dst"`
	EdgeType   string         `json:"edge_type"`
	Label      string         `json:"label"`
	Confidence float64        `json:"confidence"`
	Meta       map[string]any `json:"meta"`
	Extra      map[string]any `json:"extra,omitempty" jsonschema:"members that are not of the contract"`
}

// Row returns the edge for an operation's answer.
func (e *Edge) Row() (EdgeRow, error) {
	r := EdgeRow{ID: e.ID, Src: e.Src, Dst: e.Dst, EdgeType: e.Type, Label: e.Label, Confidence: e.Confidence, Meta: map[string]any{}}
	if e.Meta != nil {
		if err := decodeNumbers(e.Meta, &r.Meta); err != nil {
			return EdgeRow{}, err
		}
	}
	var err error
	r.Extra, err = extraRow(e.Extra)
	return r, err
}

// NodeRows returns nodes for an operation's answer, never nil.
func NodeRows(nodes []*Node) ([]NodeRow, error) {
	rows := make([]NodeRow, 0, len(nodes))
	for _, n := range nodes {
		r, err := n.Row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// EdgeRows returns edges for an operation's answer, never nil.
func EdgeRows(edges []*Edge) ([]EdgeRow, error) {
	rows := make([]EdgeRow, 0, len(edges))
	for _, e := range edges {
		r, err := e.Row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func extraRow(members []Member) (map[string]any, error) {
	if len(members) == 0 {
		return nil, nil
	}
	extra := map[string]any{}
	for _, m := range members {
		var v any
		if err := decodeNumbers(m.Value, &v); err != nil {
			return nil, err
		}
		extra[m.Name] = v
	}
	return extra, nil
}

// decodeNumbers reads JSON with numbers as json.Number.
func decodeNumbers(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return memory.Errorf(memory.ErrCorrupt, "stored JSON: %w", err)
	}
	return nil
}

// Object is a JSON object as an operation takes it. Numbers keep their digits.
type Object map[string]any

// UnmarshalJSON reads a JSON object.
func (o *Object) UnmarshalJSON(raw []byte) error {
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return err
	}
	*o = m
	return nil
}

// raw writes the object; nil for none.
func (o Object) raw() (json.RawMessage, error) {
	if o == nil {
		return nil, nil
	}
	return encodeValue(map[string]any(o))
}
