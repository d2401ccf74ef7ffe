package working

import (
	"math"
	"slices"
)

// cutSteps is how finely cut tells scores apart.
const cutSteps = 1024

// cut returns a score that the best want of a list of scores reach, none of them
// negative, and as a rule few others: what is below it need not be sorted to find the
// best. It is 0 where fewer than want are above 0.
func cut(scores []float64, want int) float64 {
	if len(scores) == 0 {
		return 0
	}
	highest := slices.Max(scores)
	scale := cutSteps / highest
	if highest <= 0 || math.IsInf(scale, 0) {
		return 0
	}
	var steps [cutSteps + 1]int
	for _, score := range scores {
		if score > 0 {
			steps[int(score*scale)]++
		}
	}
	for step := cutSteps; step > 0; step-- {
		if want -= steps[step]; want <= 0 {
			return float64(step-1) / scale // a step lower, since rounding may take one of a step below its edge
		}
	}
	return 0
}
