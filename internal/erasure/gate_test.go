package erasure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestGateKeepsWorkAndErasuresApart lets work of all kinds and erasures come and
// go, and counts who meets whom.
func TestGateKeepsWorkAndErasuresApart(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var working, erasing, together atomic.Int64
	var all sync.WaitGroup
	for _, w := range works {
		for range 3 {
			all.Go(func() {
				for range 8 {
					inner, leave, err := Enter(ctx, dir, w.Work)
					if err != nil {
						t.Error(err)
						return
					}
					working.Add(1)
					if erasing.Load() > 0 {
						together.Add(1)
					}
					if _, again, err := Enter(inner, dir, Follow); err != nil {
						t.Error(err)
					} else if err := again(); err != nil {
						t.Error(err)
					}
					working.Add(-1)
					if err := leave(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	for range 2 {
		all.Go(func() {
			for range 5 {
				inner, open, err := Shut(ctx, dir, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if erasing.Add(1) > 1 || working.Load() > 0 {
					together.Add(1)
				}
				if !Inside(inner, dir) || Inside(ctx, dir) {
					t.Error("the context of an erasure is not known as such")
				}
				erasing.Add(-1)
				if err := open(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := together.Load(); n > 0 {
		t.Errorf("%d times work and an erasure went on together", n)
	}
}

func TestShutSaysWhatIsUnderWay(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	inner, leave, err := Enter(ctx, dir, Import)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Shut(ctx, dir, time.Millisecond); !errors.Is(err, memory.ErrConflict) || memory.HintOf(err) == "" {
		t.Errorf("beside an import: %v", err)
	}
	if _, _, err := Shut(inner, dir, time.Hour); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("from within it: %v", err)
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	_, open, err := Shut(ctx, dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := Enter(ended, dir, Turn); !errors.Is(err, context.Canceled) {
		t.Errorf("work beside an erasure, by a context that has ended: %v", err)
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
}
