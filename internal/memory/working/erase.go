package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// ActionErase is the action of a change that takes text away for good. It
// suppresses every event that goes.
const ActionErase = "erase"

const (
	erasedItems  = 2000  // in one change, so that its event is not too long
	erasedEvents = 50000 // likewise
)

// Erase takes the text of items away, with their history, and stops the recall of
// events: as changes of the log, like any other. It says nothing of the earlier
// changes, which still hold the text in the log: EditChange takes it out there,
// and Purge out of what the database keeps of them. Doing it again changes nothing.
func (s *Store) Erase(ctx context.Context, t *erasure.Target) error {
	items, events := append(slices.Clone(t.Items), t.Cleaned...), t.Events
	for len(items) > 0 || len(events) > 0 {
		some, part := items[:min(len(items), erasedItems)], events[:min(len(events), erasedEvents)]
		items, events = items[len(some):], events[len(part):]
		err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
			for _, it := range some {
				if err := p.erase(ctx, it, t); err != nil {
					return nil, err
				}
			}
			gone, err := unsuppressed(ctx, p.tx, part)
			if err != nil || len(p.order)+len(gone) == 0 {
				return nil, err
			}
			return &memory.Change{Action: ActionErase, By: string(memory.Actor(ctx)), Suppress: gone}, nil
		})
		if err != nil {
			return fmt.Errorf("erase items: %w", err)
		}
	}
	return nil
}

// erase makes an item a tombstone; of one that stays it takes out what it quotes.
func (p *plan) erase(ctx context.Context, named erasure.Item, t *erasure.Target) error {
	now, err := p.peek(ctx, named.ID)
	if isNone(err) || err == nil && now.Status == memory.Forgotten {
		return nil
	}
	if err != nil {
		return err
	}
	if !t.Item(named.ID) {
		number, err := numberOf(now.Handle)
		if err != nil {
			return err
		}
		versions, err := versionsOf(ctx, p.tx, number)
		if err != nil || !slices.ContainsFunc(versions, func(v Revision) bool { return quotes(v.Item, t) }) {
			return err // done before
		}
	}
	it, err := p.touch(ctx, named.ID)
	if err != nil {
		return err
	}
	if t.Item(named.ID) {
		*it = tombstone(*it)
		it.UpdatedAt = p.at
		return nil
	}
	clean(it)
	return nil
}

// tombstone is what is left of an item.
func tombstone(it memory.Item) memory.Item {
	return memory.Item{ID: it.ID, Handle: it.Handle, Kind: memory.KindNote, Importance: 1, Status: memory.Forgotten, Trust: it.Trust,
		CreatedAt: it.CreatedAt, UpdatedAt: it.UpdatedAt, Version: it.Version, Evidence: []memory.Evidence{}}
}

// quotes reports whether a version of an item that is cleaned says what is erased. Its
// note counts whatever it says: the words of what it is of may not be known any more.
func quotes(it memory.Item, t *erasure.Target) bool {
	raw, err := json.Marshal(it)
	if err != nil {
		return true // it came out of JSON
	}
	return hasNote(it) || t.Finder().In(raw)
}

// Quotes reports whether a version of an item says what is erased, and whether
// that can be taken out of it.
func Quotes(it memory.Item, t *erasure.Target) (does, curable bool) {
	if !quotes(it, t) {
		return false, false
	}
	clean(&it)
	return true, !quotes(it, t)
}

// hasNote reports whether an item says what it took the place of said.
func hasNote(it memory.Item) bool {
	for _, text := range []string{it.Title, it.Content} {
		if _, note := memory.CutNote(text); note != "" {
			return true
		}
	}
	return false
}

// clean takes an item's notes out of it, where it says something itself.
func clean(it *memory.Item) {
	for _, text := range []*string{&it.Title, &it.Content} {
		if own, _ := memory.CutNote(*text); own != "" {
			*text = own
		}
	}
}

