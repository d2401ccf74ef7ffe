package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Sizes of the benchmarks' agent.
const (
	benchItems = 100_000
	benchTurns = 100_000
)

// sentences returns a source of sentences of 14 words whose frequencies are those
// of language (Zipf).
func sentences() func() string { return sayings(3, 14) }

// talkedOf returns a source of questions of five words that are as frequent as in the
// sentences. A word is in 1.6 % of 100,000 sentences (median), in 10 % on average. The
// questions of LoCoMo have five words too, each in 1.9 % of the turns, 6 % on average.
func talkedOf() func() string { return sayings(8, 5) }

// sayings returns a source of so many words at a time.
func sayings(seed uint64, n int) func() string {
	random := rand.New(rand.NewPCG(seed, 4))
	zipf := rand.NewZipf(random, 1.1, 4, 19_999)
	return func() string {
		words := make([]string, n)
		for i := range words {
			words[i] = word(zipf.Uint64())
		}
		return strings.Join(words, " ")
	}
}

// word spells a number in syllables, so that words differ from their first
// letters on, as those of languages do.
func word(n uint64) string {
	syllables := []string{"ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pla", "gre", "stri", "fo", "hu", "wa", "den", "cor", "min", "pel"}
	s := ""
	for {
		s += syllables[n%uint64(len(syllables))]
		if n /= uint64(len(syllables)); n == 0 {
			return s + "n"
		}
	}
}

// asked is a question of a common, a rarer and a rare word.
var asked = strings.Join([]string{word(17), word(900), word(4000)}, " ")

// program builds the binary.
func program(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "openclawssy")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// consumed is what a process has used.
type consumed struct {
	cpu      time.Duration
	resident float64 // MiB at most
}

// runProgram runs the binary and returns what it has used.
func runProgram(b *testing.B, path, home string, args ...string) consumed {
	b.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "OPENCLAWSSY_HOME="+home)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	most, ended := 0.0, make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for every := time.NewTicker(5 * time.Millisecond); ; {
		most = max(most, resident(cmd.Process.Pid))
		select {
		case err := <-ended:
			every.Stop()
			if err != nil {
				b.Fatalf("%v: %v\n%s", args, err, errs.String())
			}
			return consumed{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), most}
		case <-every.C:
		}
	}
}

// resident is the most memory that a process has had resident so far, in MiB; 0 for
// one that has ended. What the kernel tells at the end of a child includes what its
// parent, this test, had before it became the program.
func resident(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil {
		return 0
	}
	return float64(kib) / 1024
}

// BenchmarkProcess measures whole processes: how long they take, and how much
// memory they have resident at most.
func BenchmarkProcess(b *testing.B) {
	bin, home := program(b), b.TempDir()
	b.Run("version", func(b *testing.B) {
		for b.Loop() {
			runProgram(b, bin, home, "--version")
		}
	})
	fillItems(b, home, "items", benchItems)
	b.Run("memory_search/items=100k", func(b *testing.B) {
		runProgram(b, bin, home, "--agent", "items", "memory", "search", asked) // indexes what fillItems wrote
		for b.Loop() {
			b.ReportMetric(runProgram(b, bin, home, "--agent", "items", "memory", "search", asked, "--json").resident, "MiB_resident")
		}
	})
	fillTurns(b, bin, home, "turns")
	b.Run("memory_recall/passages=100k", func(b *testing.B) {
		runProgram(b, bin, home, "--agent", "turns", "memory", "recall", asked)
		for b.Loop() {
			b.ReportMetric(runProgram(b, bin, home, "--agent", "turns", "memory", "recall", asked, "--json").resident, "MiB_resident")
		}
	})
}

// fillItems stores items as an import would.
func fillItems(b *testing.B, home string, agent memory.AgentID, items int) {
	b.Helper()
	ctx := context.Background()
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	var err error
	if h.home, err = agents.NewHome(home); err != nil {
		b.Fatal(err)
	}
	if h.cfg, err = config.Default(); err != nil {
		b.Fatal(err)
	}
	h.cfg.Memory.MaxWorkingItems = 0
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
	sentence := sentences()
	lease, err := store.Acquire(ctx, "checkpoint", "benchmark", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	log, releaseLog, err := h.logs.write(ctx, agent)
	if err != nil {
		b.Fatal(err)
	}
	defer releaseLog()
	for range items / 50 {
		said, err := log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: "fifty things"})
		if err != nil {
			b.Fatal(err)
		}
		batch := working.Batch{Lease: lease, Record: memory.Checkpoint{Range: memory.Range{First: said[0].Seq, Last: said[0].Seq}, Events: 1,
			Cursor: memory.Cursor{Seq: said[0].Seq}, Mode: working.ModeRules}}
		for n := range 50 {
			batch.Entries = append(batch.Entries, working.Entry{At: time.Now(), Item: memory.Item{ID: fmt.Sprintf("mem_%d_%d", said[0].Seq, n), Kind: "fact", Title: sentence()[:40], Content: sentence(), Importance: 3,
				Confidence: .9, Status: memory.Active, Trust: memory.TrustUser,
				Evidence: []memory.Evidence{{EventID: said[0].ID, Seq: said[0].Seq, Quote: "fifty things"}}}})
		}
		if _, err := store.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// fillTurns imports a conversation.
func fillTurns(b *testing.B, bin, home, agent string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "talk.jsonl")
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	enc, sentence, at := json.NewEncoder(out), sentences(), time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	for n := range benchTurns {
		role := []string{"user", "assistant"}[n%2]
		turn := map[string]any{"n": n + 1, "role": role, "text": sentence(), "time": at.Add(time.Duration(n) * time.Minute).Format(time.RFC3339), "session": fmt.Sprint("s", n/40)}
		if err := enc.Encode(turn); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
	runProgram(b, bin, home, "--agent", agent, "import", "chat", file, "--quiet")
}
