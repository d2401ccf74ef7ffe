package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// Reasons not to start a job that is not trouble.
var (
	errBusy = errors.New("its last run has not returned")
	errGone = errors.New("the job was changed meanwhile")
)

// errDeadline is the cause of a context that a job's deadline ended.
var errDeadline = errors.New("the job's deadline passed")

// Limits of a run.
const (
	obeyWithin = time.Second      // a job that was cancelled should return within this
	writeLimit = 10 * time.Second // for writing down how a run ended
	maxDetail  = 300              // bytes of a run's detail
)

// claim takes the job's lock and writes down that it runs, if it still exists
// and still allows it. The caller must have it performed.
func (s *Scheduler) claim(ctx context.Context, j *Job, run Run, still func(*Job) bool) (Job, func() error, error) {
	unlock, taken, err := s.store.tryLock(lockOf(j))
	if err != nil {
		return Job{}, nil, err
	}
	if !taken {
		return Job{}, nil, errBusy
	}
	claimed, err := s.change(ctx, j.Agent, j.Name, func(now *Job) error {
		if !still(now) {
			return errGone
		}
		now.begin(run)
		return nil
	})
	if errors.Is(err, memory.ErrNotFound) {
		err = errGone
	}
	if err != nil {
		return Job{}, nil, errors.Join(err, unlock())
	}
	return claimed, unlock, nil
}

// change edits one job on disk; ErrNotFound where it is not there.
func (s *Scheduler) change(ctx context.Context, agent memory.AgentID, name string, edit func(*Job) error) (Job, error) {
	var edited Job
	_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
		i := slices.IndexFunc(*jobs, func(j Job) bool { return j.Agent == agent && j.Name == name })
		if i < 0 {
			return false, noJob(agent, name)
		}
		if err := edit(&(*jobs)[i]); err != nil {
			return false, err
		}
		edited = (*jobs)[i]
		return true, nil
	})
	return edited, err
}

func noJob(agent memory.AgentID, name string) error {
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "agent %s has no job %q", agent, name), "openclawssy cron list shows them")
}

// result is what a call came to.
type result struct {
	detail string
	err    error
}

// perform runs a claimed job within its deadline, writes down how it ended and
// gives its lock back. A job that does not return when it is told to keeps the
// lock until it does; perform does not wait for it.
//
// Where ctx ends before the job has begun, it is as if it had not been claimed: last
// is when it had started before that, and what was due is due still.
func (s *Scheduler) perform(ctx context.Context, j Job, last *time.Time, run Run, unlock func() error) Run {
	limit, err := j.deadline()
	if err != nil {
		limit = s.Deadline() // decode has checked it
	}
	own, cancel := context.WithTimeoutCause(ctx, limit, errDeadline)
	returned := make(chan result, 1)
	if s.Hooks != nil {
		s.Hooks.RunStarts(j.Agent)
	}
	before, hasLog := s.lastSeq(own, j.Agent)
	held, end, err := s.Hold.Begin(own, j.Agent)
	if err != nil && ctx.Err() != nil { // the process ends before the job has begun
		run = s.ended(own, run, result{err: err}, true)
		s.leave(ctx, &j, last)
		if s.Hooks != nil {
			s.Hooks.RunEnded(j.Agent, weave.Run{Delegator: string(j.Agent), Name: j.Name, Does: j.work(), Trigger: run.Trigger, Outcome: string(run.Outcome), Output: run.Detail, Idle: true})
		}
		cancel()
		s.unlock(&j, unlock)
		return run
	}
	if err != nil {
		returned <- result{err: err}
		end = func() {}
	} else {
		go func() { returned <- s.call(held, &j) }()
	}
	r, back := await(own, returned)
	run = s.ended(own, run, r, back)
	after, _ := s.lastSeq(context.WithoutCancel(own), j.Agent)
	s.note(ctx, &j, run, !back)
	if hasLog && (run.Outcome != Done || after != before) {
		s.record(ctx, &j, run)
	}
	if s.Hooks != nil {
		s.Hooks.RunEnded(j.Agent, weave.Run{Delegator: string(j.Agent), Name: j.Name, Does: j.work(), Trigger: run.Trigger, Outcome: string(run.Outcome), Output: cmp.Or(s.Redact.Text(r.detail), run.Detail),
			OK: run.Outcome == Done, Idle: after == before})
	}
	if back {
		end()
		cancel()
		s.unlock(&j, unlock)
		return run
	}
	s.active.Go(func() {
		<-returned
		end()
		cancel()
		s.note(ctx, &j, run, false)
		s.unlock(&j, unlock)
	})
	return run
}

