//go:build fault

package judge_test

import (
	"testing"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// TestFaultF6 has the model answer a checkpoint in every way of the table, and
// then at random. P5.
func TestFaultF6(t *testing.T) {
	r := fault.Begin(t, "F6")
	wrong := 0
	for name, test := range map[string]func(*testing.T){"checkpoint": TestEveryReplyAtACheckpoint, "mix": TestRandomReplies} {
		if !t.Run(name, test) {
			wrong++
		}
	}
	r.Count("reply types at a checkpoint", len(judge.Behaviours()))
	r.Zero("parts that failed", wrong)
	r.Without("replies to chat and to embeddings, which the tests of internal/llm and internal/memory/embed hold: no row runs them at this scale yet")
}
