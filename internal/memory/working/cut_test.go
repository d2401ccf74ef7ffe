package working

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOf(rapid.OneOf(rapid.Just(0.), rapid.Float64Range(0, 40), rapid.SampledFrom([]float64{.1, .3, 7, 1e-300}))).Draw(t, "scores")
		want := rapid.IntRange(1, 30).Draw(t, "want")
		least := cut(scores, want)
		sorted := slices.Sorted(slices.Values(scores))
		slices.Reverse(sorted)
		for i, score := range sorted {
			if i < want && score < least {
				t.Fatalf("place %d of %d has %v, below %v", i+1, want, score, least)
			}
		}
	})
}

// TestCutLeavesFew holds that it is worth while.
func TestCutLeavesFew(t *testing.T) {
	scores := make([]float64, 100_000)
	for i := range scores {
		scores[i] = float64(i*7919%100_000) / 3
	}
	least := cut(scores, 500)
	n := 0
	for _, score := range scores {
		if score >= least {
			n++
		}
	}
	if n < 500 || n > 1000 {
		t.Errorf("%d reach the cut for 500", n)
	}
}
