package mirror

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
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

func (r *rig) writer() Writer {
	return Writer{W: r.ws, Redact: r.im.Redact, Now: func() time.Time { return r.now }, NewID: func() string { return fmt.Sprint(serial.Add(1)) }}
}

func (r *rig) text(name string) string {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.ws.Path(), name))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	r.check(err)
	return string(raw)
}

func (r *rig) remember(title, content, kind string, importance int) {
	r.t.Helper()
	s := working.NewService(func(context.Context, memory.AgentID) (*working.Store, func(), error) { return r.items, func() {}, nil },
		func(context.Context, memory.AgentID) (*working.Store, func(), error) { return r.items, func() {}, nil }, nil)
	_, err := s.Write(r.ctx, "a", working.WriteRequest{Title: title, Content: content, Kind: kind, Importance: &importance})
	r.check(err)
}

func (r *rig) give() Written {
	r.t.Helper()
	res, err := r.writer().Items(r.ctx, r.list("all"))
	r.check(err)
	return res
}

func TestItemsAreGivenBack(t *testing.T) {
	r := newRig(t)
	r.put("MEMORY.md", "## A\r\nmine, without an end")
	r.sync()
	if res := r.give(); res.Sections != 0 || len(res.Changed) != 0 || r.text("MEMORY.md") != "## A\r\nmine, without an end" {
		t.Errorf("nothing to give: %+v, %q", res, r.text("MEMORY.md"))
	}
	r.remember("Tea", "Green tea.\n## no heading\n<!-- openclawssy:end -->", "preference", 4)
	r.remember("Choice", "We take SQLite.", "decision", 5)
	res := r.give()
	want := "## A\r\nmine, without an end\r\n\r\n<!-- openclawssy:begin -->\r\n## Choice\r\n\r\nWe take SQLite. <!-- MEM-3 -->\r\n\r\n" +
		"## Tea\r\n\r\nGreen tea.\r\n\\## no heading\r\n&lt;!-- openclawssy:end --> <!-- MEM-2 -->\r\n\r\n<!-- openclawssy:end -->\r\n"
	if got := r.text("MEMORY.md"); got != want {
		t.Errorf("MEMORY.md:\n%q\nwant\n%q", got, want)
	}
	notes := "- [decision|i=0.95] We take SQLite. <!-- MEM-3 -->\n- [preference|i=0.85] Green tea. ## no heading &lt;!-- openclawssy:end --> <!-- MEM-2 -->\n"
	if got := r.text("memory/2026-05-08.md"); got != notes || res.Notes != 2 || len(res.Changed) != 2 {
		t.Errorf("notes: %q, %+v", got, res)
	}
	if res = r.give(); len(res.Changed) != 0 || res.Notes != 0 {
		t.Errorf("again: %+v", res)
	}
	// What was given is no news.
	if rep := r.sync(); rep.Created+rep.Events+rep.Replaced != 0 {
		t.Errorf("import: %+v", rep)
	}
	// An edit around the marks stays, and so does its mode.
	r.put("MEMORY.md", "top\n"+strings.ReplaceAll(want, "\r\n", "\n")+"bottom\n")
	r.check(os.Chmod(filepath.Join(r.ws.Path(), "MEMORY.md"), 0o640))
	r.put("memory/2026-05-08.md", notes+"by hand")
	choice, _, _ := strings.Cut(notes, "\n")
	_, err := r.items.Forget(r.ctx, working.ForgetRequest{Handle: "MEM-2"})
	r.check(err)
	r.remember("Boat", "Red.", "fact", 3)
	r.give()
	if got := r.text("MEMORY.md"); !strings.HasPrefix(got, "top\n## A\nmine, without an end\n\n<!-- openclawssy:begin -->\n## Choice\n") || !strings.HasSuffix(got, "-->\nbottom\n") ||
		strings.Contains(got, "Green") || !strings.Contains(got, "## Boat\n\nRed. <!-- MEM-4 -->\n") {
		t.Errorf("MEMORY.md: %q", got)
	}
	if got := r.text("memory/2026-05-08.md"); got != choice+"\nby hand\n- [fact|i=0.6] Red. <!-- MEM-4 -->\n" {
		t.Errorf("notes: %q", got)
	}
	if st, err := os.Stat(filepath.Join(r.ws.Path(), "MEMORY.md")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode: %v, %v", st.Mode(), err)
	}
	entries, err := os.ReadDir(r.ws.Path())
	r.check(err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tempSuffix) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestBrokenMarksAreLeftAlone(t *testing.T) {
	r := newRig(t)
	r.remember("Tea", "Green tea.", "preference", 4)
	for _, text := range []string{workspace.BeginMark + "\nmine\n", workspace.EndMark, workspace.EndMark + "\n" + workspace.BeginMark,
		workspace.BeginMark + "\n" + workspace.BeginMark + "\n" + workspace.EndMark, workspace.BeginMark + "\n" + workspace.EndMark + "\n" + workspace.EndMark} {
		r.put("MEMORY.md", text)
		if _, err := r.writer().Items(r.ctx, r.list("all")); !errors.Is(err, memory.ErrConflict) || r.text("MEMORY.md") != text {
			t.Errorf("%q: %v, %q", text, err, r.text("MEMORY.md"))
		}
	}
	for _, bad := range []string{"\xff", "## a\n\xff"} {
		r.put("MEMORY.md", bad)
		if _, err := r.writer().Items(r.ctx, r.list("all")); !errors.Is(err, memory.ErrInvalid) || r.text("MEMORY.md") != bad {
			t.Errorf("%q: %v", bad, err)
		}
	}
	outside := filepath.Join(t.TempDir(), "x.md")
	r.check(os.WriteFile(outside, []byte("theirs"), 0o600))
	r.remove("MEMORY.md")
	r.check(os.Symlink(outside, filepath.Join(r.ws.Path(), "MEMORY.md")))
	if _, err := r.writer().Items(r.ctx, r.list("all")); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("a link out: %v", err)
	}
}

