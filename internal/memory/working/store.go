// Package working keeps an agent's distilled memory: items with their versions,
// the evidence that each rests on, full-text rows, and how far the event log has
// been distilled. It owns memory.db, which is a projection of the event log:
// every change is appended there as an event first, and then applied here in one
// transaction with its sequence number. Deleting the file loses nothing.
package working

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Names of the files in an agent's memory directory.
const (
	fileName    = "memory.db"
	lockName    = "memory.lock"       // held for the length of one change
	OpenName    = "memory.open"       // held, shared, by every process that has the database open for writing
	suspectName = "memory.db.suspect" // left by a process that met damage; the next one to open the database alone rebuilds it
	asideName   = "memory.db.corrupt-"
)

const lockPoll = 2 * time.Millisecond // between two tries for another process's lock

//go:embed migrations/*.sql
var migrations embed.FS

// reader reads the event log: up to limit events behind a cursor, and the cursor
// behind the last of them.
type reader interface {
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

// changeLog is the event log. Write returns once the events are durable, with
// their Seq.
type changeLog interface {
	reader
	Write(ctx context.Context, events ...memory.Event) ([]memory.Event, error)
}

// redactor takes secrets out of a text, and out of every text within a value.
type redactor interface {
	Text(string) string
	Value(any) any
}

// Options are what a Store works with. All but Changed, Alike, Logger and MaxItems are
// required.
type Options struct {
	Agent  memory.AgentID
	Log    changeLog
	Redact redactor
	Now    func() time.Time
	NewID  func() string // a ULID
	// Changed is called after each change that this store has made, when it is
	// applied. It must return at once. It may be nil.
	Changed func()
	// Alike proposes stored items that may say the same as a new one: handles, the
	// likeliest first. It is asked before a change is made, must answer soon, and
	// says nothing where it does not know. It may be nil.
	Alike func(ctx context.Context, it memory.Item) []string
	// Logger is told why a database was set aside and rebuilt; nothing is where it is
	// the zero one.
	Logger zerolog.Logger
	// MaxItems caps the active items: a change that exceeds it archives those of
	// lowest value, and names them. 0 is no cap.
	MaxItems int
}

// Store is one agent's working memory. It is safe for concurrent use, by several
// goroutines and several processes.
type Store struct {
	opts     Options
	events   reader
	dir      string
	db       *sqlite.DB
	changing chan struct{} // holds a token while a change is made in this process
	lock     *flock.Flock  // and this while it is made by this process
	present  *flock.Flock
	ahead    position               // how far the log is known to hold no change to apply; guarded by changing
	damaged  atomic.Bool            // damage was met: to be closed, and opened anew
	behind   atomic.Pointer[string] // why the log could not be applied to its end; nil if it was
	kept     *postings.Keeper[stamp]
	items    *lru.Cache[itemAt, memory.Item] // what they share with callers nobody changes
}

// Open opens the store in an agent's memory directory for reading and writing,
// creates it where it is missing, and applies the changes of the log that it has
// not seen. After an unclean end the database is checked. A damaged one is set
// aside as memory.db.corrupt-<time> and rebuilt from the log, unless another
// process has it open (ErrCorrupt). A database that a newer build wrote is
// refused with ErrConflict. Where only the log cannot be read, or the disk is
// full, the store opens, reads go on, and Health says what is wrong.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	s := newStore(dir, opts)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open working memory of %s: %w", opts.Agent, err), s.Close())
	}
	err := s.locked(ctx, func() error { return s.catchUp(ctx) })
	var logged *logError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, errors.Join(ctx.Err(), s.Close())
	case errors.As(err, &logged), errors.Is(err, memory.ErrUnavailable):
		why := err.Error()
		s.behind.Store(&why)
	case sqlite.Damage(err):
		return reopen(ctx, s)
	default:
		return nil, errors.Join(fmt.Errorf("open working memory of %s: %w", opts.Agent, err), s.Close())
	}
	return s, nil
}

