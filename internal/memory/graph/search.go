package graph

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Search asks for nodes by a part of their text. Empty filters match all.
type Search struct {
	Query   string // compared without case
	Type    string
	AgentID string
	Limit   int // the most nodes; 0 finds none
}

// Search returns the nodes whose label, tags, or names and values in the payload
// contain the query, in the order in which they were added.
func (v *View) Search(q Search) []*Node {
	found := []*Node{}
	nodes := v.Nodes()
	if q.Type != "" {
		nodes = v.NodesOf(q.Type)
	}
	want := strings.ToLower(q.Query)
	for n := range nodes {
		if len(found) >= q.Limit {
			break
		}
		if (q.AgentID == "" || n.AgentID == q.AgentID) && n.contains(want) {
			found = append(found, n)
		}
	}
	return found
}

// contains reports whether a text in lower case is part of what the node says.
func (n *Node) contains(want string) bool {
	return want == "" || strings.Contains(strings.ToLower(n.Label), want) ||
		strings.Contains(strings.ToLower(strings.Join(n.Tags, " ")), want) ||
		n.Payload != nil && valueContains(gjson.ParseBytes(n.Payload), want)
}

func valueContains(v gjson.Result, want string) bool {
	if !v.IsObject() && !v.IsArray() {
		return strings.Contains(strings.ToLower(scalar(v)), want)
	}
	found := false
	v.ForEach(func(key, item gjson.Result) bool {
		found = key.Type == gjson.String && strings.Contains(strings.ToLower(key.Str), want) || valueContains(item, want)
		return !found
	})
	return found
}

// scalar returns the text of a string, or what else stands in the JSON.
func scalar(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}

// Export is a graph as one value: its live nodes, and the edges between them.
// Where the limits cut it, it has the newest nodes, the newest first, and says
// so.
type Export struct {
	Nodes []*Node `json:"nodes"`
	Edges []*Edge `json:"edges"`
	*Cut
}

// Cut tells what an export had to leave out.
type Cut struct {
	Truncated     bool `json:"export_truncated"`
	TotalNodes    int  `json:"export_total_nodes"`
	TotalEdges    int  `json:"export_total_edges"` // all that are stored, whatever their ends
	ReturnedNodes int  `json:"export_returned_nodes"`
	ReturnedEdges int  `json:"export_returned_edges"`
}

// Export returns the graph within the limits.
func (v *View) Export(l Limits) Export {
	all, allEdges := v.Len()
	e := Export{Nodes: slices.AppendSeq(make([]*Node, 0, all), v.Nodes()), Edges: []*Edge{}}
	cut := !fits(all, l.ExportNodes)
	if cut {
		slices.SortStableFunc(e.Nodes, func(a, b *Node) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
		e.Nodes = e.Nodes[:l.ExportNodes]
	}
	shown := make(map[string]bool, len(e.Nodes))
	for _, n := range e.Nodes {
		shown[n.ID] = true
	}
	for edge := range v.Edges() {
		if !shown[edge.Src] || !shown[edge.Dst] {
			continue
		}
		if !fits(len(e.Edges)+1, l.ExportEdges) {
			cut = true
			break
		}
		e.Edges = append(e.Edges, edge)
	}
	if cut {
		e.Cut = &Cut{true, all, allEdges, len(e.Nodes), len(e.Edges)}
	}
	return e
}

// encodeValue writes a value of Go as JSON without escapes for HTML.
func encodeValue(v any) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}
