package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Options says how a journal is opened. Only Now has no default.
type Options struct {
	Now        func() time.Time // its UTC day names the segment
	Log        zerolog.Logger   // repairs and failures; never contents
	QueueBytes int              // most bytes queued; 4 MiB if 0
	QueueWait  time.Duration    // how long Append waits for room in the queue; 250 ms if 0
}

// Stats counts what an open journal has done.
type Stats struct {
	Appended     int64 `json:"appended"`     // lines queued
	Flushed      int64 `json:"flushed"`      // lines made durable
	Bytes        int64 `json:"bytes"`        // of those
	Groups       int64 `json:"groups"`       // writes that they took
	Failures     int64 `json:"failures"`     // groups that could not be written
	Backpressure int64 `json:"backpressure"` // lines refused because the queue was full
	Lost         int64 `json:"lost"`         // lines that were queued and could not be written before Close
	Torn         int64 `json:"torn"`         // torn tails moved aside
}

// LostError is returned by Close where lines that were queued could not be
// written. It is ErrUnavailable.
type LostError struct {
	Objects [][]byte // as they were given to Append
	Err     error    // of the last attempt
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%d lines could not be written before the log was closed: %v", len(e.Objects), e.Err)
}

// Unwrap gives the cause and its kind.
func (e *LostError) Unwrap() []error { return []error{memory.ErrUnavailable, e.Err} }

// Journal is a journal open for writing. Its methods are safe for concurrent
// use. Close it.
type Journal struct {
	queue   *queue
	stopped chan struct{} // closed when the writer has ended
	lost    error         // set before stopped is closed

	mu    sync.Mutex
	stats Stats
}

// Open opens the journal in dir, creates the directory if need be, and moves a
// torn tail aside. It waits for the lock of another process until ctx is done.
func Open(ctx context.Context, dir string, o Options) (*Journal, error) {
	if o.Now == nil {
		return nil, memory.Errorf(memory.ErrInternal, "open journal: no clock")
	}
	w, err := newWriter(ctx, dir, o.Now, o.Log)
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", dir, err)
	}
	return start(w, o), nil
}

// start starts the goroutine that owns w from then on.
func start(w *writer, o Options) *Journal {
	if o.QueueBytes == 0 {
		o.QueueBytes = 4 << 20
	}
	if o.QueueWait == 0 {
		o.QueueWait = 250 * time.Millisecond
	}
	j := &Journal{queue: newQueue(o.QueueBytes, o.QueueWait), stopped: make(chan struct{}), stats: Stats{Torn: w.torn}}
	go j.run(w)
	return j
}

// Append queues JSON objects, which will stand in the log together and in this
// order, and returns at once. Each has at most MaxObject bytes, no newline and no
// members seq or crc, and belongs to the journal from then on. A full queue is waited
// for as long as Options.QueueWait, then the answer is ErrBackpressure and
// nothing is queued.
//
// What is queued is written as soon as the disk takes it: after a failure it is
// tried again until Close.
func (j *Journal) Append(ctx context.Context, objects ...[]byte) error {
	e, err := newEntry(objects)
	if err != nil {
		return err
	}
	return j.put(ctx, e)
}

// Flush returns nil once everything that was appended before is durable, and an
// error as soon as writing fails: the lines stay queued and are tried again.
func (j *Journal) Flush(ctx context.Context) error {
	_, err := j.wait(ctx, &entry{})
	return err
}

// Write appends objects and waits until they are durable. It returns the seq of
// the first; the others follow without a gap. After an error nothing of them is
// in the log, nor will be, unless the error says that it is not known.
func (j *Journal) Write(ctx context.Context, objects ...[]byte) (first int64, err error) {
	e, err := newEntry(objects)
	if err != nil {
		return 0, err
	}
	return j.wait(ctx, e)
}

func newEntry(objects [][]byte) (*entry, error) {
	e := &entry{objects: objects}
	for _, object := range objects {
		if len(object) > MaxObject {
			return nil, memory.Errorf(memory.ErrInvalid, "an object of %d bytes is longer than the log takes (%d)", len(object), MaxObject)
		}
		e.bytes += len(object) + maxSeal
	}
	return e, nil
}

func (j *Journal) put(ctx context.Context, e *entry) error {
	err := j.queue.put(ctx, e)
	lines := int64(len(e.objects))
	j.count(func(s *Stats) {
		switch {
		case err == nil:
			s.Appended += lines
		case errors.Is(err, ErrBackpressure):
			s.Backpressure += lines
		}
	})
	return err
}

// wait queues e and returns its outcome.
func (j *Journal) wait(ctx context.Context, e *entry) (int64, error) {
	e.done = make(chan error, 1)
	if err := j.put(ctx, e); err != nil {
		return 0, err
	}
	select {
	case err := <-e.done:
		return e.first, err
	case <-ctx.Done():
	}
	if j.queue.withdraw(e) {
		return 0, context.Cause(ctx)
	}
	err := <-e.done // being written now
	return e.first, err
}

// Close writes what is queued and closes the files. Calls that come later, or
// wait for room, get ErrClosed. Where something queued cannot be written, the
// error is a LostError. A second Close returns the same.
func (j *Journal) Close() error {
	j.queue.close()
	<-j.stopped
	return j.lost
}

// Stats returns what the journal has done since it was opened.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

func (j *Journal) count(change func(*Stats)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.stats)
}
