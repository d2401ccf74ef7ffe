package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
)

// EachOf runs a query whose one parameter is a list of texts, as JSON for json_each,
// and calls use with each row, in the query's order. An empty list runs nothing. The
// first error of use ends it.
func EachOf(ctx context.Context, tx *sql.Tx, query string, list []string, use func(*sql.Rows) error) error {
	if len(list) == 0 {
		return nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, query, string(text))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := use(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
