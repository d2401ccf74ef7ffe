// Package care looks after an agent's memory as a whole: what spans several
// stores.
package care

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/spend"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// Status is how one agent's memory is.
type Status struct {
	Agent          memory.AgentID `json:"agent"`
	Events         int64          `json:"events" jsonschema:"events in the log"`
	LastEvent      *time.Time     `json:"last_event"`
	Backlog        int64          `json:"backlog" jsonschema:"turns not yet distilled"`
	Parked         int            `json:"parked" jsonschema:"ranges of events that could not be distilled yet"`
	Quarantine     int            `json:"quarantine" jsonschema:"items waiting for approval"`
	Items          int            `json:"items" jsonschema:"active items"`
	Gaps           int64          `json:"gaps" jsonschema:"sequence numbers of which no event is there"`
	Damage         int            `json:"damage" jsonschema:"damaged places in the log"`
	Dropped        int64          `json:"dropped" jsonschema:"events that were taken and could not be written, or refused because the disk was too slow"`
	HooksDropped   int64          `json:"hooks_dropped" jsonschema:"things that happened and are missing from the graph's record; memory is whole without them"`
	IndexLag       int64          `json:"index_lag" jsonschema:"events not yet searchable"`
	LastCheckpoint *time.Time     `json:"last_checkpoint"`
	Canary         *vitals.Canary `json:"canary" jsonschema:"the last probe that wrote an event and recalled it"`
	Flush          *vitals.Flush  `json:"flush" jsonschema:"the last time that a session came to an edge"`
	Spend          *spend.Day     `json:"spend" jsonschema:"what the agent's models have cost today"`
	Embeddings     *Embeddings    `json:"embeddings" jsonschema:"the vectors that search by meaning goes by"`
	Overdue        []string       `json:"overdue" jsonschema:"jobs that should have run"`
	NextJobs       []NextJob      `json:"next_jobs"`
	Problems       []Problem      `json:"problems" jsonschema:"what is wrong; empty if nothing is"`
	Degraded       []string       `json:"degraded" jsonschema:"the same in words"`
	DegradedSince  *time.Time     `json:"degraded_since" jsonschema:"when the first of the problems was noticed; null if there is none"`
}

// Problem is something that is wrong.
type Problem struct {
	Code  string    `json:"code" jsonschema:"a word for it, such as event_log"`
	Text  string    `json:"text" jsonschema:"what is wrong, and what to do"`
	Since time.Time `json:"since" jsonschema:"when it was noticed first"`
}

// Embeddings is how an agent's vectors are.
type Embeddings meaning.Health

// NextJob is when a scheduled job is due.
type NextJob struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Failed reports whether anything is wrong.
func (s Status) Failed() bool { return len(s.Problems) > 0 }

const minute = "2006-01-02 15:04 UTC"

func moment(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(minute)
}

// Text shows the status to a person.
func (s Status) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d events, last %s; %d items, %d in backlog, last checkpoint %s\n", s.Agent, s.Events, moment(s.LastEvent), s.Items, s.Backlog, moment(s.LastCheckpoint))
	if s.IndexLag > 0 {
		fmt.Fprintf(&sb, "  %d events are not searchable yet; the next recall indexes them\n", s.IndexLag)
	}
	if s.Quarantine > 0 {
		fmt.Fprintf(&sb, "  %d in quarantine: memory list --status quarantined --agent %s\n", s.Quarantine, s.Agent)
	}
	if s.Spend != nil && s.Spend.Used.Calls > 0 {
		fmt.Fprintf(&sb, "  spent today: %d of %s calls, %d of %s tokens\n", s.Spend.Used.Calls, bound(s.Spend.Limits.DailyCalls), s.Spend.Used.Tokens(), bound(s.Spend.Limits.DailyTokens))
	}
	if s.Flush != nil && s.Flush.State == vitals.FlushQueued && s.Backlog > 0 {
		fmt.Fprintf(&sb, "  what was said up to event %d waits to be distilled: openclawssy serve or chat does it, or cron run --due\n", s.Flush.UpTo)
	}
	if s.Dropped > 0 {
		fmt.Fprintf(&sb, "  %d events were lost so far\n", s.Dropped)
	}
	if s.HooksDropped > 0 {
		fmt.Fprintf(&sb, "  %d things that happened are missing from the graph's record of them: too many at once, or it could not be written\n", s.HooksDropped)
	}
	if s.Canary != nil && s.Canary.Ok {
		fmt.Fprintf(&sb, "  last canary %s: written and recalled within %d ms\n", moment(&s.Canary.At), s.Canary.Millis)
	}
	if s.Embeddings != nil && s.Embeddings.Texts > 0 {
		sb.WriteString(s.Embeddings.line(s.Agent))
	}
	for _, j := range s.NextJobs {
		fmt.Fprintf(&sb, "  next %s: %s\n", j.Name, moment(&j.At))
	}
	for _, p := range s.Problems {
		fmt.Fprintf(&sb, "  ! %s (since %s)\n", p.Text, moment(&p.Since))
	}
	return sb.String()
}

