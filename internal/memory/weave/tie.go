package weave

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// supersedes is the label of the edges that follow from items.
const supersedes = "supersedes"

// tying brings items into a graph, within one change of it. What it leaves is a
// function of all items that were ever tied, whatever their order and number.
type tying struct {
	tx       *graph.Tx
	agent    memory.AgentID
	speakers map[string]string // by event
	keys     map[string]bool   // names whose entities may have changed
	removed  bool
}

// tie puts the nodes of items, and what follows from them.
func (t *tying) tie(items []working.Sourced) error {
	for _, it := range items {
		if err := t.item(it); err != nil {
			return err
		}
	}
	for _, it := range items { // before any of them marks a node
		t.separate(it)
	}
	for _, it := range items { // when all ends are there
		if err := t.contradictions(it); err != nil {
			return err
		}
	}
	return t.entities()
}

// item puts the node of one item, or removes it.
func (t *tying) item(it working.Sourced) error {
	if old := t.tx.Node(it.ID); isOf(t.agent, old, kindItem) {
		t.touch(old)
	}
	if !isKept(it.Item) {
		t.remove(it.ID)
		t.remove(decisionID(it.ID))
		return nil
	}
	n, err := itemNode(t.agent, it, t.speakersOf(it.Item))
	if err != nil {
		return err
	}
	if n, err = t.tx.AddNode(n); err != nil {
		return err
	}
	t.touch(n)
	return t.decision(it, n)
}

// touch notes that the entities of an item's names have to be looked at.
func (t *tying) touch(item *graph.Node) {
	for _, m := range mentionsIn(item) {
		t.keys[m.Key] = true
	}
}

