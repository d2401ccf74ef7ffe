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
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/sqlite"
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
		at, best, err := s.rank(ctx, tx, q)
		if err != nil {
			return err
		}
		matches, err = s.eligible(ctx, tx, at, best, opts)
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

// stamp tells states of the database apart: every change of an item is an event, and
// what takes the place of the whole database has another schema_version.
type stamp struct{ applied, schema int64 }

// termColumn is one of the two full-text tables.
type termColumn int

const (
	fullColumn termColumn = iota
	prefixColumn
	termColumns
)

// table is the full-text table of the column.
func (c termColumn) table() string { return [termColumns]string{"memory_fts", "memory_prefix"}[c] }

// What is kept in memory of a store.
const (
	keptBytes = 2 << 20 // of lists of rows that hold a term, at most
	keptItems = 1024    // the items that were asked for last
)

// itemAt names an item as it was at a state.
type itemAt struct {
	stamp
	number int64
}

// rank returns the best rows for a query, best first, and the state that they are of.
func (s *Store) rank(ctx context.Context, tx *sql.Tx, q text.Query) (at stamp, best []hit, err error) {
	var rows int64
	if err := tx.QueryRowContext(ctx, `SELECT (SELECT coalesce(max(number), 0) FROM memory_items), coalesce((SELECT applied_seq FROM state), 0), schema_version
		FROM pragma_schema_version`).Scan(&rows, &at.applied, &at.schema); err != nil {
		return at, nil, err
	}
	if of := s.kept.State(); of != at && (of.schema != at.schema || of.applied < at.applied) {
		s.kept.Reset(at)
		s.items.Purge()
	}
	if rows == 0 {
		return at, nil, nil
	}
	scores := make([]float64, rows+1)
	if err := s.addScores(ctx, tx, at, fullColumn, q.Terms, 1, scores); err != nil {
		return at, nil, err
	}
	if err := s.addScores(ctx, tx, at, prefixColumn, q.Prefixes, .5, scores); err != nil {
		return at, nil, err
	}
	least := cut(scores, maxRanked)
	for number, score := range scores {
		if score >= least && score > 0 {
			best = append(best, hit{int64(number), score})
		}
	}
	slices.SortFunc(best, before)
	return at, best[:min(len(best), maxRanked)], nil
}

// addScores adds to the score of each row that holds a term the term's weight,
// once. What is not kept of the terms is read through fts5vocab: MATCH with bm25 costs
// ten times as much, and weighs terms no better in a store of few items.
func (s *Store) addScores(ctx context.Context, tx *sql.Tx, at stamp, c termColumn, terms []string, share float64, scores []float64) error {
	lists, keep := s.kept.Get(at, int(c), terms)
	if err := countRows(ctx, tx, c, terms, lists, len(scores)); err != nil {
		return err
	}
	var known []int
	for i, l := range lists {
		if l.Rows > 0 {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(lists[a].Rows, lists[b].Rows) })
	read := 0
	for rank, i := range known {
		if read += lists[i].Rows; rank > 0 && read > maxPlaces {
			known = known[:rank]
			break
		}
	}
	if err := readRows(ctx, tx, c, terms, lists, known, len(scores)); err != nil {
		return err
	}
	if keep {
		for i, l := range lists {
			s.kept.Put(at, int(c), terms[i], *l)
		}
	}
	var some [256]postings.Posting
	for _, i := range known {
		weight, r := share*idf(int64(len(scores)), int64(lists[i].Rows)), lists[i].Reader()
		for part := r.Next(some[:]); len(part) > 0; part = r.Next(some[:]) {
			for _, x := range part {
				if int(x.N) >= len(scores) {
					return damaged("the full-text index")
				}
				scores[x.N] += weight
			}
		}
	}
	return nil
}

// fewRows is up to how many rows the list of a term is read together with its count:
// another query would take longer.
const fewRows = 1000

// countRows fills in lists that are nil with how many rows hold their terms, and rare
// ones with which.
func countRows(ctx context.Context, tx *sql.Tx, c termColumn, terms []string, lists []*postings.List, limit int) error {
	var wanted []string
	var into []*postings.List
	for i, l := range lists {
		if l == nil {
			lists[i] = &postings.List{}
			wanted, into = append(wanted, terms[i]), append(into, lists[i])
		}
	}
	query := fmt.Sprintf(`SELECT j.key, v.doc, CASE WHEN v.cnt <= %d THEN (SELECT group_concat(doc) FROM %s_places WHERE term = j.value) END
		FROM json_each(?) j CROSS JOIN %[2]s_terms v ON v.term = j.value`, fewRows, c.table())
	return sqlite.EachOf(ctx, tx, query, wanted, func(rows *sql.Rows) error {
		var i, docs int
		var places sql.RawBytes
		if err := rows.Scan(&i, &docs, &places); err != nil {
			return err
		}
		if len(places) == 0 {
			*into[i] = postings.List{Rows: docs, CountsOnly: true}
			return nil
		}
		l, err := parseRows(places, limit)
		l.Rows = docs
		*into[i] = l
		return err
	})
}

