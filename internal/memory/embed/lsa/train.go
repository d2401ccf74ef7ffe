package lsa

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// Passage is one text of a corpus.
type Passage struct {
	Session uint32   // passages of one session are each other's context, in their order
	Terms   []string // its words as text.Content gives them; not kept
}

// How a model is made. docs/BENCHMARKS.md says how the numbers were found; a change
// of one of them needs another version.
const (
	maxDims = 80  // of a vector
	nearby  = 5   // passages before and behind that are read together with one
	stretch = 1.5 // power of the singular values in a vector: above 1 favours broad topics
	least   = 100 // passages of the smallest corpus that has a model
)

// maxTerm is the most bytes of a term. Longer ones, which are no words, are left out.
const maxTerm = 255

// ErrTooSmall says that a corpus has too few passages, or too few words that differ,
// to learn from. There is no model then.
var ErrTooSmall = errors.New("too little was said yet to learn meanings from")

// Due reports whether a model should be trained: there is enough to learn from, and
// it has become a fifth more, or less, than the model was trained on. Both are
// numbers of passages; trained is 0 where there is no model.
func Due(trained, now int) bool {
	return now >= least && 5*max(now-trained, trained-now) >= trained
}

// Train learns a model from a corpus, which it reads once, in order. The same
// passages in the same order give the same model, to the byte, on one kind of
// machine. What goes wrong with the corpus, and the end of ctx, is returned.
//
// The matrix that is factored has a row for each passage: the weights of its terms
// and of those of its neighbours, scaled to length one. It is kept as two factors,
// since it has ten times the numbers that they have.
func Train(ctx context.Context, corpus iter.Seq2[Passage, error]) (*Model, error) {
	r := reader{ids: map[string]uint32{}, counts: sparse{start: []int{0}}, hash: sha256.New()}
	for p, err := range corpus {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("train on passage %d: %w", len(r.session)+1, err)
		}
		r.add(p)
	}
	if len(r.session) < least {
		return nil, ErrTooSmall
	}
	m, err := r.model(ctx)
	if err != nil {
		return nil, fmt.Errorf("train on %d passages: %w", len(r.session), err)
	}
	return m, nil
}

// reader takes in a corpus.
type reader struct {
	ids     map[string]uint32 // terms, numbered as they first come
	rows    []uint32          // passages that hold the term
	counts  sparse            // how often a passage holds a term
	session []uint32          // of each passage
	hash    hash.Hash         // of all that was read
	buffer  []byte
}

func (r *reader) add(p Passage) {
	first := len(r.counts.col)
	r.buffer = binary.LittleEndian.AppendUint32(r.buffer[:0], p.Session)
	for _, term := range p.Terms {
		if term == "" || len(term) > maxTerm {
			continue
		}
		r.buffer = append(append(r.buffer, byte(len(term))), term...)
		id, known := r.ids[term]
		if !known {
			id = uint32(len(r.rows))
			r.ids[strings.Clone(term)] = id // it may be a part of a long text
			r.rows = append(r.rows, 0)
		}
		if at := slices.Index(r.counts.col[first:], id); at >= 0 {
			r.counts.at[first+at]++
			continue
		}
		r.rows[id]++
		r.counts.col, r.counts.at = append(r.counts.col, id), append(r.counts.at, 1)
	}
	r.hash.Write(append(r.buffer, 0)) // no term is empty: this ends the passage
	r.counts.start = append(r.counts.start, len(r.counts.col))
	r.session = append(r.session, p.Session)
}

// model factors what was read.
func (r *reader) model(ctx context.Context) (*Model, error) {
	names := slices.Sorted(maps.Keys(r.ids))
	place := make([]uint32, len(names)) // in names, of the term with a number
	weights := make([]float64, len(names))
	for i, name := range names {
		id := r.ids[name]
		place[id] = uint32(i)
		weights[i] = idf(len(r.session), int(r.rows[id]))
	}
	r.ids = nil
	terms := r.weigh(place, weights)
	vectors, values, err := rightVectors(ctx, newProduct(near(terms, r.session), terms), maxDims)
	if err != nil {
		return nil, err
	}
	if len(values) < 2 { // every text would lie in the same direction
		return nil, ErrTooSmall
	}
	m := newModel(names, len(values), len(r.session), r.hash.Sum(nil))
	row := make([]float64, len(values))
	for i := range names {
		for j, s := range values {
			row[j] = weights[i] * vectors.At(i, j) * math.Pow(s, stretch-1)
		}
		m.set(i, row)
	}
	return m, nil
}

// idf is the weight of a term that rows of total passages hold: that of BM25,
// never negative.
func idf(total, rows int) float64 {
	return math.Log(1 + (float64(total-rows)+.5)/(float64(rows)+.5))
}

// repeated is the weight of a term that a text holds n times.
func repeated(n float64) float64 { return 1 + math.Log(n) }

// weigh returns the weights of terms in passages, with a column for each name.
func (r *reader) weigh(place []uint32, weights []float64) *sparse {
	out := &sparse{cols: len(weights), start: r.counts.start, col: r.counts.col, at: r.counts.at}
	for i, id := range out.col {
		c := place[id]
		out.col[i], out.at[i] = c, float32(weights[c]*repeated(float64(out.at[i])))
	}
	return out
}

// near returns the matrix that sums up each passage and its neighbours, so that a
// row of its product with terms has length one, or is zero.
func near(terms *sparse, sessions []uint32) *sparse {
	order := map[uint32][]int{} // passages of a session
	at := make([]int, len(sessions))
	for i, s := range sessions {
		at[i] = len(order[s])
		order[s] = append(order[s], i)
	}
	out := &sparse{cols: len(sessions), start: []int{0}}
	sum, touched := make([]float64, terms.cols), []uint32(nil)
	for i, s := range sessions {
		around := order[s][max(0, at[i]-nearby):min(len(order[s]), at[i]+nearby+1)]
		touched = touched[:0]
		for _, j := range around {
			for e := terms.start[j]; e < terms.start[j+1]; e++ {
				c := terms.col[e]
				if sum[c] == 0 {
					touched = append(touched, c)
				}
				sum[c] += float64(terms.at[e])
			}
		}
		var squares float64
		for _, c := range touched {
			squares += sum[c] * sum[c]
			sum[c] = 0
		}
		if squares > 0 {
			for _, j := range around {
				out.col, out.at = append(out.col, uint32(j)), append(out.at, float32(1/math.Sqrt(squares)))
			}
		}
		out.start = append(out.start, len(out.col))
	}
	return out
}
