package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// eventReader is an agent's event log, as a window reads it.
type eventReader interface {
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
	LastSeq() (int64, error)
}

// window is what of a session's turns is in view: its latest events, whole turns,
// within a budget of tokens. It follows the event log, so that it holds what other
// processes say in the session too, and what was suppressed leaves it.
type window struct {
	session string
	turn    chan struct{} // holds a token while a turn works on the session

	events  []memory.Event
	size    int   // tokens of events
	seq     int64 // of the log: read up to here
	read    bool  // the log has been read for the first time
	flushed int64 // seq up to which a flush was asked for
	hidden  map[string]bool

	awake bool   // woken has been read
	woken string // what of the agent's workspace the session's prompts begin with

	users int // in windows' lock
	used  int64
}

const (
	windowsKept = 256   // sessions kept in view at least
	readBlock   = 2000  // events per read of the log
	lookBack    = 20000 // events looked at, at most, for a session that is taken up again
)

// windows holds the sessions in view. It is safe for concurrent use.
type windows struct {
	mu    sync.Mutex
	all   map[string]*window
	clock int64
}

// enter waits for the session's turn and returns its window; leave gives it back.
func (ws *windows) enter(ctx context.Context, agent memory.AgentID, session string) (w *window, leave func(), err error) {
	key := string(agent) + "/" + session
	ws.mu.Lock()
	w, known := ws.all[key]
	if !known {
		w = &window{session: session, turn: make(chan struct{}, 1), hidden: map[string]bool{}}
		ws.all[key] = w
		ws.evict()
	}
	w.users++
	ws.clock++
	w.used = ws.clock
	ws.mu.Unlock()
	done := func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		w.users--
	}
	select {
	case w.turn <- struct{}{}:
		return w, func() { <-w.turn; done() }, nil
	case <-ctx.Done():
		done()
		return nil, nil, fmt.Errorf("wait for the session's turn: %w", ctx.Err())
	}
}

// evict forgets the window that was used longest ago where there are too many;
// mu is held. It is read from the log again when it is needed.
func (ws *windows) evict() {
	if len(ws.all) <= windowsKept {
		return
	}
	oldest := ""
	for key, w := range ws.all {
		if w.users == 0 && w.used > 0 && (oldest == "" || w.used < ws.all[oldest].used) {
			oldest = key
		}
	}
	delete(ws.all, oldest)
}

// follow reads what the log has got since the last time; the first time, back
// until the budget is full.
func (w *window) follow(ctx context.Context, log eventReader, budget int) error {
	last, err := log.LastSeq()
	if err != nil {
		return fmt.Errorf("read session %s: %w", w.session, err)
	}
	if !w.read {
		if err := w.lookBack(ctx, log, last, budget); err != nil {
			return fmt.Errorf("read session %s: %w", w.session, err)
		}
		w.read = true
	}
	for at := (memory.Cursor{Seq: w.seq}); ; {
		batch, next, err := log.Read(ctx, at, readBlock)
		if err != nil {
			return fmt.Errorf("read session %s: %w", w.session, err)
		}
		if len(batch) == 0 {
			return nil
		}
		for _, e := range batch {
			w.take(e)
		}
		at, w.seq = next, next.Seq
	}
}

// lookBack finds where the session's latest turns begin that fill the budget, and
// starts there.
func (w *window) lookBack(ctx context.Context, log eventReader, last int64, budget int) error {
	w.seq = last
	from, found := last, 0
	for from > 0 && found < budget && last-from < lookBack {
		low := max(0, from-readBlock)
		batch, _, err := log.Read(ctx, memory.Cursor{Seq: low}, readBlock)
		if err != nil {
			return err
		}
		for _, e := range slices.Backward(batch) {
			if e.Seq <= from && e.SessionID == w.session && e.Type.IsTurn() {
				found += eventTokens(e)
				w.seq = e.Seq - 1
			}
		}
		from = low
	}
	return nil
}

// take adds a turn of the session, or heeds a change of memory.
func (w *window) take(e memory.Event) {
	switch {
	case e.Type == memory.MemoryChange || e.Type == memory.CheckpointEvent:
		w.heed(e)
	case e.SessionID == w.session && e.Type.IsTurn():
		w.events = append(w.events, e)
		w.size += eventTokens(e)
	}
}

// heed hides the events that a change suppresses, and shows again those that it
// restores.
func (w *window) heed(e memory.Event) {
	raw, err := json.Marshal(e.Metadata[memory.MetaChange])
	if err != nil {
		return // it came out of JSON
	}
	var change struct {
		Action            string
		Suppress, Restore []string
	}
	if json.Unmarshal(raw, &change) != nil {
		return // a change of a form that is not known has nothing to say here
	}
	if change.Action == working.ActionErase {
		w.drop(change.Suppress)
		return
	}
	for _, id := range change.Suppress {
		if slices.ContainsFunc(w.events, func(e memory.Event) bool { return e.ID == id }) {
			w.hidden[id] = true
		}
	}
	for _, id := range change.Restore {
		delete(w.hidden, id)
	}
}

// drop takes the events with these ids out of view for good.
func (w *window) drop(ids []string) {
	goes := make(map[string]bool, len(ids))
	for _, id := range ids {
		goes[id] = true
		delete(w.hidden, id)
	}
	w.events = slices.DeleteFunc(w.events, func(e memory.Event) bool {
		if goes[e.ID] {
			w.size -= eventTokens(e)
		}
		return goes[e.ID]
	})
}

// trim drops the oldest turns, whole, where the window is over its budget: down
// to three quarters of it, so that the beginning of the prompt then stays the
// same for many turns. It returns the seq of the last event that it dropped; 0
// for none.
func (w *window) trim(budget int) (gone int64) {
	if w.size <= budget {
		return 0
	}
	for target := budget / 4 * 3; w.size > target && len(w.events) > 0; {
		n := 1
		for n < len(w.events) && !startsTurn(w.events[n-1], w.events[n]) {
			n++
		}
		for _, e := range w.events[:n] {
			w.size -= eventTokens(e)
			delete(w.hidden, e.ID)
		}
		gone = w.events[n-1].Seq
		w.events = slices.Clone(w.events[n:])
	}
	return gone
}

// startsTurn reports whether a turn begins between two events: where the run
// changes, or, for turns that no run made, at a user's message.
func startsTurn(before, e memory.Event) bool {
	if e.RunID != before.RunID {
		return true
	}
	return e.RunID == "" && e.Type == memory.UserMessage && !continued(e)
}

// turns returns the events in view, oldest first.
func (w *window) turns() []memory.Event {
	if len(w.hidden) == 0 {
		return w.events
	}
	return slices.DeleteFunc(slices.Clone(w.events), func(e memory.Event) bool { return w.hidden[e.ID] })
}

// since returns the seq of the oldest event in view; next where there is none.
func (w *window) since(next int64) int64 {
	if len(w.events) == 0 {
		return next
	}
	return w.events[0].Seq
}

// behind returns a function that estimates the tokens of the events behind a seq,
// of those in view now.
func (w *window) behind() func(seq int64) int {
	events := w.events
	return func(seq int64) int {
		total := 0
		for _, e := range events {
			if e.Seq > seq {
				total += eventTokens(e)
			}
		}
		return total
	}
}
