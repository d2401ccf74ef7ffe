// Package sqlite opens the project's databases: pragmas, migrations,
// transactions, errors as kinds, online backup. It is the only importer of the
// driver, so that every database is opened in the same way.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	driver "github.com/mattn/go-sqlite3"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Options say how a database is opened. The zero value is a durable
// read-write database without migrations.
type Options struct {
	// Migrations holds NNNN_name.sql files, numbered from 0001 without a gap.
	// Each runs once, in a transaction of its own that also sets user_version.
	Migrations fs.FS
	// Derived databases can be rebuilt from others: their commits wait for no
	// disk (synchronous=NORMAL in WAL mode; never corrupt, but the newest
	// commits may be gone after a power cut).
	Derived bool
	// Busy is how long a statement waits for another process's lock; 5 s if zero. A
	// change waits longer where its context is Patient.
	Busy time.Duration
	// Readers is the size of the read pool; 4 if zero.
	Readers int
	// ReadOnly opens an existing file without writing to it. A missing file is
	// ErrNotFound.
	ReadOnly bool
	// Traceless, with ReadOnly, makes no -wal and -shm beside a database that nobody
	// has written to since it was closed. It is for a look: a process that opens the
	// database for writing meanwhile is not noticed.
	Traceless bool
	// CacheKiB is SQLite's page cache of a connection; 2048 if zero. The readers
	// beside a writer have a quarter each: they are many, and what they read again and
	// again are the upper pages of the trees.
	CacheKiB int
}

// DB is one database: a single writing connection and a pool of readers. It is
// safe for concurrent use.
type DB struct {
	path   string
	busy   time.Duration
	writer *sql.DB // nil when read-only
	reader *sql.DB
}

// Open opens the database file at path, creating it (0600) unless opts.ReadOnly,
// and brings its schema up to date. A file that a newer build migrated further
// is refused with ErrConflict, and a damaged one with ErrCorrupt. A symbolic
// link or anything but a regular file is refused with ErrDenied.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	if err := checkFile(path, opts.ReadOnly); err != nil {
		return nil, err
	}
	if opts.Busy == 0 {
		opts.Busy = 5 * time.Second
	}
	if opts.Readers == 0 {
		opts.Readers = 4
	}
	if opts.CacheKiB == 0 {
		opts.CacheKiB = 2048
	}
	d := &DB{path: path, busy: opts.Busy}
	if !opts.ReadOnly {
		w, err := sql.Open("sqlite3", dsn(path, opts, false))
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, classify(err))
		}
		w.SetMaxOpenConns(1)
		d.writer = w
		if err := d.prepare(ctx, opts); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if opts.ReadOnly && opts.Traceless && !walOf(path) {
		if err := d.openReaders(ctx, opts, dsn(path, opts, true)+"&immutable=1"); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", path, classify(err)), d.Close())
		}
		return d, nil
	}
	err := d.openReaders(ctx, opts, dsn(path, opts, true))
	if err != nil && opts.ReadOnly && !walOf(path) {
		// A closed WAL database on a read-only disk cannot be opened in the usual
		// way, since SQLite wants to make the -wal file; and nobody can change it.
		err = d.openReaders(ctx, opts, dsn(path, opts, true)+"&immutable=1")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, classify(err)), d.Close())
	}
	return d, nil
}

// openReaders opens the read pool and tries whether it reads.
func (d *DB) openReaders(ctx context.Context, opts Options, name string) error {
	if d.reader != nil {
		if err := d.reader.Close(); err != nil {
			return err
		}
	}
	r, err := sql.Open("sqlite3", name)
	if err != nil {
		return err
	}
	r.SetMaxOpenConns(opts.Readers)
	r.SetMaxIdleConns(opts.Readers)
	d.reader = r
	var tables int
	if err := r.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if opts.ReadOnly && tables == 0 {
		return memory.Errorf(memory.ErrNotFound, "%s is empty: it was never written", d.path)
	}
	return nil
}

