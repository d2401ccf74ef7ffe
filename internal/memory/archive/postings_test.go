package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// openKeeping opens an archive that keeps so many bytes of postings.
func openKeeping(t interface {
	Helper()
	Fatal(...any)
}, path string, bytes, mostPostings int) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, Options{Redact: plain{}, Now: time.Now, KeptBytes: bytes})
	if err != nil {
		t.Fatal(err)
	}
	s.mostPostings = mostPostings
	return s
}

// told is all that a search tells.
func told(h *Hits) string {
	var sb strings.Builder
	for _, list := range [][]Postings{h.Main, h.Prefix} {
		for _, p := range list {
			fmt.Fprintln(&sb, p.Term, p.Rows, p.Skipped, docs(p))
		}
	}
	fmt.Fprintln(&sb, h.Sessions, h.SessionWords, h.Spans, h.Speakers, h.passages)
	return sb.String()
}

// TestKeptPostingsAreThoseOfTheDatabase holds stores that keep all, some and no
// postings against each other while turns come in, are suppressed and restored, and
// erased, each by another of the stores.
func TestKeptPostingsAreThoseOfTheDatabase(t *testing.T) {
	vocabulary := strings.Fields("lisbon boat boats sailing sailed ana the a of and 2026 7 naïve ДОМ дом 京都 京 ひらがな Straße Σοφία ﬁne ꟲx xꟲ aẞb e\u0301te 한국어 ไทย שלום हिन्दी")
	rapid.Check(t, func(t *rapid.T) {
		ctx, dir := context.Background(), tempDir(t)
		path := filepath.Join(dir, "archive.db")
		most := rapid.SampledFrom([]int{3, 40, maxPostings}).Draw(t, "most postings")
		var stores []*Store
		for _, bytes := range []int{-1, 0, 900} {
			s := openKeeping(t, path, bytes, most)
			defer s.Close() //nolint:errcheck // the directory goes
			stores = append(stores, s)
		}
		var log events
		words := rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 12)
		pick := func() *Store { return stores[rapid.IntRange(0, len(stores)-1).Draw(t, "by")] }
		follow := func() {
			if _, err := pick().Follow(ctx, log); err != nil {
				t.Fatal(err)
			}
		}
		compare := func() {
			q := text.ParseQuery(strings.Join(words.Draw(t, "question"), " "), text.Options{})
			var first string
			for i, s := range stores {
				for range 2 { // the second time from what is kept
					h, err := s.Search(ctx, q.Terms, q.Prefixes)
					if err != nil {
						t.Fatal(err)
					}
					got := told(h)
					if first == "" {
						first = got
					}
					if diff := cmp.Diff(first, got); diff != "" {
						t.Fatalf("store %d tells something else (-database +kept):\n%s", i, diff)
					}
				}
				if most := []int{0, keptBytes, 900}[i]; s.kept.Bytes() > most {
					t.Fatalf("%d bytes are kept, of %d", s.kept.Bytes(), most)
				}
			}
		}
		say := func() {
			for range rapid.IntRange(1, 4).Draw(t, "turns") {
				meta := map[string]any{}
				if rapid.Bool().Draw(t, "captioned") {
					meta[memory.MetaCaption] = strings.Join(words.Draw(t, "caption"), " ")
				}
				log.say(rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session"), memory.UserMessage, strings.Join(words.Draw(t, "words"), " "), meta)
			}
			follow()
		}
		suppress := func() {
			id := rapid.SampledFrom(log).Draw(t, "event").ID
			if rapid.Bool().Draw(t, "restore") {
				log.change(memory.Change{Restore: []string{id}})
			} else {
				log.change(memory.Change{Suppress: []string{id}})
			}
			follow()
		}
		erase := func() {
			at, s := rapid.IntRange(0, len(log)-1).Draw(t, "event"), pick()
			parts, err := s.Passages(ctx, []string{log[at].ID})
			if err != nil {
				t.Fatal(err)
			}
			gone := len(parts[log[at].ID])
			target := &erasure.Target{Events: []erasure.Event{{Seq: log[at].Seq, ID: log[at].ID, Passages: gone}}}
			log[at] = log[at].Tombstone(gone)
			if _, err := s.Erase(ctx, log, target); err != nil {
				t.Fatal(err)
			}
		}
		say()
		for range rapid.IntRange(2, 6).Draw(t, "steps") {
			compare()
			rapid.SampledFrom([]func(){say, say, suppress, erase}).Draw(t, "step")()
			compare()
		}
	})
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "archive")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestKeptRunesAreKept asks the database for each letter that is believed to be kept
// as it is.
func TestKeptRunesAreKept(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "archive.db"))
	var letters []string
	for _, r := range keptRunes.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c++ {
			if unicode.IsLetter(c) {
				letters = append(letters, "x"+string(c)+"x")
			}
		}
	}
	var log events
	log.say("s", memory.UserMessage, "nothing", nil)
	follow(t, s, log)
	// Letters are put into the table as terms: package text leaves some of them in no
	// term, or cuts words at them.
	if err := s.db.Exec(context.Background(), "INSERT INTO m (rowid, terms) VALUES (1, ?)", strings.Join(letters, " ")); err != nil {
		t.Fatal(err)
	}
	h, err := s.Search(context.Background(), letters, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range h.Main {
		if p.Rows != 1 {
			t.Errorf("%q is not kept", letters[i])
		}
	}
	if len(letters) < 30_000 {
		t.Errorf("%d letters were tried", len(letters))
	}
}

