package recall

import (
	"context"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
)

// Meaning makes a question into something that an agent's memories can be held
// against by what they mean, within the time of ctx. An error says why that cannot be
// done now; ErrNotFound that there is nothing to hold it against. Then words alone
// decide.
type Meaning func(ctx context.Context, agent memory.AgentID, question string) (Nearness, error)

// Nearness says how near an agent's memories are to one question: as the cosine of
// their vectors, -1 to 1.
type Nearness interface {
	// Model names what made the vectors.
	Model() string
	// Nearest returns the k nearest memories among those that keep accepts, the
	// nearest first, and the mean and standard deviation of the cosines of all that
	// there are. keep is called before it returns, and not from two goroutines at once.
	Nearest(k int, keep func(Ref) bool) (hits []Hit, mean, std float64, err error)
	// Cosines returns those of the given memories that have a vector.
	Cosines(refs []Ref) ([]Hit, error)
}

// Ref names a memory: the passage EVT-n, or the item MEM-n.
type Ref struct {
	Item bool
	N    int64
}

// Hit is a memory and its cosine with a question.
type Hit struct {
	Ref
	Cosine float64
}

// mode says what ranks memories.
type mode int

const (
	auto    mode = iota // both, where there are vectors
	lexical             // words alone
	hybrid              // as auto
	vector              // meaning alone
)

// The names of the modes that a search or a block can have used.
const (
	usedLexical = "lexical"
	usedHybrid  = "hybrid"
	usedVector  = "vector"
)

const (
	// askWithin is how long a search without a deadline waits for the vector of a question.
	askWithin = 5 * time.Second
	// reranked is how many of the best by words are held against the question by
	// meaning. One behind them would have to be nearer than any that was ever found.
	reranked = 512
	// nearestLooked is how many of the nearest memories are candidates, whatever their words.
	nearestLooked = 256
)

// answer is what became of asking for the meaning of a question.
type answer struct {
	near Nearness
	err  error
}

// ask starts to make the question's vector, and returns what waits for it: at most
// half of the time that ctx has.
func (s *Service) ask(ctx context.Context, f *found) func() answer {
	switch {
	case f.search.mode == lexical:
		return func() answer { return answer{} }
	case s.opts.Meaning == nil:
		return func() answer { return answer{err: memory.Errorf(memory.ErrNotFound, "there are no vectors")} }
	case f.search.mainOnly:
		return func() answer { return answer{err: memory.Errorf(memory.ErrUnavailable, mainOnly)} }
	}
	within := askWithin
	if deadline, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	done := make(chan answer, 1) // buffered: nobody may wait for a late one
	ask := s.opts.Meaning
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: memory.Errorf(memory.ErrInternal, "the meaning of the question: %v", p)}
			}
			done <- a
		}()
		a.near, a.err = ask(ctx, f.agent, f.search.request.Text)
	}()
	return func() answer {
		defer cancel()
		select {
		case a := <-done:
			return a
		case <-ctx.Done():
			return answer{err: memory.Errorf(memory.ErrUnavailable, "the question's vector was not made in time: %w", ctx.Err())}
		}
	}
}

// closeness holds what is near to a question, and what cosines are measured by.
type closeness struct {
	Nearness
	hits      []Hit // the nearest, of both kinds
	mean, std float64
}

// z returns how many standard deviations a cosine lies above the mean.
func (c *closeness) z(cosine float64) float64 {
	if c.std == 0 {
		return 0
	}
	return (cosine - c.mean) / c.std
}

// among returns the nearest memories that keep accepts, without which no closeness
// can be told.
func among(near Nearness, limit int, keep func(Ref) bool) (*closeness, error) {
	c := &closeness{Nearness: near}
	var err error
	c.hits, c.mean, c.std, err = near.Nearest(max(limit, nearestLooked), keep)
	return c, err
}

