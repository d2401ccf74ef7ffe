package graph

import (
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// maxShown is how many characters of a label a drawing shows.
const maxShown = 60

// DOT writes a graph in the language of Graphviz: nodes in the shape of their
// type, contradictions red and dashed. Edges to nodes that are not given are left
// out.
func DOT(nodes []*Node, edges []*Edge) string {
	var b strings.Builder
	b.WriteString("digraph memory {\n  rankdir=LR;\n  node [fontname=\"Helvetica\", fontsize=11];\n  edge [fontname=\"Helvetica\", fontsize=9];\n")
	number := numbered(nodes)
	for i, n := range nodes {
		fmt.Fprintf(&b, "  n%d [label=%s, shape=%s, tooltip=%s];\n", i, dotText(shown(n)), dotShape(n.Type), dotText(n.ID))
	}
	for _, e := range edges {
		src, dst, drawn := ends(number, e)
		if !drawn {
			continue
		}
		style := ""
		if e.Type == Contradicts {
			style = ", color=red, fontcolor=red, style=dashed, dir=both"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s];\n", src, dst, dotText(e.Type), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotShape(kind string) string {
	switch kind {
	case Semantic:
		return "hexagon"
	case Procedural:
		return "box"
	case Persona:
		return "diamond"
	case Patch:
		return "triangle"
	}
	return "ellipse"
}

// dotText quotes a text for DOT. The backslash starts escapes of labels, such as
// \N for the node's name, so it is doubled.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneLine(s)) + `"`
}

// Mermaid writes a graph as a flowchart of Mermaid, for Markdown: nodes in the
// shape of their type, contradictions dotted. Edges to nodes that are not given
// are left out.
func Mermaid(nodes []*Node, edges []*Edge) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	number := numbered(nodes)
	for i, n := range nodes {
		left, right := mermaidShape(n.Type)
		fmt.Fprintf(&b, "  n%d%s%s%s\n", i, left, mermaidText(shown(n)), right)
	}
	for _, e := range edges {
		src, dst, drawn := ends(number, e)
		if !drawn {
			continue
		}
		arrow := "-->"
		if e.Type == Contradicts {
			arrow = "<-.->"
		}
		fmt.Fprintf(&b, "  n%d %s|%s| n%d\n", src, arrow, mermaidText(e.Type), dst)
	}
	return b.String()
}

func mermaidShape(kind string) (left, right string) {
	switch kind {
	case Semantic:
		return "{{", "}}"
	case Procedural:
		return "[", "]"
	case Persona:
		return "{", "}"
	case Patch:
		return "[/", "\\]"
	}
	return "([", "])"
}

// mermaidText quotes a text for Mermaid, which knows no backslash: what could end
// the quotes, open markup or Markdown, or start an entity or a directive is
// written as an entity.
func mermaidText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range oneLine(s) {
		if strings.ContainsRune("\"#&<>`\\;%{}|", c) {
			fmt.Fprintf(&b, "#%d;", c)
			continue
		}
		b.WriteRune(c)
	}
	b.WriteByte('"')
	return b.String()
}

// numbered gives each node a number, which is its name in a drawing: ids may
// hold anything.
func numbered(nodes []*Node) map[string]int {
	number := make(map[string]int, len(nodes))
	for i, n := range nodes {
		number[n.ID] = i
	}
	return number
}

func ends(number map[string]int, e *Edge) (src, dst int, drawn bool) {
	src, there := number[e.Src]
	dst, also := number[e.Dst]
	return src, dst, there && also
}

// shown is a node's label, or its id, cut to what a drawing has room for.
func shown(n *Node) string {
	s := n.Label
	if strings.TrimSpace(s) == "" {
		s = n.ID
	}
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown-1]) + "…"
	}
	return s
}

// oneLine makes control and format characters (line breaks, changes of writing
// direction) spaces.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if text.IsInvisible(c) && !text.IsJoiner(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
