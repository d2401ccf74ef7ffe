package events

import (
	"context"
	"time"

	"github.com/openclawssy/openclawssy/internal/journal"
)

// Packed says what Pack did to one file of the log.
type Packed = journal.Packed

// Packable returns the files of the log that Pack would pack, with their sizes.
func (r *Reader) Packable(before time.Time) ([]Packed, error) {
	return journal.Packable(r.journal.Path(""), before)
}

// Pack packs the days of the log before a time, as .jsonl.zst. Every reader reads
// them as before: events, seqs and cursors stay. The newest day is never packed.
// A Pack that is interrupted loses nothing. Only one may run at a time.
func (r *Reader) Pack(ctx context.Context, before time.Time) ([]Packed, error) {
	return journal.Pack(ctx, r.journal.Path(""), before, r.log)
}
