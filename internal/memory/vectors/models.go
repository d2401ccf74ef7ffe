package vectors

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
)

// Model is a model whose vectors are kept.
type Model struct {
	ID      string
	Dims    int
	Made    time.Time
	Ready   bool // every text had a vector once; before, it answers no question
	BuiltIn bool // its body is kept too
	Learned int  // passages that a built-in one was trained on
	Failure string
	Since   time.Time // of Failure, zero where there is none
	Failed  time.Time
}

// Models returns the models, the oldest first.
func (s *Store) Models(ctx context.Context) ([]Model, error) {
	var out []Model
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT id, dims, made, ready, body IS NOT NULL, learned, failure, since, failed FROM models ORDER BY n")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m Model
			var made, since, failed int64
			if err := rows.Scan(&m.ID, &m.Dims, &made, &m.Ready, &m.BuiltIn, &m.Learned, &m.Failure, &since, &failed); err != nil {
				return err
			}
			m.Made = time.UnixMilli(made).UTC()
			if m.Failure != "" {
				m.Since, m.Failed = time.UnixMilli(since).UTC(), time.UnixMilli(failed).UTC()
			}
			out = append(out, m)
		}
		return rows.Err()
	})
	return out, err
}

// Model returns a model; ErrNotFound where there is none of that id.
func (s *Store) Model(ctx context.Context, id string) (Model, error) {
	all, err := s.Models(ctx)
	if err != nil {
		return Model{}, err
	}
	for _, m := range all {
		if m.ID == id {
			return m, nil
		}
	}
	return Model{}, memory.Errorf(memory.ErrNotFound, "there are no vectors of %s", id)
}

// Add adds a model that is no built-in one, unless it is there. Where it is there
// with other dimensions it is ErrConflict.
func (s *Store) Add(ctx context.Context, m Model) error {
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		if err := checkDims(ctx, tx, m.ID, m.Dims); !errors.Is(err, memory.ErrNotFound) {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO models (id, dims, made, ready, learned, failure, since, failed) VALUES (?, ?, ?, 0, 0, '', 0, 0)",
			m.ID, m.Dims, s.opts.Now().UnixMilli())
		return err
	})
}

// AddBuiltIn adds a built-in model, which knows the words of what it was trained
// on, unless something was taken away since Removals was removals: ErrConflict
// then, since that may be in it.
func (s *Store) AddBuiltIn(ctx context.Context, m Model, body []byte, removals int64) error {
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		var now int64
		if err := tx.QueryRowContext(ctx, "SELECT removals FROM state").Scan(&now); err != nil {
			return err
		}
		if now != removals {
			return memory.Errorf(memory.ErrConflict, "texts were forgotten while a model was trained on them")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO models (id, dims, made, ready, body, learned, failure, since, failed) VALUES (?, ?, ?, 0, ?, ?, '', 0, 0) ON CONFLICT DO NOTHING",
			m.ID, m.Dims, s.opts.Now().UnixMilli(), body, m.Learned)
		return err
	})
}

// Removals counts how often texts or models were taken away.
func (s *Store) Removals(ctx context.Context) (n int64, err error) {
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT removals FROM state").Scan(&n)
	})
	return n, err
}

// DropBuiltIn removes the built-in models, and refuses those that are being
// trained meanwhile. It returns how many there were.
func (s *Store) DropBuiltIn(ctx context.Context) (n int, err error) {
	all, err := s.Models(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range all {
		if m.BuiltIn {
			if err := s.Drop(ctx, m.ID); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, s.db.Exec(ctx, "UPDATE state SET removals = removals + 1")
}

// Built returns the newest built-in model as Body does, made by decode once and
// then kept.
func (s *Store) Built(ctx context.Context, ready bool, decode func([]byte) (any, error)) (id string, model any, err error) {
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT id FROM models WHERE body IS NOT NULL AND ready >= ? ORDER BY n DESC LIMIT 1", ready).Scan(&id)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, memory.Errorf(memory.ErrNotFound, "no model has been trained yet")
	}
	if err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	have := s.built
	s.mu.Unlock()
	if have.id == id {
		return id, have.model, nil
	}
	var body []byte
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT body FROM models WHERE id = ?", id).Scan(&body)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, memory.Errorf(memory.ErrNotFound, "the model has gone meanwhile")
	}
	if err != nil {
		return "", nil, err
	}
	if model, err = decode(body); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built = built{id, model}
	return id, model, nil
}

// checkDims finds a model and holds its dimensions against those of a vector. A
// model of which only a failure is known has none yet, and takes them.
func checkDims(ctx context.Context, tx *sql.Tx, id string, dims int) error {
	var n, have int
	err := tx.QueryRowContext(ctx, "SELECT n, dims FROM models WHERE id = ?", id).Scan(&n, &have)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return memory.Errorf(memory.ErrNotFound, "there are no vectors of %s", id)
	case err != nil:
		return err
	case have == 0:
		_, err := tx.ExecContext(ctx, "UPDATE models SET dims = ? WHERE n = ?", dims, n)
		return err
	case have != dims:
		return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s makes vectors of %d numbers, and those that are kept have %d: they are not compared", id, dims, have),
			"the model behind that name has changed: openclawssy memory reembed --anew makes all its vectors again")
	}
	return nil
}

