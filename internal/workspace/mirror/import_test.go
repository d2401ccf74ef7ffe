package mirror

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

var epoch = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

// rig is an agent with real stores, and a workspace.
type rig struct {
	t     testing.TB
	ctx   context.Context
	dir   string
	ws    *workspace.Workspace
	now   time.Time
	log   *events.Log
	items *working.Store
	old   *archive.Store
	im    *Importer
	close func() // at the end of the test at the latest
}

var serial atomic.Int64

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, ctx: memory.WithActor(context.Background(), memory.OriginUser), dir: t.TempDir(), now: epoch}
	red, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	r.check(err)
	clock := func() time.Time { return r.now }
	id := func() string { return fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", serial.Add(1)) }
	r.log, err = events.Open(r.ctx, filepath.Join(r.dir, "events"), events.Options{Now: clock, NewID: id, Redact: red, Log: zerolog.Nop()})
	r.check(err)
	r.items, err = working.Open(r.ctx, r.dir, working.Options{Agent: "a", Log: r.log, Redact: red, Now: clock, NewID: id})
	r.check(err)
	r.old, err = archive.Open(r.ctx, filepath.Join(r.dir, "archive.db"), archive.Options{Redact: red, Now: clock})
	r.check(err)
	r.ws, err = workspace.Open(t.TempDir())
	r.check(err)
	r.im = &Importer{Items: r.items, Log: r.log, Redact: red, Now: clock, Dir: r.dir}
	r.close = sync.OnceFunc(func() {
		for _, c := range []interface{ Close() error }{r.items, r.old, r.log, r.ws} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(r.close)
	return r
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.ws.Path(), name)
	r.check(os.MkdirAll(filepath.Dir(path), 0o700))
	r.check(os.WriteFile(path, []byte(text), 0o600))
	r.check(os.Chtimes(path, r.now, r.now))
}

func (r *rig) remove(name string) {
	r.t.Helper()
	r.check(os.Remove(filepath.Join(r.ws.Path(), name)))
}

func (r *rig) sync() Report {
	r.t.Helper()
	report, err := r.im.Import(r.ctx, r.ws)
	r.check(err)
	return report
}

// active returns the active items as "kind importance: content", sorted.
func (r *rig) active() []string { return r.with("active") }

func (r *rig) list(status string) []memory.Item {
	r.t.Helper()
	all := 0
	list, err := r.items.List(r.ctx, working.ListRequest{Status: status, Limit: &all})
	r.check(err)
	return list.Items
}

func (r *rig) with(status string) []string {
	r.t.Helper()
	var out []string
	for _, it := range r.list(status) {
		out = append(out, fmt.Sprintf("%s %d: %s", it.Kind, it.Importance, strings.ReplaceAll(it.Content, "\n", " / ")))
	}
	slices.Sort(out)
	return out
}

// said returns the texts of the events that are recalled.
func (r *rig) said() []string {
	r.t.Helper()
	list, _, err := r.log.Read(r.ctx, memory.Cursor{}, 10000)
	r.check(err)
	gone, err := r.items.Suppressed(r.ctx, list)
	r.check(err)
	var out []string
	for _, e := range list {
		if e.Type.IsTurn() && !gone[e.ID] {
			out = append(out, e.Text)
		}
	}
	slices.Sort(out)
	return out
}

func (r *rig) wantActive(want ...string) {
	r.t.Helper()
	if got := r.active(); !slices.Equal(got, want) {
		r.t.Errorf("active:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (r *rig) wantSaid(want ...string) {
	r.t.Helper()
	if got := r.said(); !slices.Equal(got, want) {
		r.t.Errorf("said: %q, want %q", got, want)
	}
}

func TestImportBringsSectionsAndLogs(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "intro\n\n## Tea [preference|i=0.95]\ngreen, password=Tr0ub4dor&3x\n\n## Boat\nthe red one\r\n")
	r.put("memory/project-pilot.md", "## Goal\nland it")
	r.put("memory/gating-policies.md", "| 1 | ask first |")
	r.put("memory/2026-05-07.md", "## 9:30 PM\n- [decision|i=0.9] Use SQLite.\nplain\n- [context|i=0.1] Nothing new.\n")
	rep := r.sync()
	if rep.Files != 4 || rep.Created != 7 || rep.Events != 1 || rep.Unchanged != 0 || len(rep.Notices) != 0 {
		t.Errorf("%+v", rep)
	}
	tea := ""
	for _, line := range r.active() {
		if strings.HasPrefix(line, "preference 5: Tea / green, ") {
			tea = line
		}
	}
	if tea == "" || strings.Contains(tea, "Tr0ub4dor") {
		t.Errorf("tea: %q in %q", tea, r.active())
	}
	r.wantActive("decision 5: Use SQLite.", "note 1: Nothing new.", "note 4: Boat / the red one", "note 4: intro", "policy 3: | 1 | ask first |", tea, "project 3: Goal / land it")
	for _, it := range r.list("active") {
		if it.Trust != memory.TrustImport {
			t.Errorf("%s has trust %s", it.Content, it.Trust)
		}
		from, isMap := it.Metadata.(map[string]any)["workspace"].(map[string]any)
		if !isMap || from["sha256"] == "" || from["file"] == "" {
			t.Errorf("%s has no provenance: %v", it.Content, it.Metadata)
		}
		switch it.Content {
		case "Boat\nthe red one":
			if from["sha256"] != sumOf("## Boat\nthe red one") {
				t.Errorf("boat has the sum %v", from["sha256"])
			}
			if from["file"] != "MEMORY.md" || fmt.Sprint(from["line_start"], from["line_end"]) != "6 7" {
				t.Errorf("boat is from %v", from)
			}
		case "Use SQLite.":
			if len(it.Evidence) != 1 || it.Evidence[0].Seq == 0 || it.Evidence[0].SourceID != "workspace:memory/2026-05-07.md:1-4" || it.ValidTo != nil {
				t.Errorf("decision: %+v", it)
			}
		case "Nothing new.":
			if it.ValidTo == nil || !it.ValidTo.Equal(time.Date(2026, 5, 14, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("context is kept until %v", it.ValidTo)
			}
		}
	}
	_, err := r.old.Follow(r.ctx, r.log)
	r.check(err)
	list, _, err := r.log.Read(r.ctx, memory.Cursor{}, 10)
	r.check(err)
	if e := list[0]; !e.Timestamp.Equal(time.Date(2026, 5, 7, 21, 30, 0, 0, time.UTC)) || e.Origin != memory.OriginImport || e.SessionID != "workspace-2026-05-07" {
		t.Errorf("event: %+v", e)
	}
	passages, err := r.old.ByEvent(r.ctx, list[0].ID)
	if err != nil || len(passages) == 0 {
		t.Errorf("the daily log is not in the archive: %v", err)
	}
	if rep = r.sync(); rep.Unchanged != 4 || rep.Created+rep.Events+rep.Removed+rep.Replaced+rep.Moved != 0 {
		t.Errorf("again: %+v", rep)
	}
	for _, name := range []string{"events", "."} {
		err := filepath.WalkDir(filepath.Join(r.dir, name), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), "Tr0ub4dor") {
				t.Errorf("a secret in %s", path)
			}
			return err
		})
		r.check(err)
	}
}

