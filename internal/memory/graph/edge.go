package graph

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The types of edges, as they are written. The first five are structural; knows
// to contradicts are epistemic; the last three are the reference's additions.
const (
	CausedBy    = "caused_by"
	PartOf      = "part_of"
	References  = "references"
	DerivedFrom = "derived_from"
	InheritedBy = "inherited_by"
	Knows       = "knows"
	Believes    = "believes" // its confidence is that of its meta, if given there
	LearnedFrom = "learned_from"
	Contradicts = "contradicts" // marks the nodes at both of its ends
	Follows     = "follows"
	CausedPatch = "caused_patch"
	Strengthens = "strengthens"
)

// EdgeTypes are all types of edges. No other can be added; a file may hold some.
var EdgeTypes = []string{CausedBy, PartOf, References, DerivedFrom, InheritedBy, Knows, Believes, LearnedFrom, Contradicts, Follows, CausedPatch, Strengthens}

// checkEdgeType refuses a type that is not known.
func checkEdgeType(field, t string) error {
	if slices.Contains(EdgeTypes, t) {
		return nil
	}
	hint := "the types are " + strings.Join(EdgeTypes, ", ")
	if near := memory.Nearest(t, EdgeTypes); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &memory.FieldError{Field: field, Reason: "is not a type of edge: " + quoted(t), Hint: hint}
}

// Edge is one directed edge. Its ends need not exist. Like a Node, an edge in a
// store never changes.
type Edge struct {
	ID         string
	Src, Dst   string // ids of nodes
	Type       string
	Label      string
	Confidence float64         // 1 unless said otherwise
	Meta       json.RawMessage // an object; nil stands for {}
	Extra      []Member        // members that are not known here
}

// ParseEdge reads an edge as the contract writes it. A confidence that cannot
// be read counts as 1, a meta that is no object as {}. A missing id, src, dst
// or edge_type is a FieldError.
func ParseEdge(raw []byte) (*Edge, error) {
	row, err := parseRow("edge", raw)
	if err != nil {
		return nil, err
	}
	return edgeOf(row)
}

// edgeOf reads a row of valid JSON.
func edgeOf(row gjson.Result) (*Edge, error) {
	if !row.IsObject() {
		return nil, &memory.FieldError{Field: "edge", Reason: "must be an object"}
	}
	e := &Edge{Confidence: 1}
	r := reader{}
	row.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			e.ID = r.text("id", v)
		case "src":
			e.Src = r.text("src", v)
		case "dst":
			e.Dst = r.text("dst", v)
		case "edge_type":
			e.Type = r.text("edge_type", v)
			r.has(hasType)
		case "label":
			e.Label = r.text("label", v)
		case "confidence":
			if c, ok := numberOf(v); ok {
				e.Confidence = c
			} else {
				e.Confidence = 1
			}
		case "meta":
			e.Meta = nil
			if v.IsObject() {
				e.Meta = json.RawMessage(v.Raw)
			}
		default:
			e.Extra = setMember(e.Extra, key.String(), json.RawMessage(v.Raw))
		}
		return r.err == nil
	})
	switch {
	case r.err != nil:
		return nil, r.err
	case e.ID == "":
		return nil, missing("id")
	case e.Src == "":
		return nil, missing("src")
	case e.Dst == "":
		return nil, missing("dst")
	case r.seen&hasType == 0:
		return nil, missing("edge_type")
	}
	return e, nil
}

// MarshalJSON writes the edge in the contract's shape and order.
func (e *Edge) MarshalJSON() ([]byte, error) { return e.appendJSON(nil), nil }

// appendJSON appends the edge as one line of compact JSON.
func (e *Edge) appendJSON(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), e.ID)
	b = appendText(append(b, `,"src":`...), e.Src)
	b = appendText(append(b, `,"dst":`...), e.Dst)
	b = appendText(append(b, `,"edge_type":`...), e.Type)
	b = appendText(append(b, `,"label":`...), e.Label)
	b = appendNumber(append(b, `,"confidence":`...), e.Confidence)
	b = appendObject(append(b, `,"meta":`...), e.Meta)
	for _, m := range e.Extra {
		b = appendMember(b, m)
	}
	return append(b, '}')
}
