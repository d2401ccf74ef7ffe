package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Ops returns the operations this package offers.
func (s *Scheduler) Ops() []op.Op {
	return []op.Op{
		op.New("cron.add", "Add a scheduled job: an operation with its input, or a message to the agent.", op.Write, s.Add).
			WithExample(`{"name":"nightly","schedule":"30 2 * * *","op":"memory.checkpoint"}`),
		op.New("cron.list", "List the agent's scheduled jobs, when they are due, and how they ended lately.", op.Read, s.List),
		op.New("cron.delete", "Delete a scheduled job; the answer holds it whole, to add it again.", op.Write, s.Delete),
		op.New("cron.pause", "Pause a scheduled job.", op.Write, s.Pause),
		op.New("cron.resume", "Resume a paused job; what it missed is not made up for.", op.Write, s.Resume),
		op.New("cron.run", "Run a scheduled job now, or with due all that are overdue, and wait for the end.", op.Write, s.Run).
			WithExample(`{"name":"nightly"}`),
	}
}

// AddRequest is the input of cron.add.
type AddRequest struct {
	Name     string         `json:"name,omitempty" jsonschema:"of the job: a-z, 0-9, - _ and .; made from what it does if absent" cli:"arg"`
	Schedule string         `json:"schedule" jsonschema:"five fields (minute hour day-of-month month day-of-week), @hourly, @daily, @weekly, @monthly, or @every 6h"`
	Timezone string         `json:"timezone,omitempty" jsonschema:"IANA name such as Europe/Lisbon; UTC if absent"`
	Op       string         `json:"op,omitempty" jsonschema:"the operation to call, such as memory.checkpoint"`
	Input    map[string]any `json:"input,omitempty" jsonschema:"its input"`
	Message  string         `json:"message,omitempty" jsonschema:"instead of op: what to say to the agent; may be /tool memory.checkpoint {}"`
	Deadline string         `json:"deadline,omitempty" jsonschema:"of one run, such as 10m; as configured if absent"`
}

// JobStatus is a job and where it stands.
type JobStatus struct {
	Job
	Next    *time.Time `json:"next"` // when it is due; null for never (paused)
	Overdue bool       `json:"overdue"`
}

// JobResult is the output of operations on one job.
type JobResult struct {
	Job JobStatus `json:"job"`
}

// Listing is the output of cron.list.
type Listing struct {
	Agent   memory.AgentID `json:"agent"`
	Serving bool           `json:"serving"` // a process runs the schedule at this moment
	Jobs    []JobStatus    `json:"jobs"`    // by name; never null
	Trouble []string       `json:"trouble"` // damaged files that were set aside; never null
}

// NameRequest names a job.
type NameRequest struct {
	Name string `json:"name" jsonschema:"of the job" cli:"arg"`
}

// RunRequest is the input of cron.run.
type RunRequest struct {
	Name string `json:"name,omitempty" jsonschema:"of the job" cli:"arg"`
	Due  bool   `json:"due,omitempty" jsonschema:"run all jobs that are overdue instead"`
}

// Ran is a run of a named job.
type Ran struct {
	Name string `json:"name"`
	Run
}

// RunResult is the output of cron.run.
type RunResult struct {
	Agent memory.AgentID `json:"agent"`
	Runs  []Ran          `json:"runs"` // in the order of names; never null
}

// Add adds a job of the agent. Its operation and input are checked as a call of
// it would be, and redacted; one that destroys is refused.
func (s *Scheduler) Add(ctx context.Context, agent memory.AgentID, in AddRequest) (JobResult, error) {
	if in.Deadline == "" {
		in.Deadline = s.Deadline().String()
	}
	j := Job{Agent: agent, Name: in.Name, Schedule: in.Schedule, Timezone: in.Timezone, Op: in.Op, Input: in.Input, Message: in.Message,
		Deadline: in.Deadline, By: memory.Actor(ctx), Since: s.wall()}
	if in.Name == "" {
		j.Name = j.work()
	}
	if err := j.check(); err != nil {
		return JobResult{}, err
	}
	if err := s.checkWork(&j); err != nil {
		return JobResult{}, err
	}
	_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
		if _, err := s.adjust(jobs); err != nil {
			return false, err
		}
		taken := func() bool { return slices.ContainsFunc(*jobs, func(o Job) bool { return o.key() == j.key() }) }
		for n := 2; in.Name == "" && taken(); n++ {
			j.Name = fmt.Sprintf("%s-%d", j.work(), n)
		}
		if taken() {
			return false, memory.WithHint(memory.Errorf(memory.ErrConflict, "agent %s has a job %q already", agent, in.Name), "delete it first, or choose another name")
		}
		*jobs = append(*jobs, j)
		return true, nil
	})
	if err != nil {
		return JobResult{}, err
	}
	s.changed()
	return s.result(j)
}