func TestImportFollowsEdits(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## A\none\n## B\ntwo\n## C\nthree\n")
	r.put("memory/2026-05-07.md", "## x\nfirst\n- [lesson|i=0.9] Look twice.\n## y\nsecond\n")
	r.sync()
	// B changes, C moves to the front and A to another file; x grows, y goes.
	r.put("MEMORY.md", "## C\nthree\n## B\ntwo and a half\n")
	r.put("memory/notes.md", "## A\none\n")
	r.put("memory/2026-05-07.md", "## x\nfirst\n- [lesson|i=0.9] Look twice.\nmore\n")
	rep := r.sync()
	if rep.Moved != 2 || rep.Replaced != 2 || rep.Removed != 1 || rep.Created != 1 {
		t.Errorf("%+v", rep)
	}
	r.wantActive("lesson 5: Look twice.", "note 4: A / one", "note 4: B / two and a half", "note 4: C / three")
	r.wantSaid("## x\nfirst\n- [lesson|i=0.9] Look twice.\nmore")
	for _, it := range r.list("superseded") {
		if it.Content != "B\ntwo" || it.SupersededBy == "" {
			t.Errorf("superseded: %+v", it)
		}
	}
	for _, it := range r.list("active") {
		if it.Kind == memory.KindLesson && r.suppressed(it.Evidence[0].EventID) {
			t.Errorf("the lesson rests on an event that is gone: %+v", it.Evidence)
		}
	}
	// Everything as it was, then nothing.
	r.put("MEMORY.md", "## A\none\n## B\ntwo\n## C\nthree\n")
	r.remove("memory/notes.md")
	r.put("memory/2026-05-07.md", "## x\nfirst\n- [lesson|i=0.9] Look twice.\n## y\nsecond\n")
	r.sync()
	r.wantActive("lesson 5: Look twice.", "note 4: A / one", "note 4: B / two", "note 4: C / three")
	r.wantSaid("## x\nfirst\n- [lesson|i=0.9] Look twice.", "## y\nsecond")
	r.remove("MEMORY.md")
	r.remove("memory/2026-05-07.md")
	r.sync()
	r.wantActive()
	r.wantSaid()
	for _, it := range r.list("archived") {
		if it.Reason != "no longer in the workspace" {
			t.Errorf("archived: %+v", it)
		}
	}
}

