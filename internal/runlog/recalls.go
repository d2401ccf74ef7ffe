package runlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// RecallsQuery is the input of memory.recalls.
type RecallsQuery struct {
	Limit *int `json:"limit,omitempty" jsonschema:"most runs to list, 1 to 1000; 20 if absent"`
}

// Recalls is the output of memory.recalls.
type Recalls struct {
	Agent memory.AgentID `json:"agent"`
	Runs  []Recalling    `json:"runs" jsonschema:"newest first"` // never nil
}

// Recalling is what memory gave one run.
type Recalling struct {
	Run      string    `json:"run"`
	Session  string    `json:"session"`
	Started  time.Time `json:"started"`
	Status   string    `json:"status" jsonschema:"ok, failed or unfinished"`
	Query    string    `json:"query" jsonschema:"what memory was asked; empty where it was not"`
	Handles  []string  `json:"handles" jsonschema:"what was injected, in its order"`
	Degraded string    `json:"degraded" jsonschema:"what went wrong, where something did"`
}

// Text shows them to a person.
func (r Recalls) Text() string {
	var sb strings.Builder
	for _, x := range r.Runs {
		fmt.Fprintf(&sb, "%s  %s  %-7s %3d lines  %s\n", x.Run, x.Started.UTC().Format("2006-01-02 15:04"), x.Status, len(x.Handles), short(x.Query))
		if x.Degraded != "" {
			fmt.Fprintf(&sb, "  degraded: %s\n", x.Degraded)
		}
	}
	if len(r.Runs) == 0 {
		sb.WriteString("no run yet\n")
	}
	return sb.String()
}

func short(text string) string {
	const most = 60
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}

// Recalls lists the latest runs of an agent and what memory gave each. An agent
// that has had none has an empty list.
func (s *Service) Recalls(ctx context.Context, agent memory.AgentID, in RecallsQuery) (Recalls, error) {
	out := Recalls{Agent: agent, Runs: []Recalling{}}
	limit := 20
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 || limit > 1000 {
		return out, &memory.FieldError{Field: "limit", Reason: "must be between 1 and 1000"}
	}
	store, release, err := s.reading(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer release()
	runs, err := store.List(limit)
	if err != nil {
		return out, err
	}
	for _, m := range runs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		asked, err := store.asked(m.Run)
		x := Recalling{Run: m.Run, Session: m.Session, Started: m.Started, Status: m.Status, Query: asked.Query, Handles: handlesIn(asked.Block), Degraded: asked.Degraded}
		if err != nil {
			x.Degraded = err.Error() // one damaged bundle must not hide the others
		}
		out.Runs = append(out.Runs, x)
	}
	return out, nil
}

// asked returns what memory was asked for a run, and gave; the zero Recall where it
// was not asked.
func (s *Store) asked(run string) (Recall, error) {
	root, err := s.openRun(run)
	if err != nil {
		return Recall{}, err
	}
	defer root.Close()
	var rec Recall
	_, err = readJSON(root, recallFile, &rec)
	return rec, err
}

// handlesIn returns the handles of a block's lines, in their order; never nil.
func handlesIn(block string) []string {
	handles := []string{}
	for _, m := range handle.FindAllStringSubmatch(block, -1) {
		handles = append(handles, m[1])
	}
	return handles
}
