package vectors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
)

func open(t interface{ Fatal(...any) }, path string, o vectors.Options) *vectors.Store {
	o.Now = time.Now
	s, err := vectors.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// vector is one that its text and model determine.
func vector(model string, h vectors.Hash) []float32 {
	chance := rand.New(rand.NewPCG(uint64(h[0])<<8|uint64(h[1]), uint64(len(model))))
	v := make([]float32, 6)
	for i := range v {
		v[i] = float32(chance.NormFloat64())
	}
	return v
}

// truth is what a store should hold.
type truth struct {
	texts   map[vectors.ID]vectors.Hash
	have    map[string]map[vectors.ID]vectors.Hash
	refused map[string]map[vectors.ID]bool
}

func (m *truth) remove(id vectors.ID) {
	delete(m.texts, id)
	for _, model := range []string{"a", "bb"} {
		delete(m.have[model], id)
		delete(m.refused[model], id)
	}
}

// TestStoreIsWhatItsModelSays holds the store against maps under random changes,
// with a second process that has the vectors in memory already.
func TestStoreIsWhatItsModelSays(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		n++
		path := filepath.Join(dir, fmt.Sprint(n, ".db"))
		s, other := open(t, path, vectors.Options{}), open(t, path, vectors.Options{})
		defer func() {
			if err := errors.Join(s.Close(), other.Close()); err != nil {
				t.Fatal(err)
			}
		}()
		m := &truth{texts: map[vectors.ID]vectors.Hash{}, have: map[string]map[vectors.ID]vectors.Hash{"a": {}, "bb": {}}, refused: map[string]map[vectors.ID]bool{"a": {}, "bb": {}}}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, model := range []string{"a", "bb"} {
			ok(s.Add(ctx, vectors.Model{ID: model, Dims: 6}))
			ok(s.SetReady(ctx, model, false))
		}
		ids := rapid.Map(rapid.Int64Range(0, 11), func(n int64) vectors.ID { return vectors.ID(n) })
		words := rapid.Map(rapid.IntRange(0, 5), func(n int) vectors.Hash { return vectors.HashOf(fmt.Sprint(n)) })
		names := rapid.SampledFrom([]string{"a", "bb"})
		t.Repeat(map[string]func(*rapid.T){
			"note": func(t *rapid.T) {
				id, h := ids.Draw(t, "id"), words.Draw(t, "text")
				at, err := s.Position(ctx)
				ok(err)
				ok(s.Note(ctx, at, vectors.Position{Passages: at.Passages + 1}, []vectors.Noted{{ID: id, Hash: h}}, nil, nil))
				if m.texts[id] != h {
					m.remove(id)
				}
				m.texts[id] = h
			},
			"forget": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				at, err := s.Position(ctx)
				ok(err)
				ok(s.Note(ctx, at, at, nil, []vectors.ID{id}, nil))
				m.remove(id)
			},
			"note a span": func(t *rapid.T) {
				first, last := ids.Draw(t, "first"), ids.Draw(t, "last")
				id, h := ids.Draw(t, "id"), words.Draw(t, "text")
				at, err := s.Position(ctx)
				ok(err)
				ok(s.Note(ctx, at, at, []vectors.Noted{{ID: id, Hash: h}}, nil, []vectors.Span{{First: first, Last: last}}))
				for there := range m.texts {
					if there >= first && there <= last && there%2 == first%2 && there != id {
						m.remove(there)
					}
				}
				if m.texts[id] != h {
					m.remove(id)
				}
				m.texts[id] = h
			},
			"put": func(t *rapid.T) {
				model, id, h := names.Draw(t, "model"), ids.Draw(t, "id"), words.Draw(t, "text")
				ok(s.Put(ctx, model, []vectors.Made{{Noted: vectors.Noted{ID: id, Hash: h}, Vector: vector(model, h)}}))
				if m.texts[id] == h && h != (vectors.Hash{}) {
					m.have[model][id] = h
				}
			},
			"reuse": func(t *rapid.T) {
				model := names.Draw(t, "model")
				var list []vectors.Noted
				for id, h := range m.texts {
					if _, has := m.have[model][id]; !has && !m.refused[model][id] {
						list = append(list, vectors.Noted{ID: id, Hash: h})
					}
				}
				rest, err := s.Reuse(ctx, model, list)
				ok(err)
				known := map[vectors.Hash]bool{}
				for _, h := range m.have[model] {
					known[h] = true
				}
				for _, x := range list {
					if known[x.Hash] == slices.Contains(rest, x) {
						t.Fatalf("%v is known %v, and among the rest %v", x, known[x.Hash], rest)
					}
					if known[x.Hash] {
						m.have[model][x.ID] = x.Hash
					}
				}
			},
			"drop": func(t *rapid.T) {
				model := names.Draw(t, "model")
				ok(s.Drop(ctx, model))
				ok(s.Add(ctx, vectors.Model{ID: model, Dims: 6}))
				ok(s.SetReady(ctx, model, false))
				m.have[model], m.refused[model] = map[vectors.ID]vectors.Hash{}, map[vectors.ID]bool{}
			},
			"": func(t *rapid.T) {
				for model, have := range m.have {
					c, err := s.Coverage(ctx, model)
					ok(err)
					if c.Texts != len(m.texts) || c.Have != len(have) {
						t.Fatalf("%s: %+v, want %d texts and %d vectors", model, c, len(m.texts), len(have))
					}
					missing, err := s.Missing(ctx, model, -1, 100)
					ok(err)
					if len(missing) != c.Missing() {
						t.Fatalf("%s: %d are missing, counted %d", model, len(missing), c.Missing())
					}
				}
				for _, store := range []*vectors.Store{s, other} {
					x, err := store.Index(ctx, "a")
					ok(err)
					if x.Len() != len(m.have["a"]) {
						t.Fatalf("%d vectors in memory, want %d", x.Len(), len(m.have["a"]))
					}
					for id, h := range m.have["a"] {
						hits, err := x.Scores(vector("a", h), []int64{int64(id)})
						ok(err)
						if len(hits) != 1 || hits[0].Score < .9999 {
							t.Fatalf("the vector of %d is another's: %v", id, hits)
						}
					}
				}
			},
		})
	})
}

