package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// placed is a Nearness whose cosines are given by handle. Its mean is 0 and its
// standard deviation .1.
type placed map[string]float64

func (p placed) Model() string { return "test/1" }

func (p placed) hits() []Hit {
	var out []Hit
	for handle, c := range p {
		h := Hit{Cosine: c, Ref: Ref{Item: strings.HasPrefix(handle, "MEM-")}}
		if _, err := fmt.Sscanf(handle[len("EVT-"):], "%d", &h.N); err != nil {
			panic(err)
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.N, b.N)) })
	return out
}

func (p placed) Nearest(k int, keep func(Ref) bool) ([]Hit, float64, float64, error) {
	kept := slices.DeleteFunc(p.hits(), func(h Hit) bool { return !keep(h.Ref) })
	return kept[:min(k, len(kept))], 0, .1, nil
}

func (p placed) Cosines(refs []Ref) ([]Hit, error) {
	return slices.DeleteFunc(p.hits(), func(h Hit) bool { return !slices.Contains(refs, h.Ref) }), nil
}

// means has the world's memories lie so near every question.
func (w *world) means(near Nearness, err error) {
	w.service.opts.Meaning = func(context.Context, memory.AgentID, string) (Nearness, error) { return near, err }
}

func (w *world) search(in Query) Result {
	w.t.Helper()
	got, err := w.service.Search(context.Background(), agent, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func episodes(r Result) []string {
	var out []string
	for _, e := range r.Episodes {
		out = append(out, e.Handle)
	}
	return out
}

// What shares no word with the question is found by its meaning, and what shares
// all of them is still found first.
func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	w := newWorld(t)
	w.say("s1", memory.OriginUser, "We baked sourdough at home.")    // EVT-1
	w.say("s2", memory.OriginUser, "The harbour was full of boats.") // EVT-2
	w.say("s3", memory.OriginUser, "My bread is in the oven.")       // EVT-3
	w.means(placed{"EVT-1": .9, "EVT-2": -.1, "EVT-3": .2}, nil)
	words := w.search(Query{Text: "bread", Scope: "episodes", Mode: "lexical"})
	if got := episodes(words); !slices.Equal(got, []string{"EVT-3"}) || words.Mode != "lexical" || words.Lexical != "" || words.Model != "" {
		t.Errorf("by words %v, mode %q of %q, %q", got, words.Mode, words.Model, words.Lexical)
	}
	for _, mode := range []string{"", "auto", "hybrid"} {
		both := w.search(Query{Text: "bread", Scope: "episodes", Mode: mode})
		if got := episodes(both); len(got) != 3 || got[0] != "EVT-3" || got[1] != "EVT-1" || both.Mode != "hybrid" || both.Model != "test/1" {
			t.Errorf("mode %q: %v, mode %q of %q", mode, got, both.Mode, both.Model)
		}
	}
	if got := w.search(Query{Text: "bread", Scope: "episodes", Mode: "vector"}); !slices.Equal(episodes(got), []string{"EVT-1", "EVT-3", "EVT-2"}) || got.Mode != "vector" {
		t.Errorf("by meaning %v, mode %q", episodes(got), got.Mode)
	}
	if got := w.search(Query{Text: "bread", Scope: "episodes", Mode: "vector", Limit: 1}); !slices.Equal(episodes(got), []string{"EVT-1"}) {
		t.Errorf("the best by meaning: %v", episodes(got))
	}
	block := w.block("p", "Is there bread in the oven?")
	if block.Trace.Mode != "hybrid" || block.Trace.Model != "test/1" || !slices.Contains(handles(block), "EVT-1") {
		t.Errorf("a block has %v, mode %q of %q", handles(block), block.Trace.Mode, block.Trace.Model)
	}
	for _, c := range block.Trace.Candidates {
		if want := map[string]float64{"EVT-1": 9, "EVT-2": -1, "EVT-3": 2}[c.Handle]; c.Scores["meaning"] != want {
			t.Errorf("%s is %v standard deviations near, want %v", c.Handle, c.Scores["meaning"], want)
		}
	}
}

func TestMeaningFindsItems(t *testing.T) {
	w := newWorld(t)
	said := w.say("s1", memory.OriginUser, "We baked sourdough at home.")
	loaf := w.remember("We baked sourdough at home.", 4, said)
	other := w.remember("The harbour was full of boats.", 4, w.say("s2", memory.OriginUser, "The harbour was full of boats."))
	trifle := w.remember("Boats are full.", 1, w.say("s3", memory.OriginUser, "Boats are full."))
	w.means(placed{loaf: .9, other: .1, trifle: .8}, nil)
	found := func(in Query) []string {
		var out []string
		for _, it := range w.search(in).Items {
			out = append(out, it.Handle)
		}
		return out
	}
	if got := found(Query{Text: "bread", Mode: "lexical"}); len(got) != 0 {
		t.Errorf("by words: %v", got)
	}
	if got := found(Query{Text: "bread", Mode: "vector"}); !slices.Equal(got, []string{loaf, trifle, other}) {
		t.Errorf("by meaning: %v", got)
	}
	if got := found(Query{Text: "bread"}); len(got) != 3 || got[0] != loaf {
		t.Errorf("by both: %v", got)
	}
	if got := handles(w.block("p", "Who has the boats of the harbour?")); slices.Contains(got, trifle) {
		t.Errorf("a block has an item below the least importance: %v", got)
	}
}

// Nothing that may not be recalled comes back by its meaning.
func TestMeaningKeepsTheConditions(t *testing.T) {
	w := newWorld(t)
	w.groups["g"] = true
	secret := w.say("p1", memory.OriginUser, "We baked sourdough at home.") // EVT-1
	item := w.remember("We baked sourdough at home.", 4, secret)
	w.say("g", memory.OriginUser, "Bread is sold in the harbour.")
	near := placed{"EVT-1": .9, item: .9, "EVT-2": .3, "EVT-99": .9, "MEM-99": .9}
	w.means(near, nil)
	if got := handles(w.block("g", "Is bread sold in the harbour?")); slices.Contains(got, "EVT-1") || slices.Contains(got, item) || len(got) == 0 {
		t.Errorf("a group hears %v", got)
	}
	if got := handles(w.block("p2", "Is bread sold in the harbour?")); !slices.Contains(got, item) && !slices.Contains(got, "EVT-1") {
		t.Errorf("a private session hears %v", got)
	}
}

// Without a vector of the question, words decide as if there were none, the trace
// says why, and nothing is degraded.
func TestWithoutMeaningWordsDecide(t *testing.T) {
	w := newWorld(t)
	w.say("s1", memory.OriginUser, "My bread is in the oven.")
	w.say("s2", memory.OriginUser, "We baked sourdough at home.")
	want := w.block("p", "Is there bread in the oven?")
	for name, tc := range map[string]struct {
		meaning Meaning
		why     string
	}{
		"no vectors yet": {func(context.Context, memory.AgentID, string) (Nearness, error) {
			return nil, memory.Errorf(memory.ErrNotFound, "no vectors of it yet")
		}, "no vectors of it yet"},
		"out of reach": {func(context.Context, memory.AgentID, string) (Nearness, error) {
			return nil, memory.Errorf(memory.ErrUnavailable, "no route to the model")
		}, "no route to the model"},
		"a defect":       {func(context.Context, memory.AgentID, string) (Nearness, error) { panic("a defect") }, "a defect"},
		"broken vectors": {func(context.Context, memory.AgentID, string) (Nearness, error) { return broken{}, nil }, "the index is broken"},
		"it hangs": {func(ctx context.Context, _ memory.AgentID, _ string) (Nearness, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			w.service.opts.Meaning = tc.meaning
			w.settings.Deadline = 4 * time.Second // half of three fifths of it is what one that hangs costs
			got := w.block("p", "Is there bread in the oven?")
			if got.Text != want.Text || got.Degraded != "" || got.Trace.Mode != "lexical" || !strings.Contains(got.Trace.Lexical, tc.why) {
				t.Errorf("block %q, degraded %q, mode %q because %q", got.Text, got.Degraded, got.Trace.Mode, got.Trace.Lexical)
			}
			if name == "it hangs" {
				return // a search has no deadline of its own
			}
			if r := w.search(Query{Text: "bread", Scope: "episodes"}); r.Mode != "lexical" || !strings.Contains(r.Lexical, tc.why) || len(r.Episodes) != 1 {
				t.Errorf("search: mode %q because %q, %v", r.Mode, r.Lexical, episodes(r))
			}
			if _, err := w.service.Search(t.Context(), agent, Query{Text: "bread", Mode: "vector"}); err == nil || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("a search by meaning alone: %v", err)
			}
		})
	}
	w.service.opts.Meaning = nil
	if _, err := w.service.Search(t.Context(), agent, Query{Text: "bread", Mode: "vector"}); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a search by meaning without vectors: %v", err)
	}
	if _, err := w.service.Search(t.Context(), agent, Query{Text: "bread", Mode: "best"}); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("a mode that is none: %v", err)
	}
}

// broken is an index that fails.
type broken struct{ placed }

func (broken) Nearest(int, func(Ref) bool) ([]Hit, float64, float64, error) {
	return nil, 0, 0, errors.New("the index is broken")
}

// Where all memories are equally near, meaning changes nothing.
func TestEqualMeaningChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.say("s1", memory.OriginUser, "My bread is in the oven.")
	w.say("s2", memory.OriginUser, "We baked bread at home.")
	want := w.block("p", "Is there bread in the oven?")
	w.means(level{placed{"EVT-1": .4, "EVT-2": .4}}, nil)
	if got := w.block("p", "Is there bread in the oven?"); got.Text != want.Text || got.Trace.Mode != "hybrid" {
		t.Errorf("block %q, want %q", got.Text, want.Text)
	}
}

// level has no spread.
type level struct{ placed }

func (l level) Nearest(k int, keep func(Ref) bool) ([]Hit, float64, float64, error) {
	hits, _, _, err := l.placed.Nearest(k, keep)
	return hits, .4, 0, err
}
