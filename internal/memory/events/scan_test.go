package events

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestScanSaysWhatReadDoes writes events of every sort of text and compares their
// heads with what is read whole.
func TestScanSaysWhatReadDoes(t *testing.T) {
	ctx, base := context.Background(), t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.StringOf(rapid.SampledFrom([]rune(`ab"\{},:é` + "\n\t\x01\u2028")))
		var objects [][]byte
		var want []memory.Event
		for i := range rapid.IntRange(1, 6).Draw(t, "events") {
			e := memory.Event{ID: "evt_" + string(rune('a'+i)), Seq: int64(i) + 1, Type: rapid.SampledFrom([]memory.EventType{memory.UserMessage, memory.MemoryChange, "of_tomorrow"}).Draw(t, "type"),
				Text: odd.Draw(t, "text"), SessionID: odd.Draw(t, "session"), RunID: odd.Draw(t, "run"), Origin: memory.OriginUser,
				Timestamp: time.Date(2026, 5, 8, 10, i, 0, 7, time.FixedZone("", 7200))}
			if rapid.Bool().Draw(t, "has metadata") {
				e.Metadata = map[string]any{"note": odd.Draw(t, "note")}
			}
			object, err := appendEvent(nil, e)
			if rapid.Bool().Draw(t, "by another writer") {
				object, err = json.Marshal(map[string]any{"type": e.Type, "id": e.ID, "text": e.Text, "session_id": e.SessionID, "run_id": e.RunID, "timestamp": e.Timestamp, "origin": e.Origin})
				e.Metadata = nil
			}
			if err != nil {
				t.Fatal(err)
			}
			objects, want = append(objects, object), append(want, e)
		}
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(ctx, dir, journal.Options{Now: time.Now, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Write(ctx, objects...); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		r := OpenReader(dir, zerolog.Nop())
		defer r.Close()
		i := 0
		err = r.Scan(ctx, func(h *Head) error {
			e, err := h.Event()
			if err != nil {
				return err
			}
			w := want[i]
			i++
			if h.Seq != w.Seq || string(h.ID) != w.ID || h.Type != w.Type || string(h.Session) != w.SessionID || string(h.Run) != w.RunID || !h.Time().Equal(w.Timestamp) {
				t.Errorf("the head of %+v is %+v", w, *h)
			}
			if e.Text != w.Text || e.Seq != w.Seq || e.Meta("note") != w.Meta("note") {
				t.Errorf("%+v was read as %+v", w, e)
			}
			return nil
		})
		if err != nil || i != len(want) {
			t.Fatalf("%d of %d events, %v", i, len(want), err)
		}
		if len(r.Damage()) > 0 || !slices.IsSortedFunc(want, func(a, b memory.Event) int { return int(a.Seq - b.Seq) }) {
			t.Errorf("damage: %v", r.Damage())
		}
	})
}
