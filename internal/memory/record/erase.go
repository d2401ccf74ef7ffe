package record

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Erase deletes the records, the records set aside as duplicates and the patterns
// in which hit finds what is erased, with their words, and empties the write-ahead
// log.
func (s *Store) Erase(ctx context.Context, hit func([]byte) bool) (n int, err error) {
	if s.db == nil {
		return 0, nil
	}
	err = s.update(ctx, func(tx *sql.Tx) error {
		for _, table := range []struct{ find, remove string }{
			{"SELECT id, json_array(namespace, record_kind, record_id) || payload_json || coalesce(metadata_json, '') FROM memory_records", "DELETE FROM memory_records WHERE id = ?"},
			{"SELECT id, json_array(namespace, record_kind, record_id) || payload_json || coalesce(metadata_json, '') FROM memory_record_duplicates", "DELETE FROM memory_record_duplicates WHERE id = ?"},
			{"SELECT name, name || ir_json FROM ainl_memory_patterns", "DELETE FROM ainl_memory_patterns WHERE name = ?"},
		} {
			keys, err := hits(ctx, tx, table.find, hit)
			if err != nil {
				return err
			}
			for _, key := range keys {
				if _, err := tx.ExecContext(ctx, table.remove, key); err != nil {
					return err
				}
			}
			n += len(keys)
		}
		return nil
	})
	if err == nil && n > 0 {
		err = s.Index(ctx)
	}
	if err == nil {
		err = s.db.Fold(ctx)
	}
	if err != nil {
		return n, fmt.Errorf("erase records: %w", err)
	}
	return n, nil
}

func hits(ctx context.Context, tx *sql.Tx, query string, hit func([]byte) bool) ([]any, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []any
	for rows.Next() {
		var key any
		var text []byte
		if err := rows.Scan(&key, &text); err != nil {
			return nil, sqlite.RowError(err, "records")
		}
		if hit(text) {
			keys = append(keys, key)
		}
	}
	return keys, rows.Err()
}
