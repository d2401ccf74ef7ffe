package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Passages returns the numbers of the passages of events, by event id; suppressed
// ones too. An event without any is left out.
func (s *Store) Passages(ctx context.Context, eventIDs []string) (map[string][]int64, error) {
	list, err := json.Marshal(eventIDs)
	if err != nil {
		return nil, err
	}
	out := map[string][]int64{}
	err = s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT event_id, n FROM episodes WHERE event_id IN (SELECT value FROM json_each(?)) ORDER BY n", string(list))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			var n int64
			if err := rows.Scan(&id, &n); err != nil {
				return err
			}
			out[id] = append(out[id], n)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("look up passages: %w", err)
	}
	return out, nil
}

const erasedAtOnce = 1000 // events of one transaction

// Erase empties the passages of the events that go: their text leaves the rows,
// the full-text index and the write-ahead log. Their handles stay taken. src must
// hold the tombstones already; the archive is brought up to date with it first, so
// that nobody who has read an event before can still add it.
func (s *Store) Erase(ctx context.Context, src source, t *erasure.Target) (n int, err error) {
	if _, err := s.Follow(ctx, src); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	speakers, there := map[string]bool{}, 0
	for rest := t.Events; len(rest) > 0 && err == nil; {
		some := rest[:min(len(rest), erasedAtOnce)]
		rest = rest[len(some):]
		for _, e := range some {
			there += e.Passages
		}
		err = s.db.Update(ctx, func(tx *sql.Tx) error {
			done, err := eraseEvents(ctx, tx, some, speakers)
			n += done
			return err
		})
	}
	if n < there { // some were erased before, by one that was interrupted: whose they were is not known
		speakers = nil
	}
	if err == nil {
		err = s.db.Update(ctx, func(tx *sql.Tx) error { return eraseNames(ctx, tx, t, speakers) })
	}
	if err == nil {
		err = s.db.Fold(ctx)
	}
	if err != nil {
		return n, fmt.Errorf("erase episodes: %w", err)
	}
	return n, nil
}

// lost is a passage that goes.
type lost struct {
	n                      int64
	text, caption, speaker string
}

// eraseEvents empties the passages of events, and notes who had said them.
func eraseEvents(ctx context.Context, tx *sql.Tx, events []erasure.Event, speakers map[string]bool) (int, error) {
	st, err := readState(ctx, tx)
	if err != nil {
		return 0, err
	}
	w := &writer{ctx: ctx, tx: tx, first: st.passages + 1}
	count := 0
	for _, e := range events {
		gone, err := passagesOf(ctx, tx, e.ID)
		if err != nil {
			return 0, err
		}
		for _, p := range gone {
			speakers[p.speaker] = true
			if err := w.blank(p); err != nil {
				return 0, fmt.Errorf("passage %d: %w", p.n, err)
			}
		}
		count += len(gone)
	}
	if count == 0 {
		return 0, nil
	}
	_, err = tx.ExecContext(ctx, "UPDATE state SET epoch = epoch + 1")
	return count, err
}

// passagesOf returns the passages of an event that have not been erased yet.
func passagesOf(ctx context.Context, tx *sql.Tx, eventID string) ([]lost, error) {
	rows, err := tx.QueryContext(ctx, "SELECT n, text, caption, speaker FROM episodes WHERE event_id = ? AND (text <> '' OR caption <> '' OR source_id <> '' OR speaker <> '')", eventID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []lost
	for rows.Next() {
		var p lost
		if err := rows.Scan(&p.n, &p.text, &p.caption, &p.speaker); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// blank empties a passage. The full-text tables keep no text, so that a row is
// removed by giving its terms again.
func (w *writer) blank(p lost) error {
	columns := text.Index(strings.TrimSpace(p.text + "\n" + p.caption))
	for _, s := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO m (m, rowid, terms) VALUES ('delete', ?, ?)", []any{p.n, columns.Main}},
		{"INSERT INTO p (p, rowid, terms) VALUES ('delete', ?, ?)", []any{p.n, columns.Prefix}},
		{"UPDATE episodes SET source_id = '', speaker = '', text = '', caption = '' WHERE n = ?", []any{p.n}},
	} {
		if _, err := w.tx.ExecContext(w.ctx, s.query, s.args...); err != nil {
			return err
		}
	}
	block, at := (p.n-1)/blockSize, (p.n-1)%blockSize*packedSize
	raw, err := w.block(block)
	if err != nil {
		return err
	}
	if at+packedSize > int64(len(raw)) {
		return damaged("features of passage %d are missing", p.n)
	}
	was := readPacked(raw[at:])
	copy(raw[at:], packed{session: was.session, before: was.before, speaker: was.speaker, flags: Suppressed | Aside}.appendTo(nil))
	return w.saveBlock(block, raw)
}

// eraseNames takes away the ids of sessions that go whole, and the names of those
// speakers of whom nothing is left; nil for all, which reads every passage.
func eraseNames(ctx context.Context, tx *sql.Tx, t *erasure.Target, speakers map[string]bool) error {
	for _, id := range t.Sessions {
		if _, err := tx.ExecContext(ctx, "UPDATE sessions SET id = 'erased-' || n WHERE id = ?", id); err != nil {
			return err
		}
	}
	if speakers == nil {
		_, err := tx.ExecContext(ctx, `UPDATE speakers SET name = 'erased-' || n WHERE name NOT LIKE 'erased-%'
			AND name NOT IN (SELECT DISTINCT speaker FROM episodes)`)
		return err
	}
	for name := range speakers {
		if _, err := tx.ExecContext(ctx, `UPDATE speakers SET name = 'erased-' || n WHERE name = ?1 AND name NOT LIKE 'erased-%'
			AND NOT EXISTS (SELECT 1 FROM episodes WHERE speaker = ?1)`, name); err != nil {
			return err
		}
	}
	return nil
}

// EventOf returns the id of the event that a passage is of, also where it is
// suppressed; ErrNotFound for a handle that is none.
func (s *Store) EventOf(ctx context.Context, handle string) (id string, err error) {
	n, err := ParseHandle(handle)
	if err != nil {
		return "", err
	}
	err = s.view(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT event_id FROM episodes WHERE n = ?", n).Scan(&id)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", memory.Errorf(memory.ErrNotFound, "there is no episode %s", handle)
	}
	return id, err
}
