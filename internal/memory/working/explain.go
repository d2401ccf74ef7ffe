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

// episodes finds the passages of an event.
type episodes interface {
	ByEvent(ctx context.Context, agent memory.AgentID, eventID string) ([]memory.Episode, error)
	// Echoes returns the ids of the events in which the assistant repeats one of
	// the texts.
	Echoes(ctx context.Context, agent memory.AgentID, texts []string) ([]string, error)
}

// Cited is a piece of evidence with what the event said.
type Cited struct {
	memory.Evidence
	Origin     memory.Origin `json:"origin,omitempty"`
	Speaker    string        `json:"speaker,omitempty"`
	SessionID  string        `json:"session_id,omitempty"`
	RunID      string        `json:"run_id,omitempty" jsonschema:"run in which it was said; memory.why shows what that run was given"`
	Span       *Span         `json:"span" jsonschema:"where in text the quote stands, in bytes; null where it stands there in other words"`
	Time       *time.Time    `json:"time"`
	Text       string        `json:"text,omitempty" jsonschema:"the whole turn"`
	Handles    []string      `json:"handles" jsonschema:"EVT handles of the turn's passages"`
	Suppressed bool          `json:"suppressed,omitempty" jsonschema:"true: the turn is no longer recalled"`
}

// Span is a range of bytes of a text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Explanation says why an item exists.
type Explanation struct {
	Item       memory.Item        `json:"item"`
	Evidence   []Cited            `json:"evidence"`
	Revisions  []Revision         `json:"revisions" jsonschema:"oldest first"`
	Checkpoint *memory.Checkpoint `json:"checkpoint" jsonschema:"the checkpoint that created it, if one did"`
	Earlier    []memory.Item      `json:"earlier" jsonschema:"items that it took the place of, newest first"`
	Later      []memory.Item      `json:"later" jsonschema:"items that took its place, oldest first"`
}

// explain returns all that the store itself knows.
func (s *Store) explain(ctx context.Context, name string) (Explanation, error) {
	x := Explanation{Evidence: []Cited{}, Earlier: []memory.Item{}, Later: []memory.Item{}}
	err := s.view(ctx, func(tx *sql.Tx) error {
		var err error
		if x.Item, err = find(ctx, tx, name); err != nil {
			return err
		}
		number, err := numberOf(x.Item.Handle)
		if err != nil {
			return err
		}
		if x.Revisions, err = versionsOf(ctx, tx, number); err != nil {
			return err
		}
		if len(x.Revisions) > 0 {
			made, err := checkpoints(ctx, tx, "WHERE seq = ?", x.Revisions[0].Seq)
			if err != nil {
				return err
			}
			if len(made) > 0 {
				x.Checkpoint = &made[0]
			}
		}
		for _, ev := range x.Item.Evidence {
			c := Cited{Evidence: ev, Handles: []string{}}
			if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM suppressed WHERE event_id = ?)`, ev.EventID).Scan(&c.Suppressed); err != nil {
				return err
			}
			x.Evidence = append(x.Evidence, c)
		}
		if x.Earlier, err = chain(ctx, tx, x.Item.Supersedes, func(it memory.Item) string { return it.Supersedes }); err != nil {
			return err
		}
		x.Later, err = chain(ctx, tx, x.Item.SupersededBy, func(it memory.Item) string { return it.SupersededBy })
		return err
	})
	return x, err
}

// Replaced returns, for those of the events that only superseded items rest on,
// the quotes of those items: what was said then and holds no more.
func (s *Store) Replaced(ctx context.Context, eventIDs []string) (map[string][]string, error) {
	out := map[string][]string{}
	ids, err := json.Marshal(eventIDs)
	if err != nil {
		return nil, err
	}
	err = s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT e.event_id, e.quote, i.status FROM evidence e JOIN memory_items i ON i.number = e.number
			WHERE e.event_id IN (SELECT value FROM json_each(?))`, string(ids))
		if err != nil {
			return err
		}
		defer rows.Close()
		standing := map[string]bool{}
		for rows.Next() {
			var id, quote string
			var status memory.Status
			if err := rows.Scan(&id, &quote, &status); err != nil {
				return err
			}
			switch status {
			case memory.Superseded:
				out[id] = append(out[id], quote)
			case memory.Active:
				standing[id] = true
			}
		}
		for id := range standing {
			delete(out, id)
		}
		return rows.Err()
	})
	return out, err
}

// chain follows a link from item to item.
func chain(ctx context.Context, q querier, id string, next func(memory.Item) string) ([]memory.Item, error) {
	list := []memory.Item{}
	seen := map[string]bool{}
	for id != "" && !seen[id] {
		seen[id] = true
		it, err := find(ctx, q, id)
		if errors.Is(err, memory.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, it)
		id = next(it)
	}
	return list, nil
}

// quoteTurn fills in what the event of a citation said. An event that is not
// archived (yet) leaves the citation as it is.
func quoteTurn(ctx context.Context, from episodes, agent memory.AgentID, c *Cited) error {
	passages, err := from.ByEvent(ctx, agent, c.EventID)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, p := range passages {
		if i == 0 {
			c.Origin, c.Speaker, c.SessionID, c.Time = p.Origin, p.Speaker, p.SessionID, &p.Time
		} else {
			c.Text += " "
		}
		c.Text += p.Text
		c.Handles = append(c.Handles, p.Handle)
	}
	if at := strings.Index(c.Text, c.Quote); at >= 0 && c.Quote != "" {
		c.Span = &Span{Start: at, End: at + len(c.Quote)}
	}
	return nil
}

// RestingOn returns the handles of the items that cite an event, in the order in
// which they were made; forgotten items cite nothing.
func (s *Store) RestingOn(ctx context.Context, eventID string) ([]string, error) {
	handles := []string{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		items, err := loadItems(ctx, tx, `WHERE number IN (SELECT number FROM evidence WHERE event_id = ?) ORDER BY number`, eventID)
		for _, it := range items {
			handles = append(handles, it.Handle)
		}
		return err
	})
	return handles, err
}