// await waits for the call, and a moment longer than its context lasts. It
// reports false where the call has not returned.
func await(ctx context.Context, returned <-chan result) (result, bool) {
	select {
	case r := <-returned:
		return r, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(obeyWithin)
	defer timer.Stop()
	select {
	case r := <-returned:
		return r, true
	case <-timer.C:
		return result{err: ctx.Err()}, false
	}
}

// ended completes a run.
func (s *Scheduler) ended(ctx context.Context, run Run, r result, back bool) Run {
	now := s.wall()
	run.Ended = &now
	var panicked *panicError
	switch {
	case r.err == nil:
		run.Outcome = Done
	case errors.As(r.err, &panicked):
		run.Outcome = Panicked
	case errors.Is(context.Cause(ctx), errDeadline):
		run.Outcome = TimedOut
	case ctx.Err() != nil:
		run.Outcome = Stopped
	default:
		run.Outcome = Failed
	}
	if r.err != nil {
		r.detail = r.err.Error()
	}
	if !back {
		r.detail = "it was told to stop and has not returned"
	}
	run.Detail = shorten(s.Redact.Text(r.detail), maxDetail)
	return run
}

// panicError is a panic of a job.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// call does what the job is for.
func (s *Scheduler) call(ctx context.Context, j *Job) (r result) {
	defer func() {
		if v := recover(); v != nil {
			p := &panicError{value: v, stack: debug.Stack()}
			s.Log.Error().Str("agent", string(j.Agent)).Str("job", j.Name).Bytes("stack", p.stack).Msg("job panicked")
			r = result{err: p}
		}
	}()
	ctx = memory.WithActor(ctx, j.By)
	if j.Message != "" {
		if s.Talker == nil {
			return result{err: memory.Errorf(memory.ErrUnavailable, "job %s: this program cannot talk to agents", j.Name)}
		}
		answer, err := s.Talker.Say(ctx, j.Agent, "cron:"+j.Name, j.Message)
		return result{answer, err}
	}
	o, err := s.schedulable(j.Op)
	if err != nil {
		return result{err: err}
	}
	raw, err := j.input()
	if err != nil {
		return result{err: err}
	}
	out, err := o.Call(ctx, j.Agent, raw)
	if err != nil {
		return result{err: err}
	}
	text, err := json.Marshal(out)
	return result{string(text), err}
}

// schedulable returns an operation that a job may call: one that destroys needs
// a person beside it, unless it is made to run without.
func (s *Scheduler) schedulable(name string) (op.Op, error) {
	o, err := s.Catalog.Get(name)
	if err != nil {
		return op.Op{}, err
	}
	if denied(o) {
		return op.Op{}, memory.Errorf(memory.ErrDenied, "%s removes what cannot be brought back; it is never scheduled", name)
	}
	return o, nil
}

func denied(o op.Op) bool { return o.Effect == op.Destroy && !o.Unattended }

// note writes down on the job how its run ended: once when it ended or was given
// up, and, where it was given up, again when it returned.
func (s *Scheduler) note(ctx context.Context, j *Job, run Run, stuck bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := s.change(ctx, j.Agent, j.Name, func(now *Job) error {
		if now.Running == nil {
			now.Stuck = stuck // it was given up before, and has returned
			return nil
		}
		now.end(run, stuck)
		return nil
	})
	if err != nil && !errors.Is(err, memory.ErrNotFound) { // it may have been deleted meanwhile
		s.Log.Error().Err(err).Str("agent", string(j.Agent)).Str("job", j.Name).Msg("end of a job not written down")
	}
}

// leave takes back what claim wrote down.
func (s *Scheduler) leave(ctx context.Context, j *Job, last *time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	_, err := s.change(ctx, j.Agent, j.Name, func(now *Job) error {
		now.Running, now.LastStart = nil, last
		return nil
	})
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		s.Log.Error().Err(err).Str("agent", string(j.Agent)).Str("job", j.Name).Msg("a job that did not begin is written down as begun")
	}
}

