package working

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

const (
	readChunk    = 256  // events read from the log at a time
	persistEvery = 1000 // events without a change after which the position is stored all the same
)

// position is how far the log has been applied.
type position struct {
	at    memory.Cursor
	turns int64 // turn events up to there
}

// state is the row of the table state.
type state struct {
	applied position
	cursor  memory.Cursor // everything up to here is distilled or parked
	passed  int64         // turn events up to there
}

// readState returns the state; the zero one of an empty database.
func readState(ctx context.Context, q querier) (state, error) {
	var st state
	var sum int64
	err := q.QueryRowContext(ctx, `SELECT applied_seq, applied_file, applied_offset, turns, cursor_seq, cursor_file, cursor_offset, passed, sum FROM state`).
		Scan(&st.applied.at.Seq, &st.applied.at.File, &st.applied.at.Offset, &st.applied.turns,
			&st.cursor.Seq, &st.cursor.File, &st.cursor.Offset, &st.passed, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return state{}, nil
	case err == nil && sum != sumOf(st.values()...):
		return state{}, damaged("the position in the log")
	}
	return st, err
}

func (st state) values() []any {
	a, c := st.applied.at, st.cursor
	return []any{a.Seq, a.File, a.Offset, st.applied.turns, c.Seq, c.File, c.Offset, st.passed}
}

func writeState(ctx context.Context, tx *sql.Tx, st state) error {
	values := st.values()
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(values, sumOf(values...))...)
	return err
}

// logError is a failure of the event log, as against one of the database.
type logError struct{ err error }

func (e *logError) Error() string { return "event log: " + e.err.Error() }
func (e *logError) Unwrap() error { return e.err }

// readLog reads the next events behind a cursor.
func (s *Store) readLog(ctx context.Context, after memory.Cursor) ([]memory.Event, memory.Cursor, error) {
	events, next, err := s.events.Read(ctx, after, readChunk)
	if err == nil && len(events) > 0 && next.Seq != events[len(events)-1].Seq {
		err = memory.Errorf(memory.ErrInternal, "reading behind event %d ends at event %d with a cursor at %d", after.Seq, events[len(events)-1].Seq, next.Seq)
	}
	if err != nil {
		return nil, after, &logError{err}
	}
	return events, next, nil
}

// catchUp applies the changes of the log that the database has not seen. The
// caller holds the lock.
func (s *Store) catchUp(ctx context.Context) error {
	var st state
	if err := s.view(ctx, func(tx *sql.Tx) (err error) { st, err = readState(ctx, tx); return err }); err != nil {
		return err
	}
	pos, stored := st.applied, st.applied.at.Seq
	if s.ahead.at.Seq > pos.at.Seq {
		pos = s.ahead
	}
	for {
		events, next, err := s.readLog(ctx, pos.at)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			s.ahead = pos
			s.behind.Store(nil)
			return nil
		}
		changes, turns, err := changesOf(events)
		if err != nil {
			return err
		}
		pos = position{at: next, turns: pos.turns + turns}
		if len(changes) == 0 && next.Seq-stored < persistEvery {
			continue
		}
		if err := s.update(ctx, func(tx *sql.Tx) error { return s.applyAll(ctx, tx, changes, pos) }); err != nil {
			return fmt.Errorf("apply the log up to event %d: %w", next.Seq, err)
		}
		stored = next.Seq
	}
}

// logged is a change and the sequence number of its event.
type logged struct {
	seq    int64
	change memory.Change
}

// changesOf returns the changes among events, and how many turns there are.
func changesOf(events []memory.Event) (changes []logged, turns int64, err error) {
	for _, e := range events {
		if e.Type.IsTurn() {
			turns++
			continue
		}
		carried, has := e.Metadata[memory.MetaChange]
		if !has {
			continue
		}
		ch, err := DecodeChange(carried)
		if err != nil {
			return nil, 0, fmt.Errorf("event %d (%s): %w", e.Seq, e.ID, err)
		}
		changes = append(changes, logged{seq: e.Seq, change: ch})
	}
	return changes, turns, nil
}

// DecodeChange reads a Change from the metadata of an event. Members that this
// build does not know would be lost, so they are refused.
func DecodeChange(carried any) (memory.Change, error) {
	raw, err := json.Marshal(carried)
	if err != nil {
		return memory.Change{}, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var ch memory.Change
	if err := dec.Decode(&ch); err != nil {
		return memory.Change{}, memory.WithHint(memory.Errorf(memory.ErrConflict, "a change that this build cannot read: %w", err),
			"it was written by a newer openclawssy: install that version or a later one")
	}
	return ch, nil
}

// encodeChange makes ch plain JSON data, so that the log treats it as such.
func encodeChange(ch memory.Change) (any, error) {
	raw, err := json.Marshal(ch)
	if err != nil {
		return nil, err
	}
	var data any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&data); err != nil {
		return nil, err
	}
	return plainNumbers(data)
}