// SetReady lets a model answer questions, and with alone drops all other built-in
// ones.
func (s *Store) SetReady(ctx context.Context, id string, alone bool) error {
	if _, err := s.Model(ctx, id); err != nil {
		return err
	}
	err := s.db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE models SET ready = 1 WHERE id = ?", id)
		return err
	})
	if err != nil || !alone {
		return err
	}
	all, err := s.Models(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.BuiltIn && m.ID != id {
			if err := s.Drop(ctx, m.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Drop removes a model with its vectors.
func (s *Store) Drop(ctx context.Context, id string) error {
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		for _, query := range []string{
			"DELETE FROM codes WHERE model = (SELECT n FROM models WHERE id = ?)", "DELETE FROM floats WHERE model = (SELECT n FROM models WHERE id = ?)",
			"DELETE FROM refused WHERE model = (SELECT n FROM models WHERE id = ?)", "DELETE FROM models WHERE id = ?",
		} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "UPDATE state SET removals = removals + 1")
		return err
	})
}

// Fail keeps what goes wrong with a model, and since when; nil that it works.
func (s *Store) Fail(ctx context.Context, id string, failure error) error {
	now := s.opts.Now().UnixMilli()
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		if failure == nil {
			_, err := tx.ExecContext(ctx, "UPDATE models SET failure = '', since = 0, failed = 0 WHERE id = ? AND failure <> ''", id)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO models (id, dims, made, ready, learned, failure, since, failed) VALUES (?1, 0, ?2, 0, 0, ?3, ?2, ?2)
			ON CONFLICT (id) DO UPDATE SET since = CASE WHEN failure = '' THEN ?2 ELSE since END, failure = ?3, failed = ?2`, id, now, failure.Error())
		return err
	})
}

// Coverage counts the vectors of one model.
type Coverage struct {
	Texts   int // that should have one
	Have    int
	Refused int // that the model does not take
	Cut     int // of the beginning of the text
}

// Missing is how many texts wait for a vector.
func (c Coverage) Missing() int { return c.Texts - c.Have - c.Refused }

// Coverage counts the vectors of a model, which need not be there.
func (s *Store) Coverage(ctx context.Context, model string) (Coverage, error) {
	var c Coverage
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `WITH m AS (SELECT n FROM models WHERE id = ?)
			SELECT (SELECT count(*) FROM texts), (SELECT count(*) FROM codes INDEXED BY codes_by_hash WHERE model = (SELECT n FROM m)),
				(SELECT count(*) FROM refused WHERE model = (SELECT n FROM m)), (SELECT count(*) FROM codes WHERE model = (SELECT n FROM m) AND cut)`, model).
			Scan(&c.Texts, &c.Have, &c.Refused, &c.Cut)
	})
	return c, err
}

// Missing returns texts of which a model has no vector, in the order of their
// ids: at most limit with an id above after.
func (s *Store) Missing(ctx context.Context, model string, after ID, limit int) ([]Noted, error) {
	var out []Noted
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `WITH m AS (SELECT n FROM models WHERE id = ?1)
			SELECT id, hash FROM texts t WHERE id > ?2
				AND NOT EXISTS (SELECT 1 FROM codes WHERE model = (SELECT n FROM m) AND id = t.id)
				AND NOT EXISTS (SELECT 1 FROM refused WHERE model = (SELECT n FROM m) AND id = t.id)
			ORDER BY id LIMIT ?3`, model, int64(after), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var hash []byte
			if err := rows.Scan(&id, &hash); err != nil {
				return err
			}
			out = append(out, Noted{ID(id), Hash(hash)})
		}
		return rows.Err()
	})
	return out, err
}

// Made is a vector of a text.
type Made struct {
	Noted
	Vector []float32 // of any length above 0
	Cut    bool
}

// Put keeps vectors of a model, all or none. One whose text has changed or gone
// meanwhile is left out; a dimension that is not the model's is ErrConflict.
func (s *Store) Put(ctx context.Context, model string, list []Made) error {
	if len(list) == 0 {
		return nil
	}
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		dims := len(list[0].Vector)
		if err := checkDims(ctx, tx, model, dims); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE state SET version = version + 1"); err != nil {
			return err
		}
		for _, made := range list {
			if err := scan.Check(made.Vector, dims); err != nil {
				return err
			}
			if err := put(ctx, tx, model, made); err != nil {
				return err
			}
		}
		return nil
	})
}

func put(ctx context.Context, tx *sql.Tx, model string, made Made) error {
	code, err := scan.AppendCode(nil, made.Vector)
	if err != nil {
		return err
	}
	got, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO codes (model, id, version, hash, cut, code)
		SELECT m.n, t.id, s.version, t.hash, ?, ? FROM models m, texts t, state s WHERE m.id = ? AND t.id = ? AND t.hash = ?`,
		made.Cut, code, model, int64(made.ID), made.Hash[:])
	if err != nil {
		return err
	}
	if n, err := got.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO floats (model, id, floats) SELECT n, ?, ? FROM models WHERE id = ?",
		int64(made.ID), scan.AppendFloats(nil, made.Vector), model)
	return err
}

