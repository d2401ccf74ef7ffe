// Package session keeps what is known of each conversation besides its turns:
// one small JSON file per session, in the agent's sessions directory. The turns
// themselves live once, in the event log.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Redactor removes secrets from text.
type Redactor interface{ Text(string) string }

// Options are what a Store needs besides its directory. All are required.
type Options struct {
	Agent  memory.AgentID
	Now    func() time.Time
	Redact Redactor
}

// Store keeps the sessions of one agent. It is safe for concurrent use, by
// several processes too: a file is replaced whole, and the last writer wins.
type Store struct {
	dir string
	Options

	mu    sync.Mutex        // one writer at a time in this process
	kinds map[string]string // of sessions that exist; a kind never changes
}

// kindsKept bounds the cache of kinds.
const kindsKept = 4096

// Open returns the store of the sessions in dir, which is created (0700) by the
// first write.
func Open(dir string, o Options) *Store {
	return &Store{dir: dir, Options: o, kinds: map[string]string{}}
}

// Ensure returns the session want.ID, creating it where it is missing. Of a
// session that exists, members that were empty are filled from want, and an
// ended one is taken up again. Its kind is fixed, and so is the user of a
// private session: another one is ErrConflict, since what one person said must
// not reach another. An empty kind stands for main; Agent is set by the store, and
// so is Started where it is zero.
func (s *Store) Ensure(_ context.Context, want memory.Session) (memory.Session, error) {
	want, err := s.checked(want)
	if err != nil {
		return memory.Session{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, err := s.read(want.ID)
	switch {
	case errors.Is(err, memory.ErrNotFound):
		have = memory.Session{ID: want.ID, Agent: s.Agent, Kind: want.Kind, Started: want.Started.UTC()}
		if want.Started.IsZero() {
			have.Started = s.Now().UTC()
		}
		if have.Kind == "" {
			have.Kind = memory.SessionMain
		}
	case err != nil:
		return memory.Session{}, err
	}
	merged, err := merge(have, want)
	if err != nil || merged == have {
		return merged, err
	}
	return merged, s.write(merged)
}

// merge fills the empty members of have from want and takes an ended session up
// again.
func merge(have, want memory.Session) (memory.Session, error) {
	if want.Kind != "" && want.Kind != have.Kind {
		return have, memory.WithHint(memory.Errorf(memory.ErrConflict, "session %s is a %s session, not %s", have.ID, have.Kind, want.Kind),
			"start another session")
	}
	if have.Kind == memory.SessionMain && have.UserID != "" && want.UserID != "" && want.UserID != have.UserID {
		return have, memory.WithHint(memory.Errorf(memory.ErrConflict, "session %s is another user's", have.ID), "start another session")
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{&have.Channel, want.Channel}, {&have.UserID, want.UserID}, {&have.Zone, want.Zone}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	have.Ended = nil
	return have, nil
}

// Get returns one session; ErrNotFound where there is none of that id.
func (s *Store) Get(_ context.Context, id string) (memory.Session, error) {
	if err := CheckID(id); err != nil {
		return memory.Session{}, err
	}
	return s.read(id)
}

// Kind returns the kind of a session, from memory where it is known already.
// One that has no file, such as an imported conversation, counts as main: what
// was said in it is private.
func (s *Store) Kind(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	kind, known := s.kinds[id]
	s.mu.Unlock()
	if known {
		return kind, nil
	}
	sess, err := s.Get(ctx, id)
	switch {
	case errors.Is(err, memory.ErrNotFound), errors.Is(err, memory.ErrInvalid):
		return memory.SessionMain, nil
	case err != nil:
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remember(sess)
	return sess.Kind, nil
}

// remember keeps a kind; mu is held.
func (s *Store) remember(sess memory.Session) {
	if len(s.kinds) >= kindsKept {
		clear(s.kinds)
	}
	s.kinds[sess.ID] = sess.Kind
}

// End marks a session as ended now; one that has ended already stays as it is.
func (s *Store) End(_ context.Context, id string) (memory.Session, error) {
	if err := CheckID(id); err != nil {
		return memory.Session{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.read(id)
	if err != nil || sess.Ended != nil {
		return sess, err
	}
	now := s.Now().UTC()
	sess.Ended = &now
	return sess, s.write(sess)
}

// List returns the sessions, latest started first, at most limit of them (0 for
// all); never nil. Where a file is damaged the others are returned with the
// error.
func (s *Store) List(_ context.Context, limit int) ([]memory.Session, error) {
	all := []memory.Session{}
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, fmt.Errorf("list sessions: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return all, fmt.Errorf("list sessions: %w", err)
	}
	var damaged []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		sess, err := s.readFile(root, e.Name())
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		all = append(all, sess)
	}
	slices.SortFunc(all, func(a, b memory.Session) int {
		if c := b.Started.Compare(a.Started); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, errors.Join(damaged...)
}

// Damage names a file of the directory of sessions that is no session's.
type Damage struct{ Name, Reason string }

// Damaged returns the files among an agent's sessions that cannot be read as such,
// by name. It changes nothing.
func Damaged(dir string, agent memory.AgentID) ([]Damage, error) {
	s := Open(dir, Options{Agent: agent})
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look at the sessions: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look at the sessions: %w", err)
	}
	var bad []Damage
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		_, err := s.readFile(root, e.Name())
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, memory.ErrCorrupt), errors.Is(err, memory.ErrDenied):
			bad = append(bad, Damage{e.Name(), err.Error()})
		default:
			return bad, memory.Errorf(memory.ErrUnavailable, "look at the sessions: %w", err)
		}
	}
	return bad, nil
}

func (s *Store) open() (*os.Root, error) { return os.OpenRoot(s.dir) }

func (s *Store) read(id string) (memory.Session, error) {
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return memory.Session{}, notFound(id)
	}
	if err != nil {
		return memory.Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	defer root.Close()
	sess, err := s.readFile(root, fileName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return memory.Session{}, notFound(id)
	}
	return sess, err
}

func notFound(id string) error {
	return memory.Errorf(memory.ErrNotFound, "there is no session %q", id)
}

// readFile reads one session and checks that it stands where its id belongs.
func (s *Store) readFile(root *os.Root, name string) (memory.Session, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return memory.Session{}, fmt.Errorf("read session: %w", err)
	}
	if !st.Mode().IsRegular() {
		return memory.Session{}, memory.Errorf(memory.ErrDenied, "read session: %s is not a regular file", name)
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return memory.Session{}, fmt.Errorf("read session: %w", err)
	}
	var sess memory.Session
	if err := json.Unmarshal(text, &sess); err != nil {
		return memory.Session{}, &memory.CorruptError{Path: name, Offset: -1, Reason: err.Error()}
	}
	switch {
	case CheckID(sess.ID) != nil || fileName(sess.ID) != name || sess.Agent != s.Agent:
		return memory.Session{}, &memory.CorruptError{Path: name, Offset: -1, Reason: "it describes another session"}
	case sess.Kind != memory.SessionMain && sess.Kind != memory.SessionGroup:
		return memory.Session{}, &memory.CorruptError{Path: name, Offset: -1, Reason: fmt.Sprintf("unknown kind %q", sess.Kind)}
	}
	return sess, nil
}

// write replaces the session's file whole and remembers its kind; mu is held.
func (s *Store) write(sess memory.Session) error {
	text, err := json.MarshalIndent(sess, "", "  ")
	if err != nil {
		return fmt.Errorf("write session %s: %w", sess.ID, err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write session %s: %w", sess.ID, err)
	}
	root, err := s.open()
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write session %s: %w", sess.ID, err)
	}
	defer root.Close()
	if err := renameio.WriteFile(fileName(sess.ID), append(text, '\n'), 0o600, renameio.WithRoot(root), renameio.WithStaticPermissions(0o600)); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write session %s: %w", sess.ID, err)
	}
	s.remember(sess)
	return nil
}

// Remove takes away what is known of a session; one that is not there is no error.
func (s *Store) Remove(id string) (removed bool, err error) {
	if err := CheckID(id); err != nil {
		return false, nil // of an importer: it never had a file
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, id)
	root, err := s.open()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, memory.Errorf(memory.ErrUnavailable, "remove session %s: %w", id, err)
	}
	defer root.Close()
	err = root.Remove(fileName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, memory.Errorf(memory.ErrUnavailable, "remove session %s: %w", id, err)
	}
	return true, nil
}
