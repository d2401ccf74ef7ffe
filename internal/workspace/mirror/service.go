package mirror

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Service offers what an agent may do with its workspace as operations. The
// workspace is never an input: it is the configured one.
type Service struct {
	open func(memory.AgentID) (Writer, func(), error)
	talk func(ctx context.Context, agent memory.AgentID, session string) (Talk, error)
	dir  func() string
}

// NewService returns a service. open lends an agent's workspace for writing, talk
// reads a session, and dir names the directory that sessions are saved in where
// that is not the workspace's own; "" if it is.
func NewService(open func(memory.AgentID) (Writer, func(), error), talk func(context.Context, memory.AgentID, string) (Talk, error), dir func() string) *Service {
	return &Service{open: open, talk: talk, dir: dir}
}

// Ops returns the operations.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("workspace.note", "Append a note to the day's file of the agent's workspace.", op.Write, s.Note).
			WithExample(`{"text": "Shipped the pilot.", "kind": "milestone", "importance": 0.85}`),
		op.New("workspace.save", "Save a session as a Markdown file of the agent's workspace.", op.Write, s.Save).
			WithExample(`{"session": "s1", "slug": "pilot planning"}`),
	}
}

// NoteRequest is the input of workspace.note.
type NoteRequest struct {
	Text       string   `json:"text" cli:"arg" jsonschema:"what is noted, in one line"`
	Kind       string   `json:"kind,omitempty" jsonschema:"one word for its tag, such as decision, lesson or context"`
	Importance *float64 `json:"importance,omitempty" jsonschema:"0 to 1, for its tag: from 0.8 on kept for good, from 0.4 on for 30 days, below for 7"`
}

// Note appends a note to the day's file.
func (s *Service) Note(_ context.Context, agent memory.AgentID, in NoteRequest) (Noted, error) {
	w, release, err := s.open(agent)
	if err != nil {
		return Noted{}, err
	}
	defer release()
	return w.Note(Note(in))
}

// SaveRequest is the input of workspace.save.
type SaveRequest struct {
	Session string `json:"session" cli:"arg" jsonschema:"id of the session"`
	Slug    string `json:"slug,omitempty" jsonschema:"words for the file's name; those that were said first if absent"`
}

// Saved is the output of workspace.save.
type Saved struct {
	File string `json:"file" jsonschema:"where the session stands now"`
}

// Text is what a person reads.
func (s Saved) Text() string { return s.File + "\n" }

// Save saves a session as YYYY-MM-DD-slug.md.
func (s *Service) Save(ctx context.Context, agent memory.AgentID, in SaveRequest) (Saved, error) {
	t, err := s.talk(ctx, agent, in.Session)
	if err != nil {
		return Saved{}, err
	}
	w, release, err := s.open(agent)
	if err != nil {
		return Saved{}, err
	}
	defer release()
	file, err := w.Save(t, s.dir(), in.Slug)
	return Saved{File: file}, err
}
