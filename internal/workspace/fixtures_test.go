package workspace

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fixture says how a workspace of testdata, or of a directory of more of them
// named by OPENCLAWSSY_WORKSPACE_FIXTURES, is laid out on disk.
type fixture struct {
	DefaultMTime time.Time            `json:"default_mtime"`
	MTimes       map[string]time.Time `json:"mtimes"`
	Symlinks     map[string]string    `json:"symlinks"`
}

type expected struct {
	Records     []View `json:"records"`
	RecordCount int    `json:"record_count"` // set where records are only some of them
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lay copies a fixture into a directory of the test, with its times and links.
func lay(t *testing.T, dir string) string {
	t.Helper()
	var f fixture
	readJSON(t, filepath.Join(dir, "fixture.json"), &f)
	to := t.TempDir()
	ws := filepath.Join(to, "workspace")
	if err := os.CopyFS(ws, os.DirFS(filepath.Join(dir, "workspace"))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "outside")); err == nil {
		if err := os.CopyFS(filepath.Join(to, "outside"), os.DirFS(filepath.Join(dir, "outside"))); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(ws, path)
		if err != nil {
			return err
		}
		at, own := f.MTimes[filepath.ToSlash(rel)]
		if !own {
			at = f.DefaultMTime
		}
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range f.Symlinks {
		link := filepath.Join(ws, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

func read(t *testing.T, dir string, o Options) []Record {
	t.Helper()
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	var out []Record
	for r, err := range w.Records(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func byID(views []View) map[string]View {
	out := map[string]View{}
	for _, v := range views {
		out[v.ID] = v
	}
	return out
}

func TestFixtures(t *testing.T) {
	dirs, err := filepath.Glob("testdata/fixtures/*/fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	if more := os.Getenv("OPENCLAWSSY_WORKSPACE_FIXTURES"); more != "" {
		others, err := filepath.Glob(filepath.Join(more, "*", "fixture.json"))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, others...)
	}
	if len(dirs) == 0 {
		t.Fatal("no fixtures")
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var want struct {
				Reference expected `json:"reference"`
			}
			readJSON(t, filepath.Join(dir, "expected.json"), &want)
			records := read(t, lay(t, dir), Options{})
			got := make([]View, len(records))
			for i, r := range records {
				got[i] = r.View()
			}
			known := byID(got)
			if len(known) != len(got) {
				t.Errorf("%d records have %d ids", len(got), len(known))
			}
			all := want.Reference.Records
			if n := want.Reference.RecordCount; n > 0 {
				if len(got) != n {
					t.Errorf("%d records, want %d", len(got), n)
				}
				got = slices.DeleteFunc(got, func(v View) bool { _, listed := byID(all)[v.ID]; return !listed })
			}
			if diff := cmp.Diff(byID(all), byID(got)); diff != "" {
				t.Errorf("records differ (-want +got):\n%s", diff)
			}
		})
	}
}
