package meaning_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// TestWhatIsSaidInMoreWordsIsOneMemory: the words alone are too few to find the
// one by the other, the vectors do, and the words decide.
func TestWhatIsSaidInMoreWordsIsOneMemory(t *testing.T) {
	const brief, full, other = "Box 9 stands in a room.", "Box 9 stands in a room, near the door and the window.", "Box 8 stands in a room, near the door and the window."
	for name, tc := range map[string]struct {
		vectors, merges bool
	}{"with vectors": {true, true}, "without": {false, false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", "")
			must(t, w.say(t.Context(), append(numbered(150), "the door is near the window")...))
			must(t, w.say(t.Context(), "the door and the window"))
			first, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "box", Content: brief, Kind: memory.KindFact})
			must(t, err)
			if tc.vectors {
				catchUp(t, w)
			}
			far, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "box", Content: other, Kind: memory.KindFact})
			must(t, err)
			if far.Merged {
				t.Errorf("%+v", far)
			}
			got, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "box", Content: full, Kind: memory.KindFact})
			must(t, err)
			if got.Merged != tc.merges || got.Item.Content != full || tc.merges != (got.Item.Handle == first.Item.Handle) {
				t.Errorf("%+v", got)
			}
			if tc.vectors != (w.alikeErr == nil) || !tc.vectors && !errors.Is(w.alikeErr, memory.ErrNotFound) {
				t.Errorf("asked for likenesses: %v", w.alikeErr)
			}
		})
	}
}

func TestPairsOfAlikeItems(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	if got, err := w.meaning.Alike(t.Context(), agent); err != nil || len(got) > 0 {
		t.Errorf("without vectors: %v, %v", got, err)
	}
	must(t, w.say(t.Context(), "likes green tea and a cup of it"))
	write := func(content string) {
		_, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: content, Content: content})
		must(t, err)
	}
	write("likes green tea")
	write("the red car stands outside")
	write("likes green tea a lot")
	catchUp(t, w)
	before := sent(s)
	got, err := w.meaning.Alike(t.Context(), agent)
	if want := []meaning.Pair{{A: "MEM-1", B: "MEM-3"}, {A: "MEM-1", B: "MEM-2"}, {A: "MEM-2", B: "MEM-3"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	// A new text waits for no model that is asked over the network.
	write("likes green tea very much")
	if !errors.Is(w.alikeErr, memory.ErrNotFound) || sent(s) != before {
		t.Errorf("%v, %d texts sent", w.alikeErr, sent(s)-before)
	}
	w.source = meaning.Source{Off: true}
	if got, err := w.meaning.Alike(t.Context(), agent); err != nil || len(got) > 0 {
		t.Errorf("switched off: %v, %v", got, err)
	}
}
