package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// followWithin bounds how long a graph's following of its memory holds up the
// end of the program. What is left is followed next time.
const followWithin = 10 * time.Second

// enterWithin is how long a program that ends waits for an erasure to let it follow.
const enterWithin = time.Second

// weaving is the following that goes on in the background.
type weaving struct {
	mu      sync.Mutex
	changed map[memory.AgentID]bool // agents whose graph is being brought up to date: true where there are more changes
	work    sync.WaitGroup
}

// fromMemory reports whether an agent's graph follows its memory. A graph that
// the environment names is another program's: nothing is put into it unasked.
func (h *house) fromMemory(agent memory.AgentID) bool {
	cfg, err := h.cfg.For(agent)
	if err != nil || !cfg.Memory.Enabled || !cfg.Graph.FromMemory {
		return false
	}
	path, _ := h.graphAt(agent)
	return path == h.ownGraph(agent)
}

// follower lets agents' graphs follow their memory.
func (h *house) follower() *weave.Follower {
	return &weave.Follower{Items: h.items.read, Read: h.readGraph, Write: h.graphs.write, Hold: h.hold(erasure.Follow), Speakers: h.speakers}
}

// speakers tells who said what.
func (h *house) speakers(ctx context.Context, agent memory.AgentID, eventIDs []string) (map[string]string, error) {
	a, release, err := h.followed(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	turns, err := a.Turns(ctx, eventIDs)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(turns))
	for id, t := range turns {
		out[id] = t.Speaker
	}
	return out, nil
}

// itemsChanged has an agent's graph and messages follow in the background, one
// run at a time.
func (h *house) itemsChanged(agent memory.AgentID) {
	h.embedSoon(agent)
	h.forgetBlocks(agent)
	if !h.fromMemory(agent) && !h.speaksUp(agent) {
		return
	}
	w := &h.weaving
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = map[memory.AgentID]bool{}
	}
	_, running := w.changed[agent]
	w.changed[agent] = running
	if !running {
		w.work.Go(func() { h.followChanges(agent) })
	}
}

// followChanges follows until nothing has changed meanwhile.
func (h *house) followChanges(agent memory.AgentID) {
	for again := true; again; {
		h.followOnce(agent)
		w := &h.weaving
		w.mu.Lock()
		if again = w.changed[agent]; again {
			w.changed[agent] = false
		} else {
			delete(w.changed, agent)
		}
		w.mu.Unlock()
	}
}

// followOnce brings an agent's graph and messages up to date with its memory.
func (h *house) followOnce(agent memory.AgentID) {
	// An erasure that is under way is waited for as long as the program runs.
	work, done, err := h.hold(erasure.Follow)(h.life, agent)
	if h.life.Err() != nil && err != nil {
		// The program was at its end before this began, as a short command can be. What
		// it has changed is followed all the same, unless an erasure is under way.
		brief, cancel := context.WithTimeout(context.WithoutCancel(h.life), enterWithin)
		defer cancel()
		work, done, err = h.hold(erasure.Follow)(brief, agent)
	}
	if err != nil {
		if h.life.Err() == nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg("bring graph and messages up to date with memory")
		}
		return // it is followed next time
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), followWithin)
	defer cancel()
	if h.speaksUp(agent) {
		if _, err := h.desk.Update(ctx, agent); err != nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg("bring messages up to date with memory")
		}
	}
	if h.fromMemory(agent) {
		if _, err := h.follower().Follow(ctx, agent); err != nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg("bring the graph up to date with memory")
		}
	}
}

// followedGraph lends an agent's graph, brought up to date with its memory.
// Where that cannot be done the graph is lent as it is.
func (h *house) followedGraph(ctx context.Context, agent memory.AgentID) (*graph.Store, func(), error) {
	store, release, err := h.readGraph(ctx, agent)
	if none := errors.Is(err, memory.ErrNotFound); !h.fromMemory(agent) || err != nil && !none {
		return store, release, err
	}
	if _, followErr := h.follower().Follow(ctx, agent); followErr != nil && ctx.Err() == nil {
		h.log.Warn().Err(followErr).Str("agent", string(agent)).Msg("bring the graph up to date with memory")
	}
	if err != nil {
		return h.readGraph(ctx, agent)
	}
	return store, release, nil
}

// walkable lends an agent's graph for recall. Under a deadline it is lent as it
// is: changes of memory are followed behind each of them.
func (h *house) walkable(ctx context.Context, agent memory.AgentID) (*graph.Store, func(), error) {
	if _, hurried := ctx.Deadline(); hurried {
		return h.readGraph(ctx, agent)
	}
	return h.followedGraph(ctx, agent)
}

// makeRecorder returns what writes down what happens while agents work.
func (h *house) makeRecorder(graphs *graph.Service) *weave.Recorder {
	return &weave.Recorder{Host: h.graphHost, Log: h.log,
		Dropped: func(agent memory.AgentID) { h.losses.Add(agent, vitals.LostHooks, 1) },
		Hooks: func(agent memory.AgentID) (*graph.Hooks, error) {
			cfg, err := h.cfg.For(agent)
			if err != nil || !cfg.Memory.Enabled || !cfg.Graph.Hooks {
				return nil, err
			}
			hooks := graphs.Hooks(agent)
			if cfg.Graph.HooksTTL > 0 {
				hooks = hooks.Expiring(time.Duration(cfg.Graph.HooksTTL))
			}
			return hooks, nil
		},
		SaveBundle: func(ctx context.Context, agent memory.AgentID, path string) error {
			_, err := graphs.SaveBundle(ctx, agent, string(agent), path)
			return err
		},
	}
}

// personaDays is how long a trait that is not updated stays active.
const personaDays = 90

// persona returns an agent's active traits.
func (h *house) persona(ctx context.Context, agent memory.AgentID) ([]graph.Trait, error) {
	store, release, err := h.readGraph(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var traits []graph.Trait
	err = store.View(ctx, func(v *graph.View) error {
		traits = v.ActiveTraits(string(agent), float64(h.now().Unix()), personaDays)
		return nil
	})
	return traits, err
}
