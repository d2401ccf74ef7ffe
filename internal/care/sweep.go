package care

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// walkFiles hands over the regular files below dir by their path below it, but for
// the note of an erasure that has begun.
func walkFiles(ctx context.Context, dir string, visit func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			return nil
		case err != nil:
			return memory.Errorf(memory.ErrUnavailable, "look through %s: %w", dir, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !d.Type().IsRegular() || path == pendingPath(dir):
			return nil
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := visit(below); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return memory.Errorf(memory.ErrUnavailable, "look through %s: %w", below, err)
		}
		return nil
	})
}

// scan looks for what goes in every byte of the files below dir.
func scan(ctx context.Context, dir string, t *erasure.Target) (left []Leftover, bytes int64, err error) {
	if t.Finder().Empty() {
		return nil, 0, nil
	}
	err = walkFiles(ctx, dir, func(path string) error {
		n, size, err := count(filepath.Join(dir, path), t)
		bytes += size
		if n > 0 {
			left = append(left, Leftover{File: filepath.ToSlash(path), Places: n})
		}
		op.Report(ctx, op.Progress{Done: bytes, Unit: "bytes"})
		return err
	})
	return left, bytes, err
}

func count(path string, t *erasure.Target) (n, size int64, err error) {
	f, err := openWhole(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &counter{in: f}
	n, err = t.Finder().Count(bufio.NewReader(in))
	return n, in.n, err
}

// openWhole opens a file for reading what it says: a packed day of the event log
// unpacked.
func openWhole(path string) (io.ReadCloser, error) {
	if strings.HasSuffix(path, ".jsonl.zst") {
		return journal.Unpacked(path)
	}
	return os.Open(path)
}

// counter counts the bytes that are read through it.
type counter struct {
	in io.Reader
	n  int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// asides are parts of the names of files that only keep what was damaged or cut
// off. An erasure deletes them: what they hold cannot be read line by line.
var asides = []string{".corrupt-", ".torn", ".damaged-", ".unread.jsonl"}

// sweep goes over the files that no store has: copies of what was damaged are
// deleted, and in texts and JSON every line that says what goes is blotted out.
// Reports from before the day that is erased are deleted.
func sweep(ctx context.Context, dir string, t *erasure.Target) (n int, err error) {
	err = walkFiles(ctx, dir, func(path string) error {
		whole := filepath.Join(dir, path)
		name := filepath.Base(path)
		if strings.Contains(filepath.ToSlash(path), "/"+rebuildPrefix) { // of a rebuild that was interrupted, or is refused
			n++
			return os.Remove(whole)
		}
		for _, part := range asides {
			if strings.Contains(name, part) {
				n++
				return os.Remove(whole)
			}
		}
		if day, is := reportDay(name); is && t.Before != nil && day.Before(*t.Before) {
			n++
			return os.Remove(whole)
		}
		blotted, err := blotFile(whole, t)
		if blotted {
			n++
		}
		return err
	})
	return n, err
}

// reportDay is the day in the name of a weekly report.
func reportDay(name string) (time.Time, bool) {
	rest, is := strings.CutPrefix(name, "weekly-")
	if !is || len(rest) < len(time.DateOnly) {
		return time.Time{}, false
	}
	day, err := time.Parse(time.DateOnly, rest[:len(time.DateOnly)])
	return day, err == nil
}

const maxBlotted = 8 << 20

// blotFile blots a text out of a file whose form bears it.
func blotFile(path string, t *erasure.Target) (bool, error) {
	isJSON := strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl")
	inEvents := filepath.Base(filepath.Dir(path)) == "events" // its lines have checksums
	if inEvents || !isJSON && !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, ".txt") {
		return false, nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if st.Size() > maxBlotted { // none of ours is: only what must be is read whole
		hits, _, err := count(path, t)
		if err != nil || hits == 0 {
			return false, err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	out, n := t.Blot(text, isJSON)
	if n == 0 {
		return false, nil
	}
	return true, renameio.WriteFile(path, out, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}
