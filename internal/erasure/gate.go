package erasure

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Work is something that reads what an agent remembers and writes it, or what was
// made of it, somewhere else later on. Work of all kinds goes on side by side;
// erasures and work keep each other out, here and in other processes.
type Work string

// The kinds of work, each with a lock of its own, so that an erasure can say what
// it waits for.
const (
	Turn   Work = "turn"   // a message to the agent, until its answer is written down
	Job    Work = "job"    // of the schedule
	Import Work = "import" // of a history, a workspace or an archive
	Follow Work = "follow" // graph and messages, which follow memory
	Files  Work = "files"  // of checkpoints
	Copy   Work = "copy"   // of the agent, to elsewhere: a backup, an export
)

var works = []struct {
	Work
	name string
}{
	{Turn, "a chat turn"}, {Job, "a scheduled job"}, {Import, "an import"}, {Follow, "the graph or a message that follows memory"}, {Files, "a checkpoint's file"}, {Copy, "a backup or an export"},
}

// Hold begins work on an agent, and waits for an erasure that is under way to end.
// The context that it returns is that of the work; done ends it.
type Hold func(ctx context.Context, agent memory.AgentID) (work context.Context, done func(), err error)

// Begin calls hold; a nil one keeps nobody out.
func (hold Hold) Begin(ctx context.Context, agent memory.AgentID) (work context.Context, done func(), err error) {
	if hold == nil {
		return ctx, func() {}, nil
	}
	return hold(ctx, agent)
}

const gatePoll = 5 * time.Millisecond

// inside is the key of contexts of work, and of erasures, in a directory.
type inside string

// Inside reports whether ctx is that of work, or of an erasure, in dir.
func Inside(ctx context.Context, dir string) bool { return ctx.Value(inside(dir)) != nil }

// Enter begins work in an agent's memory directory, which must exist. It waits for
// an erasure to end for as long as ctx lasts. Work within work, by the context
// that Enter returns, waits for nothing.
func Enter(ctx context.Context, dir string, w Work) (work context.Context, leave func() error, err error) {
	if Inside(ctx, dir) {
		return ctx, func() error { return nil }, nil
	}
	// Whoever waits for all work to end holds the gate, so that no more begins.
	gate, mine := newLock(dir, "gate"), newLock(dir, string(w))
	if _, err := gate.TryRLockContext(ctx, gatePoll); err != nil {
		return nil, nil, errors.Join(refused(ctx, err), gate.Close())
	}
	_, err = mine.TryRLockContext(ctx, gatePoll)
	if err != nil {
		err = errors.Join(refused(ctx, err), mine.Close())
	}
	if err = errors.Join(err, gate.Close()); err != nil {
		return nil, nil, errors.Join(err, mine.Close())
	}
	return context.WithValue(ctx, inside(dir), true), mine.Close, nil
}

func newLock(dir, name string) *flock.Flock {
	return flock.New(filepath.Join(dir, "erase-"+name+".lock"), flock.SetPermissions(0o600))
}

func refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for an erasure to end: %w", context.Cause(ctx))
	}
	return memory.Errorf(memory.ErrUnavailable, "begin work beside erasures: %w", err)
}

// Shut waits until nobody works in an agent's memory directory any more, and keeps
// all work out until open is called. What has not ended after patience is named in
// an ErrConflict. From within work, by its context, it is ErrConflict at once: it
// would wait for itself.
func Shut(ctx context.Context, dir string, patience time.Duration) (erasing context.Context, open func() error, err error) {
	if Inside(ctx, dir) {
		return nil, nil, memory.WithHint(memory.Errorf(memory.ErrConflict, "an erasure cannot be made from within a chat turn or a job"), "run openclawssy memory erase beside it")
	}
	var held []*flock.Flock
	open = func() error {
		var errs []error
		for _, l := range held {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	take := func(lock, name string) error {
		l := newLock(dir, lock)
		held = append(held, l)
		_, err := l.TryLockContext(waiting, gatePoll)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s to end: %w", name, context.Cause(ctx))
		case waiting.Err() != nil:
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s of this agent is under way, and could bring back what is erased; nothing has been erased", name),
				"wait for it to end, or end it, then erase again")
		}
		return memory.Errorf(memory.ErrUnavailable, "wait for %s to end: %w", name, err)
	}
	err = take("gate", "another erasure")
	for _, w := range works {
		if err == nil {
			err = take(string(w.Work), w.name)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, open())
	}
	return context.WithValue(ctx, inside(dir), true), open, nil
}
