package working

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/redact"
)

// benchStore returns a store on a real log that holds n items, each a sentence
// of 14 words out of 4000 of which some are common and most are rare.
func benchStore(b *testing.B, n int) (*Store, func() string) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 3999)
	sentence := func() string {
		words := make([]string, 14)
		for i := range words {
			words[i] = fmt.Sprintf("w%dx", zipf.Uint64())
		}
		return strings.Join(words, " ")
	}
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	serial := 0
	id := func() string { serial++; return fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", serial) }
	log, err := events.Open(context.Background(), filepath.Join(dir, "events"), events.Options{Now: time.Now, NewID: id, Redact: r, Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(context.Background(), dir, Options{Agent: "a", Log: log, Redact: r, Now: time.Now, NewID: id})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		if err := log.Close(); err != nil {
			b.Error(err)
		}
	})
	for made := 0; made < n; {
		err := s.commit(context.Background(), func(_ context.Context, p *plan) (*memory.Change, error) {
			for range min(1000, n-made) {
				made++
				p.add(memory.Item{ID: "mem_" + id(), Kind: "fact", Title: fmt.Sprint("item ", made), Content: sentence(), Importance: 3, Confidence: .9,
					Status: memory.Active, Trust: memory.TrustUser})
			}
			return &memory.Change{Action: "import", By: "import"}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s, sentence
}

// BenchmarkStoreWrite is one memory.write, durable in the log and the database,
// the search for duplicates included.
func BenchmarkStoreWrite(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("items=", n), func(b *testing.B) {
			s, sentence := benchStore(b, n)
			for b.Loop() {
				if _, err := s.write(context.Background(), WriteRequest{Title: "one more", Content: sentence()}, "write", "", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMatch asks for the items that share words with a question of eight
// words.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("items=", n), func(b *testing.B) {
			s, sentence := benchStore(b, n)
			for b.Loop() {
				q := text.ParseQuery(strings.Join(strings.Fields(sentence())[:8], " "), text.Options{})
				if _, err := s.Match(context.Background(), q, MatchOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStoreMaintain is one item marked, archived or merged into another, of
// changes of many: the look at it, the event and the row.
func BenchmarkStoreMaintain(b *testing.B) {
	for _, action := range []string{ActionVerify, ActionArchive, ActionMerge} {
		b.Run(action, func(b *testing.B) {
			const items = 20_000
			s, _ := benchStore(b, items)
			lease, err := s.Acquire(context.Background(), "maintenance", "b", time.Minute)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := s.Release(context.Background(), lease); err != nil {
					b.Error(err)
				}
			}()
			var all []Version
			err = s.Survey(context.Background(), func(it memory.Item) error {
				all = append(all, Version{it.ID, it.Version})
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for done := 0; done < b.N; {
				var steps []Step
				for touched := 0; touched < benchBatch && done+touched < b.N; {
					at := (done + touched) % items
					step := Step{Action: action, Item: all[at], Reason: "why", Verify: []string{memory.MarkOld}}
					all[at].Version++
					touched++
					if action == ActionMerge && at+1 < items {
						step.Merged = []Version{all[at+1]}
						all[at+1].Version++
						touched++
					}
					steps = append(steps, step)
					if action == ActionMerge && done+touched >= items {
						b.Skip("no items left to merge")
					}
				}
				taken, err := s.Maintain(context.Background(), lease, steps)
				if err != nil {
					b.Fatal(err)
				}
				for i, step := range steps {
					if !taken[i] {
						b.Fatalf("%+v was left out", step)
					}
					done += 1 + len(step.Merged)
				}
			}
		})
	}
}

const benchBatch = 200 // items of one change

// BenchmarkStoreApply is a checkpoint of 500 items that are much alike, as they come
// of a conversation with one subject, onto as many thousand of their kind.
func BenchmarkStoreApply(b *testing.B) {
	for _, n := range []int{0, 2_000, 20_000} {
		b.Run(fmt.Sprint("items=", n), func(b *testing.B) {
			ctx := context.Background()
			s, _ := benchStore(b, 0)
			random := rand.New(rand.NewPCG(3, 4))
			seq := int64(0)
			apply := func(count int) {
				lease, err := s.Acquire(ctx, "checkpoint", "b", time.Minute)
				if err != nil {
					b.Fatal(err)
				}
				batch := Batch{Lease: lease, Record: memory.Checkpoint{Range: memory.Range{First: seq + 1, Last: seq + int64(count)}, Events: count, Mode: ModeModel}}
				for range count {
					seq++
					batch.Entries = append(batch.Entries, Entry{At: time.Now(), Item: memory.Item{ID: fmt.Sprintf("mem_%026d", seq), Kind: "fact", Title: fmt.Sprint("What is kept ", seq),
						Content: fmt.Sprintf("I keep the %x in the %x.", random.Uint32(), random.Uint32()), Importance: 3, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser,
						Evidence: []memory.Evidence{{EventID: fmt.Sprintf("evt_%026d", seq), Seq: seq, Quote: "I keep"}}}})
				}
				batch.Record.Cursor.Seq = seq
				if _, err := s.Apply(ctx, batch); err != nil {
					b.Fatal(err)
				}
				if err := s.Release(ctx, lease); err != nil {
					b.Fatal(err)
				}
			}
			for made := 0; made < n; made += 500 {
				apply(500)
			}
			for b.Loop() {
				apply(500)
			}
		})
	}
}