func (r *rig) suppressed(id string) bool {
	gone, err := r.items.Suppressed(r.ctx, []memory.Event{{ID: id}})
	r.check(err)
	return gone[id]
}

func TestImportKeepsWhatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## A\none\n")
	r.put("memory/a.md", "## B\ntwo\n")
	r.sync()
	r.put("MEMORY.md", "## A\n\xff\n")
	r.remove("memory/a.md")
	r.check(os.Symlink("/etc/hostname", filepath.Join(r.ws.Path(), "memory", "a.md")))
	rep := r.sync()
	if len(rep.Notices) != 2 || !rep.Notices[0].Skipped || rep.Removed != 0 {
		t.Errorf("%+v", rep)
	}
	r.wantActive("note 3: B / two", "note 4: A / one")
}

func TestForgottenSectionsStayForgotten(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## A\nmy old address\n## B\ntwo\n")
	r.put("memory/2026-05-07.md", "## x\n- [fact|i=0.9] I live in the old house.\n")
	r.sync()
	for _, it := range r.list("active") {
		if strings.Contains(it.Content, "old") {
			_, err := r.items.Forget(r.ctx, working.ForgetRequest{Handle: it.Handle})
			r.check(err)
		}
	}
	r.put("MEMORY.md", "## A\nmy old address, still\n## B\ntwo\n")
	r.put("memory/2026-05-07.md", "## x\n- [fact|i=0.9] I live in the old house.\nand more\n")
	if rep := r.sync(); rep.Withheld != 2 {
		t.Errorf("%+v", rep)
	}
	r.wantActive("note 4: B / two")
	r.wantSaid()
	// A manifest that was lost brings nothing back either.
	files, err := filepath.Glob(filepath.Join(r.dir, "workspace-*.json"))
	r.check(err)
	for _, name := range files {
		r.check(os.Remove(name))
	}
	r.put("MEMORY.md", "## A\nmy old address\n## B\ntwo\n")
	r.put("memory/2026-05-07.md", "## x\n- [fact|i=0.9] I live in the old house.\n")
	r.sync()
	r.wantActive("note 4: B / two")
	r.wantSaid()
}