// A file that is edited while it is written keeps the edit.
func TestEditsMeanwhileAreKept(t *testing.T) {
	r := newRig(t)
	r.put("a.md", "one\n")
	rounds := 0
	changed, err := r.writer().folder().edit("a.md", func(text string) (string, error) {
		if rounds++; rounds == 1 {
			r.put("a.md", text+"two\n") // by somebody else
		}
		return withBlock(text, []string{"ours"})
	})
	if err != nil || !changed || rounds != 2 || r.text("a.md") != "one\ntwo\n\n"+workspace.BeginMark+"\nours\n"+workspace.EndMark+"\n" {
		t.Errorf("%v, %v, %d rounds, %q", changed, err, rounds, r.text("a.md"))
	}
	_, err = r.writer().folder().edit("a.md", func(text string) (string, error) {
		r.put("a.md", text+"x")
		return "ours", nil
	})
	if !errors.Is(err, memory.ErrConflict) || strings.Contains(r.text("a.md"), "ours\n\n") {
		t.Errorf("a file that never rests: %v", err)
	}
}

// Whatever a file says, what stands outside of the marks stays to the byte.
func TestOutsideOfTheMarks(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "## A", "text", "\r", "\ufeff", "<!-- x -->", " \t", "日本"})
	eol := rapid.SampledFrom([]string{"\n", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, l := range rapid.SliceOfN(line, 0, 8).Draw(t, "lines") {
			text.WriteString(l + eol.Draw(t, "eol"))
		}
		text.WriteString(line.Draw(t, "last"))
		before := text.String()
		once, err := withBlock(before, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(once, before) {
			t.Fatalf("%q became %q", before, once)
		}
		tail := rapid.SampledFrom([]string{"", "tail", "## T\r\nx\n"}).Draw(t, "tail")
		for _, lines := range [][]string{{"c"}, nil, {"a", "b"}} {
			next, err := withBlock(once+tail, lines)
			if err != nil {
				t.Fatal(err)
			}
			begin, end, err := findBlock(next)
			if err != nil {
				t.Fatal(err)
			}
			b0, e0, err := findBlock(once + tail)
			if err != nil {
				t.Fatal(err)
			}
			if next[:begin] != once[:b0] || next[end:] != (once + tail)[e0:] {
				t.Fatalf("%q became %q", once+tail, next)
			}
		}
		if again, err := withBlock(once, []string{"a", "b"}); err != nil || again != once {
			t.Fatalf("%q became %q, %v", once, again, err)
		}
	})
}

func TestNotes(t *testing.T) {
	r := newRig(t)
	important := .9
	for _, tc := range []struct {
		note Note
		want string
	}{
		{Note{Text: " one\n## two <!-- MEM-1 --> "}, "- one ## two &lt;!-- MEM-1 -->"},
		{Note{Text: "x", Kind: "lesson"}, "- [lesson|i=0.5] x"},
		{Note{Text: "x", Importance: &important}, "- [note|i=0.9] x"},
	} {
		got, err := r.writer().Note(tc.note)
		if err != nil || got.Line != tc.want || got.File != "memory/2026-05-08.md" {
			t.Errorf("%+v: %+v, %v", tc.note, got, err)
		}
	}
	if got := r.text("memory/2026-05-08.md"); got != "- one ## two &lt;!-- MEM-1 -->\n- [lesson|i=0.5] x\n- [note|i=0.9] x\n" {
		t.Errorf("%q", got)
	}
	big := 1.5
	for _, bad := range []Note{{}, {Text: " \n"}, {Text: "x", Kind: "a b"}, {Text: "x", Kind: "a]"}, {Text: "x", Importance: &big}} {
		if _, err := r.writer().Note(bad); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got, err := r.writer().Note(Note{Text: "password=Tr0ub4dor&3x"}); err != nil || strings.Contains(got.Line, "Tr0ub4dor") {
		t.Errorf("%+v, %v", got, err)
	}
	// A note is imported like any line of the day.
	r.sync()
	if said := r.said(); len(said) != 1 || !strings.Contains(said[0], "[note|i=0.9] x") {
		t.Errorf("said %q", said)
	}
}

func talk() Talk {
	at := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }
	return Talk{Session: memory.Session{ID: "s-1", Channel: "cli"}, Turns: []memory.Event{
		{Type: memory.UserMessage, Text: "Plan the Überfahrt, please: tide & wind!\n", Timestamp: at(0)},
		{Type: memory.ToolCall, Text: "{}", Timestamp: at(1)},
		{Type: memory.AssistantOutput, Text: "High water at nine.", Timestamp: at(2)},
		{Type: memory.UserMessage, Text: "Good.", Timestamp: at(3), Metadata: map[string]any{memory.MetaSpeaker: "Mara"}},
	}}
}

