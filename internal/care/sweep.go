package care

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/journal"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/sqlite"
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

// scanned is the most bytes of one file that are looked through by one goroutine.
const scanned = 64 << 20

// scan looks for what goes in every byte of the files below dir, with all
// processors.
func scan(ctx context.Context, dir string, t *erasure.Target) (left []Leftover, bytes int64, err error) {
	if t.Finder().Empty() {
		return nil, 0, nil
	}
	var mu sync.Mutex
	places := map[string]erasure.Places{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	look := func(path string, from, to int64) {
		group.Go(func() error {
			found, size, err := count(ctx, filepath.Join(dir, path), t, from, to)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return memory.Errorf(memory.ErrUnavailable, "look through %s: %w", path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			bytes += size
			if found.Count > 0 {
				all := places[filepath.ToSlash(path)]
				all.Add(found)
				places[filepath.ToSlash(path)] = all
			}
			op.Report(ctx, op.Progress{Done: bytes, Unit: "bytes"})
			return nil
		})
	}
	err = walkFiles(ctx, dir, func(path string) error {
		st, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if isPacked(path) {
			look(path, 0, -1)
			return nil
		}
		for from := int64(0); from < st.Size(); from += scanned {
			to := from + scanned
			if to >= st.Size() {
				to = -1 // and what is added to it meanwhile
			}
			look(path, from, to)
		}
		return nil
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return nil, bytes, err
	}
	for _, path := range slices.Sorted(maps.Keys(places)) {
		left = append(left, Leftover{File: path, Places: places[path].Count, Coded: places[path].Coded, First: places[path].First})
	}
	return left, bytes, nil
}

// rewrite writes those of an agent's databases anew that are named, below its
// directory, and returns which.
func rewrite(ctx context.Context, dir string, named func(path string) bool) (done []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "memory"))
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "look for databases: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join("memory", e.Name())
		if !e.Type().IsRegular() || !strings.HasSuffix(path, ".db") || !named(path) && !named(path+"-wal") {
			continue
		}
		db, err := sqlite.Open(ctx, filepath.Join(dir, path), sqlite.Options{Readers: 1})
		if err != nil {
			return done, err
		}
		if err := errors.Join(db.Rewrite(ctx), db.Close()); err != nil {
			return done, err
		}
		done = append(done, path)
	}
	return done, nil
}

// scanAll is scan, and looks again at databases in whose free space a copy of what
// went was left: they are written anew first.
func scanAll(ctx context.Context, dir string, t *erasure.Target) (left []Leftover, bytes int64, err error) {
	left, bytes, err = scan(ctx, dir, t)
	if err != nil || len(left) == 0 {
		return left, bytes, err
	}
	done, err := rewrite(ctx, dir, func(path string) bool {
		return slices.ContainsFunc(left, func(l Leftover) bool { return l.File == filepath.ToSlash(path) })
	})
	if err != nil || len(done) == 0 {
		return left, bytes, err
	}
	return scan(ctx, dir, t)
}

// count looks through a range of a file, or from an offset on where to is below 0.
// A packed day of the event log is looked through unpacked, and whole.
func count(ctx context.Context, path string, t *erasure.Target, from, to int64) (found erasure.Places, size int64, err error) {
	if isPacked(path) {
		days, err := journal.Unpacked(path)
		if err != nil {
			return found, 0, err
		}
		in := &counter{ctx: ctx, in: days}
		found, err = t.Finder().Count(in)
		return found, in.n, errors.Join(err, days.Close())
	}
	f, err := os.Open(path)
	if err != nil {
		return found, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if to < 0 {
		to = math.MaxInt64 - 1
	}
	in := &counter{ctx: ctx, at: f}
	found, err = t.Finder().CountIn(in, from, to)
	return found, in.n, err
}

func isPacked(path string) bool { return strings.HasSuffix(path, ".jsonl.zst") }

// counter counts the bytes that are read through it, until ctx ends.
type counter struct {
	ctx context.Context
	in  io.Reader
	at  io.ReaderAt
	n   int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (c *counter) ReadAt(p []byte, offset int64) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.at.ReadAt(p, offset)
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
		blotted, err := blotFile(ctx, whole, t)
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
func blotFile(ctx context.Context, path string, t *erasure.Target) (bool, error) {
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
		hits, _, err := count(ctx, path, t, 0, -1)
		if err != nil || hits.Count == 0 {
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
