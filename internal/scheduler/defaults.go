package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// defaultJob is a job that every agent has if its configuration says so.
type defaultJob struct {
	op, schedule string
	wanted       func(Auto) bool
	since        func(Auto) time.Time // when its schedule begins to count; nil for with the agent
}

// defaultJobs lists them; a job has the name of its operation.
var defaultJobs = []defaultJob{
	{op: "memory.checkpoint", schedule: "@every 6h", wanted: func(a Auto) bool { return a.Checkpoint }},
	{op: "memory.maintenance", schedule: "30 2 * * 0", wanted: func(a Auto) bool { return a.Maintenance }},
	// There only while something is due, so that an idle agent costs nothing.
	{op: "agent.message.deliver", schedule: "@every 10s", wanted: func(a Auto) bool { return !a.MessagesSince.IsZero() }, since: func(a Auto) time.Time { return a.MessagesSince }},
}

// adjust adds the default jobs that are missing and takes out those that are no
// longer wanted, unless they run. A job of that name that somebody added stands.
// It reports whether it changed anything.
func (s *Scheduler) adjust(jobs *[]Job) (bool, error) {
	agents, err := s.Agents()
	if err != nil {
		return false, fmt.Errorf("default jobs: %w", err)
	}
	wanted, began := map[string]Job{}, map[memory.AgentID]func() time.Time{}
	for _, agent := range agents {
		auto, err := s.Auto(agent)
		if err != nil {
			return false, fmt.Errorf("default jobs of %s: %w", agent, err)
		}
		began[agent] = auto.Began
		for _, d := range defaultJobs {
			if _, err := s.Catalog.Get(d.op); err != nil || !d.wanted(auto) {
				continue
			}
			j := Job{Agent: agent, Name: d.op, Op: d.op, Schedule: d.schedule, Deadline: s.Deadline().String(), By: memory.OriginSystem,
				Default: true}
			if d.since != nil {
				j.Since = d.since(auto)
			}
			wanted[j.key()] = j
		}
	}
	before := len(*jobs)
	*jobs = slices.DeleteFunc(*jobs, func(j Job) bool {
		_, stays := wanted[j.key()]
		delete(wanted, j.key())
		return j.Default && !stays && j.Running == nil
	})
	changed := len(*jobs) != before || len(wanted) > 0
	for _, j := range wanted {
		if j.Since.IsZero() {
			j.Since = s.beginning(began[j.Agent])
		}
		*jobs = append(*jobs, j)
	}
	return changed, nil
}

// beginning is from when on the schedules of an agent's default jobs count: now, or
// since the agent began.
func (s *Scheduler) beginning(began func() time.Time) time.Time {
	now := s.wall()
	if began == nil {
		return now
	}
	if at := began(); !at.IsZero() && at.Before(now) {
		return at.UTC()
	}
	return now
}
