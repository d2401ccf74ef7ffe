package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// world is a memory simulated in its simplest form: a log, a cursor, and a
// distiller that makes one item of each turn. Its steps can be replaced by
// faulty ones.
type world struct {
	truth Truth
	held  Held
}

// say appends n turns, and a book-keeping event behind each third.
func (w *world) say(n int) {
	for range n {
		w.append(memory.UserMessage)
		if len(w.held.Events)%4 == 3 {
			w.append(memory.MemoryChange)
		}
	}
}

func (w *world) append(kind memory.EventType) {
	seq := int64(len(w.held.Events) + 1)
	e := memory.Event{ID: fmt.Sprintf("evt_%d", seq), Seq: seq, Type: kind, Text: fmt.Sprintf("Thing number %d happened.", seq)}
	w.held.Events = append(w.held.Events, e)
	w.truth.Ack(e.ID)
}

// distil turns a range of the log into items.
func (w *world) distil(first, last int64) {
	for _, e := range w.held.Events {
		if e.Seq >= first && e.Seq <= last && e.Type.IsTurn() {
			n := len(w.held.Items) + 1
			w.held.Items = append(w.held.Items, memory.Item{ID: fmt.Sprintf("mem_%d", n), Handle: fmt.Sprintf("MEM-%d", n), Status: memory.Active,
				Evidence: []memory.Evidence{{EventID: e.ID, Seq: e.Seq, Quote: first9(e.Text)}}})
		}
	}
}

func first9(s string) string { return first(s, 9) }

// checkpoint distils the next n events and moves the cursor behind them.
func (w *world) checkpoint(n int64) {
	last := min(w.held.Cursor+n, int64(len(w.held.Events)))
	w.distil(w.held.Cursor+1, last)
	w.held.Cursor = last
}

// park moves the cursor behind the next n events without distilling them.
func (w *world) park(n int64) {
	last := min(w.held.Cursor+n, int64(len(w.held.Events)))
	w.held.Parked = append(w.held.Parked, memory.Range{First: w.held.Cursor + 1, Last: last})
	w.held.Cursor = last
}

// right is a memory in the middle of its life: distilled, parked and pending
// events.
func right() *world {
	w := &world{}
	w.say(30)
	w.checkpoint(10)
	w.park(6)
	w.checkpoint(9)
	return w
}

func TestRightMemoryHasNoFaults(t *testing.T) {
	w := right()
	if f := w.truth.Check(w.held); len(f) != 0 {
		t.Errorf("faults in a right memory:\n%s", f)
	}
	if w.truth.Acked() != len(w.held.Events) || len(w.held.Events) <= 30 {
		t.Errorf("%d acknowledged of %d", w.truth.Acked(), len(w.held.Events))
	}
}

