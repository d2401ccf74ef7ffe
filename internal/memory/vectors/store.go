// Package vectors keeps the vectors of an agent's passages and items in a file of
// their own: vectors.db. They are derived, but may have cost money, so neither a
// rebuilt archive nor a rebuilt working memory loses them: each is kept with the
// hash of its text, and is good as long as the text is the same. The file holds no
// text, but for the words that a built-in model knows.
package vectors

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// FileName is the file's name in an agent's memory directory.
const FileName = "vectors.db"

//go:embed migrations/*.sql
var migrations embed.FS

// ID names a passage or an item.
type ID int64

// OfPassage and OfItem return the ID of EVT-n and MEM-n.
func OfPassage(n int64) ID { return ID(2 * n) }

// OfItem returns the ID of MEM-n.
func OfItem(n int64) ID { return ID(2*n + 1) }

// Passage returns the n of EVT-n, and whether it is one.
func (id ID) Passage() (int64, bool) { return int64(id) / 2, id%2 == 0 }

// Item returns the n of MEM-n, and whether it is one.
func (id ID) Item() (int64, bool) { return int64(id) / 2, id%2 == 1 }

// Hash identifies a text.
type Hash [16]byte

// HashOf returns the hash of a text.
func HashOf(text string) Hash {
	sum := sha256.Sum256([]byte(text))
	return Hash(sum[:16])
}

// Options are what a Store needs from outside.
type Options struct {
	Now func() time.Time
	// ReadOnly serves what is there; a missing file is ErrNotFound.
	ReadOnly bool
	// Short loads the short forms only: a quarter of the bytes, and cosines that
	// are off by less than a hundredth. For processes that ask once.
	Short bool
}

// Store is one agent's vectors. It is safe for concurrent use, also by several
// processes on one file.
type Store struct {
	path string
	opts Options
	db   *sqlite.DB

	load   sync.Mutex // one loader at a time
	mu     sync.Mutex
	loaded loaded
	built  built
}

// built is a built-in model in memory.
type built struct {
	id    string
	model any
}

// loaded is what is held in memory: the vectors of one model.
type loaded struct {
	model             string
	index             *scan.Index
	version, removals int64
}

// Open opens the file at path, and creates it unless it is only to be read. A
// damaged one is renamed to <path>.corrupt-<time> and a new one started.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s := &Store{path: path, opts: o}
	err := s.open(ctx)
	if sqlite.Damage(err) && !o.ReadOnly {
		aside := path + ".corrupt-" + o.Now().UTC().Format("20060102T150405.000Z")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, memory.Errorf(memory.ErrUnavailable, "set the damaged vectors aside: %w", err)
			}
		}
		err = s.open(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open vectors: %w", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	s.db, err = sqlite.Open(ctx, s.path, sqlite.Options{Migrations: sub, Derived: true, ReadOnly: s.opts.ReadOnly, Readers: 2})
	return err
}

// Close closes the file and gives back the memory.
func (s *Store) Close() error {
	s.mu.Lock()
	s.loaded, s.built = loaded{}, built{}
	s.mu.Unlock()
	return s.db.Close()
}

// Compact gives what is no longer needed back to the disk.
func (s *Store) Compact(ctx context.Context) (sqlite.Compacted, error) { return s.db.Compact(ctx) }

// Position is how far the texts of an agent are noted.
type Position struct {
	Passages int64 // up to EVT-n
	Epoch    int64 // of the archive
	ItemSeq  int64 // working.Mark
	Item     string
}

// Position returns how far the texts are noted.
func (s *Store) Position(ctx context.Context) (Position, error) {
	var p Position
	err := s.db.View(ctx, func(tx *sql.Tx) (err error) {
		p, err = readPosition(ctx, tx)
		return err
	})
	return p, err
}

func readPosition(ctx context.Context, tx *sql.Tx) (p Position, err error) {
	err = tx.QueryRowContext(ctx, "SELECT passages, epoch, item_seq, item_id FROM state").Scan(&p.Passages, &p.Epoch, &p.ItemSeq, &p.Item)
	return p, err
}

// Noted is a text that is to have a vector.
type Noted struct {
	ID   ID
	Hash Hash
}

// Span is a stretch of ids of one kind, both ends included.
type Span struct{ First, Last ID }

// Note notes texts, forgets those in spans and ids that are gone, with their
// vectors, and moves the position, in one transaction. A vector whose text has
// changed goes too. Where the position is no longer from, another process has
// moved it: ErrConflict, and nothing is changed.
func (s *Store) Note(ctx context.Context, from, to Position, texts []Noted, gone []ID, within []Span) error {
	return s.db.Update(ctx, func(tx *sql.Tx) error {
		at, err := readPosition(ctx, tx)
		if err != nil {
			return err
		}
		if at != from {
			return memory.Errorf(memory.ErrConflict, "another process is noting texts")
		}
		keep := make(map[ID]Hash, len(texts))
		for _, t := range texts {
			keep[t.ID] = t.Hash
		}
		changed, err := stale(ctx, tx, keep, gone, within)
		if err != nil {
			return err
		}
		if err := remove(ctx, tx, changed); err != nil {
			return err
		}
		for _, t := range texts {
			if _, err := tx.ExecContext(ctx, "INSERT INTO texts (id, hash) VALUES (?, ?) ON CONFLICT DO UPDATE SET hash = excluded.hash", int64(t.ID), t.Hash[:]); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE state SET passages = ?, epoch = ?, item_seq = ?, item_id = ?", to.Passages, to.Epoch, to.ItemSeq, to.Item)
		return err
	})
}

// stale finds the ids that are noted and are not what keep says any more.
func stale(ctx context.Context, tx *sql.Tx, keep map[ID]Hash, gone []ID, within []Span) ([]ID, error) {
	var out []ID
	look := func(where string, args ...any) error {
		rows, err := tx.QueryContext(ctx, "SELECT id, hash FROM texts WHERE "+where, args...)
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
			if want, kept := keep[ID(id)]; !kept || string(hash) != string(want[:]) {
				out = append(out, ID(id))
			}
		}
		return rows.Err()
	}
	for id := range keep {
		if err := look("id = ?", int64(id)); err != nil {
			return nil, err
		}
	}
	for _, id := range gone {
		if err := look("id = ?", int64(id)); err != nil {
			return nil, err
		}
	}
	for _, span := range within {
		if err := look("id BETWEEN ? AND ? AND id % 2 = ? % 2", int64(span.First), int64(span.Last), int64(span.First)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// remove takes texts away with their vectors.
func remove(ctx context.Context, tx *sql.Tx, ids []ID) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		for _, query := range []string{
			"DELETE FROM texts WHERE id = ?",
			"DELETE FROM codes WHERE model IN (SELECT n FROM models) AND id = ?", "DELETE FROM floats WHERE model IN (SELECT n FROM models) AND id = ?",
			"DELETE FROM refused WHERE model IN (SELECT n FROM models) AND id = ?",
		} {
			if _, err := tx.ExecContext(ctx, query, int64(id)); err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(ctx, "UPDATE state SET removals = removals + 1")
	return err
}

// Fold brings what was deleted out of the write-ahead log.
func (s *Store) Fold(ctx context.Context) error { return s.db.Fold(ctx) }
