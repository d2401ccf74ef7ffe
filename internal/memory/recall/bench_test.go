package recall

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// vocabulary makes words of two to four syllables, and draws them as language
// does: the n-th one about 1/n as often as the first, every second word a
// stopword.
type vocabulary struct {
	words []string
	zipf  *rand.Zipf
	rng   *rand.Rand
}

func newVocabulary() *vocabulary {
	v := &vocabulary{rng: rand.New(rand.NewPCG(1, 2))}
	syllables := strings.Fields("ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu bra cle dri flo gru sta tre pli sno")
	for range 20000 {
		var w strings.Builder
		for range 2 + v.rng.IntN(3) {
			w.WriteString(syllables[v.rng.IntN(len(syllables))])
		}
		v.words = append(v.words, w.String())
	}
	v.zipf = rand.NewZipf(v.rng, 1.1, 20, uint64(len(v.words)-1))
	return v
}

func (v *vocabulary) sentence(n int) string {
	stop := strings.Fields("the a of to and in is it that was for on with my i you we at this")
	words := make([]string, n)
	for i := range words {
		words[i] = v.words[v.zipf.Uint64()]
		if i%2 == 1 {
			words[i] = stop[v.rng.IntN(len(stop))]
		}
	}
	return strings.Join(words, " ") + "."
}

// turnsOf makes n turns of about 130 characters in sessions of 27.
func (v *vocabulary) turnsOf(n int) sliceSource {
	var l sliceSource
	for i := range n {
		typ, origin := memory.UserMessage, memory.OriginUser
		if i%2 == 1 {
			typ, origin = memory.AssistantOutput, memory.OriginAssistant
		}
		l = append(l, memory.Event{ID: fmt.Sprintf("evt_%d", i), Seq: int64(i + 1), Type: typ, Origin: origin, Text: v.sentence(20 + i%7),
			SessionID: fmt.Sprintf("s%d", i/27), Timestamp: today.AddDate(0, 0, -i%700)})
	}
	return l
}

// sliceSource is a log in memory.
type sliceSource []memory.Event

func (l sliceSource) Read(_ context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error) {
	rest := l[min(int(after.Seq), len(l)):]
	rest = rest[:min(limit, len(rest))]
	return rest, memory.Cursor{Seq: after.Seq + int64(len(rest))}, nil
}

// addItems projects n items, by changes in the log.
func (w *world) addItems(v *vocabulary, n int) {
	w.t.Helper()
	const group = 500
	for first := 1; first <= n; first += group {
		var items []memory.Item
		for i := first; i < first+group && i <= n; i++ {
			content := v.sentence(14)
			items = append(items, memory.Item{ID: fmt.Sprintf("mem_%d", i), Handle: fmt.Sprintf("MEM-%d", i), Kind: memory.KindFact, Title: content[:20], Content: content,
				Importance: 3 + i%3, Confidence: .8, Status: memory.Active, Trust: memory.TrustUser, CreatedAt: today, UpdatedAt: today, Version: 1, Evidence: []memory.Evidence{}})
		}
		w.append(memory.Event{Type: memory.MemoryChange, Origin: memory.OriginSystem,
			Metadata: map[string]any{memory.MetaChange: memory.Change{Action: "import", By: "benchmark", At: today, Items: items}}})
	}
	if _, err := w.items.List(context.Background(), working.ListRequest{}); err != nil {
		w.t.Fatal(err)
	}
}

