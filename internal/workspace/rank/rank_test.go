package rank

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func names(hits []Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return strings.Join(out, " ")
}

func TestTerms(t *testing.T) {
	for _, tc := range []struct{ query, seed, later, all, anyOf string }{
		{`crane "contract"-2026`, "crane contract 2026", "crane contract 2026", `"crane" AND "contract" AND "2026"`, `"crane" OR "contract" OR "2026"`},
		{"foo_bar: größe", "foo_bar gr e", "foo_bar größe", `"foo_bar" AND "größe"`, `"foo_bar" OR "größe"`},
		{"港口 pilot", "pilot", "港口 pilot", `"港口" AND "pilot"`, `"港口" OR "pilot"`},
		{"?!* ", "", "", "", ""},
	} {
		if got := strings.Join(Seed.Terms(tc.query), " "); got != tc.seed {
			t.Errorf("seed terms of %q: %q", tc.query, got)
		}
		terms := Later.Terms(tc.query)
		if got := strings.Join(terms, " "); got != tc.later {
			t.Errorf("later terms of %q: %q", tc.query, got)
		}
		if all, anyOf := Expression(terms, false), Expression(terms, true); all != tc.all || anyOf != tc.anyOf {
			t.Errorf("expressions of %q: %s and %s", tc.query, all, anyOf)
		}
	}
}

func TestFuseUnites(t *testing.T) {
	vectors := []Hit{{ID: "a", Vector: .9, Snippet: "by vector"}, {ID: "b", Vector: .5, Snippet: "b"}}
	words := []Hit{{ID: "c", Text: .8}, {ID: "a", Text: .4, Snippet: "by words"}, {ID: "b", Text: .2}}
	got := Fuse(vectors, words, DefaultWeights)
	if names(got) != "a b c" || got[0].Snippet != "by words" || got[1].Snippet != "b" {
		t.Errorf("Fuse = %+v", got)
	}
	if h := got[2]; h.Vector != 0 || !h.ByWords || math.Abs(h.Score-.24) > 1e-12 {
		t.Errorf("found by words only: %+v", h)
	}
}

