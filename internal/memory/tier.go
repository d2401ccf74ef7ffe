package memory

import "time"

// Tier is how long a memory is kept by its importance, as the OpenClaw community
// has it for notes that are tagged like [decision|i=0.9].
type Tier string

// The tiers.
const (
	Structural Tier = "structural" // importance .8 and above: permanent
	Potential  Tier = "potential"  // .4 and above: 30 days
	Contextual Tier = "contextual" // below: 7 days
)

// Least importances of the tiers, and how long they last.
const (
	leastStructural = .8
	leastPotential  = .4
	potentialFor    = 30 * 24 * time.Hour
	contextualFor   = 7 * 24 * time.Hour
)

// TierOf returns the tier of an importance between 0 and 1.
func TierOf(importance float64) Tier {
	switch {
	case importance >= leastStructural:
		return Structural
	case importance >= leastPotential:
		return Potential
	}
	return Contextual
}

// Lasts returns how long a memory of the tier is kept; false for permanently.
func (t Tier) Lasts() (time.Duration, bool) {
	switch t {
	case Potential:
		return potentialFor, true
	case Contextual:
		return contextualFor, true
	}
	return 0, false
}

// Importance turns an importance between 0 and 1 into that of an item: 4 and 5
// are structural, 3 is potential, 1 and 2 are contextual.
func Importance(score float64) int {
	switch {
	case score >= .9:
		return 5
	case score >= leastStructural:
		return 4
	case score >= leastPotential:
		return 3
	case score >= .2:
		return 2
	}
	return 1
}

// TierOfItem returns the tier of an item's importance, 1 to 5.
func TierOfItem(importance int) Tier {
	switch {
	case importance >= Importance(leastStructural):
		return Structural
	case importance >= Importance(leastPotential):
		return Potential
	}
	return Contextual
}