func TestShortFormsAreNear(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), vectors.FileName)
	s := open(t, path, vectors.Options{})
	var list []vectors.Noted
	var made []vectors.Made
	for i := range 50 {
		noted := vectors.Noted{ID: vectors.OfPassage(int64(i + 1)), Hash: vectors.HashOf(fmt.Sprint(i))}
		list, made = append(list, noted), append(made, vectors.Made{Noted: noted, Vector: vector("a", noted.Hash)})
	}
	for _, err := range []error{s.Note(ctx, vectors.Position{}, vectors.Position{Passages: 50}, list, nil, nil), s.Add(ctx, vectors.Model{ID: "a", Dims: 6}), s.Put(ctx, "a", made)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Index(ctx, "a"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a model that is not ready: %v", err)
	}
	if err := s.SetReady(ctx, "a", false); err != nil {
		t.Fatal(err)
	}
	short := open(t, path, vectors.Options{Short: true})
	x, err := s.Index(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	y, err := short.Index(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	q := vector("a", vectors.HashOf("question"))
	exact, err := x.Search(q, 50, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range exact.Hits {
		about, err := y.Scores(q, []int64{h.ID})
		if err != nil || len(about) != 1 || about[0].Score-h.Score > .01 || h.Score-about[0].Score > .01 {
			t.Errorf("%d: %v instead of %v (%v)", h.ID, about, h.Score, err)
		}
	}
	if err := errors.Join(s.Close(), short.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsHalfWritten: of a batch with one bad vector nothing is kept.
func TestNothingIsHalfWritten(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), vectors.FileName), vectors.Options{})
	defer s.Close()
	a, b := vectors.Noted{ID: 2, Hash: vectors.HashOf("a")}, vectors.Noted{ID: 4, Hash: vectors.HashOf("b")}
	if err := errors.Join(s.Note(ctx, vectors.Position{}, vectors.Position{Passages: 2}, []vectors.Noted{a, b}, nil, nil), s.Add(ctx, vectors.Model{ID: "m", Dims: 2})); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]float32{"zero": {0, 0}, "longer": {1, 2, 3}, "empty": {}} {
		if err := s.Put(ctx, "m", []vectors.Made{{Noted: a, Vector: []float32{1, 0}}, {Noted: b, Vector: bad}}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := s.Put(ctx, "m", []vectors.Made{{Noted: a, Vector: []float32{1, 2, 3}}}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("another dimension: %v", err)
	}
	if c, err := s.Coverage(ctx, "m"); err != nil || c.Have != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.Note(ctx, vectors.Position{}, vectors.Position{Passages: 9}, nil, nil, nil); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("a position that another has moved: %v", err)
	}
}

// TestAModelIsNotLearnedFromWhatWasForgotten: a model that was being trained when
// texts were taken away is refused.
func TestAModelIsNotLearnedFromWhatWasForgotten(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), vectors.FileName), vectors.Options{})
	defer s.Close()
	before, err := s.Removals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DropBuiltIn(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.AddBuiltIn(ctx, vectors.Model{ID: "lsa", Dims: 2, Learned: 1}, []byte("words"), before); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("%v", err)
	}
}

func TestDamageIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), vectors.FileName)
	if err := os.WriteFile(path, []byte("this is no database, and never was one; it is longer than a header"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, vectors.Options{})
	defer s.Close()
	aside, err := filepath.Glob(path + ".corrupt-*")
	if err != nil || len(aside) != 1 {
		t.Errorf("%q, %v", aside, err)
	}
	if p, err := s.Position(t.Context()); err != nil || p != (vectors.Position{}) {
		t.Errorf("%s %v", cmp.Diff(vectors.Position{}, p), err)
	}
}
