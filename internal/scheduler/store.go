package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The files of the scheduler's directory.
const (
	jobsFile      = "jobs.json"
	previousFile  = "jobs.json.prev" // the state before the last change
	damagedPrefix = "jobs.json.damaged-"
	jobsLock      = "jobs.lock"
	leaseLock     = "lease.lock"
	clockFile     = "clock"   // empty; its modification time is the clock as the holder of the lease last saw it
	runningDir    = "running" // one lock file per job, held while it runs
)

// formatVersion is the version of jobs.json.
const formatVersion = 1

// lockRetry is how long a process waits before it looks at a held lock again.
const lockRetry = 5 * time.Millisecond

// store keeps the jobs of all agents in one file. Several processes may use it
// at once: every change is made under a lock, on the state as it is on disk.
type store struct {
	dir func() string
	now func() time.Time
	mu  sync.Mutex // one change at a time in this process

	known sync.Mutex // guards what was decoded last, by its bytes
	text  []byte
	jobs  []Job
}

// document is the form of jobs.json.
type document struct {
	Version int             `json:"version"`
	CRC     string          `json:"crc"` // crc32c of jobs without white space, 8 hex digits
	Jobs    json.RawMessage `json:"jobs"`
}

// load returns the jobs in the order of their keys. A damaged file is never
// taken for an empty one: the state before the last change is returned with an
// ErrCorrupt, or the error alone where that is damaged too.
func (s *store) load() ([]Job, error) {
	jobs, err := s.read(jobsFile)
	switch {
	case err == nil:
		return jobs, nil
	case errors.Is(err, fs.ErrNotExist):
		// Between the two renames of a change there is only the previous state.
		jobs, err = s.read(previousFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return jobs, err
	case errors.Is(err, memory.ErrCorrupt):
		previous, prevErr := s.read(previousFile)
		if prevErr != nil {
			return nil, memory.WithHint(err, "there is no good copy beside it: repair it, or delete it and add the jobs again")
		}
		return previous, err
	}
	return nil, err
}

func (s *store) read(name string) ([]Job, error) {
	root, err := os.OpenRoot(s.dir())
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	defer root.Close()
	st, err := root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	path := filepath.Join(s.dir(), name)
	if !st.Mode().IsRegular() {
		return nil, memory.Errorf(memory.ErrDenied, "read jobs: %s is not a regular file", path)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	return s.decoded(path, text)
}

// decoded is decode, which it spares where the file is as it was. The jobs may
// be changed by the caller, but not what they point to.
func (s *store) decoded(path string, text []byte) ([]Job, error) {
	s.known.Lock()
	defer s.known.Unlock()
	if s.text != nil && bytes.Equal(s.text, text) {
		return slices.Clone(s.jobs), nil
	}
	jobs, err := decode(path, text)
	if err == nil {
		s.text, s.jobs = text, slices.Clone(jobs)
	}
	return jobs, err
}

// wrote keeps what was written, so that it need not be decoded.
func (s *store) wrote(text []byte, jobs []Job) {
	s.known.Lock()
	defer s.known.Unlock()
	s.text, s.jobs = text, slices.Clone(jobs)
}

// decode reads a jobs file and checks all of it.
func decode(path string, text []byte) ([]Job, error) {
	damaged := func(reason string) error { return &memory.CorruptError{Path: path, Offset: -1, Reason: reason} }
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, damaged(err.Error())
	}
	if doc.Version > formatVersion {
		return nil, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "%s was written by a newer version (format %d, this program knows %d)", path, doc.Version, formatVersion),
			"use the newer program")
	}
	sum, err := checksum(doc.Jobs)
	if err != nil {
		return nil, damaged(err.Error())
	}
	if doc.Version != formatVersion || sum != doc.CRC {
		return nil, damaged("its checksum does not fit")
	}
	var jobs []Job
	if err := json.Unmarshal(doc.Jobs, &jobs); err != nil {
		return nil, damaged(err.Error())
	}
	for i := range jobs {
		if err := jobs[i].check(); err != nil {
			return nil, damaged(fmt.Sprintf("job %d: %v", i, err))
		}
	}
	return jobs, nil
}