// reopen tries once more after the database proved damaged: the mark that the
// damage has left makes open rebuild it.
func reopen(ctx context.Context, s *Store) (*Store, error) {
	if err := s.Close(); err != nil {
		return nil, err
	}
	again := newStore(s.dir, s.opts)
	err := again.open(ctx)
	if err == nil {
		err = again.locked(ctx, func() error { return again.catchUp(ctx) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rebuild working memory of %s: %w", s.opts.Agent, err), again.Close())
	}
	return again, nil
}

// OpenReader opens an existing store for reading only: it shows what was last
// applied; Health compares that with the log. It creates nothing, save for a mark
// where it meets damage. ErrNotFound where there is no store.
func OpenReader(ctx context.Context, dir string, agent memory.AgentID, log reader) (*Store, error) {
	s := newStore(dir, Options{Agent: agent})
	s.events = log
	db, err := sqlite.Open(ctx, filepath.Join(dir, fileName), sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	s.db = db
	return s, nil
}

func newStore(dir string, opts Options) *Store {
	items, err := lru.New[itemAt, memory.Item](keptItems)
	if err != nil {
		panic(err) // it refuses only sizes below 1
	}
	return &Store{opts: opts, items: items, events: opts.Log, dir: dir, changing: make(chan struct{}, 1), kept: postings.NewKeeper[stamp](int(termColumns), keptBytes),
		lock:    flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)),
		present: flock.New(filepath.Join(dir, OpenName), flock.SetPermissions(0o600))}
}

// Close gives back the store's files. It must not be used afterwards.
func (s *Store) Close() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(append(errs, s.present.Unlock(), s.lock.Close())...)
}

// open opens the database, and rebuilds a damaged one when no other process has
// it open.
func (s *Store) open(ctx context.Context) error {
	alone, err := s.present.TryLock()
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock working memory: %w", err)
	}
	if alone {
		if err := s.openAlone(ctx); err != nil {
			return err
		}
		if err := s.present.Unlock(); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "lock working memory: %w", err)
		}
	}
	if _, err := s.present.TryRLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock working memory: %w", err)
	}
	if s.db == nil {
		s.db, err = s.openFile(ctx)
		if errors.Is(err, memory.ErrCorrupt) {
			return memory.WithHint(err, "it is rebuilt from the event log once no other openclawssy process of this agent runs")
		}
	}
	return err
}

func (s *Store) openFile(ctx context.Context) (*sqlite.DB, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, filepath.Join(s.dir, fileName), sqlite.Options{Migrations: files})
	if err != nil {
		return nil, err
	}
	schema, err := schemaOf(ctx, db.Reader())
	if err == nil && sumOf(schema) != schemaSum {
		err = damaged("the schema")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// schemaSum is the checksum of the schema that the migrations make: a flipped bit
// in it would show as a column that does not exist.
const schemaSum = 0x84f3580

// schemaOf returns the statements that made the tables and indexes, but for those
// that FTS5 makes for itself.
func schemaOf(ctx context.Context, q querier) (string, error) {
	var all string
	err := q.QueryRowContext(ctx, `SELECT coalesce(group_concat(sql, ';' || char(10) || char(10)), '') FROM
		(SELECT sql FROM sqlite_schema WHERE sql NOT LIKE 'CREATE TABLE ''%' ORDER BY type, name)`).Scan(&all)
	return all, sqlite.Classify(err)
}

// openAlone is open where no other process has the database.
func (s *Store) openAlone(ctx context.Context) error {
	path := filepath.Join(s.dir, fileName)
	why, suspect, err := s.suspicion()
	if err != nil {
		return err
	}
	unclean, err := filled(path + "-wal")
	if err != nil {
		return err
	}
	if suspect {
		return s.rebuild(ctx, why)
	}
	s.db, err = s.openFile(ctx)
	if err == nil && unclean {
		err = s.db.Check(ctx, false)
	}
	if sqlite.Damage(err) {
		return s.rebuild(ctx, err.Error())
	}
	return err
}

// suspicion reports whether a process has met damage in the database, and what it said
// of it.
func (s *Store) suspicion() (why string, suspect bool, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, suspectName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, memory.Errorf(memory.ErrUnavailable, "read the mark of a damaged database: %w", err)
	}
	return cmp.Or(string(text), "a process that used it met damage"), true, nil
}

