package weave

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Limits of a walk.
const (
	mostItems = 64 // of the first step, from which the second one is taken
	hub       = 50 // more items make an entity one that joins nothing in particular
	secondHop = .5 // what a step further counts
)

// Walker finds the items that lie near those that a question names. It is safe
// for concurrent use.
type Walker struct {
	Read memory.Borrow[*graph.Store]

	mu    sync.Mutex
	names map[memory.AgentID]nameIndex
}

// nameIndex finds entities by the first word of their name.
type nameIndex struct {
	store    *graph.Store
	revision uint64
	byWord   map[string][]entityName
}

type entityName struct {
	id    string
	words []string
}

// Near returns how near items are to the people, places, projects and tools that
// a question names, by the item's id: 1 for one that all of them are in, less
// for others, and for what is named in many; at most limit items, the nearest.
// With two hops those that share an entity with such an item count too. The
// graph knows only which: what an item says, and whether it still holds, is for
// the working store to tell. An agent without a graph has nothing near.
func (w *Walker) Near(ctx context.Context, agent memory.AgentID, q text.Query, hops, limit int) (map[string]float64, error) {
	store, release, err := w.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) || hops <= 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var near map[string]float64
	err = store.View(ctx, func(v *graph.View) error {
		named := w.index(v, store, agent).named(q)
		s := stroll{view: v, agent: agent, near: map[string]float64{}}
		s.first(named)
		if hops > 1 {
			s.second(ctx, named)
		}
		near = s.nearest(limit)
		return ctx.Err()
	})
	return near, err
}

// index returns the names of an agent's entities, as they are in a view.
func (w *Walker) index(v *graph.View, store *graph.Store, agent memory.AgentID) nameIndex {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.names[agent]
	if known.store == store && known.revision == v.Revision() {
		return known
	}
	known = nameIndex{store, v.Revision(), map[string][]entityName{}}
	for n := range v.NodesOf(graph.Semantic) {
		if !isDerived(agent, n) || !slices.Contains(named, n.Tags[1]) {
			continue
		}
		if words := text.Words(n.Label); len(words) > 0 {
			known.byWord[words[0]] = append(known.byWord[words[0]], entityName{n.ID, words})
		}
	}
	if w.names == nil {
		w.names = map[memory.AgentID]nameIndex{}
	}
	w.names[agent] = known
	return known
}

// named returns the entities that a question names, and the speakers that it is
// known to mean.
func (x nameIndex) named(q text.Query) map[string]bool {
	found := map[string]bool{}
	for _, said := range append([]string{q.Text}, q.Speakers...) {
		words := text.Words(said)
		for i, w := range words {
			for _, e := range x.byWord[w] {
				if len(words)-i >= len(e.words) && slices.Equal(words[i:i+len(e.words)], e.words) {
					found[e.id] = true
				}
			}
		}
	}
	return found
}

// stroll is one walk.
type stroll struct {
	view  *graph.View
	agent memory.AgentID
	near  map[string]float64
}

// items returns the items of an entity.
func (s *stroll) items(entity string) []string {
	var ids []string
	for e := range s.view.Out(entity) {
		if e.Type == graph.DerivedFrom && isOf(s.agent, s.view.Node(e.Dst), kindItem) {
			ids = append(ids, e.Dst)
		}
	}
	return ids
}

// weight is what it tells to be among so many items of an entity.
func weight(items int) float64 { return 1 / (1 + math.Log(float64(max(items, 1)))) }

func (s *stroll) first(entities map[string]bool) {
	for id := range entities {
		items := s.items(id)
		if len(items) > hub {
			continue
		}
		for _, item := range items {
			s.near[item] += weight(len(items)) / float64(len(entities))
		}
	}
}

// second goes from the items that are near to those that share another entity
// with them.
func (s *stroll) second(ctx context.Context, walked map[string]bool) {
	further := map[string]float64{}
	for _, item := range ranked(s.near, mostItems) {
		for e := range s.view.In(item) {
			n := s.view.Node(e.Src)
			if e.Type != graph.DerivedFrom || walked[e.Src] || !isDerived(s.agent, n) || !slices.Contains(named, n.Tags[1]) || ctx.Err() != nil {
				continue
			}
			items := s.items(e.Src)
			if len(items) > hub {
				continue
			}
			for _, other := range items {
				if s.near[other] == 0 {
					further[other] = max(further[other], secondHop*s.near[item]*weight(len(items)))
				}
			}
		}
	}
	maps.Copy(s.near, further)
}

func (s *stroll) nearest(limit int) map[string]float64 {
	out := map[string]float64{}
	for _, id := range ranked(s.near, limit) {
		out[id] = s.near[id]
	}
	return out
}

// ranked returns the ids of the highest values, at most limit.
func ranked(near map[string]float64, limit int) []string {
	ids := slices.SortedFunc(maps.Keys(near), func(a, b string) int { return cmp.Or(cmp.Compare(near[b], near[a]), cmp.Compare(a, b)) })
	return ids[:min(limit, len(ids))]
}
