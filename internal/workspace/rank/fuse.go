package rank

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Hit is a chunk that was found.
type Hit struct {
	ID        string
	Path      string // relative to the workspace, with slashes
	Source    string // SourceMemory, …
	StartLine int
	EndLine   int
	Snippet   string
	Vector    float64 // cosine similarity; 0 where it was not found by its vector
	Text      float64 // score of its words; 0 where it was not found by them
	Score     float64 // of both, after what was asked for
	Changed   time.Time
	ByWords   bool
}

// SourceMemory is the source of a workspace's own files.
const SourceMemory = "memory"

// Weights say how much each side counts.
type Weights struct{ Vector, Text float64 }

// DefaultWeights are OpenClaw's.
var DefaultWeights = Weights{Vector: 0.7, Text: 0.3}

// Normal returns w with each within 0 and 1 and the sum 1; DefaultWeights where
// both are zero.
func (w Weights) Normal() Weights {
	w.Vector, w.Text = unit(w.Vector), unit(w.Text)
	sum := w.Vector + w.Text
	if sum == 0 {
		return DefaultWeights
	}
	return Weights{Vector: w.Vector / sum, Text: w.Text / sum}
}

// unit brings x into 0 to 1; what is no number is 0.
func unit(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, 0), 1)
}

// Fuse unites the hits of both sides by their ids: those of vectors in their
// order, then those of words only. Score is the weighted sum, with 0 for a side
// that did not find the chunk; the snippet that its words found counts.
func Fuse(vectors, words []Hit, w Weights) []Hit {
	w = w.Normal()
	at := make(map[string]int, len(vectors)+len(words))
	var fused []Hit
	for _, h := range vectors {
		if i, known := at[h.ID]; known {
			fused[i].Vector = h.Vector
			continue
		}
		at[h.ID] = len(fused)
		h.Text, h.ByWords = 0, false
		fused = append(fused, h)
	}
	for _, h := range words {
		i, known := at[h.ID]
		if !known {
			at[h.ID] = len(fused)
			h.Vector, h.ByWords = 0, true
			fused = append(fused, h)
			continue
		}
		fused[i].Text, fused[i].ByWords = h.Text, true
		if h.Snippet != "" {
			fused[i].Snippet = h.Snippet
		}
	}
	for i := range fused {
		fused[i].Score = w.Vector*fused[i].Vector + w.Text*fused[i].Text
	}
	return fused
}

// Params say how hits are brought into one list.
type Params struct {
	Era      Era
	Weights  Weights
	MinScore float64
	Max      int       // results; at least 1
	HalfLife int       // of the temporal decay in days; 0 for none
	Now      time.Time // for the decay
	Diverse  bool      // rerank by maximal marginal relevance
	Lambda   float64   // how much relevance counts there, against diversity
}

// Blend makes the result of a search by words and vectors: fusion, decay, order,
// diversity, least score, number, one after the other.
func Blend(vectors, words []Hit, p Params) []Hit {
	hits := Fuse(vectors, words, p.Weights)
	if p.HalfLife != 0 {
		for i, h := range hits {
			hits[i].Score = h.Score * p.Era.Decay(h.Path, h.Source, h.Changed, p.Now, p.HalfLife)
		}
	}
	sortByScore(hits)
	if p.Diverse {
		hits = diversify(hits, p)
	}
	relaxed := min(p.MinScore, p.Weights.Normal().Text)
	return choose(hits, p, func(h Hit) bool { return h.ByWords && h.Score >= relaxed })
}

// WordsOnly makes the result of a search without vectors: each chunk's best
// score, without decay and diversity. Where nothing has the least score, all
// count: later versions of OpenClaw do so too, since in a small workspace words
// alone score low.
func WordsOnly(words []Hit, p Params) []Hit {
	at := make(map[string]int, len(words))
	var hits []Hit
	for _, h := range words {
		h.Score, h.ByWords = h.Text, true
		if i, known := at[h.ID]; known {
			if h.Score > hits[i].Score {
				hits[i] = h
			}
			continue
		}
		at[h.ID] = len(hits)
		hits = append(hits, h)
	}
	sortByScore(hits)
	return choose(hits, p, func(Hit) bool { return true })
}

// choose returns the first hits that have the least score or, in the later era,
// where none has it, those that the fallback lets through.
func choose(hits []Hit, p Params, fallback func(Hit) bool) []Hit {
	good := slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool { return h.Score < p.MinScore })
	if len(good) == 0 && p.Era != Seed {
		good = slices.DeleteFunc(hits, func(h Hit) bool { return !fallback(h) })
	}
	return good[:min(len(good), max(1, p.Max))]
}

func sortByScore(hits []Hit) {
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// diversify brings hits into the order of maximal marginal relevance.
func diversify(hits []Hit, p Params) []Hit {
	scores, texts := make([]float64, len(hits)), make([]string, len(hits))
	for i, h := range hits {
		scores[i], texts[i] = h.Score, h.Snippet
	}
	out := make([]Hit, 0, len(hits))
	for _, pick := range p.Era.MMR(scores, texts, p.Lambda) {
		out = append(out, hits[pick.Index])
	}
	return out
}
