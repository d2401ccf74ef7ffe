package checkpoint

import (
	"context"
	"fmt"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// BenchmarkCheckpoint distils 20 new turns behind a log of old ones, by a model
// that answers at once.
func BenchmarkCheckpoint(b *testing.B) {
	for _, old := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint("events=", old), func(b *testing.B) {
			w := newWorld(b, &echo{})
			w.agent.BatchTokens = 6000
			pass(b, w, old)
			from := 0
			for b.Loop() {
				b.StopTimer()
				from += 20
				w.say(b, sayings(from, 20)...)
				b.StartTimer()
				if res := w.checkpoint(b); res.Events != 20 {
					b.Fatalf("%+v", res)
				}
			}
		})
	}
}

// pass writes turns and moves the cursor behind them.
func pass(b *testing.B, w *world, turns int) {
	b.Helper()
	ctx := context.Background()
	for done := 0; done < turns; done += 1000 {
		batch := make([]memory.Event, 1000)
		for i := range batch {
			batch[i] = memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s0", Text: fmt.Sprint("an old turn of no interest, number ", done+i)}
		}
		if _, err := w.log.Write(ctx, batch...); err != nil {
			b.Fatal(err)
		}
	}
	var end memory.Cursor
	for {
		events, next, err := w.log.Read(ctx, end, 10_000)
		if err != nil {
			b.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		end = next
	}
	lease, err := w.store.Acquire(ctx, "checkpoint", "bench", 1)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.store.Apply(ctx, working.Batch{Lease: lease, Record: memory.Checkpoint{Range: memory.Range{First: 1, Last: end.Seq}, Events: turns, Cursor: end, Mode: working.ModeModel}}); err != nil {
		b.Fatal(err)
	}
}
