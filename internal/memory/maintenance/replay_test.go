package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

func dirSize(t testing.TB, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		total += st.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

var vocabulary = []string{"anna", "likes", "green", "tea", "coffee", "not", "in", "porto", "morning", "without", "sugar", "41", "42", "user", "lives"}

// anyItem draws an item; contents are near each other, so that many are alike.
func anyItem(t *rapid.T, n int) memory.Item {
	words := rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 9).Draw(t, "words")
	it := item(fmt.Sprint(n), strings.Join(words, " "), importance(rapid.IntRange(1, 5).Draw(t, "importance")),
		confidence(float64(rapid.IntRange(0, 10).Draw(t, "confidence"))/10),
		trust(rapid.SampledFrom([]memory.Trust{memory.TrustUser, memory.TrustAssistant, memory.TrustImport}).Draw(t, "trust")),
		title(rapid.SampledFrom([]string{"tea", "home"}).Draw(t, "title")))
	for range rapid.IntRange(0, 3).Draw(t, "evidence") {
		ev := rapid.IntRange(1, 9).Draw(t, "event")
		it.Evidence = append(it.Evidence, memory.Evidence{EventID: fmt.Sprint("evt_", ev), Seq: int64(ev), Quote: "said"})
	}
	if rapid.IntRange(0, 9).Draw(t, "quarantine") == 0 {
		it.Status = memory.Quarantined
	}
	return it
}

// TestDryRunIsTheRun compares, over random stores, what a dry run says with what a
// run then does; does it again, which must change nothing; brings everything back;
// and rebuilds the store from the log, which must give the same items.
func TestDryRunIsTheRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		dir, err := os.MkdirTemp("", "maintenance")
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				rt.Fatal(err)
			}
		}()
		c := &clock{t: monday}
		w, err := openWorld(dir, c)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := w.close(); err != nil {
				rt.Fatal(err)
			}
		}()
		var items []memory.Item
		for n := range rapid.IntRange(1, 14).Draw(rt, "items") {
			items = append(items, anyItem(rt, n))
		}
		if err := w.store1(items...); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(rt, "talked on") {
			c.forward(day)
			if _, err := w.log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: "good morning", Timestamp: c.now()}); err != nil {
				rt.Fatal(err)
			}
		}
		c.forward(time.Duration(rapid.IntRange(0, 60).Draw(rt, "days")) * day)
		logged, err := w.log.LastSeq()
		if err != nil {
			rt.Fatal(err)
		}
		w.agent.Settings.Retention = rapid.SampledFrom([]string{Stale, Tiers}).Draw(rt, "retention")
		w.agent.Settings.MaxItems = rapid.IntRange(0, 14).Draw(rt, "cap")
		dry, err := w.service.Maintain(ctx, "a", Request{DryRun: true})
		if err != nil {
			rt.Fatal(err)
		}
		before := w.all(t)
		if n, err := w.log.LastSeq(); err != nil || n != logged {
			rt.Fatalf("a dry run wrote: the log ends at %d (%v)", n, err)
		}
		wet, err := w.service.Maintain(ctx, "a", Request{})
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(lines(dry.Changes), lines(wet.Changes)); diff != "" || dry.Text() != wet.Text()+"This was a dry run: nothing was changed. Without --dry-run it is done.\n" && len(dry.Changes)+len(dry.Packed) > 0 {
			rt.Fatalf("dry run and run differ:\n%s\n%s\n%s", diff, dry.Text(), wet.Text())
		}
		if diff := cmp.Diff(filesOf(dry.Packed), filesOf(wet.Packed)); diff != "" {
			rt.Fatalf("what is packed differs:\n%s", diff)
		}
		check(rt, before, w.all(t), wet.Changes)
		again, err := w.service.Maintain(ctx, "a", Request{})
		if err != nil || len(again.Changes) > 0 {
			rt.Fatalf("a second run: %s, %v", lines(again.Changes), err)
		}
		want := w.all(t)
		rebuilt(rt, w, want)
	})
}

func filesOf(list []events.Packed) []string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.File
	}
	return names
}

