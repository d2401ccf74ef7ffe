package working

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// MatchOptions bound what Match looks at.
type MatchOptions struct {
	Statuses      []memory.Status // active alone if empty
	MinImportance int
	Limit         int // matches of each column; 50 if zero
}

// Match is an item that shares words with a query.
type Match struct {
	Item memory.Item
	BM   float64 // -bm25 of the query's terms over title and content; 0 where the item is not among the best of that column
	Pre  float64 // -bm25 of its prefixes, likewise
}

// Match returns the items that share words with q, in no order of merit: those
// with the highest -bm25 over their words, and those with the highest over the
// first letters of their words. Ranking is the caller's.
func (s *Store) Match(ctx context.Context, q text.Query, opts MatchOptions) ([]Match, error) {
	var matches []Match
	err := s.view(ctx, func(tx *sql.Tx) error {
		scores := map[int64]*Match{}
		for _, channel := range []struct {
			table, query string
			set          func(*Match, float64)
		}{
			{"memory_fts", q.MatchMain(), func(m *Match, v float64) { m.BM = v }},
			{"memory_prefix", q.MatchPrefix(), func(m *Match, v float64) { m.Pre = v }},
		} {
			if channel.query == "" {
				continue
			}
			best, err := bestOf(ctx, tx, channel.table, channel.query, opts)
			if err != nil {
				return err
			}
			for _, hit := range best {
				if scores[hit.number] == nil {
					scores[hit.number] = &Match{}
				}
				channel.set(scores[hit.number], hit.score)
			}
		}
		var err error
		matches, err = withItems(ctx, tx, scores)
		return err
	})
	return matches, err
}

// hit is a row of a full-text table and its -bm25.
type hit struct {
	number int64
	score  float64
}

// bestOf returns the best rows of one full-text table, best first; of equal ones
// the newest.
func bestOf(ctx context.Context, tx *sql.Tx, table, query string, opts MatchOptions) ([]hit, error) {
	if len(opts.Statuses) == 0 {
		opts.Statuses = []memory.Status{memory.Active}
	}
	statuses, err := json.Marshal(opts.Statuses)
	if err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT f.rowid, -bm25(`+table+`) AS score FROM `+table+` f CROSS JOIN memory_items i ON i.number = f.rowid
		WHERE `+table+` MATCH ? AND i.importance >= ? AND i.status IN (SELECT value FROM json_each(?))
		ORDER BY score DESC, f.rowid DESC LIMIT ?`, query, opts.MinImportance, string(statuses), cmp.Or(opts.Limit, defaultLimit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hits []hit
	for rows.Next() {
		var h hit
		if err := rows.Scan(&h.number, &h.score); err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// withItems returns the matches with their items, by number.
func withItems(ctx context.Context, tx *sql.Tx, scores map[int64]*Match) ([]Match, error) {
	numbers := make([]int64, 0, len(scores))
	for n := range scores {
		numbers = append(numbers, n)
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	items, err := loadItems(ctx, tx, `WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number`, string(list))
	if err != nil {
		return nil, err
	}
	matches := make([]Match, 0, len(items))
	for _, it := range items {
		number, err := numberOf(it.Handle)
		if err != nil {
			return nil, err
		}
		m := scores[number]
		m.Item = it
		matches = append(matches, *m)
	}
	return matches, nil
}

// Related returns at most limit active items that texts may repeat or replace,
// the most related first: all of them where there are no more than that.
func (s *Store) Related(ctx context.Context, texts []string, limit int) ([]memory.Item, error) {
	var related []memory.Item
	err := s.view(ctx, func(tx *sql.Tx) error {
		var err error
		related, err = loadItems(ctx, tx, `WHERE status = 'active' ORDER BY number DESC LIMIT ?`, limit+1)
		if err != nil || len(related) <= limit {
			return err
		}
		merit := map[int64]*Match{} // BM is the sum of 1/rank over texts
		for _, t := range texts {
			query := text.ParseQuery(t, text.Options{}).MatchMain()
			if query == "" {
				continue
			}
			best, err := bestOf(ctx, tx, "memory_fts", query, MatchOptions{Limit: limit})
			if err != nil {
				return err
			}
			for rank, h := range best {
				if merit[h.number] == nil {
					merit[h.number] = &Match{}
				}
				merit[h.number].BM += 1 / float64(rank+1)
			}
		}
		matches, err := withItems(ctx, tx, merit)
		if err != nil {
			return err
		}
		slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.BM, a.BM) })
		related = related[:0]
		for _, m := range matches[:min(limit, len(matches))] {
			related = append(related, m.Item)
		}
		return nil
	})
	return related, err
}
