package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// events is a log in memory.
type events []memory.Event

func (l events) Read(_ context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error) {
	rest := l[min(int(after.Seq), len(l)):]
	rest = rest[:min(limit, len(rest))]
	return rest, memory.Cursor{Seq: after.Seq + int64(len(rest))}, nil
}

func (l *events) say(session string, typ memory.EventType, words string, meta map[string]any) {
	seq := int64(len(*l) + 1)
	origin := memory.OriginUser
	switch typ {
	case memory.AssistantOutput:
		origin = memory.OriginAssistant
	case memory.ToolCall, memory.ToolResult:
		origin = memory.OriginTool
	}
	*l = append(*l, memory.Event{ID: fmt.Sprintf("evt_%04d", seq), Seq: seq, Type: typ, Text: words, SessionID: session,
		Timestamp: time.Date(2026, 5, 8, 9, int(seq), 0, 0, time.FixedZone("", 7200)), Origin: origin, Metadata: meta})
}

func (l *events) change(c memory.Change) {
	l.say("", memory.MemoryChange, "", map[string]any{memory.MetaChange: c})
}

type plain struct{}

func (plain) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") }

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, Options{Redact: plain{}, Now: func() time.Time { return time.Unix(1e9, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func follow(t testing.TB, s *Store, l events) {
	t.Helper()
	if _, err := s.Follow(context.Background(), l); err != nil {
		t.Fatal(err)
	}
}

// dump is everything that a rebuild must bring back.
func dump(t testing.TB, s *Store) string {
	t.Helper()
	ctx := context.Background()
	eps, err := s.episodes(ctx, "1")
	if err != nil {
		t.Fatal(err)
	}
	var terms []string
	for _, e := range eps {
		terms = append(terms, strings.Fields(strings.ToLower(e.Text))...)
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	h, err := s.Search(ctx, terms, terms)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v\n%+v", eps, *h)
}

// docs are the passages of a list, each as often as the term stands there.
func docs(p Postings) []uint32 {
	out := []uint32{}
	p.Each(func(n uint32, count int) { out = append(out, slices.Repeat([]uint32{n}, count)...) })
	return out
}

func sample() events {
	var l events
	l.say("s1", memory.UserMessage, "I moved to Lisbon yesterday with hunter2.", nil)
	l.say("s1", memory.AssistantOutput, "How is the flat?", nil)
	l.say("s1", memory.ToolCall, `weather {"city":"Lisbon"}`, map[string]any{memory.MetaTool: "weather"})
	l.say("s1", memory.ToolResult, "22 degrees in Lisbon", map[string]any{memory.MetaTool: "weather"})
	l.say("s2", memory.UserMessage, strings.Repeat("A long story about sailing boats. ", 40), map[string]any{memory.MetaCaption: "a red boat", memory.MetaSpeaker: "Ana (skipper)"})
	l.say("s1", memory.UserMessage, "It has 3 rooms, and 京都 pictures.", nil)
	return l
}

func TestFollow(t *testing.T) {
	ctx := context.Background()
	s := open(t, filepath.Join(t.TempDir(), "archive.db"))
	follow(t, s, sample())
	e, err := s.Get(ctx, "EVT-1")
	if err != nil {
		t.Fatal(err)
	}
	if e.Text != "I moved to Lisbon yesterday with [REDACTED]." || e.SessionID != "s1" || e.Speaker != "user" || e.Time.Format("2006-01-02 15:04 -0700") != "2026-05-08 09:01 +0200" {
		t.Errorf("EVT-1 = %+v", e)
	}
	parts, err := s.ByEvent(ctx, "evt_0005")
	if err != nil || len(parts) != 3 {
		t.Fatalf("passages of the long turn: %d, %v, want 3", len(parts), err)
	}
	for i, p := range parts {
		if p.Part != i || p.Turn != 0 || p.Handle != Handle(int64(5+i)) || (p.Caption == "a red boat") != (i == 2) {
			t.Errorf("part %d = %+v", i, p)
		}
	}
	h, err := s.Search(ctx, []string{"lisbon", "boat", "京都", "nothing"}, []string{"lisb"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(docs(h.Main[0]), docs(h.Main[2]), docs(h.Main[3]), docs(h.Prefix[0])); got != "[1 3 4] [8] [] [1 3 4]" {
		t.Errorf("postings %s", got)
	}
	if h.Main[1].Rows != 3 || len(docs(h.Main[1])) < 30 {
		t.Errorf("boat: %d rows, %d times", h.Main[1].Rows, len(docs(h.Main[1])))
	}
	for n, want := range map[uint32]uint32{1: 0, 2: 1, 3: 0, 4: 0, 5: 0, 6: 5, 7: 6, 8: 2} {
		if got := h.Passage(n).Before; got != want {
			t.Errorf("before passage %d stands %d, want %d", n, got, want)
		}
	}
	p := h.Passage(1)
	if !p.Is(Opens|FirstPerson|HasTimeCue|HasWhereCue) || p.Is(Asks) || p.Said[0].Day != 7 || p.Day.Day != 8 {
		t.Errorf("features of EVT-1: %+v", p)
	}
	if !h.Passage(4).Is(Aside|Untrusted) || !h.Passage(2).Is(Asks) || !h.Passage(8).Is(HasNumber) {
		t.Error("flags are missing")
	}
	if lag, err := s.Lag(ctx, 9); err != nil || lag != 3 {
		t.Errorf("lag %d, %v, want 3", lag, err)
	}
}

func TestHandles(t *testing.T) {
	ctx := context.Background()
	s := open(t, filepath.Join(t.TempDir(), "archive.db"))
	follow(t, s, sample())
	for handle, want := range map[string]memory.Kind{"EVT-99": memory.ErrNotFound, "EVT-0": memory.ErrInvalid, "EVT-01": memory.ErrInvalid, "MEM-1": memory.ErrInvalid, "EVT-1x": memory.ErrInvalid, "": memory.ErrInvalid} {
		if _, err := s.Get(ctx, handle); !errors.Is(err, want) {
			t.Errorf("Get(%q): %v, want %v", handle, err, want)
		}
	}
}

func TestSuppress(t *testing.T) {
	ctx := context.Background()
	s := open(t, filepath.Join(t.TempDir(), "archive.db"))
	l := sample()
	follow(t, s, l)
	if _, err := s.Search(ctx, []string{"lisbon"}, nil); err != nil {
		t.Fatal(err)
	}
	l.change(memory.Change{Suppress: []string{"evt_0001", "evt_0008"}})
	l.say("s1", memory.UserMessage, "Lisbon again", nil)
	follow(t, s, l)
	if _, err := s.Get(ctx, "EVT-1"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a suppressed episode: %v", err)
	}
	flags := func() []bool {
		h, err := s.Search(ctx, []string{"lisbon"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return []bool{h.Flags(1)&Suppressed != 0, h.Flags(2)&Suppressed != 0, h.Flags(9)&Suppressed != 0}
	}
	if got := flags(); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("suppressed: %v", got)
	}
	l.change(memory.Change{Restore: []string{"evt_0001"}})
	follow(t, s, l)
	if got := flags(); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("after restoring one: %v", got)
	}
	if _, err := s.Get(ctx, "EVT-1"); err != nil {
		t.Error(err)
	}
}

// Whatever the log, and however it was followed: delete the file, and it comes
// back identical.
func TestRebuildIsIdentical(t *testing.T) {
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", round))
		s := open(t, path)
		var l events
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0:
				follow(t, s, l)
			case 1:
				id := fmt.Sprintf("evt_%04d", rapid.IntRange(1, 40).Draw(rt, "id"))
				l.change(memory.Change{Suppress: []string{id}})
			case 2:
				id := fmt.Sprintf("evt_%04d", rapid.IntRange(1, 40).Draw(rt, "id"))
				l.change(memory.Change{Restore: []string{id}})
			default:
				typ := rapid.SampledFrom([]memory.EventType{memory.UserMessage, memory.AssistantOutput, memory.ToolResult, memory.SchedulerRun}).Draw(rt, "type")
				l.say(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "session"), typ, rapid.StringMatching(`([a-c日本]{1,3}[ .?]){0,300}`).Draw(rt, "text"), nil)
			}
		}
		follow(t, s, l)
		again := open(t, path+".again")
		follow(t, again, l)
		if diff := cmp.Diff(dump(t, s), dump(t, again)); diff != "" {
			rt.Fatalf("the rebuilt archive differs:\n%s", diff)
		}
	})
}

func TestSeveralFollowAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	var l events
	for i := range 2000 {
		l.say(fmt.Sprintf("s%d", i%7), memory.UserMessage, fmt.Sprintf("word%d and more", i), nil)
	}
	var wg sync.WaitGroup
	for range 4 {
		s := open(t, path)
		wg.Go(func() {
			if _, err := s.Follow(context.Background(), l); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	one := open(t, path)
	want := open(t, path+".alone")
	follow(t, want, l)
	if dump(t, one) != dump(t, want) {
		t.Error("four that follow at once leave another archive than one")
	}
}

func TestDamagedFileIsSetAside(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "archive.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database at all. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	follow(t, s, sample())
	if _, err := s.Get(ctx, "EVT-8"); err != nil {
		t.Error(err)
	}
	if got, err := filepath.Glob(path + ".corrupt-*"); err != nil || len(got) != 1 {
		t.Errorf("set aside: %v, %v", got, err)
	}
}

func TestDamageWhileOpen(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "archive.db")
	s := open(t, path)
	l := sample()
	follow(t, s, l)
	if err := s.db.Exec(ctx, "UPDATE features SET records = x'00'"); err != nil {
		t.Fatal(err)
	}
	l.say("s1", memory.UserMessage, "one more", nil)
	follow(t, s, l)
	want := open(t, path+".fresh")
	follow(t, want, l)
	if dump(t, s) != dump(t, want) {
		t.Error("the archive was not rebuilt")
	}
}

func TestDeletedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	s := open(t, path)
	l := sample()
	follow(t, s, l)
	before := dump(t, s)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if dump(t, s) != before {
		t.Error("reading fails once the file is gone")
	}
	follow(t, s, l)
	if dump(t, s) != before {
		t.Error("the archive was not rebuilt")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestReadOnly(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "archive.db")
	opts := Options{Redact: plain{}, Now: time.Now, ReadOnly: true}
	if _, err := Open(ctx, path, opts); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("opening what is not there for reading: %v", err)
	}
	follow(t, open(t, path), sample())
	s, err := Open(ctx, path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Get(ctx, "EVT-8"); err != nil {
		t.Error(err)
	}
	if _, err := s.Follow(ctx, append(sample(), sample()...)); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("following with a file open for reading: %v", err)
	}
}

// FuzzFTSQuery: no string makes a search fail.
func FuzzFTSQuery(f *testing.F) {
	s := open(f, filepath.Join(f.TempDir(), "archive.db"))
	follow(f, s, sample())
	for _, seed := range []string{"Lisbon", `" OR 1=1 --`, "NEAR(a b)", "col:x *", "a\x00b", "'", "(", "AND NOT", "京都", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, words string) {
		if len(words) > 4096 {
			return
		}
		q := text.ParseQuery(words, text.Options{})
		if _, err := s.Search(context.Background(), q.Terms, q.Prefixes); err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		if expr := q.MatchMain(); expr != "" {
			var n int
			if err := s.db.Reader().QueryRow("SELECT count(*) FROM m WHERE m MATCH ?", expr).Scan(&n); err != nil {
				t.Fatalf("%q as %s: %v", words, expr, err)
			}
		}
		if expr := q.MatchPrefix(); expr != "" {
			var n int
			if err := s.db.Reader().QueryRow("SELECT count(*) FROM p WHERE p MATCH ?", expr).Scan(&n); err != nil {
				t.Fatalf("%q as %s: %v", words, expr, err)
			}
		}
	})
}
