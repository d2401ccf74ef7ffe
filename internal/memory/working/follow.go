package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Since is what a follower of the items learns at a time.
type Since struct {
	Items []Sourced
	Last  Mark // where to go on
	More  bool // there are changes behind Last
}

// Sourced is an item as it is now, and where it came from.
type Sourced struct {
	memory.Item
	Checkpoint string    // id of the checkpoint that made it; "" for none
	ChangedAt  time.Time // of its newest version; a mark to be verified leaves UpdatedAt as it was
}

// Mark is a place in the history of items: a change, and an item that it
// touched. The zero Mark is the beginning.
type Mark struct {
	Seq  int64  `json:"seq"`  // of the change's event
	Item string `json:"item"` // id
}

// ChangedSince returns the items that the changes behind a mark have touched, as
// they are now, in the order of their handles: about limit of them, whole
// changes. ErrNotFound where the mark is none of this store: whoever followed it
// must begin again.
func (s *Store) ChangedSince(ctx context.Context, since Mark, limit int) (Since, error) {
	out := Since{Last: since}
	err := s.view(ctx, func(tx *sql.Tx) error {
		if err := checkMark(ctx, tx, since); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, `SELECT max(seq), (SELECT count(*) FROM revisions WHERE seq > ?1) > ?2
			FROM (SELECT seq FROM revisions WHERE seq > ?1 ORDER BY seq LIMIT ?2)`, since.Seq, limit).Scan(&nullSeq{&out.Last.Seq}, &out.More)
		if err != nil || out.Last.Seq == since.Seq {
			return err
		}
		err = tx.QueryRowContext(ctx, `SELECT id FROM memory_items WHERE number = (SELECT max(number) FROM revisions WHERE seq = ?)`, out.Last.Seq).Scan(&out.Last.Item)
		if err != nil {
			return err
		}
		items, err := loadItems(ctx, tx, `WHERE number IN (SELECT number FROM revisions WHERE seq > ? AND seq <= ?) ORDER BY number`, since.Seq, out.Last.Seq)
		if err != nil {
			return err
		}
		out.Items, err = withCheckpoints(ctx, tx, items)
		return err
	})
	if err != nil {
		return Since{}, fmt.Errorf("read what changed since event %d: %w", since.Seq, err)
	}
	return out, nil
}

// nullSeq scans a sequence number, and leaves it as it is for NULL.
type nullSeq struct{ into *int64 }

// Scan implements sql.Scanner.
func (n *nullSeq) Scan(v any) error {
	if seq, is := v.(int64); is {
		*n.into = seq
	}
	return nil
}

func checkMark(ctx context.Context, tx *sql.Tx, m Mark) error {
	if m == (Mark{}) {
		return nil
	}
	var known bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM revisions JOIN memory_items USING (number) WHERE seq = ? AND id = ?)`, m.Seq, m.Item).Scan(&known)
	if err == nil && !known {
		err = memory.Errorf(memory.ErrNotFound, "event %d changed no item %q", m.Seq, m.Item)
	}
	return err
}

// ByID returns the items with these ids, in the order of their handles. Ids that
// are none are left out.
func (s *Store) ByID(ctx context.Context, ids []string) ([]Sourced, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var out []Sourced
	err = s.view(ctx, func(tx *sql.Tx) error {
		items, err := loadItems(ctx, tx, `WHERE id IN (SELECT value FROM json_each(?)) ORDER BY number`, string(list))
		if err == nil {
			out, err = withCheckpoints(ctx, tx, items)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up items: %w", err)
	}
	return out, nil
}

// ByNumber returns the items MEM-n with these numbers, in their order. Numbers that
// are of none are left out.
func (s *Store) ByNumber(ctx context.Context, numbers []int64) ([]memory.Item, error) {
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	var out []memory.Item
	err = s.view(ctx, func(tx *sql.Tx) error {
		out, err = loadItems(ctx, tx, `WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number`, string(list))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up items: %w", err)
	}
	return out, nil
}

// withCheckpoints adds to items the checkpoints that made them, and when they were
// changed last, in one query.
func withCheckpoints(ctx context.Context, tx *sql.Tx, items []memory.Item) ([]Sourced, error) {
	out, numbers, at := make([]Sourced, len(items)), make([]int64, len(items)), make(map[int64]int, len(items))
	for i, it := range items {
		number, err := numberOf(it.Handle)
		if err != nil {
			return nil, err
		}
		out[i].Item, out[i].ChangedAt, numbers[i], at[number] = it, time.UnixMilli(0).UTC(), number, i
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT r.number, r.at, coalesce((SELECT id FROM checkpoints WHERE seq = (SELECT min(seq) FROM revisions WHERE number = r.number)), '')
		FROM json_each(?) AS n CROSS JOIN revisions AS r ON r.number = n.value AND r.version = (SELECT max(version) FROM revisions WHERE number = n.value)`, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number, changed int64
		var checkpoint string
		if err := rows.Scan(&number, &changed, &checkpoint); err != nil {
			return nil, err
		}
		to := &out[at[number]]
		to.ChangedAt, to.Checkpoint = time.UnixMilli(changed).UTC(), checkpoint
	}
	return out, rows.Err()
}