// walOf reports whether a database has a write-ahead log beside it.
func walOf(path string) bool {
	st, err := os.Stat(path + "-wal")
	return err == nil && st.Size() > 0
}

// checkFile refuses what must not be opened, and creates a new file with a mode
// that its -wal and -shm companions inherit.
func checkFile(path string, readOnly bool) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return memory.Errorf(memory.ErrNotFound, "%s does not exist", path)
	case errors.Is(err, fs.ErrNotExist):
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "create database: %w", err)
		}
		return f.Close()
	case err != nil:
		return memory.Errorf(memory.ErrUnavailable, "open database: %w", err)
	case !st.Mode().IsRegular():
		return memory.Errorf(memory.ErrDenied, "open database: %s is not a regular file", path)
	}
	return nil
}

// cachedStatements is how many compiled statements each connection keeps: more
// than any store has on a hot path, where compiling would cost as much as running.
const cachedStatements = 32

// dsn builds the driver's URI. The path is escaped, so that no file name can
// smuggle in a parameter.
func dsn(path string, opts Options, reader bool) string {
	q := url.Values{}
	busy := opts.Busy
	if !reader {
		busy = min(busy, busyStep)
	}
	q.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	cache := opts.CacheKiB
	if reader && !opts.ReadOnly {
		cache /= 4
	}
	q.Set("_cache_size", strconv.Itoa(-cache))
	q.Set("_foreign_keys", "1")
	q.Set("_stmt_cache_size", strconv.Itoa(cachedStatements))
	switch {
	case opts.ReadOnly:
		q.Set("mode", "ro")
	case reader:
		q.Set("_query_only", "1")
	default:
		q.Set("_journal_mode", "WAL")
		q.Set("_auto_vacuum", "incremental") // of a new file: Compact can give pages back
		q.Set("_txlock", "immediate")
		q.Set("_secure_delete", "1")
		if opts.Derived {
			q.Set("_synchronous", "NORMAL")
		} else {
			q.Set("_synchronous", "FULL")
		}
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// Path returns the file that d was opened from.
func (d *DB) Path() string { return d.path }

// Close waits for running statements and closes the database. It also folds
// the write-ahead log into the file, when no other process has it open.
func (d *DB) Close() error {
	var errs []error
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.Close())
	}
	return errors.Join(errs...)
}

// Update runs fn in one writing transaction, and commits if it returns nil.
func (d *DB) Update(ctx context.Context, fn func(*sql.Tx) error) (err error) {
	if d.writer == nil {
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", d.path)
	}
	c, err := d.writer.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var tx *sql.Tx
	err = d.wait(ctx, func() (err error) {
		tx, err = c.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return classify(err)
	}
	if err := fn(tx); err != nil {
		return errors.Join(classify(ended(ctx, err)), rollback(tx))
	}
	return classify(ended(ctx, tx.Commit()))
}

// View runs fn in one reading transaction: it sees one state of the database.
func (d *DB) View(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := d.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return classify(err)
	}
	return errors.Join(classify(ended(ctx, fn(tx))), rollback(tx))
}

// ended adds the end of ctx to what a transaction says that it has rolled back: the
// driver's own words for that depend on the statement that met it, and callers
// must know work that was stopped from work that failed. What they say of a row that
// could not be read for that reason is no damage, unless the driver says so itself.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(err, memory.ErrCorrupt) && !errors.Is(classify(rootOf(err)), memory.ErrCorrupt) {
		return fmt.Errorf("%w: %v", ctx.Err(), err)
	}
	if !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// rootOf returns the driver's error in err; nil where there is none.
func rootOf(err error) error {
	var e driver.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// rollback ends tx. A context that ran out has already rolled it back.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Reader returns the read pool, for single statements on a hot path. Errors of
// its methods should go through Classify.
func (d *DB) Reader() *sql.DB { return d.reader }

// Exec runs one statement outside a transaction (VACUUM, wal_checkpoint).
func (d *DB) Exec(ctx context.Context, query string, args ...any) error {
	if d.writer == nil {
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", d.path)
	}
	return d.alone(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	})
}

