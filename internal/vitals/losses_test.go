package vitals

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestLossesAreNotedWhileTheProcessRuns(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var refused error
	l := &Losses{Now: time.Now, Log: zerolog.Nop(), Dir: func(memory.AgentID) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return dir, refused
	}}
	refuse := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		refused = err
	}
	var adding sync.WaitGroup
	for range 8 {
		adding.Go(func() {
			for range 50 {
				l.Add("a", LostEvents, 2)
			}
			l.Add("a", LostHooks, 1)
		})
	}
	adding.Wait()
	l.work.Wait()
	s, err := Read(dir)
	if err != nil || s.Lost == nil || s.Lost.Events != 800 || s.Hooks == nil || s.Hooks.Events != 8 || l.Waiting("a", LostEvents) != 0 {
		t.Fatalf("noted %+v and %+v, %d wait, %v", s.Lost, s.Hooks, l.Waiting("a", LostEvents), err)
	}

	refuse(memory.Errorf(memory.ErrUnavailable, "the disk is away"))
	l.Add("a", LostEvents, 3)
	l.work.Wait()
	if n := l.Waiting("a", LostEvents); n != 3 {
		t.Errorf("%d wait while the disk is away", n)
	}
	l.Add("a", LostEvents, 1)
	l.work.Wait()
	if n := l.Waiting("a", LostEvents); n != 4 {
		t.Errorf("%d wait while the disk is still away", n)
	}
	refuse(nil)
	l.Close()
	if s, err := Read(dir); err != nil || s.Lost.Events != 804 {
		t.Errorf("noted at the end: %+v, %v", s.Lost, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
