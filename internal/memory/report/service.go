package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/spend"
)

const (
	day      = 24 * time.Hour
	week     = 7 * day
	lookBack = 8 // weeks in the chart
)

type redactor interface{ Text(string) string }

// Options are what a Service works with. All are required unless said otherwise.
type Options struct {
	Items memory.Borrow[*working.Store] // for reading
	// Dir returns the agent's directory; ErrNotFound where it has none.
	Dir       func(memory.AgentID) (string, error)
	Condition func(context.Context, memory.AgentID) (Condition, error)
	Spent     func(agent memory.AgentID, from, to time.Time) (spend.Used, error)
	// Held counts the messages that are held or could not be delivered.
	Held func(context.Context, memory.AgentID) (int, error)
	// Expired returns how many events are older than the agent's configuration keeps
	// them, and from which day on they are kept; 0 for none.
	Expired func(context.Context, memory.AgentID) (events int64, keepFrom time.Time, err error)
	// Hold keeps erasures out while a report is made: it would bring back what they
	// take. It may be nil.
	Hold   erasure.Hold
	Redact redactor
	Now    func() time.Time
}

// Service makes reports.
type Service struct{ opts Options }

// NewService returns a service.
func NewService(opts Options) *Service { return &Service{opts: opts} }

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.report", "Report what became of the memory in the last days: what was learned and changed, what needs a decision, what it cost.", op.Write, s.Report).
			WithExample(`{"days": 7}`),
	}
}

// Request is the input of memory.report.
type Request struct {
	Days *int `json:"days,omitempty" jsonschema:"days to look back, 1 to 3660; 7 if absent"`
	Show bool `json:"show,omitempty" jsonschema:"true: show it only, and write no file"`
}

const mostDays = 3660

// Report makes a report of the last days and writes it down beside those before.
// Where the newest of the same day says the same it is not written again. An agent
// without memory gets an empty one and no file.
func (s *Service) Report(ctx context.Context, agent memory.AgentID, in Request) (Report, error) {
	days := 7
	if in.Days != nil {
		days = *in.Days
	}
	if days < 1 || days > mostDays {
		return Report{}, &memory.FieldError{Field: "days", Reason: fmt.Sprintf("must be between 1 and %d", mostDays)}
	}
	ctx, done, err := s.opts.Hold.Begin(ctx, agent)
	if err != nil {
		return Report{}, err
	}
	defer done()
	until := s.until()
	r, err := s.make(ctx, agent, until.Add(-time.Duration(days)*day), 0, until)
	if err != nil || in.Show {
		return r, err
	}
	return s.keep(r)
}

// Scheduled writes the report of the time since the scheduled one before, and of all
// that there was where there is none. Of a time in which nothing happened there is
// no report: what an agent keeps does not grow while nobody talks to it.
func (s *Service) Scheduled(ctx context.Context, agent memory.AgentID) error {
	dir, err := s.opts.Dir(agent)
	if err != nil {
		return err
	}
	ctx, done, err := s.opts.Hold.Begin(ctx, agent)
	if err != nil {
		return err
	}
	defer done()
	from, seq, err := lastScheduled(dir)
	if err != nil {
		return err
	}
	r, err := s.make(ctx, agent, from, seq, s.until())
	if err != nil || r.Quiet {
		return err
	}
	r.Scheduled = true
	_, err = s.keep(r)
	return err
}

// until is the end of a report's time: what was done in this millisecond is in it.
func (s *Service) until() time.Time {
	return s.opts.Now().UTC().Truncate(time.Millisecond).Add(time.Millisecond)
}

// keep writes a report down.
func (s *Service) keep(r Report) (Report, error) {
	dir, err := s.opts.Dir(r.Agent)
	if errors.Is(err, memory.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return write(dir, r)
}

// make gathers a report of what was changed after an event, or where that is 0 since
// a time. from may be zero too: then it begins with the memory.
func (s *Service) make(ctx context.Context, agent memory.AgentID, from time.Time, after int64, until time.Time) (Report, error) {
	r := Report{Agent: agent, From: from, Until: until, Seq: after, Decide: []Decision{}, Learned: []Line{}, Superseded: []Line{}, Changed: []Line{}, Merged: []Line{},
		Archived: []Line{}, Restored: []Line{}, Quarantined: []Line{}, Growth: []Point{}, Condition: Condition{Overdue: []string{}, Problems: []Problem{}}}
	store, release, err := s.opts.Items(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		r.Quiet = true
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer release()
	g := &gathering{Service: s, ctx: ctx, store: store, r: &r}
	for _, part := range []func() error{g.moves, g.cost, g.decide, g.condition, g.growth} {
		if err := part(); err != nil {
			return r, fmt.Errorf("report on the memory of %s: %w", agent, err)
		}
	}
	r.Quiet = r.Counts.Total()+r.Cost.Distilling.Checkpoints == 0 && !r.Condition.worse(r.From)
	return r, nil
}

// worse reports whether anything has gone wrong since a time.
func (c Condition) worse(from time.Time) bool {
	for _, p := range c.Problems {
		if !p.Since.Before(from) {
			return true
		}
	}
	return false
}
