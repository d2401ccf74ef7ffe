// Package scheduler runs jobs by the clock: operations with a checked input, or
// messages said to an agent. Jobs outlive the program, and so does what is known
// of their runs. Whichever long-lived process holds the lease of a home runs
// them all; see Serve.
//
// What it promises: a run that started is on disk before it starts, so that a
// crash never makes it run twice; no two runs of one job overlap, in any process;
// a job that hangs hangs alone; what was missed while no process ran is caught
// up once; and a jump of the clock makes at most one run too many and none too
// few, because a job is due when the wall clock says so or when as much time as
// it had to wait has really passed, whichever is first.
package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// Talker says a message to an agent as a turn of the session, with the rights of
// the context's memory.Actor, and returns the answer. CheckMessage reports what
// Say would refuse before it runs.
type Talker interface {
	CheckMessage(message string) error
	Say(ctx context.Context, agent memory.AgentID, session, message string) (string, error)
}

// Redactor removes secrets from text, and from the strings and keys of a JSON
// value.
type Redactor interface {
	Text(string) string
	Value(any) any
}

// Hooks are told of runs: a weave.Recorder. RunStarts may take a moment, RunEnded
// returns at once; neither fails.
type Hooks interface {
	RunStarts(agent memory.AgentID)
	RunEnded(agent memory.AgentID, run weave.Run)
}

// Auto says which default jobs an agent has.
type Auto struct {
	Checkpoint  bool // memory.checkpoint, @every 6h
	Maintenance bool // memory.maintenance, 30 2 * * 0; only where the Catalog has it
	// Began returns when the agent's first event was written at the latest, zero for
	// none: schedules of default jobs count from then on, so that one is overdue although
	// no process that lasts has ever seen the agent. It is asked while the agent has no
	// such job yet. nil: they count from when they are first seen.
	Began func() time.Time
	// MessagesSince is since when a message waits to be sent or delivered: while one
	// does there is an agent.message.deliver, @every 10s. Zero for none.
	MessagesSince time.Time
}

// Options are what a Scheduler needs. All are required unless said otherwise.
type Options struct {
	Dir func() string // <home>/scheduler, known once the flags are read; created by the first write
	// Now is the wall clock, which may jump. Elapsed is the time since some
	// moment of the process, and never goes back.
	Now     func() time.Time
	Elapsed func() time.Duration

	Catalog  *op.Catalog
	Talker   Talker // nil: jobs with a message are refused
	Redact   Redactor
	Hooks    Hooks                // nil: nobody is told
	Deadline func() time.Duration // of a job that names none

	Agents func() ([]memory.AgentID, error)         // those that exist
	Auto   func(agent memory.AgentID) (Auto, error) // as configured
	Reads  memory.Borrow[*events.Reader]            // ErrNotFound: the agent has no log
	Writes memory.Borrow[*events.Log]               // ErrNotFound: nothing is to be recorded
	Audit  memory.Borrow[*runlog.Store]             // for writing
	// Queued does what waits for a process that lasts: a flush.Queue's Drain. It
	// reports whether there was anything. nil: nothing waits.
	Queued func(context.Context, memory.AgentID) (bool, error)
	// Hold keeps erasures of an agent out while a job of it runs, so that what the job
	// has read before is not written after; it may be nil.
	Hold erasure.Hold
	Log  zerolog.Logger
}

// Scheduler keeps and runs the jobs of a home. Make one with New. It is safe for
// concurrent use.
type Scheduler struct {
	Options
	store  *store
	poll   time.Duration  // pollEvery
	poke   chan struct{}  // the jobs changed: look again
	active sync.WaitGroup // runs of this process
}

// New returns a scheduler; it reads nothing and runs nothing yet.
func New(o Options) *Scheduler {
	return &Scheduler{Options: o, store: &store{dir: o.Dir, now: o.Now}, poll: pollEvery, poke: make(chan struct{}, 1)}
}

// wall returns what the clock shows, in UTC. A time.Time of a running process
// carries a second, monotonic reading, which would hide jumps of the clock from
// every comparison: it is cut off.
func (s *Scheduler) wall() time.Time { return s.Now().Round(0).UTC() }

// jobs returns the jobs of all agents as they should be now: with the default
// ones in line with the configuration. It writes nothing. Trouble with the file
// comes with the jobs where there are some all the same.
func (s *Scheduler) jobs() (jobs []Job, changed bool, err error) {
	jobs, damage := s.store.load()
	if damage != nil && jobs == nil {
		return nil, false, damage
	}
	changed, err = s.adjust(&jobs)
	return jobs, changed || damage != nil, errors.Join(damage, err)
}

// changed tells the loop of this process to look again.
func (s *Scheduler) changed() {
	select {
	case s.poke <- struct{}{}:
	default: // it will look anyway
	}
}