// alone does something on the writing connection that takes the lock of writers, and
// waits for that.
func (d *DB) alone(ctx context.Context, do func(*sql.Conn) error) (err error) {
	c, err := d.writer.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return classify(d.wait(ctx, func() error { return do(c) }))
}

// How Fold waits for readers.
const (
	foldWithin = 30 * time.Second      // in all, unless the context is Patient
	foldStep   = 20 * time.Millisecond // at first, and twice as long each time
	foldMost   = 2 * time.Second       // at once: no writer gets in meanwhile
	foldPause  = 50 * time.Millisecond // between two tries, for writers
)

// Fold brings the write-ahead log into the file and empties it, so that no earlier
// state of a page is left in it. ErrUnavailable where somebody goes on reading one,
// for half a minute, or as long as ctx is Patient.
func (d *DB) Fold(ctx context.Context) error {
	if d.writer == nil {
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", d.path)
	}
	p, _ := ctx.Value(patienceKey{}).(patience)
	patience, cancel := context.WithTimeout(ctx, max(p.length, foldWithin))
	defer cancel()
	for wait := foldStep; ; wait = min(2*wait, foldMost) {
		folded, err := d.foldOnce(ctx, wait)
		if folded || err != nil {
			return err
		}
		select {
		case <-time.After(foldPause):
		case <-patience.Done():
			return errors.Join(ctx.Err(), memory.WithHint(memory.Errorf(memory.ErrUnavailable, "the write-ahead log of %s is still being read", filepath.Base(d.path)), "try again"))
		}
	}
}

// foldOnce folds, unless a reader or another process that folds is in the way for
// longer than wait. SQLite waits for readers with the lock of writers in its hands, so
// most of the log is brought over before, which keeps nobody out.
func (d *DB) foldOnce(ctx context.Context, wait time.Duration) (done bool, err error) {
	c, err := d.writer.Conn(ctx)
	if err != nil {
		return false, classify(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return false, classify(err)
	}
	if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds())); err != nil {
		return false, classify(err)
	}
	defer func() {
		_, back := c.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", min(d.busy, busyStep).Milliseconds()))
		err = errors.Join(err, classify(back))
	}()
	var busy, pages, folded int
	err = c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &folded)
	return err == nil && busy == 0, classify(err)
}

// Check runs SQLite's integrity check, the quick one or the whole one, and
// returns a CorruptError with its first findings.
func (d *DB) Check(ctx context.Context, whole bool) error {
	pragma := "PRAGMA quick_check(5)"
	if whole {
		pragma = "PRAGMA integrity_check(5)"
	}
	rows, err := d.reader.QueryContext(ctx, pragma)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return classify(err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		return classify(err)
	}
	if len(found) > 0 {
		return &memory.CorruptError{Path: d.path, Offset: -1, Reason: strings.Join(found, "; ")}
	}
	return nil
}

// Backup copies the database to a new file at dst while others use it, with
// SQLite's online backup: the state of one moment, however much is written
// meanwhile. The file must not exist.
func (d *DB) Backup(ctx context.Context, dst string) error {
	if _, err := os.Lstat(dst); err == nil {
		return memory.Errorf(memory.ErrConflict, "backup: %s exists already", dst)
	}
	target, err := sql.Open("sqlite3", dsn(dst, Options{Busy: time.Second, CacheKiB: 2048}, false))
	if err != nil {
		return fmt.Errorf("backup to %s: %w", dst, classify(err))
	}
	if err := checkFile(dst, false); err != nil {
		return errors.Join(err, target.Close())
	}
	err = copyPages(ctx, d.reader, target)
	return errors.Join(err, target.Close())
}

// CopyFrom makes this database a copy of another, in one transaction for all who
// have it open.
func (d *DB) CopyFrom(ctx context.Context, from *DB) error {
	if d.writer == nil {
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", d.path)
	}
	return copyPages(ctx, from.reader, d.writer)
}

