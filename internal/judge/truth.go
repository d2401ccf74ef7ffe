package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Truth is what a memory was told and has acknowledged, kept outside of it. After
// any fault, Check holds the memory against it:
//
//	acknowledged = distilled once + parked + pending
//
// It is safe for concurrent use.
type Truth struct {
	mu        sync.Mutex
	acked     []string
	forgotten map[string]bool
	refused   map[string]bool
	reached   int64
}

// Ack notes that the memory has acknowledged events as durable.
func (t *Truth) Ack(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acked = append(t.acked, ids...)
}

// Forget notes that events must no longer be recalled.
func (t *Truth) Forget(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forgotten == nil {
		t.forgotten = map[string]bool{}
	}
	for _, id := range ids {
		t.forgotten[id] = true
	}
}

// Refuse notes that events were answered with entries that must not be taken, so
// that no item is to rest on them.
func (t *Truth) Refuse(ids ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil {
		t.refused = map[string]bool{}
	}
	for _, id := range ids {
		t.refused[id] = true
	}
}

// Reach notes that the memory has acknowledged a checkpoint up to a Seq.
func (t *Truth) Reach(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = max(t.reached, seq)
}

// Acked returns how many events have been acknowledged.
func (t *Truth) Acked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.acked)
}

// Held is what a memory holds, as it is read back.
type Held struct {
	Events []memory.Event // the whole log, in the order in which it is read
	Items  []memory.Item  // of every status, with their evidence
	Cursor int64          // Seq up to which the log has been dealt with
	Parked []memory.Range

	Reached int64    // Seq that its newest checkpoint says it has come to
	Damaged []string // files that cannot be read, or fail their own check
	Litter  []string // files that are no part of it: what a write that was cut short left behind
}

// Fault is a way in which a memory can be wrong.
type Fault string

// The faults.
const (
	Lost           Fault = "lost"            // acknowledged, and not in the log
	Duplicated     Fault = "duplicated"      // in the log twice
	OutOfOrder     Fault = "out of order"    // its Seq does not follow the one before
	NeverDistilled Fault = "never distilled" // behind the cursor, in no parked range, and no item rests on it
	DistilledTwice Fault = "distilled twice" // two items rest on it
	TooEarly       Fault = "too early"       // an item rests on it though it is still pending or parked, so it will be distilled again
	NoProvenance   Fault = "no provenance"   // an item that rests on nothing
	Invented       Fault = "invented"        // an item rests on an event that there is not
	FalseQuote     Fault = "false quote"     // its event does not say that
	OfItself       Fault = "of itself"       // an item rests on the memory's own book-keeping
	DoubleID       Fault = "double id"       // two items have one id or handle
	BeyondTheLog   Fault = "beyond the log"  // the cursor or a parked range names events that there are not
	ParkedTwice    Fault = "parked twice"    // in two parked ranges
	Remembered     Fault = "remembered"      // an active item rests on a forgotten event
	Taken          Fault = "taken"           // an item rests on an entry that had to be refused
	GoneBack       Fault = "gone back"       // a checkpoint was acknowledged, and is not there
	Damaged        Fault = "damaged"         // a file that cannot be read, or fails its own check
	Litter         Fault = "litter"          // a file that a write left behind
)

// Findings are the faults found, and for each what it was found at.
type Findings map[Fault][]string

// add notes one finding.
func (f Findings) add(fault Fault, format string, args ...any) {
	f[fault] = append(f[fault], fmt.Sprintf(format, args...))
}

// String is one line for each fault, with its count and first examples; "" for
// none.
func (f Findings) String() string {
	var sb strings.Builder
	for _, fault := range slices.Sorted(maps.Keys(f)) {
		at := f[fault]
		fmt.Fprintf(&sb, "%d %s: %s\n", len(at), fault, strings.Join(at[:min(5, len(at))], ", "))
	}
	return sb.String()
}

