package report

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/spend"
)

func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// world is one agent on disk, and the reports on it.
type world struct {
	dir     string
	at      time.Time
	store   *working.Store
	service *Service
	wrong   []Problem
}

func newWorld(t *testing.T) *world {
	t.Helper()
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, w := context.Background(), &world{dir: t.TempDir(), at: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)}
	now := func() time.Time { return w.at }
	log, err := events.Open(ctx, filepath.Join(w.dir, "memory", "events"), events.Options{Now: now, NewID: newID, Redact: r, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if w.store, err = working.Open(ctx, filepath.Join(w.dir, "memory"), working.Options{Agent: "default", Log: log, Redact: r, Now: now, NewID: newID}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	w.service = NewService(Options{
		Items:     func(context.Context, memory.AgentID) (*working.Store, func(), error) { return w.store, func() {}, nil },
		Dir:       func(memory.AgentID) (string, error) { return w.dir, nil },
		Condition: func(context.Context, memory.AgentID) (Condition, error) { return Condition{Problems: w.wrong}, nil },
		Spent:     func(memory.AgentID, time.Time, time.Time) (spend.Used, error) { return spend.Used{}, nil },
		Held:      func(context.Context, memory.AgentID) (int, error) { return 0, nil },
		Expired:   func(context.Context, memory.AgentID) (int64, time.Time, error) { return 0, time.Time{}, nil },
		Redact:    r, Now: now,
	})
	return w
}

// put stores an item as an importer does.
func (w *world) put(t testing.TB, id, content string, edit func(*memory.Item)) {
	t.Helper()
	it := memory.Item{ID: "mem_" + id, Kind: memory.KindFact, Title: "about " + id, Content: content, Importance: 3, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser}
	if edit != nil {
		edit(&it)
	}
	if _, err := w.store.Import(context.Background(), working.Imported{Why: "test", Put: []working.Entry{{Item: it}}}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) files(t testing.TB) []string {
	t.Helper()
	list, err := names(directory(w.dir))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestScheduledReportsFollowOnEachOther lets weeks go by, of which some are quiet:
// what was learned stands in one report, whenever it was, and quiet weeks have none.
func TestScheduledReportsFollowOnEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, w := context.Background(), newWorld(t)
		learned, busy := 0, 0
		for range rapid.IntRange(1, 6).Draw(rt, "weeks") {
			n := rapid.IntRange(0, 2).Draw(rt, "learned")
			for range n {
				w.at = w.at.Add(time.Duration(rapid.IntRange(0, 3*24).Draw(rt, "hours")) * time.Hour)
				learned++
				w.put(t, fmt.Sprint(learned), fmt.Sprintf("Person%d lives in city%d.", learned, learned), nil)
			}
			if n > 0 {
				busy++
			}
			w.at = w.at.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "runs after")) * week)
			if err := w.service.Scheduled(ctx, "default"); err != nil {
				rt.Fatal(err)
			}
		}
		told := 0
		for _, name := range w.files(t) {
			r, err := read(filepath.Join(directory(w.dir), name+".json"))
			if err != nil {
				rt.Fatal(err)
			}
			told += r.Counts.Learned
		}
		if told != learned || len(w.files(t)) != busy {
			rt.Fatalf("%d of %d learned stand in %d reports of %d busy weeks", told, learned, len(w.files(t)), busy)
		}
	})
}

