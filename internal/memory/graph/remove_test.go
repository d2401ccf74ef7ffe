package graph

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model is what a graph should hold, in order.
type model struct{ nodes, edges []string }

func (m *model) put(list *[]string, id string) {
	if !slices.Contains(*list, id) {
		*list = append(*list, id)
	}
}

func (m *model) remove(id string) {
	m.nodes = slices.DeleteFunc(m.nodes, func(n string) bool { return n == id })
	m.edges = slices.DeleteFunc(m.edges, func(e string) bool { return e[:1] == id || e[1:] == id })
}

func (m *model) String() string {
	return strings.Join(m.nodes, " ") + " | " + strings.Join(m.edges, " ")
}

// held shows a store as its model is shown; an edge's id is its two ends.
func held(v *View) string {
	var m model
	for n := range v.Nodes() {
		m.nodes = append(m.nodes, n.ID)
	}
	for e := range v.Edges() {
		m.edges = append(m.edges, e.ID)
	}
	return m.String()
}

// TestRemovalsAgainstAModel changes a graph at random, several changes at a
// time, of which some fail as a whole, and opens it again now and then.
func TestRemovalsAgainstAModel(t *testing.T) {
	refused := errors.New("refused")
	for name, edit := range map[string]func(*Options){"file": nil, "journal": journaled} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				dir := t.TempDir()
				f := openTest(t, filepath.Join(dir, FileName), edit)
				var m model
				id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
				for range rapid.IntRange(1, 12).Draw(rt, "updates") {
					next := model{slices.Clone(m.nodes), slices.Clone(m.edges)}
					fails := rapid.IntRange(0, 3).Draw(rt, "fails") == 0
					err := f.Update(context.Background(), Write{}, func(tx *Tx) error {
						for range rapid.IntRange(1, 5).Draw(rt, "changes") {
							src, dst := id.Draw(rt, "src"), id.Draw(rt, "dst")
							edge := src + dst
							switch rapid.IntRange(0, 3).Draw(rt, "what") {
							case 0:
								if err := addRow(tx, row(src)); err != nil {
									return err
								}
								next.put(&next.nodes, src)
							case 1:
								if err := addRow(tx, link(edge, src, References, dst)); err != nil {
									return err
								}
								next.put(&next.edges, edge)
							case 2:
								if tx.RemoveNode(src) {
									next.remove(src)
								}
							case 3:
								if tx.RemoveEdge(edge) != slices.Contains(next.edges, edge) {
									rt.Errorf("removing %s reports the wrong thing", edge)
								}
								next.edges = slices.DeleteFunc(next.edges, func(e string) bool { return e == edge })
							}
						}
						if fails {
							return refused
						}
						return nil
					})
					switch {
					case fails && !errors.Is(err, refused), !fails && err != nil:
						rt.Fatalf("update: %v", err)
					case !fails:
						m = next
					}
					if rapid.IntRange(0, 3).Draw(rt, "reopen") == 0 {
						if err := f.Close(); err != nil {
							rt.Fatal(err)
						}
						f = openTest(t, filepath.Join(dir, FileName), edit)
					}
					if err := f.View(context.Background(), func(v *View) error {
						if got := held(v); got != m.String() {
							rt.Fatalf("the graph holds\n%s, want\n%s", got, m.String())
						}
						return nil
					}); err != nil {
						rt.Fatal(err)
					}
				}
			})
		})
	}
}

func TestRemovalIsNotHeldInMemory(t *testing.T) {
	f := openTest(t, filepath.Join(t.TempDir(), FileName), nil)
	f.add(row("a"))
	err := f.Update(context.Background(), Write{Hold: true}, func(tx *Tx) error { tx.RemoveNode("a"); return nil })
	if err == nil {
		t.Error("a removal was held in memory")
	}
	f.want("a:a")
}
