package working

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

var ids atomic.Int64

func options(l changeLog) Options {
	var mu sync.Mutex
	at := epoch
	return Options{Agent: "a", Log: l, Redact: mask{}, NewID: func() string { return fmt.Sprintf("%026d", ids.Add(1)) },
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			at = at.Add(time.Second)
			return at
		}}
}

func open(t testing.TB, dir string, l changeLog) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, options(l))
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

func write(t testing.TB, s *Store, title, content string) memory.Item {
	t.Helper()
	res, err := s.write(context.Background(), WriteRequest{Title: title, Content: content}, "write", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Item
}

func TestWriteMergesWhatSaysTheSame(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), &memLog{})
	first := write(t, s, "tea", "The user likes green tea in the morning, without sugar.")
	for content, same := range map[string]bool{
		"User likes green tea in the morning, without sugar!":               true,
		"The user likes black tea in the morning, without sugar.":           false,
		"The user likes green tea in the morning, with sugar.":              false,
		"In the morning, without sugar, the user likes green tea.":          false,
		"The user no longer likes green tea in the morning, without sugar.": false,
	} {
		res, err := s.write(ctx, WriteRequest{Title: "x", Content: content, Importance: ptr(5)}, "write", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Merged != same || same && (res.Item.Handle != first.Handle || res.Item.Importance != 5 || res.Item.Version != 2) {
			t.Errorf("%q: merged %v into %s, version %d", content, res.Merged, res.Item.Handle, res.Item.Version)
		}
	}
	a := write(t, s, "birthday of Anna", "May 4th")
	if b := write(t, s, "birthday of Bob", "May 4th"); a.Handle == b.Handle {
		t.Error("two short memories with different titles were merged")
	}
}

func ptr[T any](v T) *T { return &v }

func TestZeroConfidenceIsAValue(t *testing.T) {
	s := open(t, t.TempDir(), &memLog{})
	res, err := s.write(context.Background(), WriteRequest{Title: "x", Content: "y", Confidence: ptr(0.)}, "write", "", nil)
	if err != nil || res.Item.Confidence != 0 {
		t.Errorf("confidence = %v, %v", res.Item.Confidence, err)
	}
}

func TestRefusedInputChangesNothing(t *testing.T) {
	l := &memLog{}
	s := open(t, t.TempDir(), l)
	for name, tc := range map[string]struct {
		in   WriteRequest
		want string
	}{
		"title missing":   {WriteRequest{Content: "y"}, "title must not be empty"},
		"title long":      {WriteRequest{Title: strings.Repeat("x", 201), Content: "y"}, "title must be at most 200 bytes"},
		"content missing": {WriteRequest{Title: "x"}, "content must not be empty"},
		"content long":    {WriteRequest{Title: "x", Content: strings.Repeat("y", 8193)}, "content must be at most 8192 bytes"},
		"escape":          {WriteRequest{Title: "x", Content: "\x1b[2J"}, "content must be UTF-8 without control characters"},
		"importance":      {WriteRequest{Title: "x", Content: "y", Importance: ptr(6)}, "importance must be between 1 and 5"},
		"confidence":      {WriteRequest{Title: "x", Content: "y", Confidence: ptr(-.1)}, "confidence must be between 0 and 1"},
		"kind":            {WriteRequest{Title: "x", Content: "y", Kind: "Kind!"}, "kind must be 1 to 40"},
	} {
		_, err := s.write(context.Background(), tc.in, "write", "", nil)
		if !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if len(l.lines) != 0 {
		t.Errorf("%d events were written", len(l.lines))
	}
}

func TestToolsHaveNoAuthority(t *testing.T) {
	s := open(t, t.TempDir(), &memLog{})
	ctx := memory.WithActor(context.Background(), memory.OriginTool)
	for _, in := range []WriteRequest{{Title: "x", Content: "y", Kind: memory.KindPreference}, {Title: "x", Content: "y", Importance: ptr(4)}} {
		if _, err := s.write(ctx, in, "write", "", nil); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%+v was taken: %v", in, err)
		}
	}
}

