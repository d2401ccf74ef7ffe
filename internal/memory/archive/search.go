package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Hits is what the archive knows of a search: postings to score, and the
// passages they point to. It is read-only, and stays valid while others write.
type Hits struct {
	Main, Prefix []Postings // in the order asked for
	Sessions     []string   // ids
	SessionWords []uint32   // words of each session that are no stopwords
	Spans        []Span     // of each session; its First is 0 where it has no passages
	Speakers     []string   // names
	passages     Columns
}

// Len returns how many passages there are; they are numbered from 1.
func (h *Hits) Len() int { return h.passages.len() }

// Columns returns what is known of all passages.
func (h *Hits) Columns() Columns { return h.passages }

// Passage returns passage n.
func (h *Hits) Passage(n uint32) Passage { return h.passages.passage(n) }

// Session returns Passage(n).Session.
func (h *Hits) Session(n uint32) uint32 { return h.passages.Session[n-1] }

// Flags returns Passage(n).Flags.
func (h *Hits) Flags(n uint32) Flag { return h.passages.Flags[n-1] }

// maxPostings bounds what one search reads of a column, so that its time does
// not grow with the history: the rarest terms are read first, and those that
// no longer fit are left out. Up to about 200,000 passages all are read.
const maxPostings = 200_000

// Search reads the postings of the terms of the main and the prefix column. An
// empty archive, or one that was never filled, has no hits.
func (s *Store) Search(ctx context.Context, main, prefix []string) (*Hits, error) {
	h, err := s.keptHits(ctx, main, prefix)
	if h == nil && err == nil {
		h, err = s.readHits(ctx, main, prefix)
	}
	if err != nil {
		return nil, fmt.Errorf("search the archive: %w", err)
	}
	return h, nil
}

// keptHits answers from what is kept in memory; nil where something is missing.
func (s *Store) keptHits(ctx context.Context, main, prefix []string) (*Hits, error) {
	st, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	snap := s.kept.State()
	if snap == nil || !snap.holds(st) {
		return nil, nil
	}
	h := snap.hits()
	for c, terms := range [columns][]string{main, prefix} {
		lists, same := s.kept.Get(snap, c, terms)
		skip, whole := s.choose(lists)
		if !same || !whole {
			return nil, nil
		}
		h.set(column(c), postingsOf(terms, lists, skip))
	}
	return h, nil
}

// hits returns the hits of a search for nothing.
func (n *snapshot) hits() *Hits {
	return &Hits{passages: n.passages, Sessions: n.sessions, SessionWords: n.words, Spans: n.spans, Speakers: n.speakers}
}

func (h *Hits) set(c column, list []Postings) {
	if c == mainColumn {
		h.Main = list
	} else {
		h.Prefix = list
	}
}

// readHits reads what is not kept from the database.
func (s *Store) readHits(ctx context.Context, main, prefix []string) (h *Hits, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		snap, err := s.snapshotOf(ctx, tx)
		if err != nil {
			return err
		}
		h = snap.hits()
		for c, terms := range [columns][]string{main, prefix} {
			list, err := s.readPostings(ctx, tx, snap, column(c), terms)
			if err != nil {
				return err
			}
			h.set(column(c), list)
		}
		return nil
	})
	return h, err
}

// choose says which lists are left out so that no more than mostPostings are read:
// the most common ones. The rarest is always read. It reports whether all others
// are known.
func (s *Store) choose(lists []*postings.List) (skip []bool, whole bool) {
	order := make([]int, len(lists))
	for i, l := range lists {
		if order[i] = i; l == nil {
			return nil, false
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return lists[a].Rows - lists[b].Rows })
	skip, whole = make([]bool, len(lists)), true
	total := 0
	for rank, i := range order {
		total += lists[i].Tokens
		skip[i] = total > s.mostPostings && rank > 0
		whole = whole && (skip[i] || !lists[i].CountsOnly)
	}
	return skip, whole
}

// postingsOf returns the lists as they are told.
func postingsOf(terms []string, lists []*postings.List, skip []bool) []Postings {
	if len(terms) == 0 {
		return nil
	}
	out := make([]Postings, len(terms))
	for i, l := range lists {
		out[i] = Postings{Term: terms[i], Rows: l.Rows, Skipped: skip[i] && l.Rows > 0}
		if !skip[i] {
			out[i].read = l.Reader()
		}
	}
	return out
}

// readPostings reads the lists of one column that are not kept. The database's state
// may be an earlier one than that of the snapshot; what is kept is not used then. It
// reads through fts5vocab, not by MATCH: ranking in SQL costs ten times as much, and
// its idf is of no use in a history of a few turns.
func (s *Store) readPostings(ctx context.Context, tx *sql.Tx, snap *snapshot, c column, terms []string) ([]Postings, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	st, err := readState(ctx, tx)
	if err != nil {
		return nil, err
	}
	lists, keep := make([]*postings.List, len(terms)), snap.is(st)
	if keep {
		lists, keep = s.kept.Get(snap, int(c), terms)
	}
	if err := countTerms(ctx, tx, c, terms, lists, snap.passages.len()); err != nil {
		return nil, err
	}
	skip, _ := s.choose(lists)
	var wanted []string
	var into []int
	for i, l := range lists {
		if l.CountsOnly && !skip[i] && l.Rows > 0 {
			wanted, into = append(wanted, terms[i]), append(into, i)
		}
	}
	if err := readLists(ctx, tx, c, wanted, func(i int, docs []byte) error {
		l := lists[into[i]]
		read, err := parseDocs(docs, snap.passages.len())
		*l = read
		return err
	}); err != nil {
		return nil, err
	}
	for i, l := range lists {
		if l.Rows == 0 {
			l.CountsOnly = false // there is nothing to read
		}
		if keep {
			s.kept.Put(snap, int(c), terms[i], *l)
		}
	}
	return postingsOf(terms, lists, skip), nil
}