func TestRetention(t *testing.T) {
	r := newRig(t)
	r.put("memory/2026-05-07.md", "## x\n- [a|i=0.85] good\n- [b|i=0.5] month\n- [c|i=0.2] week\n")
	r.put("memory/2026-03-01.md", "## y\n- [d|i=0.8] old and good\n- [e|i=0.7] old\n")
	r.put("MEMORY.md", "## M [note|i=0.3]\nmine\n## N\nfor good\n")
	if rep := r.sync(); rep.Expired != 1 {
		t.Errorf("%+v", rep)
	}
	r.now = epoch.Add(8 * 24 * time.Hour)
	if rep := r.sync(); rep.Expired != 2 {
		t.Errorf("after 8 days: %+v", rep)
	}
	r.wantActive("note 3: month", "note 4: N / for good", "note 4: good", "note 4: old and good")
	r.now = epoch.Add(31 * 24 * time.Hour)
	r.sync()
	r.wantActive("note 4: N / for good", "note 4: good", "note 4: old and good")
	if rep := r.sync(); rep.Expired != 0 {
		t.Errorf("again: %+v", rep)
	}
}

func TestImportKeepsToTheCap(t *testing.T) {
	r := newRig(t)
	r.im.MaxItems = 2
	r.put("MEMORY.md", "## A [x|i=0.2]\none\n## B\ntwo\n## C\nthree\n")
	r.put("memory/2026-05-07.md", "## x\n- [fact|i=0.9] said\n")
	if rep := r.sync(); rep.Overfull != 2 || rep.Created != 3 {
		t.Errorf("%+v", rep)
	}
	r.wantActive("note 4: B / two", "note 4: C / three")
	if got := r.with("archived"); !slices.Equal(got, []string{"note 2: A / one"}) {
		t.Errorf("archived: %q", got)
	}
	r.wantSaid("## x\n- [fact|i=0.9] said")
}

func TestOwnLinesAreNotImported(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## A\none\n\n<!-- openclawssy:begin -->\n## Mine\nfrom here\n<!-- openclawssy:end -->\n## B\ntwo\n")
	r.put("memory/2026-05-07.md", "- [x|i=0.9] from here <!-- MEM-3 -->\nfrom there\n")
	r.sync()
	r.wantActive("note 4: A / one", "note 4: B / two")
	r.wantSaid("from there")
}

func TestLongSections(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## Long\n"+strings.Repeat("日本語 ", 4000)+"\n")
	r.put("memory/2026-05-07.md", strings.Repeat("many words ", 20000))
	r.sync()
	total := 0
	for _, it := range r.list("active") {
		total += strings.Count(it.Content, "日本語")
		if !strings.Contains(it.Title, "/") {
			t.Errorf("title %q", it.Title)
		}
	}
	if total != 4000 {
		t.Errorf("%d words of 4000", total)
	}
	r.put("memory/2026-05-07.md", "short")
	r.sync()
	r.wantSaid("short")
}

// crashing stands for a log that stops working after some writes.
type crashing struct {
	log
	left int
}

func (c *crashing) Write(ctx context.Context, list ...memory.Event) ([]memory.Event, error) {
	if c.left--; c.left < 0 {
		return nil, memory.Errorf(memory.ErrUnavailable, "no more")
	}
	return c.log.Write(ctx, list...)
}

// stopping stands for a working memory that stops after some changes.
type stopping struct {
	items
	left int
}

func (s *stopping) Import(ctx context.Context, in working.Imported) (working.ImportResult, error) {
	if s.left--; s.left < 0 {
		return working.ImportResult{}, memory.Errorf(memory.ErrUnavailable, "no more")
	}
	return s.items.Import(ctx, in)
}

// state is one state of a workspace, and how an import of it ends.
type state struct {
	files   map[string]string // by name below memory/; those of the state before are taken away
	changes int               // of items that succeed before the import is broken off, from 1; 0 for a whole import
}

