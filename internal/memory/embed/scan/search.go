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
// as z = (score − mean) / std. They come from the vectors rounded to four bits a
// number, each right to some hundredths and the mean of many far better, and are
// summed up in whole numbers, so they do not depend on the order in which vectors
// were stored. Both are 0 for an empty index; Std is 0 too where all are equal.
type Found struct {
	Hits      []Hit // best first, equal scores by id; never nil
	Mean, Std float64

	rescored int // how many vectors were multiplied in full
}

// Search returns the k vectors nearest to the query, by cosine, among those whose
// id keep accepts; nil accepts all. There are fewer where fewer are stored or
// accepted. keep is called from the caller's goroutine, for some of the ids, and
// must not call methods of the index; with it a search keeps to one core. A query
// that does not pass Check, or a k below 1, is an error of the kind
// memory.ErrInvalid.
func (x *Index) Search(query []float32, k int, keep func(id int64) bool) (Found, error) {
	if k < 1 {
		return Found{}, &memory.FieldError{Field: "k", Reason: fmt.Sprintf("must be at least 1, not %d", k)}
	}
	s, _ := x.free.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	defer func() {
		s.probe.vector = nil
		x.free.Put(s)
	}()
	if err := s.probe.set(query, x.dim, x.turn); err != nil {
		return Found{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()

	n := len(x.at)
	if n == 0 {
		return Found{Hits: []Hit{}}, nil
	}
	total, near, least := x.scan(s, min(k, n), keep)
	var found Found
	found.Mean, found.Std = total.moments(n)
	// Near comes from several parts of the index, and grew while least did.
	near = slices.DeleteFunc(near, func(c candidate) bool { return c.most < least })
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Compare(b.most, a.most) })
	best := ranking{k: k, hits: make([]Hit, 0, min(k, len(near)))}
	for _, c := range near {
		if best.full() && c.most < best.hits[0].Score {
			break // neither this one nor those after it can reach the k-th best
		}
		found.rescored++
		best.add(Hit{ID: x.id(c.pos), Score: x.row(c.pos).cosine(query, s.probe.length)})
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

// parallelBytes is how many bytes of nibbles are worth another goroutine:
// scanning them takes some ten times as long as waking it.
const parallelBytes = 2 << 20

// scratch is what a search works in; it is used again by later ones.
type scratch struct {
	probe   probe
	workers []*worker
}

// scan passes over all rows, on as many cores as it is worth. It returns the sums
// of what the nibbles say about all, the rows that may be among the best k that
// keep accepts, and a cosine that the best k all reach.
func (x *Index) scan(s *scratch, k int, keep func(int64) bool) (total sums, near []candidate, least float64) {
	count := min(runtime.GOMAXPROCS(0), len(x.blocks), 1+len(x.at)*len(s.probe.codes)/2/parallelBytes)
	if keep != nil {
		count = 1
	}
	for len(s.workers) < count {
		s.workers = append(s.workers, &worker{})
	}
	workers := s.workers[:count]
	var next atomic.Int64
	var others sync.WaitGroup
	for _, w := range workers[1:] {
		others.Go(func() { w.run(x, &s.probe, &next, k, nil) })
	}
	workers[0].run(x, &s.probe, &next, k, keep)
	others.Wait()
	total, near, least = workers[0].total, workers[0].near, workers[0].reached()
	for _, w := range workers[1:] {
		total.first += w.total.first
		total.second += w.total.second
		near = append(near, w.near...)
		least = max(least, w.reached())
	}
	workers[0].near = near // what it has grown to serves the next search
	return total, near, least
}

// worker is what one goroutine of a search works in and leaves.
type worker struct {
	total sums
	near  []candidate
	best  ranking // the k best by the least that their cosines can be

	products [blockRows]int32
	rows     [blockRows]uint16
}

// candidate is a row whose cosine is at most this.
type candidate struct {
	pos  int
	most float64
}

// reached returns a cosine that k rows reach, or -1.
func (w *worker) reached() float64 {
	if !w.best.full() {
		return -1
	}
	return w.best.hits[0].Score
}

// run takes blocks until there are none left.
func (w *worker) run(x *Index, p *probe, next *atomic.Int64, k int, keep func(int64) bool) {
	w.total, w.near, w.best = sums{}, w.near[:0], ranking{k: k, hits: w.best.hits[:0]}
	for {
		i := int(next.Add(1)) - 1
		if i >= len(x.blocks) {
			return
		}
		b := x.blocks[i]
		rows := w.sift(x.kernel, b, p)
		x.kernel.dots(w.products[:], b.codes, rows, p.codes)
		reach := newReach(w.reached(), p.slack)
		for j, row := range rows {
			s := b.close[row]
			about := float64(w.products[j]) * p.scale * float64(s.unit)
			if !reach.by(s, float32(about)) {
				continue
			}
			least, most := s.span(about, p.slack)
			if most < w.reached() || keep != nil && !keep(b.ids[row]) {
				continue
			}
			w.near = append(w.near, candidate{pos: i*blockRows + int(row), most: most})
			w.best.add(Hit{Score: least})
			if j%64 == 0 {
				reach = newReach(w.reached(), p.slack)
			}
		}
	}
}

// sift returns the rows of the block that their nibbles do not rule out, and
// counts the cosines that the nibbles give to all of them.
func (w *worker) sift(k kernel, b *block, p *probe) []uint16 {
	n := len(b.ids)
	k.sift(w.products[:(n+groupRows-1)/groupRows*groupRows], b.nibbles, p.turned)
	reach := newReach(w.reached(), p.turnedSlack)
	scale, shift := float32(p.turnedScale), p.shift
	products, shadows := w.products[:n], b.coarse[:n]
	rows, passed := &w.rows, 0
	var first, second int64
	for i, d := range products {
		s := shadows[i]
		about := float32(2*d-shift) * (scale * s.unit)
		c := int64(about * sumUnit)
		first += c
		second += c * c
		if reach.by(s, about) {
			rows[passed%blockRows] = uint16(i)
			passed++
		}
	}
	w.total.first += first
	w.total.second += second
	return rows[:passed]
}

// sums are those of the cosines and of their squares, counted in units of 2^-18
// and 2^-36: whole numbers, so that no order of adding changes them. They hold
// for 2^27 vectors.
type sums struct{ first, second int64 }

const sumUnit = 1 << 18

// moments returns mean and standard deviation of n cosines.
func (s sums) moments(n int) (mean, std float64) {
	mean = float64(s.first) / float64(n)
	variance := float64(s.second)/float64(n) - mean*mean
	return mean / sumUnit, math.Sqrt(max(variance, 0)) / sumUnit
}

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
