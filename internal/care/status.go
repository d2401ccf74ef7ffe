// Package care looks after an agent's memory as a whole: what spans several
// stores.
package care

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Status is how one agent's memory is.
type Status struct {
	Agent          memory.AgentID `json:"agent"`
	Events         int64          `json:"events" jsonschema:"events in the log"`
	Backlog        int64          `json:"backlog" jsonschema:"turns not yet distilled"`
	Parked         int            `json:"parked" jsonschema:"ranges of events that could not be distilled yet"`
	Quarantine     int            `json:"quarantine" jsonschema:"items waiting for approval"`
	Items          int            `json:"items" jsonschema:"active items"`
	Gaps           int64          `json:"gaps" jsonschema:"sequence numbers of which no event is there"`
	Damage         int            `json:"damage" jsonschema:"damaged places in the log"`
	Dropped        int64          `json:"dropped" jsonschema:"events that this process could not take"`
	IndexLag       int64          `json:"index_lag" jsonschema:"events not yet searchable"`
	LastCheckpoint *time.Time     `json:"last_checkpoint"`
	Overdue        []string       `json:"overdue" jsonschema:"jobs that should have run"`
	Degraded       []string       `json:"degraded" jsonschema:"what is wrong, and what to do; empty if nothing is"`
}

// Failed reports whether anything is wrong.
func (s Status) Failed() bool { return len(s.Degraded) > 0 }

// Text shows the status to a person.
func (s Status) Text() string {
	last := "never"
	if s.LastCheckpoint != nil {
		last = s.LastCheckpoint.UTC().Format("2006-01-02 15:04 UTC")
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d events, %d items, %d in backlog, last checkpoint %s\n", s.Agent, s.Events, s.Items, s.Backlog, last)
	if s.IndexLag > 0 {
		fmt.Fprintf(&sb, "  %d events are not searchable yet; the next recall indexes them\n", s.IndexLag)
	}
	if s.Quarantine > 0 {
		fmt.Fprintf(&sb, "  %d in quarantine: memory list --status quarantined --agent %s\n", s.Quarantine, s.Agent)
	}
	for _, d := range s.Degraded {
		fmt.Fprintf(&sb, "  ! %s\n", d)
	}
	return sb.String()
}

// Statuses is how the memory of all agents is.
type Statuses struct {
	Home   string   `json:"home"`
	Agents []Status `json:"agents"`
}

// Failed reports whether anything is wrong with any agent.
func (s Statuses) Failed() bool {
	for _, a := range s.Agents {
		if a.Failed() {
			return true
		}
	}
	return false
}

// Text shows the statuses to a person.
func (s Statuses) Text() string {
	if len(s.Agents) == 0 {
		return s.Home + ": no agent has a memory yet. Start with: openclawssy chat\n"
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "home %s\n", s.Home)
	for _, a := range s.Agents {
		sb.WriteString(a.Text())
	}
	return sb.String()
}

// Jobs says which of an agent's scheduled jobs are overdue.
type Jobs func(ctx context.Context, agent memory.AgentID) (overdue []string, err error)

// Service answers for agents whose stores it borrows for reading.
type Service struct {
	logs     memory.Borrow[*events.Reader]
	items    memory.Borrow[*working.Store]
	archives memory.Borrow[*archive.Store]
	jobs     Jobs
	dropped  func(memory.AgentID) int64
}

// NewService returns the service. dropped counts what this process could not
// take for an agent.
func NewService(logs memory.Borrow[*events.Reader], items memory.Borrow[*working.Store], archives memory.Borrow[*archive.Store], jobs Jobs, dropped func(memory.AgentID) int64) *Service {
	return &Service{logs: logs, items: items, archives: archives, jobs: jobs, dropped: dropped}
}

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{op.New("memory.status", "Show how the whole memory is: log, backlog, index, jobs, and what is wrong.", op.Read,
		func(ctx context.Context, agent memory.AgentID, _ struct{}) (Status, error) {
			return s.Status(ctx, agent)
		})}
}