func (t *tying) speakersOf(it memory.Item) []string {
	var out []string
	for _, ev := range it.Evidence {
		if name := t.speakers[ev.EventID]; name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// remove takes a node that follows from items away.
func (t *tying) remove(id string) {
	if isDerived(t.agent, t.tx.Node(id)) {
		t.removed = t.tx.RemoveNode(id) || t.removed
	}
}

// decision puts the node of the decision that an item tells of. What it refers
// to is joined to it when the names are looked at.
func (t *tying) decision(it working.Sourced, item *graph.Node) error {
	id := decisionID(it.ID)
	if it.Kind != memory.KindDecision {
		t.remove(id)
		return nil
	}
	for _, e := range slices.Collect(t.tx.Out(id)) {
		if e.Type == graph.References && isDerived(t.agent, t.tx.Node(e.Dst)) {
			t.tx.RemoveEdge(e.ID)
		}
	}
	n, err := derived(t.agent, id, item.Label, kindDecision, item.CreatedAt, entityPayload{Kind: kindDecision, Name: item.Label, First: it.Handle})
	if err != nil {
		return err
	}
	if err := t.put(n); err != nil {
		return err
	}
	return t.join(id, item.ID, graph.DerivedFrom, item.Label, evidenceOf(item, ""))
}

// put adds a node unless it is there as it should be.
func (t *tying) put(n *graph.Node) error {
	old := t.tx.Node(n.ID)
	if old != nil && old.Label == n.Label && old.CreatedAt == n.CreatedAt && bytes.Equal(old.Payload, n.Payload) {
		return nil
	}
	_, err := t.tx.AddNode(n)
	return err
}

// join adds an edge unless it is there as it should be.
func (t *tying) join(src, dst, kind, label string, meta json.RawMessage) error {
	e := &graph.Edge{ID: graph.EdgeID(src, dst, kind), Src: src, Dst: dst, Type: kind, Label: label, Confidence: 1, Meta: meta}
	if old := t.tx.Edge(e.ID); old != nil && old.Label == label && bytes.Equal(old.Meta, meta) {
		return nil
	}
	_, err := t.tx.AddEdge(e)
	return err
}

// evidenceOf is the meta of an edge to an item: its provenance.
func evidenceOf(item *graph.Node, role string) json.RawMessage {
	from := gjson.GetBytes(item.Payload, "provenance").Raw
	meta := `{"handle":` + gjson.GetBytes(item.Payload, "handle").Raw
	if role != "" {
		meta += `,"role":` + strconv.Quote(role)
	}
	return json.RawMessage(meta + `,"provenance":` + cmp.Or(from, "{}") + `}`)
}

// contradictions joins an item to the one that it supersedes. The item's node
// has just been put, without marks: its edges mark it again.
func (t *tying) contradictions(it working.Sourced) error {
	n := t.tx.Node(it.ID)
	if n == nil || !isKept(it.Item) {
		return nil
	}
	for _, pair := range [][2]string{{it.ID, it.Supersedes}, {it.SupersededBy, it.ID}} {
		if err := t.supersede(pair[0], pair[1]); err != nil {
			return err
		}
	}
	for _, e := range slices.Concat(slices.Collect(t.tx.Out(it.ID)), slices.Collect(t.tx.In(it.ID))) {
		if e.Type != graph.Contradicts {
			continue
		}
		if _, err := t.tx.AddEdge(e); err != nil {
			return err
		}
	}
	return nil
}

// separate takes the edges away that join an item to others than the one that it
// supersedes now.
func (t *tying) separate(it working.Sourced) {
	for _, e := range slices.Collect(t.tx.Out(it.ID)) {
		if e.Type == graph.Contradicts && e.Label == supersedes && e.Dst != it.Supersedes {
			t.tx.RemoveEdge(e.ID)
		}
	}
}

// supersede joins an item to the one that it has taken the place of, where both
// are there.
func (t *tying) supersede(newer, older string) error {
	n := t.tx.Node(newer)
	if older == "" || !isOf(t.agent, n, kindItem) || t.tx.Node(older) == nil || gjson.GetBytes(n.Payload, "supersedes").String() != older {
		return nil
	}
	return t.join(newer, older, graph.Contradicts, supersedes, evidenceOf(n, ""))
}

// teller is an item and what it says of a name.
type teller struct {
	item *graph.Node
	says mention
}

// entities makes the entities of the names that were touched what the items tell
// of them.
func (t *tying) entities() error {
	if len(t.keys) == 0 {
		return nil
	}
	tellers := t.tellers()
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		for _, kind := range named {
			if err := t.entity(kind, key, tellers[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellers returns the items that speak of the names that were touched, in the
// order of their handles.
func (t *tying) tellers() map[string][]teller {
	out := map[string][]teller{}
	for n := range t.tx.NodesOf(graph.Semantic) {
		if !isOf(t.agent, n, kindItem) {
			continue
		}
		for _, m := range mentionsIn(n) {
			if t.keys[m.Key] {
				out[m.Key] = append(out[m.Key], teller{n, m})
			}
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b teller) int { return cmp.Compare(numberOf(a.item), numberOf(b.item)) })
	}
	return out
}

// numberOf returns the n of an item's handle.
func numberOf(item *graph.Node) int {
	_, digits, _ := strings.Cut(gjson.GetBytes(item.Payload, "handle").String(), "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// entity makes what a name of a kind stands for, or removes it where no item
// says any more that the name is of that kind. All items with the name are
// joined to it, but for those that say that it is of another kind.
func (t *tying) entity(kind, key string, tellers []teller) error {
	id := entityID(kind, key)
	first := slices.IndexFunc(tellers, func(x teller) bool { return x.says.Kind == kind })
	if first < 0 {
		t.remove(id)
		return nil
	}
	item, says := tellers[first].item, tellers[first].says
	n, err := derived(t.agent, id, says.Name, kind, item.CreatedAt, entityPayload{Kind: kind, Name: says.Name, First: gjson.GetBytes(item.Payload, "handle").String()})
	if err != nil {
		return err
	}
	if err := t.put(n); err != nil {
		return err
	}
	return t.joinAll(id, kind, tellers)
}

// joinAll joins an entity to the items that speak of it, and to no other.
func (t *tying) joinAll(id, kind string, tellers []teller) error {
	wanted := map[string]bool{}
	for _, x := range tellers {
		if x.says.Kind != kind && x.says.Kind != "" {
			continue
		}
		role := ""
		if x.says.Said {
			role = "speaker"
		}
		if err := t.join(id, x.item.ID, graph.DerivedFrom, x.says.Name, evidenceOf(x.item, role)); err != nil {
			return err
		}
		wanted[x.item.ID] = true
		if decision := decisionID(x.item.ID); t.tx.Node(decision) != nil {
			if err := t.join(decision, id, graph.References, kind, nil); err != nil {
				return err
			}
		}
	}
	for _, e := range slices.Collect(t.tx.Out(id)) {
		if e.Type == graph.DerivedFrom && !wanted[e.Dst] && isOf(t.agent, t.tx.Node(e.Dst), kindItem) {
			t.tx.RemoveEdge(e.ID)
		}
	}
	return nil
}
