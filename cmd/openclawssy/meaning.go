package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/maintenance"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// makeMeaning returns what keeps agents' vectors.
func (h *house) makeMeaning() *meaning.Service {
	return meaning.New(meaning.Options{
		Archives: h.followed, Items: h.items.read, Read: h.readVectors, Write: h.vectors.write, Source: h.embedsWith, Now: h.now,
		Dir: func(agent memory.AgentID) (string, error) {
			dir, err := h.home.Find(agent)
			return dir.Path("memory"), err
		},
	})
}

// embedsWith says what makes an agent's vectors.
func (h *house) embedsWith(agent memory.AgentID, model string) (meaning.Source, error) {
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return meaning.Source{}, err
	}
	src := meaning.Source{Provider: embedProvider(cfg.Embeddings, h.getenv)}
	if src.Off = src.Provider == embed.Off || !cfg.Memory.Enabled; src.Off {
		return src, nil
	}
	client, err := h.embeddingsOf(cfg.Embeddings, model)
	if err != nil || client == nil {
		return src, err
	}
	src.Embedder, src.Host = client.For(agent), client.Host()
	return src, nil
}

func (h *house) openVectors(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*vectors.Store, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	s, err := vectors.Open(ctx, dir.Path("memory", vectors.FileName), vectors.Options{Now: h.now, Short: !h.lasting.Load()})
	return s, nil, err
}

func (h *house) openVectorsReadOnly(ctx context.Context, _ memory.AgentID, dir agents.Dir) (*vectors.Store, []func(), error) {
	s, err := vectors.Open(ctx, dir.Path("memory", vectors.FileName), vectors.Options{Now: h.now, Short: !h.lasting.Load(), ReadOnly: true})
	return s, nil, err
}

// readVectors lends an agent's vectors; ErrNotFound where none were made.
func (h *house) readVectors(ctx context.Context, agent memory.AgentID) (*vectors.Store, func(), error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(dir.Path("memory", vectors.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no vectors", agent)
	}
	return h.vectors.read(ctx, agent)
}

// eraseVectors takes the vectors of what was erased, and the built-in model, which
// knows its words.
func (h *house) eraseVectors(ctx context.Context, agent memory.AgentID, _ *erasure.Target) (int, error) {
	return h.meaning.Forget(ctx, agent)
}

// embeddingHealth tells status how an agent's vectors are.
func (h *house) embeddingHealth(ctx context.Context, agent memory.AgentID) (care.Embeddings, error) {
	m, err := h.meaning.Health(ctx, agent)
	return care.Embeddings(m), err
}

// Times of the worker that makes vectors in the background.
const (
	embedAfter = 2 * time.Second // of quiet, so that the turns of a conversation go together
	embedAgain = time.Minute     // after a failure; doubled up to embedMost
	embedMost  = time.Hour
	// learnQuickly is how many passages are learned from in about a second: more
	// are left to processes that last.
	learnQuickly = 5000
)

// embedding is the work of a process that lasts on the vectors of its agents.
type embedding struct {
	mu   sync.Mutex
	due  map[memory.AgentID]time.Time
	wait map[memory.AgentID]time.Duration // after the next failure
	wake chan struct{}
}

// embedSoon has an agent's vectors brought up to date, in a process that lasts. In
// others the agent is remembered for the process's end.
func (h *house) embedSoon(agent memory.AgentID) { h.embedAt(agent, h.now().Add(embedAfter)) }

func (h *house) embedAt(agent memory.AgentID, at time.Time) {
	e := &h.embedding
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.due == nil {
		e.due, e.wait = map[memory.AgentID]time.Time{}, map[memory.AgentID]time.Duration{}
	}
	if was, waits := e.due[agent]; waits && was.Before(at) {
		return
	}
	e.due[agent] = at
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// next returns the agent whose turn it is, or how long to wait for one; without
// any it is 0 and false.
func (e *embedding) next(now time.Time) (agent memory.AgentID, wait time.Duration, some bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, at := range e.due {
		if left := at.Sub(now); !some || left < wait {
			agent, wait, some = id, left, true
		}
	}
	if some && wait <= 0 {
		delete(e.due, agent)
	}
	return agent, wait, some
}

// keepEmbedding makes the vectors of agents as they become due. Where nothing was
// said it waits, and does nothing.
func (h *house) keepEmbedding(ctx context.Context) {
	list, err := h.home.List()
	if err != nil {
		h.log.Warn().Err(err).Msg("list agents, to make their vectors")
	}
	for _, agent := range list {
		h.embedSoon(agent) // what other processes have left
	}
	for ctx.Err() == nil {
		agent, wait, some := h.embedding.next(h.now())
		if some && wait <= 0 {
			h.embedNow(ctx, agent)
			continue
		}
		if !some {
			wait = embedMost
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-h.embedding.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// embedNow brings an agent's vectors up to date; where that fails it is tried
// again later, and later still.
func (h *house) embedNow(ctx context.Context, agent memory.AgentID) {
	_, err := h.meaning.CatchUp(ctx, agent, meaning.Asked{})
	e := &h.embedding
	e.mu.Lock()
	wait := min(max(embedAgain, 2*e.wait[agent]), embedMost)
	if e.wait[agent] = wait; err == nil {
		delete(e.wait, agent)
	}
	e.mu.Unlock()
	var over *spend.OverError
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, memory.ErrNotFound):
		return
	case errors.As(err, &over):
		wait = max(wait, over.ResetsAt.Sub(h.now()))
	case errors.Is(err, memory.ErrConflict): // another process is at it
	default:
		h.log.Warn().Err(err).Str("agent", string(agent)).Str("again_in", wait.String()).Msg("make vectors")
	}
	h.embedAt(agent, h.now().Add(wait))
}

// embedRest gives the texts that a short process has added their vectors, within a
// short time, where nothing has to be sent for that. What is left is made by the
// next process that lasts, or by memory reembed.
func (h *house) embedRest() {
	if h.lasting.Load() {
		return
	}
	h.embedding.mu.Lock()
	due := h.embedding.due
	h.embedding.due = nil
	h.embedding.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), followWithin)
	defer cancel()
	for agent := range due {
		if src, err := h.embedsWith(agent, ""); err != nil || src.Embedder != nil {
			continue
		}
		_, err := h.meaning.CatchUp(ctx, agent, meaning.Asked{MostLearned: learnQuickly})
		if err != nil && !errors.Is(err, memory.ErrNotFound) && !errors.Is(err, memory.ErrConflict) && ctx.Err() == nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg("make vectors")
		}
	}
}

