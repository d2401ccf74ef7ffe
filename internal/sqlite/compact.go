package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	mergePages  = 64  // of a full-text index, merged in one step
	vacuumPages = 256 // given back in one step
	leastFree   = 64  // free pages that are left alone: they are used again soon
)

// Compacted is what Compact did.
type Compacted struct {
	Merges int   `json:"merges" jsonschema:"steps in which full-text indexes were merged"`
	Freed  int64 `json:"freed" jsonschema:"bytes given back to the disk"`
}

// Compact tidies up the database in small steps, each a short transaction of its
// own: readers never wait, and writers for no longer than a step. It merges the
// segments of the full-text tables named and gives free pages back to the disk.
// A database that was made before pages could be given back is written anew once,
// where a quarter of it is free; readers do not wait for that either. With nothing
// to do it writes nothing.
func (d *DB) Compact(ctx context.Context, fullText ...string) (Compacted, error) {
	var done Compacted
	for _, table := range fullText {
		for more := true; more; {
			var err error
			if more, err = d.mergeStep(ctx, table); err != nil {
				return done, err
			}
			if more {
				done.Merges++
			}
		}
	}
	p, err := d.pages(ctx)
	if err != nil {
		return done, err
	}
	if !p.incremental {
		if p.free < leastFree || p.free < p.all/4 {
			return done, nil
		}
		done.Freed = p.free * p.size
		return done, d.Exec(ctx, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
	}
	for free := p.free; free > leastFree; {
		if err := d.vacuumStep(ctx); err != nil {
			return done, err
		}
		now, err := d.pages(ctx)
		if err != nil {
			return done, err
		}
		if now.free >= free {
			break // somebody frees pages as fast
		}
		done.Freed += (free - now.free) * p.size
		free = now.free
	}
	return done, nil
}

// Rewrite writes every page anew and empties the write-ahead log. Secure deletion
// overwrites a row where it stands; of one that SQLite had moved within a page before,
// a copy may be left in the page's free space, which only this takes away. Readers do
// not wait, writers do. It needs as much room on the disk again.
func (d *DB) Rewrite(ctx context.Context) error {
	if err := d.Exec(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("write %s anew: %w", d.path, err)
	}
	return d.Fold(ctx)
}

// mergeStep merges a little of a full-text index; false once there is nothing to
// merge. FTS5 shows that by the number of rows that a merge has changed.
func (d *DB) mergeStep(ctx context.Context, table string) (more bool, err error) {
	err = d.Update(ctx, func(tx *sql.Tx) error {
		var before, after int64
		if err := tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&before); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (`+table+`, rank) VALUES ('merge', ?)`, mergePages); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&after); err != nil {
			return err
		}
		more = after-before >= 2
		return nil
	})
	return more, err
}

// vacuumStep gives some free pages back. The pragma frees a page for each row that
// is read of it.
func (d *DB) vacuumStep(ctx context.Context) error {
	return d.alone(ctx, func(c *sql.Conn) error {
		rows, err := c.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	})
}

// pages says how a database uses its pages.
type pages struct {
	all, free, size int64
	incremental     bool // free pages can be given back
}

func (d *DB) pages(ctx context.Context) (pages, error) {
	var p pages
	if d.writer == nil {
		return p, memory.Errorf(memory.ErrUnavailable, "%s is open for reading only", d.path)
	}
	var mode int
	for pragma, into := range map[string]any{"page_count": &p.all, "freelist_count": &p.free, "page_size": &p.size, "auto_vacuum": &mode} {
		if err := d.writer.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return p, classify(err)
		}
	}
	p.incremental = mode == 2
	return p, nil
}
