package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Loaded counts what a bundle brought.
type Loaded struct {
	Traits        int `json:"traits"`         // that were new
	TraitsSkipped int `json:"traits_skipped"` // that cannot be read
	TraitsLive    int `json:"traits_live"`    // that the graph had: its own win
	Nodes         int `json:"nodes"`          // that were new
	NodesSkipped  int `json:"nodes_skipped"`  // that cannot be used
	NodesLive     int `json:"nodes_live"`     // that the graph had: its own win
	traitNodes    []*Node
}

// loadHostBundle loads the bundle that the host names, if the file is there.
func (h *Hooks) loadHostBundle(ctx context.Context, agent string) error {
	text, err := readSmall(h.host.Bundle, h.host.limits().BundleBytes)
	if err != nil {
		return err
	}
	got, err := h.LoadBundle(ctx, agent, []byte(text), false)
	if err == nil {
		h.log.Info().Int("traits", got.Traits).Int("nodes", got.Nodes).Int("skipped", got.TraitsSkipped+got.NodesSkipped).Msg("bundle loaded")
	}
	return err
}

// limits are the host's, or the contract's defaults.
func (h Host) limits() Limits {
	if h.Limits == (Limits{}) {
		return defaultLimits
	}
	return h.Limits
}

// LoadBundle brings what a bundle holds of persona and memory into the graph, as
// that agent's. What the graph has already stays as it is: a bundle is a state
// to start from, no authority over what was learned since. Rows that cannot be
// used are counted and skipped; a bundle without a workflow is ErrInvalid.
func (h *Hooks) LoadBundle(ctx context.Context, agent string, bundle []byte, dry bool) (Loaded, error) {
	text, err := readable(string(bundle))
	if err != nil {
		return Loaded{}, memory.Errorf(memory.ErrInvalid, "the bundle %w", err)
	}
	b := gjson.Parse(text)
	if !b.Get("workflow").Exists() {
		return Loaded{}, &memory.FieldError{Field: "workflow", Reason: "is missing: this is no bundle"}
	}
	var got Loaded
	err = h.update(ctx, dry, func(tx *Tx) error {
		got = Loaded{}
		if err := tx.loadTraits(agent, b.Get("persona"), &got); err != nil {
			return err
		}
		return tx.loadNodes(agent, b.Get("memory"), &got)
	})
	if err != nil {
		return Loaded{}, err
	}
	if len(got.traitNodes) > 0 {
		h.push(ctx, dry, nil, got.traitNodes...)
	}
	return got, nil
}

func (tx *Tx) loadTraits(agent string, rows gjson.Result, got *Loaded) error {
	brought := map[string]bool{} // ids of the traits that came with this bundle; a later row changes one
	for _, row := range rows.Array() {
		u, ok := bundledTrait(row)
		if !rows.IsArray() || !ok {
			got.TraitsSkipped++
			continue
		}
		if old := tx.traitNode(agent, strings.TrimSpace(u.Name)); old != nil && !old.isChange() && !brought[old.ID] {
			got.TraitsLive++
			continue
		}
		n, _, err := tx.UpdateTrait(agent, u)
		if errors.Is(err, memory.ErrInvalid) {
			got.TraitsSkipped++
			continue
		}
		if err != nil {
			return err
		}
		if !brought[n.ID] {
			got.Traits++
		}
		brought[n.ID] = true
		got.traitNodes = append(got.traitNodes, n)
	}
	return nil
}

// bundledTrait reads a row of a bundle's persona; ok is false for one that is of
// no use. A trait whose type of edge is not known comes without edges.
func bundledTrait(row gjson.Result) (u TraitUpdate, ok bool) {
	if !row.IsObject() {
		return u, false
	}
	u, err := traitUpdateFrom(row)
	if !row.Get("trait_name").Exists() {
		u.Name = "None" // what the reference makes of it
	}
	if !slices.Contains(EdgeTypes, u.EdgeType) {
		u.EdgeType = ""
	}
	return u, err == nil && strings.TrimSpace(u.Name) != ""
}

