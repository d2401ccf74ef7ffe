package recall

import (
	"context"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.search", "Find the memories most relevant to some words.", op.Read, s.Search).WithExample(`{"text": "favourite tea"}`),
		op.New("memory.recall", "Show the block of memory that a prompt with this message would get, and why each line is in or out.", op.Read, s.Recall).
			WithExample(`{"text": "Which tea do I like?"}`),
	}
}

// Query is the input of memory.search.
type Query struct {
	Text  string `json:"text" cli:"arg" jsonschema:"words to look for, or a question"`
	Scope string `json:"scope,omitempty" jsonschema:"items, episodes (what was said), archived (items no longer in use) or all; items if absent"`
	Limit int    `json:"limit,omitempty" jsonschema:"most results of each kind; 8 if absent"`
	Mode  string `json:"mode,omitempty" jsonschema:"what ranks: lexical (the words), vector (the meaning), hybrid (both), or auto, which is hybrid where there are vectors and else lexical; auto if absent"`
}

const (
	defaultResults = 8
	maxResults     = 1000
)

// Result is the output of memory.search: best first, lists never null.
type Result struct {
	Agent    memory.AgentID   `json:"agent"`
	Items    []memory.Item    `json:"items"`
	Episodes []memory.Episode `json:"episodes"`
	Mode     string           `json:"mode"`              // what ranked them: lexical, vector or hybrid
	Model    string           `json:"model,omitempty"`   // whose vectors
	Lexical  string           `json:"lexical,omitempty"` // why words alone decided, where vectors were asked for
}

// modes are those of memory.search.
var modes = map[string]mode{"": auto, "auto": auto, "lexical": lexical, "hybrid": hybrid, "vector": vector}

// scopes says what each scope of memory.search looks at.
var scopes = map[string]struct {
	scope    scope
	statuses []memory.Status
}{
	"":         {onlyItems, []memory.Status{memory.Active}},
	"items":    {onlyItems, []memory.Status{memory.Active}},
	"episodes": {onlyEpisodes, nil},
	"archived": {onlyItems, []memory.Status{memory.Archived, memory.Superseded}},
	"all":      {everything, []memory.Status{memory.Active, memory.Archived, memory.Superseded}},
}

// Search finds memories by words and meaning, whatever their importance. An agent
// that has no memory has none to find. Without vectors words alone decide, but where
// meaning alone was asked for.
func (s *Service) Search(ctx context.Context, agent memory.AgentID, in Query) (Result, error) {
	out := Result{Agent: agent, Items: []memory.Item{}, Episodes: []memory.Episode{}}
	sc, known := scopes[in.Scope]
	by, knownMode := modes[in.Mode]
	switch {
	case !knownMode:
		return out, &memory.FieldError{Field: "mode", Reason: "must be auto, lexical, vector or hybrid, not " + fmt.Sprintf("%.40q", in.Mode)}
	case !known:
		return out, &memory.FieldError{Field: "scope", Reason: "must be items, episodes, archived or all, not " + fmt.Sprintf("%.40q", in.Scope)}
	case in.Limit < 0 || in.Limit > maxResults:
		return out, &memory.FieldError{Field: "limit", Reason: fmt.Sprintf("must be between 1 and %d", maxResults)}
	case in.Limit == 0:
		in.Limit = defaultResults
	}
	settings := s.opts.Settings(agent)
	settings.MinImportance, settings.PrivateInGroups = 0, true // the owner of the memory asks, not a session
	f, err := s.find(ctx, agent, search{request: Request{Text: in.Text}, settings: settings, limit: in.Limit, matches: max(maxMatched, in.Limit), akin: in.Limit, statuses: sc.statuses, scope: sc.scope, mode: by})
	if err != nil {
		return out, fmt.Errorf("search memory: %w", err)
	}
	defer f.release()
	if f.failure != nil {
		return out, fmt.Errorf("search memory: %w", f.failure)
	}
	if by == vector && f.close == nil {
		return out, memory.WithHint(fmt.Errorf("search memory by meaning: %w", f.whyLexical), "memory status shows the state of the vectors; --mode auto searches by words where there are none")
	}
	out.Mode, out.Lexical = f.used, f.withoutVectors()
	if f.close != nil {
		out.Model = f.close.Model()
	}
	for _, it := range f.items[:min(in.Limit, len(f.items))] {
		out.Items = append(out.Items, it.item)
	}
	episodes := reader{found: f}
	for {
		e, _, more, err := episodes.peek(ctx)
		if err != nil {
			return out, fmt.Errorf("search memory: %w", err)
		}
		if !more {
			return out, nil
		}
		out.Episodes = append(out.Episodes, e)
		episodes.next()
	}
}

