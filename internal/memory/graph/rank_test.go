package graph

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"
)

func (f *fixture) ranked(q RankedQuery) []string {
	f.Helper()
	found, err := f.Ranked(context.Background(), q)
	if err != nil {
		f.Fatal(err)
	}
	ids := []string{}
	for i, r := range found {
		ids = append(ids, r.Node.ID)
		if r.Score <= 0 || i > 0 && r.Score > found[i-1].Score {
			f.Errorf("the scores of %q are not falling from above 0: %v", q.Words, found)
		}
	}
	return ids
}

func TestRanked(t *testing.T) {
	f := newTest(t)
	f.add(`{"id":"glaze","node_type":"semantic","agent_id":"a","label":"Celadon glaze","created_at":1,"payload":{"fact":"Celadon runs when it is thick."},"tags":["kiln"]}`,
		`{"id":"long","node_type":"episodic","agent_id":"b","label":"A day","created_at":2,"payload":{"text":"`+strings.Repeat("Many other things happened. ", 40)+`The celadon was ready."}}`,
		`{"id":"jp","node_type":"semantic","agent_id":"a","label":"焼き物","created_at":3,"payload":{"fact":"陶芸は楽しい"}}`,
		`{"id":"escaped","node_type":"semantic","agent_id":"a","label":"x","created_at":4,"payload":{"city":"\u041c\u043e\u0441\u043a\u0432\u0430","n":4711}}`,
		`{"id":"cafe","node_type":"persona","agent_id":"a","label":"Café Müller","created_at":5}`,
		`{"id":"old","node_type":"semantic","agent_id":"a","label":"twin","created_at":6}`, `{"id":"new","node_type":"semantic","agent_id":"a","label":"twin","created_at":7}`)
	for name, tc := range map[string]struct {
		q    RankedQuery
		want []string
	}{
		"label before text":       {RankedQuery{Words: "celadon"}, []string{"glaze", "long"}},
		"stem":                    {RankedQuery{Words: "running"}, []string{"glaze"}},
		"tag":                     {RankedQuery{Words: "KILN"}, []string{"glaze"}},
		"start of a word":         {RankedQuery{Words: "glazing"}, []string{"glaze"}},
		"type":                    {RankedQuery{Words: "celadon", Type: Episodic}, []string{"long"}},
		"agent":                   {RankedQuery{Words: "celadon", AgentID: "b"}, []string{"long"}},
		"unknown type":            {RankedQuery{Words: "celadon", Type: "x"}, []string{}},
		"limit":                   {RankedQuery{Words: "celadon", Limit: 1}, []string{"glaze"}},
		"Japanese":                {RankedQuery{Words: "陶芸"}, []string{"jp"}},
		"one character":           {RankedQuery{Words: "芸"}, []string{"jp"}},
		"Cyrillic, was escaped":   {RankedQuery{Words: "москва"}, []string{"escaped"}},
		"accents":                 {RankedQuery{Words: "cafe muller"}, []string{"cafe"}},
		"number":                  {RankedQuery{Words: "4711"}, []string{"escaped"}},
		"equals: the newest":      {RankedQuery{Words: "twin"}, []string{"new", "old"}},
		"names of members":        {RankedQuery{Words: "fact city"}, []string{}},
		"no words":                {RankedQuery{Words: " ?! "}, []string{}},
		"only stopwords":          {RankedQuery{Words: "when it is"}, []string{"glaze", "long"}},
		"nothing":                 {RankedQuery{Words: "submarine"}, []string{}},
		"a secret of the index":   {RankedQuery{Words: "\x00cela"}, []string{"glaze", "long"}},
		"a query of 10,000 words": {RankedQuery{Words: "celadon " + strings.Repeat("zebra quagga ", 5000)}, []string{"glaze", "long"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.q.Limit == 0 {
				tc.q.Limit = 10
			}
			if got := f.ranked(tc.q); !slices.Equal(got, tc.want) {
				t.Errorf("%+v finds %q, want %q", tc.q, got, tc.want)
			}
		})
	}
}

func TestRankedFollowsTheGraph(t *testing.T) {
	f := newTest(t)
	f.add(row("red"), `{"id":"short","node_type":"semantic","agent_id":"a","label":"red too","created_at":1772323200,"ttl":60}`)
	q := RankedQuery{Words: "red", Limit: 5}
	if got := f.ranked(q); len(got) != 2 {
		t.Fatalf("found %q", got)
	}
	err := f.Update(context.Background(), Write{DryRun: true}, func(tx *Tx) error { return addRow(tx, strings.Replace(row("x"), `"label":"x"`, `"label":"red"`, 1)) })
	if err != nil {
		t.Fatal(err)
	}
	f.add(strings.Replace(row("red"), `"label":"red"`, `"label":"blue"`, 1), row("green"))
	if got := f.ranked(q); !slices.Equal(got, []string{"short"}) {
		t.Errorf("after a change: %q", got)
	}
	f.now = f.now.Add(time.Hour)
	if got := f.ranked(q); len(got) != 0 {
		t.Errorf("after its end: %q", got)
	}
	if got := f.ranked(RankedQuery{Words: "blue green", Limit: 5}); len(got) != 2 {
		t.Errorf("the others: %q", got)
	}
}