func unsuppressed(ctx context.Context, q querier, events []erasure.Event) ([]string, error) {
	var ids []string
	for _, e := range events {
		var there bool
		if err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM suppressed WHERE event_id = ?)`, e.ID).Scan(&there); err != nil {
			return nil, err
		}
		if !there {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// EditChange takes the text of what is erased out of a change as the log carries
// it. changed is false where there is none.
func EditChange(carried any, t *erasure.Target) (edited any, changed bool, err error) {
	ch, err := DecodeChange(carried)
	if err != nil {
		return nil, false, err
	}
	for i, it := range ch.Items {
		switch {
		case t.Item(it.ID):
			if it.Status != memory.Forgotten {
				ch.Items[i], changed = tombstone(it), true
				ch.Items[i].Evidence = left(it.Evidence, t)
			}
		case t.IsCleaned(it.ID) && quotes(it, t):
			it.Title, it.Content, it.Reason, it.Metadata, it.Evidence = erasure.Mark, erasure.Mark, "", nil, left(it.Evidence, t)
			ch.Items[i], changed = it, true
		}
	}
	if t.Finder().In([]byte(ch.Why)) {
		ch.Why, changed = "", true
	}
	if ch.Checkpoint != nil && editRecord(ch.Checkpoint, t) {
		changed = true
	}
	if !changed {
		return nil, false, nil
	}
	edited, err = encodeChange(ch)
	return edited, err == nil, err
}

// left are the ids of the events that an item rested on and that stay, so that who
// erases those later still finds what was made of them.
func left(list []memory.Evidence, t *erasure.Target) []memory.Evidence {
	ids := []memory.Evidence{}
	for _, ev := range list {
		if !t.EventID(ev.EventID) {
			ids = append(ids, memory.Evidence{EventID: ev.EventID, Seq: ev.Seq})
		}
	}
	return ids
}

// editRecord takes out of the record of a batch what was refused of it, where the
// batch held what is erased.
func editRecord(c *memory.Checkpoint, t *erasure.Target) (changed bool) {
	touches := t.Touches(c.Range.First, c.Range.Last)
	for i, r := range c.Refused {
		if r.Entry != erasure.Mark && (touches || t.Finder().In([]byte(r.Entry+"\n"+r.Reason))) {
			c.Refused[i] = memory.Refusal{Entry: erasure.Mark, Reason: t.Finder().BlotText(r.Reason)}
			changed = true
		}
	}
	if c.Parked != nil && t.Finder().In([]byte(c.Parked.Reason)) {
		c.Parked.Reason, changed = erasure.Mark, true
	}
	return changed
}

// Purge takes what EditChange takes out of the log's changes out of what the
// database keeps of them, and empties the write-ahead log.
func (s *Store) Purge(ctx context.Context, t *erasure.Target) error {
	err := s.locked(ctx, func() error {
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		return s.update(ctx, func(tx *sql.Tx) error {
			return errors.Join(purgeRecords(ctx, tx, t), purgeReasons(ctx, tx, t), purgeParked(ctx, tx, t))
		})
	})
	if err != nil {
		return fmt.Errorf("purge working memory: %w", err)
	}
	return s.noticed(s.db.Fold(ctx))
}

func purgeRecords(ctx context.Context, tx *sql.Tx, t *erasure.Target) error {
	bodies := map[int64]string{}
	err := each(ctx, tx, `SELECT seq, body FROM checkpoints`, func(scan func(...any) error) error {
		var seq int64
		var body string
		var c memory.Checkpoint
		if err := scan(&seq, &body); err != nil {
			return err
		}
		if len(t.Events) == 0 && !t.Finder().In([]byte(body)) {
			return nil
		}
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			return err
		}
		if !editRecord(&c, t) {
			return nil
		}
		raw, err := json.Marshal(c)
		bodies[seq] = string(raw)
		return err
	})
	for seq, body := range bodies {
		if err != nil {
			break
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET body = ?, sum = ? WHERE seq = ?`, body, sumOf(body), seq)
	}
	return err
}

// purgeReasons empties the reasons of versions that quote what is erased.
func purgeReasons(ctx context.Context, tx *sql.Tx, t *erasure.Target) error {
	type key struct{ number, version int64 }
	var hits []key
	err := each(ctx, tx, `SELECT number, version, why FROM revisions WHERE why <> ''`, func(scan func(...any) error) error {
		var k key
		var why string
		err := scan(&k.number, &k.version, &why)
		if err == nil && t.Finder().In([]byte(why)) {
			hits = append(hits, k)
		}
		return err
	})
	for _, k := range hits {
		if err != nil {
			break
		}
		var seq, at int64
		var action, by, item string
		err = tx.QueryRowContext(ctx, `SELECT seq, action, by, at, item FROM revisions WHERE number = ? AND version = ?`, k.number, k.version).
			Scan(&seq, &action, &by, &at, &item)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE revisions SET why = '', sum = ? WHERE number = ? AND version = ?`, sumOf(seq, action, by, "", at, item), k.number, k.version)
		}
	}
	return err
}

func purgeParked(ctx context.Context, tx *sql.Tx, t *erasure.Target) error {
	notes, err := parkedRanges(ctx, tx)
	for _, p := range notes {
		if err != nil {
			break
		}
		if t.Finder().In([]byte(p.Reason)) {
			p.Reason = erasure.Mark
			err = park(ctx, tx, p)
		}
	}
	return err
}

// each hands over the rows of a query without arguments.
func each(ctx context.Context, tx *sql.Tx, query string, row func(scan func(...any) error) error) error {
	return eachRow(ctx, tx, row, query)
}

// eachRow hands over the rows of a query.
func eachRow(ctx context.Context, tx *sql.Tx, row func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Seize takes a lease whoever holds it: what the other then does under it is
// refused. It is for what must not wait, such as an erasure. A change that is being
// made under the lease is made when Seize returns, or is refused.
func (s *Store) Seize(ctx context.Context, name, holder string, length time.Duration) (l Lease, err error) {
	err = s.locked(ctx, func() (err error) {
		l, err = s.acquire(ctx, name, holder, length, true)
		return err
	})
	return l, err
}

// Fenced returns ErrConflict where the lease has gone to somebody else.
func (s *Store) Fenced(ctx context.Context, l Lease) error {
	return s.view(ctx, func(tx *sql.Tx) error { return holds(ctx, tx, l) })
}