// rebuild sets the damaged database aside and opens an empty one, which catchUp
// fills from the log.
func (s *Store) rebuild(ctx context.Context, why string) error {
	if s.db != nil {
		// Closing may fail on a damaged file; it is set aside in any case.
		if err := s.db.Close(); err != nil && !errors.Is(err, memory.ErrCorrupt) {
			return err
		}
		s.db = nil
	}
	path := filepath.Join(s.dir, fileName)
	aside, err := s.freeName(asideName + s.opts.Now().UTC().Format("20060102T150405Z"))
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "set the damaged database aside: %w", err)
		}
	}
	s.opts.Logger.Warn().Str("agent", string(s.opts.Agent)).Str("reason", why).Str("aside", filepath.Base(aside)).
		Msg("working memory was damaged: it is set aside, and rebuilt from the event log")
	if err := os.Remove(filepath.Join(s.dir, suspectName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return memory.Errorf(memory.ErrUnavailable, "set the damaged database aside: %w", err)
	}
	s.db, err = s.openFile(ctx)
	return err
}

// freeName returns the path of a file that does not exist yet.
func (s *Store) freeName(name string) (string, error) {
	path := filepath.Join(s.dir, name)
	for n := 2; ; n++ {
		taken, err := exists(path)
		if err != nil || !taken {
			return path, err
		}
		path = filepath.Join(s.dir, fmt.Sprintf("%s-%d", name, n))
	}
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// filled reports whether there is a file at path, with something in it.
func filled(path string) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Size() > 0, err
}

// view runs fn in a reading transaction.
func (s *Store) view(ctx context.Context, fn func(*sql.Tx) error) error {
	return s.noticed(s.db.View(ctx, fn))
}

// update runs fn in a writing transaction.
func (s *Store) update(ctx context.Context, fn func(*sql.Tx) error) error {
	return s.noticed(s.db.Update(ctx, fn))
}

// noticed leaves a mark where err says that the database is damaged, so that it
// is rebuilt when it is opened next.
func (s *Store) noticed(err error) error {
	if !sqlite.Damage(err) {
		return err
	}
	s.damaged.Store(true)
	err = memory.WithHint(err, "it is rebuilt from the event log when it is opened next")
	f, markErr := os.OpenFile(filepath.Join(s.dir, suspectName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if markErr != nil {
		return errors.Join(err, markErr)
	}
	_, markErr = f.WriteString(err.Error())
	return errors.Join(err, markErr, f.Close())
}

// Damaged reports whether this store has met damage in its database. It is of no
// use then: the next Open rebuilds the database from the log.
func (s *Store) Damaged() bool { return s.damaged.Load() }

// patience is for how long work in the background waits for another process that
// changes a database: an erasure that writes a large one anew takes a while.
const patience = 2 * time.Minute

// Patiently returns a context for work that nobody waits for, such as a checkpoint: its
// changes wait two minutes for another process instead of five seconds, and it is
// reported (op.Report) that they do. What has to be given up all the same is
// ErrUnavailable, and can be done again.
func Patiently(ctx context.Context) context.Context {
	return sqlite.Patient(ctx, patience, func(waited time.Duration) {
		op.Report(ctx, op.Progress{Done: int64(waited.Seconds()), Unit: "seconds of waiting for another process"})
	})
}

// locked runs fn while no one else, in this process or another, changes this
// agent's working memory.
func (s *Store) locked(ctx context.Context, fn func() error) (err error) {
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := s.lock.TryLockContext(ctx, lockPoll); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return memory.Errorf(memory.ErrUnavailable, "lock working memory: %w", err)
	}
	defer func() { err = errors.Join(err, s.lock.Unlock()) }()
	return fn()
}
