package flush

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// Serve drains what is queued, and queues what has fallen silent, until ctx ends.
// A model that hangs holds up its own agent only, and is let go when ctx ends.
func (q *Queue) Serve(ctx context.Context) {
	var drains sync.WaitGroup
	defer drains.Wait()
	room := make(chan struct{}, atOnce)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		ids, err := q.Agents()
		if err != nil {
			q.Log.Warn().Err(err).Msg("agents cannot be listed")
		}
		for _, agent := range ids {
			if err := q.Listen(ctx, agent); err != nil && ctx.Err() == nil {
				q.Log.Warn().Err(err).Str("agent", string(agent)).Msg("silent sessions not looked for")
			}
			if !q.waits(agent) || !q.begin(agent) {
				continue
			}
			drains.Go(func() {
				defer q.end(agent)
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-room }()
				if _, err := q.Drain(ctx, agent); err != nil && ctx.Err() == nil {
					q.Log.Warn().Err(err).Str("agent", string(agent)).Msg("what was said is not distilled yet")
				}
			})
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-q.poke:
		}
	}
}

func (q *Queue) begin(agent memory.AgentID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy[agent] {
		return false
	}
	q.busy[agent] = true
	return true
}

func (q *Queue) end(agent memory.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, agent)
}

// waits reports whether an agent's entry is to be drained now.
func (q *Queue) waits(agent memory.AgentID) bool {
	f, _, err := q.entry(agent)
	if err != nil || f == nil {
		return false
	}
	switch f.State {
	case vitals.FlushQueued:
		return true
	case vitals.FlushSkipped, vitals.FlushFailed:
		since := q.Now().Sub(f.Ended)
		return since >= retryAfter || since < 0 // the clock was set back
	}
	return false
}

// Drain distils what an agent's entry asks for, if it asks for anything now, and
// waits for it. Where another process is at it already, that is enough.
func (q *Queue) Drain(ctx context.Context, agent memory.AgentID) (ran bool, err error) {
	if !q.waits(agent) {
		return false, nil
	}
	err = q.Checkpoint(ctx, agent)
	if errors.Is(err, memory.ErrConflict) {
		return false, nil
	}
	return true, err
}

// silence is who has spoken last when in an agent's log, and is not distilled.
type silence struct {
	read memory.Cursor
	last map[string]spoken // by session
}

type spoken struct {
	seq int64
	at  time.Time
}

const readBlock = 2000 // events per read of the log

// Listen queues the sessions of an agent in which nothing was said for as long as
// the configuration says. It reads what the log has got since it was last called;
// of an agent that is idle it reads, and writes, nothing.
func (q *Queue) Listen(ctx context.Context, agent memory.AgentID) error {
	limit, err := q.Idle(agent)
	if err != nil || limit <= 0 {
		return err
	}
	log, release, err := q.Logs(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	last, err := log.LastSeq()
	if err != nil || last == 0 {
		return err
	}
	q.mu.Lock()
	s := q.heard[agent]
	q.mu.Unlock()
	if s == nil || s.read.Seq > last {
		if s, err = q.start(ctx, agent, last); err != nil {
			return err
		}
	}
	if err := s.follow(ctx, log, last, q.Now()); err != nil {
		return err
	}
	q.mu.Lock()
	q.heard[agent] = s
	q.mu.Unlock()
	return q.fallen(ctx, agent, s, limit)
}

// start begins where nothing is at stake any more.
func (q *Queue) start(ctx context.Context, agent memory.AgentID, last int64) (*silence, error) {
	s := &silence{last: map[string]spoken{}}
	if asked := q.Asked(agent); asked <= last {
		s.read.Seq = asked
	}
	if s.read.Seq == last {
		return s, nil
	}
	done, err := q.Distilled(ctx, agent)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return nil, err
	}
	s.read.Seq = max(s.read.Seq, min(done, last))
	return s, nil
}

// follow reads up to the event last. A time that has not come yet counts as now.
func (s *silence) follow(ctx context.Context, log *events.Reader, last int64, now time.Time) error {
	for s.read.Seq < last {
		batch, next, err := log.Read(ctx, s.read, readBlock)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, e := range batch {
			if told, _ := e.Metadata[memory.MetaTold].(bool); !e.Type.IsTurn() || e.RunID == "" && !told {
				continue // it was imported, and is not at stake for being old
			}
			at := e.Timestamp
			if at.After(now) {
				at = now
			}
			s.last[e.SessionID] = spoken{e.Seq, at}
		}
		s.read = next
	}
	return nil
}

// Leave queues, as a server ends, what was said lately and is not distilled: nobody
// may be there when it falls silent.
func (q *Queue) Leave(ctx context.Context) error {
	ids, err := q.Agents()
	if err != nil {
		return err
	}
	var failed error
	for _, agent := range ids {
		if err := q.leave(ctx, agent); err != nil {
			failed = errors.Join(failed, fmt.Errorf("agent %s: %w", agent, err))
		}
	}
	return failed
}

func (q *Queue) leave(ctx context.Context, agent memory.AgentID) error {
	if err := q.Listen(ctx, agent); err != nil {
		return err
	}
	q.mu.Lock()
	s := q.heard[agent]
	q.mu.Unlock()
	var upTo int64
	if s != nil {
		for _, said := range s.last {
			upTo = max(upTo, said.seq)
		}
	}
	if upTo == 0 {
		return nil
	}
	_, err := q.Ask(ctx, agent, vitals.EdgeShutdown, upTo)
	return err
}

// fallen queues what has fallen silent.
func (q *Queue) fallen(ctx context.Context, agent memory.AgentID, s *silence, limit time.Duration) error {
	var upTo int64
	for id, said := range s.last {
		if q.Now().Sub(said.at) < limit {
			continue
		}
		delete(s.last, id)
		upTo = max(upTo, said.seq)
	}
	if upTo == 0 {
		return nil
	}
	_, err := q.Ask(ctx, agent, vitals.EdgeIdle, upTo)
	return err
}
