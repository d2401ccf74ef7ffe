package working

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// leaseRow is a row of leases.
type leaseRow struct {
	name, holder   string
	token, expires int64
}

// Replace makes this store's database a copy of another's, in one step for all who
// have it open. by is the lease under which the other was made: ErrConflict where
// it was lost, and nothing has changed. The other must have been made from the same
// log; what the log has got since is applied afterwards.
func (s *Store) Replace(ctx context.Context, from *Store, by Lease) error {
	err := s.locked(ctx, func() error {
		var leases []leaseRow
		err := s.view(ctx, func(tx *sql.Tx) error {
			if err := holds(ctx, tx, by); err != nil {
				return err
			}
			return each(ctx, tx, `SELECT name, holder, token, expires FROM leases`, func(scan func(...any) error) error {
				var l leaseRow
				err := scan(&l.name, &l.holder, &l.token, &l.expires)
				leases = append(leases, l)
				return err
			})
		})
		if err != nil {
			return err
		}
		if err := s.db.CopyFrom(ctx, from.db); err != nil {
			return s.noticed(err)
		}
		s.ahead = position{}
		err = s.update(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `DELETE FROM leases`); err != nil {
				return err
			}
			for _, l := range leases {
				if _, err := tx.ExecContext(ctx, `INSERT INTO leases VALUES (?, ?, ?, ?)`, l.name, l.holder, l.token, l.expires); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.catchUp(ctx)
	})
	if err != nil {
		return fmt.Errorf("replace working memory of %s: %w", s.opts.Agent, err)
	}
	return nil
}

// Dump hands over every row of what the log has made, table by table, as text: two
// stores that were made from the same log give the same. Where each read the log to
// is left out.
func (s *Store) Dump(ctx context.Context, row func(table, line string) error) error {
	tables := []string{"memory_items", "evidence", "revisions", "suppressed", "parked", "checkpoints"}
	err := s.view(ctx, func(tx *sql.Tx) error {
		for _, table := range tables {
			if err := dumpTable(ctx, tx, table, row); err != nil {
				return err
			}
		}
		return nil
	})
	return sqlite.Classify(err)
}

func dumpTable(ctx context.Context, tx *sql.Tx, table string, row func(table, line string) error) error {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return sqlite.RowError(err, table)
		}
		if err := row(table, fmt.Sprint(values...)); err != nil {
			return err
		}
	}
	return rows.Err()
}
