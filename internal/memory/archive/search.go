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
	out := make([]Postings, len(terms))
	order := make([]int, len(terms))
	count, err := tx.PrepareContext(ctx, "SELECT doc, cnt FROM "+table+"_rows WHERE term = ?")
	if err != nil {
		return nil, err
	}
	defer count.Close()
	tokens := make([]int, len(terms))
	for i, term := range terms {
		out[i].Term, order[i] = term, i
		if err := count.QueryRowContext(ctx, term).Scan(&out[i].Rows, &tokens[i]); err != nil && err != sql.ErrNoRows {
			return nil, err
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return out[a].Rows - out[b].Rows })
	read, err := tx.PrepareContext(ctx, "SELECT coalesce(group_concat(doc, ' '), '') FROM "+table+"_postings WHERE term = ?")
	if err != nil {
		return nil, err
	}
	defer read.Close()
	total := 0
	for rank, i := range order {
		if total += tokens[i]; tokens[i] == 0 || total > maxPostings && rank > 0 {
			continue
		}
		var list sql.RawBytes
		if err := scanRaw(ctx, read, out[i].Term, &list, func() error {
			out[i].Docs, err = parseDocs(list, tokens[i], passages)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scanRaw runs a query of one row of one column and calls use while its bytes
// are valid.
func scanRaw(ctx context.Context, stmt *sql.Stmt, arg string, into *sql.RawBytes, use func() error) error {
	rows, err := stmt.QueryContext(ctx, arg)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into); err != nil {
			return err
		}
		if err := use(); err != nil {
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
}

// Turns returns the turns of the events that the archive holds, by event id.
func (s *Store) Turns(ctx context.Context, eventIDs []string) (map[string]Turn, error) {
	list, err := json.Marshal(eventIDs)
	if err != nil {
		return nil, err
	}
	out := map[string]Turn{}
	err = s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT e.event_id, s.id, e.time, e.zone FROM episodes e JOIN sessions s ON s.n = e.session
			WHERE e.part = 0 AND e.event_id IN (SELECT value FROM json_each(?))`, string(list))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var event, session string
			var ms int64
			var zone int
			if err := rows.Scan(&event, &session, &ms, &zone); err != nil {
				return err
			}
			out[event] = Turn{Session: session, Time: time.UnixMilli(ms).In(location(zone))}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("look up turns: %w", err)
	}
	return out, nil
}
