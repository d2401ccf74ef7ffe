package message

import (
	"context"
	"database/sql"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Viewer is who looks at messages: a session, which sees its own and those of its
// user in the same channel. nil stands for the operator, who sees all.
type Viewer struct {
	SessionID string
	Channel   string
	UserID    string
	Private   bool // a group session sees its own alone
}

// clause returns a condition on messages, and its arguments.
func (v *Viewer) clause() (string, []any) {
	if v == nil {
		return "1", nil
	}
	if !v.Private {
		return "session_id = ?", []any{v.SessionID}
	}
	return "(session_id = ? OR private AND channel = ? AND user_id = ? AND user_id <> '' OR from_agent <> '')", []any{v.SessionID, v.Channel, v.UserID}
}

// list returns messages of some states, newest first; at most limit, 0 for all.
func (s *Store) list(ctx context.Context, v *Viewer, where string, limit int) ([]Message, error) {
	if limit == 0 {
		limit = -1
	}
	clause, args := v.clause()
	var list []Message
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		list, err = s.query(ctx, tx, `WHERE `+clause+` AND `+where+` ORDER BY n DESC LIMIT ?`, append(args, limit)...)
		return err
	})
	return list, err
}

// take returns the messages that no chat has shown to a viewer yet, oldest first,
// and marks them as shown: each is returned once, to one of those who ask.
func (s *Store) take(ctx context.Context, v *Viewer) ([]Message, error) {
	clause, args := v.clause()
	where := `WHERE ` + clause + ` AND state = 'sent' AND shown_at IS NULL AND to_agent = '' ORDER BY n`
	var list []Message
	look := func(tx *sql.Tx) (err error) {
		list, err = s.query(ctx, tx, where, args...)
		return err
	}
	if err := s.view(ctx, look); err != nil || len(list) == 0 { // a chat asks often, and mostly in vain
		return nil, err
	}
	err := s.update(ctx, func(tx *sql.Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		now := s.Now()
		for i := range list {
			if _, err := tx.ExecContext(ctx, `UPDATE messages SET shown_at = ? WHERE n = ?`, now.UnixMilli(), list[i].number); err != nil {
				return err
			}
			list[i].ShownAt = &now
		}
		return nil
	})
	return list, err
}

// one returns a message that a viewer may see.
func (s *Store) one(ctx context.Context, v *Viewer, name string) (Message, error) {
	var m Message
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		m, err = s.find(ctx, tx, name)
		if err == nil && !v.sees(m) {
			err = noMessage(name)
		}
		return err
	})
	return m, err
}

// change finds a message that a viewer may see and runs fn on it, in one writing
// transaction; it returns the message as it is afterwards.
func (s *Store) change(ctx context.Context, v *Viewer, name string, fn func(tx *sql.Tx, m Message, now time.Time) error) (Message, error) {
	var m Message
	err := s.update(ctx, func(tx *sql.Tx) (err error) {
		if m, err = s.find(ctx, tx, name); err != nil {
			return err
		}
		if !v.sees(m) {
			return noMessage(name)
		}
		if err := fn(tx, m, s.Now()); err != nil {
			return err
		}
		m, err = s.find(ctx, tx, name)
		return err
	})
	return m, err
}

// sees is clause for one message.
func (v *Viewer) sees(m Message) bool {
	return v == nil || m.SessionID == v.SessionID || v.Private && (m.Private && m.Channel == v.Channel && m.UserID == v.UserID && m.UserID != "" || m.From != "")
}

// ack puts a message out of the way: it is not shown or sent any more, and its
// deliveries end.
func (s *Store) ack(ctx context.Context, v *Viewer, name string) (Message, error) {
	return s.change(ctx, v, name, func(tx *sql.Tx, m Message, now time.Time) error {
		if m.State == Acked || m.State == Withdrawn {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE messages SET state = 'acked', hold = '', reason = '', acked_at = ? WHERE n = ?`, now.UnixMilli(), m.number); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE deliveries SET state = 'done', error = 'acknowledged before it was delivered', done_at = ? WHERE n = ? AND state = 'pending'`, now.UnixMilli(), m.number)
		return err
	})
}

