package index

import (
	"context"
	"errors"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/chunk"
)

// Service answers the operations on the indexes of agents' workspaces.
type Service struct {
	open  func(ctx context.Context, agent memory.AgentID) (*workspace.Workspace, error)
	read  func(ctx context.Context, agent memory.AgentID) (*Index, error)
	write func(ctx context.Context, agent memory.AgentID) (*Index, error)
}

// NewService returns a Service. open opens an agent's workspace. read gives its
// index, ErrNotFound for an agent that has nothing on disk; write makes the
// agent's directory for it.
func NewService(open func(context.Context, memory.AgentID) (*workspace.Workspace, error), read, write func(context.Context, memory.AgentID) (*Index, error)) *Service {
	return &Service{open: open, read: read, write: write}
}

// Ops returns the operations of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("workspace.index", "Bring the search index of the OpenClaw workspace up to date with its files.", op.Write, s.Index).
			WithExample(`{"tokens": 400, "overlap": 80}`),
		op.New("workspace.search", "Search the Markdown memory of the OpenClaw workspace; answers as OpenClaw's memory_search.", op.Read, s.Search).
			WithExample(`{"query": "which berth has the deepest water", "maxResults": 3}`),
		op.New("workspace.get", "Read lines of a memory file of the OpenClaw workspace; answers as OpenClaw's memory_get.", op.Read, s.Get).
			WithExample(`{"path": "memory/2026-01-15.md", "from": 10, "lines": 20}`),
	}
}

// IndexRequest is the input of workspace.index. What is left out stays as the
// index has it.
type IndexRequest struct {
	Tokens   *int      `json:"tokens,omitempty" jsonschema:"size of a chunk, in tokens of four characters; 400 in a new index"`
	Overlap  *int      `json:"overlap,omitempty" jsonschema:"tokens carried over from a chunk to the next; 80 in a new index"`
	Chunking string    `json:"chunking,omitempty" jsonschema:"how lines are packed: seed, capped, weighted (by CJK) or bounded; seed in a new index"`
	Extra    *[]string `json:"extra,omitempty" jsonschema:"files and directories of the workspace to index beside its memory; none, to have none again"`
	Sessions *bool     `json:"sessions,omitempty" jsonschema:"whether OpenClaw's session transcripts are indexed too"`
	Force    bool      `json:"force,omitempty" jsonschema:"build the index anew"`
}

// Index brings an agent's index up to date.
func (s *Service) Index(ctx context.Context, agent memory.AgentID, in IndexRequest) (r Report, err error) {
	w, err := s.open(ctx, agent)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return s.IndexOf(ctx, agent, w, in)
}

// IndexOf is Index for a workspace that is open already.
func (s *Service) IndexOf(ctx context.Context, agent memory.AgentID, w *workspace.Workspace, in IndexRequest) (Report, error) {
	c := Change{Tokens: in.Tokens, Overlap: in.Overlap, Extra: in.Extra, Sessions: in.Sessions, Force: in.Force}
	if in.Chunking != "" {
		v, err := chunk.ParseVariant(in.Chunking)
		if err != nil {
			return Report{}, err
		}
		c.Chunking = &v
	}
	x, err := s.write(ctx, agent)
	if err != nil {
		return Report{}, err
	}
	return x.Sync(ctx, w, c)
}

// Search searches an agent's index.
func (s *Service) Search(ctx context.Context, agent memory.AgentID, in Query) (a Answer, err error) {
	w, err := s.open(ctx, agent)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	x, err := s.read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return a, notIndexed(w)
	}
	if err != nil {
		return a, err
	}
	return x.Search(ctx, w, in)
}

// notIndexed says what to do about a workspace that has no index.
func notIndexed(w *workspace.Workspace) error {
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "%s is not indexed yet", w.Path()), "openclawssy workspace index makes the index")
}

// Get reads lines of a file of an agent's workspace. Extra paths are those of its
// index.
func (s *Service) Get(ctx context.Context, agent memory.AgentID, in Lines) (p Passage, err error) {
	w, err := s.open(ctx, agent)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	extra, err := s.extra(ctx, agent)
	if err != nil {
		return p, err
	}
	return Get(ctx, w, extra, in)
}

func (s *Service) extra(ctx context.Context, agent memory.AgentID) ([]string, error) {
	x, err := s.read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	have, err := x.readMeta(ctx)
	if err != nil || have == nil {
		return nil, err
	}
	return have.Extra, nil
}
