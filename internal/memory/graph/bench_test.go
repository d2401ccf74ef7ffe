package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// largeGraph writes the graph that benchmarks explore and returns its path.
func largeGraph(b *testing.B) string {
	b.Helper()
	s := benchStore(b)
	if err := s.locked(b.Context(), true, s.rewrite); err != nil {
		b.Fatal(err)
	}
	return s.Path()
}

func benchOpen(b *testing.B, path string) *Store {
	b.Helper()
	n := 0
	s, err := Open(context.Background(), path, Options{Now: time.Now, Log: zerolog.Nop(), NewID: func() string {
		n++
		return fmt.Sprintf("%032x", n)
	}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// heapMiB is what is in use after a collection.
func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func BenchmarkLoad(b *testing.B) {
	path := largeGraph(b)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	before := heapMiB()
	var s *Store
	for b.Loop() {
		if s != nil {
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
		s = benchOpen(b, path)
	}
	b.ReportMetric(heapMiB()-before, "MiB")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB-file")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDurableAdd adds nodes and edges in turn to the large graph, and
// beside each writes as many bytes to a file of its own and syncs them, so that
// both see the same disk.
func BenchmarkDurableAdd(b *testing.B) {
	s := benchOpen(b, largeGraph(b))
	raw, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	var adds, raws []time.Duration
	text := make([]byte, 400)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		err := s.Update(context.Background(), Write{}, func(tx *Tx) error {
			if i%2 == 1 {
				_, err := tx.AddEdge(&Edge{ID: tx.NewID("bench"), Src: fmt.Sprint("n", i), Dst: "n0", Type: References, Confidence: 1})
				return err
			}
			_, err := tx.AddNode(&Node{ID: tx.NewID("bench"), Type: Semantic, AgentID: "default", Label: "one more fact", Payload: json.RawMessage(`{"fact":"the harbour is closed in winter","turn":7}`), CreatedAt: tx.Now()})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		adds = append(adds, time.Since(start))
		start = time.Now()
		if _, err := raw.Write(text); err != nil {
			b.Fatal(err)
		}
		if err := raw.Sync(); err != nil {
			b.Fatal(err)
		}
		raws = append(raws, time.Since(start))
	}
	slices.Sort(adds)
	slices.Sort(raws)
	b.ReportMetric(float64(adds[len(adds)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(adds[len(adds)*95/100].Microseconds()), "p95-us")
	b.ReportMetric(float64(raws[len(raws)/2].Microseconds()), "raw-p50-us")
	b.ReportMetric(float64(adds[len(adds)/2])/float64(raws[len(raws)/2]), "x-raw")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkFold(b *testing.B) {
	s := benchOpen(b, largeGraph(b))
	for b.Loop() {
		err := s.Update(context.Background(), Write{}, func(tx *Tx) error { return addRow(tx, row("one")) })
		if err == nil {
			err = s.Fold(context.Background())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