// snooze sends a message again, or later: a chat shows it anew when it comes back.
// What was posted to a route is not posted again.
func (s *Store) snooze(ctx context.Context, v *Viewer, name string, until time.Time) (Message, error) {
	return s.change(ctx, v, name, func(tx *sql.Tx, m Message, _ time.Time) error {
		if m.State == Held || m.State == Withdrawn {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s is %s: %s", m.Handle, m.State, m.Reason), "openclawssy agent message explain "+m.Handle)
		}
		_, err := tx.ExecContext(ctx, `UPDATE messages SET state = 'waiting', due_at = ?1, until_at = ?1, reason = 'snoozed', own_hour = 1, sent_at = NULL, shown_at = NULL, acked_at = NULL WHERE n = ?2`,
			until.UnixMilli(), m.number)
		return err
	})
}

const muteAll = "all"

// mute holds messages until a time, or until unmute where it is zero.
func (s *Store) mute(ctx context.Context, what string, until time.Time) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		var end any
		if !until.IsZero() {
			end = until.UnixMilli()
		}
		_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO mutes VALUES (?, ?, ?)`, what, s.Now().UnixMilli(), end)
		return err
	})
}

// unmute ends a mute, and lets what it held be sent; ErrNotFound where there is
// none.
func (s *Store) unmute(ctx context.Context, what string) error {
	return s.update(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM mutes WHERE what = ?`, what)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return memory.WithHint(memory.Errorf(memory.ErrNotFound, "%q is not muted", what), "openclawssy agent message held shows what is")
		}
		return s.freeMuted(ctx, tx, s.Now())
	})
}

// unmuteExpired ends the mutes whose time is over.
func (s *Store) unmuteExpired(ctx context.Context, tx *sql.Tx, now time.Time) error {
	res, err := tx.ExecContext(ctx, `DELETE FROM mutes WHERE until_at <= ?`, now.UnixMilli())
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return s.freeMuted(ctx, tx, now)
}

// freeMuted has everything that a mute holds looked at again.
func (s *Store) freeMuted(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE messages SET state = 'waiting', hold = '', reason = '', until_at = max(due_at, ?) WHERE state = 'held' AND hold = ?`, now.UnixMilli(), holdMuted)
	return err
}

// Mute is what is muted.
type Mute struct {
	What  string     `json:"what"`
	At    time.Time  `json:"at"`
	Until *time.Time `json:"until" jsonschema:"null until it is unmuted"`
}

func (s *Store) mutes(ctx context.Context) ([]Mute, error) {
	list := []Mute{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT what, at, until_at FROM mutes ORDER BY what`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m Mute
			var at int64
			var until sql.NullInt64
			if err := rows.Scan(&m.What, &at, &until); err != nil {
				return err
			}
			m.At, m.Until = fromMillis(at), maybe(until)
			list = append(list, m)
		}
		return rows.Err()
	})
	return list, err
}

func (s *Store) mutesNow(ctx context.Context, tx *sql.Tx) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT what FROM mutes`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var what string
		if err := rows.Scan(&what); err != nil {
			return nil, err
		}
		list = append(list, what)
	}
	return list, rows.Err()
}

// strays returns the sessions of messages and reminders that are held because
// their address is not known.
func (s *Store) strays(ctx context.Context) ([]string, error) {
	var list []string
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT session_id FROM messages WHERE state = 'held' AND hold = ?1 AND session_id <> ''
			UNION SELECT body ->> 'session_id' FROM reminders WHERE body ->> 'hold' = ?1 AND body ->> 'session_id' <> ''`, holdAddress)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			list = append(list, id)
		}
		return rows.Err()
	})
	return list, err
}

// readdress gives what was held for want of a session's address the address that
// is known now.
func (s *Store) readdress(ctx context.Context, a Address) error {
	a.UserID = s.Redact.Text(a.UserID)
	return s.update(ctx, func(tx *sql.Tx) error {
		now := s.Now().UnixMilli()
		_, err := tx.ExecContext(ctx, `UPDATE messages SET channel = ?, user_id = ?, zone = ?, private = ?, state = 'waiting', hold = '', reason = '', until_at = max(due_at, ?)
			WHERE state = 'held' AND hold = ? AND session_id = ?`, a.Channel, a.UserID, a.Zone, a.Private, now, holdAddress, a.SessionID)
		if err != nil {
			return err
		}
		list, err := reminders(ctx, tx, `WHERE body ->> 'hold' = ? AND body ->> 'session_id' = ?`, holdAddress, a.SessionID)
		if err != nil {
			return err
		}
		for _, r := range list {
			r.Address, r.Hold, r.Reason = a, "", ""
			if err := s.putReminder(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}
