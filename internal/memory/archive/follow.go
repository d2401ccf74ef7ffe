package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// source is the event log: events after a cursor, oldest first, and the cursor
// behind them; none at the log's end.
type source interface {
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

const followBatch = 256 // events of one transaction

// errMoved says that another process has indexed the batch meanwhile.
var errMoved = errors.New("the archive has moved on")

// Follow indexes every event that src has and the archive has not, and returns
// how many it read. A batch and its cursor commit together, so each event is in
// once, whoever follows at the same time. A file that turns out to be damaged,
// or was deleted, is replaced and filled again from the beginning.
func (s *Store) Follow(ctx context.Context, src source) (int, error) {
	if err := s.reopenDeleted(ctx); err != nil {
		return 0, fmt.Errorf("follow events: %w", err)
	}
	n, err := s.follow(ctx, src)
	if errors.Is(err, memory.ErrCorrupt) && !errors.As(err, new(*sourceError)) && !s.opts.ReadOnly {
		if err := s.setAside(ctx); err != nil {
			return n, fmt.Errorf("follow events: %w", err)
		}
		n, err = s.follow(ctx, src)
	}
	if err != nil {
		return n, fmt.Errorf("follow events: %w", err)
	}
	return n, nil
}

// sourceError is what the log reports: not the archive's own damage.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func (s *Store) follow(ctx context.Context, src source) (int, error) {
	total := 0
	for {
		from, err := s.Cursor(ctx)
		if err != nil {
			return total, err
		}
		events, next, err := src.Read(ctx, from, followBatch)
		if err != nil {
			return total, &sourceError{err}
		}
		if len(events) == 0 {
			return total, nil
		}
		err = s.index(ctx, from, next, s.prepare(events))
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return total, err
		}
		total += len(events)
	}
}

// reopenDeleted starts a new file where the one that is open has been removed
// from its directory, or replaced, by somebody else.
func (s *Store) reopenDeleted(ctx context.Context) error {
	if s.opts.ReadOnly {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	st, err := os.Lstat(s.path)
	switch {
	case err == nil && s.file != nil && os.SameFile(st, s.file):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return memory.Errorf(memory.ErrUnavailable, "look at the archive: %w", err)
	}
	if err := s.close(); err != nil {
		return err
	}
	s.seen.Store(&snapshot{})
	return s.open(ctx)
}

func (s *Store) setAside(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(ctx)
}

// turn is an event made ready to be indexed.
type turn struct {
	event    memory.Event
	passages []passage
	change   memory.Change
}

type passage struct {
	text, caption string
	columns       text.Columns
	features      Passage // all but what depends on the passages before it
}

// prepare does the work of indexing that needs no database.
func (s *Store) prepare(events []memory.Event) []turn {
	turns := make([]turn, len(events))
	for i, e := range events {
		turns[i] = turn{event: e, change: changeOf(e)}
		if e.Type.IsTurn() {
			turns[i].passages = s.cut(e)
		}
	}
	return turns
}

// changeOf returns what an event of memory's own book-keeping suppresses and
// restores. An event whose change cannot be read changes nothing here; the
// working store, which owns changes, reports it.
func changeOf(e memory.Event) memory.Change {
	var c memory.Change
	raw, err := json.Marshal(e.Metadata[memory.MetaChange])
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return memory.Change{}
	}
	return c
}

// cut makes the passages of a turn. An image's caption goes with the last one.
func (s *Store) cut(e memory.Event) []passage {
	parts := text.Passages(s.opts.Redact.Text(e.Text))
	caption := strings.TrimSpace(s.opts.Redact.Text(strings.ToValidUTF8(e.Meta(memory.MetaCaption), "�")))
	if len(parts) == 0 && caption != "" {
		parts = []string{""}
	}
	out := make([]passage, len(parts))
	for i, part := range parts {
		p := passage{text: part}
		whole := part
		if i == len(parts)-1 {
			p.caption = caption
			whole = strings.TrimSpace(part + "\n" + caption)
		}
		p.columns = text.Index(whole)
		p.features = features(part, whole, e)
		out[i] = p
	}
	return out
}