// check compares the items after a run with what the run says it did: nothing
// else has changed, no text was touched, no evidence lost.
func check(t *rapid.T, before, after map[string]memory.Item, changes []Change) {
	touched := map[string]bool{}
	ids := map[string]string{}
	for id, it := range before {
		ids[it.Handle] = id
	}
	for _, c := range changes {
		touched[c.ID] = true
		for _, h := range c.Merged {
			touched[ids[h]] = true
			was, now := before[ids[h]], after[c.ID]
			for _, ev := range was.Evidence {
				held := false
				for _, kept := range now.Evidence {
					held = held || kept == ev
				}
				if !held && was.Trust.Rank() == now.Trust.Rank() {
					t.Fatalf("%s was merged into %s, which does not rest on %v", h, c.Handle, ev)
				}
			}
		}
	}
	for id, was := range before {
		now := after[id]
		if !touched[id] && !cmp.Equal(was, now) {
			t.Fatalf("%s was changed, and nothing says so:\n%s", was.Handle, cmp.Diff(was, now))
		}
		if now.Trust != was.Trust || !cmp.Equal(now.CreatedAt, was.CreatedAt) || len(now.Evidence) < len(was.Evidence) || now.Content != was.Content {
			t.Fatalf("%s lost something:\n%s", was.Handle, cmp.Diff(was, now))
		}
		if was.Importance >= 4 && now.Status == memory.Archived && now.Reason != overCap {
			t.Fatalf("%s is important, and was archived: %s", was.Handle, now.Reason)
		}
	}
}

// rebuilt deletes the database, opens the agent again, and compares.
func rebuilt(t *rapid.T, w *world, want map[string]memory.Item) {
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory.db", "memory.db-wal", "memory.db-shm"} {
		if err := os.Remove(filepath.Join(w.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	again, err := openWorld(w.dir, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	*w = *again
	zero := 0
	res, err := w.store.List(context.Background(), working.ListRequest{Status: "all", Limit: &zero})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]memory.Item{}
	for _, it := range res.Items {
		got[it.ID] = it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the rebuilt store differs (-live +rebuilt):\n%s", diff)
	}
}

// maintainUntilKilled stores items that are alike and maintains them, until it is
// killed. It acknowledges the ids of what it has stored.
func maintainUntilKilled(dir string, ack func(string) error) error {
	w, err := openWorld(dir, &clock{t: monday})
	if err != nil {
		return err
	}
	for {
		var items []memory.Item
		for range 20 {
			n := rand.IntN(1 << 30)
			items = append(items, item(newID(), fmt.Sprintf("Person%d lives in a house in city%d with a garden.", n%50, n%50), rests(fmt.Sprint("evt_", n))))
		}
		if err := w.store1(items...); err != nil {
			return err
		}
		for _, it := range items {
			if err := ack(it.ID + " " + it.Evidence[0].EventID); err != nil {
				return err
			}
		}
		if _, err := w.service.Maintain(context.Background(), "a", Request{}); err != nil && !errors.Is(err, memory.ErrConflict) {
			return err
		}
	}
}

// TestKilledWhileMaintaining kills maintenance often. Whatever was stored must be
// there, and what it rests on be among the evidence of an active item; after one
// more run no two active items are alike.
func TestKilledWhileMaintaining(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	stored := map[string]string{}
	for range rounds {
		child := judge.StartChild(t, "maintain", dir)
		var lines []string
		for range 20 * (1 + rand.IntN(4)) {
			line, more := child.Ack()
			if !more {
				t.Fatal("the child has ended")
			}
			lines = append(lines, line)
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		for _, line := range append(lines, child.Kill()...) {
			id, ev, _ := strings.Cut(line, " ")
			stored[id] = ev
		}
	}
	w := sameWorld(t, dir, &clock{t: monday})
	w.maintain(t, context.Background(), false)
	all := w.all(t)
	rested := map[string]bool{}
	said := map[string]bool{}
	active := 0
	for _, it := range all {
		if it.Status != memory.Active {
			continue
		}
		active++
		if said[it.Content] {
			t.Errorf("%s is there twice", it.Content)
		}
		said[it.Content] = true
		for _, ev := range it.Evidence {
			rested[ev.EventID] = true
		}
	}
	for id, ev := range stored {
		if _, there := all[id]; !there || !rested[ev] {
			t.Errorf("%s, resting on %s, is lost", id, ev)
		}
	}
	t.Logf("%d kills, %d items stored, %d active, none lost", rounds, len(stored), active)
	h, err := w.store.Health(context.Background())
	if err != nil || h.Failed() {
		t.Errorf("%+v, %v", h.Degraded, err)
	}
}
