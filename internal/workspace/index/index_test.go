package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
)

func TestSyncIndexesMemoryOnly(t *testing.T) {
	r := newRig(t, harbour)
	report := r.sync(Change{})
	if report.Indexed != 4 || report.Chunks != 4 || report.Rebuilt == "" || report.Provider != "none" || report.Model != "fts-only" || report.Failed() {
		t.Errorf("first: %+v", report)
	}
	want := []string{"MEMORY.md memory", "memory/2026-01-21.md memory", "memory/2026-02-19.md memory", "memory/a/berths.md memory"}
	if got := rowsOf(t, r.x, "SELECT path || ' ' || source FROM files ORDER BY path"); !slices.Equal(got, want) {
		t.Errorf("files: %q", got)
	}
	if report := r.sync(Change{}); report.Unchanged != 4 || report.Indexed != 0 || report.Rebuilt != "" {
		t.Errorf("second: %+v", report)
	}
	// The id of a chunk, its hash and the file's are OpenClaw's.
	text := harbour["memory/a/berths.md"]
	c := chunk.Split(text, chunk.Default)[0]
	id := hashText(fmt.Sprintf("memory:memory/a/berths.md:1:3:%s:fts-only", hashText(c.Text)))
	row := rowsOf(t, r.x, "SELECT id, hash, start_line, end_line, embedding, updated_at FROM chunks WHERE path = 'memory/a/berths.md'")
	if want := fmt.Sprintf("%s %s 1 3 [] 1771588800000", id, c.Hash()); len(row) != 1 || row[0] != want {
		t.Errorf("row  %q\nwant %q", row, want)
	}
	if got := rowsOf(t, r.x, "SELECT hash FROM files WHERE path = 'memory/a/berths.md'"); got[0] != hashText(text) {
		t.Errorf("hash of the file: %q", got)
	}
}

func TestSyncFollowsChanges(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	r.write(map[string]string{"MEMORY.md": "The crane is gone.\n", "memory/new.md": "A lighthouse.\n"})
	r.remove("memory/2026-01-21.md")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(r.dir, "memory/2026-02-19.md"), at, at); err != nil {
		t.Fatal(err)
	}
	report := r.sync(Change{})
	if report.Indexed != 2 || report.Unchanged != 2 || report.Removed != 1 || report.Rebuilt != "" {
		t.Errorf("report: %+v", report)
	}
	if got := rowsOf(t, r.x, "SELECT mtime FROM files WHERE path = 'memory/2026-02-19.md'"); got[0] != fmt.Sprint(at.UnixMilli()) {
		t.Errorf("time of a touched file: %q", got)
	}
	for query, want := range map[string]string{"pilot": "", "crane": "MEMORY.md", "lighthouse": "memory/new.md", "captain": ""} {
		if got := r.search(Query{Query: query}).paths(); got != want {
			t.Errorf("%s is in %q, want %q", query, got, want)
		}
	}
}

func TestSearchSeesChangesByItself(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	r.write(map[string]string{"memory/late.md": "A lighthouse.\n"})
	if got := r.search(Query{Query: "lighthouse", AsIs: true}).paths(); got != "" {
		t.Errorf("the index as it was has %q", got)
	}
	if got := r.search(Query{Query: "lighthouse"}).paths(); got != "memory/late.md" {
		t.Errorf("found %q", got)
	}
}

