// Package flush queues the distillation of what was said when a session comes to
// an edge: its turns are about to leave the model's window, it ends, or it falls
// silent. Nobody waits for it, since what was said is in the log and can be
// recalled at once.
//
// The queue is one entry per agent, in its vitals: a checkpoint distils everything
// that there is, so a second edge only moves the entry's end. The entry outlives
// the process that made it, and is taken up by whichever long-lived process looks
// next, by cron run --due, or by any checkpoint. That no two work on it at once,
// and that nothing is distilled twice, is the checkpoint's lease and cursor.
package flush

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

const (
	pollEvery  = 15 * time.Second // at least so often Serve looks
	retryAfter = 15 * time.Minute // a flush that was skipped or failed is tried again
	atOnce     = 4                // agents whose flushes run at the same time
	maxDetail  = 300              // bytes
)

// Options are what a Queue works with. All are required.
type Options struct {
	Agents func() ([]memory.AgentID, error)
	// Dir returns the agent's directory; ErrNotFound where it has none.
	Dir  func(memory.AgentID) (string, error)
	Logs memory.Borrow[*events.Reader]
	// Distilled returns the seq up to which everything is distilled or parked.
	Distilled func(context.Context, memory.AgentID) (int64, error)
	// Checkpoint distils what there is, and tells Settle how it ended.
	Checkpoint func(context.Context, memory.AgentID) error
	// Idle is how long a session is silent until it is distilled; 0 for never.
	Idle   func(memory.AgentID) (time.Duration, error)
	Redact interface{ Text(string) string }
	Now    func() time.Time
	Log    zerolog.Logger
}

// Queue queues flushes and drains them. It is safe for concurrent use.
type Queue struct {
	Options
	poke chan struct{} // something was queued here: look at once

	mu    sync.Mutex
	heard map[memory.AgentID]*silence
	busy  map[memory.AgentID]bool
}

// New returns a queue; it reads nothing yet.
func New(o Options) *Queue {
	return &Queue{Options: o, poke: make(chan struct{}, 1), heard: map[memory.AgentID]*silence{}, busy: map[memory.AgentID]bool{}}
}

// Asked returns the seq up to which flushes were asked for; 0 for never.
func (q *Queue) Asked(agent memory.AgentID) int64 {
	f, _, err := q.entry(agent)
	if err != nil || f == nil {
		return 0
	}
	return f.UpTo
}

// entry returns an agent's entry, nil for none, and its directory.
func (q *Queue) entry(agent memory.AgentID) (*vitals.Flush, string, error) {
	dir, err := q.Dir(agent)
	if err != nil {
		return nil, "", err
	}
	state, err := vitals.Read(dir)
	if errors.Is(err, memory.ErrCorrupt) {
		return nil, dir, nil // it is written anew by the next change
	}
	return state.Flush, dir, err
}

// Ask queues the distillation of everything up to an event, because a session has
// come to an edge. It reports whether that was news: what was asked for, or is
// distilled already, is not queued again. It does not wait for any of it.
func (q *Queue) Ask(ctx context.Context, agent memory.AgentID, why vitals.Edge, upTo int64) (queued bool, err error) {
	f, dir, err := q.entry(agent)
	if err != nil {
		return false, err
	}
	if covers(f, why, upTo) {
		return false, nil
	}
	if why != vitals.EdgeWindow { // where the turns in question have just been said
		done, err := q.Distilled(ctx, agent)
		switch {
		case errors.Is(err, memory.ErrNotFound), err == nil && done < upTo:
		case err == nil:
			return false, nil
		default: // the store is in trouble, which is no reason to forget the flush
			q.Log.Warn().Err(err).Str("agent", string(agent)).Msg("how far was distilled cannot be read")
		}
	}
	err = vitals.Update(ctx, dir, func(v *vitals.State) {
		if queued = !covers(v.Flush, why, upTo); !queued {
			return
		}
		if v.Flush == nil || v.Flush.State == vitals.FlushDone {
			v.Flush = &vitals.Flush{Asked: q.now(), State: vitals.FlushQueued}
		}
		v.Flush.Why, v.Flush.UpTo = why, upTo
	})
	if err != nil {
		return false, err
	}
	select {
	case q.poke <- struct{}{}:
	default: // it will look anyway
	}
	return queued, nil
}

// covers reports whether an entry says all that a request would. One that is done
// and reaches further than the log was brought back from elsewhere; what is
// distilled is then the measure.
func covers(f *vitals.Flush, why vitals.Edge, upTo int64) bool {
	return f != nil && f.UpTo >= upTo && (f.State != vitals.FlushDone || why == vitals.EdgeWindow)
}

func (q *Queue) now() time.Time { return q.Now().UTC().Truncate(time.Second) }

// Outcome is how a checkpoint ended.
type Outcome struct {
	Left      int64  // turns not dealt with
	Stopped   string // why it ended before everything was dealt with
	StoppedBy string // spend, model or asked
	Err       error
}

// Settle notes on an agent's entry how a checkpoint ended, whoever ran it. One
// that was interrupted, or found another running, leaves it as it is.
func (q *Queue) Settle(ctx context.Context, agent memory.AgentID, out Outcome) error {
	if interrupted(out.Err) || errors.Is(out.Err, memory.ErrConflict) {
		return nil
	}
	f, dir, err := q.entry(agent)
	if errors.Is(err, memory.ErrNotFound) || err == nil && (f == nil || f.State == vitals.FlushDone) {
		return nil
	}
	if err != nil {
		return err
	}
	done := f.UpTo
	if out.Left > 0 && out.Err == nil {
		if done, err = q.Distilled(ctx, agent); err != nil {
			return err
		}
	}
	return vitals.Update(context.WithoutCancel(ctx), dir, func(v *vitals.State) {
		if v.Flush == nil || v.Flush.State == vitals.FlushDone {
			return
		}
		next := *v.Flush
		switch {
		case out.Err != nil:
			next.State, next.Reason, next.Detail = vitals.FlushFailed, reason(out.Err), q.detail(out.Err.Error())
		case out.StoppedBy == vitals.ForSpend, out.StoppedBy == vitals.ForModel:
			next.State, next.Reason, next.Detail = vitals.FlushSkipped, out.StoppedBy, q.detail(out.Stopped)
		case v.Flush.UpTo <= done:
			next.State, next.Reason, next.Detail = vitals.FlushDone, "", ""
		default:
			return // more was asked for meanwhile, or there is more than was to be done
		}
		next.Ended = q.now()
		v.Flush = &next
	})
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// reason puts an error into one of the words that status shows.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, memory.ErrDenied), readOnly(err):
		return vitals.ForReadOnly
	default:
		return vitals.ForError
	}
}

func (q *Queue) detail(s string) string {
	s = q.Redact.Text(s)
	if len(s) <= maxDetail {
		return s
	}
	cut := maxDetail - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