// fewTokens is up to how often a term stands in all passages its list is read together
// with its count: another query would take longer.
const fewTokens = 1000

// countTerms fills in lists that are nil with how common their terms are, and rare ones
// with where they stand.
func countTerms(ctx context.Context, tx *sql.Tx, c column, terms []string, lists []*postings.List, passages int) error {
	var wanted []string
	var into []int
	for i, l := range lists {
		if l == nil {
			lists[i] = &postings.List{CountsOnly: true}
			wanted, into = append(wanted, terms[i]), append(into, i)
		}
	}
	query := fmt.Sprintf(`SELECT j.key, v.doc, v.cnt, CASE WHEN v.cnt <= %d THEN (SELECT group_concat(doc, ' ') FROM %s_postings WHERE term = j.value) END
		FROM json_each(?) j CROSS JOIN %[2]s_rows v ON v.term = j.value`, fewTokens, c.table())
	return sqlite.EachOf(ctx, tx, query, wanted, func(rows *sql.Rows) error {
		var i, rowsOf, tokens int
		var docs sql.RawBytes
		if err := rows.Scan(&i, &rowsOf, &tokens, &docs); err != nil {
			return err
		}
		l := lists[into[i]]
		if len(docs) == 0 {
			l.Rows, l.Tokens = rowsOf, tokens
			return nil
		}
		read, err := parseDocs(docs, passages)
		*l = read
		return err
	})
}

// readLists calls use with the numbers of the passages that hold each term.
func readLists(ctx context.Context, tx *sql.Tx, c column, terms []string, use func(i int, docs []byte) error) error {
	return sqlite.EachOf(ctx, tx, "SELECT j.key, (SELECT coalesce(group_concat(doc, ' '), '') FROM "+c.table()+"_postings WHERE term = j.value) FROM json_each(?) j", terms, func(rows *sql.Rows) error {
		var i int
		var docs sql.RawBytes
		if err := rows.Scan(&i, &docs); err != nil {
			return err
		}
		return use(i, docs)
	})
}

// parseDocs reads numbers in order, separated by spaces, one for each time that a
// term stands in a passage.
func parseDocs(docs []byte, passages int) (postings.List, error) {
	var l postings.List
	var n, last uint32
	count := 0
	for i := 0; i <= len(docs); i++ {
		if i < len(docs) && docs[i] != ' ' {
			n = n*10 + uint32(docs[i]-'0')
			continue
		}
		if n < 1 || int(n) > passages || n < last {
			return l, damaged("its index names passage %d of %d, after %d", n, passages, last)
		}
		if n != last && count > 0 {
			l.Add(last, count)
			count = 0
		}
		last, n = n, 0
		count++
	}
	l.Add(last, count)
	return l, nil
}

// Speakers returns the names of those who speak in the archive, as ParseQuery wants
// them.
func (s *Store) Speakers(ctx context.Context) ([]string, error) {
	st, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	if snap := s.seen.Load(); snap.holds(st) {
		return snap.speakers, nil
	}
	var names []string
	err = s.view(ctx, func(tx *sql.Tx) error {
		snap, err := s.snapshotOf(ctx, tx)
		if err == nil {
			names = snap.speakers
		}
		return err
	})
	return names, err
}

// Turn is where and when an event was said.
type Turn struct {
	Session string
	Time    time.Time
	Speaker string // as in Episode
}

// Turns returns the turns of the events that the archive holds, by event id.
func (s *Store) Turns(ctx context.Context, eventIDs []string) (map[string]Turn, error) {
	list, err := json.Marshal(eventIDs)
	if err != nil {
		return nil, err
	}
	out := map[string]Turn{}
	err = s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT e.event_id, s.id, e.time, e.zone, e.speaker FROM episodes e JOIN sessions s ON s.n = e.session
			WHERE e.part = 0 AND e.event_id IN (SELECT value FROM json_each(?))`, string(list))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var event, session, speaker string
			var ms int64
			var zone int
			if err := rows.Scan(&event, &session, &ms, &zone, &speaker); err != nil {
				return err
			}
			out[event] = Turn{Session: session, Time: time.UnixMilli(ms).In(location(zone)), Speaker: speaker}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("look up turns: %w", err)
	}
	return out, nil
}

// Told is an event that somebody told of under an id of their own.
type Told struct {
	SourceID string
	Seq      int64
	Type     memory.EventType
}

// Told returns the latest events of a session that were told of under an id, at
// most limit, oldest first. Suppressed ones are among them: they were told.
func (s *Store) Told(ctx context.Context, session string, limit int) ([]Told, error) {
	var out []Told
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT e.source_id, e.seq, e.type FROM sessions s JOIN episodes e ON e.session = s.n
			WHERE s.id = ? AND e.part = 0 AND e.source_id <> '' ORDER BY e.n DESC LIMIT ?`, session, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var t Told
			if err := rows.Scan(&t.SourceID, &t.Seq, &t.Type); err != nil {
				return err
			}
			out = append(out, t)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("look up what was told: %w", err)
	}
	slices.Reverse(out)
	return out, nil
}
