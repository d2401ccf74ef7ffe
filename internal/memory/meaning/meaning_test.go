package meaning_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func catchUp(t *testing.T, w *world) meaning.Report {
	t.Helper()
	r, err := w.meaning.CatchUp(t.Context(), agent, meaning.Asked{})
	must(t, err)
	return r
}

// sent counts the texts that were sent to the stub.
func sent(s *judge.Server) (texts int) {
	for _, c := range s.Calls() {
		texts += len(c.Embed.Texts)
	}
	return texts
}

func TestPassagesAndItemsGetVectorsOnce(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), "I like green tea", "the car is red", "we moved to Lisbon", "the car is red"))
	it, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "Drink", Content: "likes green tea", Kind: "preference"})
	must(t, err)
	r := catchUp(t, w)
	if r.Made != 5 || r.Reused != 1 || sent(s) != 4 || !r.Ready || r.Coverage.Missing() != 0 || r.Coverage.Have != 5 {
		t.Fatalf("%+v", r)
	}
	before := sent(s)
	if r := catchUp(t, w); r.Made != 0 || sent(s) != before {
		t.Errorf("again: %+v, %d texts sent", r, sent(s)-before)
	}
	q, err := w.meaning.Ask(t.Context(), agent, "green tea")
	must(t, err)
	got, err := q.Nearest(2, nil)
	must(t, err)
	n, _ := vectors.ID(got.Hits[0].ID).Passage()
	m, isItem := vectors.ID(got.Hits[1].ID).Item()
	if n != 1 || !isItem || fmt.Sprintf("MEM-%d", m) != it.Item.Handle {
		t.Errorf("nearest: %+v", got.Hits)
	}
	cos, err := q.Cosines([]vectors.ID{vectors.OfPassage(1), vectors.OfPassage(3), vectors.OfPassage(99)})
	must(t, err)
	if len(cos) != 2 || cos[vectors.OfPassage(1)] < .7 || cos[vectors.OfPassage(3)] > .3 {
		t.Errorf("cosines: %v", cos)
	}
	// What is said again costs nothing, and is found at once in the same process.
	must(t, w.say(t.Context(), "we moved to Lisbon"))
	before = sent(s)
	if r := catchUp(t, w); r.Reused != 1 || sent(s) != before {
		t.Errorf("said again: %+v, %d texts sent", r, sent(s)-before)
	}
	q, err = w.meaning.Ask(t.Context(), agent, "moved to Lisbon")
	must(t, err)
	if cos, err := q.Cosines([]vectors.ID{vectors.OfPassage(5)}); err != nil || cos[vectors.OfPassage(5)] < .7 {
		t.Errorf("the new passage: %v, %v", cos, err)
	}
}

func TestWhatIsForgottenLosesItsVector(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), "my code word is swordfish", "tea is fine"))
	it, err := w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "Word", Content: "the code word is swordfish", Kind: "fact"})
	must(t, err)
	model := catchUp(t, w).Model
	_, err = w.notes.Forget(t.Context(), agent, working.ForgetRequest{Handle: it.Item.Handle})
	must(t, err)
	must(t, w.meaning.Follow(t.Context(), agent))
	if c, err := w.vectors.Coverage(t.Context(), model); err != nil || c.Texts != 2 || c.Have != 2 {
		t.Errorf("after forgetting: %+v, %v", c, err)
	}
	if r := catchUp(t, w); r.Coverage.Texts != 2 || r.Coverage.Have != 2 {
		t.Errorf("after catching up: %+v", r.Coverage)
	}
	hash := vectors.HashOf("Word\nthe code word is swordfish")
	must(t, w.vectors.Fold(t.Context()))
	body, err := os.ReadFile(filepath.Join(w.dir, vectors.FileName))
	must(t, err)
	if bytes.Contains(body, hash[:]) {
		t.Error("the hash of what was forgotten is still in the file")
	}
}

