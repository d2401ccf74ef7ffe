package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Times of serving.
const (
	pollEvery  = 30 * time.Second // at least so often it looks at the file and the clocks
	leaseEvery = 5 * time.Second  // so often it tries to take the lease over
	stopGrace  = 5 * time.Second  // for runs to end after they were told to
	slack      = 2 * time.Second  // by which the clocks may drift apart between two looks
)

// Serve runs due jobs until ctx ends. Any number of processes of a home may
// serve: one of them holds the lease and runs the jobs, the others wait to take
// it over when it ends, however it ends. When ctx ends, runs are told to stop and
// given a few seconds.
func (s *Scheduler) Serve(ctx context.Context) error {
	for {
		unlock, taken, err := s.takeLease()
		if err != nil {
			s.Log.Error().Err(err).Msg("scheduler lease not to be had")
		}
		if taken {
			l := &loop{Scheduler: s, armed: map[string]arming{}}
			l.run(ctx)
			return unlock()
		}
		if !sleep(ctx, leaseEvery, nil) {
			return nil
		}
	}
}

// takeLease takes the lease if it is free. A home that does not exist yet has
// nothing to run, and is not created for it.
func (s *Scheduler) takeLease() (unlock func() error, taken bool, err error) {
	if _, err := os.Stat(filepath.Dir(s.Dir())); errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return s.store.tryLock(leaseLock)
}

// sleep waits for d, or until wake; it reports false when ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
	return ctx.Err() == nil
}

// loop is the holder of the lease at work.
type loop struct {
	*Scheduler
	armed map[string]arming // by job key
	said  string            // the last trouble, told once

	lastWall    time.Time // of the last look at both clocks; zero before the first
	lastElapsed time.Duration
}

// arming is when a job is due, as this process sees it.
type arming struct {
	of     basis         // what it was computed from
	wall   time.Time     // due when the clock shows this
	mono   time.Duration // due when this has elapsed, whatever the clock shows
	notYet time.Duration // after a start that failed: not before this has elapsed
}

// basis is what of a job decides when it is due.
type basis struct {
	schedule, zone string
	since          int64 // Unix nanoseconds
	starts         int64
}

// run starts what is due until ctx ends.
func (l *loop) run(ctx context.Context) {
	if err := l.settle(ctx); err != nil && ctx.Err() == nil {
		l.Log.Error().Err(err).Msg("interrupted jobs not marked")
	}
	l.lastWall, l.lastElapsed = l.store.lastSeen(), l.Elapsed()
	for {
		wait, err := l.tick(ctx)
		l.tell(ctx, err)
		if !sleep(ctx, wait, l.poke) {
			break
		}
	}
	l.drain()
}

// tell logs trouble with the jobs file when it is new.
func (l *loop) tell(ctx context.Context, err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if err != nil && said != l.said && ctx.Err() == nil {
		l.Log.Error().Err(err).Msg("trouble with the scheduled jobs")
	}
	l.said = said
}

// drain waits for runs that were told to stop, but not for ever.
func (l *loop) drain() {
	done := make(chan struct{})
	go func() {
		l.active.Wait()
		close(done)
	}()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		l.Log.Warn().Msg("a job does not stop; leaving it")
	}
}

// settle marks the runs whose process died as interrupted.
func (s *Scheduler) settle(ctx context.Context) error {
	if jobs, err := s.store.load(); len(jobs) == 0 {
		return err
	}
	_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
		changed := false
		for i := range *jobs {
			j := &(*jobs)[i]
			if j.Running == nil && !j.Stuck {
				continue
			}
			unlock, taken, err := s.store.tryLock(lockOf(j))
			if err != nil {
				return changed, err
			}
			if !taken {
				continue
			}
			changed = j.settle() || changed
			if err := unlock(); err != nil {
				return changed, err
			}
		}
		return changed, nil
	})
	return err
}

