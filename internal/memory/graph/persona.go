package graph

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Trait is one trait of a persona: what a node of type persona tells.
type Trait struct {
	TraitName   string   `json:"trait_name"`
	Strength    float64  `json:"strength"` // 0 to 1 by custom; not bounded
	LearnedFrom []string `json:"learned_from"`
	LastUpdated int64    `json:"last_updated"` // Unix seconds
	EdgeType    string   `json:"edge_type,omitempty"`
}

// leastStrength is what a trait needs to be active.
const leastStrength = 0.1

// TraitOf reads the trait of a persona node. What cannot be read is empty.
func TraitOf(n *Node) Trait {
	payload := gjson.ParseBytes(n.Payload)
	r := reader{}
	t := Trait{TraitName: r.text("", payload.Get("trait_name")), LearnedFrom: notNil(r.oneOrMoreTexts("", payload.Get("learned_from"))), EdgeType: r.text("", payload.Get("edge_type"))}
	if label, isTrait := strings.CutPrefix(n.Label, "persona:"); isTrait && t.TraitName == "" {
		t.TraitName = label
	}
	if strength, ok := numberOf(payload.Get("strength")); ok {
		t.Strength = strength
	}
	if at, ok := numberOf(payload.Get("last_updated")); ok {
		t.LastUpdated = int64(at)
	}
	return t
}

// isChange reports whether a persona node records a change of a trait, and is
// no trait itself.
func (n *Node) isChange() bool {
	return gjson.GetBytes(n.Payload, "persona_key").Exists() && !gjson.GetBytes(n.Payload, "trait_name").Exists()
}

// traitNode finds the node of a trait; a recorded change counts where there is
// nothing else.
func (v *View) traitNode(agent, name string) *Node {
	var change *Node
	for n := range v.NodesOf(Persona) {
		if n.AgentID != agent || strings.TrimSpace(TraitOf(n).TraitName) != name {
			continue
		}
		if !n.isChange() {
			return n
		}
		if change == nil {
			change = n
		}
	}
	return change
}

// Trait returns a trait of an agent; ErrNotFound where it has no such trait.
// Blanks around the name do not count.
func (v *View) Trait(agent, name string) (Trait, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return Trait{}, missing("trait_name")
	}
	n := v.traitNode(agent, name)
	if n == nil {
		return Trait{}, memory.Errorf(memory.ErrNotFound, "%s has no trait %s", cmp.Or(agent, "the agent"), quoted(name))
	}
	return TraitOf(n), nil
}

// Traits returns the traits of an agent, the strongest first; of two alike the
// one that was added first. Recorded changes are among them, with a strength of
// 0, as the contract has it. limit bounds their number, 0 does not.
func (v *View) Traits(agent string, limit int) []Trait {
	return v.traits(agent, limit, func(*Node) bool { return true })
}

// CurrentTraits is Traits without the recorded changes of traits that exist:
// read in again they would take the trait's strength away.
func (v *View) CurrentTraits(agent string, limit int) []Trait {
	known := map[string]bool{}
	for n := range v.NodesOf(Persona) {
		if n.AgentID == agent && !n.isChange() {
			known[TraitOf(n).TraitName] = true
		}
	}
	return v.traits(agent, limit, func(n *Node) bool { return !n.isChange() || !known[TraitOf(n).TraitName] })
}

func (v *View) traits(agent string, limit int, wanted func(*Node) bool) []Trait {
	list := []Trait{}
	for n := range v.NodesOf(Persona) {
		if n.AgentID == agent && wanted(n) {
			list = append(list, TraitOf(n))
		}
	}
	slices.SortStableFunc(list, func(a, b Trait) int { return cmp.Compare(b.Strength, a.Strength) })
	if !fits(len(list), limit) {
		list = list[:limit]
	}
	return list
}

// ActiveTraits returns those of an agent's traits that are strong enough, at
// least 0.1, and were updated within a number of days, the strongest first.
func (v *View) ActiveTraits(agent string, now float64, days int) []Trait {
	return slices.DeleteFunc(v.CurrentTraits(agent, 0), func(t Trait) bool {
		return t.Strength < leastStrength || float64(t.LastUpdated) < now-float64(days)*86400
	})
}

// TraitUpdate is what persona_update is told.
type TraitUpdate struct {
	Name        string
	Strength    float64
	LearnedFrom []string // ids of episodes; joined with those that are known
	EdgeType    string   // how the trait relates to what it was learned from; "" for none
}