// bundled are the types of nodes that a bundle's memory may hold: its persona
// has a list of its own.
var bundled = []string{Episodic, Semantic, Procedural, Patch}

func (tx *Tx) loadNodes(agent string, rows gjson.Result, got *Loaded) error {
	if !rows.IsArray() {
		return nil
	}
	for _, row := range rows.Array() {
		n := bundledNode(row, agent, tx.Now())
		switch {
		case n == nil:
			got.NodesSkipped++
			continue
		case tx.Node(n.ID) != nil:
			got.NodesLive++
			continue
		}
		_, err := tx.AddNode(n)
		switch {
		case errors.Is(err, memory.ErrInvalid):
			got.NodesSkipped++
		case err != nil:
			return err
		default:
			got.Nodes++
		}
	}
	return nil
}

// bundledNode reads a row of a bundle's memory; nil for one that is of no use.
func bundledNode(row gjson.Result, agent string, now float64) *Node {
	if !row.IsObject() {
		return nil
	}
	kind := strings.ToLower(strings.TrimSpace(printedOr(row.Get("node_type"), "")))
	id := strings.TrimSpace(printedOr(row.Get("id"), ""))
	payload, tags := row.Get("payload"), row.Get("tags")
	if !slices.Contains(bundled, kind) || id == "" ||
		payload.Exists() && payload.Type != gjson.Null && !payload.IsObject() || tags.Exists() && tags.Type != gjson.Null && !tags.IsArray() {
		return nil
	}
	members, err := membersOf("row", []byte(row.Raw))
	if err != nil {
		return nil
	}
	members = setMember(members, "id", appendText(nil, id))
	members = setMember(members, "node_type", appendText(nil, kind))
	members = setMember(members, "agent_id", appendText(nil, printedOr(row.Get("agent_id"), agent)))
	if at := row.Get("created_at"); at.Type == gjson.Null {
		members = setMember(members, "created_at", appendNumber(nil, now))
	}
	n, err := nodeOf(gjson.ParseBytes(appendMembers(nil, members)))
	if err != nil {
		return nil
	}
	return n
}

// printedOr shows a value that is more than nothing.
func printedOr(v gjson.Result, otherwise string) string {
	if !truthy(v) {
		return otherwise
	}
	return printed(v)
}

// BuildBundle writes a bundle with the graph's memory and an agent's persona as
// they are now. previous is the bundle to build on, of which the workflow, the
// tools and what is not known here are kept; nil for a new one with an empty
// workflow.
func (v *View) BuildBundle(agent string, previous []byte, now time.Time, l Limits) (json.RawMessage, error) {
	members := []Member{{"workflow", json.RawMessage("{}")}, {"memory", nil}, {"persona", nil}, {"tools", json.RawMessage("[]")},
		{"bundle_version", json.RawMessage(`"1.0"`)}, {"agent_id", nil}, {"created_at", nil}, {"source_file", json.RawMessage("null")}}
	if previous != nil {
		text, err := readable(string(previous))
		if err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "the previous bundle %w", err)
		}
		old, err := membersOf("bundle", []byte(text))
		if err != nil {
			return nil, err
		}
		for _, m := range old {
			members = setMember(members, m.Name, m.Value)
		}
	}
	rows := []json.RawMessage{}
	for _, n := range v.Export(l).Nodes {
		if n.Type != Persona {
			rows = append(rows, n.appendJSON(nil))
		}
	}
	traits, err := encodeValue(v.CurrentTraits(agent, l.PersonaTraits))
	if err != nil {
		return nil, err
	}
	for _, m := range []Member{{"memory", appendList(nil, rows)}, {"persona", traits}, {"agent_id", appendText(nil, agent)},
		{"created_at", fmt.Appendf(nil, "%q", now.UTC().Format("2006-01-02T15:04:05.999999-07:00"))}} {
		members = setMember(members, m.Name, m.Value)
	}
	return append(appendMembers(nil, members), '\n'), nil
}
