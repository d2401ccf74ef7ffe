package message

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Mark is a place in the history of an agent's items, as its memory names it; the
// zero Mark is the beginning.
type Mark struct {
	Seq  int64
	Item string
}

// Reminder is an item that asks for being reminded.
type Reminder struct {
	Item   string `json:"item"` // id
	Handle string `json:"handle"`
	Text   string `json:"text"`
	Address
	Hold   string     `json:"hold,omitempty"`
	Reason string     `json:"reason,omitempty"` // why none comes, or why it will be held
	Rule   rule       `json:"rule"`
	Ends   *time.Time `json:"ends,omitempty"` // not valid after this
	Next   *time.Time `json:"next"`           // null where none comes
}

// step is what one look at the changes of memory comes to.
type step struct {
	from, to  Mark
	since     time.Time // what was made before is no news
	drafts    []Draft
	reminders []Reminder
	unasked   []string // ids of active items that ask for no reminder, though they may have
	gone      []string // ids of items that are no longer active
	forgotten []string // those among them whose text must go
}

// errMoved says that another process has followed further meanwhile.
var errMoved = errors.New("the ledger has moved on")

// mark returns how far the changes of memory have been followed.
func (s *Store) mark(ctx context.Context) (Mark, error) {
	var m Mark
	err := s.view(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT seq, item FROM state`).Scan(&m.Seq, &m.Item)
	})
	return m, err
}

// since returns the time before which memories were there when the ledger began to
// follow them.
func (s *Store) since(ctx context.Context) (time.Time, error) {
	var ms int64
	err := s.view(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT since FROM state`).Scan(&ms)
	})
	return fromMillis(ms), err
}

// advance applies a step: its messages, its reminders and how far it goes, all or
// nothing. Messages about an item that was spoken of for the same trigger, and of a
// question for the same reason, are left out.
func (s *Store) advance(ctx context.Context, st step) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `UPDATE state SET seq = ?, item = ?, since = ? WHERE seq = ? AND item = ?`, st.to.Seq, st.to.Item, st.since.UnixMilli(), st.from.Seq, st.from.Item)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errMoved)
		}
		now := s.Now()
		if err := s.leave(ctx, tx, st); err != nil {
			return err
		}
		for _, r := range st.reminders {
			if err := s.remind(ctx, tx, r, now); err != nil {
				return err
			}
		}
		return s.tell(ctx, tx, st.drafts, now)
	})
}

// tell adds the drafts, without what was spoken of before.
func (s *Store) tell(ctx context.Context, tx *sql.Tx, drafts []Draft, now time.Time) error {
	for _, d := range drafts {
		var news []Ref
		for _, ref := range d.Memories {
			fresh, err := say(ctx, tx, d.Trigger, ref)
			if err != nil {
				return err
			}
			if len(fresh) > 0 {
				ref.reasons = fresh
				news = append(news, ref)
			}
		}
		if len(news) == 0 {
			continue
		}
		d.Memories = news
		d.ask()
		if _, _, err := s.insert(ctx, tx, d, now); err != nil {
			return err
		}
	}
	return nil
}

// say notes that an item is spoken of, and returns for which of its reasons it was
// not before; "" stands for a trigger that has none.
func say(ctx context.Context, tx *sql.Tx, trigger Trigger, ref Ref) (fresh []string, err error) {
	reasons := ref.reasons
	if len(reasons) == 0 {
		reasons = []string{""}
	}
	for _, reason := range reasons {
		key := string(trigger)
		if reason != "" {
			key += ": " + reason
		}
		res, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO said VALUES (?, ?)`, key, ref.ID)
		if err != nil {
			return nil, err
		}
		if n, err := res.RowsAffected(); err != nil {
			return nil, err
		} else if n > 0 {
			fresh = append(fresh, reason)
		}
	}
	return fresh, nil
}

// leave lets go of items: their reminders vanish, messages that rest on nothing
// else are not sent any more, and what was said of a forgotten one is wiped out.
func (s *Store) leave(ctx context.Context, tx *sql.Tx, st step) error {
	for _, id := range slices.Concat(st.unasked, st.gone) {
		if _, err := tx.ExecContext(ctx, `DELETE FROM reminders WHERE item = ?`, id); err != nil {
			return err
		}
	}
	for _, id := range st.gone {
		list, err := s.query(ctx, tx, `WHERE n IN (SELECT n FROM rests WHERE item = ?)`, id)
		if err != nil {
			return err
		}
		for _, m := range list {
			if err := s.without(ctx, tx, m, id, slices.Contains(st.forgotten, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// without takes an item out of a message: out of one that is not sent yet, and its
// text out of any where it is forgotten.
func (s *Store) without(ctx context.Context, tx *sql.Tx, m Message, id string, forgotten bool) error {
	unsent := m.State == Waiting || m.State == Held
	if !unsent && !forgotten {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(m.Memories), func(r Ref) bool { return r.ID == id })
	state, hold, reason := m.State, m.hold, m.Reason
	if unsent && len(left) == 0 {
		state, hold, reason = Withdrawn, "", "the memory that it rests on is gone"
	}
	refs := left
	if !unsent || len(left) == 0 {
		refs = slices.Clone(m.Memories)
	}
	lead := m.lead
	if forgotten {
		for i := range refs {
			if refs[i].ID == id {
				refs[i].Text = ""
			}
		}
		if m.Trigger == Sent || len(left) == 0 {
			lead = "(forgotten)"
		}
	}
	raw, err := encodeRefs(refs)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE messages SET lead = ?, memories = ?, state = ?, hold = ?, reason = ? WHERE n = ?`, lead, raw, state, hold, reason, m.number)
	return err
}

