package events

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Damage is a range of bytes of one of the log's files that holds no event.
type Damage = journal.Damage

// FileReport and Torn are parts of a Report.
type (
	FileReport = journal.FileReport
	Torn       = journal.Torn
)

// Report is what Verify found.
type Report = journal.Report

const (
	maxReadBytes = 32 << 20 // of lines in one answer of Read
	maxDamage    = 1000     // ranges remembered by a reader
)

// Reader reads an event log. It creates nothing, and an agent without a log has
// an empty one. Its methods are safe for concurrent use, while this and other
// processes append.
type Reader struct {
	journal *journal.Reader
	log     zerolog.Logger

	mu     sync.Mutex
	damage []Damage
}

// OpenReader returns a reader of the log in dir, which need not exist. Close it.
func OpenReader(dir string, log zerolog.Logger) *Reader {
	return &Reader{journal: journal.NewReader(dir), log: log}
}

// Close closes the reader's files.
func (r *Reader) Close() error { return r.journal.Close() }

// Read returns up to limit events behind the cursor, oldest first, and the
// cursor behind the last of them. Only durable events are returned. No events
// means that there are none now; fewer than limit does not, since one answer is
// kept below 32 MiB.
//
// Order is seq. The cursor's file and offset are used only where they prove
// right, so a cursor of a seq alone reads the same, somewhat later. Damage is
// passed over, logged, and kept for Damage.
func (r *Reader) Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error) {
	if limit < 1 {
		return nil, after, &memory.FieldError{Field: "limit", Reason: "must be 1 or more"}
	}
	var events []memory.Event
	bytes := 0
	next, damage, err := r.journal.Read(ctx, after, func(line journal.Line) (bool, error) {
		e, err := decode(line.Data)
		if err != nil {
			r.note(Damage{File: line.File, Offset: line.Offset, Length: int64(len(line.Data)) + 1, Reason: err.Error()})
			return true, nil
		}
		events = append(events, e)
		bytes += len(line.Data)
		return len(events) < limit && bytes < maxReadBytes, nil
	})
	r.note(damage...)
	if err != nil {
		return nil, after, err
	}
	return events, next, nil
}

// Tail returns the last n events, oldest first.
func (r *Reader) Tail(ctx context.Context, n int) ([]memory.Event, error) {
	last, err := r.LastSeq()
	if err != nil {
		return nil, err
	}
	for back := int64(n); ; back *= 2 {
		events, err := r.readAll(ctx, max(0, last-back), n)
		if err != nil || len(events) == n || back >= last {
			return events, err
		}
	}
}

// readAll returns the last n of the events behind seq.
func (r *Reader) readAll(ctx context.Context, seq int64, n int) ([]memory.Event, error) {
	var last []memory.Event
	for at := (memory.Cursor{Seq: seq}); ; {
		events, next, err := r.Read(ctx, at, 1000)
		if err != nil || len(events) == 0 {
			return last, err
		}
		last = append(last, events...)
		last = slices.Clone(last[max(0, len(last)-n):])
		at = next
	}
}

// LastSeq returns the highest seq that a durable event has been given, 0 for an
// empty log.
func (r *Reader) LastSeq() (int64, error) { return r.journal.LastSeq() }

// FirstDay returns the UTC day on which the first event of the log was written; the
// zero time for an empty log.
func (r *Reader) FirstDay() (time.Time, error) { return r.journal.FirstDay() }

// Damage returns the damaged ranges that reading has met, in the order met, at
// most 1000. Verify finds all.
func (r *Reader) Damage() []Damage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.damage)
}

// note remembers and logs damage that was not met before.
func (r *Reader) note(damage ...Damage) {
	if len(damage) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range damage {
		if len(r.damage) >= maxDamage || slices.Contains(r.damage, d) {
			continue
		}
		r.damage = append(r.damage, d)
		r.log.Error().Str("file", r.journal.Path(d.File)).Int64("offset", d.Offset).Int64("bytes", d.Length).
			Str("reason", d.Reason).Msg("damage in the event log passed over")
	}
}

// Verify reads the whole log and reports what is damaged or missing.
func (r *Reader) Verify(ctx context.Context) (Report, error) {
	return r.journal.Verify(ctx, func(line journal.Line) error {
		_, err := decode(line.Data)
		return err
	})
}
