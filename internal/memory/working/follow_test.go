package working

import (
	"context"
	"errors"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// followAll reads all changes behind a mark, a few at a time, and returns the
// content that each item had when it was last seen.
func followAll(t *testing.T, s *Store, from Mark) (map[string]string, Mark) {
	t.Helper()
	seen := map[string]string{}
	for {
		got, err := s.ChangedSince(context.Background(), from, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range got.Items {
			seen[it.Handle] = it.Content
		}
		if from = got.Last; !got.More {
			return seen, from
		}
	}
}

func TestChangedSinceTellsEachChangeOnceAndNothingThatIsForgotten(t *testing.T) {
	ctx, log := context.Background(), &memLog{}
	dir := t.TempDir()
	s := open(t, dir, log)
	if seen, at := followAll(t, s, Mark{}); len(seen) != 0 || at != (Mark{}) {
		t.Fatalf("an empty store has changes: %v, %v", seen, at)
	}
	write(t, s, "tea", "The user likes green tea.")
	write(t, s, "dog", "The user's dog is called Rex.")
	secret := write(t, s, "pin", "The user hides the key under the mat.")
	if _, err := s.Forget(ctx, ForgetRequest{Handle: secret.Handle}); err != nil {
		t.Fatal(err)
	}
	seen, at := followAll(t, s, Mark{})
	if len(seen) != 3 || seen["MEM-1"] != "The user likes green tea." || seen["MEM-3"] != "" {
		t.Errorf("seen: %v", seen)
	}
	if again, same := followAll(t, s, at); len(again) != 0 || same != at {
		t.Errorf("told twice: %v", again)
	}
	write(t, s, "cat", "The user's cat is called Tom.")
	if more, _ := followAll(t, s, at); len(more) != 1 || more["MEM-4"] == "" {
		t.Errorf("after one more: %v", more)
	}
	items, err := s.ByID(ctx, []string{secret.ID, "mem_none"})
	if err != nil || len(items) != 1 || items[0].Status != memory.Forgotten {
		t.Errorf("by id: %v, %v", items, err)
	}
}

func TestChangedSinceRefusesAMarkOfAnotherStore(t *testing.T) {
	s := open(t, t.TempDir(), &memLog{})
	write(t, s, "tea", "The user likes green tea.")
	_, at := followAll(t, s, Mark{})
	for name, mark := range map[string]Mark{"later": {Seq: at.Seq + 5, Item: at.Item}, "another item": {Seq: at.Seq, Item: "mem_other"}} {
		if _, err := s.ChangedSince(context.Background(), mark, 10); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
