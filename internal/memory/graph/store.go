package graph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// FileName is the graph's name in an agent's memory directory.
const FileName = "graph.json"

const lockPoll = time.Millisecond // between two tries for another process's lock

// stamp is the form of a time in the name of a file that was set aside.
const stamp = "20060102T150405Z"

// redactor takes secrets out of a text, and out of every text within a value.
type redactor interface {
	Text(string) string
	Value(any) any
}

// Options are what a Store works with.
type Options struct {
	Now   func() time.Time // required
	NewID func() string    // returns 32 hex digits, never the same again; required
	// Redact goes over labels, payloads, tags, meta and unknown members before
	// they are written, and refuses secrets in ids and types. nil stores what is
	// given: for hosts whose bytes are their own.
	Redact redactor
	Limits Limits // the zero value stands for the contract's defaults
	// Snapshot is the path of an ArmaraOS snapshot that is read, if it is there,
	// before the file; what both have is the file's. "" for none.
	Snapshot string
	// ReadOnly opens what is there without writing or locking: where the disk
	// refuses more.
	ReadOnly bool
	Log      zerolog.Logger
}

// Store is one graph. It is safe for concurrent use, by several goroutines and
// several processes.
type Store struct {
	path   string
	opts   Options
	limits Limits
	lock   *flock.Flock

	mu       sync.RWMutex
	state    *state
	rest     rest  // what the file holds beside the graph
	disk     disk  // what the state was read from
	pending  delta // changes that are not on disk
	imported imported
	revision uint64
	notes    []string
	closed   bool
	ranks    ranks // of the nodes, for Ranked
}

// Open opens the graph in the file at path, which need not exist: it and its
// directory are made by the first change. A file that cannot be read is set
// aside under another name, which Notes and the log tell; one that is larger
// than the limits is refused with ErrInvalid and left alone.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.Limits == (Limits{}) {
		opts.Limits = defaultLimits
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "the path of the graph: %w", err)
	}
	s := &Store{path: path, opts: opts, limits: opts.Limits, state: newState(),
		lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	s.imported = s.readSnapshot()
	if err := s.openFirst(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open graph: %w", err), s.disk.close())
	}
	return s, nil
}

func (s *Store) openFirst(ctx context.Context) error {
	if !s.opts.ReadOnly {
		return s.locked(ctx, false, s.reload)
	}
	for { // another process may write the file between the reading of the two
		if err := s.reload(); err != nil || ctx.Err() != nil || !s.disk.baseChanged(s.path) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// Path returns the file of the graph.
func (s *Store) Path() string { return s.path }

// Limits returns the limits in force.
func (s *Store) Limits() Limits { return s.limits }

// Notes tell what was set aside when the graph was read: damaged files, and rows
// that could not be read. They are in the log as well.
func (s *Store) Notes() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]string(nil), s.notes...)
}

// SetAside lists the files beside the graph that keep what could not be read.
func (s *Store) SetAside() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	var found []string
	for _, e := range entries {
		rest, beside := strings.CutPrefix(e.Name(), filepath.Base(s.path)+".")
		if beside && (strings.Contains(rest, "damaged-") || rest == "unread.jsonl") {
			found = append(found, filepath.Join(filepath.Dir(s.path), e.Name()))
		}
	}
	return found, nil
}

func (s *Store) note(text string) {
	s.notes = append(s.notes, text)
	s.opts.Log.Warn().Str("path", s.path).Msg(text)
}

// Close folds the journal into the file and gives the files back. Changes that
// were made in memory only are lost.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if !s.opts.ReadOnly && s.disk.applied > 0 {
		read := s.refresh
		if !s.pending.empty() {
			// What is in memory only goes: the state is read anew, and need not be there twice.
			read, s.state, s.pending = s.reload, sized(0, 0), delta{}
		}
		err = s.locked(context.Background(), false, func() error {
			if err := read(); err != nil {
				return err
			}
			return s.rewrite()
		})
	}
	return errors.Join(err, s.disk.close(), s.lock.Close())
}

// locked runs fn while no other process reads or writes the files. Where there
// is nothing on disk and nothing is to be made, there is nothing to lock.
func (s *Store) locked(ctx context.Context, create bool, fn func() error) error {
	dir := filepath.Dir(s.path)
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "create the directory of %s: %w", s.path, err)
		}
	} else if there, err := s.onDisk(); err != nil || !there {
		return errors.Join(err, fn())
	}
	if _, err := s.lock.TryLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock %s: %w", s.path, err)
	}
	return errors.Join(fn(), s.lock.Unlock())
}

// onDisk reports whether the graph has a file.
func (s *Store) onDisk() (bool, error) {
	for _, path := range []string{s.path, s.journalPath()} {
		_, err := os.Stat(path)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
	}
	return false, nil
}