func whole(files map[string]string) state { return state{files: files} }

// Sections that say the same, and imports that are broken off between two edits.
func TestSectionsThatSayTheSame(t *testing.T) {
	const day, evening, other = "2026-05-07.md", "2026-05-07-evening.md", "2026-05-06.md"
	const line = "## a\n- [lesson|i=0.9] Look twice.\n"
	for name, tc := range map[string]struct {
		states       []state
		active, said []string
	}{
		"two sections of one text are one item": {[]state{whole(map[string]string{"a.md": "## A\none\n", "b.md": "## A\none\n"})},
			[]string{"note 3: A / one"}, nil},
		"it stays as long as one of them does": {[]state{whole(map[string]string{"a.md": "## A\none\n", "b.md": "## A\none\n"}), whole(map[string]string{"b.md": "## A\none\n"})},
			[]string{"note 3: A / one"}, nil},
		"one has moved, and another stands where it stood": {[]state{whole(map[string]string{"a.md": "## A\none\n"}), whole(map[string]string{"b.md": "## A\none\n"}),
			whole(map[string]string{"a.md": "## A\none\n", "b.md": "## A\none\n"}), whole(map[string]string{"a.md": "## A\none\n"})}, []string{"note 3: A / one"}, nil},
		"of two, each is edited": {[]state{whole(map[string]string{"a.md": "## A\none\n", "b.md": "## A\none\n"}), whole(map[string]string{"a.md": "## A\ntwo\n", "b.md": "## A\nthree\n"})},
			[]string{"note 3: A / three", "note 3: A / two"}, nil},
		"one comes to say what another says": {[]state{whole(map[string]string{"a.md": "## A\none\n", "b.md": "## A\ntwo\n"}), whole(map[string]string{"a.md": "## A\ntwo\n", "b.md": "## A\ntwo\n"})},
			[]string{"note 3: A / two"}, nil},
		"sections of a log are events of their own": {[]state{whole(map[string]string{day: "## A\none\n"}), whole(map[string]string{evening: "## A\none\n"}),
			whole(map[string]string{day: "## A\none\n", evening: "## A\none\n"}), whole(map[string]string{day: "## A\none\n"})}, nil, []string{"## A\none"}},
		"the same words on another day are another event": {[]state{whole(map[string]string{day: line}), whole(map[string]string{other: line})},
			[]string{"lesson 5: Look twice."}, []string{strings.TrimSpace(line)}},
		"a tagged line moves to another section": {[]state{whole(map[string]string{day: line + "## b\n"}), whole(map[string]string{day: "## a\nnothing\n" + strings.ReplaceAll(line, "## a", "## b")})},
			[]string{"lesson 5: Look twice."}, []string{"## a\nnothing", "## b\n- [lesson|i=0.9] Look twice."}},
		"of two with one tagged line, one stays": {[]state{whole(map[string]string{day: strings.ReplaceAll(line, "## a", "## b") + line}), whole(map[string]string{day: line})},
			[]string{"lesson 5: Look twice."}, []string{strings.TrimSpace(line)}},
		"a tagged line comes back": {[]state{whole(map[string]string{day: line}), whole(nil), whole(map[string]string{day: line})},
			[]string{"lesson 5: Look twice."}, []string{strings.TrimSpace(line)}},
		"broken off, and edited away": {[]state{{map[string]string{"a.md": "## A\none\n", day: line}, 1}, whole(map[string]string{"a.md": "## B\ntwo\n"})},
			[]string{"note 3: B / two"}, nil},
		"broken off, and as it was": {[]state{whole(map[string]string{"a.md": "## A\none\n", day: line}), {map[string]string{"a.md": "## A\ntwo\n"}, 1}, whole(map[string]string{"a.md": "## A\none\n", day: line})},
			[]string{"lesson 5: Look twice.", "note 3: A / one"}, []string{strings.TrimSpace(line)}},
		"broken off, as it was, broken off, and edited": {[]state{whole(map[string]string{"a.md": "## A\none\n"}), {map[string]string{"a.md": "## A\ntwo\n"}, 1},
			{map[string]string{"a.md": "## A\none\n"}, 1}, {nil, 1}, whole(map[string]string{"a.md": "## B\nthree\n"})}, []string{"note 3: B / three"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			before := map[string]string{}
			for _, s := range tc.states {
				for name := range before {
					r.remove("memory/" + name)
				}
				for name, text := range s.files {
					r.put("memory/"+name, text)
				}
				if before = s.files; s.changes == 0 {
					r.sync()
					continue
				}
				whole := r.im.Items
				r.im.Items = &stopping{whole, s.changes}
				_, err := r.im.Import(r.ctx, r.ws)
				if err != nil && memory.KindOf(err) != memory.ErrUnavailable {
					t.Fatal(err)
				}
				r.im.Items = whole
			}
			r.wantActive(tc.active...)
			r.wantSaid(tc.said...)
			for what := range r.says() {
				if strings.HasPrefix(what, unfounded) {
					t.Error(what)
				}
			}
		})
	}
}

