package record

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// FileName is the database's name in an agent's memory directory.
const FileName = "records.db"

const lockPoll = 2 * time.Millisecond // between two tries for another process's lock

//go:embed migrations/*.sql
var migrations embed.FS

// redactor takes secrets out of a text, and out of every text within a value.
type redactor interface {
	Text(string) string
	Value(any) any
}

// Options are what a Store works with.
type Options struct {
	Config
	Now func() time.Time // required
	// Redact goes over payloads, entries, metadata and patterns before they are
	// written, and refuses secrets in kinds and ids. nil stores what is given:
	// for hosts whose bytes are their own.
	Redact redactor
	// ReadOnly opens a database that exists without changing it: where the disk
	// refuses more. ErrUnavailable where it must first be brought up to date.
	ReadOnly bool
}

// Store is one agent's records. It is safe for concurrent use, by several
// goroutines and several processes.
type Store struct {
	config  Config
	now     func() time.Time
	redact  redactor
	path    string
	db      *sqlite.DB    // nil in a store of nothing
	writing chan struct{} // holds a token while this process writes
	lock    *flock.Flock  // and this while it is this process's turn
}

// Open opens the database at path for reading and writing, and creates it and
// its directory where they are missing. One that the reference made is brought
// up to date and stays readable for it; records that stood under one key twice
// are set aside (Report counts them).
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	config, err := opts.Config.complete()
	if err != nil {
		return nil, err
	}
	open := openDatabase
	if opts.ReadOnly {
		open = openReader
	}
	db, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	return &Store{config: config, now: opts.Now, redact: opts.Redact, path: path, db: db,
		writing: make(chan struct{}, 1), lock: flock.New(path+".lock", flock.SetPermissions(0o600))}, nil
}

func openDatabase(ctx context.Context, path string) (*sqlite.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "create the directory of %s: %w", path, err)
	}
	if err := adopt(ctx, path); err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqlite.Options{Migrations: files})
}

func openReader(ctx context.Context, path string) (*sqlite.DB, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var version int
	err = sqlite.Classify(db.Reader().QueryRowContext(ctx, "PRAGMA user_version").Scan(&version))
	if err == nil && version == 0 {
		err = memory.Errorf(memory.ErrUnavailable, "%s must first be brought up to date, which needs to write", path)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Empty returns a store of nothing, for reading: it checks and answers as a
// store would in which no record was ever written.
func Empty(path string, config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	return &Store{config: config, path: path}, nil
}

// adopt makes a database of the reference ready for the numbered migrations:
// its first version had no column for metadata.
func adopt(ctx context.Context, path string) error {
	if st, err := os.Stat(path); err != nil || st.Size() == 0 {
		return nil // a new database, or one that sqlite.Open will refuse
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{Readers: 1})
	if err != nil {
		return err
	}
	var version, records, metadata int
	err = db.Reader().QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM pragma_table_info('memory_records')),
		(SELECT count(*) FROM pragma_table_info('memory_records') WHERE name = 'metadata_json')`).Scan(&version, &records, &metadata)
	if err == nil && version == 0 && records > 0 && metadata == 0 {
		err = db.Exec(ctx, "ALTER TABLE memory_records ADD COLUMN metadata_json TEXT NULL")
	}
	return errors.Join(sqlite.Classify(err), db.Close())
}

// Close closes the database.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	return errors.Join(s.db.Close(), s.lock.Close())
}

// Path returns the file that the records are in.
func (s *Store) Path() string { return s.path }

// update runs fn in one writing transaction, when it is this process's turn.
func (s *Store) update(ctx context.Context, fn func(*sql.Tx) error) error {
	if s.db == nil {
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", s.path)
	}
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return memory.Errorf(memory.ErrUnavailable, "wait for another write: %w", ctx.Err())
	}
	defer func() { <-s.writing }()
	// SQLite's own waiting is by chance, and under load some would wait too long.
	if _, err := s.lock.TryLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "wait for another process's write: %w", err)
	}
	return errors.Join(s.db.Update(ctx, fn), s.lock.Unlock())
}

// tryUpdate is update where nobody else is writing; else it does nothing.
func (s *Store) tryUpdate(ctx context.Context, fn func(*sql.Tx) error) error {
	select {
	case s.writing <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-s.writing }()
	mine, err := s.lock.TryLock()
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock %s: %w", s.path, err)
	}
	if !mine {
		return nil
	}
	return errors.Join(s.db.Update(ctx, fn), s.lock.Unlock())
}

// clean takes the secrets out of a JSON object; field names it in an error. nil
// stays nil.
func (s *Store) clean(field string, raw json.RawMessage) (json.RawMessage, error) {
	if s.redact == nil || raw == nil {
		return raw, nil
	}
	cleaned, isJSON := s.redact.Value(raw).(json.RawMessage)
	if !isJSON || len(cleaned) == 0 || cleaned[0] != '{' {
		return nil, &memory.FieldError{Field: field, Reason: "is nested too deep to be searched for secrets"}
	}
	return cleaned, nil
}

// checkSecret refuses a name that holds a secret: it could not be found again
// under another.
func (s *Store) checkSecret(field, name string) error {
	if s.redact != nil && s.redact.Text(name) != name {
		return &memory.FieldError{Field: field, Reason: "must not hold a secret", Hint: "choose another, or set records.redact to false"}
	}
	return nil
}
