package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// PatchRecord tells that a pattern was installed under a label: the payload of
// a node of type patch.
type PatchRecord struct {
	NodeID              string   `json:"node_id"`
	LabelName           string   `json:"label_name"`
	PatternName         string   `json:"pattern_name"`
	SourcePatternNodeID string   `json:"source_pattern_node_id"`
	SourceEpisodeIDs    []string `json:"source_episode_ids"`
	DeclaredReads       []string `json:"declared_reads"`
	Fitness             float64  `json:"fitness"`       // 0 to 1
	PatchVersion        int64    `json:"patch_version"` // counts the patches of a label from 1
	PatchedAt           int64    `json:"patched_at"`    // Unix seconds
	ParentPatchID       string   `json:"parent_patch_id,omitempty"`
	RetiredAt           *int64   `json:"retired_at,omitempty"` // Unix seconds
	RetiredReason       string   `json:"retired_reason,omitempty"`
}

// PatchOf reads the record of a node; ok is false where it holds none.
func PatchOf(n *Node) (p PatchRecord, ok bool) {
	payload := gjson.ParseBytes(n.Payload)
	r := reader{}
	text := func(name string) string { return r.text(name, payload.Get(name)) }
	number := func(name string, otherwise float64) float64 {
		if v := payload.Get(name); v.Exists() {
			return r.number(name, v)
		}
		return otherwise
	}
	p = PatchRecord{
		NodeID: text("node_id"), LabelName: text("label_name"), PatternName: text("pattern_name"),
		SourcePatternNodeID: text("source_pattern_node_id"),
		SourceEpisodeIDs:    notNil(r.oneOrMoreTexts("source_episode_ids", payload.Get("source_episode_ids"))),
		DeclaredReads:       notNil(r.texts("declared_reads", payload.Get("declared_reads"))),
		Fitness:             number("fitness", 0.5),
		PatchVersion:        int64(number("patch_version", 1)), PatchedAt: int64(number("patched_at", 0)),
		ParentPatchID: text("parent_patch_id"), RetiredReason: text("retired_reason"),
	}
	if v := payload.Get("retired_at"); v.Exists() && v.Type != gjson.Null {
		at := int64(r.number("retired_at", v))
		p.RetiredAt = &at
	}
	return p, r.err == nil
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Patches returns the records of patches, by label, the newest version of each
// first. agent "" stands for all agents.
func (v *View) Patches(agent string, retired bool) []PatchRecord {
	list := []PatchRecord{}
	for n := range v.NodesOf(Patch) {
		p, ok := PatchOf(n)
		if ok && (agent == "" || n.AgentID == agent) && (retired || p.RetiredAt == nil) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b PatchRecord) int {
		return cmp.Or(strings.Compare(a.LabelName, b.LabelName), cmp.Compare(b.PatchVersion, a.PatchVersion))
	})
	return list
}

// Patch returns the live record with the highest version of a label.
func (v *View) Patch(agent, label string) (p PatchRecord, found bool) {
	_, p, found = v.patch(agent, label, false)
	return p, found
}

// patch returns the node and record with the highest version of a label; of two
// with the same, the first.
func (v *View) patch(agent, label string, retired bool) (*Node, PatchRecord, bool) {
	var node *Node
	var newest PatchRecord
	for n := range v.NodesOf(Patch) {
		p, ok := PatchOf(n)
		if !ok || n.AgentID != agent || p.LabelName != label || !retired && p.RetiredAt != nil {
			continue
		}
		if node == nil || p.PatchVersion > newest.PatchVersion {
			node, newest = n, p
		}
	}
	return node, newest, node != nil
}

// Installation is a patch that was made.
type Installation struct {
	Label   string
	Steps   []json.RawMessage
	Pattern string // the name of the pattern; "" where it has none
	Record  PatchRecord
	Node    *Node
}

// install records that a pattern's steps stand under a label from now on. The
// live record of the label, if there is one, is retired as superseded, and
// becomes the parent of the new one. Versions go on counting after a label was
// retired by hand. What cannot be installed is an unresolved.
func (tx *Tx) install(agent, label string, pattern gjson.Result, episodes []string) (Installation, error) {
	if strings.TrimSpace(label) == "" {
		return Installation{}, unresolved{"label_name required", memory.ErrInvalid}
	}
	res, err := tx.resolve(agent, pattern)
	if err != nil {
		return Installation{}, err
	}
	if len(res.steps) == 0 {
		return Installation{}, unresolved{"pattern has no steps", memory.ErrInvalid}
	}
	for _, step := range res.steps {
		if !gjson.ParseBytes(step).IsObject() {
			return Installation{}, unresolved{"all steps must be objects", memory.ErrInvalid}
		}
	}
	p := PatchRecord{
		NodeID: tx.NewID("patch"), LabelName: label, PatternName: cmp.Or(res.name, "unnamed"), SourcePatternNodeID: cmp.Or(res.source, "unknown"),
		SourceEpisodeIDs: notNil(episodes), DeclaredReads: []string{}, Fitness: 0.5, PatchVersion: 1, PatchedAt: int64(math.Floor(tx.Now())),
	}
	if _, last, found := tx.patch(agent, label, true); found {
		p.PatchVersion, p.ParentPatchID = last.PatchVersion+1, last.NodeID
	}
	for {
		if _, found, err := tx.Retire(agent, label, "superseded"); err != nil || !found {
			if err != nil {
				return Installation{}, err
			}
			break
		}
	}
	node, err := tx.addPatch(agent, p, res.source)
	return Installation{label, res.steps, res.name, p, node}, err
}