// View calls fn with the graph as it is now on disk, and what this process has
// changed in memory. The graph does not change while fn runs; fn must not call
// methods of the store. Nodes and edges may be kept when it has returned.
func (s *Store) View(ctx context.Context, fn func(*View) error) error {
	if err := s.freshen(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn(&View{s.state, s.revision})
}

// freshen takes in what other processes wrote and removes what has expired.
func (s *Store) freshen(ctx context.Context) error {
	s.mu.RLock()
	current := s.closed || s.opts.ReadOnly || !s.disk.stale(s.path, s.journalPath())
	dead := s.state.someExpired(s.now())
	s.mu.RUnlock()
	if current && !dead {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !current {
		if err := s.locked(ctx, false, s.refresh); err != nil {
			return err
		}
	}
	s.prune()
	return nil
}

// prune removes the nodes that have expired.
func (s *Store) prune() {
	dead := s.state.expired(s.now())
	if len(dead) == 0 {
		return
	}
	s.pending.drop(dead)
	s.revision++
}

// now is the clock in Unix seconds, in microseconds.
func (s *Store) now() float64 { return float64(s.opts.Now().UnixMicro()) / 1e6 }

// Write says what becomes of a change.
type Write struct {
	DryRun bool // nothing: it is checked and answered, and undone
	Hold   bool // it stays in memory until another change, or Flush, is written
}

// Update calls fn, which changes the graph through tx, and makes the changes
// durable as a whole. If fn fails, nothing has changed. fn must not call methods
// of the store.
func (s *Store) Update(ctx context.Context, w Write, fn func(*Tx) error) error {
	if !w.DryRun && !w.Hold {
		return s.write(ctx, func() error { return s.change(w, fn) })
	}
	if err := s.freshen(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(w, fn)
}

// change runs fn on the state and saves what it did.
func (s *Store) change(w Write, fn func(*Tx) error) error {
	s.prune()
	if s.state.sparse() {
		s.state = s.state.compact()
	}
	tx := &Tx{View: View{s.state, s.revision}, store: s}
	err := fn(tx)
	if err == nil && w.Hold && tx.touched.removes() {
		err = memory.Errorf(memory.ErrInternal, "what is removed from a graph cannot be held in memory")
	}
	before := s.pending.clone()
	if err == nil && !w.DryRun {
		s.pending.add(tx.touched)
		s.prune() // what was added dead
		if !w.Hold {
			err = s.save()
		}
	}
	if err != nil || w.DryRun {
		s.pending = before
		tx.undo()
		return err
	}
	if tx.touched.any() {
		s.revision++
	}
	return nil
}

// Flush writes the changes that were held in memory. A small graph's file is
// written even if there are none.
func (s *Store) Flush(ctx context.Context) error {
	return s.write(ctx, func() error {
		s.prune()
		if s.disk.info == nil || s.disk.info.Size()+s.disk.applied < s.limits.JournalFrom {
			return s.rewrite()
		}
		return s.save()
	})
}

// Fold brings the journal into the JSON file, so that other programs see every
// change there.
func (s *Store) Fold(ctx context.Context) error {
	return s.write(ctx, func() error {
		if s.disk.applied == 0 {
			return nil
		}
		return s.rewrite()
	})
}

// write runs fn under the lock, with the state as it is on disk.
func (s *Store) write(ctx context.Context, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return memory.Errorf(memory.ErrUnavailable, "%s is closed", s.path)
	case s.opts.ReadOnly:
		return memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", s.path)
	}
	return s.locked(ctx, true, func() error {
		if err := s.refresh(); err != nil {
			return err
		}
		return fn()
	})
}

// View is a graph that does not change. Use it within the function that it was
// given to.
type View struct {
	state    *state
	revision uint64
}

// Revision changes whenever the graph does, within one process.
func (v *View) Revision() uint64 { return v.revision }

// Len returns the numbers of nodes and edges.
func (v *View) Len() (nodes, edges int) { return v.state.liveNodes, v.state.liveEdges }

// Node returns the node with an id; nil where there is none.
func (v *View) Node(id string) *Node { return v.state.node(id) }

// Edge returns the edge with an id; nil where there is none.
func (v *View) Edge(id string) *Edge { return v.state.edgeByID(id) }

// Nodes yields all nodes in the order in which they were first added.
func (v *View) Nodes() iter.Seq[*Node] { return v.state.allNodes() }

// NodesOf yields the nodes of one type, in the same order.
func (v *View) NodesOf(kind string) iter.Seq[*Node] { return v.state.nodesOf(kind) }

// Edges yields all edges in the order in which they were first added.
func (v *View) Edges() iter.Seq[*Edge] { return v.state.allEdges() }

// Out yields the edges that leave a node. Their other end may not exist.
func (v *View) Out(id string) iter.Seq[*Edge] {
	return v.state.edgesAt(id, func(s *spot) []int32 { return s.out })
}

// In yields the edges that lead to a node. Their other end may not exist.
func (v *View) In(id string) iter.Seq[*Edge] {
	return v.state.edgesAt(id, func(s *spot) []int32 { return s.in })
}

// WhileStill calls fn with the files that hold the graph at path while nobody
// writes them; with none where there is no graph.
func WhileStill(ctx context.Context, path string, fn func(files []string) error) error {
	s := &Store{path: path, lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	err := s.locked(ctx, false, func() error {
		var files []string
		for _, file := range []string{s.path, s.journalPath()} {
			_, err := os.Stat(file)
			if err == nil {
				files = append(files, file)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return memory.Errorf(memory.ErrUnavailable, "%w", err)
			}
		}
		return fn(files)
	})
	return errors.Join(err, s.lock.Close())
}