// Reuse gives texts that are said again the vector that a model made for the same
// text before. It returns those that have none.
func (s *Store) Reuse(ctx context.Context, model string, list []Noted) (rest []Noted, err error) {
	var made []Made
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		for _, t := range list {
			var blob []byte
			m := Made{Noted: t}
			err := tx.QueryRowContext(ctx, `SELECT f.floats, c.cut FROM codes c JOIN floats f ON f.model = c.model AND f.id = c.id
				WHERE c.model = (SELECT n FROM models WHERE id = ?) AND c.hash = ? LIMIT 1`, model, t.Hash[:]).Scan(&blob, &m.Cut)
			if errors.Is(err, sql.ErrNoRows) {
				rest = append(rest, t)
				continue
			}
			if err != nil {
				return err
			}
			if m.Vector, err = scan.Floats(nil, blob); err != nil {
				return err
			}
			made = append(made, m)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rest, s.Put(ctx, model, made)
}

// Lacking returns those of the texts that a model would be asked for: it has made no
// vector of the same text, and has not refused it. Nothing is noted.
func (s *Store) Lacking(ctx context.Context, model string, list []Noted) ([]Noted, error) {
	var out []Noted
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		for _, t := range list {
			var known bool
			err := tx.QueryRowContext(ctx, `WITH m AS (SELECT n FROM models WHERE id = ?1)
				SELECT EXISTS (SELECT 1 FROM codes WHERE model = (SELECT n FROM m) AND hash = ?2)
					OR EXISTS (SELECT 1 FROM refused WHERE model = (SELECT n FROM m) AND id = ?3 AND hash = ?2)`, model, t.Hash[:], int64(t.ID)).Scan(&known)
			if err != nil {
				return err
			}
			if !known {
				out = append(out, t)
			}
		}
		return nil
	})
	return out, err
}

// Refuse notes that a model does not take texts. They are found by their words.
func (s *Store) Refuse(ctx context.Context, model string, list []Noted, reason string) error {
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		for _, t := range list {
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO refused (model, id, hash, reason) SELECT m.n, t.id, t.hash, ? FROM models m, texts t WHERE m.id = ? AND t.id = ? AND t.hash = ?",
				reason, model, int64(t.ID), t.Hash[:])
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Texts counts the texts that are noted.
func (s *Store) Texts(ctx context.Context) (n int, err error) {
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM texts").Scan(&n)
	})
	return n, err
}

// Passages counts the passages that are noted.
func (s *Store) Passages(ctx context.Context) (n int, err error) {
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM texts WHERE id % 2 = 0").Scan(&n)
	})
	return n, err
}

