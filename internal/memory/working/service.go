package working

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Service offers the stores of all agents as operations.
type Service struct {
	read     memory.Borrow[*Store]
	write    memory.Borrow[*Store]
	episodes episodes
	// Forgetting goes around a forgetting, and calls do once. do calls begun with what
	// goes before anything is changed, unless nothing does, and returns the same once it
	// is gone from the store. It may be nil.
	Forgetting func(ctx context.Context, agent memory.AgentID, do Forgets) error
}

// Forgets forgets something in a store.
type Forgets func(ctx context.Context, begun func(Forgotten) error) (Forgotten, error)

// NewService returns a service over stores that are borrowed for reading and for
// writing, and the archive that knows the turns.
func NewService(read, write memory.Borrow[*Store], turns episodes) *Service {
	return &Service{read: read, write: write, episodes: turns}
}

// Ops returns the operations on items, but for Get and Explain: other things have
// handles too, so who knows them all offers these. memory.health, which tells of
// vectors too, is care's.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.list", "List memories, newest first.", op.Read, s.List).WithExample(`{"status": "active", "limit": 20}`),
		op.New("memory.write", "Remember something, or merge it with a memory that says the same.", op.Write, s.Write).
			WithExample(`{"title": "likes tea", "content": "The user likes green tea.", "kind": "preference"}`),
		op.New("memory.update", "Make a new version of a memory; the old one stays in its history.", op.Write, with(s.write, (*Store).Update)).
			WithExample(`{"handle": "MEM-1", "content": "The user likes black tea."}`),
		op.New("memory.forget", "Take a memory's text away for good, and stop recalling what it rests on.", op.Destroy, s.Forget).
			WithExample(`{"handle": "MEM-1"}`),
		op.New("memory.revert", "Go back to an earlier version of a memory.", op.Write, with(s.write, (*Store).Revert)).WithExample(`{"handle": "MEM-1", "to": 1}`),
		op.New("memory.history", "Show every version of a memory: what changed, when, by whom and why.", op.Read, with(s.read, (*Store).History)).
			WithExample(`{"handle": "MEM-1"}`),
		op.New("memory.approve", "Say that a memory is right: one in quarantine, or one marked to be verified.", op.Write, with(s.write, (*Store).Approve)).WithExample(`{"handle": "MEM-1"}`),
		op.New("memory.reject", "Turn down a memory, in quarantine or marked to be verified, for good.", op.Write, with(s.write, (*Store).Reject)).WithExample(`{"handle": "MEM-1"}`),
		op.New("decision.log", "Record a decision, and remember it.", op.Write, s.LogDecision).
			WithExample(`{"title": "use SQLite", "content": "We store memory in SQLite.", "alternatives": ["files"], "reason": "one file, full-text search"}`),
	}
}

// with makes an operation of a method of an agent's store.
func with[In, Out any](borrow memory.Borrow[*Store], method func(*Store, context.Context, In) (Out, error)) op.Func[In, Out] {
	return func(ctx context.Context, agent memory.AgentID, in In) (Out, error) {
		var none Out
		st, release, err := borrow(ctx, agent)
		if err != nil {
			return none, err
		}
		defer release()
		return method(st, ctx, in)
	}
}

// Get returns one item with its evidence.
func (s *Service) Get(ctx context.Context, agent memory.AgentID, in GetRequest) (GetResult, error) {
	return with(s.read, (*Store).Get)(ctx, agent, in)
}

// leastEcho is the length in bytes from which on a text is its own: shorter ones
// stand in answers that have nothing to do with it.
const leastEcho = 12

// Forget forgets an item, and suppresses with the turns that it rests on the
// answers that repeat them.
func (s *Service) Forget(ctx context.Context, agent memory.AgentID, in ForgetRequest) (ForgetResult, error) {
	got, err := s.Get(ctx, agent, GetRequest{Handle: in.Handle})
	if err != nil {
		return ForgetResult{}, fmt.Errorf("forget %s: %w", in.Handle, err)
	}
	texts := []string{got.Item.Handle + "]"}
	for _, t := range append([]string{got.Item.Content}, quotesOf(got.Item)...) {
		if len(t) >= leastEcho {
			texts = append(texts, t)
		}
	}
	// An answer may repeat a turn in other letters: a line of a block is not always
	// what was said. Its handle stands there all the same.
	for _, ev := range got.Item.Evidence {
		said, err := s.episodes.ByEvent(ctx, agent, ev.EventID)
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return ForgetResult{}, fmt.Errorf("forget %s: look for what it rests on: %w", in.Handle, err)
		}
		for _, e := range said {
			texts = append(texts, e.Handle+"]")
		}
	}
	if in.echoes, err = s.episodes.Echoes(ctx, agent, texts); err != nil {
		return ForgetResult{}, fmt.Errorf("forget %s: look for answers that repeat it: %w", in.Handle, err)
	}
	var res ForgetResult
	do := func(ctx context.Context, begun func(Forgotten) error) (gone Forgotten, err error) {
		in.begun = begun
		res, err = with(s.write, (*Store).Forget)(ctx, agent, in)
		return res.gone, err
	}
	if s.Forgetting != nil {
		err = s.Forgetting(ctx, agent, do)
	} else {
		_, err = do(ctx, nil)
	}
	if err != nil {
		return res, fmt.Errorf("forget %s: %w", in.Handle, err)
	}
	return res, nil
}

func quotesOf(it memory.Item) []string {
	quotes := make([]string, len(it.Evidence))
	for i, ev := range it.Evidence {
		quotes[i] = ev.Quote
	}
	return quotes
}

