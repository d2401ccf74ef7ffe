package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// GetRequest names an item.
type GetRequest struct {
	Handle string `json:"handle" cli:"arg" jsonschema:"handle of the item, such as MEM-12"`
}

// GetResult is an item with its evidence.
type GetResult struct {
	Item      memory.Item `json:"item"`
	Revisions int         `json:"revisions" jsonschema:"number of versions kept"`
}

// Get returns one item with its evidence.
func (s *Store) Get(ctx context.Context, in GetRequest) (GetResult, error) {
	var res GetResult
	err := s.view(ctx, func(tx *sql.Tx) error {
		var err error
		if res.Item, err = find(ctx, tx, in.Handle); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM revisions JOIN memory_items USING (number) WHERE id = ?`, res.Item.ID).Scan(&res.Revisions)
	})
	return res, err
}

// ListRequest is the input of memory.list.
type ListRequest struct {
	Status string `json:"status,omitempty" jsonschema:"active, superseded, archived, quarantined, forgotten or all; active if absent"`
	Kind   string `json:"kind,omitempty" jsonschema:"only items of this kind"`
	Verify bool   `json:"verify,omitempty" jsonschema:"only items that are marked to be verified"`
	Limit  *int   `json:"limit,omitempty" jsonschema:"most items to list, newest first; 0 for all; 50 if absent"`
}

// ListResult is the output of memory.list.
type ListResult struct {
	Agent memory.AgentID `json:"agent"`
	Items []memory.Item  `json:"items"`
}

const defaultLimit = 50

// filter checks in and returns it as the rest of a SELECT.
func (in ListRequest) filter() (string, []any, error) {
	var where []string
	var args []any
	switch in.Status {
	case "all":
	case "":
		where, args = append(where, "status = ?"), append(args, string(memory.Active))
	default:
		if _, err := memory.ParseStatus(in.Status); err != nil {
			return "", nil, err
		}
		where, args = append(where, "status = ?"), append(args, in.Status)
	}
	if in.Kind != "" {
		where, args = append(where, "kind = ?"), append(args, in.Kind)
	}
	if in.Verify {
		where = append(where, "verify <> ''")
	}
	limit := defaultLimit
	set(&limit, in.Limit)
	switch {
	case limit < 0:
		return "", nil, &memory.FieldError{Field: "limit", Reason: "must not be negative; 0 lists all"}
	case limit == 0:
		limit = -1 // SQLite's word for no limit
	}
	rest := " ORDER BY number DESC LIMIT ?"
	if len(where) > 0 {
		rest = "WHERE " + strings.Join(where, " AND ") + rest
	}
	return rest, append(args, limit), nil
}

// List returns items, newest first.
func (s *Store) List(ctx context.Context, in ListRequest) (ListResult, error) {
	rest, args, err := in.filter()
	if err != nil {
		return ListResult{}, err
	}
	res := ListResult{Agent: s.opts.Agent}
	err = s.view(ctx, func(tx *sql.Tx) error {
		res.Items, err = loadItems(ctx, tx, rest, args...)
		return err
	})
	return res, err
}

// Revision is one version of an item.
type Revision struct {
	Seq    int64       `json:"seq" jsonschema:"number of the event that made it"`
	Action string      `json:"action"`
	By     string      `json:"by"`
	Why    string      `json:"why"`
	At     time.Time   `json:"at"`
	Item   memory.Item `json:"item"`
}

// HistoryResult is the output of memory.history.
type HistoryResult struct {
	Handle    string     `json:"handle"`
	Revisions []Revision `json:"revisions" jsonschema:"oldest first"`
}

// History returns every version of an item, oldest first: what changed, when,
// by whom and why.
func (s *Store) History(ctx context.Context, in GetRequest) (HistoryResult, error) {
	res := HistoryResult{Revisions: []Revision{}}
	err := s.view(ctx, func(tx *sql.Tx) error {
		it, err := find(ctx, tx, in.Handle)
		if err != nil {
			return err
		}
		res.Handle = it.Handle
		number, err := numberOf(it.Handle)
		if err != nil {
			return err
		}
		res.Revisions, err = versionsOf(ctx, tx, number)
		return err
	})
	return res, err
}

// versionsOf returns the versions of the item of that number, oldest first.
func versionsOf(ctx context.Context, q querier, number int64) ([]Revision, error) {
	rows, err := q.QueryContext(ctx, `SELECT seq, action, by, why, at, item, sum FROM revisions WHERE number = ? ORDER BY version`, number)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Revision{}
	for rows.Next() {
		var v Revision
		var at, sum int64
		var body string
		if err := rows.Scan(&v.Seq, &v.Action, &v.By, &v.Why, &at, &body, &sum); err != nil {
			return nil, err
		}
		if sum != sumOf(v.Seq, v.Action, v.By, v.Why, at, body) {
			return nil, damaged("a version of " + handleOf(number))
		}
		if err := json.Unmarshal([]byte(body), &v.Item); err != nil {
			return nil, memory.Errorf(memory.ErrCorrupt, "a version of %s: %w", handleOf(number), err)
		}
		v.At = time.UnixMilli(at).UTC()
		list = append(list, v)
	}
	return list, rows.Err()
}

// Checkpoints returns the records of the newest checkpoints, newest first; 0 for
// all.
func (s *Store) Checkpoints(ctx context.Context, limit int) ([]memory.Checkpoint, error) {
	if limit == 0 {
		limit = -1
	}
	var list []memory.Checkpoint
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		list, err = checkpoints(ctx, tx, `ORDER BY seq DESC LIMIT ?`, limit)
		return err
	})
	return list, err
}

// Checkpoint returns the record of one checkpoint.
func (s *Store) Checkpoint(ctx context.Context, id string) (memory.Checkpoint, error) {
	var list []memory.Checkpoint
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		list, err = checkpoints(ctx, tx, `WHERE id = ?`, id)
		return err
	})
	if err == nil && len(list) == 0 {
		err = noCheckpoint(id)
	}
	if err != nil {
		return memory.Checkpoint{}, err
	}
	return list[0], nil
}

func noCheckpoint(id string) error {
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no checkpoint %q", id), "openclawssy memory checkpoint list shows them")
}

func checkpoints(ctx context.Context, q querier, rest string, args ...any) ([]memory.Checkpoint, error) {
	rows, err := q.QueryContext(ctx, "SELECT body, sum FROM checkpoints "+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []memory.Checkpoint{}
	for rows.Next() {
		var body string
		var c memory.Checkpoint
		var sum int64
		if err := rows.Scan(&body, &sum); err != nil {
			return nil, err
		}
		if sum != sumOf(body) {
			return nil, damaged("the record of a checkpoint")
		}
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			return nil, memory.Errorf(memory.ErrCorrupt, "the record of a checkpoint: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// isNone reports whether err says that a row is not there.
func isNone(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || errors.Is(err, memory.ErrNotFound)
}