// TestEveryFault has the model answer in every way that there is: whatever comes,
// what is kept is right and whole, nothing else is, the texts wait, and a model
// that answers again makes up for it.
func TestEveryFault(t *testing.T) {
	texts := numbered(20)
	for _, b := range judge.EmbedBehaviours() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			s := judge.NewServer(t)
			s.RedirectTo("http://192.0.2.1/")
			w := newWorld(t, s.URL, "stub")
			must(t, w.say(t.Context(), texts...))
			s.NextEmbed("good")
			s.AlwaysEmbed(b.Name)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r, err := w.meaning.CatchUp(ctx, agent, meaning.Asked{})
			h, healthErr := w.meaning.Health(t.Context(), agent)
			must(t, healthErr)
			switch {
			case err != nil && (h.Failure == "" || h.Since == nil || h.Missing == 0):
				t.Errorf("failed with %v, and health is %+v", err, h)
			case err == nil && (h.Failure != "" || h.Missing != 0):
				t.Errorf("did not fail (%+v), and health is %+v", r, h)
			}
			s.AlwaysEmbed("")
			if h.Refused > 0 { // the endpoint's fault was taken for the texts'
				_, err = w.meaning.CatchUp(t.Context(), agent, meaning.Asked{Anew: true})
			} else {
				_, err = w.meaning.CatchUp(t.Context(), agent, meaning.Asked{})
			}
			must(t, err)
			if h, err = w.meaning.Health(t.Context(), agent); err != nil || h.Failure != "" || h.Have != len(texts) || !h.Ready {
				t.Fatalf("after all: %+v, %v", h, err)
			}
			x, err := w.vectors.Index(t.Context(), h.Model)
			must(t, err)
			for i, text := range texts {
				v, there := x.Vector(int64(vectors.OfPassage(int64(i + 1))))
				if want := judge.Embed("stub", text, 64); !there || !near(v, want) {
					t.Fatalf("the vector of %q is another's", text)
				}
			}
		})
	}
}

func near(a, b []float32) bool {
	return len(a) == len(b) && !slices.ContainsFunc(slices.Collect(func(yield func(float32) bool) {
		for i := range a {
			if !yield(a[i] - b[i]) {
				return
			}
		}
	}), func(d float32) bool { return d > 1e-4 || d < -1e-4 })
}

func TestATextThatTheModelRefusesHoldsNothingUp(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), "one thing", "too long for it", "another thing"))
	s.NextEmbed("400-long", "good", "400-long", "good")
	if r := catchUp(t, w); r.Coverage.Have != 2 || r.Coverage.Refused != 1 || !r.Ready {
		t.Fatalf("%+v", r)
	}
	before := sent(s)
	if catchUp(t, w); sent(s) != before {
		t.Error("it is asked again")
	}
	// A model that takes nothing at all is no fault of the texts.
	w2 := newWorld(t, s.URL, "stub")
	must(t, w2.say(t.Context(), "one thing", "another thing"))
	s.AlwaysEmbed("400")
	if r, err := w2.meaning.CatchUp(t.Context(), agent, meaning.Asked{}); err == nil || r.Coverage.Refused != 0 || r.Coverage.Missing() != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestModelsAreNeverMixed(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "first")
	texts := numbered(20)
	must(t, w.say(t.Context(), texts...))
	first := catchUp(t, w)
	must(t, w.use(s.URL, "second"))
	if _, err := w.meaning.Ask(t.Context(), agent, "box"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a question of a model without vectors: %v", err)
	}
	// Half of the change: it answers nothing yet.
	s.NextEmbed("good", "500")
	if _, err := w.meaning.CatchUp(t.Context(), agent, meaning.Asked{}); err == nil {
		t.Fatal("no failure")
	}
	if _, err := w.meaning.Ask(t.Context(), agent, "box"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a question in the middle of a change: %v", err)
	}
	second := catchUp(t, w)
	if !second.Ready || second.Model == first.Model || second.Made != 12 {
		t.Fatalf("%+v", second)
	}
	x, err := w.vectors.Index(t.Context(), second.Model)
	must(t, err)
	for i, text := range texts {
		if v, _ := x.Vector(int64(vectors.OfPassage(int64(i + 1)))); !near(v, judge.Embed("second", text, 64)) {
			t.Fatalf("passage %d has another model's vector", i+1)
		}
	}
	before := sent(s)
	must(t, w.use(s.URL, "first"))
	if r := catchUp(t, w); !r.Ready || sent(s) != before {
		t.Errorf("back to the first: %+v, %d texts sent", r, sent(s)-before)
	}
}

