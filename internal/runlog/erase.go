package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// EraseRuns removes the bundles of the runs that go whole: those named, those of a
// session that goes, and those from before the day. It returns how many.
func (s *Store) EraseRuns(t *erasure.Target) (n int, err error) {
	entries, err := os.ReadDir(path.Join(s.dir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "erase runs: %w", err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "erase runs: %w", err)
	}
	defer root.Close()
	for _, e := range entries {
		if !runID.MatchString(e.Name()) {
			continue
		}
		m, err := s.meta(e.Name())
		// A summary that cannot be read says nothing of whose run it is.
		goes := t.Run(e.Name()) || err == nil && (t.Session(m.Session) || t.Before != nil && m.Started.Before(*t.Before))
		if !goes {
			continue
		}
		if err := root.RemoveAll(path.Join("runs", e.Name())); err != nil {
			return n, memory.Errorf(memory.ErrUnavailable, "erase run %s: %w", e.Name(), err)
		}
		n++
	}
	return n, nil
}

// Masked is what stands, as often as need be, in place of an erased value of an
// audit line.
const Masked = '-'

// EraseAudit masks the session, the run and the error of the audit lines of
// sessions and runs that go. The lines stay, and keep their length: others may be
// appending to the file.
func (s *Store) EraseAudit(t *erasure.Target) (n int, err error) {
	entries, err := os.ReadDir(path.Join(s.dir, "audit"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "erase from the audit log: %w", err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "erase from the audit log: %w", err)
	}
	defer root.Close()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".jsonl") {
			continue
		}
		masked, err := maskLines(root, path.Join("audit", e.Name()), t)
		n += masked
		if err != nil {
			return n, fmt.Errorf("erase from audit/%s: %w", e.Name(), err)
		}
	}
	return n, nil
}

func maskLines(root *os.Root, name string, t *erasure.Target) (n int, err error) {
	text, err := readRegular(root, name)
	if err != nil || text == nil {
		return 0, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	offset := int64(0)
	for line := range bytes.Lines(text) {
		if masked := mask(line, t); masked != nil {
			if _, err := f.WriteAt(masked, offset); err != nil {
				return n, memory.Errorf(memory.ErrUnavailable, "%w", err)
			}
			n++
		}
		offset += int64(len(line))
	}
	if n == 0 {
		return 0, nil
	}
	return n, f.Sync()
}

// mask returns the line as it should be; nil where it may stay.
func mask(line []byte, t *erasure.Target) []byte {
	var e Entry
	if json.Unmarshal(line, &e) != nil {
		return nil // a torn line: the sweep over all files looks at it
	}
	if !t.Session(e.Session) && !t.Run(e.Run) && !t.Finder().In([]byte(e.Error)) {
		return nil
	}
	out := bytes.Clone(line)
	for _, member := range []string{"session", "run", "error"} {
		start := bytes.Index(out, []byte(`"`+member+`":"`))
		if start < 0 {
			continue
		}
		for i := start + len(member) + 4; i < len(out) && out[i] != '"'; i++ {
			if out[i] == '\\' && i+1 < len(out) {
				out[i] = Masked
				i++
			}
			out[i] = Masked
		}
	}
	return out
}