// List returns items, newest first; none for an agent that has no memory yet.
func (s *Service) List(ctx context.Context, agent memory.AgentID, in ListRequest) (ListResult, error) {
	if _, _, err := in.filter(); err != nil {
		return ListResult{}, err
	}
	res, err := with(s.read, (*Store).List)(ctx, agent, in)
	if errors.Is(err, memory.ErrNotFound) {
		return ListResult{Agent: agent, Items: []memory.Item{}}, nil
	}
	return res, err
}

// Write stores a new item, or merges it into one that says the same.
func (s *Service) Write(ctx context.Context, agent memory.AgentID, in WriteRequest) (WriteResult, error) {
	for i, c := range in.Evidence {
		proof, trust, err := s.prove(ctx, agent, c)
		if err != nil {
			return WriteResult{}, fmt.Errorf("evidence[%d]: %w", i, err)
		}
		in.proven, in.trust = append(in.proven, proof), memory.LowestTrust(in.trust, trust)
	}
	st, release, err := s.write(ctx, agent)
	if err != nil {
		return WriteResult{}, err
	}
	defer release()
	return st.write(ctx, in, "write", "", nil)
}

// prove looks up an event and the words in it.
func (s *Service) prove(ctx context.Context, agent memory.AgentID, c CitationInput) (memory.Evidence, memory.Trust, error) {
	passages, err := s.episodes.ByEvent(ctx, agent, c.EventID)
	if errors.Is(err, memory.ErrNotFound) || err == nil && len(passages) == 0 {
		return memory.Evidence{}, "", &memory.FieldError{Field: "event_id", Reason: "must be the id of an event of this agent, not " + c.EventID}
	}
	if err != nil {
		return memory.Evidence{}, "", err
	}
	first := passages[0]
	ev := memory.Evidence{EventID: c.EventID, SourceID: first.SourceID, Seq: first.Seq, Quote: c.Quote}
	var all strings.Builder
	for _, p := range passages {
		all.WriteString(p.Text + " ")
	}
	if !strings.Contains(strings.Join(strings.Fields(all.String()), " "), strings.Join(strings.Fields(c.Quote), " ")) {
		return memory.Evidence{}, "", &memory.FieldError{Field: "quote", Reason: "must be words of that event"}
	}
	return ev, memory.TrustOf(first.Origin), nil
}

// Explain says why an item exists: the turns that it rests on, who made it and
// changed it, and what it replaced or was replaced by.
func (s *Service) Explain(ctx context.Context, agent memory.AgentID, in GetRequest) (Explanation, error) {
	st, release, err := s.read(ctx, agent)
	if err != nil {
		return Explanation{}, err
	}
	defer release()
	x, err := st.explain(ctx, in.Handle)
	if err != nil {
		return Explanation{}, err
	}
	for i := range x.Evidence {
		if x.Evidence[i].Suppressed {
			continue
		}
		if err := quoteTurn(ctx, s.episodes, agent, &x.Evidence[i]); err != nil {
			return Explanation{}, err
		}
	}
	return x, nil
}

// Decision is the input of decision.log.
type Decision struct {
	Title        string         `json:"title" jsonschema:"what was decided, in a few words"`
	Content      string         `json:"content" jsonschema:"the decision in a sentence that stands alone"`
	Alternatives []string       `json:"alternatives,omitempty" jsonschema:"what else was considered"`
	Reason       string         `json:"reason,omitempty" jsonschema:"why it was decided so"`
	Importance   *int           `json:"importance,omitempty" jsonschema:"1 to 5; 4 if absent"`
	Confidence   *float64       `json:"confidence,omitempty" jsonschema:"0 to 1; 0.9 if absent"`
	Metadata     map[string]any `json:"metadata,omitempty" jsonschema:"anything else to keep with it"`
}

// LogDecision records a decision as an event, and keeps it as an item of kind
// decision that rests on it.
func (s *Service) LogDecision(ctx context.Context, agent memory.AgentID, in Decision) (WriteResult, error) {
	return with(s.write, (*Store).logDecision)(ctx, agent, in)
}

func (s *Store) logDecision(ctx context.Context, in Decision) (WriteResult, error) {
	req := WriteRequest{Title: in.Title, Content: in.Content, Kind: memory.KindDecision, Importance: in.Importance, Confidence: in.Confidence}
	if req.Importance == nil {
		important := 4
		req.Importance = &important
	}
	meta := map[string]any{}
	for name, value := range in.Metadata {
		meta[name] = value
	}
	if len(in.Alternatives) > 0 {
		meta["alternatives"] = in.Alternatives
	}
	if in.Reason != "" {
		meta["reason"] = in.Reason
	}
	// Refuse before the event is written what would be refused after it.
	if _, err := s.newItem(ctx, req, meta); err != nil {
		return WriteResult{}, fmt.Errorf("log a decision: %w", err)
	}
	by := memory.Actor(ctx)
	// Each by itself: a secret that is known by where its line begins is not, behind a title.
	events, err := s.opts.Log.Write(ctx, memory.Event{Type: memory.DecisionLog, Origin: by, Timestamp: s.opts.Now(), Text: s.opts.Redact.Text(in.Title) + ": " + s.opts.Redact.Text(in.Content), Metadata: meta})
	if err != nil {
		return WriteResult{}, fmt.Errorf("log a decision: %w", err)
	}
	req.proven = []memory.Evidence{{EventID: events[0].ID, Seq: events[0].Seq, Quote: in.Content}}
	return s.write(ctx, req, "decision", in.Reason, meta)
}