func features(part, whole string, e memory.Event) Passage {
	f := text.FeaturesOf(part)
	p := Passage{Day: text.DayOf(e.Timestamp), Words: clamp16(len(strings.Fields(text.Index(whole).Prefix)))}
	copy(p.Said[:], text.Dates(part, e.Timestamp))
	for flag, set := range map[Flag]bool{
		HasNumber: f.HasNumber, HasTimeCue: f.HasTimeCue, HasWhereCue: f.HasWhereCue, Asks: f.Asks, FirstPerson: f.FirstPerson,
		Aside:     e.Type != memory.UserMessage && e.Type != memory.AssistantOutput,
		Untrusted: e.Origin == memory.OriginTool || e.Origin == memory.OriginWeb,
	} {
		if set {
			p.Flags |= flag
		}
	}
	return p
}

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
		w := writer{ctx: ctx, tx: tx, next: st.passages + 1, epoch: st.epoch, first: st.passages + 1}
		for i := range turns {
			if err := w.add(&turns[i]); err != nil {
				return fmt.Errorf("index event %d: %w", turns[i].event.Seq, err)
			}
		}
		if err := w.saveFeatures(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE state SET seq = ?, file = ?, offset = ?, passages = ?, epoch = ?",
			to.Seq, to.File, to.Offset, w.next-1, w.epoch)
		return err
	})
}

// writer adds the turns of one batch.
type writer struct {
	ctx         context.Context
	tx          *sql.Tx
	first, next int64    // n of the batch's first passage, and of the next one
	fresh       []packed // the features of passages first to next-1
	epoch       int64
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
	session, err := w.number("INSERT INTO sessions (id, turns, last) VALUES (?, 0, 0) ON CONFLICT (id) DO UPDATE SET id = id RETURNING n", t.event.SessionID)
	if err != nil {
		return err
	}
	var turns, last int64
	if err := w.tx.QueryRowContext(w.ctx, "SELECT turns, last FROM sessions WHERE n = ?", session).Scan(&turns, &last); err != nil {
		return err
	}
	speaker, err := w.number("INSERT INTO speakers (name) VALUES (?) ON CONFLICT (name) DO UPDATE SET name = name RETURNING n", t.event.Speaker())
	if err != nil {
		return err
	}
	var hidden bool
	if err := w.tx.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM suppressed WHERE event_id = ?)", t.event.ID).Scan(&hidden); err != nil {
		return err
	}
	for part := range t.passages {
		p := &t.passages[part]
		p.features.Session, p.features.Speaker = uint32(session-1), clamp16(int(speaker-1))
		if turns == 0 {
			p.features.Flags |= Opens
		}
		if hidden {
			p.features.Flags |= Suppressed
		}
		n := w.next
		if !p.features.Is(Aside) {
			p.features.Before, last = uint32(last), n
		}
		if err := w.addPassage(t.event, p, session, turns, part); err != nil {
			return err
		}
	}
	_, err = w.tx.ExecContext(w.ctx, "UPDATE sessions SET turns = ?, last = ? WHERE n = ?", turns+1, last, session)
	return err
}

func (w *writer) addPassage(e memory.Event, p *passage, session, turn int64, part int) error {
	_, zone := e.Timestamp.Zone()
	_, err := w.tx.ExecContext(w.ctx, "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		w.next, e.ID, e.Meta(memory.MetaSourceID), session, e.Seq, part, turn, string(e.Type), string(e.Origin), e.Speaker(),
		p.text, p.caption, e.Timestamp.UnixMilli(), zone)
	if err != nil {
		return err
	}
	if _, err := w.tx.ExecContext(w.ctx, "INSERT INTO m (rowid, terms) VALUES (?, ?)", w.next, p.columns.Main); err != nil {
		return err
	}
	if _, err := w.tx.ExecContext(w.ctx, "INSERT INTO p (rowid, terms) VALUES (?, ?)", w.next, p.columns.Prefix); err != nil {
		return err
	}
	w.fresh = append(w.fresh, pack(p.features))
	w.next++
	return nil
}

// number runs an insert that returns the row's number, old or new. Numbers have
// no gaps: a row that is there is not inserted again.
func (w *writer) number(insert, name string) (int64, error) {
	var n int64
	err := w.tx.QueryRowContext(w.ctx, insert, name).Scan(&n)
	return n, err
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

// damaged is an error of what the file holds against itself.
func damaged(format string, args ...any) error {
	return memory.Errorf(memory.ErrCorrupt, "the archive is damaged: "+format, args...)
}
