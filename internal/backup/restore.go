package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/session"
)

// RestoreOptions are what Restore needs besides the file.
type RestoreOptions struct {
	ReadOptions
	Agents  string         // directory of the agents, in which the agent takes its place
	As      memory.AgentID // name of the agent; "" for that in the backup
	Replace bool           // an agent of that name is replaced
}

// Restored is what Restore did.
type Restored struct {
	Agent    memory.AgentID `json:"agent"`
	From     memory.AgentID `json:"from" jsonschema:"the agent that was backed up"`
	Files    int            `json:"files"`
	Bytes    int64          `json:"bytes"`
	Events   int64          `json:"events"`
	LastSeq  int64          `json:"last_seq"`
	Replaced bool           `json:"replaced" jsonschema:"true: what the agent had before is gone"`
}

// Text says what was restored to a person.
func (r Restored) Text() string {
	s := fmt.Sprintf("Agent %s restored: %d files, %d bytes, %d events up to %d\n", r.Agent, r.Files, r.Bytes, r.Events, r.LastSeq)
	if r.From != r.Agent {
		s += fmt.Sprintf("  it was backed up as %s\n", r.From)
	}
	if r.Replaced {
		s += "  what the agent had before is gone\n"
	}
	return s
}

// Restore brings a backup back as an agent. Everything is unpacked and checked
// beside the agents first; then the agent's directory takes its place in one
// step. After an error nothing has changed. An agent that exists is refused with
// ErrConflict, unless Replace is set and no process uses it.
func Restore(ctx context.Context, file string, o RestoreOptions) (_ Restored, err error) {
	if _, err := os.Lstat(filepath.Join(o.Agents, string(o.As))); o.As != "" && err == nil && !o.Replace {
		return Restored{}, exists(o.As)
	}
	stage, err := NewStage(o.Agents, restorePrefix)
	if err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, stage.Remove()) }()
	v, err := unpack(ctx, file, stage.Dir(), o.ReadOptions)
	if err != nil {
		return Restored{}, fmt.Errorf("restore %s: %w", file, err)
	}
	from := v.Manifest.Agent
	if o.As == "" {
		o.As = from
	}
	if o.As != from {
		if err := rename(ctx, stage.Dir(), from, o.As); err != nil {
			return Restored{}, fmt.Errorf("restore %s as %s: %w", file, o.As, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(stage.Dir(), "memory"), 0o700); err != nil {
		return Restored{}, unavailable(err)
	}
	if err := syncTree(stage.Dir()); err != nil {
		return Restored{}, memory.Errorf(memory.ErrUnavailable, "restore %s: %w", file, err)
	}
	replaced, err := o.swap(stage.Dir())
	if err != nil {
		return Restored{}, fmt.Errorf("restore %s: %w", file, err)
	}
	return Restored{Agent: o.As, From: from, Files: len(v.Manifest.Files), Bytes: v.Manifest.Bytes(), Events: v.Log.Events, LastSeq: v.Log.LastSeq, Replaced: replaced}, nil
}

// rename gives the files of an agent another owner.
func rename(ctx context.Context, dir string, from, to memory.AgentID) error {
	if err := session.Rename(filepath.Join(dir, "sessions"), from, to); err != nil {
		return err
	}
	err := working.Rename(ctx, filepath.Join(dir, "memory"), to)
	if errors.Is(err, memory.ErrNotFound) {
		return nil // it is built from the log when it is opened
	}
	return err
}

// swap puts dir in the agent's place. What stood there takes dir's.
func (o RestoreOptions) swap(dir string) (replaced bool, err error) {
	place := filepath.Join(o.Agents, string(o.As))
	st, err := os.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, errors.Join(renameNew(dir, place), syncDir(o.Agents))
	case err != nil:
		return false, unavailable(err)
	case !st.IsDir():
		return false, memory.Errorf(memory.ErrDenied, "%s is no directory", place)
	case !o.Replace:
		return false, exists(o.As)
	}
	free, err := unused(place)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, free()) }()
	return true, errors.Join(exchange(dir, place), syncDir(o.Agents))
}

func exists(agent memory.AgentID) error {
	return memory.WithHint(memory.Errorf(memory.ErrConflict, "agent %s exists already", agent), "restore it under another name with --as, or give up what it has with --replace")
}

// unused takes the lock that every process holds which has the agent's memory
// open for writing.
func unused(place string) (free func() error, err error) {
	lock := flock.New(filepath.Join(place, "memory", working.OpenName), flock.SetPermissions(0o600))
	if _, err := os.Stat(filepath.Dir(lock.Path())); errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	alone, err := lock.TryLock()
	if err != nil {
		return nil, errors.Join(unavailable(err), lock.Close())
	}
	if !alone {
		return nil, errors.Join(memory.WithHint(memory.Errorf(memory.ErrConflict, "another process uses %s", place), "end openclawssy serve, chat and whatever else runs on this home, and try again"), lock.Close())
	}
	return lock.Close, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return unavailable(err)
	}
	return unavailableOrNil(errors.Join(dir.Sync(), dir.Close()))
}

func unavailableOrNil(err error) error {
	if err == nil {
		return nil
	}
	return unavailable(err)
}