// of returns z of those of the memories that have a vector, by their number.
func (c *closeness) of(refs []Ref) (map[int64]float64, error) {
	hits, err := c.Cosines(refs)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]float64, len(hits))
	for _, h := range hits {
		out[h.N] = c.z(h.Cosine)
	}
	return out, nil
}

// look finds the memories nearest to the question into f.close. What goes wrong is
// the reason that words alone decide.
func (s *Service) look(f *found, asked answer, hits *archive.Hits, hidden func(session uint32) bool) {
	f.used = usedLexical
	if f.search.mode == lexical {
		return
	}
	if f.whyLexical = asked.err; f.whyLexical != nil {
		return
	}
	close, err := among(asked.near, f.search.limit, func(r Ref) bool {
		if r.Item {
			return f.search.scope != onlyEpisodes
		}
		n := uint32(r.N)
		return f.search.scope != onlyItems && r.N >= 1 && r.N <= int64(hits.Len()) && hits.Flags(n)&(archive.Suppressed|archive.Probe) == 0 && (hidden == nil || !hidden(hits.Session(n)))
	})
	if f.whyLexical = err; err != nil {
		return
	}
	f.close, f.used = close, usedHybrid
	if f.search.mode == vector {
		f.used = usedVector
	}
}

// nearItems returns the numbers of the items among the nearest memories, at most
// limit of them.
func (c *closeness) nearItems(limit int) []int64 {
	var out []int64
	for _, h := range c.hits {
		if h.Item && len(out) < limit {
			out = append(out, h.N)
		}
	}
	return out
}

// byMeaning adds the nearest passages to the best by words, and scores all of them
// again by both.
func (s *scorer) byMeaning(best []pick, c *closeness) ([]pick, error) {
	known := make(map[uint32]bool, len(best))
	refs := make([]Ref, 0, len(best)+len(c.hits))
	for _, p := range best {
		known[p.n] = true
		refs = append(refs, Ref{N: int64(p.n)})
	}
	for _, h := range c.hits {
		if n := uint32(h.N); !h.Item && !known[n] {
			best = append(best, pick{n: n})
			refs = append(refs, h.Ref)
		}
	}
	var err error
	if s.near, err = c.of(refs); err != nil {
		return nil, fmt.Errorf("meaning of passages: %w", err)
	}
	for i := range best {
		best[i].score = s.total(best[i].n)
	}
	return best, nil
}

// onlyMeaning returns the nearest passages; none without vectors.
func (f *found) onlyMeaning() []ranked {
	if f.close == nil {
		return nil
	}
	var out []ranked
	for _, h := range f.close.hits {
		if z := f.close.z(h.Cosine); !h.Item && len(out) < f.search.limit {
			out = append(out, ranked{uint32(h.N), scores{meaning: z, total: wMeaning * z}})
		}
	}
	return out
}

// weighMeaning adds to the scores of items how near they are. Where meaning alone
// decides, it is all that counts.
func (f *found) weighMeaning(items []rankedItem) error {
	if f.close == nil {
		return nil
	}
	refs := make([]Ref, 0, len(items))
	numbers := make([]int64, len(items))
	for i, it := range items {
		var n int64
		if _, err := fmt.Sscanf(it.item.Handle, "MEM-%d", &n); err == nil { // other sources have handles of their own
			numbers[i] = n
			refs = append(refs, Ref{Item: true, N: n})
		}
	}
	near, err := f.close.of(refs)
	if err != nil {
		return fmt.Errorf("meaning of items: %w", err)
	}
	for i := range items {
		sc := &items[i].scores
		if f.used == usedVector {
			*sc = scores{}
		}
		sc.meaning = near[numbers[i]]
		sc.total += wMeaning * sc.meaning
	}
	return nil
}

// withoutVectors says why words alone decided; "" where that was asked for, or not
// so.
func (f *found) withoutVectors() string {
	if f.whyLexical == nil {
		return ""
	}
	return f.whyLexical.Error()
}