// remind keeps a reminder. One whose time was known already keeps what it has
// come to; only its words and address change.
func (s *Store) remind(ctx context.Context, tx *sql.Tx, r Reminder, now time.Time) error {
	r.Text, r.UserID = s.Redact.Text(r.Text), s.Redact.Text(r.UserID)
	known, found, err := reminderOf(ctx, tx, r.Item)
	if err != nil {
		return err
	}
	switch {
	case found && sameRule(known.Rule, r.Rule):
		r.Next, r.Rule = known.Next, known.Rule
	case r.Next != nil && r.Next.Before(now) && r.Rule.Every != once && r.Rule.Every != instant:
		// What came again and again before anybody knew of it is not made up for.
		next := r.Rule.next(now, r.location())
		r.Next = &next
	}
	return s.putReminder(ctx, tx, r)
}

// sameRule reports whether two rules say the same, whenever they were said.
func sameRule(a, b rule) bool {
	spans := a.Every != once && a.Every != instant
	return a.Every == b.Every && a.N == b.N && slices.Equal(a.Weekdays, b.Weekdays) && a.Nth == b.Nth && a.Month == b.Month && a.Day == b.Day && a.Minute == b.Minute &&
		(spans || a.Anchor.Equal(b.Anchor))
}

func (s *Store) putReminder(ctx context.Context, tx *sql.Tx, r Reminder) error {
	if r.Next != nil && (r.Next.IsZero() || r.Ends != nil && r.Next.After(*r.Ends)) {
		r.Next, r.Reason = nil, "no further time comes"
	}
	var next any
	if r.Next != nil {
		at := r.Next.UTC()
		r.Next, next = &at, at.UnixMilli()
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO reminders VALUES (?, ?, ?)`, r.Item, string(body), next)
	return err
}

func reminderOf(ctx context.Context, tx *sql.Tx, item string) (Reminder, bool, error) {
	list, err := reminders(ctx, tx, `WHERE item = ?`, item)
	if err != nil || len(list) == 0 {
		return Reminder{}, false, err
	}
	return list[0], true, nil
}

func reminders(ctx context.Context, tx *sql.Tx, rest string, args ...any) ([]Reminder, error) {
	rows, err := tx.QueryContext(ctx, `SELECT body FROM reminders `+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Reminder{}
	for rows.Next() {
		var body string
		var r Reminder
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			return nil, memory.Errorf(memory.ErrCorrupt, "a reminder: %w", err)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// add adds one message, and returns the one that is the same: false where it was
// known before. Without a mark the same words to the same addressee are the same
// message for so long.
func (s *Store) add(ctx context.Context, d Draft, within time.Duration) (m Message, added bool, err error) {
	err = s.update(ctx, func(tx *sql.Tx) error {
		now := s.Now()
		if d.Mark == "" {
			same, err := s.query(ctx, tx, `WHERE trigger = ? AND lead = ? AND session_id = ? AND channel = ? AND user_id = ? AND to_agent = ? AND created_at > ? AND created_at <= ?`,
				d.Trigger, s.Redact.Text(d.Lead), d.SessionID, d.Channel, s.Redact.Text(d.UserID), d.To, now.Add(-within).UnixMilli(), now.UnixMilli())
			if err != nil {
				return err
			}
			if len(same) > 0 {
				m = same[len(same)-1]
				return nil
			}
			d.Mark = strconv.FormatInt(now.UnixMilli(), 10) + " " + d.Lead
		}
		m, added, err = s.insert(ctx, tx, d, now)
		return err
	})
	return m, added, err
}

// receive puts another agent's message into the inbox, once.
func (s *Store) receive(ctx context.Context, m Message) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		now := s.Now()
		got, added, err := s.insert(ctx, tx, Draft{Trigger: Sent, Lead: m.Text, From: m.Agent, Mark: m.ID, Address: Address{Private: true}}, now)
		if err != nil || !added {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE messages SET state = 'sent', sent_at = ? WHERE n = ?`, now.UnixMilli(), got.number)
		return err
	})
}

// reminders returns all reminders, the next one first.
func (s *Store) reminders(ctx context.Context) ([]Reminder, error) {
	var list []Reminder
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		list, err = reminders(ctx, tx, `ORDER BY next_at IS NULL, next_at, item`)
		return err
	})
	return list, err
}