// checkWork redacts what the job is to do and checks what is left.
func (s *Scheduler) checkWork(j *Job) error {
	if j.Message != "" {
		if s.Talker == nil {
			return &memory.FieldError{Field: "message", Reason: "cannot be said by this program", Hint: "give op instead"}
		}
		j.Message = s.Redact.Text(j.Message)
		if err := s.Talker.CheckMessage(j.Message); err != nil {
			return fmt.Errorf("message: %w", err)
		}
		return nil
	}
	o, err := s.schedulable(j.Op)
	if err != nil {
		return err
	}
	if j.Input != nil {
		clean, isObject := s.Redact.Value(j.Input).(map[string]any)
		if !isObject {
			return memory.Errorf(memory.ErrInternal, "redacted input of %s is no object", j.Op)
		}
		j.Input = clean
	}
	raw, err := j.input()
	if err != nil {
		return err
	}
	if err := o.Check(raw); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

// List returns the agent's jobs by name. It writes nothing: a default job that
// no process has seen yet is listed as it will be.
func (s *Scheduler) List(_ context.Context, agent memory.AgentID, _ struct{}) (Listing, error) {
	out := Listing{Agent: agent, Jobs: []JobStatus{}, Trouble: []string{}}
	all, _, err := s.jobs()
	if err != nil && (all == nil || !errors.Is(err, memory.ErrCorrupt)) {
		return out, err
	}
	if err != nil {
		out.Trouble = append(out.Trouble, err.Error())
	}
	aside, err := s.store.setAside()
	if err != nil {
		return out, err
	}
	for _, path := range aside {
		out.Trouble = append(out.Trouble, path+" was damaged and set aside; look at it, then delete it")
	}
	for _, j := range all {
		if j.Agent != agent {
			continue
		}
		r, err := s.result(j)
		if err != nil {
			return out, err
		}
		out.Jobs = append(out.Jobs, r.Job)
	}
	slices.SortFunc(out.Jobs, func(a, b JobStatus) int { return strings.Compare(a.Name, b.Name) })
	out.Serving, err = s.serving()
	return out, err
}

// serving reports whether some process holds the lease.
func (s *Scheduler) serving() (bool, error) {
	path := filepath.Join(s.Dir(), leaseLock)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		return false, memory.Errorf(memory.ErrUnavailable, "look at the scheduler's lease: %w", err)
	}
	return !free, lock.Unlock()
}

func (s *Scheduler) result(j Job) (JobResult, error) {
	if j.Runs == nil {
		j.Runs = []Run{}
	}
	status := JobStatus{Job: j}
	if j.Paused {
		return JobResult{status}, nil
	}
	now := s.wall()
	next, err := j.due(now)
	if err != nil {
		return JobResult{}, err
	}
	if !next.IsZero() {
		next = next.UTC()
		status.Next = &next
		status.Overdue = j.Running == nil && !j.Stuck && !next.After(now)
	}
	return JobResult{status}, nil
}

// Delete deletes a job of the agent. A default one is kept as configured and can
// only be paused.
func (s *Scheduler) Delete(ctx context.Context, agent memory.AgentID, in NameRequest) (JobResult, error) {
	var deleted Job
	_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
		if _, err := s.adjust(jobs); err != nil {
			return false, err
		}
		i := slices.IndexFunc(*jobs, func(j Job) bool { return j.Agent == agent && j.Name == in.Name })
		if i < 0 {
			return false, noJob(agent, in.Name)
		}
		deleted = (*jobs)[i]
		if deleted.Default {
			return false, memory.WithHint(memory.Errorf(memory.ErrConflict, "job %q is kept by the configuration", in.Name),
				"pause it, or turn memory.auto_checkpoint or memory.auto_maintenance off")
		}
		*jobs = slices.Delete(*jobs, i, i+1)
		return true, nil
	})
	if err != nil {
		return JobResult{}, err
	}
	s.changed()
	return s.result(deleted)
}