// Check holds what a memory holds against the truth. Every turn of the log must
// have exactly one item that rests on it once it is distilled, which is what the
// stub server answers, and none before.
func (t *Truth) Check(h Held) Findings {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := Findings{}
	seqs := t.checkLog(h, f)
	last := int64(0)
	if len(h.Events) > 0 {
		last = h.Events[len(h.Events)-1].Seq
	}
	if h.Cursor > last {
		f.add(BeyondTheLog, "cursor %d of %d", h.Cursor, last)
	}
	if reached := h.Reached; reached < t.reached {
		f.add(GoneBack, "to %d from %d", reached, t.reached)
	}
	for _, name := range h.Damaged {
		f.add(Damaged, "%s", name)
	}
	for _, name := range h.Litter {
		f.add(Litter, "%s", name)
	}
	for i, p := range h.Parked {
		if p.Last > last || p.First > p.Last {
			f.add(BeyondTheLog, "parked %d to %d of %d", p.First, p.Last, last)
		}
		for _, q := range h.Parked[:i] {
			if p.First <= q.Last && q.First <= p.Last {
				f.add(ParkedTwice, "%d to %d", max(p.First, q.First), min(p.Last, q.Last))
			}
		}
	}
	resting := t.checkItems(h, seqs, f)
	for _, e := range h.Events {
		if e.Type.IsTurn() {
			t.checkTurn(e, resting[e.ID], h, f)
		}
	}
	return f
}

// checkLog checks the log alone, and returns its events by id.
func (t *Truth) checkLog(h Held, f Findings) map[string]memory.Event {
	byID := map[string]memory.Event{}
	for i, e := range h.Events {
		if _, double := byID[e.ID]; double {
			f.add(Duplicated, "%s", e.ID)
		}
		byID[e.ID] = e
		if want := int64(i + 1); e.Seq != want {
			f.add(OutOfOrder, "%s is %d, not %d", e.ID, e.Seq, want)
		}
	}
	for _, id := range t.acked {
		if _, there := byID[id]; !there {
			f.add(Lost, "%s", id)
		}
	}
	return byID
}

// checkItems checks every item alone, and returns how many rest on each event.
func (t *Truth) checkItems(h Held, events map[string]memory.Event, f Findings) map[string]int {
	resting, seen := map[string]int{}, map[string]bool{}
	for _, it := range h.Items {
		for _, name := range []string{it.ID, it.Handle} {
			if seen[name] {
				f.add(DoubleID, "%s", name)
			}
			seen[name] = true
		}
		if it.Status == memory.Forgotten {
			continue
		}
		if len(it.Evidence) == 0 {
			f.add(NoProvenance, "%s", it.Handle)
		}
		on := map[string]bool{}
		for _, ev := range it.Evidence {
			e, there := events[ev.EventID]
			switch {
			case !there:
				f.add(Invented, "%s on %s", it.Handle, ev.EventID)
				continue
			case !e.Type.IsTurn():
				f.add(OfItself, "%s on %s", it.Handle, ev.EventID)
			case ev.Quote == "" && it.Status == memory.Quarantined: // a quote that was false is not kept
			case !strings.Contains(e.Text, ev.Quote) || strings.TrimSpace(ev.Quote) == "":
				f.add(FalseQuote, "%s on %s", it.Handle, ev.EventID)
			}
			on[ev.EventID] = true
		}
		for id := range on {
			resting[id]++
			if t.forgotten[id] && it.Status == memory.Active {
				f.add(Remembered, "%s by %s", id, it.Handle)
			}
		}
	}
	return resting
}

// checkTurn checks what became of one turn, on which n items rest.
func (t *Truth) checkTurn(e memory.Event, n int, h Held, f Findings) {
	waiting := e.Seq > h.Cursor || slices.ContainsFunc(h.Parked, func(p memory.Range) bool { return p.First <= e.Seq && e.Seq <= p.Last })
	switch {
	case waiting && n > 0:
		f.add(TooEarly, "%s", e.ID)
	case waiting || t.forgotten[e.ID]:
	case t.refused[e.ID] && n > 0:
		f.add(Taken, "%s", e.ID)
	case t.refused[e.ID]:
	case n == 0:
		f.add(NeverDistilled, "%s", e.ID)
	case n > 1:
		f.add(DistilledTwice, "%s", e.ID)
	}
}
