//go:build fault && linux

package main

import (
	"testing"

	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// TestFaultF10 lets 90 days go by over an agent that was talked to for three of
// them, and one that nobody talked to. P17, P21, P22.
func TestFaultF10(t *testing.T) {
	r := fault.Begin(t, "F10")
	wrong := 0
	if !t.Run("season", TestSeason) {
		wrong++
	}
	r.Count("days", 90)
	r.Zero("growth of idle agents, messages sent twice", wrong)
	r.Without("clocks that jump, a job that hangs and one that panics, which the tests of internal/scheduler hold: no row runs them over 24 hours yet")
}
