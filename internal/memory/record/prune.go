package record

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/op"
)

// expirySQL is when a record expires, in microseconds of Unix time: the
// expression of idx_memory_expiry, word for word, or the index is not used.
var expirySQL = instantSQL("created_at") + " + ttl_seconds * 1000000"

// pruneBatch is how many records one transaction of Prune looks at. Others who
// write wait no longer than for one such batch; readers never wait.
const pruneBatch = 500

// pruneRest is the pause between two batches. Other processes ask for the lock
// every lockPoll: without a pause longer than that they would hardly ever find it
// free.
const pruneRest = 2 * lockPoll

// Prune removes the records that have expired, of one namespace or, where it is
// empty, of all, and leaves those alone that the configuration protects. A time
// of creation without an offset is read as UTC; records whose time cannot be
// read stay. It returns how many it removed, and works in batches: what was
// removed before an error stays removed.
func (s *Store) Prune(ctx context.Context, namespace string) (pruned int64, err error) {
	if namespace != "" {
		if err := s.config.checkNamespace(namespace); err != nil {
			return 0, err
		}
	}
	if s.db == nil {
		return 0, nil
	}
	protected, err := encode(s.config.protected())
	if err != nil {
		return 0, fmt.Errorf("prune records: %w", err)
	}
	now := s.now().UnixMicro()
	for from := (place{}); ; {
		var removed int64
		var done bool
		err := s.update(ctx, func(tx *sql.Tx) error {
			var err error
			removed, done, err = pruneSome(ctx, tx, now, &from, namespace, string(protected))
			return err
		})
		if err != nil {
			return pruned, fmt.Errorf("prune records: %w", err)
		}
		pruned += removed
		op.Report(ctx, op.Progress{Done: pruned, Unit: "records"})
		if done {
			return pruned, nil
		}
		select {
		case <-time.After(pruneRest):
		case <-ctx.Done():
			return pruned, fmt.Errorf("prune records: %w", ctx.Err())
		}
	}
}

// place is a position in idx_memory_expiry.
type place struct {
	at     float64 // microseconds; a sum beyond 64 bits is a floating number in SQLite
	number int64
	set    bool
}

// pruneQuery selects what to prune next. Its parameters: now, whether there is a
// place to go on from, that place, namespace or "", protected namespaces as JSON,
// limit.
var pruneQuery = `SELECT id, created_at, ` + expirySQL + ` FROM memory_records INDEXED BY idx_memory_expiry
	WHERE ttl_seconds IS NOT NULL AND ` + expirySQL + ` < ?1 AND (NOT ?2 OR (` + expirySQL + `, id) > (?3, ?4))
		AND (?5 = '' OR namespace = ?5) AND namespace NOT IN (SELECT value FROM json_each(?6))
	ORDER BY ` + expirySQL + `, id LIMIT ?7`

// pruneSome removes the next batch of expired records after from, which it
// moves on. done means that no more are left.
func pruneSome(ctx context.Context, tx *sql.Tx, now int64, from *place, namespace, protected string) (removed int64, done bool, err error) {
	rows, err := tx.QueryContext(ctx, pruneQuery, now, from.set, from.at, from.number, namespace, protected, pruneBatch)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	numbers, seen := []int64{}, 0
	for rows.Next() {
		var createdAt string
		if err := rows.Scan(&from.number, &createdAt, &from.at); err != nil {
			return 0, false, err
		}
		from.set = true
		seen++
		if _, _, ok := parseTime(createdAt); ok {
			numbers = append(numbers, from.number)
		}
	}
	if err := rows.Err(); err != nil {
		return 0, false, err
	}
	list, err := encode(numbers)
	if err != nil {
		return 0, false, err
	}
	res, err := tx.ExecContext(ctx, "DELETE FROM memory_records WHERE id IN (SELECT value FROM json_each(?))", string(list))
	if err != nil {
		return 0, false, err
	}
	removed, err = res.RowsAffected()
	return removed, seen < pruneBatch, err
}