// InstallPatch records that a pattern (a name, or an object with steps, as JSON)
// stands under a label from now on, and pushes the record to the inbox. The live
// record of the label is retired as superseded and becomes the parent. What
// cannot be resolved is ErrInvalid, or ErrNotFound.
func (h *Hooks) InstallPatch(ctx context.Context, agent, label string, pattern json.RawMessage, episodes []string, dry bool) (Installation, error) {
	given, err := parseRow("pattern", pattern)
	if err != nil {
		return Installation{}, err
	}
	var got Installation
	err = h.update(ctx, dry, func(tx *Tx) error {
		var err error
		got, err = tx.install(agent, label, given, episodes)
		return err
	})
	if err != nil {
		return Installation{}, err
	}
	h.push(ctx, dry, nil, got.Node)
	return got, nil
}

// addPatch adds the node of a record and the edges to it.
func (tx *Tx) addPatch(agent string, p PatchRecord, source string) (*Node, error) {
	n, err := tx.AddNode(p.node(agent))
	if err != nil {
		return nil, err
	}
	edges := []*Edge{}
	if source != "" {
		edges = append(edges, &Edge{Src: source, Dst: n.ID, Type: DerivedFrom, Label: "pattern_to_patch"})
	}
	for _, episode := range p.SourceEpisodeIDs {
		edges = append(edges, &Edge{Src: episode, Dst: n.ID, Type: CausedPatch, Label: "episode_to_patch"})
	}
	for _, e := range edges {
		e.ID, e.Confidence = tx.NewID("edge"), 1
		if _, err := tx.AddEdge(e); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// node is the record as a node of an agent.
func (p PatchRecord) node(agent string) *Node {
	return &Node{ID: p.NodeID, Type: Patch, AgentID: agent, Label: "patch:" + p.LabelName, Payload: p.payload(),
		Tags: []string{"patch", p.PatternName, fmt.Sprintf("v%d", p.PatchVersion)}, CreatedAt: float64(p.PatchedAt)}
}

// payload writes the record.
func (p PatchRecord) payload() json.RawMessage {
	members := []Member{
		{"node_id", appendText(nil, p.NodeID)}, {"label_name", appendText(nil, p.LabelName)}, {"pattern_name", appendText(nil, p.PatternName)},
		{"source_pattern_node_id", appendText(nil, p.SourcePatternNodeID)}, {"source_episode_ids", appendTexts(nil, p.SourceEpisodeIDs)},
		{"declared_reads", appendTexts(nil, p.DeclaredReads)}, {"fitness", appendNumber(nil, p.Fitness)},
		{"patch_version", fmt.Append(nil, p.PatchVersion)}, {"patched_at", fmt.Append(nil, p.PatchedAt)},
	}
	if p.ParentPatchID != "" {
		members = append(members, Member{"parent_patch_id", appendText(nil, p.ParentPatchID)})
	}
	if p.RetiredAt != nil {
		members = append(members, Member{"retired_at", fmt.Append(nil, *p.RetiredAt)})
	}
	if p.RetiredReason != "" {
		members = append(members, Member{"retired_reason", appendText(nil, p.RetiredReason)})
	}
	return appendMembers(nil, members)
}

// Retire takes the live record of a label out of use. found is false where
// there is none.
func (tx *Tx) Retire(agent, label, reason string) (p PatchRecord, found bool, err error) {
	n, p, found := tx.View.patch(agent, label, false)
	if !found {
		return p, false, nil
	}
	at := int64(math.Floor(tx.Now()))
	p.RetiredAt, p.RetiredReason = &at, reason
	return p, true, tx.setPayload(n, []Member{{"retired_at", fmt.Append(nil, at)}, {"retired_reason", appendText(nil, reason)}}, "retired")
}

// SetFitness sets the fitness of the live record of a label.
func (tx *Tx) SetFitness(agent, label string, fitness float64) (p PatchRecord, found bool, err error) {
	n, p, found := tx.View.patch(agent, label, false)
	if !found {
		return p, false, nil
	}
	p.Fitness = fitness
	return p, true, tx.setPayload(n, []Member{{"fitness", appendNumber(nil, fitness)}})
}

// Observe moves the fitness of the live record of a label by the outcome of a
// run: 0.8 of the old one, and 0.2 more after a success, to four places.
func (tx *Tx) Observe(agent, label string, success bool) (p PatchRecord, found bool, err error) {
	p, _ = tx.Patch(agent, label) // SetFitness says whether there is one
	fitness := 0.8 * p.Fitness
	if success {
		fitness += 0.2
	}
	return tx.SetFitness(agent, label, math.Round(fitness*1e4)/1e4)
}

// Finalize sets what the steps of a patch read, once that is known.
func (tx *Tx) Finalize(nodeID string, reads []string) (found bool, err error) {
	n := tx.Node(nodeID)
	if n == nil || n.Type != Patch {
		return false, nil
	}
	return true, tx.setPayload(n, []Member{{"declared_reads", appendTexts(nil, reads)}})
}

// setPayload sets members of a node's payload, and adds tags.
func (tx *Tx) setPayload(n *Node, members []Member, tags ...string) error {
	payload, err := membersOf("payload", n.Payload)
	if err != nil {
		return err
	}
	for _, m := range members {
		payload = setMember(payload, m.Name, m.Value)
	}
	_, err = tx.AddNode(n.with(func(c *Node) {
		c.Payload = appendMembers(nil, payload)
		c.Tags = append(c.Tags, tags...)
	}))
	return err
}