// TestTroubleIsNoQuietWeek: something that has gone wrong is told once.
func TestTroubleIsNoQuietWeek(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	w.put(t, "1", "Anna lives in Porto.", nil)
	run := func(want int) {
		t.Helper()
		w.at = w.at.Add(week)
		if err := w.service.Scheduled(ctx, "default"); err != nil {
			t.Fatal(err)
		}
		if got := w.files(t); len(got) != want {
			t.Fatalf("reports: %v, want %d", got, want)
		}
	}
	run(1)
	run(1)
	w.wrong = []Problem{{Text: "the event log is damaged in 1 places", Since: w.at.Add(day)}}
	run(2)
	run(2)
	text, err := os.ReadFile(filepath.Join(directory(w.dir), w.files(t)[1]+".md"))
	if err != nil || !strings.Contains(string(text), "- since 19 May 2026 09:00 UTC: the event log is damaged") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestNeverOverwritten has several write reports of one day at once.
func TestNeverOverwritten(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	got := make([]Report, 8)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = write(w.dir, Report{Agent: "default", Until: w.at, Counts: Counts{Learned: i + 1}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, r := range got {
		have, err := read(strings.TrimSuffix(r.File, ".md") + ".json")
		if err != nil || have.Counts.Learned != i+1 {
			t.Errorf("%s: %+v, %v", r.File, have.Counts, err)
		}
	}
	again, err := write(w.dir, Report{Agent: "default", Until: w.at.Add(time.Hour), Counts: Counts{Learned: 1}})
	if err != nil || again.File != got[0].File || len(w.files(t)) != len(got) {
		t.Errorf("the same again: %s, %v", again.File, err)
	}
}

// TestSorting has one item come to each end, and none counted twice.
func TestSorting(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	for id, status := range map[string]memory.Status{"old": memory.Active, "kept": memory.Active, "stale": memory.Active, "waits": memory.Quarantined, "gone": memory.Active, "sure": memory.Active} {
		w.put(t, id, "The "+id+" house stands by the river.", func(it *memory.Item) { it.Status = status })
	}
	w.at = w.at.Add(30 * day)
	w.put(t, "new", "The new bridge is open.", func(it *memory.Item) { it.Importance = 5 })
	w.put(t, "odd", "The odd bridge is closed.", func(it *memory.Item) { it.Status, it.Reason = memory.Quarantined, "it is not in the text" })
	handle := map[string]string{}
	all := 0
	list, err := w.store.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range list.Items {
		handle[strings.TrimPrefix(it.ID, "mem_")] = it.Handle
	}
	changed, five := "The kept house was painted blue.", 5
	_, err = w.store.Update(ctx, working.UpdateRequest{Handle: handle["kept"], Content: &changed, Importance: &five})
	if err == nil {
		_, err = w.store.Approve(ctx, working.ReviewRequest{Handle: handle["waits"]})
	}
	if err == nil {
		_, err = w.store.Forget(ctx, working.ForgetRequest{Handle: handle["gone"]})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.service.Report(ctx, "default", Request{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Counts{Learned: 1, Changed: 1, Quarantined: 1, Approved: 1, Forgotten: 1}); r.Counts != want {
		t.Errorf("counts = %+v, want %+v", r.Counts, want)
	}
	text := r.Markdown()
	for _, want := range []string{"# Memory of default, 27 May to 3 June 2026", "- " + handle["new"] + ": The new bridge is open.",
		"- " + handle["kept"] + ": The kept house was painted blue.\n  before: The kept house stands by the river. (importance 5, before 3)",
		"Is this right? It waits in quarantine: it is not in the text", "  - yes: `openclawssy memory approve " + handle["odd"] + "`"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "gone house") || strings.Contains(text, "old house") {
		t.Errorf("what was forgotten, or is as it was, is told:\n%s", text)
	}

	// Erased, it leaves reports that were made before.
	target := &erasure.Target{Items: []erasure.Item{{ID: "mem_kept", Handle: handle["kept"]}}}
	target.Prepare()
	if n, err := Erase(w.dir, target); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, ending := range []string{".md", ".json"} {
		text, err := os.ReadFile(strings.TrimSuffix(r.File, ".md") + ending)
		if err != nil || strings.Contains(string(text), "painted") || !strings.Contains(string(text), "new bridge") {
			t.Errorf("%s after the erasure: %s, %v", ending, text, err)
		}
	}
}
