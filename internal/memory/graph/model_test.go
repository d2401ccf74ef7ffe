package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"
)

// lists is a graph as plain lists.
type lists struct {
	nodes []listedNode
	edges []listedEdge
}

type listedNode struct {
	id, label string
	expires   int // second; 0 for never
}

type listedEdge struct{ id, src, kind, dst string }

func (m *lists) put(n listedNode) {
	i := slices.IndexFunc(m.nodes, func(o listedNode) bool { return o.id == n.id })
	if i < 0 {
		m.nodes = append(m.nodes, n)
	} else {
		m.nodes[i] = n
	}
}

func (m *lists) join(e listedEdge) {
	i := slices.IndexFunc(m.edges, func(o listedEdge) bool { return o.id == e.id })
	if i < 0 {
		m.edges = append(m.edges, e)
	} else {
		m.edges[i] = e
	}
}

func (m *lists) prune(second int) {
	for _, n := range slices.Clone(m.nodes) {
		if n.expires != 0 && second > n.expires {
			m.nodes = slices.DeleteFunc(m.nodes, func(o listedNode) bool { return o.id == n.id })
			m.edges = slices.DeleteFunc(m.edges, func(e listedEdge) bool { return e.src == n.id || e.dst == n.id })
		}
	}
}

func (m *lists) String() string {
	var out []string
	for _, n := range m.nodes {
		out = append(out, n.id+":"+n.label)
	}
	for _, e := range m.edges {
		out = append(out, e.id+":"+e.src+"-"+e.kind+"-"+e.dst)
	}
	return strings.Join(out, " ")
}

