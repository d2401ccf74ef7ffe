package care

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Files of forgettings in an agent's memory directory.
const (
	forgettingName = "forgetting"      // directory of what is being forgotten: a file each, gone when it has ended
	forgettingLock = "forgetting.lock" // held, shared, by who forgets
	forgetLock     = "forget.lock"     // of the rewrite of the log
)

// forgetting is what goes with memories that are forgotten, until it has ended,
// whoever does it.
type forgetting struct {
	Target *erasure.Target `json:"target"`
	Told   []int64         `json:"told"`   // see working.Forgotten
	Quotes []string        `json:"quotes"` // needles of what they rested on
}

// newForgetting returns what goes where memories are forgotten: their words, in what
// was written down of them and in what took their place. What was said stays.
func newForgetting(gone working.Forgotten) forgetting {
	f := forgetting{Target: &erasure.Target{}, Told: gone.Told}
	for _, it := range gone.Items {
		f.Target.Items = append(f.Target.Items, erasure.Item{ID: it.ID, Handle: it.Handle})
		f.Target.Texts = append(f.Target.Texts, working.WordsOf(it)...)
		for _, ev := range it.Evidence {
			f.Quotes = append(f.Quotes, erasure.Needles(ev.Quote)...)
		}
	}
	for _, id := range gone.Heirs {
		f.Target.Cleaned = append(f.Target.Cleaned, erasure.Item{ID: id})
	}
	return f
}

// Forget lets do forget something, and then takes it out of all that follows memory.
// What goes is noted before, so that a forgetting that is killed is ended by
// EndForgetting. The caller keeps erasures out.
func (s *Erasure) Forget(ctx context.Context, agent memory.AgentID, do working.Forgets) (err error) {
	dir, err := s.Dir(agent)
	if errors.Is(err, memory.ErrNotFound) {
		_, err := do(ctx, nil) // which says what is not there
		return err
	}
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, "memory", forgettingLock), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryRLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "wait for what was being forgotten: %w", err)
	}
	note := ""
	gone, err := do(ctx, func(gone working.Forgotten) (err error) {
		note, err = begunForgetting(dir, gone)
		return err
	})
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // it is forgotten: the rest is not left half done
	if err := s.forgotten(ctx, agent, dir, newForgetting(gone)); err != nil {
		return memory.WithHint(fmt.Errorf("it is forgotten, but its words may still stand in what follows memory: %w", err), "it goes on at the next call")
	}
	if note == "" {
		return nil
	}
	return endedForgetting(note)
}

// begunForgetting notes what goes, and returns the file.
func begunForgetting(dir string, gone working.Forgotten) (string, error) {
	text, err := json.Marshal(newForgetting(gone))
	if err != nil {
		return "", err
	}
	notes := filepath.Join(dir, "memory", forgettingName)
	if err := os.MkdirAll(notes, 0o700); err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "note what is forgotten: %w", err)
	}
	path := filepath.Join(notes, hashOf(gone.Items[0].ID)[:32]+".json")
	if err := renameio.WriteFile(path, text, 0o600, renameio.WithTempDir(notes)); err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "note what is forgotten: %w", err)
	}
	return path, syncDir(notes)
}

// endedForgetting removes a note.
func endedForgetting(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return memory.Errorf(memory.ErrUnavailable, "end a forgetting: %w", err)
	}
	return nil
}

// Forgetting reports whether something in an agent's directory is being forgotten, or
// was by somebody who was killed.
func Forgetting(dir string) bool {
	notes, err := os.ReadDir(filepath.Join(dir, "memory", forgettingName))
	return err == nil && len(notes) > 0
}

// EndForgetting ends what somebody began to forget and was killed. While anybody
// forgets something it does nothing.
func (s *Erasure) EndForgetting(ctx context.Context, agent memory.AgentID) (err error) {
	dir, err := s.Dir(agent)
	if err != nil || !Forgetting(dir) {
		return err
	}
	lock := flock.New(filepath.Join(dir, "memory", forgettingLock), flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if mine, err := lock.TryLock(); err != nil || !mine {
		return err
	}
	notes := filepath.Join(dir, "memory", forgettingName)
	list, err := os.ReadDir(notes)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "look for what was being forgotten: %w", err)
	}
	for _, e := range list {
		path := filepath.Join(notes, e.Name())
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") { // half written: nothing was changed yet
			if err := endedForgetting(path); err != nil {
				return err
			}
			continue
		}
		if err := s.endForgetting(ctx, agent, dir, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Erasure) endForgetting(ctx context.Context, agent memory.AgentID, dir, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "go on with a forgetting: %w", err)
	}
	var f forgetting
	if err := json.Unmarshal(text, &f); err != nil || f.Target == nil || len(f.Target.Items) == 0 {
		return memory.WithHint(&memory.CorruptError{Path: path, Offset: -1, Reason: "it is no forgetting"}, "delete the file, and forget again")
	}
	store, release, err := s.Items(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	if err := store.CatchUp(ctx); err != nil {
		return err
	}
	now, err := store.Get(ctx, working.GetRequest{Handle: f.Target.Items[0].ID})
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return err
	}
	if err == nil && now.Item.Status == memory.Forgotten { // else it was killed before it was
		if err := s.forgotten(ctx, agent, dir, f); err != nil {
			return err
		}
	}
	return endedForgetting(path)
}

// forgotten takes what was forgotten out of what was written down of it. Doing it
// again does nothing.
func (s *Erasure) forgotten(ctx context.Context, agent memory.AgentID, dir string, f forgetting) error {
	f.Target.Prepare()
	if err := s.blot(ctx, agent, dir, f.Target, f.Told); err != nil {
		return err
	}
	if s.Follow == nil {
		return nil
	}
	told := &erasure.Target{Texts: append(f.Target.Texts, f.Quotes...)}
	told.Prepare()
	return s.Follow(ctx, agent, told)
}

// blot takes the words of forgotten memories out of their earlier changes in the event
// log, which keep their numbers, the ids, and those of what they rested on, and out of
// the database. told are the numbers of these changes, in ascending order; nil where
// they are not known, and all are looked at.
func (s *Erasure) blot(ctx context.Context, agent memory.AgentID, dir string, t *erasure.Target, told []int64) (err error) {
	// Two rewrites of one log at a time would not do.
	lock := flock.New(filepath.Join(dir, "memory", forgetLock), flock.SetPermissions(0o600))
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
	if err == nil && left.Count > 0 { // in free space, unless somebody else says it too
		_, err = rewrite(ctx, dir, func(path string) bool { return path == itemsFile })
	}
	return err
}

const lockPoll = 10 * time.Millisecond