func copyPages(ctx context.Context, from, to *sql.DB) error {
	src, err := from.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer src.Close()
	dst, err := to.Conn(ctx)
	if err != nil {
		return classify(err)
	}
	defer dst.Close()
	// A copy outside a reading transaction begins anew at every change by another
	// connection, and need never end.
	if _, err := src.ExecContext(ctx, "BEGIN"); err != nil {
		return classify(err)
	}
	var tables int
	err = src.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables) // a transaction begins to read with its first statement
	if err == nil {
		err = steps(ctx, src, dst)
	}
	_, ending := src.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(classify(err), classify(ending))
}

// steps copies the pages, some at a time.
func steps(ctx context.Context, src, dst *sql.Conn) error {
	return src.Raw(func(s any) error {
		return dst.Raw(func(t any) error {
			b, err := t.(*driver.SQLiteConn).Backup("main", s.(*driver.SQLiteConn), "main")
			if err != nil {
				return classify(err)
			}
			for {
				done, err := b.Step(1024)
				if err != nil {
					return errors.Join(classify(err), b.Close())
				}
				if done {
					return classify(b.Finish())
				}
				if err := ctx.Err(); err != nil {
					return errors.Join(err, b.Close())
				}
				runtime.Gosched()
			}
		})
	})
}

// Version returns the number of migrations that the database has seen
// (PRAGMA user_version).
func (d *DB) Version(ctx context.Context) (int, error) {
	var version int
	err := d.reader.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, classify(err)
}

// magic begins every database file (SQLite's file format, section 1.3).
const magic = "SQLite format 3\x00"

// IsDatabase reports whether the regular file at path is a SQLite database.
func IsDatabase(path string) (bool, error) {
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // too short to be one
	}
	return err == nil && string(head) == magic, errors.Join(err, f.Close())
}

// RowError is the error of a row of a database that cannot be scanned: ErrCorrupt, but
// for the end of a context, which closes the rows between one and the next.
func RowError(err error, of string) error {
	if isEnd(err) {
		return err
	}
	return memory.Errorf(memory.ErrCorrupt, "read a row of %s: %w", of, err)
}

// Damage reports whether err says that a database is damaged. What was cut off by the
// end of a context tells nothing of that.
func Damage(err error) bool { return errors.Is(err, memory.ErrCorrupt) && !isEnd(err) }

func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Classify wraps an error of the driver in the kind that it stands for.
func Classify(err error) error { return classify(err) }

func classify(err error) error {
	var e driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case driver.ErrBusy, driver.ErrLocked:
		return memory.Errorf(memory.ErrUnavailable, "the database is locked by another process: %w", err)
	case driver.ErrCorrupt, driver.ErrNotADB:
		return memory.Errorf(memory.ErrCorrupt, "the database is damaged: %w", err)
	case driver.ErrFull:
		return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "the disk is full: %w", err), "free some space and try again; nothing was half-written")
	case driver.ErrReadonly, driver.ErrCantOpen, driver.ErrIoErr, driver.ErrPerm, driver.ErrNomem:
		return memory.Errorf(memory.ErrUnavailable, "the database cannot be written or read: %w", err)
	case driver.ErrInterrupt:
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case driver.ErrConstraint:
		return memory.Errorf(memory.ErrConflict, "%w", err)
	}
	return err
}

const (
	// busyPoll is the time between two tries of what SQLite does not wait for itself.
	busyPoll = 5 * time.Millisecond
	// busyStep is for how long SQLite waits for the lock of writers at once. Then wait
	// asks it again: it looks ever more rarely, and would miss the moments between
	// the changes of somebody who makes many.
	busyStep = 100 * time.Millisecond
)

func isBusy(err error) bool {
	var e driver.Error
	return errors.As(err, &e) && (e.Code == driver.ErrBusy || e.Code == driver.ErrLocked)
}

