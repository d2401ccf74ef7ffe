package lsa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// corpus makes passages of texts whose words are terms; ten of them are a session.
func corpus(texts ...string) iter.Seq2[Passage, error] {
	return func(yield func(Passage, error) bool) {
		for i, t := range texts {
			if !yield(Passage{Session: uint32(i / 10), Terms: strings.Fields(t)}, nil) {
				return
			}
		}
	}
}

// topics returns n texts, each session about one of some topics: five words of the
// twenty of its topic, and two that are of none.
func topics(n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]string, n)
	for i := range out {
		topic := i / 10 % 8
		var words []string
		for range 5 {
			words = append(words, fmt.Sprintf("topic%dword%d", topic, random.IntN(20)))
		}
		for range 2 {
			words = append(words, fmt.Sprintf("any%d", random.IntN(50)))
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

func train(t testing.TB, texts ...string) *Model {
	t.Helper()
	m, err := Train(t.Context(), corpus(texts...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// Two words that never stand in one passage lie near each other where they stand
// among the same words.
func TestWordsOfATopicLieTogether(t *testing.T) {
	m := train(t, topics(800)...)
	same, other, n := 0.0, 0.0, 0.0
	for i := range 20 {
		for j := range i {
			a, b := m.Vector([]string{fmt.Sprintf("topic1word%d", i)}), m.Vector([]string{fmt.Sprintf("topic1word%d", j)})
			c := m.Vector([]string{fmt.Sprintf("topic2word%d", j)})
			same, other, n = same+cosine(a, b), other+cosine(a, c), n+1
		}
	}
	if same/n < .3 || other/n > .1 {
		t.Errorf("mean cosine of words of one topic %.2f, of two topics %.2f", same/n, other/n)
	}
}

// What was never said in a corpus is folded in by the words that were.
func TestFoldIn(t *testing.T) {
	m := train(t, topics(800)...)
	v := m.Vector([]string{"topic3word1", "new", "topic3word2"})
	if got := cosine(v, m.Vector([]string{"topic3word1", "topic3word2"})); got < .9999 {
		t.Errorf("an unknown word turned the vector: cosine %v", got)
	}
	if v := m.Vector([]string{"new", "words"}); v != nil {
		t.Errorf("a text without a known word has the vector %v", v)
	}
	if v := m.Vector(nil); v != nil {
		t.Errorf("an empty text has the vector %v", v)
	}
}

func TestEmbed(t *testing.T) {
	var texts []string
	for i := range 120 {
		texts = append(texts, fmt.Sprintf("We were walking the dog %d times along the river, 茶が好き", i%7), "The oven bakes bread at noon")
	}
	m, err := Train(t.Context(), func(yield func(Passage, error) bool) {
		for i, s := range texts {
			if !yield(Passage{Session: uint32(i), Terms: text.Content(s)}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var _ embed.Embedder = m
	list, err := m.Embed(t.Context(), []string{"Who walked with a dog?", "rivers", "what is of the", "お茶が好きです", "bread"})
	if err != nil || len(list) != 5 {
		t.Fatalf("Embed() = %d vectors, %v", len(list), err)
	}
	if list[2] != nil {
		t.Error("stopwords alone have a vector")
	}
	if c := cosine(list[0], list[1]); c < .9 {
		t.Errorf("a walk and the river have the cosine %v", c)
	}
	if c := cosine(list[0], list[3]); c < .9 {
		t.Errorf("the same passages in another script: cosine %v", c)
	}
	if c := cosine(list[0], list[4]); c > .1 {
		t.Errorf("a walk and bread have the cosine %v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("Embed() after its context ended = %v", err)
	}
}

func TestSmallAndPoorCorpora(t *testing.T) {
	repeat := func(n int, text string) []string { return slices.Repeat([]string{text}, n) }
	for name, tc := range map[string]struct {
		texts []string
		model bool
	}{
		"none":                   {nil, false},
		"one":                    {topics(1), false},
		"three":                  {topics(3), false},
		"thirty":                 {topics(30), false},
		"just enough":            {topics(least), true},
		"all the same":           {repeat(200, "tea at five"), false},
		"no terms":               {repeat(200, ""), false},
		"one term":               {repeat(200, "tea"), false},
		"a term now and then":    {append(repeat(200, ""), "tea milk", "tea sugar"), false},
		"two texts":              {append(repeat(100, "tea at five"), repeat(100, "coffee at ten")...), true},
		"terms of other scripts": {append(repeat(60, "茶が が好 好き"), append(repeat(60, "чай люб"), repeat(60, "אוהב תה")...)...), true},
		"a term too long":        {repeat(200, strings.Repeat("x", 300)), false},
		"each its own words": {func() (out []string) {
			for i := range 200 {
				out = append(out, fmt.Sprintf("a%d b%d", i, i))
			}
			return out
		}(), true},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Train(t.Context(), corpus(tc.texts...))
			if !tc.model {
				if !errors.Is(err, ErrTooSmall) || m != nil {
					t.Fatalf("Train() = %v, %v, want no model", m, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range tc.texts {
				if v := m.Vector(strings.Fields(text)); v != nil || text != "" {
					checkUnit(t, m, v)
				}
			}
		})
	}
}

func checkUnit(t interface{ Fatalf(string, ...any) }, m *Model, v []float32) {
	if len(v) != m.Dimensions() {
		t.Fatalf("a vector has %d numbers, want %d", len(v), m.Dimensions())
	}
	if length := math.Sqrt(cosine(v, v)); !(math.Abs(length-1) < 1e-5) {
		t.Fatalf("a vector has the length %v", length)
	}
}

// Whatever a corpus is, there is a model with unit vectors or there is none, its
// bytes are the same each time, whatever the number of processors, and they are read
// back as they were.
func TestAnyCorpus(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`([abc] ){0,3}([d-p] ){0,2}`), 0, 250).Draw(t, "texts")
		runtime.GOMAXPROCS(2)
		m, err := Train(context.Background(), corpus(texts...))
		if errors.Is(err, ErrTooSmall) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		first, _ := m.AppendBinary(nil)
		runtime.GOMAXPROCS(1)
		again, err := Train(context.Background(), corpus(texts...))
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := again.AppendBinary(nil); !bytes.Equal(first, second) {
			t.Fatal("the same corpus gave another model")
		}
		read, err := Read(first)
		if err != nil {
			t.Fatal(err)
		}
		if back, _ := read.AppendBinary([]byte("before")); string(back) != "before"+string(first) {
			t.Fatal("a model that was read is written otherwise")
		}
		if read.ModelID() != m.ModelID() || read.Passages() != len(texts) {
			t.Fatalf("read %s of %d passages, want %s of %d", read.ModelID(), read.Passages(), m.ModelID(), len(texts))
		}
		for _, text := range texts {
			v := m.Vector(strings.Fields(text))
			if v != nil {
				checkUnit(t, m, v)
			}
			if !slices.Equal(v, read.Vector(strings.Fields(text))) {
				t.Fatal("a model that was read gives another vector")
			}
		}
	})
}

func TestAnotherCorpusIsAnotherModel(t *testing.T) {
	texts := topics(200)
	ids := map[string]string{}
	swapped := slices.Clone(texts)
	swapped[3], swapped[50] = swapped[50], swapped[3]
	joined := slices.Clone(texts)
	joined[7] = strings.Replace(joined[7], " ", "", 1)
	for name, list := range map[string][]string{"as it is": texts, "another order": swapped, "one less": texts[:199], "words joined": joined} {
		id := train(t, list...).ModelID()
		if other, taken := ids[id]; taken {
			t.Errorf("%s has the id of %s: %s", name, other, id)
		}
		ids[id] = name
	}
}

func TestTrainStops(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := Train(t.Context(), func(yield func(Passage, error) bool) {
		if yield(Passage{Terms: []string{"tea"}}, nil) {
			yield(Passage{}, broken)
		}
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "passage 2") {
		t.Errorf("Train() of a corpus that cannot be read = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Train(ctx, func(yield func(Passage, error) bool) {
		corpus(topics(300)...)(yield)
		cancel() // all is read, nothing is computed yet
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Train() after its context ended = %v", err)
	}
}

func TestDue(t *testing.T) {
	for _, tc := range []struct {
		trained, now int
		want         bool
	}{
		{0, 0, false}, {0, least - 1, false}, {0, least, true},
		{100, 119, false}, {100, 120, true}, {1000, 1199, false}, {1000, 1200, true},
		{1000, 801, false}, {1000, 800, true}, {1000, 50, false},
	} {
		if got := Due(tc.trained, tc.now); got != tc.want {
			t.Errorf("Due(%d, %d) = %v", tc.trained, tc.now, got)
		}
	}
}

// The randomised decomposition finds what the exact one does, where it asks for all
// of it.
func TestRightVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols")
		a, dense := sparse{cols: cols, start: []int{0}}, mat.NewDense(rows, cols, nil)
		for r := range rows {
			for c := range cols {
				if v := rapid.IntRange(-3, 3).Draw(t, "value"); v != 0 {
					a.col, a.at = append(a.col, uint32(c)), append(a.at, float32(v))
					dense.Set(r, c, float64(v))
				}
			}
			a.start = append(a.start, len(a.col))
		}
		var exact mat.SVD
		if !exact.Factorize(dense, mat.SVDThin) {
			t.Fatal("the exact decomposition failed")
		}
		want := exact.Values(nil)
		vectors, values, err := rightVectors(context.Background(), newProduct(&a), cols)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			switch {
			case i < len(values) && math.Abs(values[i]-w) > 1e-6*want[0]:
				t.Fatalf("singular value %d is %v, want %v", i, values[i], w)
			case i >= len(values) && w > 1e-5*want[0]:
				t.Fatalf("singular value %d is missing: %v", i, w)
			}
		}
		if vectors == nil {
			return
		}
		var image mat.Dense // of the right vectors: orthogonal, as long as their values
		image.Mul(dense, vectors)
		for i := range values {
			for j := range values {
				want := 0.0
				if i == j {
					want = values[i] * values[i]
				}
				if got := mat.Dot(image.ColView(i), image.ColView(j)); math.Abs(got-want) > 1e-6*values[0]*values[0] {
					t.Fatalf("columns %d and %d have the product %v, want %v", i, j, got, want)
				}
			}
		}
	})
}

func TestReadDamaged(t *testing.T) {
	good, err := train(t, topics(120)...).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := Read(good[:n]); !errors.Is(err, memory.ErrCorrupt) {
			t.Fatalf("Read() of the first %d of %d bytes = %v", n, len(good), err)
		}
	}
	for n := 0; n < len(good); n += 97 {
		bad := bytes.Clone(good)
		bad[n] ^= 4
		if _, err := Read(bad); !errors.Is(err, memory.ErrCorrupt) && !errors.Is(err, memory.ErrConflict) {
			t.Fatalf("Read() with byte %d changed = %v", n, err)
		}
	}
	newer := bytes.Clone(good)
	newer[len(magic)]++
	if _, err := Read(newer); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("Read() of another version = %v", err)
	}
}

func FuzzRead(f *testing.F) {
	good, err := train(f, topics(110)...).AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:len(good)-4])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = sealed(b)
		m, err := Read(b)
		if err != nil {
			return
		}
		back, err := m.AppendBinary(nil)
		if err != nil || !bytes.Equal(back, b) {
			t.Fatalf("what was read is written otherwise: %v", err)
		}
		for name := range m.terms {
			if v := m.Vector([]string{name, name}); v != nil {
				checkUnit(t, m, v)
			}
		}
	})
}

