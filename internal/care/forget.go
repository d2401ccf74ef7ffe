package care

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Forgetting returns what goes where memories are forgotten: their words, in what was
// written down of them and in what took their place. What was said stays.
func Forgetting(gone working.Forgotten) *erasure.Target {
	t := &erasure.Target{}
	for _, it := range gone.Items {
		t.Items = append(t.Items, erasure.Item{ID: it.ID, Handle: it.Handle})
		t.Texts = append(t.Texts, working.WordsOf(it)...)
	}
	for _, id := range gone.Heirs {
		t.Cleaned = append(t.Cleaned, erasure.Item{ID: id})
	}
	t.Prepare()
	return t
}

// Blot takes the words of forgotten memories out of their earlier changes in the event
// log, which keep their numbers, the ids, and those of what they rested on. Doing it
// again does nothing. The caller keeps erasures out. told are the numbers of these
// changes, in ascending order; nil where they are not known, and all are looked at.
func (s *Erasure) Blot(ctx context.Context, agent memory.AgentID, t *erasure.Target, told []int64) (err error) {
	dir, err := s.Dir(agent)
	if err != nil {
		return err
	}
	// Two rewrites of one log at a time would not do.
	lock := flock.New(filepath.Join(dir, "memory", "forget.lock"), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "wait for another memory to be forgotten: %w", err)
	}
	_, err = events.Rewrite(ctx, filepath.Join(dir, "memory", "events"), s.Log, events.Edits{
		Seqs:  told,
		Wants: func(h *events.Head) bool { return isBook(h.Type) && t.InChange(h.Line) },
		Event: func(e *memory.Event) (bool, error) {
			carried, has := e.Metadata[memory.MetaChange]
			if !has {
				return false, nil
			}
			edited, changed, err := working.EditChange(carried, t)
			if changed {
				e.Metadata[memory.MetaChange] = edited
			}
			return changed, err
		},
	})
	if err != nil {
		return err
	}
	if _, err := s.purge(ctx, agent, t); err != nil {
		return err
	}
	left, _, err := count(ctx, filepath.Join(dir, itemsFile), t, 0, -1)
	if err == nil && left > 0 { // in free space, unless somebody else says it too
		_, err = rewrite(ctx, dir, func(path string) bool { return path == itemsFile })
	}
	return err
}

const lockPoll = 10 * time.Millisecond