// Index returns the vectors of a model in memory, as they are now; ErrNotFound
// for a model that is not ready. They are loaded once and then brought up to date.
// The ids in it are those of this package. It is changed by the next call, and
// must not be kept beyond Close.
func (s *Store) Index(ctx context.Context, model string) (*scan.Index, error) {
	m, err := s.Model(ctx, model)
	if err != nil {
		return nil, err
	}
	if !m.Ready {
		return nil, memory.Errorf(memory.ErrNotFound, "the vectors of %s are not complete yet", model)
	}
	s.load.Lock()
	defer s.load.Unlock()
	s.mu.Lock()
	have := s.loaded
	s.mu.Unlock()
	var now loaded
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		now = loaded{model: model, index: have.index}
		if err := tx.QueryRowContext(ctx, "SELECT version, removals FROM state").Scan(&now.version, &now.removals); err != nil {
			return err
		}
		switch {
		case have.index != nil && have.model == model && have.removals == now.removals && have.version == now.version:
			return nil
		case have.index != nil && have.model == model && have.removals == now.removals:
			return s.rows(ctx, tx, model, have.version, m.Dims, func(id int64, v []float32) error { return now.index.Set(id, v) })
		}
		fresh, err := scan.New(m.Dims)
		if err != nil {
			return err
		}
		now.index = fresh
		return fresh.Load(func(put func(int64, []float32) error) error { return s.rows(ctx, tx, model, -1, m.Dims, put) })
	})
	if err != nil {
		return nil, fmt.Errorf("load vectors of %s: %w", model, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = now
	return now.index, nil
}

// Items returns the vectors of a model that are of items, in memory of their own,
// which the caller keeps; ErrNotFound for a model that is not ready.
func (s *Store) Items(ctx context.Context, model string) (*scan.Index, error) {
	m, err := s.Model(ctx, model)
	if err != nil {
		return nil, err
	}
	if !m.Ready {
		return nil, memory.Errorf(memory.ErrNotFound, "the vectors of %s are not complete yet", model)
	}
	x, err := scan.New(m.Dims)
	if err != nil {
		return nil, err
	}
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		return x.Load(func(put func(int64, []float32) error) error {
			return each(ctx, tx, m.Dims, scan.Floats, put, "SELECT id, floats FROM floats WHERE model = (SELECT n FROM models WHERE id = ?) AND id % 2 = 1 ORDER BY id", model)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("load vectors of items of %s: %w", model, err)
	}
	return x, nil
}

// OfText returns the vector that a model has made of a text; ErrNotFound for none.
func (s *Store) OfText(ctx context.Context, model string, hash Hash) ([]float32, error) {
	var blob []byte
	err := s.db.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT f.floats FROM codes c JOIN floats f ON f.model = c.model AND f.id = c.id
			WHERE c.model = (SELECT n FROM models WHERE id = ?) AND c.hash = ? LIMIT 1`, model, hash[:]).Scan(&blob)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, memory.Errorf(memory.ErrNotFound, "%s has made no vector of the text", model)
	}
	if err != nil {
		return nil, err
	}
	return scan.Floats(nil, blob)
}

// rows hands over the vectors of a model that are newer than a version.
func (s *Store) rows(ctx context.Context, tx *sql.Tx, model string, newer int64, dims int, put func(int64, []float32) error) error {
	query, decode := "SELECT id, floats FROM floats WHERE model = (SELECT n FROM models WHERE id = ?) ORDER BY id", scan.Floats
	args := []any{model}
	switch {
	case newer >= 0:
		query = `SELECT f.id, f.floats FROM codes c JOIN floats f ON f.model = c.model AND f.id = c.id
			WHERE c.model = (SELECT n FROM models WHERE id = ?) AND c.version > ?`
		args = append(args, newer)
	case s.opts.Short:
		query, decode = "SELECT id, code FROM codes WHERE model = (SELECT n FROM models WHERE id = ?) ORDER BY id", scan.Code
	}
	return each(ctx, tx, dims, decode, put, query, args...)
}

// each hands over the vectors that a query selects, an id and a blob each.
func each(ctx context.Context, tx *sql.Tx, dims int, decode func([]float32, []byte) ([]float32, error), put func(int64, []float32) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var id int64
	var blob sql.RawBytes
	vector := make([]float32, 0, dims)
	for rows.Next() {
		if err := rows.Scan(&id, &blob); err != nil {
			return err
		}
		if vector, err = decode(vector, blob); err != nil {
			return err
		}
		if err := put(id, vector); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Loaded returns how many vectors are in memory, in how many bytes, and whether
// they are more than can be looked at in time.
func (s *Store) Loaded() (n int, bytes int64, slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded.index == nil {
		return 0, 0, false
	}
	return s.loaded.index.Len(), s.loaded.index.Bytes(), s.loaded.index.Slow()
}