type patienceKey struct{}

type patience struct {
	length time.Duration
	told   func(waited time.Duration)
}

// Patient returns a context under which a change waits for whoever else changes a
// database for so long, if that is longer than Options.Busy: for work in the background,
// which loses nothing by waiting. told, unless it is nil, hears now and then how long a
// change has waited, every Options.Busy.
func Patient(ctx context.Context, length time.Duration, told func(waited time.Duration)) context.Context {
	return context.WithValue(ctx, patienceKey{}, patience{length, told})
}

// wait does something that takes the lock of writers, again and again while another
// process has it. What this process does itself is not waited for here: its one
// connection is taken before.
func (d *DB) wait(ctx context.Context, do func() error) error {
	p, _ := ctx.Value(patienceKey{}).(patience)
	p.length = max(p.length, d.busy)
	patience, cancel := context.WithTimeout(ctx, p.length)
	defer cancel()
	tick := time.NewTicker(d.busy)
	defer tick.Stop()
	for waited := time.Duration(0); ; {
		err := do()
		if !isBusy(err) {
			return err
		}
		select {
		case <-patience.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("%w, %s", ctx.Err(), err)
			}
			return memory.WithHint(fmt.Errorf("waited %s: %w", p.length, err),
				"another openclawssy process writes a lot, or is stopped; nothing is lost: try again")
		case <-tick.C:
			if waited += d.busy; p.told != nil {
				p.told(waited)
			}
		case <-time.After(busyPoll): // where SQLite does not wait by itself
		}
	}
}

// prepare makes the first connection and migrates. The change to WAL mode, in a
// file that several processes open for the first time at once, fails without
// waiting for a lock, so it is tried again for as long as a statement would wait.
func (d *DB) prepare(ctx context.Context, opts Options) error {
	p, _ := ctx.Value(patienceKey{}).(patience)
	patience, cancel := context.WithTimeout(ctx, max(p.length, opts.Busy))
	defer cancel()
	tick := time.NewTicker(busyPoll)
	defer tick.Stop()
	for {
		err := d.migrate(ctx, opts.Migrations)
		if !isBusy(err) {
			return err
		}
		select {
		case <-patience.Done():
			return err
		case <-tick.C:
		}
	}
}

// migrate applies the migrations that the file has not seen.
func (d *DB) migrate(ctx context.Context, migrations fs.FS) error {
	if migrations == nil {
		return classify(d.writer.PingContext(ctx))
	}
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return err
	}
	var have int
	if err := d.writer.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("open %s: %w", d.path, classify(err))
	}
	if have > len(names) {
		return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s has schema version %d, and this build knows %d", d.path, have, len(names)),
			"it was written by a newer openclawssy: install that version or a later one")
	}
	for i := have; i < len(names); i++ {
		if !strings.HasPrefix(filepath.Base(names[i]), fmt.Sprintf("%04d_", i+1)) {
			return memory.Errorf(memory.ErrInternal, "migration %s is out of order", names[i])
		}
		text, err := fs.ReadFile(migrations, names[i])
		if err != nil {
			return err
		}
		if err := d.apply(ctx, i+1, string(text)); err != nil {
			return fmt.Errorf("migrate %s with %s: %w", d.path, names[i], err)
		}
	}
	return nil
}

// apply runs one migration, unless another process has done so meanwhile.
func (d *DB) apply(ctx context.Context, version int, text string) error {
	return d.Update(ctx, func(tx *sql.Tx) error {
		var have int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
			return err
		}
		if have >= version {
			return nil
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(version))
		return err
	})
}

// HasFullText reports what is wrong with the SQLite that this program was built
// with: ErrInternal where it has no FTS5.
func HasFullText(ctx context.Context) (err error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return classify(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `CREATE VIRTUAL TABLE t USING fts5(x)`); err != nil {
		return memory.Errorf(memory.ErrInternal, "this build has no full-text search: %w", err)
	}
	return nil
}
