package lsa_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// TestNearestOfRealTurns holds the vector search against a loop in float64 numbers
// on vectors as they come to be: those of a model trained on the turns of the
// LoCoMo file that OPENCLAWSSY_LOCOMO names, asked with its questions.
func TestNearestOfRealTurns(t *testing.T) {
	path := os.Getenv("OPENCLAWSSY_LOCOMO")
	if path == "" {
		t.Skip("OPENCLAWSSY_LOCOMO names no corpus")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var samples []struct {
		QA []struct {
			Question string `json:"question"`
		} `json:"qa"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := json.Unmarshal(raw, &samples); err != nil {
		t.Fatal(err)
	}
	var passages []lsa.Passage
	var turns, questions []string
	var session uint32
	for _, s := range samples {
		for _, name := range slices.Sorted(maps.Keys(s.Conversation)) {
			if !strings.HasPrefix(name, "session_") || strings.HasSuffix(name, "_date_time") {
				continue
			}
			var said []struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(s.Conversation[name], &said); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, turn := range said {
				turns = append(turns, turn.Text)
				passages = append(passages, lsa.Passage{Session: session, Terms: text.Content(turn.Text)})
			}
			session++
		}
		for _, qa := range s.QA {
			questions = append(questions, qa.Question)
		}
	}
	m, err := lsa.Train(t.Context(), func(yield func(lsa.Passage, error) bool) {
		for _, p := range passages {
			if !yield(p, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := m.Embed(t.Context(), turns)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := m.Embed(t.Context(), questions)
	if err != nil {
		t.Fatal(err)
	}
	x, err := scan.New(m.Dimensions())
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if v == nil {
			continue // no known word
		}
		if err := x.Set(int64(i), v); err != nil {
			t.Fatal(err)
		}
	}
	hit, all := 0, 0
	for _, q := range asked {
		if q == nil {
			continue
		}
		found, err := x.Search(q, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		var exact []float64
		for _, v := range vectors {
			if v != nil {
				exact = append(exact, cosine64(q, v))
			}
		}
		slices.Sort(exact)
		slices.Reverse(exact)
		if len(found.Hits) != 10 {
			t.Fatalf("%d hits", len(found.Hits))
		}
		// Turns of the same words have the same vector: which of them comes is all one.
		for _, h := range found.Hits {
			all++
			if cosine64(q, vectors[h.ID]) >= exact[9]-1e-9 {
				hit++
			}
		}
	}
	recall := float64(hit) / float64(all)
	t.Logf("%d vectors of %d numbers, %d questions: recall@10 %.5f", x.Len(), x.Dim(), all/10, recall)
	if recall < .999 {
		t.Errorf("recall@10 is %v, want at least .999", recall)
	}
}

func cosine64(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * float64(b[i])
		aa += float64(x) * float64(x)
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}
