package vitals

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Loss says what was lost.
type Loss string

// The losses.
const (
	LostEvents Loss = "events" // they could not be taken into the log, and are not remembered
	LostHooks  Loss = "hooks"  // what happened could not be written into the graph's record of it
)

// Losses notes in agents' vitals what a running process loses, as it happens, so
// that other processes see it. It is safe for concurrent use, and nobody who adds
// waits for the disk.
type Losses struct {
	// Dir returns an agent's directory.
	Dir func(memory.AgentID) (string, error)
	Now func() time.Time
	Log zerolog.Logger

	mu      sync.Mutex
	fresh   map[lossKey]int64 // to be written
	writing map[lossKey]int64
	stuck   map[lossKey]int64 // could not be written: tried again with the next one, and by Close
	running bool
	work    sync.WaitGroup
}

type lossKey struct {
	agent memory.AgentID
	what  Loss
}

// Add counts n more losses of an agent, and has them noted.
func (l *Losses) Add(agent memory.AgentID, what Loss, n int64) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh == nil {
		l.fresh = map[lossKey]int64{}
	}
	l.fresh[lossKey{agent, what}] += n
	l.write()
}

// Waiting counts what of an agent's losses is not in its vitals yet.
func (l *Losses) Waiting(agent memory.AgentID, what Loss) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := lossKey{agent, what}
	return l.fresh[k] + l.writing[k] + l.stuck[k]
}

// Close tries once more what could not be noted, and waits for it. Add must not be
// called any more.
func (l *Losses) Close() {
	l.work.Wait()
	l.mu.Lock()
	l.fresh, l.stuck = l.stuck, nil
	l.write()
	l.mu.Unlock()
	l.work.Wait()
}

// write sees that somebody writes. The lock is held.
func (l *Losses) write() {
	if !l.running && len(l.fresh) > 0 {
		l.running = true
		l.work.Go(l.drain)
	}
}

// drain writes until nothing new is there.
func (l *Losses) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.fresh) > 0 {
		l.writing, l.fresh = l.fresh, map[lossKey]int64{}
		for k := range l.writing {
			l.writing[k] += l.stuck[k]
			delete(l.stuck, k)
			n := l.writing[k]
			l.mu.Unlock()
			err := l.note(k, n)
			l.mu.Lock()
			delete(l.writing, k)
			if err == nil {
				continue
			}
			if l.stuck == nil {
				l.stuck = map[lossKey]int64{}
			}
			l.stuck[k] += n
			l.Log.Error().Err(err).Str("agent", string(k.agent)).Int64(string(k.what), n).Msg("losses not noted")
		}
	}
	l.running = false
}

func (l *Losses) note(k lossKey, n int64) error {
	dir, err := l.Dir(k.agent)
	if err != nil {
		return err
	}
	return Update(context.Background(), dir, func(s *State) {
		of := &s.Lost
		if k.what == LostHooks {
			of = &s.Hooks
		}
		if *of == nil {
			*of = &Lost{}
		}
		(*of).Events += n
		(*of).Last = l.Now().UTC()
	})
}