// TestBlend goes through the stages in their order.
func TestBlend(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	vectors := []Hit{
		{ID: "old", Path: "memory/2026-01-21.md", Source: SourceMemory, Vector: 1, Snippet: "a b c"},
		{ID: "new", Path: "MEMORY.md", Source: SourceMemory, Vector: .9, Snippet: "a b c"},
		{ID: "other", Path: "memory.md", Source: SourceMemory, Vector: .8, Snippet: "x y z"},
	}
	weak := []Hit{{ID: "w", Text: .34}, {ID: "v", Text: 1}}
	for name, tc := range map[string]struct {
		vectors, words []Hit
		p              Params
		want           string
	}{
		"plain":                {vectors, nil, Params{Era: Later, Max: 6}, "old new other"},
		"number":               {vectors, nil, Params{Era: Later, Max: 2}, "old new"},
		"at least one":         {vectors, nil, Params{Era: Later}, "old"},
		"least score":          {vectors, nil, Params{Era: Later, Max: 6, MinScore: .6}, "old new"},
		"decay":                {vectors, nil, Params{Era: Later, Max: 6, HalfLife: 30, Now: now}, "new other old"},
		"diversity":            {vectors, nil, Params{Era: Later, Max: 6, Diverse: true, Lambda: .3}, "old other new"},
		"diversity then least": {vectors, nil, Params{Era: Later, Max: 6, Diverse: true, Lambda: .3, MinScore: .6}, "old new"},
		"fallback":             {nil, weak, Params{Era: Later, Max: 6, MinScore: .35}, "v"},
		"no fallback before":   {nil, weak, Params{Era: Seed, Max: 6, MinScore: .35}, ""},
		"fallback is for words": {[]Hit{{ID: "x", Vector: .45}}, []Hit{{ID: "y", Text: .9}}, Params{Era: Later, Max: 6, MinScore: .35,
			Weights: Weights{Vector: .75, Text: .25}}, ""},
		"nothing": {nil, nil, Params{Era: Later, Max: 6}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(Blend(slices.Clone(tc.vectors), slices.Clone(tc.words), tc.p)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWordsOnly(t *testing.T) {
	words := []Hit{{ID: "a", Text: .2, StartLine: 1}, {ID: "b", Text: .5}, {ID: "a", Text: .6, StartLine: 1}}
	if got := WordsOnly(words, Params{Era: Later, Max: 6, MinScore: .35}); names(got) != "a b" || got[0].Score != .6 {
		t.Errorf("best scores: %+v", got)
	}
	if got := names(WordsOnly(words, Params{Era: Later, Max: 6, MinScore: .9})); got != "a b" {
		t.Errorf("where nothing has the least score: %q", got)
	}
	if got := names(WordsOnly(words, Params{Era: Seed, Max: 6, MinScore: .9})); got != "" {
		t.Errorf("in the seed era: %q", got)
	}
}

func TestDecayOfTheSeedEra(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	if f := Seed.Decay("memory/2026-02/2026-02-05.md", SourceMemory, now.AddDate(0, 0, -9), now, 7); f != 1 {
		t.Errorf("a day in a folder decays by %v: then it was evergreen", f)
	}
	if f := Seed.Decay("memory/2026-02-05.md", SourceMemory, time.Time{}, now, 7); math.Abs(f-math.Exp2(-15.5/7)) > 1e-9 {
		t.Errorf("a day decays by %v", f)
	}
}

func TestFuseIsBounded(t *testing.T) {
	score := rapid.Float64Range(0, 1)
	weight := rapid.OneOf(rapid.Float64Range(-2, 2), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)))
	hit := rapid.Custom(func(t *rapid.T) Hit {
		s := score.Draw(t, "score")
		return Hit{ID: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"), Vector: s, Text: s}
	})
	rapid.Check(t, func(t *rapid.T) {
		vectors, words := rapid.SliceOf(hit).Draw(t, "vectors"), rapid.SliceOf(hit).Draw(t, "words")
		w := Weights{weight.Draw(t, "wv"), weight.Draw(t, "wt")}
		if n := w.Normal(); math.Abs(n.Vector+n.Text-1) > 1e-12 || n.Vector < 0 || n.Text < 0 {
			t.Fatalf("%v normalised to %v", w, n)
		}
		seen := map[string]bool{}
		for _, h := range Fuse(vectors, words, w) {
			if seen[h.ID] {
				t.Fatalf("%s is there twice", h.ID)
			}
			seen[h.ID] = true
			if !(h.Score >= 0 && h.Score <= max(h.Vector, h.Text)+1e-12) {
				t.Fatalf("score %v of %v and %v", h.Score, h.Vector, h.Text)
			}
		}
		for _, h := range append(vectors, words...) {
			if !seen[h.ID] {
				t.Fatalf("%s is lost", h.ID)
			}
		}
	})
}

func TestMMRPermutes(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab ")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 12).Draw(t, "scores")
		texts := rapid.SliceOfN(text, len(scores), len(scores)).Draw(t, "texts")
		lambda := rapid.Float64Range(-1, 2).Draw(t, "lambda")
		picks := Later.MMR(scores, texts, lambda)
		seen := make([]bool, len(scores))
		for _, p := range picks {
			if seen[p.Index] {
				t.Fatalf("%d is there twice", p.Index)
			}
			seen[p.Index] = true
		}
		if len(picks) != len(scores) {
			t.Fatalf("%d of %d", len(picks), len(scores))
		}
		if len(picks) > 0 && lambda > 0 && scores[picks[0].Index] != slices.Max(scores) {
			t.Fatalf("the first is %v of %v", scores[picks[0].Index], scores)
		}
	})
}

func FuzzQuery(f *testing.F) {
	f.Add(`a" OR b*`, true)
	f.Add("港口\x00\xff NEAR(", false)
	f.Fuzz(func(t *testing.T, query string, anyOf bool) {
		for _, era := range []Era{Seed, Later} {
			terms := era.Terms(query)
			expr := Expression(terms, anyOf)
			if strings.Count(expr, `"`) != 2*len(terms) {
				t.Fatalf("%s: a quote of %q went through: %s", era, query, expr)
			}
		}
	})
}

func BenchmarkMMR(b *testing.B) {
	scores, texts := make([]float64, 200), make([]string, 200)
	for i := range scores {
		scores[i] = 1 / float64(i+1)
		for w := range 100 {
			texts[i] += fmt.Sprintf("word%d ", (i*7+w*3)%500)
		}
	}
	for b.Loop() {
		Later.MMR(scores, texts, DefaultLambda)
	}
}
