package working

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// MatchOptions bound what Match looks at.
type MatchOptions struct {
	Statuses      []memory.Status // active alone if empty
	MinImportance int
	Limit         int // 50 if zero
}

// Match is an item that shares words with a query.
type Match struct {
	Item memory.Item
	// Score is the sum of the weights (idf) of the query's terms that the item
	// holds, and half that of its prefixes.
	Score float64
}

const (
	// maxPlaces bounds what one query reads of a full-text table, so that its time
	// does not grow with the store: the rarest terms are read first, and those
	// that no longer fit are left out.
	maxPlaces = 20_000
	// maxRanked is the number of best rows looked at for items of the statuses
	// wanted.
	maxRanked = 500
)

// Match returns the items that share the most weighty words with q, best first;
// of equal ones the newest first.
func (s *Store) Match(ctx context.Context, q text.Query, opts MatchOptions) ([]Match, error) {
	var matches []Match
	err := s.view(ctx, func(tx *sql.Tx) error {
		best, err := rank(ctx, tx, q)
		if err != nil {
			return err
		}
		matches, err = eligible(ctx, tx, best, opts)
		return err
	})
	return matches, err
}

// hit is a row of the full-text tables and its score.
type hit struct {
	number int64
	score  float64
}

// before orders hits: best first, of equal ones the newest.
func before(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.number, a.number))
}

// rank returns the best rows for a query, best first.
func rank(ctx context.Context, tx *sql.Tx, q text.Query) ([]hit, error) {
	var rows int64
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM memory_items`).Scan(&rows); err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, nil
	}
	scores := make([]float64, rows+1)
	if err := addScores(ctx, tx, "memory_fts", q.Terms, 1, scores); err != nil {
		return nil, err
	}
	if err := addScores(ctx, tx, "memory_prefix", q.Prefixes, .5, scores); err != nil {
		return nil, err
	}
	var best []hit
	for number, score := range scores {
		h := hit{int64(number), score}
		if score == 0 || len(best) == maxRanked && before(h, best[maxRanked-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, h, before)
		best = slices.Insert(best[:min(len(best), maxRanked-1)], at, h)
	}
	return best, nil
}

// addScores adds to the score of each row that holds a term the term's weight,
// once. The terms are read through fts5vocab: MATCH with bm25 costs ten times as
// much, and weighs terms no better in a store of few items.
func addScores(ctx context.Context, tx *sql.Tx, table string, terms []string, share float64, scores []float64) error {
	type term struct {
		text string
		rows int64
	}
	known := make([]term, 0, len(terms))
	err := eachTerm(ctx, tx, `SELECT j.key, v.doc FROM json_each(?) j CROSS JOIN `+table+`_terms v ON v.term = j.value`, terms, func(rows *sql.Rows) error {
		var i int
		var t term
		err := rows.Scan(&i, &t.rows)
		if err == nil {
			t.text = terms[i]
			known = append(known, t)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(known, func(a, b term) int { return cmp.Compare(a.rows, b.rows) })
	read := int64(0)
	var wanted []string
	for i, t := range known {
		if read += t.rows; i > 0 && read > maxPlaces {
			break
		}
		wanted = append(wanted, t.text)
	}
	// Of a term of very many rows, which tells little, the first of them will do.
	return eachTerm(ctx, tx, fmt.Sprintf(`SELECT j.key, (SELECT coalesce(group_concat(doc), '') FROM (SELECT doc FROM %s_places WHERE term = j.value LIMIT %d))
		FROM json_each(?) j`, table, maxPlaces), wanted, func(rows *sql.Rows) error {
		var i int
		var list sql.RawBytes
		if err := rows.Scan(&i, &list); err != nil {
			return err
		}
		return addWeight(list, share*idf(int64(len(scores)), known[i].rows), scores)
	})
}

// eachTerm runs a query over the terms, a JSON list, and calls use with each row.
func eachTerm(ctx context.Context, tx *sql.Tx, query string, terms []string, use func(*sql.Rows) error) error {
	if len(terms) == 0 {
		return nil
	}
	list, err := json.Marshal(terms)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, query, string(list))
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

// addWeight adds weight, once, to the score of each row of an ascending list such
// as "4,17,17,90".
func addWeight(list []byte, weight float64, scores []float64) error {
	if len(list) == 0 {
		return nil
	}
	n, last := 0, 0
	for i := 0; i <= len(list); i++ {
		if i < len(list) && list[i] != ',' {
			n = n*10 + int(list[i]-'0')
			continue
		}
		if n < 1 || n >= len(scores) {
			return damaged("the full-text index")
		}
		if n != last {
			scores[n] += weight
		}
		n, last = 0, n
	}
	return nil
}

// idf is the weight of a term that is in some of all rows (Robertson and Spärck
// Jones, kept positive as Lucene does).
func idf(all, some int64) float64 {
	return math.Log1p((float64(max(all-some, 0)) + .5) / (float64(some) + .5))
}

// eligible returns the first items of a ranking that have the properties wanted.
func eligible(ctx context.Context, tx *sql.Tx, ranking []hit, opts MatchOptions) ([]Match, error) {
	if len(ranking) == 0 {
		return nil, nil
	}
	if len(opts.Statuses) == 0 {
		opts.Statuses = []memory.Status{memory.Active}
	}
	score := make(map[string]hit, len(ranking))
	numbers := make([]int64, len(ranking))
	for i, h := range ranking {
		numbers[i], score[handleOf(h.number)] = h.number, h
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	statuses, err := json.Marshal(opts.Statuses)
	if err != nil {
		return nil, err
	}
	items, err := loadItems(ctx, tx, `WHERE number IN (SELECT j.value FROM json_each(?) j CROSS JOIN memory_items i ON i.number = j.value
		WHERE i.importance >= ? AND i.status IN (SELECT value FROM json_each(?)) ORDER BY j.key LIMIT ?)`,
		string(list), opts.MinImportance, string(statuses), cmp.Or(opts.Limit, defaultLimit))
	if err != nil {
		return nil, err
	}
	matches := make([]Match, len(items))
	for i, it := range items {
		matches[i] = Match{Item: it, Score: score[it.Handle].score}
	}
	slices.SortFunc(matches, func(a, b Match) int { return before(score[a.Item.Handle], score[b.Item.Handle]) })
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
		merit := map[int64]float64{} // the sum of 1/rank over texts
		for _, t := range texts {
			ranking, err := rank(ctx, tx, text.ParseQuery(t, text.Options{}))
			if err != nil {
				return err
			}
			for i, h := range ranking[:min(limit, len(ranking))] {
				merit[h.number] += 1 / float64(i+1)
			}
		}
		ranking := make([]hit, 0, len(merit))
		for number, score := range merit {
			ranking = append(ranking, hit{number, score})
		}
		slices.SortFunc(ranking, before)
		matches, err := eligible(ctx, tx, ranking, MatchOptions{Limit: limit})
		related = related[:0]
		for _, m := range matches {
			related = append(related, m.Item)
		}
		return err
	})
	return related, err
}
