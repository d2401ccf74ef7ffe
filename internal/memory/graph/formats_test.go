package graph

import (
	"regexp"
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	nodes := []*Node{{ID: "a", Type: Semantic, Label: `Say "hi" \N`}, {ID: "b", Type: Procedural, Label: " "}, {ID: "c", Type: "new kind", Label: "x\ny\u202ez"}}
	edges := []*Edge{{Src: "a", Dst: "b", Type: Knows}, {Src: "b", Dst: "a", Type: Contradicts}, {Src: "a", Dst: "ghost", Type: Knows}}
	wantDOT := `digraph memory {
  rankdir=LR;
  node [fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=9];
  n0 [label="Say \"hi\" \\N", shape=hexagon, tooltip="a"];
  n1 [label="b", shape=box, tooltip="b"];
  n2 [label="x y z", shape=ellipse, tooltip="c"];
  n0 -> n1 [label="knows"];
  n1 -> n0 [label="contradicts", color=red, fontcolor=red, style=dashed, dir=both];
}
`
	if got := DOT(nodes, edges); got != wantDOT {
		t.Errorf("DOT is\n%s", got)
	}
	wantMermaid := `flowchart LR
  n0{{"Say #34;hi#34; #92;N"}}
  n1["b"]
  n2(["x y z"])
  n0 -->|"knows"| n1
  n1 <-.->|"contradicts"| n0
`
	if got := Mermaid(nodes, edges); got != wantMermaid {
		t.Errorf("Mermaid is\n%s", got)
	}
}

var (
	dotLine     = regexp.MustCompile(`^  n0 \[label="((?:[^"\\\n]|\\["\\])*)", shape=[a-z]+, tooltip="((?:[^"\\\n]|\\["\\])*)"\];$`)
	mermaidLine = regexp.MustCompile(`^  n0\(\["([^"<>` + "`" + `{}|;%&\\]|#\d+;)*"\]\)$`)
)

// Whatever a label is, a drawing has its one line, whose quotes end where they
// should.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{`"]; n9 [label="x`, `\`, `\"`, "\r\n\u2028", "end", "#quot;", `</b><script>`, "```", "陶芸", "\xff\xfe", "%%{init}%%", strings.Repeat("\\", 99)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		nodes := []*Node{{ID: s + "id", Type: Episodic, Label: s}}
		if line := strings.Split(DOT(nodes, nil), "\n")[4]; !dotLine.MatchString(line) {
			t.Errorf("DOT of %q: %q", s, line)
		}
		lines := strings.Split(Mermaid(nodes, nil), "\n")
		if len(lines) != 3 || !mermaidLine.MatchString(strings.ReplaceAll(lines[1], "#59;", "#0;")) {
			t.Errorf("Mermaid of %q: %q", s, lines)
		}
	})
}
