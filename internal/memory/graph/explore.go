package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// How much the operations return, if nothing else is asked for and at most.
const (
	defaultFound = 10
	maxFound     = 1000
	defaultNear  = 100
	maxDepth     = 6
)

// SearchInput is the input of graph.search.
type SearchInput struct {
	Query    string `json:"query,omitempty" jsonschema:"a part of the label, the tags or the payload, without case, empty for all; ranked: words in any script" cli:"arg"`
	Ranked   bool   `json:"ranked,omitempty" jsonschema:"true: nodes with any of the words, compared by their stems, the best first"`
	NodeType string `json:"node_type,omitempty" jsonschema:"only nodes of this type"`
	AgentID  string `json:"agent_id,omitempty" jsonschema:"only nodes of this agent, a label within this graph"`
	Limit    *int   `json:"limit,omitempty" jsonschema:"most nodes, 0 to 1000; 10 if absent"`
}

// Found is the answer of graph.search. Scores has one number for each of Results
// where they are ranked.
type Found struct {
	Results []NodeRow `json:"results"`
	Count   int       `json:"count"`
	Scores  []float64 `json:"scores,omitempty"`
}

// Search is View.Search, or Store.Ranked.
func (s *Service) Search(ctx context.Context, agent memory.AgentID, in SearchInput) (Found, error) {
	limit, err := bounded("limit", in.Limit, defaultFound, 0, maxFound)
	if err != nil {
		return Found{}, err
	}
	var nodes []*Node
	var scores []float64
	if in.Ranked {
		nodes, scores, err = s.ranked(ctx, agent, RankedQuery{in.Query, in.NodeType, in.AgentID, limit})
	} else {
		err = s.view(ctx, agent, func(v *View, _ Limits) error {
			nodes = v.Search(Search{in.Query, in.NodeType, in.AgentID, limit})
			return nil
		})
	}
	if err != nil {
		return Found{}, err
	}
	rows, err := NodeRows(nodes)
	return Found{rows, len(rows), scores}, err
}