func TestAModelThatChangesItsDimension(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), numbered(4)...))
	catchUp(t, w)
	must(t, w.say(t.Context(), "something else"))
	must(t, w.use(s.URL, "stub")) // a new process, which does not know the dimension
	s.NextEmbed("other-dimension")
	_, err := w.meaning.CatchUp(t.Context(), agent, meaning.Asked{})
	if !errors.Is(err, memory.ErrConflict) || !strings.Contains(memory.HintOf(err), "--anew") {
		t.Errorf("%v (%s)", err, memory.HintOf(err))
	}
	h, err := w.meaning.Health(t.Context(), agent)
	if err != nil || h.Have != 4 || h.Missing != 1 || h.Failure == "" {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestARebuiltArchiveCostsNothing(t *testing.T) {
	s := judge.NewServer(t)
	dir := t.TempDir()
	w, err := openWorld(t.Context(), dir, s.URL, "stub")
	must(t, err)
	must(t, w.say(t.Context(), numbered(12)...))
	_, err = w.notes.Write(t.Context(), agent, working.WriteRequest{Title: "Drink", Content: "likes green tea", Kind: "preference"})
	must(t, err)
	catchUp(t, w)
	must(t, w.close())
	for _, name := range []string{"archive.db", "memory.db"} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(dir, name+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	before := sent(s)
	w, err = openWorld(t.Context(), dir, s.URL, "stub")
	must(t, err)
	if r := catchUp(t, w); r.Coverage.Have != 13 || r.Coverage.Missing() != 0 || sent(s) != before {
		t.Errorf("%+v, %d texts sent", r, sent(s)-before)
	}
	must(t, w.close())
}

func TestBuiltInModel(t *testing.T) {
	w := newWorld(t, "", "")
	must(t, w.say(t.Context(), numbered(50)...))
	if r := catchUp(t, w); r.Model != "" || r.Ready {
		t.Errorf("learned from 50 passages: %+v", r)
	}
	if _, err := w.meaning.Ask(t.Context(), agent, "box"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a question without a model: %v", err)
	}
	must(t, w.say(t.Context(), numbered(150)[50:]...))
	first := catchUp(t, w)
	if !first.Trained || !first.Ready || first.Coverage.Have != 150 {
		t.Fatalf("%+v", first)
	}
	q, err := w.meaning.Ask(t.Context(), agent, "what stands in room 3?")
	must(t, err)
	if got, err := q.Nearest(3, nil); err != nil || len(got.Hits) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	// Little more is folded in; a fifth more is learned from.
	must(t, w.say(t.Context(), "box 7 is in room 3"))
	if r := catchUp(t, w); r.Trained || r.Model != first.Model || r.Made != 1 {
		t.Errorf("%+v", r)
	}
	must(t, w.say(t.Context(), numbered(190)[150:]...))
	second := catchUp(t, w)
	all, err := w.vectors.Models(t.Context())
	must(t, err)
	if !second.Trained || second.Model == first.Model || second.Coverage.Have != 191 || len(all) != 1 {
		t.Fatalf("%+v, %d models", second, len(all))
	}
	// Where nothing is said, nothing is written.
	must(t, w.vectors.Fold(t.Context()))
	before, err := os.ReadFile(filepath.Join(w.dir, vectors.FileName))
	must(t, err)
	catchUp(t, w)
	must(t, w.vectors.Fold(t.Context()))
	after, err := os.ReadFile(filepath.Join(w.dir, vectors.FileName))
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("an idle agent's vectors are written")
	}
	// What it has learned from must not survive an erasure.
	if n, err := w.meaning.Forget(t.Context(), agent); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := w.meaning.Ask(t.Context(), agent, "what stands in room 3?"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a question after an erasure: %v", err)
	}
	if r := catchUp(t, w); !r.Trained || !r.Ready {
		t.Errorf("%+v", r)
	}
}

func TestAQuestionHasItsOwnTime(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), numbered(4)...))
	catchUp(t, w)
	s.AlwaysEmbed("hang")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.meaning.Ask(ctx, agent, "box"); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	h, err := w.meaning.Health(t.Context(), agent)
	if err != nil || h.Memory == 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestDryRun(t *testing.T) {
	s := judge.NewServer(t)
	w := newWorld(t, s.URL, "stub")
	must(t, w.say(t.Context(), numbered(10)...))
	got, err := w.meaning.Reembed(t.Context(), agent, meaning.ReembedRequest{DryRun: true})
	must(t, err)
	if got.Done || got.Missing != 10 || got.Tokens < 100 || got.Tokens > 300 || sent(s) != 0 {
		t.Errorf("%+v, %d texts sent", got, sent(s))
	}
	if _, err := os.Stat(filepath.Join(w.dir, "vectors.lock")); err == nil {
		t.Error("a dry run locks the vectors")
	}
	if n, err := w.vectors.Texts(t.Context()); err != nil || n != 0 {
		t.Errorf("a dry run noted %d texts, %v", n, err)
	}
	// What was said again, or refused, is not sent again; with anew everything is.
	catchUp(t, w)
	must(t, w.say(t.Context(), append(numbered(2), "the harbour opens at noon", "the harbour opens at noon")...))
	before, err := w.vectors.Position(t.Context())
	must(t, err)
	whole, err := w.meaning.Reembed(t.Context(), agent, meaning.ReembedRequest{DryRun: true, Anew: true, Prune: true})
	must(t, err)
	if got, err = w.meaning.Reembed(t.Context(), agent, meaning.ReembedRequest{DryRun: true}); err != nil || got.Texts != 14 || got.Missing != 2 || got.Tokens == 0 || got.Tokens > 20 || whole.Missing != 14 || whole.Tokens <= got.Tokens {
		t.Errorf("%+v, anew %+v, %v", got, whole, err)
	}
	if after, err := w.vectors.Position(t.Context()); err != nil || after != before {
		t.Errorf("a dry run moved from %+v to %+v, %v", before, after, err)
	}
}