// sealed appends the checksum, which no fuzzer guesses.
func sealed(b []byte) []byte {
	return appendSum(slices.Clone(b), 0)
}

// Conversations of 20 passages with 25 terms each, as frequent as words are.
func BenchmarkTrain(b *testing.B) {
	for _, passages := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(passages), func(b *testing.B) {
			random := rand.New(rand.NewPCG(3, 4))
			frequent := rand.NewZipf(random, 1.15, 8, 59_999)
			words := make([]string, 60_000)
			for i := range words {
				words[i] = fmt.Sprintf("word%d", i)
			}
			list := make([]Passage, passages)
			for i := range list {
				list[i].Session = uint32(i / 20)
				for range 25 {
					list[i].Terms = append(list[i].Terms, words[frequent.Uint64()])
				}
			}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var m *Model
			for b.Loop() {
				var err error
				m, err = Train(b.Context(), func(yield func(Passage, error) bool) {
					for _, p := range list {
						if !yield(p, nil) {
							return
						}
					}
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			stored, err := m.AppendBinary(nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(after.HeapSys-before.HeapInuse)/(1<<20), "MiB-heap")
			b.ReportMetric(float64(len(m.terms)), "terms")
			b.ReportMetric(float64(len(stored))/(1<<20), "MiB-stored")
		})
	}
}

func BenchmarkVector(b *testing.B) {
	m := train(b, topics(2000)...)
	terms := strings.Fields(topics(1)[0])
	for b.Loop() {
		m.Vector(terms)
	}
}