// TestSearchWhileTurnsComeIn asks from several goroutines while the archive grows.
// Each answer must be that of one moment: whoever says a word says both.
func TestSearchWhileTurnsComeIn(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "archive.db")
	s, other := open(t, path), open(t, path)
	var log events
	for n := range 300 {
		log.say(fmt.Sprint("s", n%3), memory.UserMessage, fmt.Sprintf("apples and pears number%d", n), nil)
	}
	var readers sync.WaitGroup
	grown := make(chan struct{})
	for g := range 4 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for last := 0; ; {
				h, err := s.Search(ctx, []string{"appl", "pear", fmt.Sprint("number", random.IntN(300))}, []string{"pear"})
				if err != nil {
					t.Error(err)
					return
				}
				if h.Main[0].Rows != h.Main[1].Rows || h.Main[1].Rows != h.Prefix[0].Rows || h.Main[0].Rows < last || h.Main[0].Rows > h.Len() {
					t.Errorf("%d apples, %d pears, %d prefixes among %d passages; there were %d", h.Main[0].Rows, h.Main[1].Rows, h.Prefix[0].Rows, h.Len(), last)
					return
				}
				last = h.Main[0].Rows
				select {
				case <-grown:
					if last == len(log) {
						return
					}
				default:
				}
			}
		})
	}
	for n := 1; n <= len(log); n += 1 + n%7 {
		by := s
		if n%2 == 0 {
			by = other
		}
		follow(t, by, log[:n])
	}
	follow(t, other, log)
	close(grown)
	readers.Wait()
}

// BenchmarkSearch measures one search of three terms among 50,000 passages, with the
// postings kept and without.
func BenchmarkSearch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "archive.db")
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 9_999)
	var log events
	for n := range 50_000 {
		words := make([]string, 14)
		for i := range words {
			words[i] = fmt.Sprintf("w%dx", zipf.Uint64())
		}
		log.say(fmt.Sprint("s", n/40), memory.UserMessage, strings.Join(words, " "), nil)
	}
	fill := open(b, path)
	if _, err := fill.Follow(context.Background(), log); err != nil {
		b.Fatal(err)
	}
	for name, bytes := range map[string]int{"kept": 0, "read": -1} {
		b.Run(name, func(b *testing.B) {
			s := openKeeping(b, path, bytes, maxPostings)
			defer s.Close() //nolint:errcheck // the benchmark is over
			for b.Loop() {
				terms := []string{fmt.Sprintf("w%dx", zipf.Uint64()), fmt.Sprintf("w%dx", zipf.Uint64()), fmt.Sprintf("w%dx", zipf.Uint64())}
				if _, err := s.Search(context.Background(), terms, terms[:1]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.kept.Bytes())/1024, "KiB-kept")
		})
	}
}