// TestKilled kills processes that make vectors, again and again. The texts that
// were paid for twice are at most those of the request that was under way.
func TestKilled(t *testing.T) {
	s := judge.NewServer(t)
	dir := t.TempDir()
	texts := numbered(400)
	w, err := openWorld(t.Context(), dir, s.URL, "stub")
	must(t, err)
	must(t, w.say(t.Context(), texts...))
	must(t, w.close())
	chance := rand.New(rand.NewPCG(4, 4))
	kills, done := 0, false
	for ; !done; kills++ {
		if kills > 500 {
			t.Fatal("it makes no progress")
		}
		c := judge.StartChild(t, "embed", dir, "STUB_URL="+s.URL)
		if _, there := c.Ack(); !there {
			t.Fatal("the child does not start")
		}
		// When to kill, not how long to wait: later and later, so that there is progress on a slow machine too.
		time.Sleep(time.Duration(chance.IntN(40+10*kills)) * time.Millisecond)
		for _, line := range c.Kill() {
			done = done || line == "done 0"
		}
	}
	if n := sent(s); n > len(texts)+kills*64 {
		t.Errorf("%d texts sent for %d, with %d kills", n, len(texts), kills)
	}
	w, err = openWorld(t.Context(), dir, s.URL, "stub")
	must(t, err)
	defer func() { must(t, w.close()) }()
	before := sent(s)
	r := catchUp(t, w)
	if !r.Ready || r.Coverage.Have != len(texts) || sent(s) != before {
		t.Fatalf("%+v", r)
	}
	x, err := w.vectors.Index(t.Context(), r.Model)
	must(t, err)
	for i, text := range texts {
		if v, _ := x.Vector(int64(vectors.OfPassage(int64(i + 1)))); !near(v, judge.Embed("stub", text, 64)) {
			t.Fatalf("passage %d has another's vector", i+1)
		}
	}
	t.Logf("%d kills, %d texts sent for %d", kills, sent(s), len(texts))
}

// TestTwoProcesses has two processes make the same vectors: no text is sent twice.
func TestTwoProcesses(t *testing.T) {
	s := judge.NewServer(t)
	dir := t.TempDir()
	texts := numbered(200)
	w, err := openWorld(t.Context(), dir, s.URL, "stub")
	must(t, err)
	must(t, w.say(t.Context(), texts...))
	must(t, w.close())
	a, b := judge.StartChild(t, "embed", dir, "STUB_URL="+s.URL), judge.StartChild(t, "embed", dir, "STUB_URL="+s.URL)
	ends := append(a.Wait(), b.Wait()...)
	if !slices.Contains(ends, "done 0") {
		t.Errorf("the ends: %q", ends)
	}
	if n := sent(s); n != len(texts) {
		t.Errorf("%d texts sent for %d", n, len(texts))
	}
}