// However a graph came about, its index answers as one made at once.
func TestRankedIndexIsThatOfTheGraph(t *testing.T) {
	words := []string{"clay", "kiln", "glaze", "bowl", "陶芸", "fire"}
	rapid.Check(t, func(rt *rapid.T) {
		st, followed := newState(), ranks{}
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 12).Draw(rt, "id"))
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				st.removeNode(id)
			case 1:
				st = st.compact()
			default:
				st.putNode(&Node{ID: id, Type: Semantic, CreatedAt: float64(i), Label: strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(rt, "label"), " ")})
			}
			if rapid.Bool().Draw(rt, "look") {
				followed.follow(st)
			}
		}
		followed.follow(st)
		if followed.dead > 1024+len(followed.docs)/2 {
			rt.Fatalf("%d of %d documents are dead", followed.dead, len(followed.docs))
		}
		var fresh ranks
		fresh.follow(st)
		for _, w := range words {
			q := RankedQuery{Words: w, Limit: 20}
			a, b := idsOf(followed.search(q)), idsOf(fresh.search(q))
			slices.Sort(a) // dead documents shift the scores a little, not what is found
			slices.Sort(b)
			if !slices.Equal(a, b) {
				rt.Fatalf("%s finds %q, want %q", w, a, b)
			}
		}
	})
}

func idsOf(found []Ranked) []string {
	var ids []string
	for _, r := range found {
		ids = append(ids, r.Node.ID)
	}
	return ids
}

// Sizes of the graph that the benchmarks explore.
const (
	benchNodes = 100_000
	benchEdges = 300_000
)

// benchStore has a graph whose words are as frequent as those of a language
// (Zipf) and whose edges prefer few nodes, as those of memories do.
func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), FileName), Options{Now: time.Now, NewID: func() string { return "" }, Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	random := rand.New(rand.NewPCG(3, 4))
	vocabulary := rand.NewZipf(random, 1.1, 4, 29_999)
	sentence := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = benchWord(vocabulary.Uint64())
		}
		return strings.Join(words, " ")
	}
	kinds := []string{Episodic, Episodic, Semantic, Procedural, Persona, Patch}
	for i := range benchNodes {
		s.state.putNode(&Node{ID: fmt.Sprint("n", i), Type: kinds[random.IntN(len(kinds))], AgentID: "a", Label: sentence(5), CreatedAt: float64(i),
			Payload: []byte(`{"fact":"` + sentence(14) + `"}`), Tags: []string{benchWord(uint64(random.IntN(200)))}})
	}
	hubs := rand.NewZipf(random, 1.2, 60, benchNodes-1)
	for i := range benchEdges {
		s.state.putEdge(&Edge{ID: fmt.Sprint("e", i), Src: fmt.Sprint("n", random.IntN(benchNodes)), Dst: fmt.Sprint("n", hubs.Uint64()), Type: EdgeTypes[random.IntN(len(EdgeTypes))], Confidence: 1})
	}
	return s
}

// benchWord spells a number in syllables, so that words differ early, as those
// of languages do.
func benchWord(n uint64) string {
	syllables := []string{"ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pla", "gre", "stri", "fo", "hu", "wa", "den", "cor", "min", "pel"}
	s := ""
	for {
		s += syllables[n%uint64(len(syllables))]
		if n /= uint64(len(syllables)); n == 0 {
			return s + "n"
		}
	}
}

// BenchmarkRanked asks for a common, a rarer and a rare word among 100,000 nodes,
// with the index there, after a change, and with the index to be made.
func BenchmarkRanked(b *testing.B) {
	s := benchStore(b)
	q := RankedQuery{Words: strings.Join([]string{benchWord(3), benchWord(900), benchWord(9000)}, " "), Limit: 10}
	search := func(b *testing.B) {
		found, err := s.Ranked(b.Context(), q)
		if err != nil || len(found) != q.Limit {
			b.Fatalf("found %d, %v", len(found), err)
		}
	}
	search(b)
	b.Run("nodes=100k", func(b *testing.B) {
		for b.Loop() {
			search(b)
		}
	})
	b.Run("nodes=100k/after_a_change", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s.state.putNode(&Node{ID: fmt.Sprint("n", i%benchNodes), Type: Semantic, AgentID: "a", Label: "changed"})
			search(b)
		}
	})
	b.Run("nodes=100k/first", func(b *testing.B) {
		for b.Loop() {
			s.ranks.state = nil
			search(b)
		}
	})
}