func TestVersions(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), &memLog{})
	it := write(t, s, "home", "The user lives in Porto.")
	if _, err := s.Update(ctx, UpdateRequest{Handle: it.Handle, Content: ptr("The user lives in Lisbon."), Version: ptr(7)}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("update of another version: %v", err)
	}
	up, err := s.Update(ctx, UpdateRequest{Handle: "mem-1", Content: ptr("The user lives in Lisbon."), Why: "moved", Version: ptr(1)})
	if err != nil || up.Item.Version != 2 {
		t.Fatalf("update: %+v, %v", up, err)
	}
	back, err := s.Revert(ctx, RevertRequest{Handle: it.Handle})
	if err != nil || back.Item.Content != it.Content || back.Item.Version != 3 {
		t.Fatalf("revert: %+v, %v", back, err)
	}
	if _, err := s.Revert(ctx, RevertRequest{Handle: it.Handle, To: 9}); memory.FieldOf(err) != "to" {
		t.Errorf("revert to a version that is not there: %v", err)
	}
	h, err := s.History(ctx, GetRequest{Handle: it.Handle})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range h.Revisions {
		got = append(got, fmt.Sprintf("%d %s %s %s", v.Item.Version, v.Action, v.By, v.Why))
	}
	if want := []string{"1 write user ", "2 update user moved", "3 revert user "}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
	if _, err := s.Get(ctx, GetRequest{Handle: "MEM-99"}); !errors.Is(err, memory.ErrNotFound) || memory.HintOf(err) == "" {
		t.Errorf("get of an unknown handle: %v", err)
	}
}

