package graph

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// chain is a-knows-b-part_of-c-knows-d, with a shortcut d-contradicts-a and a
// node beside it.
func chain(t *testing.T) *fixture {
	f := newTest(t)
	f.add(row("a"), row("b"), row("c"), row("d"), row("alone"), link("1", "a", Knows, "b"), link("2", "b", PartOf, "c"), link("3", "c", Knows, "d"), link("4", "d", Contradicts, "a"), link("5", "a", Knows, "ghost"))
	return f
}

func (f *fixture) view(fn func(*View)) {
	f.Helper()
	if err := f.View(context.Background(), func(v *View) error { fn(v); return nil }); err != nil {
		f.Fatal(err)
	}
}

func TestNeighbours(t *testing.T) {
	f := chain(t)
	for name, tc := range map[string]struct {
		id           string
		depth, limit int
		walk         Walk
		want         string // nodes with depths, then edges
		err          memory.Kind
	}{
		"one step":      {"a", 1, 9, Walk{}, "b1 d1 | 1 4", ""},
		"two steps":     {"a", 2, 9, Walk{}, "b1 d1 c2 | 1 4 2 3", ""},
		"out":           {"a", 2, 9, Walk{Direction: Out}, "b1 c2 | 1 2", ""},
		"in":            {"a", 2, 9, Walk{Direction: In}, "d1 c2 | 4 3", ""},
		"one type":      {"a", 3, 9, Walk{EdgeTypes: []string{Knows}}, "b1 | 1", ""},
		"two types":     {"a", 3, 9, Walk{Direction: Out, EdgeTypes: []string{Knows, PartOf}}, "b1 c2 d3 | 1 2 3", ""},
		"limit":         {"a", 2, 1, Walk{}, "b1 | 1 …", ""},
		"alone":         {"alone", 3, 9, Walk{}, " | ", ""},
		"around":        {"a", 50, 9, Walk{}, "b1 d1 c2 | 1 4 2 3", ""},
		"unknown node":  {"x", 1, 9, Walk{}, "", memory.ErrNotFound},
		"no such end":   {"ghost", 1, 9, Walk{}, "", memory.ErrNotFound},
		"unknown type":  {"a", 1, 9, Walk{EdgeTypes: []string{"likes"}}, "", memory.ErrInvalid},
		"unknown way":   {"a", 1, 9, Walk{Direction: "up"}, "", memory.ErrInvalid},
		"no depth":      {"a", 0, 9, Walk{}, " | ", ""},
		"default is it": {"a", 1, 9, Walk{Direction: Both}, "b1 d1 | 1 4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f.view(func(v *View) {
				got, err := v.Neighbours(tc.id, tc.depth, tc.limit, tc.walk)
				if tc.err != "" {
					if !errors.Is(err, tc.err) {
						t.Fatalf("error %v, want %s", err, tc.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if s := shape(got); s != tc.want {
					t.Errorf("neighbours %q, want %q", s, tc.want)
				}
			})
		})
	}
}

func shape(n Neighbourhood) string {
	var nodes, edges []string
	for _, near := range n.Nodes {
		nodes = append(nodes, fmt.Sprint(near.Node.ID, near.Depth))
	}
	for _, e := range n.Edges {
		edges = append(edges, e.ID)
	}
	if n.Truncated {
		edges = append(edges, "…")
	}
	return strings.Join(nodes, " ") + " | " + strings.Join(edges, " ")
}

func TestPath(t *testing.T) {
	f := chain(t)
	for name, tc := range map[string]struct {
		from, to string
		walk     Walk
		want     string
		err      memory.Kind
	}{
		"both ways":    {"a", "d", Walk{}, "a 4 d", ""},
		"out":          {"a", "d", Walk{Direction: Out}, "a 1 b 2 c 3 d", ""},
		"in":           {"a", "c", Walk{Direction: In}, "a 4 d 3 c", ""},
		"types":        {"a", "d", Walk{EdgeTypes: []string{Knows, PartOf}}, "a 1 b 2 c 3 d", ""},
		"itself":       {"b", "b", Walk{}, "b", ""},
		"no way":       {"a", "alone", Walk{}, "", ""},
		"not this way": {"a", "c", Walk{EdgeTypes: []string{Knows}}, "", ""},
		"unknown":      {"a", "x", Walk{}, "", memory.ErrNotFound},
		"unknown type": {"a", "b", Walk{EdgeTypes: []string{"know"}}, "", memory.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			f.view(func(v *View) {
				got, err := v.Path(tc.from, tc.to, tc.walk)
				if memory.KindOf(err) != tc.err {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				var parts []string
				for i, n := range got.Nodes {
					parts = append(parts, n.ID)
					if i < len(got.Edges) {
						parts = append(parts, got.Edges[i].ID)
					}
				}
				if s := strings.Join(parts, " "); s != tc.want {
					t.Errorf("path %q, want %q", s, tc.want)
				}
			})
		})
	}
}

