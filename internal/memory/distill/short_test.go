package distill

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestShortStatements: the shortest preferences, and what somebody asks to have
// kept, are memories; liking "it" is none.
func TestShortStatements(t *testing.T) {
	for said, want := range map[string]string{
		"I like sailing.":                            "likes sailing",
		"I really hate liquorice.":                   "hates liquorice",
		"Remember that the ladder is in the shed.":   "ladder is in the shed",
		"Please note that the gate sticks in winter": "gate sticks",
		"I like it.":   "",
		"I love that!": "",
	} {
		raw, _, err := Rules{}.Distill(context.Background(), Batch{Agent: "a", Now: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC), Events: []memory.Event{
			{ID: "evt_1", Seq: 1, Type: memory.UserMessage, Origin: memory.OriginUser, Text: said, Timestamp: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)}}})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := Parse(raw, DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want == "" && len(reply.NewItems) > 0:
			t.Errorf("%q became %q", said, reply.NewItems[0].Content)
		case want != "" && (len(reply.NewItems) != 1 || !strings.Contains(reply.NewItems[0].Content, want)):
			t.Errorf("%q became %+v, want one item with %q", said, reply.NewItems, want)
		}
	}
}