// tick starts what is due and returns how long to wait for what is next. Trouble
// with the file is returned after everything that could be started was.
func (l *loop) tick(ctx context.Context) (time.Duration, error) {
	now, elapsed := l.wall(), l.Elapsed()
	if err := l.follow(ctx, now, elapsed); err != nil {
		return l.poll, err
	}
	jobs, changed, trouble := l.jobs()
	if changed {
		var err error
		if jobs, err = l.store.update(ctx, l.adjust); err != nil {
			return l.poll, errors.Join(trouble, err)
		}
	}
	l.arm(jobs, now, elapsed)
	wait := l.poll
	for i := range jobs {
		j := &jobs[i]
		a, armed := l.armed[j.key()]
		if !armed {
			continue
		}
		if left := max(min(a.wall.Sub(now), a.mono-elapsed), a.notYet-elapsed); left > 0 {
			wait = min(wait, left)
			continue
		}
		wait = 0 // look again at once: its state has changed
		if err := l.launch(ctx, j, a); err != nil && ctx.Err() == nil {
			l.Log.Error().Err(err).Str("agent", string(j.Agent)).Str("job", j.Name).Msg("job not started")
			a.notYet = elapsed + l.poll
			l.armed[j.key()] = a
		}
	}
	return wait, trouble
}

// follow moves the past of interval jobs along with a clock that was set back,
// in this process or between the last one and this: what they still have to wait
// stays the same. Calendar jobs follow the new clock, and a clock that was set
// forward makes jobs due.
func (l *loop) follow(ctx context.Context, now time.Time, elapsed time.Duration) error {
	jump := now.Sub(l.lastWall) - (elapsed - l.lastElapsed)
	if !l.lastWall.IsZero() && jump < -slack {
		_, err := l.store.update(ctx, func(jobs *[]Job) (bool, error) {
			changed := false
			for i := range *jobs {
				changed = (*jobs)[i].shift(jump) || changed
			}
			return changed, nil
		})
		if err != nil {
			return fmt.Errorf("follow the clock, which was set back: %w", err)
		}
	}
	l.lastWall, l.lastElapsed = now, elapsed
	return l.store.see(now)
}

// arm brings the armings in line with the jobs. What is computed once stays,
// since a clock that jumps must not move it.
func (l *loop) arm(jobs []Job, now time.Time, elapsed time.Duration) {
	live := make(map[string]arming, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		if j.Paused {
			continue
		}
		of := basis{j.Schedule, j.Timezone, j.Since.UnixNano(), j.Starts}
		if a, same := l.armed[j.key()]; same && a.of == of {
			live[j.key()] = a
			continue
		}
		at, err := j.due(now)
		if err != nil || at.IsZero() {
			continue // decode has checked both; a calendar may still run out
		}
		live[j.key()] = arming{of: of, wall: at, mono: elapsed + max(at.Sub(now), 0)}
	}
	l.armed = live
}

// launch starts a job that is due. Where its last run has not returned it is
// skipped: counted, and due again at its next time.
func (l *loop) launch(ctx context.Context, j *Job, a arming) error {
	run := Run{Due: a.wall.UTC(), Started: l.wall(), Trigger: BySchedule}
	claimed, unlock, err := l.claim(ctx, j, run, func(now *Job) bool {
		// What is due as the process ends is left to the next one: once it is written
		// down as begun, nobody would make up for it.
		return ctx.Err() == nil && !now.Paused && now.Starts == j.Starts
	})
	switch {
	case errors.Is(err, errBusy):
		return l.skip(ctx, j, a)
	case errors.Is(err, errGone):
		return nil
	case err != nil:
		return err
	}
	last := j.LastStart
	l.active.Go(func() { l.perform(ctx, claimed, last, run, unlock) })
	return nil
}

// skip counts a run that did not start, and arms the job for its next time.
func (l *loop) skip(ctx context.Context, j *Job, a arming) error {
	tm, err := parseTiming(j.Schedule, j.Timezone)
	if err != nil {
		return err
	}
	now := l.wall()
	a.wall = tm.next(now)
	a.mono = l.Elapsed() + a.wall.Sub(now)
	l.armed[j.key()] = a
	_, err = l.change(ctx, j.Agent, j.Name, func(j *Job) error {
		j.Skipped++
		return nil
	})
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	return err
}
