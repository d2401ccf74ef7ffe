package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace/rank"
)

func TestSearchByWords(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	a := r.search(Query{Query: "  the outer BUOY?\n"})
	if a.Mode != "fts-only" || a.Provider != "none" || a.Model != "fts-only" || a.AnyWord || len(a.Results) != 1 {
		t.Fatalf("answer: %+v", a)
	}
	got := a.Results[0]
	want := Result{Path: "MEMORY.md", StartLine: 1, EndLine: 5, Score: got.Score, Snippet: harbour["MEMORY.md"], Source: "memory", Citation: "MEMORY.md#L1-L5"}
	if got != want || got.Score <= 0 || got.Score >= 1 {
		t.Errorf("got %+v", got)
	}
	if seed := r.search(Query{Query: "outer buoy", Scoring: "seed"}); len(seed.Results) != 1 || seed.Results[0].Score != 1 {
		t.Errorf("seed: %+v", seed)
	}
	// No chunk has all words: those with any are found, and the answer says so.
	if a := r.search(Query{Query: "ferry lighthouse"}); !a.AnyWord || len(a.Results) != 2 {
		t.Errorf("any word: %+v", a)
	}
	if a := r.search(Query{Query: "ferry lighthouse", Scoring: "seed"}); a.AnyWord || len(a.Results) != 0 {
		t.Errorf("any word in the seed era: %+v", a)
	}
	if a := r.search(Query{Query: "ferry lighthouse", Scoring: "seed", AnyWord: true}); len(a.Results) != 2 {
		t.Errorf("any word on demand: %+v", a)
	}
	if a := r.search(Query{Query: "ferry", MaxResults: 1}); len(a.Results) != 1 {
		t.Errorf("one result: %+v", a)
	}
	for _, q := range []string{"", " \ufeff ", "?!", `" OR "`, "ferry\x00*", "NEAR(", strings.Repeat("ferry ", 5000)} {
		if a := r.search(Query{Query: q}); a.Results == nil {
			t.Errorf("%.20q: no list", q)
		}
	}
}

// TestScriptsWithoutSpaces finds words inside of what the full-text table takes
// for one.
func TestScriptsWithoutSpaces(t *testing.T) {
	r := newRig(t, map[string]string{"memory/a.md": "今日の会議は港で開かれた。", "memory/b.md": "明日は休み。", "memory/c.md": "ferry"})
	r.sync(Change{})
	if a := r.search(Query{Query: "会議"}); a.paths() != "memory/a.md" || !a.AnyWord || a.Results[0].Score != .5 {
		t.Errorf("a pair: %+v", a)
	}
	if a := r.search(Query{Query: "休みの会議は"}); a.paths() != "memory/a.md memory/b.md" || a.Results[0].Score != .3 || a.Results[1].Score != .1 {
		t.Errorf("pairs: %+v", a)
	}
	if a := r.search(Query{Query: "港"}); a.paths() != "memory/a.md" {
		t.Errorf("one character: %+v", a)
	}
	if a := r.search(Query{Query: "会議", Scoring: "seed"}); len(a.Results) != 0 {
		t.Errorf("in the seed era: %+v", a)
	}
	if a := r.search(Query{Query: strings.Repeat("会議港", 5000)}); a.paths() != "memory/a.md" {
		t.Errorf("a long query: %+v", a)
	}
}

