// Package vitals keeps what of an agent's health outlives a process, in one small
// file of the agent's directory: since when something is wrong, what the last
// canary said, what became of the last flush, and events that were lost. It holds
// nothing that was said.
package vitals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// FileName is the name of the file in an agent's directory.
const FileName = "vitals.json"

const (
	lockWait = 2 * time.Second // for another process that writes the file
	lockPoll = 2 * time.Millisecond
)

// State is the content of the file. The zero State is that of an agent of which
// nothing is known to be wrong.
type State struct {
	// Wrong says since when what is wrong, by a word for it, such as event_log.
	Wrong  map[string]time.Time `json:"wrong,omitempty"`
	Canary *Canary              `json:"canary,omitempty"`
	Flush  *Flush               `json:"flush,omitempty"`
	Lost   *Lost                `json:"lost,omitempty"`
	// Hooks counts what could not be written into the graph's record of what happened.
	Hooks *Lost `json:"hooks,omitempty"`
	// Backup is when the agent was last backed up whole.
	Backup *time.Time `json:"backup,omitempty"`
}

// Canary is the outcome of a probe that writes an event and recalls it.
type Canary struct {
	At     time.Time `json:"at,omitzero"` // when it ended; zero for one that has not ended yet
	Ok     bool      `json:"ok"`
	Millis int64     `json:"ms"`              // from the writing to the recall
	Error  string    `json:"error,omitempty"` // why it is not Ok
	Seq    int64     `json:"seq"`             // up to here nothing is left of any probe
	// Open says that a probe has begun, and not removed what it wrote behind Seq.
	Open bool `json:"open,omitempty"`
}

// FlushState says what became of a flush.
type FlushState string

// The states.
const (
	FlushQueued  FlushState = "queued"  // no process has done it yet
	FlushDone    FlushState = "done"    // everything up to UpTo is distilled or parked
	FlushSkipped FlushState = "skipped" // it could not be done, for Reason
	FlushFailed  FlushState = "failed"  // it was tried, and something broke
)

// Edge is a place where turns of a session are at stake.
type Edge string

// The edges.
const (
	EdgeWindow   Edge = "window"   // the turns are about to leave the model's window
	EdgeNew      Edge = "new"      // another session takes its place
	EdgeEnd      Edge = "end"      // whoever led it says that it is over
	EdgeIdle     Edge = "idle"     // nothing was said for a while
	EdgeShutdown Edge = "shutdown" // the program that held it ends
)

// Why a flush was skipped, or failed.
const (
	ForReadOnly = "read-only"
	ForSpend    = "spend" // a budget is used up, or the model's account refuses
	ForModel    = "model" // it does not answer, or not in a form that can be used
	ForError    = "error"
)

// Flush is the last time that what was said was to be distilled because a session
// came to an edge.
type Flush struct {
	Asked  time.Time  `json:"asked"`
	Why    Edge       `json:"why"`
	UpTo   int64      `json:"up_to"` // seq of the last event at stake
	State  FlushState `json:"state"`
	Reason string     `json:"reason,omitempty"` // why it was skipped, or failed
	Detail string     `json:"detail,omitempty"`
	Ended  time.Time  `json:"ended,omitzero"`
}

// Lost counts events that were taken and could not be written, and those refused
// because the queue was full.
type Lost struct {
	Events int64     `json:"events"`
	Last   time.Time `json:"last"`
	// Acknowledged counts those that somebody has taken note of: they stay counted, and
	// are no longer wrong. AcknowledgedAt is when that was last.
	Acknowledged   int64     `json:"acknowledged,omitempty"`
	AcknowledgedAt time.Time `json:"acknowledged_at,omitzero"`
}

// Open counts the losses that nobody has taken note of.
func (l *Lost) Open() int64 {
	if l == nil {
		return 0
	}
	return l.Events - l.Acknowledged
}

// Acknowledge notes that somebody has taken note of the events that the agent in dir
// lost, and returns how many those were.
func Acknowledge(ctx context.Context, dir string, now time.Time) (taken int64, err error) {
	err = Update(ctx, dir, func(s *State) {
		if taken = s.Lost.Open(); taken > 0 {
			s.Lost.Acknowledged, s.Lost.AcknowledgedAt = s.Lost.Events, now.UTC().Truncate(time.Second)
		}
	})
	return taken, err
}

// Since returns the earliest time at which something is wrong; false where nothing
// is.
func (s State) Since() (time.Time, bool) {
	var first time.Time
	for _, at := range s.Wrong {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, len(s.Wrong) > 0
}

// Degraded says in one line what is known to be wrong and since when; "" for
// nothing.
func (s State) Degraded() string {
	since, wrong := s.Since()
	if !wrong {
		return ""
	}
	return "degraded since " + since.UTC().Format("2006-01-02 15:04 UTC") + ": " + strings.Join(slices.Sorted(maps.Keys(s.Wrong)), ", ")
}

// Note brings Wrong in line with what is wrong now, and returns since when each
// is: what was known before keeps its time.
func (s *State) Note(now time.Time, wrong []string) map[string]time.Time {
	next := map[string]time.Time{}
	for _, code := range wrong {
		next[code] = now.UTC().Truncate(time.Second)
		if at, known := s.Wrong[code]; known && !at.After(now) {
			next[code] = at
		}
	}
	s.Wrong = next
	return next
}

// Read returns what is known of the agent in dir; the zero State where nothing is.
// A damaged file is ErrCorrupt, and counts for nothing: the next Update replaces it.
func Read(dir string) (State, error) {
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, memory.Errorf(memory.ErrUnavailable, "read %s: %w", path, err)
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return State{}, memory.WithHint(&memory.CorruptError{Path: path, Offset: -1, Reason: err.Error()}, "it is written anew by the next openclawssy status")
	}
	return s, nil
}

// Update changes what is known of the agent in dir, which must exist. Where edit
// changes nothing, nothing is written.
func Update(ctx context.Context, dir string, edit func(*State)) (err error) {
	path := filepath.Join(dir, FileName)
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	before, err := Read(dir)
	if err != nil && !errors.Is(err, memory.ErrCorrupt) {
		return err
	}
	if err == nil && !changes(before, edit) {
		return nil
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock %s: %w", path, err)
	}
	s, err := Read(dir)
	if err != nil && !errors.Is(err, memory.ErrCorrupt) {
		return err
	}
	edit(&s)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(dir)); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write %s: %w", path, err)
	}
	return nil
}

// changes reports whether edit makes a difference. It works on a copy.
func changes(s State, edit func(*State)) bool {
	before, err := json.Marshal(s)
	if err != nil {
		return true
	}
	var next State
	if json.Unmarshal(before, &next) != nil {
		return true
	}
	edit(&next)
	after, err := json.Marshal(next)
	return err != nil || !bytes.Equal(before, after)
}
