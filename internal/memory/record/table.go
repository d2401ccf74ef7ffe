package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// row is what a write stores. A nil metadata is none.
type row struct {
	Key
	createdAt, updatedAt string
	ttl                  *int64
	payload, metadata    json.RawMessage
}

// stored is what a write finds.
type stored struct {
	number    int64
	createdAt string
	updatedAt string
	ttl       *int64
	payload   string
	metadata  sql.NullString
}

// table is the table of records within one writing transaction.
type table struct{ tx *sql.Tx }

// updateTable is update for changes of single records.
func (s *Store) updateTable(ctx context.Context, fn func(table) error) error {
	return s.update(ctx, func(tx *sql.Tx) error { return fn(table{tx}) })
}

const (
	findRow = `SELECT id, created_at, updated_at, ttl_seconds, payload_json, metadata_json FROM memory_records
		WHERE namespace = ? AND record_kind = ? AND record_id = ?`
	insertRow = `INSERT INTO memory_records
		(namespace, record_kind, record_id, created_at, updated_at, ttl_seconds, payload_json, metadata_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	changeRow = `UPDATE memory_records SET created_at = ?, updated_at = ?, ttl_seconds = ?, payload_json = ?, metadata_json = ? WHERE id = ?`
)

// find reads the row of a key, expired or not.
func (t table) find(ctx context.Context, key Key) (r stored, found bool, err error) {
	err = t.tx.QueryRowContext(ctx, findRow, key.Namespace, key.Kind, key.ID).
		Scan(&r.number, &r.createdAt, &r.updatedAt, &r.ttl, &r.payload, &r.metadata)
	if errors.Is(err, sql.ErrNoRows) {
		return stored{}, false, nil
	}
	return r, err == nil, err
}

// save inserts a row, or replaces the one of that number.
func (t table) save(ctx context.Context, r row, number int64) error {
	metadata := sql.NullString{String: string(r.metadata), Valid: r.metadata != nil}
	if number == 0 {
		_, err := t.tx.ExecContext(ctx, insertRow, r.Namespace, r.Kind, r.ID, r.createdAt, r.updatedAt, r.ttl, string(r.payload), metadata)
		return err
	}
	_, err := t.tx.ExecContext(ctx, changeRow, r.createdAt, r.updatedAt, r.ttl, string(r.payload), metadata, number)
	return err
}