// What was learned elsewhere stands for a section that says the same, and stays
// when that goes; what a person has changed is not replaced by it.
func TestWhatIsKnownFromElsewhere(t *testing.T) {
	r := newRig(t)
	_, err := r.items.Import(r.ctx, working.Imported{Why: "a chat", Put: []working.Entry{{Item: memory.Item{ID: "mem_known", Title: "Tea", Kind: memory.KindPreference,
		Content: "Tea\nThe user drinks green tea in the morning.", Importance: 4, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser}}}})
	r.check(err)
	text := "## Tea\nThe user drinks green tea in the morning.\n"
	r.put("MEMORY.md", text)
	r.put("memory/a.md", text)
	if rep := r.sync(); rep.Created != 0 {
		t.Errorf("%+v", rep)
	}
	r.wantActive("preference 4: Tea / The user drinks green tea in the morning.")
	r.remove("memory/a.md")
	r.put("MEMORY.md", "## Tea\nThe user drinks black tea.\n")
	r.sync()
	r.put("MEMORY.md", "## Cats\nAn agent has two cats at home, black ones.\n")
	r.sync()
	r.wantActive("note 4: Cats / An agent has two cats at home, black ones.", "preference 4: Tea / The user drinks green tea in the morning.")
	_, err = r.items.Forget(r.ctx, working.ForgetRequest{Handle: "mem_known"})
	r.check(err)
	for _, it := range r.list("active") {
		content := "Cats\nAn agent has three cats."
		_, err := r.items.Update(memory.WithActor(r.ctx, memory.OriginUser), working.UpdateRequest{Handle: it.Handle, Content: &content})
		r.check(err)
	}
	r.put("MEMORY.md", "## Cats\nAn agent has one cat.\n")
	r.sync()
	r.wantActive("note 4: Cats / An agent has three cats.")
	if got := r.with("quarantined"); !slices.Equal(got, []string{"note 4: Cats / An agent has one cat."}) {
		t.Errorf("quarantined: %q", got)
	}
}

// unfounded begins what says has of an item that rests on an event that is not
// said.
const unfounded = "an item rests on what is not said: "

