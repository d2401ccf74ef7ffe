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
			var ours, theirs []time.Duration
			for b.Loop() {
				question := "What was " + v.sentence(10)
				start := time.Now()
				block := w.block("s", question)
				ours = append(ours, time.Since(start))
				if block.Degraded != "" || block.Text == "" {
					b.Fatalf("degraded %q, %d bytes", block.Degraded, len(block.Text))
				}
				theirs = append(theirs, bareQuery(b, bare.Reader(), question))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			p50, p95 := ours[len(ours)/2], ours[len(ours)*95/100]
			b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(p95.Microseconds())/1000, "p95-ms")
			b.ReportMetric(float64(p50)/float64(theirs[len(theirs)/2]), "x-bare")
		})
	}
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
