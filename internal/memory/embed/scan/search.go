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
// as z = (score − mean) / std. Mean is that of the vectors as stored. Std comes from
// them rounded to four bits a number, in 256 dimensions and more to two, and is right
// to some hundredths. Neither depends on the order in which vectors were stored. Both
// are 0 for an empty index; Std is 0 too where all are equal.
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
	found.Mean, found.Std = x.mean(query, s.probe.length), total.std(n, len(s.probe.turned))
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

// mean returns the mean of the query's cosines with all vectors, of which there is
// one at least: that with their sum, divided by their number.
func (x *Index) mean(query []float32, length float64) float64 {
	var dot float64
	for i, s := range x.sum {
		dot += float64(query[i]) * float64(s)
	}
	return clamp(dot / length / unitSum / float64(len(x.at)))
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
	floor := workers[0].seed(x, &s.probe, k, keep)
	for _, w := range workers {
		w.floor = floor
	}
	var next atomic.Int64
	var others sync.WaitGroup
	for _, w := range workers[1:] {
		others.Go(func() { w.run(x, &s.probe, &next, k, nil) })
	}
	workers[0].run(x, &s.probe, &next, k, keep)
	others.Wait()
	total, near, least = workers[0].total, workers[0].near, workers[0].reached()
	for _, w := range workers[1:] {
		total.add(w.total)
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
	floor float64 // a cosine that k rows reach, known beforehand; or -1

	first    []Hit // of seed
	products [blockRows]int32
	rows     [blockRows + 1]uint16
	passing  passing
}

// candidate is a row whose cosine is at most this.
type candidate struct {
	pos  int
	most float64
}

// reached returns a cosine that k rows reach, or -1.
func (w *worker) reached() float64 {
	if !w.best.full() {
		return w.floor
	}
	return max(w.floor, w.best.hits[0].Score)
}

// seeds is how many rows for each wanted one are looked at beforehand.
const seeds = 4

// seed returns a cosine that k rows of the first block reach: those that its nibbles
// put first, as far as codes tell for certain. So a search need not multiply all of
// that block in full to have something to rule others out by. It is -1 where the
// block has too few rows.
func (w *worker) seed(x *Index, p *probe, k int, keep func(int64) bool) float64 {
	b := x.blocks[0]
	n := len(b.ids)
	if n < 2*seeds*k {
		return -1
	}
	products := w.products[:(n+groupRows-1)/groupRows*groupRows]
	clear(products)
	x.kernel.sift(products, b.high, p.turned)
	x.kernel.sift(products, b.low, p.turned)
	first := ranking{k: seeds * k, hits: w.first[:0]}
	for i, d := range products[:n] {
		if keep == nil || keep(b.ids[i]) {
			first.add(Hit{ID: int64(i), Score: float64(2*d-15*p.sum) * float64(b.coarse[i].unit)})
		}
	}
	w.first = first.hits
	rows := w.rows[:len(first.hits)]
	for i, h := range first.hits {
		rows[i] = uint16(h.ID)
	}
	slices.Sort(rows)
	x.kernel.dots(w.products[:], b.codes, rows, p.codes)
	best := ranking{k: k, hits: w.best.hits[:0]}
	for i, row := range rows {
		s := b.close[row]
		least, _ := s.span(float64(w.products[i])*p.scale*float64(s.unit), p.slack)
		best.add(Hit{Score: least})
	}
	w.best.hits = best.hits[:0]
	if !best.full() {
		return -1
	}
	return best.hits[0].Score
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
		reach := newReach(w.reached(), p.slack, 1)
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
				reach = newReach(w.reached(), p.slack, 1)
			}
		}
	}
}

// sift returns the rows of the block that their nibbles do not rule out, and counts
// the cosines that the nibbles give to all of them. In many dimensions their upper
// halves rule out most; the lower ones are looked at where they do not.
func (w *worker) sift(k kernel, b *block, p *probe) []uint16 {
	n := len(b.ids)
	products := w.products[:(n+groupRows-1)/groupRows*groupRows]
	clear(products)
	k.sift(products, b.high, p.turned)
	halves := len(p.turned) >= spread
	if halves {
		passed, all := w.pick(k, products, b.rough, p, 3)
		w.total.add(all)
		w.total.loss += b.loss
		if passed <= n/fewPass {
			return w.rows[:passed]
		}
	}
	k.sift(products, b.low, p.turned)
	passed, all := w.pick(k, products, b.coarse, p, 15)
	if !halves {
		w.total.add(all)
	}
	return w.rows[:passed]
}

// fewPass says of how many rows one may pass for all of them to be multiplied in
// full at once: that takes as long as to look at the lower halves of all.
const fewPass = 8

// pick returns how many rows can reach what the best have, and leaves them in w.rows.
// The numbers behind the products are 0 to top.
func (w *worker) pick(k kernel, products []int32, shadows []shadow, p *probe, top int32) (int, sums) {
	reach := newReach(w.reached(), p.turnedSlack, p.share)
	w.passing = passing{scale: float32(p.turnedScale), least: reach.least, tan: reach.tan, shift: top * p.sum}
	return k.pick(w.rows[:], products, shadows, &w.passing)
}

// passing is what the product d of a row's nibbles with the query has to reach:
// (2·d−shift)·scale·unit is about the cosine, as reach asks for it. C reads it.
type passing struct {
	scale, least, tan float32
	shift             int32
}

// sums are those of the cosines and of their squares, counted in units of 2^-18
// and 2^-36: whole numbers, so that no order of adding changes them. They hold
// for 2^27 vectors. loss is that of the tan² of the shadows that the cosines come
// from, where it counts. C writes the first two.
type sums struct{ first, second, loss int64 }

const sumUnit = 1 << 18

func (s *sums) add(more sums) {
	s.first += more.first
	s.second += more.second
	s.loss += more.loss
}

// std returns the standard deviation of n cosines. What rounding adds to a cosine c
// has the variance tan²·(1−c²)/(width−1): that is taken off. The mean is that of the
// rounded cosines too: an error that all of them share counts for nothing so.
func (s sums) std(n, width int) float64 {
	mean := float64(s.first) / float64(n) / sumUnit
	second := float64(s.second) / float64(n) / (sumUnit * sumUnit)
	added := float64(s.loss) / float64(n) / sumUnit / float64(width-1)
	return math.Sqrt(max((second-added)/(1-added)-mean*mean, 0))
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