// UpdateTrait adds a trait of an agent or replaces its strength, and links it:
// it is part_of the agent, and, with an EdgeType, has an edge of that type to
// each episode it was learned from, or to the agent where there is none. The
// links of a trait mark no contradictions.
func (tx *Tx) UpdateTrait(agent string, u TraitUpdate) (*Node, Trait, error) {
	name := strings.TrimSpace(u.Name)
	if name == "" {
		return nil, Trait{}, missing("trait_name")
	}
	if u.EdgeType != "" {
		if err := checkEdgeType("edge_type", u.EdgeType); err != nil {
			return nil, Trait{}, err
		}
	}
	t := Trait{name, u.Strength, slices.Clone(notNil(u.LearnedFrom)), int64(math.Floor(tx.Now())), u.EdgeType}
	n := &Node{ID: tx.NewID("persona"), Type: Persona, AgentID: agent, CreatedAt: tx.Now()}
	if old := tx.traitNode(agent, name); old != nil && !old.isChange() {
		n = old.with(func(*Node) {})
		n.TTL = nil
		t.LearnedFrom = append(t.LearnedFrom, TraitOf(old).LearnedFrom...)
		slices.Sort(t.LearnedFrom)
		t.LearnedFrom = slices.Compact(t.LearnedFrom)
	}
	n.Label, n.Tags = "persona:"+name, []string{"persona", "trait"}
	var err error
	if n.Payload, err = t.payload(n.Payload); err != nil {
		return nil, Trait{}, err
	}
	if n, err = tx.AddNode(n); err != nil {
		return nil, Trait{}, err
	}
	return n, TraitOf(n), tx.linkTrait(n, t)
}

// payload writes the trait over a payload, of which it keeps what is not its own.
func (t Trait) payload(old json.RawMessage) (json.RawMessage, error) {
	members := []Member{
		{"trait_name", appendText(nil, t.TraitName)}, {"strength", appendNumber(nil, t.Strength)},
		{"learned_from", appendTexts(nil, t.LearnedFrom)}, {"last_updated", fmt.Append(nil, t.LastUpdated)},
	}
	if t.EdgeType != "" {
		members = append(members, Member{"edge_type", appendText(nil, t.EdgeType)})
	}
	rest, err := membersOf("payload", old)
	if err != nil {
		return nil, err
	}
	for _, m := range rest {
		switch m.Name {
		case "trait_name", "strength", "learned_from", "last_updated", "edge_type":
		default:
			members = append(members, m)
		}
	}
	return appendMembers(nil, members), nil
}

// linkTrait writes the edges of a trait. Their ids follow from what they join,
// so that an update finds them again.
func (tx *Tx) linkTrait(n *Node, t Trait) error {
	links := []Edge{{Dst: n.AgentID, Type: PartOf}}
	if t.EdgeType != "" {
		ends := t.LearnedFrom
		if len(ends) == 0 {
			ends = []string{n.AgentID}
		}
		for _, end := range ends {
			links = append(links, Edge{Dst: end, Type: t.EdgeType})
		}
	}
	for _, l := range links {
		if l.Dst == "" {
			continue
		}
		e, err := tx.store.cleanEdge(&Edge{ID: EdgeID(n.ID, l.Dst, l.Type), Src: n.ID, Dst: l.Dst, Type: l.Type, Label: "persona", Confidence: 1})
		if err != nil {
			return err
		}
		if old := tx.Edge(e.ID); old == nil {
			tx.putEdge(e)
		}
	}
	return nil
}

// EdgeID makes the id of an edge that is known by what it joins.
func EdgeID(src, dst, kind string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", src, dst, kind))
	return "edge_" + hex.EncodeToString(sum[:16])
}

// TraitUpdateFrom reads the arguments of persona_update: trait_name, strength,
// learned_from (a text or a list), edge_type.
func traitUpdateFrom(args gjson.Result) (TraitUpdate, error) {
	var u TraitUpdate
	r := reader{}
	if v := args.Get("trait_name"); v.Exists() {
		u.Name = printed(v)
	}
	if v := args.Get("strength"); v.Exists() {
		u.Strength = r.number("strength", v)
	}
	if v := args.Get("learned_from"); v.Exists() && v.Raw != "false" && v.Raw != "0" && v.Raw != `""` {
		u.LearnedFrom = r.oneOrMoreTexts("learned_from", v)
	}
	if v := args.Get("edge_type"); v.Exists() && v.Type != gjson.Null {
		u.EdgeType = strings.TrimSpace(printed(v))
	}
	return u, r.err
}

// contextOf maps the names of active traits to their strength.
func contextOf(traits []Trait) map[string]float64 {
	active := map[string]float64{}
	for _, t := range slices.Backward(traits) { // the strongest of a name stays
		if t.Strength >= leastStrength {
			active[t.TraitName] = t.Strength
		}
	}
	return active
}
