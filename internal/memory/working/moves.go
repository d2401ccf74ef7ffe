package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Move is how an item came out of a span of time in which it was changed.
type Move struct {
	Item memory.Item // as it was at the end of the span
	// Before is the item as it was when the span began; nil where there was none, and
	// where its history is gone since it was forgotten or erased.
	Before *memory.Item
	New    bool // the item was made within the span
	// Last is what made the item what it is; its Item is the Move's.
	Last Revision
}

// Moves hands to visit every item that was changed since a time, by an event of the
// log after a seq, as it has come out of that, in the order of handles. It holds one
// item at a time, and keeps no writer waiting.
func (s *Store) Moves(ctx context.Context, since time.Time, after int64, visit func(Move) error) error {
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			WITH span AS (SELECT number, min(version) AS first, max(version) AS last FROM revisions WHERE at >= ? AND seq > ? GROUP BY number)
			SELECT r.number, span.first, r.seq, r.action, r.by, r.why, r.at, r.item, r.sum, coalesce(b.item, '')
			FROM span CROSS JOIN revisions r ON r.number = span.number AND r.version = span.last
			LEFT JOIN revisions b ON b.number = span.number AND b.version = span.first - 1
			ORDER BY span.number`, since.UnixMilli(), after)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			m, err := scanMove(rows)
			if err != nil {
				return err
			}
			if err := visit(m); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return fmt.Errorf("look through what was changed: %w", err)
	}
	return nil
}

func scanMove(rows *sql.Rows) (Move, error) {
	var m Move
	var number, first, at, sum int64
	var body, before string
	if err := rows.Scan(&number, &first, &m.Last.Seq, &m.Last.Action, &m.Last.By, &m.Last.Why, &at, &body, &sum, &before); err != nil {
		return m, err
	}
	if sum != sumOf(m.Last.Seq, m.Last.Action, m.Last.By, m.Last.Why, at, body) {
		return m, damaged("a version of " + handleOf(number))
	}
	m.Last.At, m.New = time.UnixMilli(at).UTC(), first == 1
	if err := json.Unmarshal([]byte(body), &m.Item); err != nil {
		return m, memory.Errorf(memory.ErrCorrupt, "a version of %s: %w", handleOf(number), err)
	}
	m.Last.Item = m.Item
	if before == "" {
		return m, nil
	}
	m.Before = &memory.Item{}
	if err := json.Unmarshal([]byte(before), m.Before); err != nil {
		return m, memory.Errorf(memory.ErrCorrupt, "a version of %s: %w", handleOf(number), err)
	}
	return m, nil
}

// ActiveAt returns how many items were active at each of some moments, which are in
// the order of time. Forgotten and erased items count as if they had never been.
func (s *Store) ActiveAt(ctx context.Context, moments []time.Time) ([]int, error) {
	counts := make([]int, len(moments))
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT number, at, item ->> '$.status' FROM revisions ORDER BY number, version`)
		if err != nil {
			return err
		}
		defer rows.Close()
		var of int64                // the item whose versions are read
		next := 0                   // the first moment that its versions have not reached
		active := false             // as of its last version
		pass := func(until int64) { // the state as it is holds at the moments before until
			for ; next < len(moments) && moments[next].UnixMilli() < until; next++ {
				if active {
					counts[next]++
				}
			}
		}
		const end = 1<<63 - 1
		for rows.Next() {
			var number, at int64
			var status sql.NullString
			if err := rows.Scan(&number, &at, &status); err != nil {
				return err
			}
			if number != of {
				pass(end)
				of, next, active = number, 0, false
			}
			pass(at)
			active = status.String == string(memory.Active)
		}
		pass(end)
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("count what was active: %w", err)
	}
	return counts, nil
}

// Reviews counts the items that a person should look at.
type Reviews struct {
	Marked      int // active, and to be verified
	Quarantined int
}

// ForReview returns at most limit items that a person should look at, the most
// important first, of equal ones the oldest, and how many there are.
func (s *Store) ForReview(ctx context.Context, limit int) (items []memory.Item, n Reviews, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		items, err = loadItems(ctx, tx, `WHERE status = 'quarantined' OR status = 'active' AND verify <> '' ORDER BY importance DESC, number LIMIT ?`, limit)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM memory_items WHERE status = 'active' AND verify <> ''),
			(SELECT count(*) FROM memory_items WHERE status = 'quarantined')`).Scan(&n.Marked, &n.Quarantined)
	})
	if err != nil {
		return nil, Reviews{}, fmt.Errorf("look up what needs a review: %w", err)
	}
	return items, n, nil
}
