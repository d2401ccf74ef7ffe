// Package events is the event log of one agent: what happened, in order, and the
// only thing that the agent's memory cannot be rebuilt without. It keeps events
// as JSON lines in a journal, one file a UTC day:
//
//	{"id":"evt_01K…","type":"user_message","text":"…","session_id":"…","run_id":"…",
//	 "timestamp":"2026-05-08T13:56:00+02:00","origin":"user","metadata":{…},"seq":41,"crc":"9a3c01fe"}
//
// Secrets are taken out before an event is queued, so that neither the queue nor
// any file holds one.
package events

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// ErrBackpressure is returned by Append and Write where the queue has stayed
// full. It is ErrUnavailable; none of the call's events will be in the log.
var ErrBackpressure = journal.ErrBackpressure

// ErrClosed is returned by a Log that has been closed. It is ErrUnavailable.
var ErrClosed = journal.ErrClosed

// redactor takes secrets out of a text, and out of every text within a value. A
// map[string]any stays one. Asks returns the end of a text that asks for a secret, and
// Answer is Text of what is said to that: it may be a secret by nothing else.
type redactor interface {
	Text(string) string
	Value(any) any
	Asks(string) string
	Answer(question, text string) string
}

// Options says how a log is opened. Now, NewID and Redact are required.
type Options struct {
	Now        func() time.Time
	NewID      func() string // a fresh ULID; called by many goroutines at once
	Redact     redactor
	Log        zerolog.Logger
	QueueBytes int           // most bytes queued; 4 MiB if 0
	QueueWait  time.Duration // how long Append waits for room; 250 ms if 0
	// Dropped is told of events that were refused because the queue was full, or lost
	// when the log closed. It must return at once, and may be nil.
	Dropped func(n int64)
}

// Log is an agent's event log, open for appending and reading. Its methods are
// safe for concurrent use, and several processes may have the same log open.
// Close it.
type Log struct {
	*Reader
	journal *journal.Journal
	now     func() time.Time
	newID   func() string
	redact  redactor
	log     zerolog.Logger
	dropped func(n int64)
	closing sync.Once // of telling what was lost

	questions questions
}

// Open opens the log in dir, creates the directory if need be and repairs a torn
// tail. It waits for another process's lock until ctx is done. Where the
// directory cannot be written the error is ErrUnavailable; OpenReader works on.
func Open(ctx context.Context, dir string, o Options) (*Log, error) {
	if o.Now == nil || o.NewID == nil || o.Redact == nil {
		return nil, memory.Errorf(memory.ErrInternal, "open the event log: Now, NewID and Redact are required")
	}
	j, err := journal.Open(ctx, dir, journal.Options{Now: o.Now, Log: o.Log, QueueBytes: o.QueueBytes, QueueWait: o.QueueWait})
	if err != nil {
		return nil, err
	}
	return &Log{Reader: OpenReader(dir, o.Log), journal: j, now: o.Now, newID: o.NewID, redact: o.Redact, log: o.Log, dropped: o.Dropped}, nil
}

// Append queues events and returns them as they will stand in the log: with id
// and time, redacted, a text over memory.MaxEventText in parts. They stand
// together and in this order. Their Seq is 0, since it is known only once they
// are written: other processes append to the same log.
//
// A nil error means queued, not durable; Flush makes it so. A full queue is
// waited for as long as Options.QueueWait, then the answer is ErrBackpressure.
// An event that breaks a rule is a FieldError. After any error none of the
// events is queued.
func (l *Log) Append(ctx context.Context, events ...memory.Event) ([]memory.Event, error) {
	ready, objects, err := l.encode(events)
	if err != nil || len(ready) == 0 {
		return nil, err
	}
	if err := l.journal.Append(ctx, objects...); err != nil {
		return nil, l.refused(ready, err)
	}
	return ready, nil
}

// Write appends events and returns them once they are durable, with their Seq.
// After an error none of them is in the log, nor will be, unless the error says
// that it is not known.
func (l *Log) Write(ctx context.Context, events ...memory.Event) ([]memory.Event, error) {
	ready, objects, err := l.encode(events)
	if err != nil || len(ready) == 0 {
		return nil, err
	}
	first, err := l.journal.Write(ctx, objects...)
	if err != nil {
		return nil, l.refused(ready, err)
	}
	for i := range ready {
		ready[i].Seq = first + int64(i)
	}
	return ready, nil
}

// Flush returns nil once everything that was appended before is durable. An
// error means that the disk refuses now: what was appended stays queued and is
// tried again until Close.
func (l *Log) Flush(ctx context.Context) error { return l.journal.Flush(ctx) }

func (l *Log) encode(events []memory.Event) (ready []memory.Event, objects [][]byte, err error) {
	for _, e := range events {
		parts, err := l.prepare(e)
		if err != nil {
			return nil, nil, err
		}
		for _, part := range parts {
			object, err := appendEvent(make([]byte, 0, len(part.Text)+len(part.Text)/16+384), part)
			if err != nil {
				return nil, nil, err
			}
			if len(object) > journal.MaxObject {
				return nil, nil, &memory.FieldError{Field: "metadata", Reason: "must be at most 8 MiB together with the text"}
			}
			objects = append(objects, object)
		}
		ready = append(ready, parts...)
	}
	return ready, objects, nil
}

// refused logs the ids of events that found no room, and returns err.
func (l *Log) refused(events []memory.Event, err error) error {
	if errors.Is(err, ErrBackpressure) {
		l.log.Warn().Err(err).Strs("ids", ids(events)).Msg("events not taken into the log")
		l.drop(int64(len(events)))
	}
	return err
}

func (l *Log) drop(n int64) {
	if l.dropped != nil && n > 0 {
		l.dropped(n)
	}
}

func ids(events []memory.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

// Close writes what is queued and closes the log; calls that come later answer
// ErrClosed. Events that were queued and could not be written are logged by id,
// and the error says how many there are. A second Close returns the same.
func (l *Log) Close() error {
	err := l.journal.Close()
	l.closing.Do(func() { l.drop(l.Stats().Lost) })
	var lost *journal.LostError
	if errors.As(err, &lost) {
		var events []memory.Event
		for _, object := range lost.Objects {
			if e, undecodable := decode(object); undecodable == nil {
				events = append(events, e)
			}
		}
		l.log.Error().Err(err).Strs("ids", ids(events)).Msg("events lost")
	}
	return errors.Join(err, l.Reader.Close())
}

// Stats returns what was appended, flushed, refused and repaired since Open.
func (l *Log) Stats() journal.Stats { return l.journal.Stats() }