func checksum(jobs json.RawMessage) (string, error) {
	var plain bytes.Buffer
	if err := json.Compact(&plain, jobs); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", crc32.Checksum(plain.Bytes(), crc32.MakeTable(crc32.Castagnoli))), nil
}

// update changes the jobs on disk with fn and returns what stands there
// afterwards; it is durable when update returns. fn reports whether it changed
// anything; where it did not, or fails, nothing is written, except that a damaged
// file is replaced by the state before it.
func (s *store) update(ctx context.Context, fn func(*[]Job) (bool, error)) ([]Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir(), 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "change jobs: %w", err)
	}
	lock := flock.New(filepath.Join(s.dir(), jobsLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "change jobs: %w", err)
	}
	jobs, err := s.locked(fn)
	return jobs, errors.Join(err, lock.Unlock())
}

// locked is update with the lock held.
func (s *store) locked(fn func(*[]Job) (bool, error)) ([]Job, error) {
	jobs, err := s.load()
	damaged := errors.Is(err, memory.ErrCorrupt) && jobs != nil
	if err != nil && !damaged {
		return nil, err
	}
	changed, err := fn(&jobs)
	if err != nil || !changed && !damaged {
		return jobs, err
	}
	slices.SortFunc(jobs, func(a, b Job) int { return strings.Compare(a.key(), b.key()) })
	if err := s.write(jobs, damaged); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "change jobs: %w", err)
	}
	return jobs, nil
}

// write replaces the file. The one that stood there becomes the previous one, or
// is set aside where it is damaged.
func (s *store) write(jobs []Job, damaged bool) error {
	raw, err := json.Marshal(append([]Job{}, jobs...)) // never null
	if err != nil {
		return err
	}
	sum, err := checksum(raw)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(document{Version: formatVersion, CRC: sum, Jobs: raw}, "", "  ")
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir())
	if err != nil {
		return err
	}
	defer root.Close()
	text = append(text, '\n')
	file, err := renameio.NewPendingFile(jobsFile, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	// The new bytes are on disk before the old ones move.
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync()); err != nil {
		return errors.Join(err, file.Cleanup())
	}
	aside := previousFile
	if damaged {
		aside = damagedPrefix + s.now().UTC().Format("20060102T150405.000Z")
	}
	if err := root.Rename(jobsFile, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, file.Cleanup())
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, file.Cleanup())
	}
	s.wrote(text, jobs)
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// see keeps what the clock shows, for the process that comes after this one. It
// need not be durable: an older time only says less.
func (s *store) see(now time.Time) error {
	path := filepath.Join(s.dir(), clockFile)
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(path, nil, 0o600); err == nil {
			err = os.Chtimes(path, now, now)
		}
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep the time: %w", err)
	}
	return nil
}

// lastSeen returns what the clock showed when see was last called; zero where it
// never was.
func (s *store) lastSeen() time.Time {
	st, err := os.Stat(filepath.Join(s.dir(), clockFile))
	if err != nil {
		return time.Time{} // not knowing it does no harm
	}
	return st.ModTime()
}

// setAside lists the damaged files that wait for a person to look at them.
func (s *store) setAside() ([]string, error) {
	entries, err := os.ReadDir(s.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), damagedPrefix) {
			names = append(names, filepath.Join(s.dir(), e.Name()))
		}
	}
	return names, nil
}

// tryLock takes a lock of the scheduler's directory if nobody holds it: it is
// gone with its process. The returned function gives it back.
func (s *store) tryLock(name string) (unlock func() error, taken bool, err error) {
	path := filepath.Join(s.dir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, false, memory.Errorf(memory.ErrUnavailable, "lock %s: %w", path, err)
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	taken, err = lock.TryLock()
	if err != nil {
		return nil, false, memory.Errorf(memory.ErrUnavailable, "lock %s: %w", path, err)
	}
	return lock.Unlock, taken, nil
}

// lockOf returns the name of a job's lock. Agents' names hold no dot, so that no
// two jobs share one.
func lockOf(j *Job) string {
	return filepath.Join(runningDir, string(j.Agent)+"."+j.Name+".lock")
}
