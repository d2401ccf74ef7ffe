package life

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

var testNow = time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC)

func now() time.Time { return testNow }

// tree makes a workspace of the given files, each an hour older than the one
// before it by name.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	fill(t, dir, files)
	return dir
}

func fill(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	at := testNow
	for _, name := range sortedPaths(files) {
		full := filepath.Join(dir, filepath.FromSlash(name))
		at = at.Add(-time.Hour)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// contents reads a tree back; the agent's id is left out.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == agentFile {
			return err
		}
		text, err := os.ReadFile(path)
		rel, relErr := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(text)
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func export(t testing.TB, dir string, keep Keep, edit ...func(*ExportOptions)) (string, Exported) {
	t.Helper()
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o := ExportOptions{Output: filepath.Join(t.TempDir(), "out.alf"), Keep: keep, Now: now}
	for _, e := range edit {
		e(&o)
	}
	x, err := ExportWorkspace(context.Background(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := alf.Validate(o.Output, alf.DefaultLimits); err != nil || !rep.Valid {
		t.Fatalf("the export: %v %s", err, rep.Text())
	}
	return o.Output, x
}

func bringIn(t testing.TB, archive, dir string, keep Keep, mode Mode) Imported {
	t.Helper()
	done, err := ImportWorkspace(context.Background(), archive, dir, ImportOptions{Mode: mode, Keep: keep, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func open(t testing.TB, archive string) *alf.Reader {
	t.Helper()
	r, err := alf.Open(archive, alf.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func compare(t testing.TB, old, new string) *alf.Difference {
	t.Helper()
	d, err := alf.Compare(open(t, old), open(t, new))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bytesOf(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRoundTrip exports random workspaces, imports them into an empty directory
// and exports again: the archives are the same to the byte.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SampledFrom([]string{"", " \n", "# Ada\n", "## A\n\n- [decision|i=0.9] tea #green\n\n## B\r\n", "no end", "\ufeff## X\n", "```\n## fence\n```\n\n## A\n## A", "caf\xff", "## T\n\n\n", "- [x|i=9] high"})
		files := map[string]string{}
		for _, name := range []string{"SOUL.md", "IDENTITY.md", "AGENTS.md", "USER.md", "TOOLS.md", "MEMORY.md", "memory/2026-01-15.md", "memory/active-context.md", "memory/gating-policies.md",
			"memory/sub/a b.md", "memory/プロジェクト.md", "memory/table.csv", "notes/own.md", "skills/tool.sh", "big.bin"} {
			if rapid.Bool().Draw(rt, name) {
				files[name] = texts.Draw(rt, name+" text")
			}
		}
		split := rapid.SampledFrom([]workspace.Split{workspace.SplitClient, workspace.SplitFenceAware, workspace.SplitRows}).Draw(rt, "split")
		with := func(o *ExportOptions) { o.Split = split }
		dir := tree(t, files)
		first, _ := export(t, dir, Keep{t.TempDir()}, with)
		keep := Keep{t.TempDir()}
		copied := filepath.Join(t.TempDir(), "workspace")
		bringIn(t, first, copied, keep, Merge)
		if diff := cmp.Diff(contents(t, dir), contents(t, copied)); diff != "" {
			rt.Fatalf("files: %s", diff)
		}
		second, _ := export(t, copied, keep, with)
		if !bytes.Equal(bytesOf(t, first), bytesOf(t, second)) {
			rt.Fatalf("the archives differ:\n%s", compare(t, first, second).Text())
		}
	})
}

func TestVersionsGrowWithWhatIsSaid(t *testing.T) {
	keep := Keep{t.TempDir()}
	dir := tree(t, map[string]string{"SOUL.md": "# Ada", "USER.md": "# Ines", "MEMORY.md": "## A\n"})
	first, _ := export(t, dir, keep)
	later := func(o *ExportOptions) { o.Now = func() time.Time { return testNow.Add(time.Hour) } }
	if again, _ := export(t, dir, keep, later); !bytes.Equal(bytesOf(t, first), bytesOf(t, again)) {
		t.Error("an unchanged workspace gives other bytes an hour later")
	}
	fill(t, dir, map[string]string{"SOUL.md": "# Ada, bolder"})
	second, _ := export(t, dir, keep, later)
	was, is := identity(t, first), identity(t, second)
	if is.ID != was.ID || is.Version != was.Version+1 {
		t.Errorf("identity: %s %d, then %s %d", was.ID, was.Version, is.ID, is.Version)
	}
	p, err := open(t, second).Principals()
	if err != nil || p.Principals[0].Profile.Version != 1 {
		t.Errorf("principals: %+v, %v", p, err)
	}
	for r, err := range open(t, second).Records() {
		if err != nil || r.Source.IdentityVersion != 1 {
			t.Errorf("a record that was there before bears identity version %d (%v)", r.Source.IdentityVersion, err)
		}
	}
}

func identity(t testing.TB, archive string) *alf.Identity {
	t.Helper()
	id, err := open(t, archive).Identity()
	if err != nil || id == nil {
		t.Fatalf("identity: %v, %v", id, err)
	}
	return id
}

// TestDeltaRestores: base and deltas give the workspace as it is now, and a
// restore removes what is gone.
func TestDeltaRestores(t *testing.T) {
	keep := Keep{t.TempDir()}
	dir := tree(t, map[string]string{"SOUL.md": "# Ada", "USER.md": "# Ines", "MEMORY.md": "## A\n\nx\n\n## B\n", "memory/2026-01-15.md": "old", "notes.md": "n", "skills/s.sh": "1"})
	base, _ := export(t, dir, keep)
	fill(t, dir, map[string]string{"SOUL.md": "# Ada the second", "MEMORY.md": "## B\n\n## A\n\nx\n", "memory/2026-01-16.md": "new", "skills/s.sh": "2"})
	if err := os.Remove(filepath.Join(dir, "memory", "2026-01-15.md")); err != nil {
		t.Fatal(err)
	}
	now2, _ := export(t, dir, keep)
	old, new := open(t, base), open(t, now2)
	d, err := alf.Compare(old, new)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Moved) != 2 || len(d.Edited) != 0 {
		t.Errorf("a reordered file: %s", d.Text())
	}
	var delta bytes.Buffer
	if _, err := alf.WriteDelta(&delta, "", old, new, d, testNow); err != nil {
		t.Fatal(err)
	}
	deltaFile, whole := filepath.Join(t.TempDir(), "d.alf-delta"), filepath.Join(t.TempDir(), "whole.alf")
	if err := os.WriteFile(deltaFile, delta.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(whole)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := alf.ApplyFiles(out, base, []string{deltaFile}, alf.Form{CreatedAt: func(string) time.Time { return testNow }}); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	restored := tree(t, map[string]string{"memory/2026-01-15.md": "old", "memory/other.md": "other"})
	done := bringIn(t, whole, restored, Keep{t.TempDir()}, Replace)
	if diff := cmp.Diff(contents(t, dir), contents(t, restored)); diff != "" {
		t.Errorf("restored: %s", diff)
	}
	if len(done.Warnings) > 0 || done.Backup == "" {
		t.Errorf("report: %+v", done)
	}
	if diff := cmp.Diff(map[string]string{"memory/2026-01-15.md": "old", "memory/other.md": "other"}, contents(t, done.Backup)); diff != "" {
		t.Errorf("backup: %s", diff)
	}
}

func TestMergeThreeWays(t *testing.T) {
	keep, elsewhere := Keep{t.TempDir()}, Keep{t.TempDir()}
	mine := tree(t, map[string]string{"MEMORY.md": "## A\n\none\n\n## B\n\ntwo\n", "memory/log.md": "first\n", "memory/gone.md": "g", "memory/edited.md": "e", "memory/both.md": "b"})
	base, _ := export(t, mine, keep)
	theirs := filepath.Join(t.TempDir(), "workspace")
	bringIn(t, base, theirs, elsewhere, Merge)
	fill(t, mine, map[string]string{"MEMORY.md": "## A\n\none, mine\n\n## B\n\ntwo\n\n## C\n\nmine\n", "memory/log.md": "first\nmine\n", "memory/both.md": "mine"})
	fill(t, theirs, map[string]string{"MEMORY.md": "## A\n\none\n\n## N\n\ntheirs\n\n## B\n\ntwo, theirs\n", "memory/log.md": "first\ntheirs\n", "memory/edited.md": "theirs", "memory/both.md": "theirs", "memory/new.md": "n"})
	if err := os.Remove(filepath.Join(theirs, "memory", "gone.md")); err != nil {
		t.Fatal(err)
	}
	archive, _ := export(t, theirs, elsewhere)
	preview, err := ImportWorkspace(context.Background(), archive, mine, ImportOptions{Mode: Merge, DryRun: true, Keep: keep, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, mine)
	if !strings.Contains(preview.Text(), "+two, theirs") || !strings.Contains(preview.Text(), "would be imported") {
		t.Errorf("preview:\n%s", preview.Text())
	}
	if diff := cmp.Diff(before, contents(t, mine)); diff != "" {
		t.Fatalf("a dry run changed: %s", diff)
	}
	done := bringIn(t, archive, mine, keep, Merge)
	beside := "memory/both.md.conflict-20260504T093000Z"
	want := map[string]string{"MEMORY.md": "## A\n\none, mine\n\n## N\n\ntheirs\n\n## B\n\ntwo, theirs\n\n## C\n\nmine\n", "memory/log.md": "first\nmine\ntheirs\n", "memory/edited.md": "theirs",
		"memory/both.md": "mine", beside: "theirs", "memory/new.md": "n"}
	if diff := cmp.Diff(want, contents(t, mine)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"memory/both.md"}, done.Conflicts); diff != "" {
		t.Error(diff)
	}
	actions := map[string]string{}
	for _, f := range done.Files {
		actions[f.Path] = f.Action
	}
	if diff := cmp.Diff(map[string]string{"MEMORY.md": Merged, "memory/log.md": Merged, "memory/edited.md": Changed, "memory/both.md": Conflicted, "memory/new.md": Added, "memory/gone.md": Removed}, actions); diff != "" {
		t.Error(diff)
	}
}

func TestKeepMode(t *testing.T) {
	archive, _ := export(t, tree(t, map[string]string{"MEMORY.md": "theirs", "memory/new.md": "n"}), Keep{t.TempDir()})
	mine := tree(t, map[string]string{"MEMORY.md": "mine", "memory/x.md": "x"})
	bringIn(t, archive, mine, Keep{t.TempDir()}, KeepMine)
	if diff := cmp.Diff(map[string]string{"MEMORY.md": "mine", "memory/x.md": "x", "memory/new.md": "n"}, contents(t, mine)); diff != "" {
		t.Error(diff)
	}
}

const agent = "bf0101d6-8c57-53ff-a921-bbc807a06e90"

// handmade writes an archive with records that nobody checked.
func handmade(t testing.TB, raw map[string]string, records ...*alf.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.alf")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := alf.NewWriter(out, "")
	for _, name := range sortedPaths(raw) {
		if err := w.Raw(openclaw, name, strings.NewReader(raw[name])); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range records {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.Finish(alf.Manifest{Agent: alf.Agent{ID: uuid.MustParse(agent), Name: "Ada", SourceRuntime: openclaw}}, alf.Form{CreatedAt: func(string) time.Time { return testNow }})
	if err := errors.Join(err, w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func made(file, namespace, content string, edit ...func(*alf.Record)) *alf.Record {
	r := &alf.Record{ID: ownID(uuid.MustParse(agent), file+namespace+content), AgentID: uuid.MustParse(agent), Content: content, MemoryType: alf.Semantic, Status: alf.Active, Namespace: namespace,
		Source: alf.Source{Runtime: openclaw, OriginFile: file}, Temporal: alf.Temporal{CreatedAt: alf.At(testNow)}}
	for _, e := range edit {
		e(r)
	}
	return r
}

// TestReconstruct imports archives without verbatim files, or with old ones.
func TestReconstruct(t *testing.T) {
	gone := func(r *alf.Record) { r.Status = alf.Deleted }
	old := func(r *alf.Record) { r.Status = alf.Superseded }
	for name, tc := range map[string]struct {
		archive string
		want    map[string]string
	}{
		"namespaces": {handmade(t, nil, made("", "curated", "c"), made("", "daily", "d"), made("", "custom:work", "w"), made("memory/x.md", "workspace", "one"), made("memory/x.md", "workspace", "two")),
			map[string]string{"MEMORY.md": "c\n", "memory/2026-05-04.md": "d\n", "memory/custom-work.md": "w\n", "memory/x.md": "one\n\ntwo\n"}},
		"deleted":     {handmade(t, nil, made("memory/x.md", "workspace", "one"), made("memory/x.md", "workspace", "two", gone), made("memory/y.md", "workspace", "y", old)), map[string]string{"memory/x.md": "one\n"}},
		"outside":     {handmade(t, nil, made("../../x.md", "workspace", "x"), made("/etc/x.md", "workspace", "x"), made(`C:\x.md`, "workspace", "x"), made("", "../../x", "in"), made(".git/x.md", "workspace", "x")), map[string]string{"memory/x.md": "in\n"}},
		"no Markdown": {handmade(t, nil, made("memory/facts.db", "facts", "f")), map[string]string{"memory/facts.md": "f\n"}},
		"old files": {handmade(t, map[string]string{"MEMORY.md": "## A\n\nold\n", "memory/gone.md": "gone\n", "memory/same.md": "same"}, made("MEMORY.md", "curated", "## A\n\nnew"), made("memory/same.md", "workspace", "same")),
			map[string]string{"MEMORY.md": "## A\n\nnew\n", "memory/same.md": "same"}},
		"files only": {handmade(t, map[string]string{"MEMORY.md": "## A\n", "memory/x.csv": "1"}), map[string]string{"MEMORY.md": "## A\n", "memory/x.csv": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "a", "b", "workspace")
			bringIn(t, tc.archive, dir, Keep{t.TempDir()}, Merge)
			if diff := cmp.Diff(tc.want, contents(t, dir)); diff != "" {
				t.Error(diff)
			}
			if all := contents(t, outer); len(all) != len(tc.want) {
				t.Errorf("files outside of the workspace: %v", sortedPaths(all))
			}
		})
	}
}

// TestHostileImports must be refused, with the workspace as before.
func TestHostileImports(t *testing.T) {
	manifest := `{"alf_version":"1.0.0","created_at":"2026-05-04T09:30:00Z","agent":{"id":"` + agent + `","name":"Ada","source_runtime":"openclaw"},"layers":{}}`
	evil := func(name string) string {
		path := filepath.Join(t.TempDir(), "evil.alf")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(out)
		for n, text := range map[string]string{"manifest.json": manifest, name: "evil", "raw/openclaw/memory/ok.md": "ok"} {
			w, err := z.Create(n)
			if err == nil {
				_, err = w.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(z.Close(), out.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, _ := export(t, tree(t, map[string]string{"MEMORY.md": strings.Repeat("## A\n\nx\n", 200)}), Keep{t.TempDir()})
	cut := filepath.Join(t.TempDir(), "cut.alf")
	if err := os.WriteFile(cut, bytesOf(t, whole)[:600], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		archive string
		kind    memory.Kind
	}{
		"climbs": {evil("raw/openclaw/../../x"), memory.ErrInvalid}, "absolute": {evil("raw/openclaw//tmp/x"), memory.ErrInvalid}, "drive": {evil(`raw/openclaw/C:\x`), memory.ErrInvalid},
		"truncated": {cut, memory.ErrCorrupt}, "through a link": {evil("raw/openclaw/link/x.md"), memory.ErrDenied}, "over a link": {evil("raw/openclaw/linked.md"), memory.ErrDenied},
		"over a directory": {evil("raw/openclaw/notes"), memory.ErrDenied}, "below a file": {evil("raw/openclaw/MEMORY.md/x"), memory.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			dir := tree(t, map[string]string{"MEMORY.md": "mine", "notes/a.md": "a"})
			for link, to := range map[string]string{"link": outside, "linked.md": filepath.Join(outside, "f.md")} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			for _, mode := range []Mode{Merge, Replace, KeepMine} {
				_, err := ImportWorkspace(context.Background(), tc.archive, dir, ImportOptions{Mode: mode, Keep: Keep{t.TempDir()}, Now: now})
				if !errors.Is(err, tc.kind) {
					t.Errorf("%s: %v, want %s", mode, err, tc.kind)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 4 || string(bytesOf(t, filepath.Join(dir, "MEMORY.md"))) != "mine" {
				t.Errorf("the workspace changed: %v, %v", entries, err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
				t.Errorf("outside: %v, %v", left, err)
			}
		})
	}
}

// TestTakenBack stops an import half-way, as a crash would, and expects the next
// one to begin from the workspace as it was.
func TestTakenBack(t *testing.T) {
	keep := Keep{t.TempDir()}
	archive, _ := export(t, tree(t, map[string]string{"MEMORY.md": "theirs", "memory/new.md": "n"}), Keep{t.TempDir()})
	dir := tree(t, map[string]string{"MEMORY.md": "mine", "memory/x.md": "x"})
	r := open(t, archive)
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	i := importing{ImportOptions: ImportOptions{Mode: Replace, Keep: keep, Now: now}, r: r, w: w}
	if i.want, err = workspaceTargets(r); err != nil {
		t.Fatal(err)
	}
	if _, err := i.planned(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	// The second file cannot be put in place: its staged form is gone by then.
	if err := w.Root().Mkdir(stageDir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := i.stage(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := i.backUp(&j); err != nil {
		t.Fatal(err)
	}
	if err := i.journal(j); err != nil {
		t.Fatal(err)
	}
	half := j
	half.Moves = j.Moves[:2]
	if err := i.swap(half); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, dir)["MEMORY.md"]; got != "theirs" {
		t.Fatalf("nothing was swapped: %q", got)
	}
	if err := i.recover(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"MEMORY.md": "mine", "memory/x.md": "x"}, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestWorkspaceThatChangesMeanwhile(t *testing.T) {
	archive, _ := export(t, tree(t, map[string]string{"MEMORY.md": "theirs"}), Keep{t.TempDir()})
	dir := tree(t, map[string]string{"MEMORY.md": "mine"})
	writes := func() time.Time { // called when the backup is named: after planning, before the swap
		fill(t, dir, map[string]string{"MEMORY.md": "mine, and more"})
		return testNow
	}
	_, err := ImportWorkspace(context.Background(), archive, dir, ImportOptions{Mode: Replace, Keep: Keep{t.TempDir()}, Now: writes})
	if !errors.Is(err, memory.ErrConflict) {
		t.Errorf("import: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"MEMORY.md": "mine, and more"}, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}
