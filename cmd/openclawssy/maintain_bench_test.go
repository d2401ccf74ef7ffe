package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// BenchmarkMaintenance measures the process of memory maintenance over items of which
// two in a hundred say the same as another, one is stale and one is to be verified: how
// long it takes, how much processor time and how much memory, and what recall of the
// same memory takes meanwhile in another process, this one, against what it takes
// alone. The graph and the messages have followed the items before, as they would have.
func BenchmarkMaintenance(b *testing.B) {
	bin := program(b)
	b.Setenv("OPENCLAWSSY_MEMORY_MAX_WORKING_ITEMS", "0")
	for _, items := range []int{20_000, 100_000} {
		b.Run(fmt.Sprintf("items=%d", items), func(b *testing.B) { benchMaintenance(b, bin, items) })
	}
}

func benchMaintenance(b *testing.B, bin string, items int) {
	home := b.TempDir()
	fillAlike(b, home, "alike", items)
	runProgram(b, bin, home, "--agent", "alike", "graph", "rebuild", "--quiet")
	runProgram(b, bin, home, "--agent", "alike", "agent", "message", "deliver", "--quiet")
	other := filepath.Join(b.TempDir(), "other") // the same, for what is measured without a graph
	if err := os.CopyFS(other, os.DirFS(home)); err != nil {
		b.Fatal(err)
	}
	const ageless, graphless = "maintenance.verify_days=0", "graph.from_memory=false"
	for _, part := range []struct {
		name, home string
		args       []string
	}{
		{"dry-run", home, []string{"--dry-run", "--set", ageless}},
		{"run", home, []string{"--set", ageless}},
		{"again", home, []string{"--set", ageless}},
		{"graphless/run", other, []string{"--set", ageless, "--set", graphless}},
		{"graphless/all-old", other, []string{"--set", graphless}},
	} {
		b.Run(part.name, func(b *testing.B) {
			quiet := recallWhile(b, part.home, "alike", func() { time.Sleep(5 * time.Second) })
			for b.Loop() {
				start := time.Now()
				var of consumed
				busy := recallWhile(b, part.home, "alike", func() {
					of = runProgram(b, bin, part.home, append([]string{"--agent", "alike", "memory", "maintenance", "--quiet"}, part.args...)...)
				})
				b.ReportMetric(time.Since(start).Seconds(), "s")
				b.ReportMetric(of.cpu.Seconds(), "cpu-s")
				b.ReportMetric(of.resident, "MiB_resident")
				b.ReportMetric(milliseconds(busy), "recall-p95-ms")
				b.ReportMetric(milliseconds(quiet), "alone-p95-ms")
				b.ReportMetric(milliseconds(busy)/milliseconds(quiet), "x-alone")
			}
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// benchHouse opens a home at a time.
func benchHouse(b *testing.B, home string, at func() time.Time) *house {
	b.Helper()
	h := newHouse(at, func(string) string { return "" }, nil)
	var err error
	if h.home, err = agents.NewHome(home); err != nil {
		b.Fatal(err)
	}
	if h.cfg, err = config.Default(); err != nil {
		b.Fatal(err)
	}
	h.cfg.Memory.MaxWorkingItems = 0
	return h
}

// recallWhile recalls until work is done, and returns the 95th percentile of how long
// a block took.
func recallWhile(b *testing.B, home string, agent memory.AgentID, work func()) time.Duration {
	b.Helper()
	h := benchHouse(b, home, time.Now)
	defer func() {
		if err := h.close(); err != nil {
			b.Fatal(err)
		}
	}()
	h.cfg.Recall.DeadlineMS = 20_000 // it is measured, not cut off
	rec, sentence := h.makeRecall(), sentences()
	rec.Block(context.Background(), agent, recall.Request{Session: "s", Text: sentence()}) // opens the stores
	done := make(chan struct{})
	go func() { defer close(done); work() }()
	var took []time.Duration
	for {
		select {
		case <-done:
			slices.Sort(took)
			return took[len(took)*95/100]
		default:
		}
		start := time.Now()
		if block := rec.Block(context.Background(), agent, recall.Request{Session: "s", Text: sentence()}); block.Degraded != "" {
			b.Fatal(block.Degraded)
		}
		took = append(took, time.Since(start))
		time.Sleep(5 * time.Millisecond)
	}
}

// fillAlike stores items as an import would, 90 days ago.
func fillAlike(b *testing.B, home string, agent memory.AgentID, items int) {
	b.Helper()
	ctx := context.Background()
	past := time.Now().Add(-90 * 24 * time.Hour)
	h := benchHouse(b, home, func() time.Time { return past })
	defer func() {
		if err := h.close(); err != nil {
			b.Fatal(err)
		}
	}()
	store, release, err := h.items.write(ctx, agent)
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	sentence, said := sentences(), ""
	for n := 0; n < items; {
		in := working.Imported{Why: "benchmark"}
		for range 1000 {
			if n++; n%50 == 0 {
				said += " as well" // stopwords and one word: as long as it is, it says the same
			} else {
				said = sentence()
			}
			it := memory.Item{ID: fmt.Sprintf("mem_%d", n), Kind: memory.KindFact, Title: "about " + word(uint64(n)), Content: said, Importance: 3, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser}
			switch n % 100 {
			case 1:
				it.Importance = 1
			case 2:
				it.Confidence = .5
			}
			in.Put = append(in.Put, working.Entry{Item: it})
		}
		if _, err := store.Import(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}