// plainNumbers makes whole numbers int64, so that none is written with an
// exponent, and other numbers float64.
func plainNumbers(data any) (any, error) {
	var err error
	switch v := data.(type) {
	case map[string]any:
		for name := range v {
			if v[name], err = plainNumbers(v[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = plainNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	return data, nil
}

// applyAll applies changes in order and stores the position that they lead to.
func (s *Store) applyAll(ctx context.Context, tx *sql.Tx, changes []logged, to position) error {
	for _, c := range changes {
		if err := apply(ctx, tx, s.opts.Agent, c.seq, c.change); err != nil {
			return fmt.Errorf("change %d: %w", c.seq, err)
		}
	}
	st, err := readState(ctx, tx)
	if err != nil {
		return err
	}
	st.applied = to
	return writeState(ctx, tx, st)
}

// apply brings the database from the state before a change to the state after
// it. It depends on nothing but its arguments, so that replaying the log makes
// the same database again.
func apply(ctx context.Context, tx *sql.Tx, agent memory.AgentID, seq int64, ch memory.Change) error {
	for _, it := range ch.Items {
		if err := putItem(ctx, tx, agent, it); err != nil {
			return fmt.Errorf("%s: %w", it.Handle, err)
		}
		if err := putRevision(ctx, tx, seq, ch, it); err != nil {
			return fmt.Errorf("revision of %s: %w", it.Handle, err)
		}
	}
	for _, id := range ch.Suppress {
		if _, err := tx.ExecContext(ctx, `INSERT INTO suppressed VALUES (?) ON CONFLICT DO NOTHING`, id); err != nil {
			return err
		}
	}
	for _, id := range ch.Restore {
		if _, err := tx.ExecContext(ctx, `DELETE FROM suppressed WHERE event_id = ?`, id); err != nil {
			return err
		}
	}
	if ch.Checkpoint == nil {
		return nil
	}
	return putCheckpoint(ctx, tx, seq, *ch.Checkpoint)
}

// putItem stores an item whole, with its evidence, full-text rows and bands. What of
// those is as it was is left alone: most changes mark an item or take it out of use,
// and its words would cost many times as much.
func putItem(ctx context.Context, tx *sql.Tx, agent memory.AgentID, it memory.Item) error {
	r, err := newRow(it)
	if err != nil {
		return err
	}
	var old memory.Item
	err = tx.QueryRowContext(ctx, `SELECT title, content, status FROM memory_items WHERE number = ?`, r.number).Scan(&old.Title, &old.Content, &old.Status)
	isNew := errors.Is(err, sql.ErrNoRows)
	if err != nil && !isNew {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO memory_items (`+itemColumns+`, sum, agent_id)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, append(r.values(), r.sum(), string(agent))...); err != nil {
		return err
	}
	if isNew || old.Title != it.Title || old.Content != it.Content {
		if err := putTerms(ctx, tx, r, isNew); err != nil {
			return err
		}
	}
	if isNew || old.Content != it.Content || isBanded(old.Status) != isBanded(it.Status) {
		if err := putBands(ctx, tx, r, isNew); err != nil {
			return err
		}
	}
	return putEvidence(ctx, tx, r, isNew)
}

// putTerms replaces the full-text rows of an item. A forgotten item has none.
func putTerms(ctx context.Context, tx *sql.Tx, r *row, isNew bool) error {
	if !isNew {
		for _, table := range []string{"memory_fts", "memory_prefix"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE rowid = ?`, r.number); err != nil {
				return err
			}
		}
	}
	if r.item.Status == memory.Forgotten {
		return nil
	}
	title, content := text.Index(r.item.Title), text.Index(r.item.Content)
	if _, err := tx.ExecContext(ctx, `INSERT INTO memory_fts (rowid, content, title) VALUES (?, ?, ?)`, r.number, content.Main, title.Main); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO memory_prefix (rowid, prefix) VALUES (?, ?)`, r.number, title.Prefix+" "+content.Prefix)
	return err
}

// isBanded reports whether items of a status are looked for when a duplicate is
// sought: what is superseded or forgotten is not.
func isBanded(status memory.Status) bool {
	return status != memory.Superseded && status != memory.Forgotten
}

// putBands replaces the bands of an item, which its content makes.
func putBands(ctx context.Context, tx *sql.Tx, r *row, isNew bool) error {
	if !isNew {
		if _, err := tx.ExecContext(ctx, `DELETE FROM bands WHERE number = ?`, r.number); err != nil {
			return err
		}
	}
	if !isBanded(r.item.Status) {
		return nil
	}
	bands, err := json.Marshal(LikenessOf(r.item).Bands())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO bands SELECT value, ? FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`, r.number, string(bands))
	return err
}

// putEvidence replaces the evidence of an item, unless it is as it was.
func putEvidence(ctx context.Context, tx *sql.Tx, r *row, isNew bool) error {
	if !isNew {
		same, err := hasEvidence(ctx, tx, r)
		if err != nil || same {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM evidence WHERE number = ?`, r.number); err != nil {
			return err
		}
	}
	for i, ev := range r.item.Evidence {
		if _, err := tx.ExecContext(ctx, `INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?)`,
			r.number, i, ev.EventID, ev.SourceID, ev.Seq, ev.Quote); err != nil {
			return err
		}
	}
	return nil
}

// hasEvidence reports whether an item's evidence is stored as it is.
func hasEvidence(ctx context.Context, tx *sql.Tx, r *row) (bool, error) {
	rows, err := tx.QueryContext(ctx, `SELECT event_id, source_id, seq, quote FROM evidence WHERE number = ? ORDER BY ordinal`, r.number)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	at, same := 0, true
	for ; rows.Next(); at++ {
		var ev memory.Evidence
		if err := rows.Scan(&ev.EventID, &ev.SourceID, &ev.Seq, &ev.Quote); err != nil {
			return false, err
		}
		same = same && at < len(r.item.Evidence) && ev == r.item.Evidence[at]
	}
	return same && at == len(r.item.Evidence), rows.Err()
}

// putRevision keeps a version. Forgetting takes every earlier one away.
func putRevision(ctx context.Context, tx *sql.Tx, seq int64, ch memory.Change, it memory.Item) error {
	number, err := numberOf(it.Handle)
	if err != nil {
		return err
	}
	// What quoted a forgotten item loses the versions that did.
	if it.Status == memory.Forgotten || ch.Action == ActionForget || ch.Action == ActionErase {
		if _, err := tx.ExecContext(ctx, `DELETE FROM revisions WHERE number = ?`, number); err != nil {
			return err
		}
	}
	body, err := json.Marshal(it)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		number, it.Version, seq, ch.Action, ch.By, ch.Why, ch.At.UnixMilli(), string(body), sumOf(seq, ch.Action, ch.By, ch.Why, ch.At.UnixMilli(), string(body)))
	return err
}

// putCheckpoint stores the record of a batch, moves the cursor, and settles and
// opens parked ranges.
func putCheckpoint(ctx context.Context, tx *sql.Tx, seq int64, c memory.Checkpoint) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)`,
		seq, c.ID, c.At.UnixMilli(), string(body), sumOf(string(body))); err != nil {
		return err
	}
	st, err := readState(ctx, tx)
	if err != nil {
		return err
	}
	if c.Cursor.Seq > st.cursor.Seq {
		st.cursor, st.passed = c.Cursor, st.passed+int64(c.Events)
		if err := writeState(ctx, tx, st); err != nil {
			return err
		}
	}
	for _, settled := range c.Unparked {
		if err := unpark(ctx, tx, settled); err != nil {
			return err
		}
	}
	if c.Parked == nil {
		return nil
	}
	return park(ctx, tx, *c.Parked)
}

func park(ctx context.Context, tx *sql.Tx, p memory.ParkedNote) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO parked VALUES (?, ?, ?, ?, ?)`, p.Range.First, p.Range.Last, p.Reason, p.Attempts,
		sumOf(p.Range.First, p.Range.Last, p.Reason, p.Attempts))
	return err
}