// Pause keeps a job from being started by the schedule.
func (s *Scheduler) Pause(ctx context.Context, agent memory.AgentID, in NameRequest) (JobResult, error) {
	return s.edit(ctx, agent, in.Name, func(j *Job) { j.Paused = true })
}

// Resume lets the schedule start a paused job again, counting from now.
func (s *Scheduler) Resume(ctx context.Context, agent memory.AgentID, in NameRequest) (JobResult, error) {
	return s.edit(ctx, agent, in.Name, func(j *Job) {
		if j.Paused {
			j.Paused, j.Since = false, s.wall()
		}
	})
}

func (s *Scheduler) edit(ctx context.Context, agent memory.AgentID, name string, edit func(*Job)) (JobResult, error) {
	if err := s.bringDefaults(ctx); err != nil {
		return JobResult{}, err
	}
	j, err := s.change(ctx, agent, name, func(j *Job) error {
		edit(j)
		return nil
	})
	if err != nil {
		return JobResult{}, err
	}
	s.changed()
	return s.result(j)
}

// bringDefaults writes default jobs that no process has seen yet, so that they
// can be changed.
func (s *Scheduler) bringDefaults(ctx context.Context) error {
	_, changed, err := s.jobs()
	if changed {
		_, err = s.store.update(ctx, s.adjust)
	}
	return err
}

// Run runs one job of the agent now, paused or not, or all that are overdue one
// after the other, and waits for them. A job that does not end well is an error;
// of several, all are run first.
func (s *Scheduler) Run(ctx context.Context, agent memory.AgentID, in RunRequest) (RunResult, error) {
	if (in.Name == "") != in.Due {
		return RunResult{}, &memory.FieldError{Field: "name", Reason: "must be given, or else due; not both", Hint: "openclawssy cron run --due runs all that are overdue"}
	}
	if err := s.bringDefaults(ctx); err != nil {
		return RunResult{}, err
	}
	listing, err := s.List(ctx, agent, struct{}{})
	if err != nil {
		return RunResult{}, err
	}
	out, found := RunResult{Agent: agent, Runs: []Ran{}}, in.Due
	var failed []error
	for _, j := range listing.Jobs {
		if in.Due && !j.Overdue || !in.Due && j.Name != in.Name {
			continue
		}
		found = true
		run, err := s.now(ctx, &j)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out.Runs = append(out.Runs, Ran{j.Name, run})
		if run.Outcome != Done {
			failed = append(failed, memory.Errorf(memory.ErrUnavailable, "job %s: %s: %s", j.Name, run.Outcome, run.Detail))
		}
	}
	if !found {
		return out, noJob(agent, in.Name)
	}
	if in.Due && s.Queued != nil {
		run, ran, err := s.drain(ctx, agent)
		if ran {
			out.Runs = append(out.Runs, Ran{queuedName, run})
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return out, errors.Join(failed...)
}

// queuedName stands among the runs for what was queued and is no job.
const queuedName = "flush"

// drain does what is queued for the agent.
func (s *Scheduler) drain(ctx context.Context, agent memory.AgentID) (run Run, ran bool, err error) {
	run = Run{Started: s.wall(), Trigger: ByHand, Outcome: Done}
	run.Due = run.Started
	if ran, err = s.Queued(ctx, agent); err != nil {
		run.Outcome, run.Detail = Failed, shorten(s.Redact.Text(err.Error()), maxDetail)
		err = fmt.Errorf("distil what was queued: %w", err)
	}
	ended := s.wall()
	run.Ended = &ended
	return run, ran, err
}

// now runs a job by hand and waits for it.
func (s *Scheduler) now(ctx context.Context, j *JobStatus) (Run, error) {
	run := Run{Started: s.wall(), Trigger: ByHand}
	run.Due = run.Started
	if j.Overdue {
		run.Due = *j.Next
	}
	claimed, unlock, err := s.claim(ctx, &j.Job, run, func(*Job) bool { return true })
	switch {
	case errors.Is(err, errBusy):
		return Run{}, memory.Errorf(memory.ErrConflict, "job %s: %w", j.Name, errBusy)
	case errors.Is(err, errGone):
		return Run{}, noJob(j.Agent, j.Name)
	case err != nil:
		return Run{}, err
	}
	return s.perform(ctx, claimed, j.LastStart, run, unlock), nil
}
