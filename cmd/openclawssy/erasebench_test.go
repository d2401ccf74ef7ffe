package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// BenchmarkErase erases one session after the other from a home of 32 MiB, or of as
// many as OPENCLAWSSY_BENCH_ERASE_MIB says: log, archive, memories and runs, written
// as turns are, days older than thirty packed. Beside the time it reports that of
// the processors.
func BenchmarkErase(b *testing.B) {
	size := int64(32)
	if text := os.Getenv("OPENCLAWSSY_BENCH_ERASE_MIB"); text != "" {
		var err error
		if size, err = strconv.ParseInt(text, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	ctx, now := context.Background(), time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	home, h := erasureHouse(b, &now)
	sessions := 0
	for have := int64(0); have < size<<20; have = sizeOf(b, home) {
		for range 100 { // sessions of 40 turns, some of them a day
			fillSession(b, h, sessions, now)
			if sessions++; sessions%50 == 0 {
				now = now.Add(24 * time.Hour)
			}
		}
		follow(b, h)
		log, release, err := h.readLog(ctx, "default")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := log.Pack(ctx, now.AddDate(0, 0, -30)); err != nil {
			b.Fatal(err)
		}
		release()
	}
	next, began := 0, processorTime(b)
	for b.Loop() {
		res, err := h.erasure.Erase(ctx, "default", care.EraseRequest{Session: fmt.Sprintf("session-of-the-bench-%d", next%sessions), Yes: true})
		if err != nil || len(res.Holding) > 0 || res.Events == 0 {
			b.Fatalf("%+v, %v", res, err)
		}
		next += 7
	}
	b.ReportMetric(float64(sizeOf(b, home))/(1<<20), "MiB_home")
	b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
}

// erasureHouse is an empty home, and the program over it at a time that the caller moves.
func erasureHouse(b *testing.B, now *time.Time) (home string, h *house) {
	b.Helper()
	home = b.TempDir()
	h = newHouse(func() time.Time { return *now }, func(string) string { return "" }, nil)
	h.app()
	if err := h.setup(cli.Options{Home: home, Agent: "default"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.close(); err != nil {
			b.Error(err)
		}
	})
	return home, h
}

// follow brings the archive up to the log.
func follow(b *testing.B, h *house) {
	b.Helper()
	_, release, err := h.followed(context.Background(), "default")
	if err != nil {
		b.Fatal(err)
	}
	release()
}

// processorTime is what this process has had of all processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var benchSentences = sentences()

// BenchmarkForget forgets one memory after the other, in a history of 10,000 events
// and in one of 50 times as many, or of OPENCLAWSSY_BENCH_FORGET_EVENTS; both have
// 4,000 events a day.
func BenchmarkForget(b *testing.B) {
	many := 500_000
	if text := os.Getenv("OPENCLAWSSY_BENCH_FORGET_EVENTS"); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, events := range []int{10_000, many} {
		b.Run(strconv.Itoa(events), func(b *testing.B) {
			ctx, now := context.Background(), time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
			_, h := erasureHouse(b, &now)
			for n := range events / 40 {
				fillSession(b, h, n, now)
				if n%100 == 99 {
					now = now.Add(24 * time.Hour)
				}
			}
			follow(b, h)
			service := working.NewService(h.items.read, h.items.write, episodesOf{h})
			service.Forgetting = h.forgetting
			next, began := 1, processorTime(b)
			for b.Loop() {
				if _, err := service.Forget(ctx, "default", working.ForgetRequest{Handle: fmt.Sprintf("MEM-%d", next)}); err != nil {
					b.Fatal(err)
				}
				next += 3
			}
			b.ReportMetric((processorTime(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// fillSession writes a session of 40 turns, two memories that rest on it, and, for
// every tenth, the bundle of its run.
func fillSession(b *testing.B, h *house, n int, now time.Time) {
	b.Helper()
	ctx, session := context.Background(), fmt.Sprintf("session-of-the-bench-%d", n)
	log, release, err := h.logs.write(ctx, "default")
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	list := make([]memory.Event, 40)
	for i := range list {
		list[i] = memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: session, Timestamp: now,
			Text: fmt.Sprintf("Turn %d of %d. %s", i, n, benchSentences()+", "+benchSentences())}
		if i%2 == 1 {
			list[i].Type, list[i].Origin = memory.AssistantOutput, memory.OriginAssistant
		}
	}
	if n%10 == 0 {
		fillRun(b, h, session, list)
	}
	list, err = log.Write(ctx, list...)
	if err != nil {
		b.Fatal(err)
	}
	items, release, err := h.items.write(ctx, "default")
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	var in working.Imported
	for _, e := range []memory.Event{list[0], list[20]} {
		in.Put = append(in.Put, working.Entry{At: now, Item: memory.Item{ID: "mem_" + e.ID, Kind: memory.KindFact, Title: e.Text[:60], Content: e.Text, Importance: 3, Confidence: 1,
			Status: memory.Active, Trust: memory.TrustUser, Evidence: []memory.Evidence{{EventID: e.ID, Seq: e.Seq, Quote: e.Text}}}})
	}
	if _, err := items.Import(ctx, in); err != nil {
		b.Fatal(err)
	}
}

func fillRun(b *testing.B, h *house, session string, list []memory.Event) {
	b.Helper()
	runs, release, err := h.writeRuns(context.Background(), "default")
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	run, err := runs.Start(runlog.Input{Session: session, Channel: "cli", Text: list[0].Text})
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(run.Prompt(list[0].Text), run.Finish(list[1].Text, runlog.Meta{Session: session, Status: runlog.OK})); err != nil {
		b.Fatal(err)
	}
	list[0].RunID, list[1].RunID = run.ID(), run.ID()
}

func sizeOf(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
