package evaluate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
)

// home is a fresh agent, made for one conversation: the product's own log,
// archive, working store and recall in a directory of their own.
type home struct {
	log      *events.Log
	turns    *archive.Store
	items    *working.Store
	graph    *graph.Store // nil where nothing walks it
	walker   *weave.Walker
	meanings *meanings // nil for words alone
	rerank   recall.Reranker
	redact   *redact.Redactor
	now      func() time.Time
	settings recall.Settings
	dir      string
	ids      uint64
}

const evaluated memory.AgentID = "evaluated"

// shipped are the settings that a new installation has, but for the deadline: what
// is recalled must not depend on how busy the machine is that measures it. What
// would have come too late is counted.
var shipped = recall.Settings{Tokens: 1200, MaxLines: 24, MinImportance: 3}

const shippedDeadline = 50 * time.Millisecond

// bare are the settings of the gated figures: what is found and fits the
// budget, without abstention, deadline or a cap on lines.
var bare = recall.Settings{Tokens: 1200, MinImportance: 3, Threshold: -1}

// newHome makes the agent in dir. Ids count up, so that two runs are the same.
func newHome(ctx context.Context, dir string, now func() time.Time) (*home, error) {
	r, err := redact.New([]byte("evaluations redact as agents do."))
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir, redact: r, now: now}
	if h.log, err = events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: now, NewID: h.newID, Redact: r, Log: zerolog.Nop()}); err != nil {
		return nil, fmt.Errorf("new agent: %w", err)
	}
	if h.turns, err = archive.Open(ctx, filepath.Join(dir, "archive.db"), archive.Options{Redact: r, Now: now}); err != nil {
		return nil, errors.Join(fmt.Errorf("new agent: %w", err), h.close())
	}
	return h, nil
}

func (h *home) newID() string {
	h.ids++
	var id ulid.ULID
	for i, n := 15, h.ids; n > 0; i, n = i-1, n>>8 {
		id[i] = byte(n)
	}
	return id.String()
}

func (h *home) close() error {
	var errs []error
	if h.graph != nil {
		errs = append(errs, h.graph.Close())
	}
	if h.items != nil {
		errs = append(errs, h.items.Close())
	}
	if h.turns != nil {
		errs = append(errs, h.turns.Close())
	}
	return errors.Join(append(errs, h.log.Close())...)
}

// tell writes a conversation into the log, and lets the archive follow.
func (h *home) tell(ctx context.Context, turns []memory.Event) error {
	const group = 200
	for at := 0; at < len(turns); at += group {
		if _, err := h.log.Write(ctx, turns[at:min(at+group, len(turns))]...); err != nil {
			return fmt.Errorf("tell the conversation: %w", err)
		}
	}
	_, err := h.turns.Follow(ctx, h.log)
	return err
}

// distil runs a checkpoint by rules over all that was told.
func (h *home) distil(ctx context.Context) error {
	var err error
	if h.items, err = working.Open(ctx, h.dir, working.Options{Agent: evaluated, Log: h.log, Redact: h.redact, Now: h.now, NewID: h.newID}); err != nil {
		return err
	}
	agent := checkpoint.Agent{Store: h.items, Log: h.log, Sessions: noSessions{}, Dir: filepath.Join(h.dir, "checkpoints"), BatchTokens: 6000, OnFailure: checkpoint.Park}
	service := checkpoint.NewService(checkpoint.Options{
		Write:  func(context.Context, memory.AgentID) (checkpoint.Agent, func(), error) { return agent, func() {}, nil },
		Read:   lend(h.items),
		Redact: h.redact, Now: h.now, NewID: h.newID, Holder: "evaluation",
	})
	if _, err := service.Checkpoint(ctx, evaluated, checkpoint.Request{}); err != nil {
		return err
	}
	_, err = h.turns.Follow(ctx, h.log)
	return err
}

// weave lets a graph follow what was distilled.
func (h *home) weave(ctx context.Context) error {
	var err error
	if h.graph, err = graph.Open(ctx, filepath.Join(h.dir, graph.FileName), graph.Options{Now: h.now, NewID: h.newID, Redact: h.redact, Log: zerolog.Nop()}); err != nil {
		return err
	}
	h.walker = &weave.Walker{Read: lend(h.graph)}
	follower := weave.Follower{Items: lend(h.items), Read: lend(h.graph), Write: lend(h.graph), Speakers: h.speakers}
	_, err = follower.Follow(ctx, evaluated)
	return err
}

func (h *home) speakers(ctx context.Context, _ memory.AgentID, eventIDs []string) (map[string]string, error) {
	turns, err := h.turns.Turns(ctx, eventIDs)
	out := make(map[string]string, len(turns))
	for id, t := range turns {
		out[id] = t.Speaker
	}
	return out, err
}

// noSessions knows no session: conversations under evaluation have no zone.
type noSessions struct{}

func (noSessions) Get(context.Context, string) (memory.Session, error) {
	return memory.Session{}, memory.ErrNotFound
}

// lend makes a Borrow of one open thing.
func lend[T any](value T) memory.Borrow[T] {
	return func(context.Context, memory.AgentID) (T, func(), error) { return value, func() {}, nil }
}

// recall returns the product's recall over the agent; without items where none
// were distilled.
func (h *home) recall() *recall.Service {
	opts := recall.Options{Archive: lend(h.turns), Redact: h.redact, Now: h.now,
		Settings:    func(memory.AgentID) recall.Settings { return h.settings },
		SessionKind: func(memory.AgentID, string) string { return memory.SessionMain }}
	if h.items != nil {
		opts.Items = lend(h.items)
	}
	if h.meanings != nil {
		opts.Meaning = h.meanings.ask
	}
	if h.walker != nil {
		opts.Near = h.walker.Near
	}
	if h.rerank != nil {
		opts.Rerank = func(memory.AgentID) recall.Reranker { return h.rerank }
	}
	return recall.New(opts)
}