// alike finds memories for maintenance that may say the same.
func (h *house) alike(ctx context.Context, agent memory.AgentID) ([]maintenance.Pair, error) {
	found, err := h.meaning.Alike(ctx, agent)
	pairs := make([]maintenance.Pair, len(found))
	for i, p := range found {
		pairs[i] = maintenance.Pair(p)
	}
	return pairs, err
}

// alikeWithin is how long a new memory waits to be held against others by its vector,
// which takes a millisecond once the vectors are loaded. Maintenance does so later in
// any case.
const alikeWithin = time.Second

// alikeTo finds memories that may say the same as a new one.
func (h *house) alikeTo(ctx context.Context, agent memory.AgentID, it memory.Item) []string {
	ctx, cancel := context.WithTimeout(ctx, alikeWithin)
	defer cancel()
	handles, err := h.meaning.AlikeTo(ctx, agent, it)
	if err != nil && !errors.Is(err, memory.ErrNotFound) && !errors.Is(err, memory.ErrUnavailable) && ctx.Err() == nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("hold a new memory against others by its vector")
	}
	return handles
}

// meant makes a question into what recall holds an agent's memories against.
func (h *house) meant(ctx context.Context, agent memory.AgentID, question string) (recall.Nearness, error) {
	q, err := h.meaning.Ask(ctx, agent, question)
	if err != nil {
		return nil, err
	}
	return nearness{q}, nil
}

// nearness answers recall in its own terms.
type nearness struct{ q *meaning.Question }

func (n nearness) Model() string { return n.q.Model }

func (n nearness) Nearest(k int, keep func(recall.Ref) bool) ([]recall.Hit, float64, float64, error) {
	found, err := n.q.Nearest(k, func(id vectors.ID) bool { return keep == nil || keep(refOf(id)) })
	if err != nil {
		return nil, 0, 0, err
	}
	hits := make([]recall.Hit, len(found.Hits))
	for i, h := range found.Hits {
		hits[i] = recall.Hit{Ref: refOf(vectors.ID(h.ID)), Cosine: h.Score}
	}
	return hits, found.Mean, found.Std, nil
}

func (n nearness) Cosines(refs []recall.Ref) ([]recall.Hit, error) {
	ids := make([]vectors.ID, len(refs))
	for i, r := range refs {
		ids[i] = vectors.OfPassage(r.N)
		if r.Item {
			ids[i] = vectors.OfItem(r.N)
		}
	}
	cosines, err := n.q.Cosines(ids)
	if err != nil {
		return nil, err
	}
	var hits []recall.Hit
	for i, id := range ids {
		if c, has := cosines[id]; has {
			hits = append(hits, recall.Hit{Ref: refs[i], Cosine: c})
		}
	}
	return hits, nil
}

func refOf(id vectors.ID) recall.Ref {
	if n, is := id.Item(); is {
		return recall.Ref{Item: true, N: n}
	}
	n, _ := id.Passage()
	return recall.Ref{N: n}
}
