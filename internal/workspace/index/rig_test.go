package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bag embeds a text as its bag of words: 32 numbers, each the count of the words
// that hash to it.
type bag struct {
	model string
	texts []string // what was asked for
	err   error    // what it answers in place of vectors
	edit  func([][]float32) [][]float32
}

func (b *bag) ModelID() string { return b.model }

func (b *bag) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.texts = append(b.texts, texts...)
	var out [][]float32
	for _, t := range texts {
		v := make([]float32, 32)
		for _, w := range strings.Fields(strings.ToLower(t)) {
			h := fnv.New32()
			if _, err := h.Write([]byte(strings.Trim(w, ".,#"))); err != nil {
				return nil, err
			}
			v[h.Sum32()%32]++
		}
		out = append(out, v)
	}
	if b.edit != nil {
		out = b.edit(out)
	}
	return out, ctx.Err()
}

// mask takes one word out of texts.
type mask struct{}

func (mask) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") }

// rig is a workspace with an index.
type rig struct {
	t   testing.TB
	dir string
	w   *workspace.Workspace
	x   *Index
}

func newRig(t testing.TB, files map[string]string) *rig {
	t.Helper()
	r := &rig{t: t, dir: filepath.Join(t.TempDir(), "ws")}
	r.write(files)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.w, err = workspace.Open(r.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.w.Close(); err != nil {
			t.Error(err)
		}
	})
	r.x = r.index(nil)
	return r
}

// index returns the rig's index with an embedder.
func (r *rig) index(e Embedder) *Index {
	n := 0
	return New(filepath.Join(r.dir, "..", "home", FileName), Options{
		Now:   now,
		NewID: func() string { n++; return fmt.Sprint(n) }, Redact: mask{}, Embedder: e, Endpoint: Endpoint{Provider: "test"},
	})
}

func (r *rig) write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) sync(c Change) Report {
	r.t.Helper()
	report, err := r.x.Sync(r.t.Context(), r.w, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func (r *rig) search(q Query) Answer {
	r.t.Helper()
	a, err := r.x.Search(r.t.Context(), r.w, q)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// paths lists the results' files.
func (a Answer) paths() string {
	var out []string
	for _, r := range a.Results {
		out = append(out, r.Path)
	}
	return strings.Join(out, " ")
}

// rowsOf returns the rows of a statement, each as text.
func rowsOf(t testing.TB, x *Index, query string, args ...any) []string {
	t.Helper()
	var out []string
	err := x.with(t.Context(), func(db *sqlite.DB) error {
		return db.View(t.Context(), func(tx *sql.Tx) (err error) {
			found, err := tx.Query(query, args...)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, found.Close()) }()
			columns, err := found.Columns()
			if err != nil {
				return err
			}
			for found.Next() {
				values, at := make([]any, len(columns)), make([]any, len(columns))
				for i := range values {
					at[i] = &values[i]
				}
				if err := found.Scan(at...); err != nil {
					return err
				}
				out = append(out, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
			}
			return found.Err()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var harbour = map[string]string{
	"MEMORY.md":            "# Harbour\n\nThe pilot boards at the outer buoy.\nThe crane contract was renewed.\n",
	"memory/2026-02-19.md": "## Morning\n\nFog on the quay. The ferry left at nine.\n",
	"memory/2026-01-21.md": "## Evening\n\nThe ferry had a new captain.\n",
	"memory/a/berths.md":   "- berth 4: draught 9 m\n- berth 5: draught 12 m\n",
	"SOUL.md":              "The ferry is nobody's soul.\n",
	"memory/notes.txt":     "ferry",
}

func now() time.Time { return time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC) }
