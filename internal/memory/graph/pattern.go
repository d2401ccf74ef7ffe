package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	stepTag = "pattern_step"   // of the nodes of a pattern's steps
	toolTag = "tool_execution" // of the nodes of calls of tools
)

// Pattern is a named list of steps, as it is stored.
type Pattern struct {
	Name    string
	Steps   []json.RawMessage // an object each; what is none becomes {"value": …}
	AgentID string
	Tags    []string
}

// StorePattern adds a pattern: a procedural node that has all steps, and for
// each step one more, which is part_of it. It returns the id of the first. A
// pattern of the same name stays stored, and is not recalled any more.
func (tx *Tx) StorePattern(p Pattern) (id string, err error) {
	if strings.TrimSpace(p.Name) == "" {
		return "", &memory.FieldError{Field: "pattern_name", Reason: "must not be empty"}
	}
	steps, hint := stepObjects(p.Steps)
	payload := appendMembers(nil, []Member{
		{"kind", json.RawMessage(`"pattern"`)},
		{"pattern_name", appendText(nil, p.Name)},
		{"step_count", fmt.Append(nil, len(steps))},
		{"steps", appendList(nil, steps)},
		{"steps_hint", appendTexts(nil, hint)},
	})
	root, err := tx.AddNode(&Node{ID: tx.NewID("proc"), Type: Procedural, AgentID: p.AgentID, Label: p.Name, Payload: payload, Tags: p.Tags, CreatedAt: tx.Now()})
	if err != nil {
		return "", err
	}
	for i, step := range steps {
		n, err := tx.AddNode(&Node{ID: tx.NewID("step"), Type: Procedural, AgentID: p.AgentID, Label: fmt.Sprintf("%s#step%d", p.Name, i),
			Payload: appendMembers(nil, []Member{{"index", fmt.Append(nil, i)}, {"step", step}}),
			Tags:    append(slices.Clone(p.Tags), stepTag), CreatedAt: tx.Now()})
		if err != nil {
			return "", err
		}
		if _, err := tx.AddEdge(&Edge{ID: tx.NewID("edge"), Src: n.ID, Dst: root.ID, Type: PartOf, Label: fmt.Sprintf("step_%d", i), Confidence: 1}); err != nil {
			return "", err
		}
	}
	return root.ID, nil
}

// stepObjects makes an object of each step. hint are the texts of those that
// were none, or else the values that are texts.
func stepObjects(given []json.RawMessage) (steps []json.RawMessage, hint []string) {
	steps = make([]json.RawMessage, 0, len(given))
	for _, raw := range given {
		step := gjson.ParseBytes(raw)
		if !step.IsObject() {
			hint = append(hint, printed(step))
			raw = appendMembers(nil, []Member{{"value", raw}})
		}
		steps = append(steps, raw)
	}
	if hint != nil {
		return steps, hint
	}
	for _, raw := range steps {
		if v := gjson.GetBytes(raw, "value"); v.Type == gjson.String {
			hint = append(hint, v.Str)
		}
	}
	return steps, hint
}

func appendList(b []byte, items []json.RawMessage) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRaw(b, item)
	}
	return append(b, ']')
}

// printed shows a value as the reference prints it.
func printed(v gjson.Result) string {
	if s, ok := textOf(v); ok {
		return s
	}
	if v.Type == gjson.Null {
		return "None"
	}
	return v.Raw
}

// Pattern returns the newest pattern of an agent with a name; nil where there
// is none. Blanks around the name do not count. A procedural node of another
// program counts too, by its label; the nodes of steps and of calls of tools do
// not.
func (v *View) Pattern(agent, name string) *Node {
	name = strings.TrimSpace(name)
	var newest *Node
	for n := range v.NodesOf(Procedural) {
		if n.AgentID == agent && (newest == nil || n.CreatedAt >= newest.CreatedAt) && n.isPattern(name) {
			newest = n
		}
	}
	return newest
}

func (n *Node) isPattern(name string) bool {
	if slices.Contains(n.Tags, stepTag) || slices.Contains(n.Tags, toolTag) {
		return false
	}
	if strings.TrimSpace(n.Label) == name {
		return true
	}
	given := gjson.GetBytes(n.Payload, "pattern_name")
	return given.Type == gjson.String && strings.TrimSpace(given.Str) == name
}

// resolved is a pattern that can be run.
type resolved struct {
	steps  []json.RawMessage
	name   string // "" where the pattern has none
	source string // id of the node it came from; "" where that is not known
}

// unresolved says why there is nothing to run. It is an answer, not a failure.
type unresolved struct {
	why  string
	kind memory.Kind // for those to whom it is a failure
}

func (u unresolved) Error() string { return u.why }
func (u unresolved) Unwrap() error { return u.kind }

// resolve finds the steps of a pattern: by its name, in an object with steps,
// or in one whose payload has them.
func (v *View) resolve(agent string, pattern gjson.Result) (resolved, error) {
	if pattern.Type == gjson.String {
		name := strings.TrimSpace(pattern.Str)
		if name == "" {
			return resolved{}, unresolved{"pattern_name required", memory.ErrInvalid}
		}
		n := v.Pattern(agent, name)
		if n == nil {
			return resolved{}, unresolved{fmt.Sprintf("pattern %s not found", quoted(name)), memory.ErrNotFound}
		}
		payload := gjson.ParseBytes(n.Payload)
		if !payload.Get("steps").IsArray() {
			return resolved{}, unresolved{"the pattern has no steps", memory.ErrInvalid}
		}
		return resolved{itemsOf(payload.Get("steps")), firstName(payload.Get("pattern_name"), pattern), n.ID}, nil
	}
	if !pattern.IsObject() {
		return resolved{}, unresolved{"a pattern must be a name or an object with steps", memory.ErrInvalid}
	}
	source := firstName(pattern.Get("node_id"), pattern.Get("id"))
	if steps := pattern.Get("steps"); steps.IsArray() {
		return resolved{itemsOf(steps), firstName(pattern.Get("pattern_name"), pattern.Get("label")), source}, nil
	}
	if steps := pattern.Get("payload.steps"); steps.IsArray() {
		return resolved{itemsOf(steps), firstName(pattern.Get("payload.pattern_name"), pattern.Get("pattern_name")), source}, nil
	}
	return resolved{}, unresolved{"no steps in pattern", memory.ErrInvalid}
}

// firstName returns the first value that is a text of more than blanks.
func firstName(values ...gjson.Result) string {
	for _, v := range values {
		if s, ok := textOf(v); ok && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

func itemsOf(list gjson.Result) []json.RawMessage {
	items := []json.RawMessage{}
	list.ForEach(func(_, v gjson.Result) bool {
		items = append(items, json.RawMessage(v.Raw))
		return true
	})
	return items
}
