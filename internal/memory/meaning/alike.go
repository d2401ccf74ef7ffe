package meaning

import (
	"context"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/op"
)

// mostAlike is how many items one is held against: those nearest to it, however
// near that is. A few rare words more take a text far away in the built-in model.
const mostAlike = 8

// Pair is two items, by their handles.
type Pair struct{ A, B string }

// Alike returns the pairs of an agent's items whose vectors are the closest: each
// item with those nearest to it, every pair once, the older one first. It asks no
// model and makes no vector; without vectors there are none.
func (s *Service) Alike(ctx context.Context, agent memory.AgentID) ([]Pair, error) {
	src, err := s.Source(agent, "")
	if err != nil || src.Off {
		return nil, err
	}
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var x *scan.Index
	id, _, err := modelOf(ctx, v, src)
	if err == nil {
		x, err = v.Items(ctx, id)
	}
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return pairs(ctx, x)
}

// modelOf returns the id of the model whose vectors answer questions, and the model
// itself where it is the built-in one.
func modelOf(ctx context.Context, v *vectors.Store, src Source) (string, *lsa.Model, error) {
	if src.Embedder != nil {
		return src.Embedder.ModelID(), nil, nil
	}
	return current(ctx, v, true)
}

func pairs(ctx context.Context, x *scan.Index) ([]Pair, error) {
	var out []Pair
	seen := map[[2]int64]bool{}
	for i, id := range x.IDs() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i%1000 == 999 {
			op.Report(ctx, op.Progress{Done: int64(i + 1), Total: int64(x.Len()), Unit: "memories held against others"})
		}
		vector, has := x.Vector(id)
		if !has {
			continue
		}
		found, err := x.Search(vector, mostAlike+1, nil) // itself is among them
		if err != nil {
			return nil, err
		}
		for _, h := range found.Hits {
			pair := [2]int64{min(id, h.ID), max(id, h.ID)}
			if h.ID == id || seen[pair] {
				continue
			}
			seen[pair] = true
			out = append(out, Pair{handleOf(pair[0]), handleOf(pair[1])})
		}
	}
	return out, nil
}

func handleOf(id int64) string {
	n, _ := vectors.ID(id).Item()
	return fmt.Sprintf("MEM-%d", n)
}

// AlikeTo returns the handles of the items nearest to one that is not stored yet,
// the nearest first. No text is sent for it: where another than the built-in model
// makes the vectors, there has to be one of the same text. ErrNotFound says that
// there is none, or nothing to hold it against; ErrUnavailable that the vectors are
// still being loaded.
func (s *Service) AlikeTo(ctx context.Context, agent memory.AgentID, it memory.Item) ([]string, error) {
	whole := ItemText(it)
	src, err := s.Source(agent, "")
	if err != nil {
		return nil, err
	}
	if src.Off || whole == "" {
		return nil, memory.Errorf(memory.ErrNotFound, "the item has no vector")
	}
	v, release, err := s.Read(ctx, agent)
	if err != nil {
		return nil, err
	}
	q, err := pose(ctx, v, src, whole)
	if err == nil && src.Embedder != nil {
		q.vector, err = v.OfText(ctx, q.Model, vectors.HashOf(whole))
	}
	if err != nil {
		release()
		return nil, err
	}
	if q.index, err = index(ctx, v, q.Model, release); err != nil {
		return nil, err
	}
	found, err := q.Nearest(mostAlike, func(id vectors.ID) bool { _, is := id.Item(); return is })
	if err != nil {
		return nil, err
	}
	out := make([]string, len(found.Hits))
	for i, h := range found.Hits {
		out[i] = handleOf(h.ID)
	}
	return out, nil
}
