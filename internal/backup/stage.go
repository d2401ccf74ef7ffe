package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Prefixes of the names of stages: directories that are filled before they take
// their place, or are thrown away.
const (
	stagePrefix   = ".backup-"
	restorePrefix = ".restore-"
)

// Stage is a private directory for a work that is under way. It lives as long as
// the process that made it: ClearStages removes those of dead ones.
type Stage struct {
	path string
	lock *flock.Flock
}

// NewStage makes a stage (0700) in a directory, which is made where it is missing.
func NewStage(in, prefix string) (*Stage, error) {
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "make room for a copy: %w", err)
	}
	path, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "make room for a copy: %w", err)
	}
	s := &Stage{path: path, lock: flock.New(filepath.Join(path, ".alive.lock"), flock.SetPermissions(0o600))}
	if _, err := s.lock.TryLock(); err != nil {
		return nil, errors.Join(memory.Errorf(memory.ErrUnavailable, "make room for a copy: %w", err), s.Remove())
	}
	if err := os.Mkdir(s.Dir(), 0o700); err != nil {
		return nil, errors.Join(memory.Errorf(memory.ErrUnavailable, "make room for a copy: %w", err), s.Remove())
	}
	return s, nil
}

// Dir is where the stage's files go.
func (s *Stage) Dir() string { return filepath.Join(s.path, "files") }

// Remove throws the stage away.
func (s *Stage) Remove() error {
	return errors.Join(os.RemoveAll(s.path), s.lock.Close())
}

// ClearStages removes the stages in a directory whose process has died, and
// returns their paths. Where dry, it only returns them.
func ClearStages(in string, dry bool) ([]string, error) {
	entries, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look for half a backup: %w", err)
	}
	var cleared []string
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), stagePrefix) && !strings.HasPrefix(e.Name(), restorePrefix) {
			continue
		}
		s := &Stage{path: filepath.Join(in, e.Name()), lock: flock.New(filepath.Join(in, e.Name(), ".alive.lock"), flock.SetPermissions(0o600))}
		dead, err := s.lock.TryLock()
		switch {
		case err != nil:
			return cleared, memory.Errorf(memory.ErrUnavailable, "look at %s: %w", s.path, errors.Join(err, s.lock.Close()))
		case dead && !dry:
			err = s.Remove()
		default:
			err = s.lock.Close()
		}
		if err != nil {
			return cleared, memory.Errorf(memory.ErrUnavailable, "clear %s: %w", s.path, err)
		}
		if dead {
			cleared = append(cleared, s.path)
		}
	}
	return cleared, nil
}
