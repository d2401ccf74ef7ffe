package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestHomeReadsCreateNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home")
	h, err := NewHome(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Find("a"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Find = %v, want not found", err)
	}
	if ids, err := h.List(); err != nil || len(ids) != 0 {
		t.Errorf("List = %v, %v", ids, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("reading created the home")
	}
	d, err := h.Make("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, d.Path(), d.Path("memory")} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want mode 0700", p, st, err)
		}
	}
	if ids, err := h.List(); err != nil || len(ids) != 1 || ids[0] != "a" {
		t.Errorf("List = %v, %v", ids, err)
	}
}

func TestHomeRefusesLinks(t *testing.T) {
	path, other := t.TempDir(), t.TempDir()
	h, err := NewHome(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Make("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(path, "agents", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Make("b"); err == nil {
		t.Error("Make followed a link out of the home")
	}
	if _, err := h.Find("b"); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("Find = %v, want denied", err)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 0 {
		t.Errorf("the link's target holds %v, %v", entries, err)
	}
}

// thing counts how often it is open.
type thing struct{ open bool }

func TestPoolOpensOnceAndClosesIdle(t *testing.T) {
	var mu sync.Mutex
	opened, live := 0, 0
	p := NewPool(2, func(_ context.Context, a memory.AgentID) (*thing, error) {
		mu.Lock()
		defer mu.Unlock()
		opened++
		live++
		return &thing{open: true}, nil
	}, func(x *thing) error {
		mu.Lock()
		defer mu.Unlock()
		x.open = false
		live--
		return nil
	})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			x, release, err := p.Borrow(context.Background(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			mu.Lock()
			defer mu.Unlock()
			if !x.open {
				t.Error("lent a closed thing")
			}
		})
	}
	wg.Wait()
	if opened != 1 {
		t.Errorf("opened %d times, want once", opened)
	}
	for _, a := range []memory.AgentID{"b", "c", "d"} {
		_, release, err := p.Borrow(context.Background(), a)
		if err != nil {
			t.Fatal(err)
		}
		release()
		release() // a second call does nothing
	}
	if live != 2 {
		t.Errorf("%d open, want the cap of 2", live)
	}
	_, release, err := p.Borrow(context.Background(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Borrow(context.Background(), "a"); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Borrow after Close = %v", err)
	}
	release()
	if live != 0 {
		t.Errorf("%d still open after Close and release", live)
	}
}

func TestPoolTriesAgainAfterAFailure(t *testing.T) {
	fail := true
	p := NewPool(1, func(context.Context, memory.AgentID) (int, error) {
		if fail {
			return 0, memory.ErrNotFound
		}
		return 7, nil
	}, func(int) error { return nil })
	if _, _, err := p.Borrow(context.Background(), "a"); !errors.Is(err, memory.ErrNotFound) {
		t.Fatalf("Borrow = %v", err)
	}
	if p.Holds("a") {
		t.Error("the pool holds what could not be opened")
	}
	fail = false
	if v, release, err := p.Borrow(context.Background(), "a"); err != nil || v != 7 {
		t.Errorf("Borrow = %v, %v", v, err)
	} else {
		release()
	}
	if !p.Holds("a") || p.Holds("b") {
		t.Error("the pool does not know what it holds")
	}
}

// TestPoolDropsWhatIsSpent lends a thing that breaks while two have it, and opens
// another once both have given it back.
func TestPoolDropsWhatIsSpent(t *testing.T) {
	type thing struct{ broken, closed bool }
	opened := 0
	p := NewPool(4, func(context.Context, memory.AgentID) (*thing, error) { opened++; return &thing{}, nil },
		func(x *thing) error { x.closed = true; return nil })
	p.Drop(func(x *thing) bool { return x.broken })
	first, releaseFirst, err := p.Borrow(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	second, releaseSecond, err := p.Borrow(context.Background(), "a")
	if err != nil || second != first {
		t.Fatal("not the same", err)
	}
	first.broken = true
	releaseFirst()
	if first.closed {
		t.Fatal("closed while it was lent")
	}
	releaseSecond()
	if !first.closed {
		t.Fatal("not closed")
	}
	third, release, err := p.Borrow(context.Background(), "a")
	if err != nil || third == first || opened != 2 {
		t.Fatalf("opened %d times, %v", opened, err)
	}
	release()
	if err := p.Close(); err != nil || !third.closed {
		t.Fatal(err)
	}
}
