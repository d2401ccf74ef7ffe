package runlog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Today asks memory as it is now what it would inject for the question of a run,
// at the time of that run.
type Today func(ctx context.Context, agent memory.AgentID, asked Asked) (lines []string, err error)

// Asked is a run's question to memory.
type Asked struct {
	Query, Session, Run string
	At                  time.Time
	// InPrompt is the seq of the first event of the session that stood in the run's
	// prompt, the run's own included; 0 where that was not kept.
	InPrompt int64
}

// Service offers the run log as operations.
type Service struct {
	reading memory.Borrow[*Store]
	today   Today
}

// NewService returns a service on the stores that reading lends.
func NewService(reading memory.Borrow[*Store], today Today) *Service {
	return &Service{reading: reading, today: today}
}

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.why", "Show the very block of memory that a run was given, each candidate's scores, and what memory would give it now.", op.Read, s.Why),
		op.New("memory.recalls", "List the latest runs and what memory gave each.", op.Read, s.Recalls).WithExample(`{"limit": 5}`),
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
	Today    Difference     `json:"today" jsonschema:"how memory as it is now would answer the same question otherwise"`
}

// Difference is what has changed between two blocks. Lists are never nil.
type Difference struct {
	Same    bool     `json:"same"`
	Added   []string `json:"added" jsonschema:"lines that would be injected now and were not"`
	Removed []string `json:"removed" jsonschema:"lines that were injected and would not be now"`
}

// Text shows it to a person.
func (w Why) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s (%s, session %s, %s)\nasked: %s\n", w.Run, w.Started.UTC().Format("2006-01-02 15:04 UTC"), w.Session, w.Status, w.Query)
	if w.Degraded != "" {
		fmt.Fprintf(&sb, "degraded: %s\n", w.Degraded)
	}
	if w.Block == "" {
		sb.WriteString("nothing was injected\n")
	} else {
		sb.WriteString(w.Block + "\n")
	}
	for _, c := range candidatesOf(w.Trace) {
		fmt.Fprintf(&sb, "  %-8s %6.3f %s\n", c.Handle, c.Score, c.Why)
	}
	if w.Today.Same {
		sb.WriteString("memory as it is now would inject the same\n")
	}
	for _, l := range w.Today.Removed {
		sb.WriteString("- " + l + "\n")
	}
	for _, l := range w.Today.Added {
		sb.WriteString("+ " + l + "\n")
	}
	return sb.String()
}

// candidate is what of a trace is shown on one line.
type candidate struct {
	Handle string  `json:"handle"`
	Score  float64 `json:"score"`
	Why    string  `json:"why"`
}

// candidatesOf reads the candidates of a trace; none where it has another form.
func candidatesOf(trace any) []candidate {
	raw, err := json.Marshal(trace)
	var t struct{ Candidates []candidate }
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return nil
	}
	return t.Candidates
}

// difference compares the lines of a block, which stand between its two of the head
// and the last, with others.
func difference(block string, now []string) Difference {
	d := Difference{Added: []string{}, Removed: []string{}}
	var was []string
	if lines := strings.Split(strings.TrimRight(block, "\n"), "\n"); len(lines) > 3 {
		was = lines[2 : len(lines)-1]
	}
	for _, l := range was {
		if !slices.Contains(now, l) {
			d.Removed = append(d.Removed, l)
		}
	}
	for _, l := range now {
		if !slices.Contains(was, l) {
			d.Added = append(d.Added, l)
		}
	}
	d.Same = len(d.Added)+len(d.Removed) == 0
	return d
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
	w := Why{Agent: agent, Run: in.Run, Session: b.Meta.Session, Started: b.Meta.Started, Status: b.Meta.Status,
		Query: b.Recall.Query, Block: b.Recall.Block, Degraded: b.Recall.Degraded, Trace: b.Recall.Trace, Today: difference(b.Recall.Block, nil)}
	if b.Recall.Query == "" {
		return w, nil
	}
	now, err := s.today(ctx, agent, Asked{Query: w.Query, Session: w.Session, Run: w.Run, At: w.Started, InPrompt: cmp.Or(b.Recall.InPrompt, b.Meta.FirstSeq)})
	w.Today = difference(b.Recall.Block, now)
	return w, err
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