// line says it in one line.
func (e Embeddings) line(agent memory.AgentID) string {
	switch {
	case e.Model == "":
		return ""
	case e.Missing > 0 && !e.Ready:
		return fmt.Sprintf("  search by meaning: not yet, %d of %d texts have a vector of %s; openclawssy serve makes them, or memory reembed --agent %s\n", e.Have, e.Texts, e.Model, agent)
	case e.Missing > 0:
		return fmt.Sprintf("  search by meaning: %s, %d of %d texts wait for a vector\n", e.Model, e.Missing, e.Texts)
	}
	return fmt.Sprintf("  search by meaning: %s, %d texts\n", e.Model, e.Have)
}

// embeddings looks at the vectors. A model that cannot be asked is a problem, as
// are more vectors than a turn has time for; vectors that are still being made are
// none.
func (s *Service) embeddings(ctx context.Context, agent memory.AgentID, st *Status) error {
	e, err := s.Embeddings(ctx, agent)
	if err != nil {
		return err
	}
	st.Embeddings = &e
	st.Problems = append(st.Problems, e.problems()...)
	return nil
}

// problems says what is wrong with vectors.
func (e Embeddings) problems() []Problem {
	var out []Problem
	if e.Failure != "" {
		out = append(out, Problem{Code: "embeddings", Text: fmt.Sprintf("%d texts have no vector of %s: %s; they are found by their words meanwhile", e.Missing, e.Model, e.Failure)})
	}
	if e.Slow {
		out = append(out, Problem{Code: "embeddings_slow", Text: fmt.Sprintf("%d vectors are more than can be looked at in a turn's time: search by meaning is slow", e.Have)})
	}
	return out
}

