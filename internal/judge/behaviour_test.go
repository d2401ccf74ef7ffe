package judge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
)

// connect returns a client of a stub server, without retries.
func connect(t testing.TB, url string, timeout time.Duration) *llm.Client {
	t.Helper()
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url}}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := llm.New(llm.Config{Provider: llm.Generic, BaseURL: url, Model: "stub", Timeout: timeout}, out, time.Now, func() float64 { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// talk is a batch of two turns.
func talk() distill.Batch {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return distill.Batch{
		Agent: "default", Now: at,
		Events: []memory.Event{
			{ID: "evt_1", Seq: 1, Type: memory.UserMessage, Origin: memory.OriginUser, Text: "I moved to Lisbon in May, to \"Rua <Nova>\".", Timestamp: at},
			{ID: "evt_2", Seq: 2, Type: memory.UserMessage, Origin: memory.OriginUser, Text: "My sister is called Marta.", Timestamp: at},
		},
		Related: []memory.Item{{ID: "mem_offered", Handle: "MEM-1", Kind: memory.KindFact, Title: "Home", Content: "The user lives in Porto.", Importance: 3, Confidence: .8,
			Status: memory.Active, Trust: memory.TrustUser, CreatedAt: at.Add(-time.Hour)}},
	}
}

// TestBehavioursAreWhatTheySay has a batch distilled under every behaviour, and
// holds what the client, the parser and the gate make of it against the class
// that the table gives it.
func TestBehavioursAreWhatTheySay(t *testing.T) {
	for _, b := range judge.Behaviours() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			s := judge.NewServer(t)
			s.RedirectTo("http://192.0.2.1/")
			s.Always(b.Name)
			system, user, err := distill.Prompt(talk())
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			if b.Class == judge.Transport {
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				ctx = short
			}
			text, _, err := connect(t, s.URL, 5*time.Second).For("default").Complete(ctx, system, user, distill.Schema())
			if got, what := classOf(text, err); got != b.Class {
				t.Errorf("is %s (%s), the table says %s", got, what, b.Class)
			}
		})
	}
}

// classOf says what a reply to talk is, and why.
func classOf(text string, err error) (judge.Class, string) {
	var status *llm.StatusError
	var redirect *egress.RedirectError
	switch {
	case errors.As(err, &redirect):
		return judge.Elsewhere, err.Error()
	case errors.As(err, &status) && status.Status < 500 && status.Status != 429:
		return judge.Rejected, err.Error()
	case err != nil:
		return judge.Transport, err.Error()
	}
	reply, err := distill.Parse([]byte(text), distill.DefaultLimits)
	if err != nil {
		return judge.NonConforming, err.Error()
	}
	verdict := distill.Gate(talk(), reply)
	what := fmt.Sprintf("%d accepted, %d quarantined, %d refused", len(verdict.Accepted), len(verdict.Quarantined), len(verdict.Refused))
	clean := func(e distill.Entry) bool {
		return e.Item.Title == "About "+e.Item.Evidence[0].EventID && !strings.Contains(e.Item.Content, judge.PlantedSecret())
	}
	if len(verdict.Accepted) == 2 && !slices.ContainsFunc(verdict.Accepted, func(e distill.Entry) bool { return !clean(e) }) {
		return judge.Conforming, what
	}
	return judge.Entries, what
}
