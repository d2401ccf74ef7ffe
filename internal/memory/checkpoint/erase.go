package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// EraseFiles removes the kept replies to batches that held what is erased, or that
// quote it, and writes the files of those batches' checkpoints anew from their
// records, which hold it no more. It returns how many files it touched.
func EraseFiles(ctx context.Context, dir string, store *working.Store, t *erasure.Target) (n int, err error) {
	n, err = eraseReplies(filepath.Join(dir, "replies"), t)
	if err != nil {
		return n, err
	}
	records, err := store.Checkpoints(ctx, 0)
	if err != nil {
		return n, err
	}
	for _, record := range records {
		if !t.Touches(record.Range.First, record.Range.Last) {
			continue
		}
		if err := writeIn(dir, record.ID+".json", record); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func eraseReplies(dir string, t *erasure.Target) (n int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, memory.Errorf(memory.ErrUnavailable, "look for kept replies: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return n, memory.Errorf(memory.ErrUnavailable, "read a kept reply: %w", err)
		}
		var kept keptReply
		damaged := json.Unmarshal(text, &kept) != nil // as good as none
		if !damaged && !t.Touches(kept.Range.First, kept.Range.Last) && !t.Finder().In(text) && !t.Names(text) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return n, memory.Errorf(memory.ErrUnavailable, "erase a kept reply: %w", err)
		}
		n++
	}
	return n, nil
}
