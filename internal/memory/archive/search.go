package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Postings are the passages that hold one term.
type Postings struct {
	Term string
	// Docs are their numbers in order, one entry for each time that the term
	// stands there.
	Docs []uint32
	// Rows is how many passages hold the term. Where Docs is empty and Rows is
	// not, the term was too common to be read.
	Rows int
}

// Hits is what the archive knows of a search: postings to score, and the
// passages they point to. It is read-only, and stays valid while others write.
type Hits struct {
	Main, Prefix []Postings // in the order asked for
	Sessions     []string   // ids
	SessionWords []uint32   // words of each session that are no stopwords
	Speakers     []string   // names
	passages     []packed
}

// Len returns how many passages there are; they are numbered from 1.
func (h *Hits) Len() int { return len(h.passages) }

// Passage returns passage n.
func (h *Hits) Passage(n uint32) Passage { return h.passages[n-1].passage() }

// Before returns Passage(n).Before.
func (h *Hits) Before(n uint32) uint32 { return h.passages[n-1].before }

// Session returns Passage(n).Session.
func (h *Hits) Session(n uint32) uint32 { return h.passages[n-1].session }

// Speaker returns Passage(n).Speaker.
func (h *Hits) Speaker(n uint32) uint16 { return h.passages[n-1].speaker }

// Words returns Passage(n).Words.
func (h *Hits) Words(n uint32) int { return int(h.passages[n-1].words) }

// Flags returns Passage(n).Flags.
func (h *Hits) Flags(n uint32) Flag { return h.passages[n-1].flags }

// maxPostings bounds what one search reads of a column, so that its time does
// not grow with the history: the rarest terms are read first, and those that
// no longer fit are left out. Up to about 200,000 passages all are read.
const maxPostings = 200_000

// Search reads the postings of the terms of the main and the prefix column. An
// empty archive, or one that was never filled, has no hits.
func (s *Store) Search(ctx context.Context, main, prefix []string) (*Hits, error) {
	h := &Hits{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		snap, err := s.snapshotOf(ctx, tx)
		if err != nil {
			return err
		}
		h.passages, h.Sessions, h.SessionWords, h.Speakers = snap.records, snap.sessions, snap.words, snap.speakers
		if h.Main, err = readPostings(ctx, tx, "m", main, len(h.passages)); err != nil {
			return err
		}
		h.Prefix, err = readPostings(ctx, tx, "p", prefix, len(h.passages))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search the archive: %w", err)
	}
	return h, nil
}

// readPostings reads through fts5vocab, not by MATCH: ranking in SQL costs ten
// times as much, and its idf is of no use in a history of a few turns.
func readPostings(ctx context.Context, tx *sql.Tx, table string, terms []string, passages int) ([]Postings, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	out := make([]Postings, len(terms))
	tokens, order := make([]int, len(terms)), make([]int, len(terms))
	for i, term := range terms {
		out[i].Term, order[i] = term, i
	}
	err := eachTerm(ctx, tx, "SELECT j.key, v.doc, v.cnt FROM json_each(?) j CROSS JOIN "+table+"_rows v ON v.term = j.value", terms, func(rows *sql.Rows) error {
		var i, docs, count int
		if err := rows.Scan(&i, &docs, &count); err != nil {
			return err
		}
		out[i].Rows, tokens[i] = docs, count
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(order, func(a, b int) int { return out[a].Rows - out[b].Rows })
	wanted := slices.Clone(terms)
	total := 0
	for rank, i := range order {
		if total += tokens[i]; total > maxPostings && rank > 0 {
			wanted[i] = "" // no term: nothing is read
		}
	}
	err = eachTerm(ctx, tx, "SELECT j.key, (SELECT coalesce(group_concat(doc, ' '), '') FROM "+table+"_postings WHERE term = j.value) FROM json_each(?) j", wanted, func(rows *sql.Rows) error {
		var i int
		var list sql.RawBytes
		if err := rows.Scan(&i, &list); err != nil {
			return err
		}
		if len(list) == 0 {
			return nil
		}
		docs, err := parseDocs(list, tokens[i], passages)
		out[i].Docs = docs
		return err
	})
	return out, err
}

// eachTerm runs a query over the terms, a JSON list, and calls use with each row.
func eachTerm(ctx context.Context, tx *sql.Tx, query string, terms []string, use func(*sql.Rows) error) error {
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

// parseDocs reads numbers separated by spaces.
func parseDocs(list []byte, count, passages int) ([]uint32, error) {
	docs := make([]uint32, 0, count)
	var n uint32
	for i := 0; i <= len(list); i++ {
		if i < len(list) && list[i] != ' ' {
			n = n*10 + uint32(list[i]-'0')
			continue
		}
		if n < 1 || int(n) > passages {
			return nil, memory.Errorf(memory.ErrCorrupt, "the archive is damaged: its index names passage %d of %d", n, passages)
		}
		docs = append(docs, n)
		n = 0
	}
	return docs, nil
}

// Speakers returns the names of those who speak in the archive, as ParseQuery wants
// them.
func (s *Store) Speakers(ctx context.Context) ([]string, error) {
	var names []string
	err := s.view(ctx, func(tx *sql.Tx) error {
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