// TestEveryMutantIsCaught seeds one bug at a time, among them those that earlier
// memories had, and wants the judge to name it.
func TestEveryMutantIsCaught(t *testing.T) {
	for name, tc := range map[string]struct {
		bug  func(*world)
		want []Fault
	}{
		"an acknowledged event is not on disk": {func(w *world) { w.truth.Ack("evt_gone") }, []Fault{Lost}},
		"the newest event is lost": {func(w *world) {
			w.held.Events = w.held.Events[:len(w.held.Events)-1]
		}, []Fault{Lost}},
		"a retry appends twice": {func(w *world) {
			again := w.held.Events[3]
			again.Seq = int64(len(w.held.Events) + 1)
			w.held.Events = append(w.held.Events, again)
		}, []Fault{Duplicated}},
		"a gap in seq": {func(w *world) {
			for i := 35; i < len(w.held.Events); i++ {
				w.held.Events[i].Seq++
			}
		}, []Fault{OutOfOrder}},
		"two lines change places": {func(w *world) {
			w.held.Events[30], w.held.Events[31] = w.held.Events[31], w.held.Events[30]
		}, []Fault{OutOfOrder}},
		"the newest batch is distilled, the cursor passes the rest": {func(w *world) {
			end := int64(len(w.held.Events))
			w.distil(end-3, end)
			w.held.Cursor = end
		}, []Fault{NeverDistilled}},
		"a model's failure moves the cursor": {func(w *world) { w.held.Cursor += 5 }, []Fault{NeverDistilled}},
		"items are committed, and then the process dies before the cursor": {func(w *world) {
			w.distil(w.held.Cursor+1, w.held.Cursor+5)
		}, []Fault{TooEarly}},
		"and the batch is distilled again": {func(w *world) {
			w.distil(w.held.Cursor+1, w.held.Cursor+5)
			w.checkpoint(5)
		}, []Fault{DistilledTwice}},
		"two checkpoints run at once": {func(w *world) {
			from := w.held.Cursor
			w.checkpoint(5)
			w.held.Cursor = from
			w.checkpoint(5)
		}, []Fault{DistilledTwice}},
		"the cursor moves before the items, and then the process dies": {func(w *world) { w.held.Cursor += 4 }, []Fault{NeverDistilled}},
		"the cursor goes back":                       {func(w *world) { w.held.Cursor -= 4 }, []Fault{TooEarly}},
		"the cursor leaves the log":                  {func(w *world) { w.checkpoint(100); w.held.Cursor = 1000 }, []Fault{BeyondTheLog}},
		"a parked range is dropped":                  {func(w *world) { w.held.Parked = nil }, []Fault{NeverDistilled}},
		"a parked range is distilled and kept":       {func(w *world) { w.distil(w.held.Parked[0].First, w.held.Parked[0].Last) }, []Fault{TooEarly}},
		"a range is parked twice":                    {func(w *world) { w.held.Parked = append(w.held.Parked, w.held.Parked[0]) }, []Fault{ParkedTwice}},
		"a parked range that there is not":           {func(w *world) { w.held.Parked = append(w.held.Parked, memory.Range{First: 900, Last: 901}) }, []Fault{BeyondTheLog}},
		"an item without evidence":                   {func(w *world) { w.held.Items = append(w.held.Items, memory.Item{ID: "x", Handle: "MEM-99"}) }, []Fault{NoProvenance}},
		"an item's evidence is lost":                 {func(w *world) { w.held.Items[2].Evidence = nil }, []Fault{NoProvenance, NeverDistilled}},
		"an item cites an event that never was":      {func(w *world) { w.held.Items[2].Evidence[0].EventID = "evt_never" }, []Fault{Invented, NeverDistilled}},
		"an item quotes what nobody said":            {func(w *world) { w.held.Items[2].Evidence[0].Quote = "I never said" }, []Fault{FalseQuote}},
		"an item quotes nothing":                     {func(w *world) { w.held.Items[2].Evidence[0].Quote = "" }, []Fault{FalseQuote}},
		"a checkpoint that was acknowledged is gone": {func(w *world) { w.truth.Reach(w.held.Cursor + 1) }, []Fault{GoneBack}},
		"a file cannot be read":                      {func(w *world) { w.held.Damaged = []string{"latest.json"} }, []Fault{Damaged}},
		"a temporary file is left":                   {func(w *world) { w.held.Litter = []string{"x.tmp"} }, []Fault{Litter}},
		"the checkpoint's own event is distilled": {func(w *world) {
			w.held.Items[2].Evidence[0].EventID = w.held.Events[2].ID
			w.held.Events[2].Type = memory.CheckpointEvent
		}, nil},
		"ids are minted twice":                      {func(w *world) { w.held.Items[3].ID = w.held.Items[4].ID }, []Fault{DoubleID}},
		"handles are not unique":                    {func(w *world) { w.held.Items[3].Handle = w.held.Items[4].Handle }, []Fault{DoubleID}},
		"forget keeps the item":                     {func(w *world) { w.truth.Forget(w.held.Items[1].Evidence[0].EventID) }, []Fault{Remembered}},
		"an entry is stored that had to be refused": {func(w *world) { w.truth.Refuse(w.held.Items[1].Evidence[0].EventID) }, []Fault{Taken}},
		"one item of two pieces of evidence is doubled": {func(w *world) {
			w.held.Items[0].Evidence = append(w.held.Items[0].Evidence, w.held.Items[1].Evidence...)
		}, []Fault{DistilledTwice}},
		"a rebuild brings only half of the items back":   {func(w *world) { w.held.Items = w.held.Items[:len(w.held.Items)/2] }, []Fault{NeverDistilled}},
		"a rebuild forgets how far it had come":          {func(w *world) { w.held.Cursor, w.held.Parked = 0, nil }, []Fault{TooEarly}},
		"a rebuild replays the items behind the old one": {func(w *world) { w.distil(1, 10) }, []Fault{DistilledTwice}},
	} {
		t.Run(name, func(t *testing.T) {
			w := right()
			tc.bug(w)
			f := w.truth.Check(w.held)
			if len(f) == 0 {
				t.Fatal("not caught")
			}
			for _, want := range tc.want {
				if len(f[want]) == 0 {
					t.Errorf("%q is not named:\n%s", want, f)
				}
			}
			if !strings.Contains(f.String(), string(slices.Sorted(maps.Keys(f))[0])) {
				t.Errorf("the report does not say it: %q", f.String())
			}
		})
	}
}