// unpark takes a range out of the parked ones; what lies before or after it
// stays parked.
func unpark(ctx context.Context, tx *sql.Tx, r memory.Range) error {
	notes, err := parkedRanges(ctx, tx)
	if err != nil {
		return err
	}
	for _, p := range notes {
		if p.Range.Last < r.First || p.Range.First > r.Last {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM parked WHERE first = ?`, p.Range.First); err != nil {
			return err
		}
		for _, rest := range []memory.Range{{First: p.Range.First, Last: r.First - 1}, {First: r.Last + 1, Last: p.Range.Last}} {
			if rest.First > rest.Last {
				continue
			}
			if err := park(ctx, tx, memory.ParkedNote{Range: rest, Reason: p.Reason, Attempts: p.Attempts}); err != nil {
				return err
			}
		}
	}
	return nil
}

// parkedRanges returns the parked ranges, oldest first.
func parkedRanges(ctx context.Context, q querier) ([]memory.ParkedNote, error) {
	rows, err := q.QueryContext(ctx, `SELECT first, last, reason, attempts, sum FROM parked ORDER BY first`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	notes := []memory.ParkedNote{}
	for rows.Next() {
		var p memory.ParkedNote
		var sum int64
		if err := rows.Scan(&p.Range.First, &p.Range.Last, &p.Reason, &p.Attempts, &sum); err != nil {
			return nil, err
		}
		if sum != sumOf(p.Range.First, p.Range.Last, p.Reason, p.Attempts) {
			return nil, damaged("a parked range")
		}
		notes = append(notes, p)
	}
	return notes, rows.Err()
}
