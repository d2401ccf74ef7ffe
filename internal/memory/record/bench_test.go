package record

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// benchSize is the number of records that the benchmarks work on. The figures
// of docs/RECORDS.md are of a million.
var benchSize = flag.Int("records", 20_000, "records in the store of a benchmark")

// benchRecords yields n envelopes: every second one tagged common, every tenth
// billing, every eleventh eleventh, every thousandth rare; the first expiring
// have a ttl that is over.
func benchRecords(n, expiring int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for i := range n {
			tags := []string{fmt.Sprintf("t%d", i%100)}
			if i%2 == 0 {
				tags = append(tags, "common")
			}
			if i%10 == 0 {
				tags = append(tags, "billing")
			}
			if i%11 == 0 {
				tags = append(tags, "eleventh")
			}
			if i%1000 == 0 {
				tags = append(tags, "rare")
			}
			list, err := json.Marshal(tags)
			if err != nil {
				yield(nil, err)
				return
			}
			ttl := "null"
			if i < expiring {
				ttl = "60"
			}
			raw := fmt.Appendf(nil, `{"namespace":"workflow","record_kind":"workflow.k%d","record_id":"run-%07d","created_at":"2026-01-01T00:00:00Z","ttl_seconds":%s,
				"payload":{"step":%d,"note":"what a workflow keeps between two of its runs"},"metadata":{"source":"bench","tags":%s}}`, i%7, i, ttl, i, list)
			if !yield(raw, nil) {
				return
			}
		}
	}
}

func benchStore(b *testing.B, n, expiring int) *Store {
	b.Helper()
	s := openTest(b, filepath.Join(b.TempDir(), FileName), Options{})
	if _, err := s.Import(context.Background(), benchRecords(n, expiring)); err != nil {
		b.Fatal(err)
	}
	return s
}

func openTest(t testing.TB, path string, opts Options) *Store {
	t.Helper()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s, err := Open(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reportPercentiles adds p50 and p95 of durations to a benchmark.
func reportPercentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-µs")
}

func BenchmarkGet(b *testing.B) {
	s, ctx := benchStore(b, *benchSize, 0), context.Background()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		n := i * 7919 % *benchSize
		start := time.Now()
		_, found, err := s.Get(ctx, Key{workflow, fmt.Sprintf("workflow.k%d", n%7), fmt.Sprintf("run-%07d", n)})
		took = append(took, time.Since(start))
		if err != nil || !found {
			b.Fatal(found, err)
		}
	}
	reportPercentiles(b, took)
}

// BenchmarkPutDurable takes turns with the least that a durable write can cost,
// one page written and fdatasync, so that a busy disk slows both alike.
func BenchmarkPutDurable(b *testing.B) {
	s, ctx := benchStore(b, *benchSize, 0), context.Background()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var raw, put []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := fdatasync(f); err != nil {
			b.Fatal(err)
		}
		raw = append(raw, time.Since(start))
		w := Write{Key: Key{workflow, "workflow.put", fmt.Sprintf("put-%07d", i)}, Value: json.RawMessage(`{"step":1,"note":"what a workflow keeps"}`)}
		start = time.Now()
		if _, _, err := s.Put(ctx, w); err != nil {
			b.Fatal(err)
		}
		put = append(put, time.Since(start))
	}
	slices.Sort(raw)
	slices.Sort(put)
	b.ReportMetric(float64(raw[len(raw)/2].Microseconds()), "fdatasync-p50-µs")
	b.ReportMetric(float64(put[len(put)/2].Microseconds()), "put-p50-µs")
	b.ReportMetric(float64(put[len(put)/2])/float64(raw[len(raw)/2]), "ratio")
}

// BenchmarkImport is the batched put: the time is of one record.
func BenchmarkImport(b *testing.B) {
	s := openTest(b, filepath.Join(b.TempDir(), FileName), Options{})
	b.ResetTimer()
	if _, err := s.Import(context.Background(), benchRecords(b.N, 0)); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkList(b *testing.B) {
	s, ctx := benchStore(b, *benchSize, 0), context.Background()
	limit, since := int64(100), "2026-01-01T00:00:00Z"
	for name, f := range map[string]Filters{
		"any-common":      {TagsAny: []string{"common"}},
		"any-three":       {TagsAny: []string{"common", "billing", "t7"}},
		"any-rare":        {TagsAny: []string{"rare"}},
		"all-common-rare": {TagsAll: []string{"common", "rare"}},
		"all-two":         {TagsAll: []string{"common", "billing"}},
		"all-apart":       {TagsAll: []string{"billing", "eleventh"}},
		"any-and-all":     {TagsAny: []string{"rare", "t10"}, TagsAll: []string{"billing"}},
		"tag-and-window":  {TagsAny: []string{"billing"}, CreatedAfter: &since},
		"no-tags":         {},
	} {
		b.Run(name, func(b *testing.B) {
			f.Limit = &limit
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, _, err := s.List(ctx, Query{Namespace: workflow, Filters: f}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			reportPercentiles(b, took)
		})
	}
}

// BenchmarkPrune removes half of the store while a reader gets records. It
// reports how long the reader waited, before and meanwhile: on a busy machine
// the first figure tells what the second is worth.
func BenchmarkPrune(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, ctx := benchStore(b, *benchSize, *benchSize/2), context.Background()
		waits := func(name string, while func()) {
			var stop atomic.Bool
			result := make(chan []time.Duration)
			go func() { result <- readUntil(b, s, &stop) }()
			while()
			stop.Store(true)
			took := <-result
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, name+"-worst-ms")
			b.ReportMetric(float64(took[len(took)*999/1000].Microseconds())/1000, name+"-p999-ms")
		}
		waits("idle", func() { time.Sleep(3 * time.Second) })
		b.StartTimer()
		waits("pruning", func() {
			if n, err := s.Prune(ctx, ""); err != nil || n != int64(*benchSize/2) {
				b.Fatal(n, err)
			}
		})
	}
}

// readUntil gets records that do not expire, and returns how long each took.
func readUntil(b *testing.B, s *Store, stop *atomic.Bool) []time.Duration {
	took := []time.Duration{0}
	for i := 0; !stop.Load(); i++ {
		n := *benchSize/2 + i*7919%(*benchSize/2)
		start := time.Now()
		if _, found, err := s.Get(context.Background(), Key{workflow, fmt.Sprintf("workflow.k%d", n%7), fmt.Sprintf("run-%07d", n)}); err != nil || !found {
			b.Error(found, err)
		}
		took = append(took, time.Since(start))
	}
	return took
}
