package evaluate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

// Too little was said to learn from: words alone decide, and the figures are those
// of no embedder at all.
func TestTooLittleForVectors(t *testing.T) {
	figures := func(by Embedder) LoCoMoReport {
		opts := options(t)
		opts.Embedder = by
		r, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), opts)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	without, with := figures(nil).Overall, figures(LSA).Overall
	for _, m := range []*Metrics{&without, &with} {
		m.LatencyP50MS, m.LatencyP95MS = 0, 0
	}
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("the figures differ:\n%s", diff)
	}
}

// Words that are said among the same words lie near each other, in the passages and
// in what the figures are taken from.
func TestVectorsOfAConversation(t *testing.T) {
	ctx := context.Background()
	h, err := newHome(ctx, t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	var turns []memory.Event
	for i := range 120 {
		words := []string{"The veterinarian gave the spaniel a vaccine", "The doctor gave the spaniel a vaccine", "Sailing boats were painted red"}[i%3]
		turns = append(turns, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: fmt.Sprintf("%s, number%d", words, i), SessionID: fmt.Sprint(i), Timestamp: time.Unix(1e9, 0)})
	}
	if err := errors.Join(h.tell(ctx, turns), h.understand(ctx, LSA)); err != nil {
		t.Fatal(err)
	}
	near, err := h.meanings.ask(ctx, evaluated, "Which veterinarian?")
	if err != nil {
		t.Fatal(err)
	}
	hits, mean, std, err := near.Nearest(80, func(recall.Ref) bool { return true })
	if err != nil || len(hits) != 80 || std <= 0 || mean >= 1 {
		t.Fatalf("%d hits, mean %v, std %v, %v", len(hits), mean, std, err)
	}
	for _, hit := range hits {
		if hit.N%3 == 0 {
			t.Fatalf("the boats of EVT-%d are among the nearest two thirds: cosine %v", hit.N, hit.Cosine)
		}
		if again, err := near.Cosines([]recall.Ref{hit.Ref, {N: 999}}); err != nil || len(again) != 1 || again[0] != hit {
			t.Fatalf("Cosines() = %v, %v, want %v", again, err, hit)
		}
	}
	if _, err := h.meanings.ask(ctx, evaluated, "Quidditch?"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a question without a known word: %v", err)
	}
}

// An embedder that fails ends the evaluation: figures without it would pass for its own.
func TestAFailingEmbedderIsAnError(t *testing.T) {
	down := errors.New("the endpoint is down")
	opts := options(t)
	opts.Embedder = func(context.Context, iter.Seq2[lsa.Passage, error]) (embed.Embedder, error) { return nil, down }
	if _, err := LoCoMo(context.Background(), strings.NewReader(smallLoCoMo), opts); !errors.Is(err, down) {
		t.Errorf("LoCoMo() = %v", err)
	}
}
