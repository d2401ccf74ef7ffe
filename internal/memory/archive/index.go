package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// index adds the turns in one transaction, unless the cursor is no longer at from.
func (s *Store) index(ctx context.Context, from, to memory.Cursor, turns []turn) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		st, err := readState(ctx, tx)
		if err != nil {
			return err
		}
		if st.cursor.Seq != from.Seq {
			return errMoved
		}
		w, err := newWriter(ctx, tx, st)
		if err != nil {
			return err
		}
		for i := range turns {
			if err := w.add(&turns[i]); err != nil {
				return fmt.Errorf("index event %d: %w", turns[i].event.Seq, err)
			}
		}
		if err := w.finish(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE state SET seq = ?, file = ?, offset = ?, passages = ?, epoch = ?",
			to.Seq, to.File, to.Offset, w.next-1, w.epoch)
		return err
	})
}

// writer adds the turns of one batch.
type writer struct {
	ctx                      context.Context
	tx                       *sql.Tx
	first, next              int64    // n of the batch's first passage, and of the next one
	fresh                    []packed // the features of passages first to next-1
	epoch                    int64
	sessions                 map[string]*session // those of the batch
	speakers                 map[string]int64    // likewise
	episodes, main, prefixes *sql.Stmt
}

// session is a row of sessions.
type session struct{ n, turns, last int64 }

func newWriter(ctx context.Context, tx *sql.Tx, st state) (*writer, error) {
	w := &writer{ctx: ctx, tx: tx, first: st.passages + 1, next: st.passages + 1, epoch: st.epoch, sessions: map[string]*session{}, speakers: map[string]int64{}}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.episodes, "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&w.main, "INSERT INTO m (rowid, terms) VALUES (?, ?)"},
		{&w.prefixes, "INSERT INTO p (rowid, terms) VALUES (?, ?)"},
	} {
		var err error
		if *s.stmt, err = tx.PrepareContext(ctx, s.text); err != nil {
			return nil, err // the transaction's end closes those that are open
		}
	}
	return w, nil
}

// finish writes what was kept back until the batch's end.
func (w *writer) finish() error {
	for _, s := range w.sessions {
		if _, err := w.tx.ExecContext(w.ctx, "UPDATE sessions SET turns = ?, last = ? WHERE n = ?", s.turns, s.last, s.n); err != nil {
			return err
		}
	}
	return w.saveFeatures()
}

func (w *writer) add(t *turn) error {
	for _, id := range t.change.Suppress {
		if err := w.suppress(id, "INSERT OR IGNORE INTO suppressed VALUES (?)", true); err != nil {
			return err
		}
	}
	for _, id := range t.change.Restore {
		if err := w.suppress(id, "DELETE FROM suppressed WHERE event_id = ?", false); err != nil {
			return err
		}
	}
	if len(t.passages) == 0 {
		return nil
	}
	return w.addTurn(t)
}

// addTurn adds a turn's passages to its session.
func (w *writer) addTurn(t *turn) error {
	in, err := w.session(t.event.SessionID)
	if err != nil {
		return err
	}
	speaker, err := w.speaker(t.event.Speaker())
	if err != nil {
		return err
	}
	var hidden bool
	if err := w.tx.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM suppressed WHERE event_id = ?)", t.event.ID).Scan(&hidden); err != nil {
		return err
	}
	for part := range t.passages {
		p := &t.passages[part]
		p.features.Session, p.features.Speaker = uint32(in.n-1), clamp16(int(speaker-1))
		if in.turns == 0 {
			p.features.Flags |= Opens
		}
		if hidden {
			p.features.Flags |= Suppressed
		}
		if !p.features.Is(Aside) {
			p.features.Before, in.last = uint32(in.last), w.next
		}
		if err := w.addPassage(t.event, p, in, part); err != nil {
			return err
		}
	}
	in.turns++
	return nil
}

// session returns the row of a session, making it where it is new.
func (w *writer) session(id string) (*session, error) {
	if s, known := w.sessions[id]; known {
		return s, nil
	}
	s := &session{}
	err := w.tx.QueryRowContext(w.ctx, "SELECT n, turns, last FROM sessions WHERE id = ?", id).Scan(&s.n, &s.turns, &s.last)
	if errors.Is(err, sql.ErrNoRows) {
		err = w.tx.QueryRowContext(w.ctx, "INSERT INTO sessions (id, turns, last) VALUES (?, 0, 0) RETURNING n", id).Scan(&s.n)
	}
	if err != nil {
		return nil, err
	}
	w.sessions[id] = s
	return s, nil
}

