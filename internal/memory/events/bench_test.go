package events

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// turns returns n turns of about 1 KiB: prose, one in a hundred with a token,
// one in twenty with a word that secrets stand beside.
func turns(n int) []memory.Event {
	words := strings.Fields(`the train to Porto leaves at nine and we should book seats because it is full on Fridays my sister
		wants the window so take two in the middle then walk from the station to the river where the market is open until
		noon remind me to bring the green jacket it rained last time and nobody had an umbrella "really," she said`)
	r := rand.New(rand.NewPCG(1, 2))
	events := make([]memory.Event, n)
	for i := range events {
		var text strings.Builder
		for target := 200 + r.IntN(1600); text.Len() < target; {
			text.WriteString(words[r.IntN(len(words))])
			text.WriteByte(" \n"[r.IntN(40)/39])
		}
		if r.IntN(100) == 0 {
			fmt.Fprintf(&text, " use ghp_%036d for it", r.Int64())
		}
		if r.IntN(20) == 0 {
			text.WriteString(" the password is on the note")
		}
		events[i] = said(text.String())
		if i%4 == 0 {
			events[i].Metadata = map[string]any{memory.MetaSourceID: fmt.Sprint(i), memory.MetaSpeaker: "Ana"}
		}
	}
	return events
}

const benchEvents = 20_000

// rawRate writes the same number of bytes in groups of 64 KiB, each followed by
// fdatasync, and returns bytes a second: what the disk gives at best.
func rawRate(b *testing.B, size int64) float64 {
	b.Helper()
	file, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	group := make([]byte, 64<<10)
	for i := range group {
		group[i] = byte(i * 7)
	}
	begin := time.Now()
	for done := int64(0); done < size; done += int64(len(group)) {
		if _, err := file.Write(group); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	return float64(size) / time.Since(begin).Seconds()
}

// BenchmarkIngest appends turns as fast as producers can, redaction included,
// and flushes at the end. ratio is to rawRate, measured before and after.
func BenchmarkIngest(b *testing.B) {
	events := turns(benchEvents)
	for _, producers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			var raw, rate float64
			for b.Loop() {
				o := options(b)
				o.QueueWait = time.Minute
				l := open(b, b.TempDir(), o)
				var all sync.WaitGroup
				var next atomic.Int64
				begin := time.Now()
				for range producers {
					all.Add(1)
					go func() {
						defer all.Done()
						for i := next.Add(1) - 1; i < benchEvents; i = next.Add(1) - 1 {
							if _, err := l.Append(context.Background(), events[i]); err != nil {
								b.Error(err)
							}
						}
					}()
				}
				all.Wait()
				if err := l.Flush(context.Background()); err != nil {
					b.Fatal(err)
				}
				took := time.Since(begin).Seconds()
				s := l.Stats()
				if s.Flushed < benchEvents {
					b.Fatalf("lost: %+v", s)
				}
				rate += float64(s.Bytes) / took
				raw += rawRate(b, s.Bytes)
			}
			b.ReportMetric(rate/float64(b.N)/1e6, "MB/s")
			b.ReportMetric(raw/float64(b.N)/1e6, "raw-MB/s")
			b.ReportMetric(rate/raw, "ratio")
		})
	}
}

// BenchmarkWrite is one durable append at a time, by so many at once.
func BenchmarkWrite(b *testing.B) {
	events := turns(1000)
	for _, producers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			l := open(b, b.TempDir(), options(b))
			var all sync.WaitGroup
			var next atomic.Int64
			b.ResetTimer()
			for range producers {
				all.Add(1)
				go func() {
					defer all.Done()
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						if _, err := l.Write(context.Background(), events[i%1000]); err != nil {
							b.Error(err)
						}
					}
				}()
			}
			all.Wait()
		})
	}
}

// BenchmarkReadAfter1M reads the 200 newest events behind 1,000,000 old ones: by
// a cursor, and by a cursor that has lost its hint.
func BenchmarkReadAfter1M(b *testing.B) {
	o := options(b)
	o.QueueWait, o.Redact = time.Minute, plainly{}
	l := open(b, b.TempDir(), o)
	ctx := context.Background()
	for i := range 1_000_200 / 100 {
		batch := make([]memory.Event, 100)
		for k := range batch {
			batch[k] = said(fmt.Sprintf("turn %d.%d, a short one of about a hundred bytes, since there are so many of them", i, k))
		}
		if _, err := l.Append(ctx, batch...); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	_, at, err := l.Read(ctx, memory.Cursor{Seq: 999_999}, 1)
	if err != nil || at.Seq != 1_000_000 {
		b.Fatal(at, err)
	}
	for name, cursor := range map[string]memory.Cursor{"hint": at, "seq-only": {Seq: 1_000_000}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				events, _, err := l.Read(ctx, cursor, 1000)
				if err != nil || len(events) != 200 {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}

// BenchmarkEncode is one event to its line, without redaction.
func BenchmarkEncode(b *testing.B) {
	events := turns(1000)
	var line []byte
	size := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var err error
		if line, err = appendEvent(line[:0], events[i%1000]); err != nil {
			b.Fatal(err)
		}
		size += len(line)
	}
	b.SetBytes(int64(size / b.N))
}
