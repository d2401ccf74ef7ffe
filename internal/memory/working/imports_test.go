package working

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func imported(id, content, replaces string) Entry {
	return Entry{Replaces: replaces, Item: memory.Item{ID: "mem_" + id, Kind: memory.KindNote, Title: id, Content: content, Importance: 3, Confidence: .8,
		Status: memory.Active, Trust: memory.TrustImport}}
}

func take(t *testing.T, s *Store, in Imported) ImportResult {
	t.Helper()
	in.Why = "the tests"
	res, err := s.Import(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func statusOf(t *testing.T, s *Store, name string) memory.Status {
	t.Helper()
	got, err := s.Get(context.Background(), GetRequest{Handle: name})
	if err != nil {
		t.Fatal(err)
	}
	return got.Item.Status
}

func TestImportFollowsItsSource(t *testing.T) {
	ctx := context.Background()
	l := &memLog{}
	dir := t.TempDir()
	s := open(t, dir, l)
	first := take(t, s, Imported{Put: []Entry{imported("a", "Tea is green, says hunter2.", ""), imported("b", "Tea is green, says hunter2.", ""), imported("bad", "", "")}})
	if len(first.Created) != 2 || len(first.Refused) != 1 || !slices.Equal(first.IDs, []string{"mem_a", "mem_b", ""}) {
		t.Fatalf("first: %+v", first)
	}
	lines := len(l.lines)
	if again := take(t, s, Imported{Put: []Entry{imported("a", "Tea is green, says hunter2.", "")}}); again.Unchanged != 1 || len(l.lines) != lines {
		t.Errorf("again: %+v, %d lines", again, len(l.lines)-lines)
	}
	// a changes, and changes back; b goes, and returns.
	take(t, s, Imported{Put: []Entry{imported("c", "Tea is black.", "mem_a")}, Archive: []Withdrawal{{"mem_b", "removed"}}})
	if got := statusOf(t, s, "mem_a"); got != memory.Superseded {
		t.Errorf("a is %s", got)
	}
	if got := statusOf(t, s, "mem_b"); got != memory.Archived {
		t.Errorf("b is %s", got)
	}
	back := take(t, s, Imported{Put: []Entry{imported("a", "Tea is green.", "mem_c"), imported("b", "x", "")}})
	if !slices.Equal(back.IDs, []string{"mem_a_2", "mem_b"}) || statusOf(t, s, "mem_c") != memory.Superseded || statusOf(t, s, "mem_b") != memory.Active {
		t.Errorf("back: %+v", back)
	}
	// What a person has said stands.
	if _, err := s.Forget(ctx, ForgetRequest{Handle: "mem_b"}); err != nil {
		t.Fatal(err)
	}
	content := "Tea is white."
	if _, err := s.Update(memory.WithActor(ctx, memory.OriginUser), UpdateRequest{Handle: "mem_a_2", Content: &content}); err != nil {
		t.Fatal(err)
	}
	last := take(t, s, Imported{Put: []Entry{imported("b", "x", ""), imported("d", "Tea is red.", "mem_a_2")}, Suppress: []string{"evt_1"}})
	if last.Unchanged != 1 || statusOf(t, s, "mem_b") != memory.Forgotten || statusOf(t, s, "mem_a_2") != memory.Active || statusOf(t, s, "mem_d") != memory.Quarantined {
		t.Errorf("last: %+v, d is %s", last, statusOf(t, s, "mem_d"))
	}
	gone, err := s.Suppressed(ctx, []memory.Event{{ID: "evt_1"}})
	if err != nil || !gone["evt_1"] {
		t.Errorf("suppressed: %v, %v", gone, err)
	}
	for _, line := range l.lines {
		if strings.Contains(string(line), "hunter2") {
			t.Errorf("a secret in %s", line)
		}
	}
	same(t, s, open(t, t.TempDir(), l))
}

// What is there already stands for what says the same, where that is allowed, and
// gives up no place of its own.
func TestImportOfWhatIsKnown(t *testing.T) {
	s := open(t, t.TempDir(), &memLog{})
	known := imported("a", "Tea is green in the harbour at six.", "")
	take(t, s, Imported{Put: []Entry{known, imported("b", "Tea is black in the harbour at six.", "")}})
	shares := func(allowed bool) func(memory.Item) bool { return func(memory.Item) bool { return allowed } }
	again := imported("c", known.Item.Content, "")
	again.Item.Title = known.Item.Title
	if res := take(t, s, Imported{Put: []Entry{again}, Shares: shares(true)}); !slices.Equal(res.IDs, []string{"mem_a"}) || res.Unchanged != 1 {
		t.Errorf("shared: %+v", res)
	}
	if res := take(t, s, Imported{Put: []Entry{again}, Shares: shares(false)}); !slices.Equal(res.IDs, []string{"mem_c"}) {
		t.Errorf("not shared: %+v", res)
	}
	take(t, s, Imported{Put: []Entry{imported("c", "x", "mem_b")}})
	if b, c := statusOf(t, s, "mem_b"), statusOf(t, s, "mem_c"); b != memory.Archived || c != memory.Active {
		t.Errorf("b is %s, c %s", b, c)
	}
	// An item with a number behind its id is meant by that id.
	take(t, s, Imported{Put: []Entry{imported("d", "Tea is white.", "mem_a")}})
	take(t, s, Imported{Put: []Entry{imported("a", known.Item.Content, "")}})
	take(t, s, Imported{Archive: []Withdrawal{{"mem_a", "removed"}}})
	if got := statusOf(t, s, "mem_a_2"); got != memory.Archived {
		t.Errorf("a is %s", got)
	}
}

// same compares two stores by their items.
func same(t *testing.T, a, b *Store) {
	t.Helper()
	all := 0
	var lists [2]ListResult
	for i, s := range []*Store{a, b} {
		var err error
		if lists[i], err = s.List(context.Background(), ListRequest{Status: "all", Limit: &all}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lists[0].Items) != len(lists[1].Items) {
		t.Fatalf("%d and %d items", len(lists[0].Items), len(lists[1].Items))
	}
	for i, it := range lists[0].Items {
		if other := lists[1].Items[i]; it.ID != other.ID || it.Status != other.Status || it.Content != other.Content || it.Version != other.Version || it.SupersededBy != other.SupersededBy {
			t.Errorf("%+v is rebuilt as %+v", it, other)
		}
	}
}

func TestImportKeepsToTheCap(t *testing.T) {
	o := options(&memLog{})
	o.MaxItems = 2
	s, err := Open(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	take(t, s, Imported{Put: []Entry{imported("a", "one", ""), imported("b", "two", "")}})
	if res := take(t, s, Imported{Put: []Entry{imported("c", "three", "")}}); len(res.Overfull) != 1 {
		t.Errorf("%+v", res)
	}
}