func TestWhatIsRight(t *testing.T) {
	for name, life := range map[string]func(*world){
		"a forgotten item": func(w *world) {
			w.truth.Forget(w.held.Items[1].Evidence[0].EventID)
			w.held.Items[1] = memory.Item{ID: "mem_2", Handle: "MEM-2", Status: memory.Forgotten}
		},
		"a refused entry": func(w *world) {
			w.truth.Refuse(w.held.Items[1].Evidence[0].EventID)
			w.held.Items = slices.Delete(w.held.Items, 1, 2)
		},
		"an unacknowledged event": func(w *world) {
			w.held.Events = append(w.held.Events, memory.Event{ID: "evt_queued", Seq: int64(len(w.held.Events) + 1), Type: memory.UserMessage, Text: "x"})
		},
		"two duplicates are one item": func(w *world) {
			w.held.Items[0].Evidence = append(w.held.Items[0].Evidence, w.held.Items[1].Evidence...)
			w.held.Items = slices.Delete(w.held.Items, 1, 2)
		},
		"everything is dealt with":   func(w *world) { w.checkpoint(1000) },
		"a parked range is taken up": func(w *world) { p := w.held.Parked[0]; w.held.Parked = nil; w.distil(p.First, p.Last) },
		"a parked range is cut in two": func(w *world) {
			p := w.held.Parked[0]
			w.held.Parked = []memory.Range{{First: p.First, Last: p.First}, {First: p.First + 1, Last: p.Last}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := right()
			life(w)
			if f := w.truth.Check(w.held); len(f) != 0 {
				t.Errorf("faults:\n%s", f)
			}
		})
	}
}

// TestAnyLife lives any life of appends, checkpoints and parkings, which is
// right, and then loses any one thing, which is not.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{}
		w.say(2)
		w.checkpoint(1)
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 8), 1, 40).Draw(rt, "steps") {
			switch {
			case step < 4:
				w.say(step + 1)
			case step < 7 && w.held.Cursor < int64(len(w.held.Events)):
				w.checkpoint(int64(step))
			case w.held.Cursor < int64(len(w.held.Events)):
				w.park(2)
			}
		}
		if f := w.truth.Check(w.held); len(f) != 0 {
			rt.Fatalf("faults in a right memory:\n%s", f)
		}
		if rapid.Bool().Draw(rt, "lose an event") {
			i := rapid.IntRange(0, len(w.held.Events)-1).Draw(rt, "event")
			w.held.Events = slices.Delete(w.held.Events, i, i+1)
		} else {
			i := rapid.IntRange(0, len(w.held.Items)-1).Draw(rt, "item")
			w.held.Items = slices.Delete(w.held.Items, i, i+1)
		}
		if f := w.truth.Check(w.held); len(f) == 0 {
			rt.Fatal("the loss is not found")
		}
	})
}