func TestCapArchivesLowestValue(t *testing.T) {
	ctx, o := context.Background(), options(&memLog{})
	o.MaxItems = 3
	s, err := Open(ctx, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, importance := range []int{3, 1, 5} {
		if _, err := s.write(ctx, WriteRequest{Title: fmt.Sprint("t", i), Content: fmt.Sprint("number ", i), Importance: &importance}, "write", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.write(ctx, WriteRequest{Title: "last", Content: "one more", Importance: ptr(1)}, "write", "", nil)
	if err != nil || !slices.Equal(res.Archived, []string{"MEM-2"}) {
		t.Errorf("archived %v, %v, want MEM-2", res.Archived, err)
	}
	h, err := s.Health(ctx)
	if err != nil || h.Items[memory.Active] != 3 || h.Items[memory.Archived] != 1 {
		t.Errorf("health %+v, %v", h, err)
	}
}

func TestForgetLeavesNoText(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	s := open(t, dir, l)
	ev := l.say("the zanzibarish rendezvous is on Friday")
	for i := range 50 {
		write(t, s, fmt.Sprint("other ", i), fmt.Sprintf("something else, number %d", i))
	}
	res, err := s.write(ctx, WriteRequest{Title: "Zanzibarish", Content: "A zanzibarish rendezvous on Friday.",
		proven: []memory.Evidence{{EventID: ev.ID, Seq: ev.Seq, Quote: "zanzibarish rendezvous"}}}, "write", "zanzibarish", map[string]any{"x": "zanzibarish"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(ctx, UpdateRequest{Handle: res.Item.Handle, Content: ptr("A zanzibarish rendezvous on Saturday.")}); err != nil {
		t.Fatal(err)
	}
	gone, err := s.Forget(ctx, ForgetRequest{Handle: res.Item.Handle})
	if err != nil || !slices.Equal(gone.Suppressed, []string{ev.ID}) {
		t.Fatalf("forget: %+v, %v", gone, err)
	}
	for _, name := range []string{fileName, fileName + "-wal"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		// The index cuts words into shared beginnings and rests.
		for _, piece := range []string{"zanzibar", "anzibar", "rendezv"} {
			if strings.Contains(strings.ToLower(string(raw)), piece) {
				t.Errorf("%s still holds %q", name, piece)
			}
		}
	}
	now, err := s.Get(ctx, GetRequest{Handle: res.Item.Handle})
	if err != nil || now.Item.Status != memory.Forgotten || now.Item.Content != "" || now.Revisions != 1 {
		t.Errorf("tombstone: %+v, %v", now, err)
	}
	if _, err := s.Update(ctx, UpdateRequest{Handle: res.Item.Handle, Title: ptr("x")}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("update of a forgotten item: %v", err)
	}
}

func TestSecretsDoNotReachTheLog(t *testing.T) {
	ctx, l := context.Background(), &memLog{}
	s := open(t, t.TempDir(), l)
	if _, err := s.logDecision(ctx, Decision{Title: "door hunter1", Content: "The code is hunter2.", Reason: "hunter3", Metadata: map[string]any{"k": "hunter4"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(ctx, UpdateRequest{Handle: "MEM-1", Content: ptr("hunter5"), Why: "hunter6"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range l.lines[1:] { // the first is the decision's own event, which the log redacts
		if secret.Match(line) {
			t.Errorf("secret in %s", line)
		}
	}
}

// TestSumIsThatOfFmt holds the checksums of stored rows to what they were made with.
func TestSumIsThatOfFmt(t *testing.T) {
	for _, values := range [][]any{
		{}, {""}, {"a\x00b", int64(-3), 7, true, false, .9, 1.0, 1e21, 123456789.5, memory.Active, sql.NullInt64{}, sql.NullInt64{Int64: -5, Valid: true}, nil},
	} {
		var b bytes.Buffer
		for _, v := range values {
			fmt.Fprintf(&b, "%v\x00", v)
		}
		if got, want := sumOf(values...), int64(crc32.Checksum(b.Bytes(), castagnoli)); got != want {
			t.Errorf("%v: %x, want %x", values, got, want)
		}
	}
}

// TestMaintainTellsFollowersOnceTheyAreToldTo has maintenance choose when its many
// changes are followed.
func TestMaintainTellsFollowersOnceTheyAreToldTo(t *testing.T) {
	ctx, told := context.Background(), 0
	opts := options(&memLog{})
	opts.Changed = func() { told++ }
	s, err := Open(ctx, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it := write(t, s, "one", "first thing")
	lease, err := s.Acquire(ctx, "maintenance", "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before := told
	taken, err := s.Maintain(ctx, lease, []Step{{Action: ActionVerify, Item: Version{it.ID, it.Version}, Verify: []string{memory.MarkOld}}})
	if err != nil || !taken[0] || told != before {
		t.Fatalf("%v, %v; told %d times, then %d", taken, err, before, told)
	}
	if s.Tell(); told != before+1 {
		t.Errorf("told %d times, want %d", told, before+1)
	}
	if err := s.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
}

// Whoever seizes a lease must not miss what is just being stored under it: an erasure
// would leave it there.
func TestSeizeWaitsForAChangeUnderWay(t *testing.T) {
	dir, l := t.TempDir(), &memLog{}
	s, other := open(t, dir, l), open(t, dir, l)
	lease, err := s.Acquire(t.Context(), "checkpoint", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	seized := make(chan error, 1)
	err = s.locked(t.Context(), func() error {
		go func() {
			_, err := other.Seize(t.Context(), "checkpoint", "an erasure", time.Minute)
			seized <- err
		}()
		select {
		case err := <-seized:
			return fmt.Errorf("it was seized in the middle of a change: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
		return s.Fenced(t.Context(), lease)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-seized; err != nil {
		t.Fatal(err)
	}
	if err := s.Fenced(t.Context(), lease); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("the lease that was seized: %v", err)
	}
}

// A lease that was seized from one who works on is not free once that one ends.
func TestSeizedLeaseOutlivesTheOneBefore(t *testing.T) {
	dir, l := t.TempDir(), &memLog{}
	s, other, third := open(t, dir, l), open(t, dir, l), open(t, dir, l)
	first, err := s.Acquire(t.Context(), "checkpoint", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	seized, err := other.Seize(t.Context(), "checkpoint", "an erasure", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if again, err := third.Acquire(t.Context(), "checkpoint", "two", time.Minute); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("while it is held: %+v, %v", again, err)
	}
	if held, err := LookLeases(t.Context(), dir); err != nil || len(held) != 1 || !held[0].Alive || held[0].Holder != "an erasure" {
		t.Errorf("held: %+v, %v", held, err)
	}
	if err := other.Fenced(t.Context(), seized); err != nil {
		t.Errorf("the one who seized it: %v", err)
	}
	if err := other.Release(t.Context(), seized); err != nil {
		t.Fatal(err)
	}
	last, err := third.Acquire(t.Context(), "checkpoint", "two", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Release(t.Context(), last); err != nil {
		t.Fatal(err)
	}
}
