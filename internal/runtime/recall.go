package runtime

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// grace is how much longer than its deadline recall may take: for the clock and
// the scheduler of the machine.
const grace = 5 * time.Millisecond

// recall asks memory about the message and keeps the answer in the run's bundle.
// Where memory fails, or takes too long, the turn goes on without: that is
// counted and noted. The error is trouble with the bundle.
func (x *turn) recall(ctx context.Context) (block string, err error) {
	if x.log == nil || x.rt.Recall == nil {
		return "", nil
	}
	said := x.events[0]
	q := Query{Text: said.Text, Session: x.session.ID, Kind: x.session.Kind, Since: x.window.since(said.Seq), Now: x.now}
	got, err := x.rt.remember(ctx, x.Agent, q, time.Duration(x.cfg.Recall.DeadlineMS)*time.Millisecond)
	kept := runlog.Recall{Query: q.Text, Block: got.Block, Trace: got.Trace}
	if err != nil {
		x.rt.stats.recallFailed.Add(1)
		x.rt.Log.Warn().Err(err).Str("agent", string(x.Agent)).Msg("turn goes on without memory")
		x.res.Notes = append(x.res.Notes, "memory could not be asked: "+err.Error())
		kept.Failed = err.Error()
	}
	return got.Block, x.bundle.Recall(kept)
}

// remember is the recaller's answer within the deadline, come what may.
func (r *Runtime) remember(ctx context.Context, agent memory.AgentID, q Query, deadline time.Duration) (Recalled, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	type answer struct {
		got Recalled
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer cancel()
		defer func() {
			if v := recover(); v != nil {
				r.Log.Error().Str("agent", string(agent)).Bytes("stack", debug.Stack()).Msg("recall panicked")
				answered <- answer{err: memory.Errorf(memory.ErrInternal, "recall: panic: %v", v)}
			}
		}()
		got, err := r.Recall.Recall(ctx, agent, q)
		answered <- answer{got, err}
	}()
	timer := time.NewTimer(deadline + grace)
	defer timer.Stop()
	select {
	case a := <-answered:
		if a.err != nil {
			return Recalled{Trace: a.got.Trace}, a.err
		}
		return a.got, nil
	case <-timer.C:
		return Recalled{}, memory.Errorf(memory.ErrUnavailable, "recall did not answer within %v", deadline)
	}
}