// ranked returns nodes with their scores; none where there is no graph.
func (s *Service) ranked(ctx context.Context, agent memory.AgentID, q RankedQuery) (nodes []*Node, scores []float64, err error) {
	if strings.TrimSpace(q.Words) == "" {
		return nil, nil, &memory.FieldError{Field: "query", Reason: "must hold words for a ranked search"}
	}
	store, release, err := s.read(ctx, agent)
	switch {
	case errors.Is(err, memory.ErrNotFound):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	defer release()
	found, err := store.Ranked(ctx, q)
	for _, r := range found {
		nodes, scores = append(nodes, r.Node), append(scores, r.Score)
	}
	return nodes, scores, err
}

// Text shows one node a line: id, type, label, and the score.
func (f Found) Text() string {
	if f.Count == 0 {
		return "nothing found\n"
	}
	var b strings.Builder
	for i, n := range f.Results {
		b.WriteString(n.line())
		if i < len(f.Scores) {
			fmt.Fprintf(&b, "  (%.2f)", f.Scores[i])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// line shows a node on one line.
func (r NodeRow) line() string { return fmt.Sprintf("%s  %s  %s", r.ID, r.NodeType, oneLine(r.Label)) }

// NeighboursInput is the input of graph.neighbours.
type NeighboursInput struct {
	ID        string    `json:"id" jsonschema:"of the node" cli:"arg"`
	Depth     *int      `json:"depth,omitempty" jsonschema:"most edges away, 1 to 6; 1 if absent"`
	Direction Direction `json:"direction,omitempty" jsonschema:"edges to take: out (from src to dst), in, or both; both if absent"`
	EdgeTypes []string  `json:"edge_types,omitempty" jsonschema:"only edges of these types; all if absent"`
	Limit     *int      `json:"limit,omitempty" jsonschema:"most nodes, 1 to 1000; 100 if absent"`
}

// Around is the answer of graph.neighbours: see Neighbourhood.
type Around struct {
	ID        string      `json:"id"`
	Nodes     []Neighbour `json:"nodes"`
	Edges     []EdgeRow   `json:"edges"`
	Truncated bool        `json:"truncated"`
}

// Neighbour is a node and how many edges away it is.
type Neighbour struct {
	Depth int     `json:"depth"`
	Node  NodeRow `json:"node"`
}

// Neighbours is View.Neighbours.
func (s *Service) Neighbours(ctx context.Context, agent memory.AgentID, in NeighboursInput) (Around, error) {
	depth, err := bounded("depth", in.Depth, 1, 1, maxDepth)
	if err != nil {
		return Around{}, err
	}
	limit, err := bounded("limit", in.Limit, defaultNear, 1, maxFound)
	if err != nil {
		return Around{}, err
	}
	var found Neighbourhood
	err = s.view(ctx, agent, func(v *View, _ Limits) (err error) {
		found, err = v.Neighbours(in.ID, depth, limit, Walk{in.Direction, in.EdgeTypes})
		return err
	})
	if err != nil {
		return Around{}, err
	}
	out := Around{ID: in.ID, Nodes: make([]Neighbour, len(found.Nodes)), Truncated: found.Truncated}
	for i, near := range found.Nodes {
		out.Nodes[i].Depth = near.Depth
		if out.Nodes[i].Node, err = near.Node.Row(); err != nil {
			return Around{}, err
		}
	}
	out.Edges, err = EdgeRows(found.Edges)
	return out, err
}

// Text shows the nodes by their distance, then the edges.
func (a Around) Text() string {
	if len(a.Nodes) == 0 {
		return "no neighbours\n"
	}
	var b strings.Builder
	for _, n := range a.Nodes {
		fmt.Fprintf(&b, "%d  %s\n", n.Depth, n.Node.line())
	}
	b.WriteByte('\n')
	for _, e := range a.Edges {
		fmt.Fprintf(&b, "%s -%s-> %s\n", e.Src, e.EdgeType, e.Dst)
	}
	if a.Truncated {
		b.WriteString("\nthere are more; raise --limit to see them\n")
	}
	return b.String()
}

// PathInput is the input of graph.path.
type PathInput struct {
	From      string    `json:"from" jsonschema:"id of the node to start at"`
	To        string    `json:"to" jsonschema:"id of the node to come to"`
	Direction Direction `json:"direction,omitempty" jsonschema:"edges to take: out (from src to dst), in, or both; both if absent"`
	EdgeTypes []string  `json:"edge_types,omitempty" jsonschema:"only edges of these types; all if absent"`
}

// Way is the answer of graph.path: Length edges, and the nodes that they join, in
// order.
type Way struct {
	Found  bool      `json:"found"`
	Length int       `json:"length"`
	Nodes  []NodeRow `json:"nodes"`
	Edges  []EdgeRow `json:"edges"`
}

// Path is View.Path.
func (s *Service) Path(ctx context.Context, agent memory.AgentID, in PathInput) (Way, error) {
	var p Path
	err := s.view(ctx, agent, func(v *View, _ Limits) (err error) {
		p, err = v.Path(in.From, in.To, Walk{in.Direction, in.EdgeTypes})
		return err
	})
	if err != nil {
		return Way{}, err
	}
	out := Way{Found: len(p.Nodes) > 0, Length: len(p.Edges)}
	if out.Nodes, err = NodeRows(p.Nodes); err != nil {
		return Way{}, err
	}
	out.Edges, err = EdgeRows(p.Edges)
	return out, err
}

// Text shows the way, one node a line, with the edges between.
func (w Way) Text() string {
	if !w.Found {
		return "there is no way\n"
	}
	var b strings.Builder
	for i, n := range w.Nodes {
		if i > 0 {
			e := w.Edges[i-1]
			arrow := "│ %s\n▼\n"
			if e.Dst != n.ID {
				arrow = "▲\n│ %s\n"
			}
			fmt.Fprintf(&b, arrow, e.EdgeType)
		}
		b.WriteString(n.line() + "\n")
	}
	return b.String()
}

// ExportInput is the input of graph.export.
type ExportInput struct {
	Format string `json:"format,omitempty" jsonschema:"json, dot (Graphviz) or mermaid; json if absent"`
}

// Exported is the answer of graph.export: the graph in the contract's form, or a
// drawing of it. Where the limits cut it, it has the newest nodes.
type Exported struct {
	*ExportDocument
	Drawing string `json:"drawing,omitempty" jsonschema:"in DOT or Mermaid"`
}

// ExportDocument is a graph in the contract's form.
type ExportDocument struct {
	Nodes []Document `json:"nodes"`
	Edges []Document `json:"edges"`
	*Cut
}

// Document is a node or an edge in the contract's form, with the members that are
// not of the contract in their places.
type Document any

func documents[T any](list []T) []Document {
	out := make([]Document, len(list))
	for i, d := range list {
		out[i] = d
	}
	return out
}

// Export is View.Export, and draws it.
func (s *Service) Export(ctx context.Context, agent memory.AgentID, in ExportInput) (Exported, error) {
	if !slices.Contains([]string{"", "json", "dot", "mermaid"}, in.Format) {
		return Exported{}, &memory.FieldError{Field: "format", Reason: "must be json, dot or mermaid"}
	}
	var e Export
	err := s.view(ctx, agent, func(v *View, l Limits) error {
		e = v.Export(l)
		return nil
	})
	switch {
	case err != nil:
		return Exported{}, err
	case in.Format == "dot":
		return Exported{Drawing: DOT(e.Nodes, e.Edges)}, nil
	case in.Format == "mermaid":
		return Exported{Drawing: Mermaid(e.Nodes, e.Edges)}, nil
	}
	return Exported{ExportDocument: &ExportDocument{documents(e.Nodes), documents(e.Edges), e.Cut}}, nil
}

// Text is the drawing, or the graph as JSON, in which what a terminal must not
// see is escaped.
func (e Exported) Text() string {
	if e.ExportDocument == nil {
		return e.Drawing
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		return "the graph cannot be written as JSON: " + err.Error() + "\n"
	}
	return escapeInvisible(b.String())
}

// escapeInvisible writes characters without ink of a JSON text as escapes, so that whatever cleans it for a terminal changes nothing.
func escapeInvisible(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c == '\n' || !text.IsInvisible(c) {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// bounded returns what was given, within least to most, or otherwise.
func bounded(field string, given *int, otherwise, least, most int) (int, error) {
	if given == nil {
		return otherwise, nil
	}
	if *given < least || *given > most {
		return 0, &memory.FieldError{Field: field, Reason: fmt.Sprintf("must be between %d and %d", least, most)}
	}
	return *given, nil
}