// readRows reads those of the lists of which only counts are known. Of a term of very
// many rows, which tells little, the first of them will do.
func readRows(ctx context.Context, tx *sql.Tx, c termColumn, terms []string, lists []*postings.List, which []int, limit int) error {
	var wanted []string
	var into []*postings.List
	for _, i := range which {
		if lists[i].CountsOnly {
			wanted, into = append(wanted, terms[i]), append(into, lists[i])
		}
	}
	return sqlite.EachOf(ctx, tx, fmt.Sprintf(`SELECT j.key, (SELECT coalesce(group_concat(doc), '') FROM (SELECT doc FROM %s_places WHERE term = j.value LIMIT %d))
		FROM json_each(?) j`, c.table(), maxPlaces), wanted, func(rows *sql.Rows) error {
		var i int
		var text sql.RawBytes
		if err := rows.Scan(&i, &text); err != nil {
			return err
		}
		l, err := parseRows(text, limit)
		l.Rows = into[i].Rows
		*into[i] = l
		return err
	})
}

// parseRows reads an ascending list of rows such as "4,17,17,90", all below limit.
func parseRows(text []byte, limit int) (postings.List, error) {
	var l postings.List
	n, last := 0, 0
	for i := 0; i <= len(text) && len(text) > 0; i++ {
		if i < len(text) && text[i] != ',' {
			n = n*10 + int(text[i]-'0')
			continue
		}
		if n < 1 || n >= limit || n < last {
			return l, damaged("the full-text index")
		}
		if n != last {
			l.Add(uint32(n), 1)
		}
		n, last = 0, n
	}
	return l, nil
}

// idf is the weight of a term that is in some of all rows (Robertson and Spärck
// Jones, kept positive as Lucene does).
func idf(all, some int64) float64 {
	return math.Log1p((float64(max(all-some, 0)) + .5) / (float64(some) + .5))
}

// eligible returns the first items of a ranking, which is of a state, that have the
// properties wanted.
func (s *Store) eligible(ctx context.Context, tx *sql.Tx, at stamp, ranking []hit, opts MatchOptions) ([]Match, error) {
	if len(opts.Statuses) == 0 {
		opts.Statuses = []memory.Status{memory.Active}
	}
	limit := cmp.Or(opts.Limit, defaultLimit)
	var matches []Match
	for len(ranking) > 0 && len(matches) < limit { // most items have the properties
		some := ranking[:min(len(ranking), limit-len(matches))]
		ranking = ranking[len(some):]
		items, err := s.itemsAt(ctx, tx, at, some)
		if err != nil {
			return nil, err
		}
		for i, it := range items {
			if it.Importance >= opts.MinImportance && slices.Contains(opts.Statuses, it.Status) {
				matches = append(matches, Match{Item: it, Score: some[i].score})
			}
		}
	}
	return matches, nil
}

// itemsAt returns the items of a ranking, in its order: those that are kept, and the
// others from the database, which is at that state.
func (s *Store) itemsAt(ctx context.Context, tx *sql.Tx, at stamp, ranking []hit) ([]memory.Item, error) {
	items := make([]memory.Item, len(ranking))
	var missing []int64
	place := map[int64]int{}
	for i, h := range ranking {
		var known bool
		if items[i], known = s.items.Get(itemAt{at, h.number}); !known {
			missing, place[h.number] = append(missing, h.number), i
		}
	}
	if len(missing) == 0 {
		return items, nil
	}
	list, err := json.Marshal(missing)
	if err != nil {
		return nil, err
	}
	loaded, err := loadItems(ctx, tx, `WHERE number IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return nil, err
	}
	if len(loaded) != len(missing) {
		return nil, damaged("the full-text index")
	}
	for _, it := range loaded {
		number, err := numberOf(it.Handle)
		if err != nil {
			return nil, err
		}
		it.Evidence, it.Verify = slices.Clip(it.Evidence), slices.Clip(it.Verify) // who appends gets a copy
		items[place[number]] = it
		s.items.Add(itemAt{at, number}, it)
	}
	return items, nil
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
		var at stamp
		merit := map[int64]float64{} // the sum of 1/rank over texts
		for _, t := range texts {
			state, ranking, err := s.rank(ctx, tx, text.ParseQuery(t, text.Options{}))
			if err != nil {
				return err
			}
			at = state
			for i, h := range ranking[:min(limit, len(ranking))] {
				merit[h.number] += 1 / float64(i+1)
			}
		}
		ranking := make([]hit, 0, len(merit))
		for number, score := range merit {
			ranking = append(ranking, hit{number, score})
		}
		slices.SortFunc(ranking, before)
		matches, err := s.eligible(ctx, tx, at, ranking, MatchOptions{Limit: limit})
		related = related[:0]
		for _, m := range matches {
			related = append(related, m.Item)
		}
		return err
	})
	return related, err
}
