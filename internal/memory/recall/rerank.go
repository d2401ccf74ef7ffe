package recall

import (
	"context"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
)

// Reranker orders the best candidates of a question anew. Relevance, by index of
// texts, is what they have been ranked by so far, highest first; the answer has
// every index once, best first. It returns before ctx ends.
type Reranker interface {
	Rerank(ctx context.Context, agent memory.AgentID, question string, texts []string, relevance []float64) ([]int, error)
}

// maxReranked is how many candidates a Reranker is given.
const maxReranked = 40

// rerank lets the agent's reranker, if it has one, order the best candidates. They
// exchange their scores, so that those behind keep their places. It takes at most
// half of the time that is left; without an answer the order stays, and the trace
// says why.
func (s *Service) rerank(ctx context.Context, f *found) {
	if s.opts.Rerank == nil {
		return
	}
	r := s.opts.Rerank(f.agent)
	if r == nil {
		return
	}
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	if err := s.reorder(ctx, f, r); err != nil {
		f.unranked = err
	}
}

// place is a candidate among both lists: an item where passage is false.
type place struct {
	passage bool
	at      int
	total   float64
}

func (s *Service) reorder(ctx context.Context, f *found, r Reranker) error {
	var best []place
	for i, it := range f.items {
		best = append(best, place{false, i, it.scores.total})
	}
	for i, e := range f.episodes {
		best = append(best, place{true, i, e.scores.total})
	}
	slices.SortStableFunc(best, func(a, b place) int { return compareDown(a.total, b.total) })
	best = best[:min(maxReranked, len(best))]
	texts, relevance, err := f.textsOf(ctx, best)
	if err != nil || len(texts) < 2 {
		return err
	}
	order, err := r.Rerank(ctx, f.agent, f.search.request.Text, texts, relevance)
	if err != nil {
		return err
	}
	seen := make([]bool, len(texts))
	for _, at := range order {
		if at < 0 || at >= len(seen) || seen[at] {
			return memory.Errorf(memory.ErrUnavailable, "the reranker's order names candidate %d wrongly", at)
		}
		seen[at] = true
	}
	if len(order) != len(texts) {
		return memory.Errorf(memory.ErrUnavailable, "the reranker ordered %d of %d candidates", len(order), len(texts))
	}
	for i, at := range order {
		if p := best[at]; p.passage {
			f.episodes[p.at].scores.total = relevance[i]
		} else {
			f.items[p.at].scores.total = relevance[i]
		}
	}
	slices.SortStableFunc(f.items, func(a, b rankedItem) int { return compareDown(a.scores.total, b.scores.total) })
	slices.SortStableFunc(f.episodes, func(a, b ranked) int { return compareDown(a.scores.total, b.scores.total) })
	return nil
}

func compareDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// textsOf returns what candidates say and their scores.
func (f *found) textsOf(ctx context.Context, best []place) (texts []string, relevance []float64, err error) {
	var numbers []int64
	for _, p := range best {
		if p.passage {
			numbers = append(numbers, int64(f.episodes[p.at].n))
		}
	}
	said := map[string]string{}
	if len(numbers) > 0 {
		read, err := f.store.Episodes(ctx, numbers)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range read {
			said[e.Handle] = e.Text
		}
	}
	for _, p := range best {
		text := ""
		if p.passage {
			text = said[archive.Handle(int64(f.episodes[p.at].n))]
		} else {
			text = f.items[p.at].item.Content
		}
		texts, relevance = append(texts, text), append(relevance, p.total)
	}
	return texts, relevance, nil
}

// MMR is maximal marginal relevance (Carbonell and Goldstein, 1998) with the
// overlap of content words as similarity: of two candidates that say the same the
// better one moves up, the other back. Lambda, 0 to 1, is how much relevance counts.
type MMR struct{ Lambda float64 }

// Rerank implements Reranker.
func (m MMR) Rerank(ctx context.Context, _ memory.AgentID, _ string, texts []string, relevance []float64) ([]int, error) {
	words := make([]map[string]bool, len(texts))
	for i, t := range texts {
		words[i] = contentWords(t)
	}
	highest, lowest := slices.Max(relevance), slices.Min(relevance)
	span := highest - lowest
	if span == 0 {
		span = 1
	}
	like := make([]float64, len(texts)) // to the most similar one taken so far
	taken := make([]bool, len(texts))
	order := make([]int, 0, len(texts))
	for range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next, value := -1, 0.0
		for i := range texts {
			if taken[i] {
				continue
			}
			if v := m.Lambda*(relevance[i]-lowest)/span - (1-m.Lambda)*like[i]; next < 0 || v > value {
				next, value = i, v
			}
		}
		taken[next], order = true, append(order, next)
		for i := range texts {
			if !taken[i] {
				like[i] = max(like[i], jaccard(words[i], words[next]))
			}
		}
	}
	return order, nil
}

// jaccard is the share of the words of both that both have.
func jaccard(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	if all := len(a) + len(b) - both; all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}
