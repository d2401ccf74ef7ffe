package care

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Files of erasures in an agent's memory directory.
const (
	pendingName  = "erase.pending" // what an erasure that has begun takes away: it is gone when that has ended
	eraseLock    = "erase.lock"
	receiptsName = "erasures"
)

// itemsFile is the database of items below an agent's directory.
var itemsFile = filepath.Join("memory", "memory.db")

func pendingPath(dir string) string { return filepath.Join(dir, "memory", pendingName) }
func lockPath(dir string) string    { return filepath.Join(dir, "memory", eraseLock) }

// begun is an erasure that goes on until it has ended, whoever does it.
type begun struct {
	Kind   string          `json:"kind"`  // of the request
	Value  string          `json:"value"` // SHA-256 of what was named
	Target *erasure.Target `json:"target"`
}

// Receipt says what an erasure did, without its content.
type Receipt struct {
	ID       string         `json:"id"`
	Agent    memory.AgentID `json:"agent"`
	Began    time.Time      `json:"began"`
	Ended    time.Time      `json:"ended"`
	Kind     string         `json:"kind"`       // what was asked for: session, item, before, match or event
	Value    string         `json:"value_hash"` // SHA-256 of its name
	Events   int            `json:"events"`
	EventIDs string         `json:"event_ids_hash"` // SHA-256 of their ids, one a line
	Items    int            `json:"items"`
	Sessions int            `json:"sessions"`
	Stores   []Erased       `json:"stores"`
	Scanned  int64          `json:"scanned_bytes"`
	Left     []Leftover     `json:"left"`
	// Copies are half copies of interrupted backups, Outside how many places outside of
	// the agent's directory may hold it.
	Copies  []string `json:"copies"`
	Outside int      `json:"outside"`
}

// The leases of long jobs that must not go on with what they have read.
var fenced = []string{"checkpoint", "maintenance", "rebuild"}

const eraseLease = 10 * time.Minute

// erase does the whole erasure. The lock is held.
func (s *Erasure) erase(ctx context.Context, agent memory.AgentID, dir string, in EraseRequest) (EraseResult, error) {
	if err := s.finish(ctx, agent, dir); err != nil { // one that was interrupted comes first
		return EraseResult{}, err
	}
	var res EraseResult
	err := s.alone(ctx, agent, dir, func(ctx context.Context) (err error) {
		res, err = s.eraseFenced(ctx, agent, dir, in)
		return err
	})
	return res, err
}

func (s *Erasure) eraseFenced(ctx context.Context, agent memory.AgentID, dir string, in EraseRequest) (EraseResult, error) {
	_, t, err := s.plan(ctx, agent, in)
	if err != nil {
		return EraseResult{}, err
	}
	now := s.Now().UTC()
	t.At, t.ID = now, "erasure-"+now.Format("20060102T150405Z")+"-"+s.NewID()[18:]
	b := begun{Target: t}
	kind, value := in.what()
	b.Kind, b.Value = kind, hashOf(value)
	if err := begin(dir, b); err != nil {
		return EraseResult{}, err
	}
	// From here on it is done, now or at the next opening.
	return s.complete(context.WithoutCancel(ctx), agent, dir, b)
}

func begin(dir string, b begun) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(pendingPath(dir), text, 0o600, renameio.WithTempDir(filepath.Dir(pendingPath(dir)))); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "begin the erasure: %w", err)
	}
	return syncDir(filepath.Dir(pendingPath(dir)))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Pending reports whether an erasure in an agent's directory has begun and not
// ended.
func Pending(dir string) bool {
	_, err := os.Lstat(pendingPath(dir))
	return err == nil
}

