// Package archive keeps every turn of an agent's conversations as passages that
// can be searched: archive.db. It follows the event log by cursor and is wholly
// derived from it: delete the file, and the next Follow brings it back
// identical, handles included.
package archive

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// redactor takes secrets out of a text.
type redactor interface {
	Text(string) string
}

// Options are what a Store needs from outside.
type Options struct {
	Redact redactor         // applied to every text before it is written
	Now    func() time.Time // names a damaged file that is set aside
	// ReadOnly serves what is there and follows nothing; a missing file is
	// ErrNotFound.
	ReadOnly bool
	// KeptBytes is how many bytes of postings are kept in memory so that questions
	// need not read them; 4 MiB if zero, none if negative.
	KeptBytes int
}

// Store is one agent's archive. It is safe for concurrent use, also by several
// processes on one file.
type Store struct {
	path         string
	opts         Options
	mostPostings int

	mu   sync.RWMutex // held for writing while the file is replaced
	db   *sqlite.DB
	file os.FileInfo // of the file that db has open
	seen atomic.Pointer[snapshot]
	load sync.Mutex // one loader of snapshots at a time
	kept *postings.Keeper[*snapshot]
}

// Open opens the archive at path, and creates it unless opts.ReadOnly. A
// damaged file is renamed to <path>.corrupt-<time> and a new one started, which
// the next Follow fills; a file of a newer build is ErrConflict.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	s := &Store{path: path, opts: opts, mostPostings: maxPostings, kept: postings.NewKeeper[*snapshot](int(columns), max(0, cmp.Or(opts.KeptBytes, keptBytes)))}
	s.forget()
	err := s.open(ctx)
	if sqlite.Damage(err) && !opts.ReadOnly {
		err = s.replace(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	s.db, err = sqlite.Open(ctx, s.path, sqlite.Options{Migrations: migrations, Derived: true, ReadOnly: s.opts.ReadOnly})
	if err != nil {
		return err
	}
	if s.file, err = os.Lstat(s.path); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "look at the archive: %w", err)
	}
	return nil
}

// replace sets the file aside, if it is there, and starts a new one. The caller
// holds mu, or is Open.
func (s *Store) replace(ctx context.Context) error {
	if s.db != nil {
		if err := s.db.Close(); err != nil && !errors.Is(sqlite.Classify(err), memory.ErrCorrupt) {
			return fmt.Errorf("close the damaged archive: %w", err)
		}
		s.db = nil
	}
	aside := s.path + ".corrupt-" + s.opts.Now().UTC().Format("20060102T150405.000Z")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(s.path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "set the damaged archive aside: %w", err)
		}
	}
	s.forget()
	return s.open(ctx)
}

// forget drops what is known of the file.
func (s *Store) forget() {
	none := &snapshot{}
	s.kept.Reset(none)
	s.seen.Store(none)
}

// Close closes the database.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Store) close() error {
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	return err
}

// view runs fn in a reading transaction whose statements wait for another
// process's lock no longer than ctx allows.
func (s *Store) view(ctx context.Context, fn func(*sql.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	return s.db.View(ctx, func(tx *sql.Tx) error {
		wait := lockWait
		if deadline, bounded := ctx.Deadline(); bounded {
			wait = min(wait, max(time.Millisecond, time.Until(deadline)))
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds())); err != nil {
			return err
		}
		return fn(tx)
	})
}

// lockWait is how long a read without a deadline waits for a lock.
const lockWait = 5 * time.Second

// state is how far the archive has come.
type state struct {
	cursor   memory.Cursor
	passages int64
	epoch    int64
}

// queryRower is a transaction or a pool.
type queryRower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readState(ctx context.Context, q queryRower) (state, error) {
	var st state
	err := q.QueryRowContext(ctx, "SELECT seq, file, offset, passages, epoch FROM state").
		Scan(&st.cursor.Seq, &st.cursor.File, &st.cursor.Offset, &st.passages, &st.epoch)
	return st, err
}

// Cursor returns where the next Follow starts.
func (s *Store) Cursor(ctx context.Context) (memory.Cursor, error) {
	st, err := s.state(ctx)
	return st.cursor, err
}

// state reads how far the archive has come: one statement, not a transaction.
func (s *Store) state(ctx context.Context) (state, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return state{}, memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	st, err := readState(ctx, s.db.Reader())
	return st, sqlite.Classify(err)
}

// Lag returns how many events the archive is behind a log whose last event is
// lastSeq.
func (s *Store) Lag(ctx context.Context, lastSeq int64) (int64, error) {
	c, err := s.Cursor(ctx)
	return max(0, lastSeq-c.Seq), err
}

// LookLag is Lag of the archive at path, as the file stands: no file is made beside
// it. ErrNotFound where there is none.
func LookLag(ctx context.Context, path string, lastSeq int64) (lag int64, err error) {
	s := &Store{path: path}
	s.seen.Store(&snapshot{})
	if s.db, err = sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true, Traceless: true}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	return s.Lag(ctx, lastSeq)
}

