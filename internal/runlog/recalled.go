package runlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// handle is what stands at the start of a line of a recall block.
var handle = regexp.MustCompile(`(?m)^\[((?:MEM|EVT|REC)-[0-9]+)\] `)

// Recalled returns when each memory was last put into a prompt, by handle, looking
// back to since. A bundle that cannot be read counts as one that recalled nothing.
func (s *Store) Recalled(ctx context.Context, since time.Time) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	entries, err := os.ReadDir(filepath.Join(s.dir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(entries) { // names sort by time
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !runID.MatchString(e.Name()) {
			continue
		}
		id, err := ulid.ParseStrict(strings.TrimPrefix(e.Name(), "run_"))
		if err != nil {
			continue
		}
		at := ulid.Time(id.Time()).UTC()
		if at.Before(since) {
			break
		}
		for _, h := range s.recalledIn(e.Name()) {
			if at.After(last[h]) {
				last[h] = at
			}
		}
	}
	return last, nil
}

func (s *Store) recalledIn(run string) []string {
	rec, err := s.asked(run)
	if err != nil {
		return nil
	}
	return handlesIn(rec.Block)
}