// stateOf draws a state of the workspace's files, writes it down, and returns what
// memory says of it: each text of sections once, each section of a daily log as
// often as it is there, each tagged line once a day.
func (r *rig) stateOf(rt *rapid.T) map[string]int {
	want := map[string]int{}
	for _, name := range []string{"MEMORY.md", "memory/a.md", "memory/2026-05-06.md", "memory/2026-05-07.md"} {
		var text strings.Builder
		lines := map[string]bool{}
		for _, says := range rapid.SliceOfN(rapid.IntRange(0, 11), 0, 4).Draw(rt, name) {
			head, body := fmt.Sprintf("h%d", says%3), fmt.Sprintf("body %d", says/3)
			if !strings.Contains(name, "2026") {
				fmt.Fprintf(&text, "## %s\n%s\n", head, body)
				want[head+"\n"+body] = 1
				continue
			}
			line := "Line " + fmt.Sprint(says/6)
			body += "\n- [lesson|i=0.9] " + line
			fmt.Fprintf(&text, "## %s\n%s\n", head, body)
			want["## "+head+"\n"+body]++
			lines[line] = true
		}
		for line := range lines {
			want[line]++
		}
		r.put(name, text.String())
	}
	return want
}

// says is what memory says, as stateOf returns it.
func (r *rig) says() map[string]int {
	got := map[string]int{}
	for _, text := range r.said() {
		got[text]++
	}
	for _, it := range r.list("active") {
		got[it.Content]++
		for _, ev := range it.Evidence {
			if ev.Seq == 0 || r.suppressed(ev.EventID) {
				got[unfounded+it.Content]++
			}
		}
	}
	return got
}

// However files are edited, and wherever imports are broken off, memory says what
// the workspace says as soon as one import has come to its end.
func TestImportAgainstTheWorkspace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		defer r.close()
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			want := r.stateOf(rt)
			whole := *r.im
			r.im.Log, r.im.Items = &crashing{whole.Log, rapid.IntRange(0, 3).Draw(rt, "writes")}, &stopping{whole.Items, rapid.IntRange(0, 3).Draw(rt, "changes")}
			_, err := r.im.Import(r.ctx, r.ws)
			if err != nil && memory.KindOf(err) != memory.ErrUnavailable {
				rt.Fatal(err)
			}
			*r.im = whole
			if err != nil && rapid.Bool().Draw(rt, "edited meanwhile") {
				continue
			}
			r.sync()
			if got := r.says(); fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("memory says %v, the workspace %v", got, want)
			}
			if rep := r.sync(); rep.Unchanged != 4 {
				rt.Fatalf("again: %+v", rep)
			}
		}
	})
}

// BenchmarkUnchangedImport imports a workspace of 50,000 records that has not
// changed.
func BenchmarkUnchangedImport(b *testing.B) {
	r := newRig(b)
	for day := range 1000 {
		var sb strings.Builder
		for n := range 50 {
			fmt.Fprintf(&sb, "## Entry %d\nthe harbour crane contract was renewed for another year #tag%d\ntwo more words about it\n\n", n, n)
		}
		r.put(workspace.DailyFile(time.Date(2023, 1, 1+day, 0, 0, 0, 0, time.UTC)), sb.String())
	}
	r.sync()
	for b.Loop() {
		if rep := r.sync(); rep.Unchanged != 1000 {
			b.Fatalf("%+v", rep)
		}
	}
}

// BenchmarkFirstImport imports a workspace of so many sections, of words as
// frequent as in a language, for the first time. cpu_s is the processor time of
// one import, writing the log and the database included.
func BenchmarkFirstImport(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint("sections=", n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(random, 1.1, 4, 3999)
			var sb strings.Builder
			for i := range n {
				fmt.Fprintf(&sb, "## entry %d\n", i)
				for range 18 {
					fmt.Fprintf(&sb, "w%dx ", zipf.Uint64())
				}
				sb.WriteString("\n\n")
			}
			for b.Loop() {
				b.StopTimer()
				r := newRig(b)
				r.im.MaxItems = 0
				r.put("MEMORY.md", sb.String())
				before := processorTime(b)
				b.StartTimer()
				if rep := r.sync(); rep.Created != n {
					b.Fatalf("%+v", rep)
				}
				b.StopTimer()
				b.ReportMetric((processorTime(b) - before).Seconds(), "cpu_s")
				r.close()
				b.StartTimer()
			}
		})
	}
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
