package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// BenchmarkErase erases one session after the other from a home of 32 MiB, or of as
// many as OPENCLAWSSY_BENCH_ERASE_MIB says: log and archive, written as turns are.
func BenchmarkErase(b *testing.B) {
	size := int64(32)
	if text := os.Getenv("OPENCLAWSSY_BENCH_ERASE_MIB"); text != "" {
		var err error
		if size, err = strconv.ParseInt(text, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	home, ctx := b.TempDir(), context.Background()
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	h := newHouse(func() time.Time { return now }, func(string) string { return "" }, nil)
	h.app()
	if err := h.setup(cli.Options{Home: home, Agent: "default"}); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := h.close(); err != nil {
			b.Error(err)
		}
	}()
	sessions := 0
	for have := int64(0); have < size<<20; have = sizeOf(b, home) {
		log, release, err := h.logs.write(ctx, "default")
		if err != nil {
			b.Fatal(err)
		}
		for range 100 { // sessions of 40 turns, some of them a day
			fillSession(b, log.Write, sessions, now)
			if sessions++; sessions%50 == 0 {
				now = now.Add(24 * time.Hour)
			}
		}
		release()
		_, releaseArchive, err := h.followed(ctx, "default")
		if err != nil {
			b.Fatal(err)
		}
		releaseArchive()
	}
	next := 0
	for b.Loop() {
		res, err := h.erasure.Erase(ctx, "default", care.EraseRequest{Session: fmt.Sprintf("session-of-the-bench-%d", next%sessions), Yes: true})
		if err != nil || len(res.Holding) > 0 || res.Events == 0 {
			b.Fatalf("%+v, %v", res, err)
		}
		next += 7
	}
	b.ReportMetric(float64(sizeOf(b, home))/(1<<20), "MiB_home")
}

var benchSentences = sentences()

func fillSession(b *testing.B, write func(context.Context, ...memory.Event) ([]memory.Event, error), n int, now time.Time) {
	b.Helper()
	list := make([]memory.Event, 40)
	for i := range list {
		list[i] = memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: fmt.Sprintf("session-of-the-bench-%d", n), Timestamp: now,
			Text: fmt.Sprintf("Turn %d of %d. %s", i, n, benchSentences()+", "+benchSentences())}
		if i%2 == 1 {
			list[i].Type, list[i].Origin = memory.AssistantOutput, memory.OriginAssistant
		}
	}
	if _, err := write(context.Background(), list...); err != nil {
		b.Fatal(err)
	}
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