func TestSkippedFiles(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	outside := filepath.Join(r.dir, "..", "outside.md")
	if err := os.WriteFile(outside, []byte("The ferry is secret.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory.md", "memory/link.md"} {
		if err := os.Symlink(outside, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(r.dir, "memory", "loop")); err != nil {
		t.Fatal(err)
	}
	r.write(map[string]string{"memory/2026-02-19.md": "ferry \xff\xfe"})
	report := r.sync(Change{})
	var skipped []string
	for _, n := range report.Skipped {
		skipped = append(skipped, n.String())
	}
	slices.Sort(skipped)
	want := []string{"memory.md left out: it is a link", "memory/2026-02-19.md left out: it is not UTF-8", "memory/link.md left out: it is a link"}
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %q", skipped)
	}
	// What was indexed of a file that cannot be read stays.
	if got := r.search(Query{Query: "ferry nine"}).paths(); got != "memory/2026-02-19.md" {
		t.Errorf("found %q", got)
	}
	if got := rowsOf(t, r.x, "SELECT path FROM chunks WHERE text LIKE '%secret%'"); got != nil {
		t.Errorf("a link was followed: %q", got)
	}
}

func TestMemoryItselfALink(t *testing.T) {
	r := newRig(t, map[string]string{"real/x.md": "ferry"})
	if err := os.Symlink("real", filepath.Join(r.dir, "memory")); err != nil {
		t.Fatal(err)
	}
	if report := r.sync(Change{}); report.Chunks != 0 || len(report.Skipped) != 1 || report.Skipped[0].File != "memory" {
		t.Errorf("report: %+v", report)
	}
}

func TestExtraPaths(t *testing.T) {
	r := newRig(t, harbour)
	r.write(map[string]string{"docs/plan.md": "The tug.\n", "docs/deep/x.md": "The tug again.\n", "other/y.md": "tug\n"})
	extra := []string{"./docs/", `docs\plan.md`, " "}
	if report := r.sync(Change{Extra: &extra}); report.Indexed != 6 {
		t.Errorf("report: %+v", report)
	}
	if got := r.sync(Change{}); got.Unchanged != 6 {
		t.Errorf("they are kept: %+v", got)
	}
	extra = []string{"SOUL.md"}
	if report := r.sync(Change{Extra: &extra}); report.Indexed != 1 || report.Removed != 2 || report.Rebuilt != "" {
		t.Errorf("other ones: %+v", report)
	}
	for _, bad := range []string{"/etc", "../x", "docs/../../x", "C:x"} {
		extra = []string{bad}
		if _, err := r.x.Sync(t.Context(), r.w, Change{Extra: &extra}); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWhatBuildsAnew(t *testing.T) {
	tokens, overlap, variant, yes := 100, 7, chunk.Bounded, true
	for name, tc := range map[string]struct {
		change Change
		embed  Embedder
		want   string
	}{
		"nothing":  {Change{}, nil, ""},
		"tokens":   {Change{Tokens: &tokens}, nil, "the chunking changed"},
		"overlap":  {Change{Overlap: &overlap}, nil, "the chunking changed"},
		"variant":  {Change{Chunking: &variant}, nil, "the chunking changed"},
		"sources":  {Change{Sessions: &yes}, nil, "the sources changed"},
		"model":    {Change{}, &bag{model: "m"}, "the model changed from none/fts-only to test/m"},
		"by order": {Change{Force: true}, nil, "it was asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harbour)
			r.sync(Change{})
			r.x = r.index(tc.embed)
			r.x.o.Sessions = func() (string, error) { return filepath.Join(r.dir, "none"), nil }
			if report := r.sync(tc.change); report.Rebuilt != tc.want {
				t.Errorf("built anew because %q, want %q", report.Rebuilt, tc.want)
			}
			if report := r.sync(Change{}); report.Rebuilt != "" || report.Unchanged != 4 {
				t.Errorf("again: %+v", report)
			}
			if got := r.search(Query{Query: "captain"}).paths(); got == "" {
				t.Error("nothing is found any more")
			}
			entries, err := os.ReadDir(filepath.Dir(r.x.Path()))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if strings.Contains(e.Name(), ".tmp-") || strings.Contains(e.Name(), ".old") {
					t.Errorf("%s was left", e.Name())
				}
			}
		})
	}
}

// TestFailedSwapBringsTheOldIndexBack lets each rename of a swap fail in turn.
func TestFailedSwapBringsTheOldIndexBack(t *testing.T) {
	for fail := 1; ; fail++ {
		r := newRig(t, harbour)
		r.sync(Change{})
		n := 0
		r.x.rename = func(from, to string) error {
			if n++; n == fail {
				return errors.New("the disk is gone")
			}
			return os.Rename(from, to)
		}
		_, err := r.x.Sync(t.Context(), r.w, Change{Force: true})
		if n < fail {
			if fail < 4 || err != nil {
				t.Fatalf("a swap has %d renames; %v", n, err)
			}
			return
		}
		if !errors.Is(err, memory.ErrUnavailable) {
			t.Fatalf("rename %d failed, and Sync said %v", fail, err)
		}
		r.x.rename = os.Rename
		if got := r.search(Query{Query: "pilot", AsIs: true}).paths(); got != "MEMORY.md" {
			t.Fatalf("after rename %d failed, the old index finds %q", fail, got)
		}
	}
}

// TestInterruptedSwap is a process that died between the renames.
func TestInterruptedSwap(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	if err := os.Rename(r.x.path, r.x.replaced()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.x.building("dead"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if report := r.sync(Change{}); report.Rebuilt != "" || report.Unchanged != 4 {
		t.Errorf("report: %+v", report)
	}
	if _, err := os.Stat(r.x.building("dead")); err == nil {
		t.Error("an unfinished index was left")
	}
}

func TestFailedBuildLeavesTheOldIndex(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.x.Sync(ctx, r.w, Change{Force: true}); err == nil {
		t.Fatal("a cancelled build went well")
	}
	if got := r.search(Query{Query: "pilot", AsIs: true}).paths(); got != "MEMORY.md" {
		t.Errorf("the old index finds %q", got)
	}
}

func TestDamagedIndexIsBuiltAnew(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	if err := os.WriteFile(r.x.path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if report := r.sync(Change{}); report.Rebuilt == "" || report.Chunks != 4 {
		t.Errorf("report: %+v", report)
	}
}

func TestSecretsAreNotIndexed(t *testing.T) {
	r := newRig(t, map[string]string{"MEMORY.md": "The lock's word is hunter2.\n"})
	e := &bag{model: "m"}
	r.x = r.index(e)
	r.sync(Change{})
	a := r.search(Query{Query: "word", MinScore: ptr(.1)})
	if len(a.Results) != 1 || a.Results[0].Snippet != "The lock's word is [REDACTED].\n" {
		t.Errorf("answer: %+v", a)
	}
	if strings.Contains(strings.Join(e.texts, " "), "hunter2") {
		t.Error("the secret was sent to the embedder")
	}
	for _, file := range []string{r.x.path, r.x.path + "-wal"} {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("the secret is in %s", filepath.Base(file))
		}
	}
	// The hash is of the chunk as the file has it, so that an edited secret is seen.
	if got := rowsOf(t, r.x, "SELECT hash FROM chunks"); got[0] != hashText("The lock's word is hunter2.\n") {
		t.Errorf("hash %q", got)
	}
}

// TestIncrementalEqualsFull compares an index that followed edits with one built
// at the end.
func TestIncrementalEqualsFull(t *testing.T) {
	names := []string{"MEMORY.md", "memory.md", "memory/a.md", "memory/b.md", "memory/c/d.md", "memory/x.txt", "docs/e.md"}
	all := "SELECT c.*, f.text, f.id, hex(v.embedding) FROM chunks AS c LEFT JOIN chunks_fts AS f ON f.rowid = c.rowid LEFT JOIN chunks_vec AS v ON v.id = c.id ORDER BY c.id"
	line := rapid.StringOf(rapid.SampledFrom([]rune("abc ä港🚀")))
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, nil)
		r.x = r.index(&bag{model: "m"})
		tokens, overlap := 8, 2
		r.sync(Change{Tokens: &tokens, Overlap: &overlap, Extra: &[]string{"docs"}})
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 4).Draw(rt, "edits") {
				name := rapid.SampledFrom(names).Draw(rt, "name")
				if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil && rapid.Bool().Draw(rt, "remove") {
					r.remove(name)
					continue
				}
				r.write(map[string]string{name: strings.Join(rapid.SliceOf(line).Draw(rt, "lines"), "\n")})
			}
			r.sync(Change{})
		}
		followed, files := rowsOf(t, r.x, all), rowsOf(t, r.x, "SELECT * FROM files ORDER BY path")
		r.sync(Change{Force: true})
		if built := rowsOf(t, r.x, all); !slices.Equal(followed, built) {
			rt.Fatalf("followed %q\nbuilt %q", followed, built)
		}
		if built := rowsOf(t, r.x, "SELECT * FROM files ORDER BY path"); !slices.Equal(files, built) {
			rt.Fatalf("followed %q\nbuilt %q", files, built)
		}
		for _, table := range []string{"chunks_fts", "chunks_vec"} {
			if n := rowsOf(t, r.x, "SELECT count(*) - (SELECT count(*) FROM chunks) FROM "+table); n[0] != "0" {
				rt.Fatalf("%s has %s rows more than chunks", table, n[0])
			}
		}
	})
}

func TestWorkspaceChangesHands(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	other, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := r.x.Search(t.Context(), other, Query{Query: "pilot", AsIs: true}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("the index answered for another workspace: %v", err)
	}
	a, err := r.x.Search(t.Context(), other, Query{Query: "pilot"})
	if err != nil || len(a.Results) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
