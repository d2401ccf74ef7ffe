package graph

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// fixture is an open store with a clock of its own.
type fixture struct {
	*testing.T
	*Store
	now time.Time
	ids int
}

func openTest(t *testing.T, path string, edit func(*Options)) *fixture {
	t.Helper()
	f := &fixture{T: t, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	opts := Options{Now: func() time.Time { return f.now }, Log: zerolog.Nop(), NewID: func() string {
		f.ids++
		return fmt.Sprintf("%032x", f.ids)
	}}
	if edit != nil {
		edit(&opts)
	}
	s, err := Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	f.Store = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// journaled makes every change go to the journal once there is a file.
func journaled(o *Options) {
	o.Limits = defaultLimits
	o.Limits.JournalFrom = 1
}

func newTest(t *testing.T) *fixture { return openTest(t, filepath.Join(t.TempDir(), FileName), nil) }

func (f *fixture) add(rows ...string) {
	f.Helper()
	for _, row := range rows {
		err := f.Update(context.Background(), Write{}, func(tx *Tx) error { return addRow(tx, row) })
		if err != nil {
			f.Fatalf("%s: %v", row, err)
		}
	}
}

// addRow adds a node, or an edge if the row has a src.
func addRow(tx *Tx, row string) error {
	if strings.Contains(row, `"src"`) {
		e, err := ParseEdge([]byte(row))
		if err == nil {
			_, err = tx.AddEdge(e)
		}
		return err
	}
	n, err := ParseNode([]byte(row))
	if err == nil {
		_, err = tx.AddNode(n)
	}
	return err
}

func row(id string) string {
	return `{"id":"` + id + `","node_type":"semantic","agent_id":"a","label":"` + id + `","created_at":1772323200}`
}

func link(id, src, kind, dst string) string {
	return `{"id":"` + id + `","src":"` + src + `","dst":"` + dst + `","edge_type":"` + kind + `"}`
}

// dump shows a graph as one line.
func (f *fixture) dump() string {
	f.Helper()
	var out []string
	err := f.View(context.Background(), func(v *View) error {
		for n := range v.Nodes() {
			out = append(out, n.ID+":"+n.Label)
		}
		for e := range v.Edges() {
			out = append(out, e.Src+"-"+e.Type+"-"+e.Dst)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return strings.Join(out, " ")
}

func (f *fixture) want(dump string) {
	f.Helper()
	if got := f.dump(); got != dump {
		f.Errorf("the graph is\n%s, want\n%s", got, dump)
	}
}

func (f *fixture) file(suffix string) string {
	f.Helper()
	text, err := os.ReadFile(f.Path() + suffix)
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

func TestStoreKeepsOrderAndUnknownMembers(t *testing.T) {
	for name, edit := range map[string]func(*Options){"file": nil, "journal": journaled} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			text := `{"nodes":[{"id":"z","node_type":"semantic","agent_id":"a","created_at":1,"x":{"big":12345678901234567890}}],
				"edges":[{"id":"e","src":"z","dst":"ghost","edge_type":"knows","y":[1]}],"version":7}`
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := openTest(t, path, edit)
			f.add(row("b"), row("a"), link("l", "a", Knows, "b"))
			f.add(strings.Replace(row("b"), `"label":"b"`, `"label":"again"`, 1))
			f.want("z: b:again a:a z-knows-ghost a-knows-b")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			whole := f.file("")
			for _, part := range []string{`"x":{"big":12345678901234567890}`, `"y":[1]`, `"version":7`} {
				if !strings.Contains(whole, part) {
					t.Errorf("%s is not in\n%s", part, whole)
				}
			}
			openTest(t, path, edit).want("z: b:again a:a z-knows-ghost a-knows-b")
			left, err := filepath.Glob(path + "*")
			if err != nil || len(left) != 2 {
				t.Errorf("files left: %q, %v", left, err)
			}
		})
	}
}

func TestTwoStoresOnOneFile(t *testing.T) {
	for name, edit := range map[string]func(*Options){"file": nil, "journal": journaled} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			a, b := openTest(t, path, edit), openTest(t, path, edit)
			a.add(row("1"))
			b.add(row("2"))
			a.want("1:1 2:2")
			err := a.Update(context.Background(), Write{Hold: true}, func(tx *Tx) error { return addRow(tx, row("held")) })
			if err != nil {
				t.Fatal(err)
			}
			b.add(row("3"), link("e", "1", Knows, "3"))
			b.want("1:1 2:2 3:3 1-knows-3")
			if err := b.Fold(context.Background()); err != nil {
				t.Fatal(err)
			}
			b.add(row("4"))
			if err := a.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			for _, f := range []*fixture{a, b} {
				got := f.dump()
				for _, part := range []string{"1:1", "2:2", "3:3", "4:4", "held:held", "1-knows-3"} {
					if !strings.Contains(got, part) {
						t.Errorf("%s is not in %s", part, got)
					}
				}
			}
		})
	}
}