func (s *Scheduler) unlock(j *Job, unlock func() error) {
	if err := unlock(); err != nil {
		s.Log.Error().Err(err).Str("agent", string(j.Agent)).Str("job", j.Name).Msg("lock of a job not given back")
	}
}

// lastSeq returns where the agent's event log ends, and whether it has one.
func (s *Scheduler) lastSeq(ctx context.Context, agent memory.AgentID) (int64, bool) {
	log, release, err := s.Reads(ctx, agent)
	if err != nil {
		if !errors.Is(err, memory.ErrNotFound) && ctx.Err() == nil {
			s.Log.Error().Err(err).Str("agent", string(agent)).Msg("event log not to be read")
		}
		return 0, false
	}
	defer release()
	seq, err := log.LastSeq()
	if err != nil {
		s.Log.Error().Err(err).Str("agent", string(agent)).Msg("event log not to be read")
	}
	return seq, err == nil
}

// record adds a scheduler_run event to the agent's log and, for an operation, a
// line to its audit log. It is called only for a run that added events or did not
// end well: a job that finds nothing to do leaves no trace but its own state, or
// an idle agent's log would grow for ever.
func (s *Scheduler) record(ctx context.Context, j *Job, run Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if err := errors.Join(s.recordEvent(ctx, j, run), s.recordAudit(ctx, j, run)); err != nil {
		s.Log.Error().Err(err).Str("agent", string(j.Agent)).Str("job", j.Name).Msg("scheduled run not recorded")
	}
}

func (s *Scheduler) recordEvent(ctx context.Context, j *Job, run Run) error {
	log, release, err := s.Writes(ctx, j.Agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("record scheduled run: %w", err)
	}
	defer release()
	does := j.Op
	if does == "" {
		does = "message"
	}
	text := fmt.Sprintf("scheduled job %s (%s): %s", j.Name, does, run.Outcome)
	if run.Outcome != Done {
		text += ": " + run.Detail
	}
	_, err = log.Write(ctx, memory.Event{Type: memory.SchedulerRun, Origin: memory.OriginSystem, Text: text, Timestamp: run.Started,
		Metadata: map[string]any{"job": j.Name, "op": j.Op, "trigger": run.Trigger, "outcome": string(run.Outcome), "ms": run.Ended.Sub(run.Started).Milliseconds()}})
	if err != nil {
		return fmt.Errorf("record scheduled run: %w", err)
	}
	return nil
}

// recordAudit notes the call of an operation; a message's calls are noted where
// they are made.
func (s *Scheduler) recordAudit(ctx context.Context, j *Job, run Run) error {
	if j.Op == "" {
		return nil
	}
	store, release, err := s.Audit(ctx, j.Agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit scheduled run: %w", err)
	}
	defer release()
	e := runlog.Entry{Op: j.Op, Caller: runlog.CallerCron, Session: "cron:" + j.Name, Decision: runlog.Allow, Outcome: string(run.Outcome),
		Millis: run.Ended.Sub(run.Started).Milliseconds()}
	if run.Outcome != Done {
		e.Error = run.Detail
	}
	o, err := s.Catalog.Get(j.Op)
	switch {
	case err != nil: // it was taken out since; the outcome says so
	case denied(o):
		e.Effect, e.Decision = o.Effect, runlog.Deny
	default:
		e.Effect = o.Effect
	}
	return store.Audit(e)
}

// shorten cuts s to at most limit bytes, between characters.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
