package runtime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
)

type plain struct{}

func (plain) Text(s string) string      { return s }
func (plain) Value(v any) any           { return v }
func (plain) Asks(string) string        { return "" }
func (plain) Answer(_, s string) string { return s }

// BenchmarkLookBack takes up a session that has no turn among the last 20,000
// events of a log: the dearest start of a turn.
func BenchmarkLookBack(b *testing.B) {
	ctx := context.Background()
	log, err := events.Open(ctx, filepath.Join(b.TempDir(), "events"), events.Options{Now: time.Now, NewID: func() string { return ulid.Make().String() }, Redact: plain{}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			b.Error(err)
		}
	}()
	var list []memory.Event
	for i := range lookBack + 1000 {
		list = append(list, memory.Event{Type: memory.UserMessage, Origin: memory.OriginImport, SessionID: "import", Text: fmt.Sprint(i, strings.Repeat(" word", 40))})
	}
	for batch := range slices.Chunk(list, 500) {
		if _, err := log.Write(ctx, batch...); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		w := &window{session: "s1", hidden: map[string]bool{}}
		if err := w.follow(ctx, log, 100_000); err != nil {
			b.Fatal(err)
		}
	}
}
