// Package index is the search index of a workspace: one SQLite file in the shape
// of OpenClaw's own, made of the workspace's Markdown and rebuilt from it at any
// time. It searches by words and, with an Embedder, by meaning, and answers in
// the shapes of OpenClaw's tools memory_search and memory_get.
package index

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// FileName is the index's name in an agent's memory directory.
const FileName = "workspace.db"

// redactor takes secrets out of a text.
type redactor interface {
	Text(string) string
}

// Options are what an Index needs from outside.
type Options struct {
	Now    func() time.Time
	NewID  func() string // names the file that a new index is built in
	Redact redactor      // applied to every text before it is written or sent
	// Embedder makes the vectors; nil for a search by words only. Endpoint says
	// where they come from.
	Embedder Embedder
	Endpoint Endpoint
	// CacheEntries is how many vectors are kept for texts that come back; 100,000
	// if zero.
	CacheEntries int
	// Sessions returns the directory of OpenClaw's session transcripts, for indexes
	// that have them as a second source; nil where they cannot be had.
	Sessions func() (string, error)
}

// Index is one index file, which need not exist. It holds nothing open between
// calls, and is safe for concurrent use, also by several processes.
type Index struct {
	path   string
	o      Options
	rename func(from, to string) error
}

// New returns the index at path.
func New(path string, o Options) *Index {
	if o.CacheEntries == 0 {
		o.CacheEntries = 100_000
	}
	return &Index{path: path, o: o, rename: os.Rename}
}

// Path returns the index's file.
func (x *Index) Path() string { return x.path }

// A database file must not be renamed while somebody has it open. So whoever has
// it open holds the use lock with others, and a swap holds it alone; who writes
// holds the build lock, so that only one does.
const (
	useLock   = ".use"
	buildLock = ".build"

	lockRetry = 20 * time.Millisecond
)

func (x *Index) lock(suffix string) *flock.Flock {
	return flock.New(x.path+suffix, flock.SetPermissions(0o600))
}

// lockError says what holds x up.
func (x *Index) lockError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("wait for who else works on %s: %w", x.path, err)
	}
	return memory.Errorf(memory.ErrUnavailable, "lock %s: %w", x.path, err)
}

// alone runs fn as the only writer. Without wait it does nothing where another
// one is at work, and says so.
func (x *Index) alone(ctx context.Context, wait bool, fn func() error) (ran bool, err error) {
	l := x.lock(buildLock)
	defer func() { err = errors.Join(err, l.Close()) }()
	if wait {
		ran, err = l.TryLockContext(ctx, lockRetry)
	} else {
		ran, err = l.TryLock()
	}
	if err != nil {
		return false, x.lockError(err)
	}
	if !ran {
		return false, nil
	}
	return true, fn()
}

// with runs fn on the open database; ErrNotFound if there is none. Where the disk
// cannot be written it is open for reading.
func (x *Index) with(ctx context.Context, fn func(*sqlite.DB) error) (err error) {
	if _, err := os.Stat(x.path); errors.Is(err, fs.ErrNotExist) {
		return memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no index %s", x.path), "openclawssy workspace index makes it")
	}
	l := x.lock(useLock)
	defer func() { err = errors.Join(err, l.Close()) }()
	// Where no lock can be made, on a disk that cannot be written, nobody swaps.
	if _, err := l.TryRLockContext(ctx, lockRetry); err != nil && !readOnly(err) {
		return x.lockError(err)
	}
	db, err := open(ctx, x.path, false)
	if errors.Is(err, memory.ErrUnavailable) && ctx.Err() == nil {
		db, err = open(ctx, x.path, true)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// readOnly reports whether a file could not be made because of where it is.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

func open(ctx context.Context, path string, readOnly bool) (*sqlite.DB, error) {
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqlite.Options{Migrations: migrations, Derived: true, ReadOnly: readOnly, CacheKiB: 8192})
}

// companions are the files of one database.
var companions = []string{"", "-wal", "-shm"}

// building and replaced name the files beside an index that is built anew.
func (x *Index) building(id string) string { return x.path + ".tmp-" + id }
func (x *Index) replaced() string          { return x.path + ".old" }

// swap puts a newly built database in the place of the one in use. The old one
// comes back if that fails.
func (x *Index) swap(ctx context.Context, built string) (err error) {
	l := x.lock(useLock)
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		return x.lockError(err)
	}
	if err := x.move(x.path, x.replaced()); err != nil {
		return errors.Join(err, x.bringBack())
	}
	if err := x.move(built, x.path); err != nil {
		return errors.Join(err, x.bringBack())
	}
	return discard(x.replaced())
}

// move renames a database with its companions, the main file last. What is not
// there is passed over.
func (x *Index) move(from, to string) error {
	for i := len(companions) - 1; i >= 0; i-- {
		if err := x.rename(from+companions[i], to+companions[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "swap the index: %w", err)
		}
	}
	return nil
}

// bringBack undoes the first half of a swap.
func (x *Index) bringBack() error {
	for _, c := range companions {
		err := os.Rename(x.replaced()+c, x.path+c)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "bring the old index back: %w", err)
		}
	}
	return nil
}

// tidy ends what a process that died left half-way: it brings back an index that
// was moved aside and removes those that were never finished. The caller is alone.
func (x *Index) tidy() error {
	if _, err := os.Stat(x.path); errors.Is(err, fs.ErrNotExist) {
		if err := x.bringBack(); err != nil {
			return err
		}
	}
	dir, base := filepath.Split(x.path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "look for unfinished indexes: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+".tmp-") {
			if err := os.Remove(dir + e.Name()); err != nil {
				return memory.Errorf(memory.ErrUnavailable, "remove an unfinished index: %w", err)
			}
		}
	}
	return discard(x.replaced())
}

// discard removes a database.
func discard(path string) error {
	for _, c := range companions {
		if err := os.Remove(path + c); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "remove %s: %w", filepath.Base(path+c), err)
		}
	}
	return nil
}
