package scan

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Hit is a stored vector and its cosine with the query, -1 to 1, as exact as the
// float32 numbers that went in.
type Hit struct {
	ID    int64
	Score float64
}

// before is the order of hits: best first, equal scores by id.
func before(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

// Found is what a search found. Mean and Std are mean and standard deviation of
// the query's cosine with all vectors of the index, filtered or not, for scores
// as z = (score − mean) / std. They come from the codes, in whole numbers, so
// they do not depend on the order in which vectors were stored; they are right
// to some thousandths. Both are 0 for an empty index; Std is 0 too where all are equal.
type Found struct {
	Hits      []Hit // best first, equal scores by id; never nil
	Mean, Std float64

	rescored int // how many vectors the codes alone could not rule out
}

// Search returns the k vectors nearest to the query, by cosine, among those whose
// id keep accepts; nil accepts all. There are fewer where fewer are stored or
// accepted. keep is called from the caller's goroutine, for some of the ids, and
// must not call methods of the index. A query that does not pass Check, or a k
// below 1, is an error of the kind memory.ErrInvalid.
func (x *Index) Search(query []float32, k int, keep func(id int64) bool) (Found, error) {
	if k < 1 {
		return Found{}, &memory.FieldError{Field: "k", Reason: fmt.Sprintf("must be at least 1, not %d", k)}
	}
	p, err := newProbe(query, x.dim)
	if err != nil {
		return Found{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()

	n := len(x.at)
	found := Found{Hits: []Hit{}}
	if n == 0 {
		return found, nil
	}
	about := make([]float32, n)
	total := x.scan(p, about)
	found.Mean, found.Std = total.moments(n)

	near := x.candidates(p, about, k, keep)
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Compare(b.most, a.most) })
	best := ranking{k: k, hits: found.Hits}
	for _, c := range near {
		if best.full() && clamp(c.most) < best.hits[0].Score {
			break // neither this one nor those after it can reach the k-th best
		}
		found.rescored++
		best.add(Hit{ID: x.id(c.pos), Score: x.row(c.pos).cosine(p.vector, p.length)})
	}
	found.Hits = best.sorted()
	return found, nil
}

// Scores returns the cosine of the query with the vectors of the ids, in the
// order of ids, without those that the index does not have. Never nil. A query
// that does not pass Check is an error of the kind memory.ErrInvalid.
func (x *Index) Scores(query []float32, ids []int64) ([]Hit, error) {
	norm, err := length(query, x.dim)
	if err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]Hit, 0, len(ids))
	for _, id := range ids {
		if pos, known := x.at[id]; known {
			out = append(out, Hit{ID: id, Score: x.row(pos).cosine(query, norm)})
		}
	}
	return out, nil
}

func (x *Index) id(pos int) int64 { return x.blocks[pos/blockRows].ids[pos%blockRows] }

// parallelBytes is how many bytes of codes are worth another goroutine: scanning
// them takes some ten times as long as waking it.
const parallelBytes = 2 << 20

// scan multiplies the codes of all rows with those of the query and sets about to
// the cosines that they give, by position, on as many cores as it is worth.
func (x *Index) scan(p probe, about []float32) sums {
	workers := min(runtime.GOMAXPROCS(0), len(x.blocks), 1+len(about)*len(p.codes)/parallelBytes)
	totals := make([]sums, workers)
	var next atomic.Int64
	work := func(total *sums) {
		var local sums
		var dots [blockRows]int32
		for {
			i := int(next.Add(1)) - 1
			if i >= len(x.blocks) {
				break
			}
			b := x.blocks[i]
			x.kernel.dots(dots[:len(b.ids)], b.codes, p.codes)
			local.add(about[i*blockRows:], dots[:len(b.ids)], b.scale, p.scale)
		}
		*total = local
	}
	var others sync.WaitGroup
	for w := 1; w < workers; w++ {
		others.Go(func() { work(&totals[w]) })
	}
	work(&totals[0])
	others.Wait()
	for _, t := range totals[1:] {
		totals[0].first += t.first
		totals[0].second += t.second
	}
	return totals[0]
}

// sums are those of the cosines and of their squares, counted in units of 2^-18
// and 2^-36: whole numbers, so that no order of adding changes them. They hold
// for 2^27 vectors.
type sums struct{ first, second int64 }

const sumUnit = 1 << 18

// add turns the sums of products of a block into cosines and counts them.
func (s *sums) add(about []float32, dots []int32, scale []float32, query float64) {
	scale, about = scale[:len(dots)], about[:len(dots)]
	var first, second int64
	for i, d := range dots {
		cos := float64(d) * float64(scale[i]) * query
		about[i] = float32(cos)
		n := int64(cos * sumUnit)
		first += n
		second += n * n
	}
	s.first += first
	s.second += second
}

// moments returns mean and standard deviation of n cosines.
func (s sums) moments(n int) (mean, std float64) {
	mean = float64(s.first) / float64(n)
	variance := float64(s.second)/float64(n) - mean*mean
	return mean / sumUnit, math.Sqrt(max(variance, 0)) / sumUnit
}

// candidate is a row whose cosine is at most this.
type candidate struct {
	pos  int
	most float64
}

// candidates returns the accepted rows that may be among the best k. The k rows
// whose codes promise most are scored in full; the worst of them is a score that
// the best k all reach, and every row whose bound reaches it is a candidate.
func (x *Index) candidates(p probe, about []float32, k int, keep func(int64) bool) []candidate {
	seeds := ranking{k: min(k, len(about))}
	floor := float32(math.Inf(-1))
	for pos, a := range about {
		if a < floor || keep != nil && !keep(x.id(pos)) {
			continue
		}
		seeds.add(Hit{ID: int64(pos), Score: float64(a)})
		if seeds.full() {
			floor = float32(seeds.hits[0].Score)
		}
	}
	least := math.Inf(-1)
	if len(seeds.hits) == k {
		least = 1
		for _, s := range seeds.hits {
			least = min(least, x.row(int(s.ID)).cosine(p.vector, p.length))
		}
	}
	// The widest bound of all rows rules out most at the price of a comparison.
	cut := float32(least - p.bound(x.slack) - rounding)
	var near []candidate
	for pos, a := range about {
		if a < cut {
			continue
		}
		most := float64(a) + p.bound(x.blocks[pos/blockRows].slack[pos%blockRows]) + rounding
		if clamp(most) >= least && (keep == nil || keep(x.id(pos))) {
			near = append(near, candidate{pos: pos, most: most})
		}
	}
	return near
}

// rounding is more than what a cosine loses as a float32, twice over.
const rounding = 2e-7

// ranking keeps the best k hits, a heap with the worst on top.
type ranking struct {
	k    int
	hits []Hit
}

func (r *ranking) full() bool { return len(r.hits) == r.k }

func worse(a, b Hit) bool { return before(a, b) > 0 }

func (r *ranking) add(h Hit) {
	switch {
	case !r.full():
		r.hits = append(r.hits, h)
		up(r.hits, worse)
	case worse(r.hits[0], h):
		r.hits[0] = h
		down(r.hits, worse)
	}
}

func (r *ranking) sorted() []Hit {
	slices.SortFunc(r.hits, before)
	return r.hits
}

// up moves the last element of a heap to its place; less puts it nearer the top.
func up[T any](heap []T, less func(a, b T) bool) {
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !less(heap[i], heap[parent]) {
			return
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
}

// down moves the first element of a heap to its place.
func down[T any](heap []T, less func(a, b T) bool) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