// All returns the status of every agent of a home, or of the one named.
func (s *Service) All(ctx context.Context, home agents.Home, only memory.AgentID) (Statuses, error) {
	out := Statuses{Home: home.Path(), Agents: []Status{}}
	ids, err := home.List()
	if err != nil {
		return out, err
	}
	if only != "" {
		ids = []memory.AgentID{only}
	}
	for i, id := range ids {
		op.Report(ctx, op.Progress{Done: int64(i), Total: int64(len(ids)), Unit: "agents"})
		st, err := s.Status(ctx, id)
		if err != nil {
			return out, err
		}
		out.Agents = append(out.Agents, st)
	}
	return out, nil
}

// Status reads the whole log and asks every store. A store that cannot be read
// is named in Degraded and is no error; an agent that has nothing is well.
func (s *Service) Status(ctx context.Context, agent memory.AgentID) (Status, error) {
	st := Status{Agent: agent, Overdue: []string{}, Degraded: []string{}, Dropped: s.dropped(agent)}
	for _, part := range []struct {
		name string
		look func(context.Context, memory.AgentID, *Status) error
	}{{"event log", s.log}, {"working memory", s.working}, {"archive", s.archive}, {"schedule", s.schedule}} {
		err := part.look(ctx, agent, &st)
		switch {
		case ctx.Err() != nil:
			return Status{}, ctx.Err()
		case err == nil, errors.Is(err, memory.ErrNotFound):
		default:
			st.add("the %s cannot be read: %v", part.name, err)
		}
	}
	if st.Dropped > 0 {
		st.add("%d events could not be taken and are lost: the disk is too slow or full", st.Dropped)
	}
	return st, nil
}

func (s *Status) add(format string, args ...any) {
	s.Degraded = append(s.Degraded, fmt.Sprintf(format, args...))
}

func (s *Service) log(ctx context.Context, agent memory.AgentID, st *Status) error {
	r, release, err := s.logs(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	rep, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	st.Events, st.Damage = rep.Lines, len(rep.Damage)
	for _, g := range rep.Gaps {
		st.Gaps += g.Last - g.First + 1
	}
	if st.Damage > 0 {
		d := rep.Damage[0]
		st.add("the event log is damaged in %d places, first in %s at byte %d: openclawssy events verify --agent %s", st.Damage, d.File, d.Offset, agent)
	}
	if st.Gaps > 0 {
		st.add("%d events are missing from the log, first seq %d", st.Gaps, rep.Gaps[0].First)
	}
	return nil
}

func (s *Service) working(ctx context.Context, agent memory.AgentID, st *Status) error {
	w, release, err := s.items(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	h, err := w.Health(ctx)
	if err != nil {
		return err
	}
	st.Backlog, st.Parked = h.Backlog, len(h.Parked)
	st.Items, st.Quarantine = h.Items[memory.Active], h.Items[memory.Quarantined]
	if h.LastApplied != nil {
		st.LastCheckpoint = &h.LastApplied.At
	}
	st.Degraded = append(st.Degraded, h.Degraded...)
	if st.Parked > 0 {
		st.add("%d ranges of events could not be distilled (%s): they are tried first at the next openclawssy memory checkpoint --agent %s", st.Parked, h.Parked[0].Reason, agent)
	}
	return nil
}

func (s *Service) archive(ctx context.Context, agent memory.AgentID, st *Status) error {
	a, release, err := s.archives(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	r, releaseLog, err := s.logs(ctx, agent)
	if err != nil {
		return err
	}
	defer releaseLog()
	last, err := r.LastSeq()
	if err != nil {
		return err
	}
	st.IndexLag, err = a.Lag(ctx, last)
	return err
}

func (s *Service) schedule(ctx context.Context, agent memory.AgentID, st *Status) error {
	overdue, err := s.jobs(ctx, agent)
	if err != nil {
		return err
	}
	st.Overdue = append(st.Overdue, overdue...)
	for _, name := range overdue {
		st.add("job %s is overdue and nothing runs the schedule: openclawssy serve, or openclawssy cron run --due", name)
	}
	return nil
}