// Extent says how much an archive holds.
type Extent struct {
	Passages int64 // the highest n of EVT-n
	Epoch    int64 // counts changes of passages that were in already
}

// Extent returns how much the archive holds.
func (s *Store) Extent(ctx context.Context) (Extent, error) {
	st, err := s.state(ctx)
	return Extent{st.passages, st.epoch}, err
}

const episodeColumns = `e.n, e.event_id, e.source_id, s.id, e.seq, e.part, e.turn, e.type, e.origin, e.speaker, e.text, e.caption, e.time, e.zone
	FROM episodes e JOIN sessions s ON s.n = e.session`

func scanEpisode(scan func(...any) error) (memory.Episode, error) {
	var e memory.Episode
	var n, ms, zone int64
	err := scan(&n, &e.EventID, &e.SourceID, &e.SessionID, &e.Seq, &e.Part, &e.Turn, &e.Type, &e.Origin, &e.Speaker, &e.Text, &e.Caption, &ms, &zone)
	e.Handle = Handle(n)
	e.Time = time.UnixMilli(ms).In(location(int(zone)))
	return e, err
}

// location returns the zone that lies so many seconds east of UTC.
func location(seconds int) *time.Location {
	if seconds == 0 {
		return time.UTC
	}
	return time.FixedZone("", seconds)
}

// Handle returns the handle of passage n.
func Handle(n int64) string { return fmt.Sprintf("EVT-%d", n) }

// ParseHandle returns the n of EVT-n; ErrInvalid for anything else.
func ParseHandle(handle string) (int64, error) {
	var n int64
	if _, err := fmt.Sscanf(handle, "EVT-%d", &n); err != nil || n < 1 || Handle(n) != handle {
		return 0, &memory.FieldError{Field: "handle", Reason: "must be EVT- and a number", Hint: "such as EVT-41, as memory search --scope episodes shows them"}
	}
	return n, nil
}

// Get returns the passage with that handle; ErrNotFound for one that is not
// there or suppressed.
func (s *Store) Get(ctx context.Context, handle string) (memory.Episode, error) {
	n, err := ParseHandle(handle)
	if err != nil {
		return memory.Episode{}, err
	}
	found, err := s.Episodes(ctx, []int64{n})
	if err != nil {
		return memory.Episode{}, err
	}
	if len(found) == 0 {
		return memory.Episode{}, memory.Errorf(memory.ErrNotFound, "there is no episode %s", handle)
	}
	return found[0], nil
}

// Episodes returns the passages of the given numbers, in that order; those that
// are not there or suppressed are left out.
func (s *Store) Episodes(ctx context.Context, numbers []int64) ([]memory.Episode, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	found, err := s.episodes(ctx, "e.n IN (SELECT value FROM json_each(?))", string(list))
	if err != nil {
		return nil, err
	}
	byHandle := make(map[string]memory.Episode, len(found))
	for _, e := range found {
		byHandle[e.Handle] = e
	}
	out := make([]memory.Episode, 0, len(found))
	for _, n := range numbers {
		if e, there := byHandle[Handle(n)]; there {
			out = append(out, e)
		}
	}
	return out, nil
}

// ByEvent returns the passages of one event, in order; none where the event is
// unknown or suppressed.
func (s *Store) ByEvent(ctx context.Context, eventID string) ([]memory.Episode, error) {
	return s.episodes(ctx, "e.event_id = ?", eventID)
}

// episodes is one statement, which needs no transaction.
func (s *Store) episodes(ctx context.Context, where string, args ...any) ([]memory.Episode, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read episodes: the archive is closed")
	}
	out, err := readEpisodes(ctx, s.db.Reader(), where, args...)
	if err != nil {
		return nil, fmt.Errorf("read episodes: %w", sqlite.Classify(err))
	}
	return out, nil
}

func readEpisodes(ctx context.Context, db *sql.DB, where string, args ...any) ([]memory.Episode, error) {
	rows, err := db.QueryContext(ctx, "SELECT "+episodeColumns+" WHERE "+where+
		" AND e.event_id NOT IN (SELECT event_id FROM suppressed) ORDER BY e.n", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []memory.Episode
	for rows.Next() {
		e, err := scanEpisode(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// After returns up to limit passages that come after passage n in the log's
// order, without suppressed ones and probes; none at the end.
func (s *Store) After(ctx context.Context, n int64, limit int) ([]memory.Episode, error) {
	return s.episodes(ctx, "e.n IN (SELECT n FROM episodes WHERE n > ? AND type <> ? AND event_id NOT IN (SELECT event_id FROM suppressed) ORDER BY n LIMIT ?)", n, memory.Probe, limit)
}

// Compact tidies up the database in small steps that lock no reader out. With
// nothing to do it writes nothing.
func (s *Store) Compact(ctx context.Context) (sqlite.Compacted, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return sqlite.Compacted{}, nil
	}
	return s.db.Compact(ctx, "m", "p")
}