// Resume ends an erasure that was interrupted. While another process is at it, and
// where there is none, it does nothing.
func (s *Erasure) Resume(ctx context.Context, agent memory.AgentID) error {
	dir, err := s.Dir(agent)
	if err != nil || !Pending(dir) {
		return err
	}
	lock, err := lockErasure(dir)
	if errors.Is(err, memory.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(s.finish(ctx, agent, dir), lock.Close())
}

// finish ends an erasure that was interrupted, under the lock.
func (s *Erasure) finish(ctx context.Context, agent memory.AgentID, dir string) error {
	text, err := os.ReadFile(pendingPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "go on with an erasure: %w", err)
	}
	var b begun
	if err := json.Unmarshal(text, &b); err != nil || b.Target == nil {
		return memory.WithHint(&memory.CorruptError{Path: pendingPath(dir), Offset: -1, Reason: "it is no erasure"}, "delete the file, and erase again")
	}
	b.Target.Prepare()
	return s.alone(ctx, agent, dir, func(ctx context.Context) error {
		_, err := s.complete(context.WithoutCancel(ctx), agent, dir, b)
		return err
	})
}

// alone runs fn while nobody does what could bring back what is erased: the jobs
// under a lease lose it, and other work has ended and does not begin.
func (s *Erasure) alone(ctx context.Context, agent memory.AgentID, dir string, fn func(context.Context) error) error {
	if erasure.Inside(ctx, filepath.Join(dir, "memory")) { // before anybody's lease is taken
		_, _, err := erasure.Shut(ctx, filepath.Join(dir, "memory"), 0)
		return err
	}
	release, err := s.fence(ctx, agent)
	if err != nil {
		return err
	}
	inner, open, err := erasure.Shut(ctx, filepath.Join(dir, "memory"), cmp.Or(s.Patience, patience))
	if err != nil {
		return errors.Join(err, release())
	}
	return errors.Join(fn(inner), open(), release())
}

const patience = time.Minute

// fence takes the leases of the jobs that are under way: what they then want to
// store is refused.
func (s *Erasure) fence(ctx context.Context, agent memory.AgentID) (release func() error, err error) {
	store, giveBack, err := s.Items(ctx, agent)
	if err != nil {
		return nil, err
	}
	var held []working.Lease
	release = func() error {
		defer giveBack()
		var errs []error
		for _, l := range held {
			errs = append(errs, store.Release(context.WithoutCancel(ctx), l))
		}
		return errors.Join(errs...)
	}
	for _, name := range fenced {
		l, err := store.Seize(ctx, name, s.Holder+", an erasure", eraseLease)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		held = append(held, l)
	}
	return release, nil
}

// complete goes through all stores, looks at what is left, and writes the receipt.
func (s *Erasure) complete(ctx context.Context, agent memory.AgentID, dir string, b begun) (EraseResult, error) {
	t := b.Target
	if err := dropHalfNotes(dir); err != nil {
		return EraseResult{}, err
	}
	res := s.result(agent, t)
	res.Done = true
	steps := append([]Eraser{Step{"memories", s.items}, Step{"events", s.log(dir)}, Step{"history", s.purge}, Step{"episodes", s.archive}}, s.Erasers...)
	steps = append(steps, Step{"other files", func(ctx context.Context, _ memory.AgentID, t *erasure.Target) (int, error) { return sweep(ctx, dir, t) }})
	for i, step := range steps {
		op.Report(ctx, op.Progress{Done: int64(i), Total: int64(len(steps)), Unit: "stores"})
		n, err := step.Erase(ctx, agent, t)
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return EraseResult{}, memory.WithHint(fmt.Errorf("erase from %s: %w", step.Name(), err), "it has begun, and goes on when the agent is opened next")
		}
		res.Stores = append(res.Stores, Erased{step.Name(), n})
	}
	// Items are written and moved about more than anything else.
	if _, err := rewrite(ctx, dir, func(path string) bool { return path == itemsFile }); err != nil {
		return EraseResult{}, err
	}
	left, scanned, err := scanAll(ctx, dir, t)
	if err != nil {
		return EraseResult{}, err
	}
	res.Holding = append(res.Holding, left...)
	if err := s.copies(&res); err != nil {
		s.Log.Warn().Err(err).Str("agent", string(agent)).Msg("look for half copies of backups")
	}
	if s.Outside != nil {
		outside, err := s.Outside(ctx, agent, t)
		if err != nil {
			s.Log.Warn().Err(err).Str("agent", string(agent)).Msg("look for what lies outside of an erasure")
		}
		res.Outside = append(res.Outside, outside...)
	}
	if res.Receipt, err = s.receipt(dir, b, res, scanned); err != nil {
		return EraseResult{}, err
	}
	if err := os.Remove(pendingPath(dir)); err != nil {
		return EraseResult{}, memory.Errorf(memory.ErrUnavailable, "end the erasure: %w", err)
	}
	return res, syncDir(filepath.Dir(pendingPath(dir)))
}