// TestStoreAgainstAdjacency does the same to a store, which two handles write
// in turns, and to lists.
func TestStoreAgainstAdjacency(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		second := 0
		limits := defaultLimits
		limits.JournalFrom = rapid.SampledFrom([]int64{1, 600, 1 << 20}).Draw(rt, "journal from")
		open := func() *Store {
			s, err := Open(context.Background(), filepath.Join(dir, FileName), Options{Limits: limits, Log: zerolog.Nop(),
				Now: func() time.Time { return time.Unix(int64(second), 0) }, NewID: func() string { return "" }})
			if err != nil {
				rt.Fatal(err)
			}
			return s
		}
		stores := []*Store{open(), open()}
		var m lists
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		update := func(rt *rapid.T, fn func(*Tx) error) bool {
			dry, fails := rapid.IntRange(0, 9).Draw(rt, "dry") == 0, rapid.IntRange(0, 9).Draw(rt, "fails") == 0
			refused := errors.New("refused")
			err := stores[rapid.IntRange(0, 1).Draw(rt, "store")].Update(context.Background(), Write{DryRun: dry}, func(tx *Tx) error {
				if err := fn(tx); err != nil {
					return err
				}
				if fails {
					return refused
				}
				return nil
			})
			if fails != errors.Is(err, refused) || !fails && err != nil {
				rt.Fatalf("Update = %v", err)
			}
			return !dry && !fails
		}
		rt.Repeat(map[string]func(*rapid.T){
			"node": func(rt *rapid.T) {
				n := listedNode{id: id.Draw(rt, "id"), label: rapid.SampledFrom([]string{"", "x", "y\n\"", "ż"}).Draw(rt, "label")}
				node := &Node{ID: n.id, Type: rapid.SampledFrom([]string{Semantic, Episodic}).Draw(rt, "type"), Label: n.label, CreatedAt: float64(second)}
				if life := rapid.IntRange(-3, 5).Draw(rt, "life"); life > 0 {
					ttl := float64(life)
					n.expires, node.TTL = second+life, &ttl
				}
				if update(rt, func(tx *Tx) error { _, err := tx.AddNode(node); return err }) {
					m.put(n)
				}
			},
			"edge": func(rt *rapid.T) {
				e := listedEdge{"e" + strconv.Itoa(rapid.IntRange(0, 7).Draw(rt, "edge")), id.Draw(rt, "src"), rapid.SampledFrom([]string{Knows, Follows}).Draw(rt, "kind"), id.Draw(rt, "dst")}
				done := update(rt, func(tx *Tx) error {
					_, err := tx.AddEdge(&Edge{ID: e.id, Src: e.src, Dst: e.dst, Type: e.kind})
					return err
				})
				if done {
					m.join(e)
				}
			},
			"time": func(rt *rapid.T) {
				second += rapid.IntRange(0, 3).Draw(rt, "seconds")
				m.prune(second)
			},
			"fold": func(rt *rapid.T) {
				if err := stores[rapid.IntRange(0, 1).Draw(rt, "store")].Fold(context.Background()); err != nil {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(rt, "store")
				if err := stores[i].Close(); err != nil {
					rt.Fatal(err)
				}
				stores[i] = open()
			},
			"": func(rt *rapid.T) {
				for i, s := range stores {
					checkState(rt, fmt.Sprint("store ", i), s, &m)
				}
			},
		})
		for _, s := range stores {
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// checkState compares a store and its indexes with lists.
func checkState(rt *rapid.T, name string, s *Store, m *lists) {
	err := s.View(context.Background(), func(v *View) error {
		got := lists{}
		for n := range v.Nodes() {
			got.nodes = append(got.nodes, listedNode{id: n.ID, label: n.Label})
		}
		for e := range v.Edges() {
			got.edges = append(got.edges, listedEdge{e.ID, e.Src, e.Type, e.Dst})
		}
		if got.String() != m.String() {
			rt.Fatalf("%s has\n%s, want\n%s", name, got.String(), m)
		}
		out, in, kinds := map[string]int{}, map[string]int{}, 0
		for _, e := range got.edges {
			out[e.src]++
			in[e.dst]++
		}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if o, i := count1(v.Out(id)), count1(v.In(id)); o != out[id] || i != in[id] {
				rt.Fatalf("%s: node %s has %d edges out and %d in, want %d and %d", name, id, o, i, out[id], in[id])
			}
		}
		for _, kind := range []string{Semantic, Episodic} {
			for n := range v.NodesOf(kind) {
				if n.Type != kind || v.Node(n.ID) != n {
					rt.Fatalf("%s: %s is listed as %s", name, n.ID, kind)
				}
				kinds++
			}
		}
		if nodes, edges := v.Len(); nodes != len(got.nodes) || kinds != nodes || edges != len(got.edges) {
			rt.Fatalf("%s: Len = %d, %d; %d by type", name, nodes, edges, kinds)
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

func count1[T any](seq func(func(T) bool)) int {
	n := 0
	for range seq {
		n++
	}
	return n
}

// FuzzOpen opens any file with any journal: it never fails but for what the
// limits refuse, loses no byte, and what it wrote reads back the same.
func FuzzOpen(f *testing.F) {
	f.Add(`{"nodes":[{"id":"a","node_type":"semantic","agent_id":"x","created_at":1}],"edges":[]}`, "")
	f.Add(`{"nodes":[{"id":"a"},7,null],"edges":{"no":1},"more":[NaN,-Infinity]}`, "00000000 {}\n")
	f.Add("[1,2]", `c9f4b3f1 {"drop":["a"],"nodes":[],"edges":[]}`)
	f.Add(`{"nodes":[{"id":"\ud800","node_type":"","agent_id":"","created_at":"1e400","ttl":true,"tags":"x","payload":[]}]}`, "x\n\ny")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, base, journal string) {
		path := filepath.Join(t.TempDir(), FileName)
		for name, text := range map[string]string{path: base, path + JournalSuffix: journal} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a := openTest(t, path, nil)
		a.add(row("new"))
		before := a.dump()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		b := openTest(t, path, nil)
		b.want(before)
		if _, damage := readable(base); damage == nil {
			return
		}
		aside, err := b.SetAside()
		if err != nil {
			t.Fatal(err)
		}
		kept := map[string]bool{}
		for _, name := range aside {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			kept[string(text)] = true
		}
		if !kept[base] {
			t.Errorf("the damaged file is not among %q", slices.Collect(maps.Keys(kept)))
		}
	})
}