// RecallRequest is the input of memory.recall.
type RecallRequest struct {
	Text    string `json:"text" cli:"arg" jsonschema:"what the user says"`
	Session string `json:"session,omitempty" jsonschema:"session that the prompt would be of; a group session does not see private ones"`
	Tokens  int    `json:"tokens,omitempty" jsonschema:"cap of the block, in tokens of 4 bytes; the configured one if absent"`
}

// RecallResult is the output of memory.recall.
type RecallResult struct {
	Agent memory.AgentID `json:"agent"`
	Block
}

// patience is the deadline of a block, at least, that had to wait for its turn.
const patience = time.Second

// Recall shows what Block would put into a prompt. The deadline of the block begins
// when it is this call's turn. One that had to wait for others is not hurried then: an
// answer without memory would have come hardly sooner, and its caller would ask again.
func (s *Service) Recall(ctx context.Context, agent memory.AgentID, in RecallRequest) (RecallResult, error) {
	if in.Tokens < 0 {
		return RecallResult{}, &memory.FieldError{Field: "tokens", Reason: "must not be negative"}
	}
	if err := s.open(ctx, agent); err != nil {
		return RecallResult{}, err
	}
	var atLeast time.Duration
	select {
	case s.asking <- struct{}{}:
	default:
		atLeast = patience
		select {
		case s.asking <- struct{}{}:
		case <-ctx.Done():
			return RecallResult{}, ctx.Err()
		}
	}
	defer func() { <-s.asking }()
	return RecallResult{Agent: agent, Block: s.block(ctx, agent, Request{Text: in.Text, Session: in.Session, Tokens: in.Tokens}, atLeast)}, nil
}

// open opens what a block is made of, so that its deadline does not have to cover
// that. An agent that has no memory has nothing to open; what is damaged or locked
// is for the block to say.
func (s *Service) open(ctx context.Context, agent memory.AgentID) error {
	_, release, err := s.opts.Archive(ctx, agent)
	if err == nil {
		release()
	}
	if s.opts.Items != nil && ctx.Err() == nil {
		if _, release, err := s.opts.Items(ctx, agent); err == nil {
			release()
		}
	}
	if s.opts.Warm != nil && ctx.Err() == nil {
		s.opts.Warm(ctx, agent)
	}
	return ctx.Err()
}

// Ranked is a passage and its score.
type Ranked struct {
	Episode memory.Episode
	Score   float64
}

// Rank returns the passages most relevant to a request, at most limit of them,
// best first, whatever their relevance: what evaluations measure. It has no
// deadline but that of ctx.
func (s *Service) Rank(ctx context.Context, agent memory.AgentID, req Request, limit int) ([]Ranked, error) {
	f, err := s.find(ctx, agent, search{request: req, settings: s.opts.Settings(agent), limit: limit, scope: onlyEpisodes})
	if err != nil {
		return nil, fmt.Errorf("rank episodes: %w", err)
	}
	defer f.release()
	if f.failure != nil {
		return nil, fmt.Errorf("rank episodes: %w", f.failure)
	}
	out := make([]Ranked, 0, len(f.episodes))
	episodes := reader{found: f}
	for {
		e, sc, more, err := episodes.peek(ctx)
		if err != nil {
			return nil, fmt.Errorf("rank episodes: %w", err)
		}
		if !more {
			return out, nil
		}
		out = append(out, Ranked{e, sc.total})
		episodes.next()
	}
}

// Finds reports whether words find the event of that id, which is a memory.Probe:
// the same way as any other passage is found, and in no other search.
func (s *Service) Finds(ctx context.Context, agent memory.AgentID, words, eventID string) (bool, error) {
	f, err := s.find(ctx, agent, search{request: Request{Text: words}, settings: s.opts.Settings(agent), limit: maxRanked, scope: onlyEpisodes, mode: lexical, probe: true})
	if err != nil {
		return false, fmt.Errorf("look for a probe: %w", err)
	}
	defer f.release()
	if f.failure != nil {
		return false, fmt.Errorf("look for a probe: %w", f.failure)
	}
	for episodes := (reader{found: f}); ; episodes.next() {
		e, _, more, err := episodes.peek(ctx)
		if err != nil || !more || e.EventID == eventID {
			return more && err == nil, err
		}
	}
}