// speaker returns the number of a speaker, making it where it is new.
func (w *writer) speaker(name string) (int64, error) {
	n, known := w.speakers[name]
	if known {
		return n, nil
	}
	err := w.tx.QueryRowContext(w.ctx, "SELECT n FROM speakers WHERE name = ?", name).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = w.tx.QueryRowContext(w.ctx, "INSERT INTO speakers (name) VALUES (?) RETURNING n", name).Scan(&n)
	}
	if err != nil {
		return 0, err
	}
	w.speakers[name] = n
	return n, nil
}

func (w *writer) addPassage(e memory.Event, p *passage, in *session, part int) error {
	_, zone := e.Timestamp.Zone()
	_, err := w.episodes.ExecContext(w.ctx, w.next, e.ID, e.Meta(memory.MetaSourceID), in.n, e.Seq, part, in.turns, string(e.Type),
		string(e.Origin), e.Speaker(), p.text, p.caption, e.Timestamp.UnixMilli(), zone)
	if err != nil {
		return err
	}
	if _, err := w.main.ExecContext(w.ctx, w.next, p.columns.Main); err != nil {
		return err
	}
	if _, err := w.prefixes.ExecContext(w.ctx, w.next, p.columns.Prefix); err != nil {
		return err
	}
	w.fresh = append(w.fresh, pack(p.features))
	w.next++
	return nil
}

// suppress marks or unmarks an event, and the passages of it that are in already.
func (w *writer) suppress(eventID, statement string, hide bool) error {
	if _, err := w.tx.ExecContext(w.ctx, statement, eventID); err != nil {
		return err
	}
	rows, err := w.tx.QueryContext(w.ctx, "SELECT n FROM episodes WHERE event_id = ?", eventID)
	if err != nil {
		return err
	}
	defer rows.Close()
	var numbers []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, n := range numbers {
		if n >= w.first {
			setFlag(&w.fresh[n-w.first], hide)
			continue
		}
		if err := w.editFeatures(n, hide); err != nil {
			return err
		}
		w.epoch++
	}
	return nil
}

func setFlag(r *packed, hide bool) {
	if hide {
		r.flags |= Suppressed
	} else {
		r.flags &^= Suppressed
	}
}

// editFeatures changes the record of a passage of an earlier batch.
func (w *writer) editFeatures(n int64, hide bool) error {
	block, at := (n-1)/blockSize, (n-1)%blockSize*packedSize
	raw, err := w.block(block)
	if err != nil {
		return err
	}
	if at+packedSize > int64(len(raw)) {
		return damaged("features of passage %d are missing", n)
	}
	r := readPacked(raw[at:])
	setFlag(&r, hide)
	copy(raw[at:], r.appendTo(nil))
	return w.saveBlock(block, raw)
}

// block returns the records of a block; none where it is new.
func (w *writer) block(block int64) ([]byte, error) {
	var raw []byte
	err := w.tx.QueryRowContext(w.ctx, "SELECT records FROM features WHERE block = ?", block).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return raw, err
}

func (w *writer) saveBlock(block int64, raw []byte) error {
	_, err := w.tx.ExecContext(w.ctx, "INSERT INTO features VALUES (?1, ?2) ON CONFLICT (block) DO UPDATE SET records = ?2", block, raw)
	return err
}

// saveFeatures appends the fresh records to their blocks.
func (w *writer) saveFeatures() error {
	for at := 0; at < len(w.fresh); {
		n := w.first + int64(at)
		block := (n - 1) / blockSize
		raw, err := w.block(block)
		if err != nil {
			return err
		}
		if int64(len(raw)) != (n-1)%blockSize*packedSize {
			return damaged("features of block %d have %d bytes", block, len(raw))
		}
		for ; at < len(w.fresh) && len(raw) < blockSize*packedSize; at++ {
			raw = w.fresh[at].appendTo(raw)
		}
		if err := w.saveBlock(block, raw); err != nil {
			return err
		}
	}
	return nil
}
