package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// ErrBackpressure is returned where the queue has stayed full: the disk does
// not keep up, or refuses. Nothing of what was offered has been queued.
var ErrBackpressure = memory.WithHint(memory.Errorf(memory.ErrUnavailable, "the queue of the log is full"), "the disk is slow, full or read-only; try again")

// ErrClosed is returned by a Journal that has been closed.
var ErrClosed = memory.Errorf(memory.ErrUnavailable, "the log is closed")

// entry is what one call asked for: objects that go into the log together and
// in order. One without objects is a barrier: it is done once all before it is.
type entry struct {
	objects [][]byte
	bytes   int
	number  int64      // counts entries as they come in
	first   int64      // seq of the first object, set before done
	done    chan error // the outcome, where somebody waits for it; has room for one
}

// queue holds the entries between the callers and the one writer.
type queue struct {
	mu      sync.Mutex
	limit   int // bytes
	wait    time.Duration
	entries []*entry
	bytes   int           // of entries, and of those that the writer has taken
	count   int64         // entries that ever came in
	attempt int64         // count when the writer's last attempt began
	closed  bool          // no more entries come in
	room    chan struct{} // closed, and replaced, when bytes shrinks; closed for good with the queue
	work    chan struct{} // has room for one: there is something to do
}

func newQueue(limit int, wait time.Duration) *queue {
	return &queue{limit: limit, wait: wait, room: make(chan struct{}), work: make(chan struct{}, 1)}
}

// put adds e at the end. It waits for room; an entry larger than the queue is
// let in when the queue is empty, and a barrier always.
func (q *queue) put(ctx context.Context, e *entry) error {
	var full <-chan time.Time
	for {
		room, err := q.tryPut(e)
		if room == nil {
			return err
		}
		if full == nil {
			timer := time.NewTimer(q.wait)
			defer timer.Stop()
			full = timer.C
		}
		select {
		case <-room:
		case <-full:
			return ErrBackpressure
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryPut adds e, or returns a channel that is closed once there may be room.
func (q *queue) tryPut(e *entry) (<-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	if q.bytes > 0 && q.bytes+e.bytes > q.limit && len(e.objects) > 0 {
		return q.room, nil
	}
	q.count++
	e.number = q.count
	q.entries = append(q.entries, e)
	q.bytes += e.bytes
	q.signal()
	return nil, nil
}

// signal wakes the writer.
func (q *queue) signal() {
	select {
	case q.work <- struct{}{}:
	default: // it has a signal waiting
	}
}

// begin starts an attempt to write, and reports whether there is anything to do.
func (q *queue) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attempt = q.count
	return len(q.entries) > 0
}

// take removes the oldest entries, together at least one and not many more than
// limit bytes. Their bytes stay counted until finish or restore.
func (q *queue) take(limit int) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.entries) && (n == 0 || size+q.entries[n].bytes <= limit) {
		size += q.entries[n].bytes
		n++
	}
	group := slices.Clone(q.entries[:n])
	clear(q.entries[:n])
	q.entries = q.entries[n:]
	if len(q.entries) > 0 {
		q.signal()
	}
	return group
}

// finish tells those who wait that their entries are in the log.
func (q *queue) finish(group []*entry) {
	for _, e := range group {
		if e.done != nil {
			e.done <- nil
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range group {
		q.bytes -= e.bytes
	}
	q.makeRoom()
}

// restore puts a group back that could not be written. Entries that somebody
// waits for are given up instead, with those behind them that were there when
// the attempt began: the caller learns at once, and knows that nothing of his is
// in the log. It returns how many stay.
func (q *queue) restore(group []*entry, err error) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := append(group, q.entries...)
	q.entries = nil
	for _, e := range all {
		if e.done == nil || e.number > q.attempt {
			q.entries = append(q.entries, e)
			continue
		}
		q.bytes -= e.bytes
		e.done <- err
	}
	if q.count > q.attempt {
		q.signal()
	}
	q.makeRoom()
	return len(q.entries)
}

// withdraw removes an entry that the writer has not taken yet.
func (q *queue) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.entries, e)
	if i < 0 {
		return false
	}
	q.entries = slices.Delete(q.entries, i, i+1)
	q.bytes -= e.bytes
	q.makeRoom()
	return true
}

// makeRoom wakes the callers that wait for room.
func (q *queue) makeRoom() {
	if q.closed {
		return
	}
	close(q.room)
	q.room = make(chan struct{})
}

// close lets nothing more in; what is queued stays for the writer. It reports
// whether it was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	close(q.room)
	q.signal()
	return true
}

// state reports whether the queue is closed and how many entries it holds.
func (q *queue) state() (closed bool, entries int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed, len(q.entries)
}
