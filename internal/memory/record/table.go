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
type table struct {
	tx *sql.Tx
	// prepared are the statements that a batch uses again and again; nil for a
	// single write, which has no use for them.
	prepared map[string]*sql.Stmt
}

// updateTable is update for a change of single records.
func (s *Store) updateTable(ctx context.Context, fn func(*table) error) error {
	return s.update(ctx, func(tx *sql.Tx) error { return fn(&table{tx: tx}) })
}

// updateBatch is updateTable for changes of many. Its statements end with the
// transaction.
func (s *Store) updateBatch(ctx context.Context, fn func(*table) error) error {
	return s.update(ctx, func(tx *sql.Tx) error { return fn(&table{tx: tx, prepared: map[string]*sql.Stmt{}}) })
}

// statement returns a prepared statement, or nil for a single write.
func (t *table) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if t.prepared == nil || t.prepared[text] != nil {
		return t.prepared[text], nil
	}
	stmt, err := t.tx.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	t.prepared[text] = stmt
	return stmt, nil
}

const (
	findRow = `SELECT id, created_at, updated_at, ttl_seconds, payload_json, metadata_json FROM memory_records
		WHERE namespace = ? AND record_kind = ? AND record_id = ?`
	insertRow = `INSERT INTO memory_records
		(namespace, record_kind, record_id, created_at, updated_at, ttl_seconds, payload_json, metadata_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	changeRow = `UPDATE memory_records SET created_at = ?, updated_at = ?, ttl_seconds = ?, payload_json = ?, metadata_json = ? WHERE id = ?`
)

// find reads the row of a key, expired or not.
func (t *table) find(ctx context.Context, key Key) (r stored, found bool, err error) {
	stmt, err := t.statement(ctx, findRow)
	if err != nil {
		return stored{}, false, err
	}
	var have *sql.Row
	if stmt != nil {
		have = stmt.QueryRowContext(ctx, key.Namespace, key.Kind, key.ID)
	} else {
		have = t.tx.QueryRowContext(ctx, findRow, key.Namespace, key.Kind, key.ID)
	}
	err = have.Scan(&r.number, &r.createdAt, &r.updatedAt, &r.ttl, &r.payload, &r.metadata)
	if errors.Is(err, sql.ErrNoRows) {
		return stored{}, false, nil
	}
	return r, err == nil, err
}

// save inserts a row, or replaces the one of that number.
func (t *table) save(ctx context.Context, r row, number int64) error {
	metadata := sql.NullString{String: string(r.metadata), Valid: r.metadata != nil}
	if number == 0 {
		return t.exec(ctx, insertRow, r.Namespace, r.Kind, r.ID, r.createdAt, r.updatedAt, r.ttl, string(r.payload), metadata)
	}
	return t.exec(ctx, changeRow, r.createdAt, r.updatedAt, r.ttl, string(r.payload), metadata, number)
}

func (t *table) exec(ctx context.Context, text string, args ...any) error {
	stmt, err := t.statement(ctx, text)
	if err != nil {
		return err
	}
	if stmt != nil {
		_, err = stmt.ExecContext(ctx, args...)
	} else {
		_, err = t.tx.ExecContext(ctx, text, args...)
	}
	return err
}