// BenchmarkBlock measures a question from its words to the finished block, and
// beside it, in the same run, what the bare FTS5 query without stopwords over
// the same rows takes for its ten best.
func BenchmarkBlock(b *testing.B) {
	for _, passages := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("passages=%d", passages), func(b *testing.B) {
			w, v := newWorld(b), newVocabulary()
			w.settings.Threshold = -1
			if _, err := w.archive.Follow(context.Background(), v.turnsOf(passages)); err != nil {
				b.Fatal(err)
			}
			w.addItems(v, 10_000)
			bare, err := sqlite.Open(context.Background(), filepath.Join(w.dir, "archive.db"), sqlite.Options{ReadOnly: true})
			if err != nil {
				b.Fatal(err)
			}
			defer bare.Close()
			index := randomIndex(b, v.rng, passages, 10_000)
			asking := func(context.Context, memory.AgentID, string) (Nearness, error) {
				return indexed{index, randomVector(v.rng)}, nil
			}
			var ours, theirs, hybrid []time.Duration
			for b.Loop() {
				question := "What was " + v.sentence(10)
				start := time.Now()
				block := w.block("s", question)
				ours = append(ours, time.Since(start))
				if block.Degraded != "" || block.Text == "" {
					b.Fatalf("degraded %q, %d bytes", block.Degraded, len(block.Text))
				}
				theirs = append(theirs, bareQuery(b, bare.Reader(), question))
				w.service.opts.Meaning = asking
				start = time.Now()
				block = w.block("s", question)
				hybrid = append(hybrid, time.Since(start))
				if block.Degraded != "" || block.Trace.Mode != usedHybrid {
					b.Fatalf("degraded %q, mode %s: %s", block.Degraded, block.Trace.Mode, block.Trace.Lexical)
				}
				w.service.opts.Meaning = nil
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			slices.Sort(hybrid)
			b.ReportMetric(float64(hybrid[len(hybrid)/2].Microseconds())/1000, "p50-ms-vectors")
			b.ReportMetric(float64(hybrid[len(hybrid)*95/100].Microseconds())/1000, "p95-ms-vectors")
			b.ReportMetric(float64(index.Bytes())/(1<<20), "MiB-vectors")
			p50, p95 := ours[len(ours)/2], ours[len(ours)*95/100]
			b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(p95.Microseconds())/1000, "p95-ms")
			b.ReportMetric(float64(p50)/float64(theirs[len(theirs)/2]), "x-bare")
		})
	}
}

// vectorSize is that of the built-in model's vectors.
const vectorSize = 80

func randomVector(rng *rand.Rand) []float32 {
	v := make([]float32, vectorSize)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// randomIndex has a vector for each passage and item.
func randomIndex(b *testing.B, rng *rand.Rand, passages, items int) *scan.Index {
	x, err := scan.New(vectorSize)
	if err != nil {
		b.Fatal(err)
	}
	err = x.Load(func(put func(int64, []float32) error) error {
		for n := range passages {
			if err := put(2*int64(n+1), randomVector(rng)); err != nil {
				return err
			}
		}
		for n := range items {
			if err := put(2*int64(n+1)+1, randomVector(rng)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return x
}

// indexed is a Nearness over an index, as installations have it.
type indexed struct {
	index    *scan.Index
	question []float32
}

func refOf(id int64) Ref { return Ref{Item: id%2 == 1, N: id / 2} }

func hitsOf(list []scan.Hit) []Hit {
	out := make([]Hit, len(list))
	for i, h := range list {
		out[i] = Hit{refOf(h.ID), h.Score}
	}
	return out
}

func (x indexed) Model() string { return "random" }

func (x indexed) Nearest(k int, keep func(Ref) bool) ([]Hit, float64, float64, error) {
	found, err := x.index.Search(x.question, k, func(id int64) bool { return keep(refOf(id)) })
	return hitsOf(found.Hits), found.Mean, found.Std, err
}

func (x indexed) Cosines(refs []Ref) ([]Hit, error) {
	ids := make([]int64, len(refs))
	for i, r := range refs {
		ids[i] = 2 * r.N
		if r.Item {
			ids[i]++
		}
	}
	found, err := x.index.Scores(x.question, ids)
	return hitsOf(found), err
}

func bareQuery(b *testing.B, db *sql.DB, question string) time.Duration {
	b.Helper()
	match := text.ParseQuery(question, text.Options{}).MatchMain()
	start := time.Now()
	rows, err := db.Query("SELECT rowid, rank FROM m WHERE m MATCH ? ORDER BY rank LIMIT 10", match)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var rank float64
		if err := rows.Scan(&n, &rank); err != nil {
			b.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkFollow measures how fast turns become searchable.
func BenchmarkFollow(b *testing.B) {
	turns := newVocabulary().turnsOf(20_000)
	n := 0
	for b.Loop() {
		dir := b.TempDir()
		a, err := archive.Open(context.Background(), filepath.Join(dir, "archive.db"), archive.Options{Redact: plainRedactor{}, Now: time.Now})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := a.Follow(context.Background(), turns); err != nil {
			b.Fatal(err)
		}
		if err := a.Close(); err != nil {
			b.Fatal(err)
		}
		n += len(turns)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "turns/s")
}
