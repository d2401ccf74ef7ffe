package rank

import (
	"cmp"
	"slices"
)

// DefaultLambda is OpenClaw's weight of relevance against diversity.
const DefaultLambda = 0.7

// Pick is a candidate's place in the order of maximal marginal relevance.
type Pick struct {
	Index int // of the candidate in the input
	// Value is lambda*relevance - (1-lambda)*similarity at the time it was taken:
	// relevance is the score scaled to 0..1 over all candidates, similarity the
	// greatest to one that was taken before. Where the order is that of the scores,
	// Value is the score.
	Value float64
}

// MMR orders candidates by maximal marginal relevance (Carbonell and Goldstein,
// 1998), as OpenClaw does: similarity is Jaccard's over the words of the texts.
// lambda is brought into 0..1; with 1, or with less than two candidates, the order
// is that of the scores. Equal values go to the higher score, then to the earlier.
func (e Era) MMR(scores []float64, texts []string, lambda float64) []Pick {
	lambda = unit(lambda)
	if len(scores) < 2 || lambda == 1 {
		return byScore(scores)
	}
	relevance := scaled(scores)
	words := e.wordSets(texts)
	similar := make([]float64, len(scores)) // greatest similarity to a taken one
	taken := make([]bool, len(scores))
	var picks []Pick
	for range scores {
		best := Pick{Index: -1}
		for i := range scores {
			if taken[i] {
				continue
			}
			value := lambda*relevance[i] - (1-lambda)*similar[i]
			if best.Index < 0 || value > best.Value || value == best.Value && scores[i] > scores[best.Index] {
				best = Pick{i, value}
			}
		}
		taken[best.Index] = true
		picks = append(picks, best)
		for i := range scores {
			if !taken[i] {
				similar[i] = max(similar[i], jaccard(words[i], words[best.Index]))
			}
		}
	}
	return picks
}

func byScore(scores []float64) []Pick {
	picks := make([]Pick, len(scores))
	for i, s := range scores {
		picks[i] = Pick{i, s}
	}
	slices.SortStableFunc(picks, func(a, b Pick) int { return cmp.Compare(b.Value, a.Value) })
	return picks
}

// scaled brings scores to 0..1 by their least and greatest; equal ones are all 1.
func scaled(scores []float64) []float64 {
	least, most := slices.Min(scores), slices.Max(scores)
	out := make([]float64, len(scores))
	for i, s := range scores {
		if most == least {
			out[i] = 1
		} else {
			out[i] = (s - least) / (most - least)
		}
	}
	return out
}

// wordSets returns each text's words: numbers, ascending, each once.
func (e Era) wordSets(texts []string) [][]int {
	numbers := map[string]int{}
	sets := make([][]int, len(texts))
	for i, t := range texts {
		for _, w := range e.tokens(t) {
			n, known := numbers[w]
			if !known {
				n = len(numbers)
				numbers[w] = n
			}
			sets[i] = append(sets[i], n)
		}
		slices.Sort(sets[i])
		sets[i] = slices.Compact(sets[i])
	}
	return sets
}

// jaccard is the share of common numbers of two ascending lists: 1 for two empty
// ones, 0 for an empty one.
func jaccard(a, b []int) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	common, at := 0, 0
	for _, n := range a {
		for at < len(b) && b[at] < n {
			at++
		}
		if at < len(b) && b[at] == n {
			common++
		}
	}
	return float64(common) / float64(len(a)+len(b)-common)
}