func bound(limit int) string {
	if limit == 0 {
		return "any"
	}
	return fmt.Sprint(limit)
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

// Schedule is where an agent's jobs stand.
type Schedule struct {
	Overdue []string  // while nothing runs the schedule
	Next    []NextJob // in the order of their times
}

// Parts are what a Service looks at. All are required.
type Parts struct {
	Logs     memory.Borrow[*events.Reader]
	Items    memory.Borrow[*working.Store] // for reading
	Archives memory.Borrow[*archive.Store] // for reading
	Jobs     func(context.Context, memory.AgentID) (Schedule, error)
	Spend    func(memory.AgentID) (spend.Day, error)
	// Embeddings tells how an agent's vectors are.
	Embeddings func(context.Context, memory.AgentID) (Embeddings, error)
	// Dir returns the agent's directory; ErrNotFound where it has none.
	Dir func(memory.AgentID) (string, error)
	// Losses counts what this process has lost of an agent's, and not noted yet.
	Losses func(memory.AgentID, vitals.Loss) int64
	Now    func() time.Time
}

// Service answers for agents.
type Service struct{ Parts }

// NewService returns the service.
func NewService(p Parts) *Service { return &Service{p} }

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.status", "Show how the whole memory is: log, backlog, index, jobs, spend, and what is wrong since when.", op.Read,
			func(ctx context.Context, agent memory.AgentID, _ struct{}) (Status, error) {
				return s.Status(ctx, agent)
			}),
		op.New("memory.health", "Show how the working memory and its vectors are: counts, backlog, and what is wrong.", op.Read,
			func(ctx context.Context, agent memory.AgentID, _ struct{}) (Health, error) {
				return s.Health(ctx, agent)
			}),
	}
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
// is among the problems and is no error; an agent that has nothing is well. Since
// when something is wrong is kept in the agent's directory, where there is one.
func (s *Service) Status(ctx context.Context, agent memory.AgentID) (Status, error) {
	st := Status{Agent: agent, Overdue: []string{}, NextJobs: []NextJob{}, Problems: []Problem{}, Degraded: []string{}}
	for _, part := range []struct {
		code, name string
		look       func(context.Context, memory.AgentID, *Status) error
	}{{"event_log", "event log", s.log}, {"working_memory", "working memory", s.working}, {"archive", "archive", s.archive},
		{"schedule", "schedule", s.schedule}, {"spend", "account of what was spent", s.spent}, {"vectors", "store of vectors", s.embeddings}, {"vitals", "file of the agent's health", s.vitals}} {
		err := part.look(ctx, agent, &st)
		switch {
		case ctx.Err() != nil:
			return Status{}, ctx.Err()
		case err == nil, errors.Is(err, memory.ErrNotFound):
		default:
			st.add(part.code, "the %s cannot be read: %v", part.name, err)
		}
	}
	return st, s.remember(ctx, agent, &st)
}

// add notes what is wrong; there may be several of one code.
func (s *Status) add(code, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{Code: code, Text: fmt.Sprintf(format, args...)})
}

// remember keeps since when what is wrong is so, and fills it in.
func (s *Service) remember(ctx context.Context, agent memory.AgentID, st *Status) error {
	now := s.Now().UTC().Truncate(time.Second)
	codes := make([]string, len(st.Problems))
	for i, p := range st.Problems {
		codes[i] = p.Code
	}
	var state vitals.State
	dir, err := s.Dir(agent)
	if err == nil {
		if state, err = vitals.Read(dir); errors.Is(err, memory.ErrCorrupt) {
			err = nil // it has been noted, and is written anew
		}
	}
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return err
	}
	since := state.Note(now, codes)
	for i := range st.Problems {
		p := &st.Problems[i]
		p.Since = since[p.Code]
		st.Degraded = append(st.Degraded, p.Text)
	}
	if first, wrong := state.Since(); wrong {
		st.DegradedSince = &first
	}
	if dir == "" || readOnly(dir) {
		return nil // where nothing can be kept, it is since now
	}
	err = vitals.Update(ctx, dir, func(v *vitals.State) { v.Note(now, codes) })
	if errors.Is(err, memory.ErrUnavailable) { // a disk that is full is a thing to tell of, not to end at
		p := Problem{Code: "read_only", Text: err.Error(), Since: now}
		st.Problems, st.Degraded = append(st.Problems, p), append(st.Degraded, p.Text)
		if st.DegradedSince == nil {
			st.DegradedSince = &now
		}
		return nil
	}
	return err
}

// readOnly reports whether nothing can be written into a directory.
func readOnly(dir string) bool {
	err := unix.Access(dir, unix.W_OK)
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES)
}