func TestSearchRefuses(t *testing.T) {
	r := newRig(t, harbour)
	for name, q := range map[string]Query{
		"scoring": {Query: "x", Scoring: "new"}, "maxResults": {Query: "x", MaxResults: -1}, "halfLifeDays": {Query: "x", HalfLifeDays: -1},
	} {
		if _, err := r.x.Search(t.Context(), r.w, q); memory.FieldOf(err) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSearchWithoutIndexMakesNone(t *testing.T) {
	r := newRig(t, harbour)
	_, err := r.x.Search(t.Context(), r.w, Query{Query: "ferry"})
	if !errors.Is(err, memory.ErrNotFound) || memory.HintOf(err) == "" {
		t.Errorf("Search = %v", err)
	}
	if _, err := os.Stat(filepath.Dir(r.x.path)); err == nil {
		t.Error("a search made a directory")
	}
	// Where there is a place for it, a search makes the index.
	if err := os.MkdirAll(filepath.Dir(r.x.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := r.search(Query{Query: "pilot"}).paths(); got != "MEMORY.md" {
		t.Errorf("found %q", got)
	}
}

// TestHybridScores works a hybrid score out by hand.
func TestHybridScores(t *testing.T) {
	r := newRig(t, map[string]string{"memory/a.md": "crane crane pilot", "memory/b.md": "buoy fog", "memory/c.md": "ferry quay", "memory/d.md": "tide lamp"})
	e := &bag{model: "m"}
	r.x = r.index(e)
	if report := r.sync(Change{}); report.Pending != 0 || report.Provider != "test" || report.Model != "m" {
		t.Fatalf("report: %+v", report)
	}
	ranks := rowsOf(t, r.x, "SELECT printf('%.17g', rank) FROM chunks_fts WHERE chunks_fts MATCH '\"crane\"'")
	var bm25 float64
	if _, err := fmt.Sscan(ranks[0], &bm25); err != nil {
		t.Fatal(err)
	}
	cosine := 2 / math.Sqrt(5) // of (2, 1) and (1, 0)
	for scoring, text := range map[string]float64{"seed": 1, "later": -bm25 / (1 - bm25)} {
		a := r.search(Query{Query: "crane", Scoring: scoring})
		if want := .7*cosine + .3*text; a.Mode != "hybrid" || len(a.Results) != 1 || math.Abs(a.Results[0].Score-want) > 1e-6 {
			t.Errorf("%s: %+v, want %v", scoring, a, want)
		}
	}
	a := r.search(Query{Query: "crane", VectorWeight: ptr(0.), TextWeight: ptr(5.), Scoring: "seed"})
	if len(a.Results) != 1 || math.Abs(a.Results[0].Score-1) > 1e-9 {
		t.Errorf("words only by weight: %+v", a)
	}
	// Found by meaning alone: its words are in another order of letters, so to say.
	if a := r.search(Query{Query: "quay, ferry!", MinScore: ptr(.6)}); a.paths() != "memory/c.md" {
		t.Errorf("by meaning: %+v", a)
	}
}

func ptr[T any](v T) *T { return &v }

func TestDecayInSearch(t *testing.T) {
	same := "ferry ferry ferry"
	r := newRig(t, map[string]string{"memory/2026-01-21.md": same, "memory/2026-02-20.md": same, "memory/x.md": "fog", "memory/y.md": "buoy", "memory/z.md": "quay"})
	r.x = r.index(&bag{model: "m"})
	r.sync(Change{})
	a := r.search(Query{Query: "ferry", Decay: true, MinScore: ptr(.01), Scoring: "seed"})
	if a.paths() != "memory/2026-02-20.md memory/2026-01-21.md" {
		t.Fatalf("found %q", a.paths())
	}
	for i, days := range []float64{.5, 30.5} {
		if want := math.Exp2(-days / 30); math.Abs(a.Results[i].Score-want) > 1e-6 {
			t.Errorf("%s scores %v, want %v", a.Results[i].Path, a.Results[i].Score, want)
		}
	}
}

func TestMMRInSearch(t *testing.T) {
	r := newRig(t, map[string]string{"memory/a.md": "ferry ferry quay", "memory/b.md": "ferry ferry quay ", "memory/c.md": "ferry tide lamp", "memory/d.md": "none"})
	r.x = r.index(&bag{model: "m"})
	r.sync(Change{})
	plain, diverse := r.search(Query{Query: "ferry"}), r.search(Query{Query: "ferry", MMR: true, Lambda: ptr(.1)})
	if p := plain.paths(); p != "memory/a.md memory/b.md memory/c.md" && p != "memory/b.md memory/a.md memory/c.md" {
		t.Errorf("by score: %q", p)
	}
	if len(diverse.Results) != 3 || diverse.Results[1].Path != "memory/c.md" {
		t.Errorf("for diversity: %q", diverse.paths())
	}
}

func TestEmbedderThatFails(t *testing.T) {
	down := errors.New("connection refused")
	for name, e := range map[string]*bag{
		"down":        {model: "m", err: down},
		"too few":     {model: "m", edit: func(v [][]float32) [][]float32 { return v[1:] }},
		"empty":       {model: "m", edit: func(v [][]float32) [][]float32 { v[0] = nil; return v }},
		"no number":   {model: "m", edit: func(v [][]float32) [][]float32 { v[0][3] = float32(math.NaN()); return v }},
		"two lengths": {model: "m", edit: func(v [][]float32) [][]float32 { v[0] = v[0][:7]; return v }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, harbour)
			r.x = r.index(e)
			report := r.sync(Change{})
			if !report.Failed() || report.Pending != 4 || report.Chunks != 4 {
				t.Fatalf("report: %+v", report)
			}
			a := r.search(Query{Query: "pilot"})
			if a.paths() != "MEMORY.md" || len(a.Warnings) == 0 {
				t.Errorf("answer: %+v", a)
			}
			e.err, e.edit = nil, nil
			if report := r.sync(Change{}); report.Failed() || report.Pending != 0 || report.Rebuilt != "" {
				t.Errorf("afterwards: %+v", report)
			}
			if a := r.search(Query{Query: "pilot"}); a.Mode != "hybrid" || len(a.Warnings) != 0 {
				t.Errorf("afterwards: %+v", a)
			}
			e.err = down
			if a := r.search(Query{Query: "pilot"}); a.Mode != "fts-only" || a.paths() != "MEMORY.md" || !strings.Contains(fmt.Sprint(a.Warnings), "refused") {
				t.Errorf("the query's own vector: %+v", a)
			}
		})
	}
}

func TestZeroQueryVector(t *testing.T) {
	r := newRig(t, harbour)
	e := &bag{model: "m"}
	r.x = r.index(e)
	r.sync(Change{})
	e.edit = func(v [][]float32) [][]float32 { clear(v[0]); return v }
	a := r.search(Query{Query: "pilot", MinScore: ptr(0.), Scoring: "seed"})
	if a.Mode != "hybrid" || len(a.Results) != 1 || math.Abs(a.Results[0].Score-.3) > 1e-9 {
		t.Errorf("answer: %+v", a)
	}
}

// TestCache holds that no text is embedded twice, also when the index is built
// anew, and that another model's vectors are not taken.
func TestCache(t *testing.T) {
	r := newRig(t, harbour)
	r.write(map[string]string{"memory/copy.md": harbour["MEMORY.md"]})
	e := &bag{model: "m"}
	r.x = r.index(e)
	if report := r.sync(Change{}); report.Chunks != 5 || len(e.texts) != 4 {
		t.Fatalf("%d texts were embedded for %+v", len(e.texts), report)
	}
	r.sync(Change{Force: true})
	r.remove("memory/a/berths.md")
	r.sync(Change{})
	r.write(harbour)
	r.sync(Change{})
	if len(e.texts) != 4 {
		t.Errorf("texts were embedded again: %q", e.texts[4:])
	}
	other := &bag{model: "n"}
	r.x = r.index(other)
	r.sync(Change{})
	if len(other.texts) != 4 {
		t.Errorf("the other model embedded %d texts", len(other.texts))
	}
	if got := rowsOf(t, r.x, "SELECT model, count(*) FROM chunks GROUP BY model"); len(got) != 1 {
		t.Errorf("models: %q", got)
	}
	if got := rowsOf(t, r.x, "SELECT provider, model, dims, count(*) FROM embedding_cache GROUP BY 1, 2, 3 ORDER BY 2"); len(got) != 2 {
		t.Errorf("cache: %q", got)
	}
	r.x.o.CacheEntries = 3
	r.sync(Change{})
	if got := rowsOf(t, r.x, "SELECT count(*), min(model) FROM embedding_cache"); got[0] != "3 n" {
		t.Errorf("the trimmed cache: %q", got)
	}
}

// TestOtherModelIsNotCompared searches an index with vectors of one model while
// another is configured and the index cannot be brought up to date.
func TestOtherModelIsNotCompared(t *testing.T) {
	r := newRig(t, harbour)
	r.x = r.index(&bag{model: "m"})
	r.sync(Change{})
	r.x = r.index(&bag{model: "n"})
	a := r.search(Query{Query: "pilot", AsIs: true})
	if a.Mode != "fts-only" || a.Model != "m" || a.paths() != "MEMORY.md" || !strings.Contains(fmt.Sprint(a.Warnings), "not compared") {
		t.Errorf("answer: %+v", a)
	}
}

func TestSearchWhileAnotherBuilds(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	_, err := r.x.alone(t.Context(), true, func() error {
		r.write(map[string]string{"memory/late.md": "pilot"})
		a := r.search(Query{Query: "pilot"})
		if a.paths() != "MEMORY.md" || !strings.Contains(fmt.Sprint(a.Warnings), "being built") {
			t.Errorf("answer: %+v", a)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.x.Sync(ctx, r.w, Change{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a second builder: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTogether searches while the index is built anew again and again.
func TestTogether(t *testing.T) {
	r := newRig(t, harbour)
	r.sync(Change{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 15 {
				a, err := r.x.Search(context.Background(), r.w, Query{Query: "pilot"})
				if err != nil || a.paths() != "MEMORY.md" {
					t.Errorf("%+v, %v", a, err)
				}
			}
		})
	}
	all.Go(func() {
		for range 6 {
			if _, err := New(r.x.path, r.x.o).Sync(context.Background(), r.w, Change{Force: true}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}

func TestKeys(t *testing.T) {
	for _, tc := range []struct {
		e           Endpoint
		model, json string
	}{
		{Endpoint{Provider: "none"}, "fts-only", `{"provider":"none","model":"fts-only"}`},
		{Endpoint{Provider: "voyage", BaseURL: "ignored"}, "voyage-4", `{"provider":"voyage","model":"voyage-4"}`},
		{Endpoint{Provider: "openai", BaseURL: "https://x/v1?a=1&b=2", Headers: map[string]string{"Content-Type": "application/json", "AUTHORIZATION": "Bearer k", "accept": "*/*"}}, "m<1>",
			`{"provider":"openai","baseUrl":"https://x/v1?a=1&b=2","model":"m<1>","headers":[["accept","*/*"],["Content-Type","application/json"]]}`},
		{Endpoint{Provider: "gemini", BaseURL: "u", Headers: map[string]string{"X-Goog-Api-Key": "k", "Authorization": "a"}}, "g", `{"provider":"gemini","baseUrl":"u","model":"g","headers":[]}`},
	} {
		got, err := tc.e.Key(tc.model)
		if err != nil || got != hashText(tc.json) {
			t.Errorf("%s is not hashed as %s (%v)", tc.e.Provider, tc.json, err)
		}
	}
}

func TestCosine(t *testing.T) {
	for _, tc := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{2, 0}, 1}, {[]float32{1, 0}, []float32{0, 3}, 0}, {[]float32{1, 1}, []float32{-1, -1}, -1},
		{[]float32{0, 0}, []float32{1, 1}, 0}, {[]float32{1, 2, 9}, []float32{1, 2}, 1}, {nil, []float32{1}, 0},
	} {
		if got := cosine(tc.a, tc.b); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("cosine(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
		if back := parseVector(vectorText(tc.b)); fmt.Sprint(back) != fmt.Sprint(tc.b) {
			t.Errorf("%v came back as %v", tc.b, back)
		}
	}
}

func TestSessions(t *testing.T) {
	r := newRig(t, harbour)
	r.x.o.Sessions = func() (string, error) { return filepath.Join(r.dir, "..", "sessions"), nil }
	r.write(map[string]string{"../sessions/s1.jsonl": `{"type":"session","id":"s1"}
{"type":"message","message":{"role":"user","content":"Where is the\n tug?"}}
no JSON
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"At berth"},{"type":"toolCall"},{"type":"text","text":"five."}]}}
{"type":"message","message":{"role":"toolResult","content":"tug"}}
`, "../sessions/sessions.json": "{}"})
	report := r.sync(Change{Sessions: ptr(true)})
	if report.Indexed != 5 || fmt.Sprint(report.Sources) != "[memory sessions]" {
		t.Fatalf("report: %+v", report)
	}
	a := r.search(Query{Query: "tug"})
	if len(a.Results) != 1 || a.Results[0].Source != "sessions" || a.Results[0].Snippet != "User: Where is the tug?\nAssistant: At berth five." || a.Results[0].Citation != "sessions/s1.jsonl#L1-L2" {
		t.Errorf("answer: %+v", a)
	}
	if report := r.sync(Change{Sessions: ptr(false)}); report.Rebuilt == "" || report.Chunks != 4 {
		t.Errorf("without: %+v", report)
	}
	r.x.o.Sessions = nil
	if _, err := r.x.Sync(t.Context(), r.w, Change{Sessions: ptr(true)}); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("nowhere: %v", err)
	}
}

func TestPlanDefaults(t *testing.T) {
	p, err := Query{Query: "\u00a0x "}.plan(now())
	if err != nil {
		t.Fatal(err)
	}
	if p.text != "x" || p.candidates != 24 || p.params.Max != 6 || p.params.MinScore != .35 || p.params.Weights != rank.DefaultWeights || p.params.HalfLife != 0 || p.params.Lambda != .7 {
		t.Errorf("plan: %+v", p)
	}
	for _, tc := range []struct{ results, multiplier, want int }{{6, 20, 120}, {50, 20, 200}, {6, 99, 120}, {1 << 60, 4, 200}, {1, 1, 1}, {6, -2, 6}} {
		p, err := Query{Query: "x", MaxResults: tc.results, Multiplier: tc.multiplier}.plan(now())
		if err != nil || p.candidates != tc.want {
			t.Errorf("%+v: %d candidates, %v", tc, p.candidates, err)
		}
	}
	p, err = Query{Query: "x", Decay: true, HalfLifeDays: .4, MinScore: ptr(7.)}.plan(now())
	if err != nil || p.params.HalfLife != 1 || p.params.MinScore != 1 {
		t.Errorf("plan: %+v, %v", p, err)
	}
}