// dropHalfNotes removes what is left of notes whose writer was killed before they had
// their name: such a file holds the very words that go. Under the lock nobody writes
// one.
func dropHalfNotes(dir string) error {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(pendingPath(dir)), "."+pendingName+"*"))
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "look for half-written notes: %w", err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "remove a half-written note of an erasure: %w", err)
		}
	}
	return nil
}

func (s *Erasure) receipt(dir string, b begun, res EraseResult, scanned int64) (string, error) {
	t := b.Target
	ids := make([]string, len(t.Events))
	for i, e := range t.Events {
		ids[i] = e.ID
	}
	text, err := json.MarshalIndent(Receipt{ID: t.ID, Agent: res.Agent, Began: t.At, Ended: s.Now().UTC(), Kind: b.Kind, Value: b.Value,
		Events: len(t.Events), EventIDs: hashOf(strings.Join(ids, "\n")), Items: len(t.Items), Sessions: len(t.Sessions),
		Stores: res.Stores, Scanned: scanned, Left: res.Holding, Copies: res.Copies, Outside: len(res.Outside)}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "memory", receiptsName, t.ID+".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "write the receipt: %w", err)
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "write the receipt: %w", err)
	}
	return path, nil
}

func (s *Erasure) items(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	store, release, err := s.Items(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return len(t.Items), store.Erase(ctx, t)
}

func (s *Erasure) purge(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	store, release, err := s.Items(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	return 0, store.Purge(ctx, t)
}

// log makes tombstones of the events that go, and takes the memories that go out
// of the changes that made them.
func (s *Erasure) log(dir string) func(context.Context, memory.AgentID, *erasure.Target) (int, error) {
	return func(ctx context.Context, _ memory.AgentID, t *erasure.Target) (int, error) {
		done, err := events.Rewrite(ctx, filepath.Join(dir, "memory", "events"), s.Log, events.Edits{
			Drop:  t.Finder().In,
			Wants: func(h *events.Head) bool { return mayEdit(h, t) },
			Event: func(e *memory.Event) (bool, error) { return editEvent(e, t) },
		})
		return int(done.Lines), err
	}
}

// mayEdit reports whether editEvent may change an event, from its line alone.
func mayEdit(h *events.Head, t *erasure.Target) bool {
	if _, goes := t.Event(h.Seq); goes || !isBook(h.Type) {
		return goes
	}
	return t.Session(string(h.Session)) || refuses(h) || t.InChange(h.Line)
}

// refuses reports whether a checkpoint tells of entries that it refused: those may
// quote any event of its batch.
func refuses(h *events.Head) bool {
	return h.Type == memory.CheckpointEvent && !bytes.Contains(h.Line, []byte(`"refused":[]`)) && !bytes.Contains(h.Line, []byte(`"refused":null`))
}

func editEvent(e *memory.Event, t *erasure.Target) (changed bool, err error) {
	if gone, goes := t.Event(e.Seq); goes {
		if _, done := e.Erased(); done {
			return false, nil
		}
		*e = e.Tombstone(gone.Passages)
		return true, nil
	}
	if carried, has := e.Metadata[memory.MetaChange]; has {
		edited, changed, err := working.EditChange(carried, t)
		if err != nil {
			return false, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if changed {
			e.Metadata[memory.MetaChange] = edited
		}
		if t.Session(e.SessionID) {
			e.SessionID, changed = "", true
		}
		return changed, nil
	}
	if t.Finder().In([]byte(e.Text + "\n" + strings.Join(stringsIn(e.Metadata), "\n"))) {
		*e = e.Tombstone(0)
		return true, nil
	}
	return false, nil
}

func (s *Erasure) archive(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	a, release, err := s.Archives(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	log, releaseLog, err := s.Logs(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer releaseLog()
	return a.Erase(ctx, log, t)
}