// Neighbours and Path agree with distances that are found by relaxing each edge
// until nothing changes.
func TestWalksAgreeWithDistances(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const n = 9
		st := newState()
		for i := range n {
			st.putNode(&Node{ID: fmt.Sprint(i), Type: Semantic})
		}
		for i := range rapid.IntRange(0, 16).Draw(rt, "edges") {
			end := func(name string) string { return fmt.Sprint(rapid.IntRange(0, n).Draw(rt, name)) } // n is no node
			st.putEdge(&Edge{ID: fmt.Sprint("e", i), Src: end("src"), Dst: end("dst"), Type: rapid.SampledFrom([]string{Knows, PartOf, Contradicts}).Draw(rt, "type")})
		}
		w := Walk{Direction: rapid.SampledFrom([]Direction{Both, Out, In}).Draw(rt, "direction"), EdgeTypes: rapid.SampledFrom([][]string{nil, {Knows}, {Knows, PartOf}}).Draw(rt, "types")}
		far := distances(st, n, w)
		v := &View{state: st}
		depth := rapid.IntRange(1, 4).Draw(rt, "depth")
		around, err := v.Neighbours("0", depth, 100, w)
		if err != nil {
			rt.Fatal(err)
		}
		reached := map[string]int{}
		for _, near := range around.Nodes {
			reached[near.Node.ID] = near.Depth
		}
		for i := 1; i < n; i++ {
			id := fmt.Sprint(i)
			d, near := reached[id]
			if want := far[i] <= depth; near != want || near && d != far[i] {
				rt.Fatalf("node %d is at %d, near %v, want distance %d", i, d, near, far[i])
			}
			p, err := v.Path("0", id, w)
			if err != nil {
				rt.Fatal(err)
			}
			if there := len(p.Nodes) > 0; there != (far[i] < unreachable) || there && len(p.Edges) != far[i] {
				rt.Fatalf("the path to %d has %d edges, want %d", i, len(p.Edges), far[i])
			}
			joined(rt, p, w)
		}
	})
}

const unreachable = 1 << 20

// distances are those of the nodes 0 to n-1 from 0.
func distances(st *state, n int, w Walk) []int {
	far := slices.Repeat([]int{unreachable}, n)
	far[0] = 0
	for range n {
		for e := range st.allEdges() {
			if st.node(e.Src) == nil || st.node(e.Dst) == nil || len(w.EdgeTypes) > 0 && !slices.Contains(w.EdgeTypes, e.Type) {
				continue
			}
			src, dst := int(e.Src[0]-'0'), int(e.Dst[0]-'0')
			if w.Direction != In {
				far[dst] = min(far[dst], far[src]+1)
			}
			if w.Direction != Out {
				far[src] = min(far[src], far[dst]+1)
			}
		}
	}
	return far
}

// joined checks that each edge of a path joins the nodes beside it.
func joined(rt *rapid.T, p Path, w Walk) {
	for i, e := range p.Edges {
		a, b := p.Nodes[i].ID, p.Nodes[i+1].ID
		forward, backward := e.Src == a && e.Dst == b, e.Src == b && e.Dst == a
		if !(forward && w.Direction != In || backward && w.Direction != Out) {
			rt.Fatalf("edge %+v does not lead from %s to %s", e, a, b)
		}
	}
}

// BenchmarkWalk explores 100,000 nodes with 300,000 edges: from usual nodes, and
// from the one with the most edges.
func BenchmarkWalk(b *testing.B) {
	s := benchStore(b)
	v := &View{state: s.state}
	random := rand.New(rand.NewPCG(5, 6))
	run := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := fn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	usual := func() string { return fmt.Sprint("n", random.IntN(benchNodes)) }
	run("neighbours/depth=2", func() error { _, err := v.Neighbours(usual(), 2, 1000, Walk{}); return err })
	run("neighbours/depth=2/out", func() error { _, err := v.Neighbours(usual(), 2, 1000, Walk{Direction: Out}); return err })
	run("neighbours/depth=2/hub", func() error { _, err := v.Neighbours("n0", 2, 1000, Walk{}); return err })
	run("path", func() error { _, err := v.Path(usual(), usual(), Walk{}); return err })
}