func (s *Service) log(ctx context.Context, agent memory.AgentID, st *Status) error {
	r, release, err := s.Logs(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	rep, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	st.Events, st.Damage = rep.Lines, len(rep.Damage)
	last, err := events.Newest(ctx, r, 1)
	if err != nil {
		return err
	}
	if len(last) > 0 {
		st.LastEvent = &last[0].Timestamp
	}
	for _, g := range rep.Gaps {
		st.Gaps += g.Last - g.First + 1
	}
	if st.Damage > 0 {
		d := rep.Damage[0]
		st.add("event_log", "the event log is damaged in %d places, first in %s at byte %d: openclawssy events verify --agent %s", st.Damage, d.File, d.Offset, agent)
	}
	if st.Gaps > 0 {
		st.add("event_log", "%d events are missing from the log, first seq %d", st.Gaps, rep.Gaps[0].First)
	}
	return nil
}

func (s *Service) working(ctx context.Context, agent memory.AgentID, st *Status) error {
	w, release, err := s.Items(ctx, agent)
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
	for _, what := range h.Degraded {
		st.add("working_memory", "%s", what)
	}
	if st.Parked > 0 {
		st.add("parked", "%d ranges of events could not be distilled (%s): they are tried first at the next openclawssy memory checkpoint --agent %s", st.Parked, h.Parked[0].Reason, agent)
	}
	return nil
}

func (s *Service) archive(ctx context.Context, agent memory.AgentID, st *Status) error {
	a, release, err := s.Archives(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	r, releaseLog, err := s.Logs(ctx, agent)
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
	plan, err := s.Jobs(ctx, agent)
	if err != nil {
		return err
	}
	st.Overdue, st.NextJobs = append(st.Overdue, plan.Overdue...), append(st.NextJobs, plan.Next...)
	for _, name := range plan.Overdue {
		st.add("schedule", "job %s is overdue and nothing runs the schedule: openclawssy serve, or openclawssy cron run --due", name)
	}
	return nil
}

func (s *Service) spent(_ context.Context, agent memory.AgentID, st *Status) error {
	if _, err := s.Dir(agent); err != nil {
		return err
	}
	day, err := s.Spend(agent)
	if err != nil {
		return err
	}
	st.Spend = &day
	if len(day.Damaged) > 0 {
		st.add("spend", "the account of what was spent was damaged, and counting began anew: look at %s, then delete it", strings.Join(day.Damaged, ", "))
	}
	if what := day.UsedUp(); what != "" {
		st.add("spend", "%s: no model is asked before %s", what, moment(&day.ResetsAt))
	}
	return nil
}

// vitals takes in what other processes have left: lost events, the last canary,
// the last flush.
func (s *Service) vitals(_ context.Context, agent memory.AgentID, st *Status) error {
	st.Dropped, st.HooksDropped = s.Losses(agent, vitals.LostEvents), s.Losses(agent, vitals.LostHooks)
	unknown := st.Dropped // of which nobody has taken note
	dir, err := s.Dir(agent)
	if err != nil {
		return err
	}
	v, err := vitals.Read(dir)
	if v.Lost != nil {
		st.Dropped += v.Lost.Events
		unknown += v.Lost.Open()
	}
	if v.Hooks != nil {
		st.HooksDropped += v.Hooks.Events
	}
	st.Canary, st.Flush = v.Canary, v.Flush
	if unknown > 0 {
		st.add("dropped", "%d events could not be taken and are lost: the disk is too slow or full; once that is mended: openclawssy doctor --acknowledge --agent %s", unknown, agent)
	}
	if readOnly(dir) {
		st.add("read_only", "%s cannot be written: nothing new is remembered", dir)
		if st.Backlog > 0 { // which cannot be noted there
			st.add("flush", "%d turns cannot be distilled, for %s; they are in the log and recalled", st.Backlog, vitals.ForReadOnly)
		}
	}
	if st.Canary != nil && st.Canary.At.IsZero() {
		st.Canary = nil // the first one has not ended
	}
	if c := st.Canary; c != nil && !c.Ok {
		st.add("canary", "what was written at %s could not be recalled: %s: openclawssy doctor --agent %s", moment(&c.At), c.Error, agent)
	}
	if f := st.Flush; f != nil && (f.State == vitals.FlushSkipped || f.State == vitals.FlushFailed) && st.Backlog+int64(st.Parked) > 0 {
		st.add("flush", "what was at stake at %s (%s) could not be distilled, for %s: %s; it is in the log and recalled: openclawssy memory checkpoint --agent %s", moment(&f.Asked), f.Why, f.Reason, f.Detail, agent)
	}
	return err
}
