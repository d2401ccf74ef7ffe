package runlog

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Service offers the run log as operations.
type Service struct {
	reading memory.Borrow[*Store]
}

// NewService returns a service on the stores that reading lends.
func NewService(reading memory.Borrow[*Store]) *Service { return &Service{reading: reading} }

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.why", "Show the very block of memory that a run was given, and each candidate's scores.", op.Read, s.Why),
	}
}

// WhyQuery is the input of memory.why.
type WhyQuery struct {
	Run string `json:"run,omitempty" jsonschema:"id of the run; the latest one that asked memory if absent" cli:"arg"`
}

// Why is the output of memory.why.
type Why struct {
	Agent    memory.AgentID `json:"agent"`
	Run      string         `json:"run"`
	Session  string         `json:"session"`
	Started  time.Time      `json:"started"`
	Status   string         `json:"status"` // ok, failed or unfinished
	Query    string         `json:"query"`
	Block    string         `json:"block"`              // the bytes injected; empty where nothing was
	Degraded string         `json:"degraded,omitempty"` // what went wrong, where something did
	Trace    any            `json:"trace"`              // the candidates with their scores; null where recall was off
}

// Why returns what was recalled for a run; ErrNotFound where there is none.
func (s *Service) Why(ctx context.Context, agent memory.AgentID, in WhyQuery) (Why, error) {
	store, release, err := s.reading(ctx, agent)
	if err != nil {
		return Why{}, err
	}
	defer release()
	if in.Run == "" {
		if in.Run, err = store.latest(); err != nil {
			return Why{}, err
		}
	}
	b, err := store.Get(in.Run)
	if err != nil {
		return Why{}, err
	}
	return Why{Agent: agent, Run: in.Run, Session: b.Meta.Session, Started: b.Meta.Started, Status: b.Meta.Status,
		Query: b.Recall.Query, Block: b.Recall.Block, Degraded: b.Recall.Degraded, Trace: b.Recall.Trace}, nil
}

// lookedThrough is how many runs latest looks through.
const lookedThrough = 50

// latest returns the newest run that asked memory; where none of the last ones
// did, the newest at all. Calls that were typed ask nothing.
func (s *Store) latest() (string, error) {
	runs, err := s.List(lookedThrough)
	if len(runs) == 0 {
		if err != nil {
			return "", err
		}
		return "", memory.WithHint(memory.Errorf(memory.ErrNotFound, "agent %s has had no run yet", s.Agent), "openclawssy ask starts one")
	}
	for _, m := range runs {
		if _, err := os.Stat(filepath.Join(s.dir, "runs", m.Run, recallFile)); err == nil {
			return m.Run, nil
		}
	}
	return runs[0].Run, nil
}
