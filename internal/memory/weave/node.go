package weave

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Tag is on every node that follows from items.
const Tag = "from_memory"

// rules counts the changes of how nodes are made of items: a graph that was made
// by others is made again.
const rules = 1

// The kinds of node, as the payload's "kind" says, besides those of distill.
const (
	kindItem     = "item"
	kindDecision = "decision"
	kindCursor   = "cursor"
)

// named are the kinds that a name can have.
var named = []string{distill.Person, distill.Place, distill.Project, distill.Tool}

// itemPayload is the payload of an item's node.
type itemPayload struct {
	Kind       string     `json:"kind"` // kindItem
	Handle     string     `json:"handle"`
	ItemKind   string     `json:"item_kind"`
	Title      string     `json:"title"`
	Content    string     `json:"content"`
	Status     string     `json:"status"`
	Importance int        `json:"importance"`
	Confidence float64    `json:"confidence"`
	Trust      string     `json:"trust"`
	Version    int        `json:"version"`
	Supersedes string     `json:"supersedes,omitempty"` // id
	ValidFrom  string     `json:"valid_from,omitempty"`
	ValidTo    string     `json:"valid_to,omitempty"`
	Mentions   []mention  `json:"mentions"`
	Provenance provenance `json:"provenance"`
}

// mention is a name in an item. Key is the same however the name is written.
type mention struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"` // one of named; "" where the item does not tell
	Said bool   `json:"said,omitempty"` // by this person
}

// provenance says where an item comes from.
type provenance struct {
	ItemID     string   `json:"item_id"`
	EventIDs   []string `json:"event_ids"`
	SourceIDs  []string `json:"source_ids,omitempty"`
	Checkpoint string   `json:"checkpoint,omitempty"`
}

// entityPayload is the payload of the node of a person, place, project or tool,
// or of a decision.
type entityPayload struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	First string `json:"first"` // handle of the first item that tells of it
}

// cursorPayload is the payload of the node that says how far the graph has
// followed.
type cursorPayload struct {
	Kind  string       `json:"kind"` // kindCursor
	Rules int          `json:"rules"`
	Mark  working.Mark `json:"mark"`
}

// isKept reports whether an item has a node: it was accepted, and has text.
func isKept(it memory.Item) bool {
	switch it.Status {
	case memory.Active, memory.Superseded, memory.Archived:
		return true
	}
	return false
}

// itemNode makes the node of an item. speakers are those of its evidence.
func itemNode(agent memory.AgentID, it working.Sourced, speakers []string) (*graph.Node, error) {
	p := itemPayload{
		Kind: kindItem, Handle: it.Handle, ItemKind: it.Kind, Title: it.Title, Content: it.Content, Status: string(it.Status),
		Importance: it.Importance, Confidence: it.Confidence, Trust: string(it.Trust), Version: it.Version, Supersedes: it.Supersedes,
		ValidFrom: written(it.ValidFrom), ValidTo: written(it.ValidTo), Mentions: mentionsOf(it.Item, speakers),
		Provenance: provenance{ItemID: it.ID, EventIDs: []string{}, Checkpoint: it.Checkpoint},
	}
	for _, ev := range it.Evidence {
		p.Provenance.EventIDs = append(p.Provenance.EventIDs, ev.EventID)
		if ev.SourceID != "" {
			p.Provenance.SourceIDs = append(p.Provenance.SourceIDs, ev.SourceID)
		}
	}
	return derived(agent, it.ID, it.Title, kindItem, seconds(it.CreatedAt), p)
}

// derived makes a node that follows from items.
func derived(agent memory.AgentID, id, label, kind string, created float64, payload any) (*graph.Node, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInternal, "node %s: %w", id, err)
	}
	return &graph.Node{ID: id, Type: graph.Semantic, AgentID: string(agent), Label: label, Payload: raw, Tags: []string{Tag, kind}, CreatedAt: created}, nil
}

// isDerived reports whether a node follows from this agent's items.
func isDerived(agent memory.AgentID, n *graph.Node) bool {
	return n != nil && n.AgentID == string(agent) && len(n.Tags) > 1 && n.Tags[0] == Tag
}

func isOf(agent memory.AgentID, n *graph.Node, kind string) bool {
	return isDerived(agent, n) && n.Tags[1] == kind
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func written(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// roles are speakers that are no people of their own.
var roles = []string{"user", "assistant", "tool", "system", "agent", "web", "import"}

// mentionsOf returns the names in an item and those of who said it.
func mentionsOf(it memory.Item, speakers []string) []mention {
	out := []mention{}
	for _, m := range distill.Mentions(it) {
		out = add(out, mention{Key: keyOf(m.Name), Name: m.Name, Kind: m.Kind})
	}
	for _, name := range speakers {
		if !slices.Contains(roles, strings.ToLower(name)) {
			out = add(out, mention{Key: keyOf(name), Name: name, Kind: distill.Person, Said: true})
		}
	}
	return out
}

// add adds a mention, or joins it with one of the same thing.
func add(all []mention, m mention) []mention {
	if m.Key == "" {
		return all
	}
	for i, o := range all {
		if o.Key == m.Key && (o.Kind == m.Kind || o.Kind == "") {
			all[i].Kind, all[i].Said = m.Kind, o.Said || m.Said
			return all
		}
	}
	return append(all, m)
}

// keyOf returns what a name has in common with all ways to write it.
func keyOf(name string) string { return strings.Join(text.Words(name), " ") }

// mentionsIn reads the mentions of an item's node.
func mentionsIn(n *graph.Node) []mention {
	var out []mention
	gjson.GetBytes(n.Payload, "mentions").ForEach(func(_, v gjson.Result) bool {
		m := mention{Key: v.Get("key").String(), Name: v.Get("name").String(), Kind: v.Get("kind").String(), Said: v.Get("said").Bool()}
		if m.Key != "" {
			out = append(out, m)
		}
		return true
	})
	return out
}

// entityID is the id of what a name of a kind stands for.
func entityID(kind, key string) string { return hashed(kind, kind, key) }

// decisionID is the id of the decision that an item tells of.
func decisionID(item string) string { return hashed(kindDecision, item) }

func cursorID(agent memory.AgentID) string { return "memory_of_" + string(agent) }

func hashed(prefix string, parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return prefix + "_" + hex.EncodeToString(sum[:16])
}
