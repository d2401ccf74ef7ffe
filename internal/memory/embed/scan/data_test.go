package scan

import (
	"math"
	"math/rand/v2"
	"slices"
)

// sets makes the data that the contract is checked on: n vectors of dim numbers
// each, and queries.
var sets = map[string]func(r *rand.Rand, n, dim int) [][]float32{
	"random": gaussian,
	// Passages of few subjects: ten directions and a little of everything else.
	"clustered": func(r *rand.Rand, n, dim int) [][]float32 {
		centres := gaussian(r, 10, dim)
		out := gaussian(r, n, dim)
		for i, v := range out {
			for j := range v {
				v[j] = centres[i%len(centres)][j] + .3*v[j]
			}
		}
		return out
	},
	// As latent semantic analysis leaves them: variance falls as a power of the rank.
	"spectrum": func(r *rand.Rand, n, dim int) [][]float32 {
		out := gaussian(r, n, dim)
		for _, v := range out {
			for j := range v {
				v[j] *= float32(math.Pow(float64(j+1), -.8))
			}
		}
		return out
	},
	"all equal": func(r *rand.Rand, n, dim int) [][]float32 {
		return slices.Repeat(gaussian(r, 1, dim), n)
	},
	"ties": func(r *rand.Rand, n, dim int) [][]float32 {
		few := gaussian(r, 5, dim)
		out := make([][]float32, n)
		for i := range out {
			out[i] = few[r.IntN(len(few))]
		}
		return out
	},
	"one number": func(r *rand.Rand, n, dim int) [][]float32 {
		out := make([][]float32, n)
		for i := range out {
			out[i] = make([]float32, dim)
			out[i][r.IntN(dim)] = float32(1 - 2*r.IntN(2))
		}
		return out
	},
	"opposites": func(r *rand.Rand, n, dim int) [][]float32 {
		out := slices.Repeat(gaussian(r, 1, dim), n)
		for i := range out {
			if out[i] = slices.Clone(out[i]); i%3 != 0 {
				for j := range out[i] {
					out[i][j] = -out[i][j]
				}
			}
		}
		return out
	},
	"huge and tiny": func(r *rand.Rand, n, dim int) [][]float32 {
		out := gaussian(r, n, dim)
		for i, v := range out {
			by := []float32{1e37, 1e-37, 1e-44, 1}[i%4]
			for j := range v {
				v[j] *= by
			}
			v[0] = by // no vector of tiny numbers is rounded to zero
		}
		return out
	},
	"one great number": func(r *rand.Rand, n, dim int) [][]float32 {
		out := gaussian(r, n, dim)
		for _, v := range out {
			v[dim-1] = 1e4
		}
		return out
	},
}

// exactTies are the sets whose equal scores are equal to the last bit, so that
// the order by id can be asked for strictly.
var exactTies = []string{"all equal", "ties", "one number", "opposites"}

func gaussian(r *rand.Rand, n, dim int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, dim)
		for j := range out[i] {
			out[i][j] = float32(r.NormFloat64())
		}
	}
	return out
}

// naiveCosine is the definition.
func naiveCosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa) / math.Sqrt(bb)
}

// naiveSearch scores everything and sorts.
func naiveSearch(vectors map[int64][]float32, query []float32, k int, keep func(int64) bool) []Hit {
	hits := []Hit{}
	for id, v := range vectors {
		if keep == nil || keep(id) {
			hits = append(hits, Hit{ID: id, Score: naiveCosine(query, v)})
		}
	}
	slices.SortFunc(hits, before)
	return hits[:min(k, len(hits))]
}