func TestSleep(t *testing.T) {
	r := newRig(t)
	r.put("memory/active-context.md", "by hand\n")
	files, err := r.writer().Sleep(talk())
	if err != nil || !slices.Equal(files, []string{"memory/active-context.md", "memory/2026-05-08.md"}) {
		t.Fatalf("%v, %v", files, err)
	}
	want := "by hand\n\n<!-- openclawssy:begin -->\nLast session: 2026-05-08 12:00 UTC, cli, 3 messages.\n\n- user: Plan the Überfahrt, please: tide & wind!\n- assistant: High water at nine.\n- Mara: Good.\n<!-- openclawssy:end -->\n"
	if got := r.text("memory/active-context.md"); got != want {
		t.Errorf("%q", got)
	}
	if got := r.text("memory/2026-05-08.md"); got != "- [context|i=0.3] 12:00 Session with 3 messages: Plan the Überfahrt, please: tide & wind! <!-- session s-1 -->\n" {
		t.Errorf("%q", got)
	}
	if files, err = r.writer().Sleep(Talk{Session: memory.Session{ID: "s-2"}}); err != nil || len(files) != 0 || r.text("memory/active-context.md") != want {
		t.Errorf("an empty session: %v, %v", files, err)
	}
	// It is no news to memory.
	r.sync()
	r.wantActive("note 3: by hand")
	r.wantSaid()
}

func TestSave(t *testing.T) {
	r := newRig(t)
	name, err := r.writer().Save(talk(), "", "")
	if err != nil || name != "memory/2026-05-08-plan-the-überfahrt-please-tide-wind.md" {
		t.Fatalf("%s, %v", name, err)
	}
	if got := r.text(name); !strings.Contains(got, "# Session: 2026-05-08 12:00 UTC\n") || !strings.Contains(got, "\nMara: Good.\n") || strings.Contains(got, "{}") {
		t.Errorf("%q", got)
	}
	again, err := r.writer().Save(talk(), "", "")
	if err != nil || again != name {
		t.Errorf("again: %s, %v", again, err)
	}
	longer := talk()
	longer.Turns = append(longer.Turns, memory.Event{Type: memory.AssistantOutput, Text: "Bye.", Timestamp: epoch})
	if name, err = r.writer().Save(longer, "", "../Über fahrt/"); err != nil || name != "memory/2026-05-08-über-fahrt.md" {
		t.Errorf("%s, %v", name, err)
	}
	if name, err = r.writer().Save(talk(), "", "über fahrt"); err != nil || name != "memory/2026-05-08-über-fahrt-2.md" {
		t.Errorf("%s, %v", name, err)
	}
	dir := filepath.Join(t.TempDir(), "elsewhere")
	if name, err = r.writer().Save(talk(), dir, "x"); err != nil || name != filepath.Join(dir, "2026-05-08-x.md") {
		t.Errorf("%s, %v", name, err)
	}
	if _, err := r.writer().Save(Talk{Session: memory.Session{ID: "s-3"}}, "", ""); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("an empty session: %v", err)
	}
	r.sync()
	r.wantActive()
}

func TestWatch(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	rounds := make(chan Report)
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, r.ws, 10*time.Millisecond, func(ctx context.Context) error {
			rep, err := r.im.Import(ctx, r.ws)
			if err != nil {
				return err
			}
			select {
			case rounds <- rep:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	await := func(what string, there func(Report) bool) {
		t.Helper()
		for {
			select {
			case rep := <-rounds:
				if there(rep) {
					return
				}
			case err := <-ended:
				t.Fatalf("%s: the watch ended: %v", what, err)
			}
		}
	}
	await("the first round", func(rep Report) bool { return rep.Files == 0 })
	r.put("MEMORY.md", "## A\none\n")
	await("a new file", func(rep Report) bool { return rep.Created == 1 })
	r.put("memory/deep/er/b.md", "## B\ntwo\n")
	await("a new directory", func(rep Report) bool { return rep.Created == 1 })
	r.put("memory/deep/er/b.md", "## B\ntwo and more\n")
	await("an edit below", func(rep Report) bool { return rep.Replaced == 1 })
	r.remove("MEMORY.md")
	await("a file removed", func(rep Report) bool { return rep.Removed == 1 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
