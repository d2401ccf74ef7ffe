package message

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// mostAtOnce bounds what one transaction looks at; the rest comes with the next.
const mostAtOnce = 200

// release makes the messages of reminders whose time has come, and sends every
// waiting message that nothing holds: into the inbox, and onto the routes. It
// returns what was sent, oldest first. Any number of processes may do so at once:
// a message is sent by one of them.
func (s *Store) release(ctx context.Context, set Settings) ([]Message, error) {
	var sent []Message
	err := s.update(ctx, func(tx *sql.Tx) error {
		sent = nil
		now := s.Now()
		if err := s.ring(ctx, tx, now); err != nil {
			return err
		}
		if err := s.unmuteExpired(ctx, tx, now); err != nil {
			return err
		}
		// Reminders first: they are what was asked for.
		list, err := s.query(ctx, tx, `WHERE state = 'waiting' AND (until_at <= ?1 OR due_at <= ?1 AND until_at > ?1 + ?2) ORDER BY trigger <> 'reminder', due_at, n LIMIT ?3`,
			now.UnixMilli(), longestWait.Milliseconds(), mostAtOnce)
		if err != nil {
			return err
		}
		mutes, err := s.mutesNow(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range list {
			ok, err := s.trySend(ctx, tx, m, set, mutes, now)
			if err != nil {
				return err
			}
			if ok {
				m.State, m.SentAt, m.Reason, m.Until = InInbox, &now, "", nil
				sent = append(sent, m)
			}
		}
		return nil
	})
	return sent, err
}

// trySend sends a message, or notes what holds it.
func (s *Store) trySend(ctx context.Context, tx *sql.Tx, m Message, set Settings, mutes []string, now time.Time) (bool, error) {
	if what := muted(m, mutes); what != "" {
		_, err := tx.ExecContext(ctx, `UPDATE messages SET state = 'held', hold = ?, reason = ? WHERE n = ?`, holdMuted, what+" is muted", m.number)
		return false, err
	}
	h, err := s.historyOf(ctx, tx, m, now)
	if err != nil {
		return false, err
	}
	if until, why := set.gate(m, h, now); why != "" {
		_, err := tx.ExecContext(ctx, `UPDATE messages SET until_at = ?, reason = ? WHERE n = ?`, until.UnixMilli(), why, m.number)
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE messages SET state = 'sent', reason = '', sent_at = ? WHERE n = ?`, now.UnixMilli(), m.number); err != nil {
		return false, err
	}
	routes := set.Routes
	if m.To != "" {
		routes = []string{toAgent}
	}
	for _, route := range routes {
		if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO deliveries VALUES (?, ?, 'pending', 0, ?, 0, '', NULL)`, m.number, route, now.UnixMilli()); err != nil {
			return false, err
		}
	}
	return true, nil
}

// historyOf counts what the addressee of a message was sent.
func (s *Store) historyOf(ctx context.Context, tx *sql.Tx, m Message, now time.Time) (history, error) {
	from, to := day(now, m.location())
	var h history
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM messages WHERE channel = ? AND user_id = ? AND to_agent = ? AND from_agent = '' AND sent_at >= ? AND sent_at < ?`,
		m.Channel, m.UserID, m.To, from.UnixMilli(), to.UnixMilli()).Scan(&h.today)
	if err != nil {
		return history{}, err
	}
	var last sql.NullInt64
	err = tx.QueryRowContext(ctx, `SELECT max(sent_at) FROM messages WHERE channel = ? AND user_id = ? AND to_agent = ? AND trigger = ? AND sent_at <= ?`,
		m.Channel, m.UserID, m.To, m.Trigger, now.UnixMilli()).Scan(&last)
	if last.Valid {
		h.last = fromMillis(last.Int64)
	}
	return h, err
}

// ring makes the messages of the reminders whose time has come. Of several times
// that passed while nothing ran only the last one counts, and a message of an
// earlier time that was not sent stands back.
func (s *Store) ring(ctx context.Context, tx *sql.Tx, now time.Time) error {
	due, err := reminders(ctx, tx, `WHERE next_at <= ? ORDER BY next_at LIMIT ?`, now.UnixMilli(), mostAtOnce)
	if err != nil {
		return err
	}
	for _, r := range due {
		at, next := r.Rule.latest(*r.Next, now, r.location())
		d := Draft{Trigger: ReminderDue, Lead: reminderLead(r, at, now), Memories: []Ref{{ID: r.Item, Handle: r.Handle, Text: r.Text}},
			Address: r.Address, Hold: r.Hold, Reason: r.Reason, Due: at, OwnHour: r.Rule.Named, Mark: at.UTC().Format(time.RFC3339)}
		m, _, err := s.insert(ctx, tx, d, now)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE messages SET state = 'withdrawn', hold = '', reason = ? WHERE trigger = 'reminder' AND state IN ('waiting', 'held') AND n <> ?
			AND n IN (SELECT n FROM rests WHERE item = ?)`, "a later time of the same reminder stands for it: "+m.Handle, m.number, r.Item)
		if err != nil {
			return err
		}
		r.Next = &next
		if err := s.putReminder(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}

// reminderLead is how a reminder begins; one that comes late says when it was due.
func reminderLead(r Reminder, at, now time.Time) string {
	if now.Sub(at) < time.Hour {
		return "A reminder:"
	}
	return fmt.Sprintf("A reminder that was due on %s:", at.In(r.location()).Format("Monday, 2 January 2006, 15:04"))
}

// muted returns which of the mutes a message falls under, "" for none.
func muted(m Message, mutes []string) string {
	for _, what := range mutes {
		if what == muteAll || what == string(m.Trigger) || slices.ContainsFunc(m.Memories, func(r Ref) bool { return r.Handle == what }) {
			return what
		}
	}
	return ""
}

// longestWait is the most that quiet hours, cooldown and cap hold a message at a
// time. One that seems to wait longer has seen another clock, and is looked at
// again.
const longestWait = 25 * time.Hour

// due returns when there is something to send, to try again or to be reminded of;
// zero where nothing is.
func (s *Store) due(ctx context.Context) (time.Time, error) {
	var next sql.NullInt64
	now := s.Now().UnixMilli()
	err := s.view(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT min(at) FROM (
			SELECT min(iif(due_at <= ?1 AND until_at > ?1 + ?2, ?1, until_at)) AS at FROM messages WHERE state = 'waiting'
			UNION ALL SELECT min(next_at) FROM reminders
			UNION ALL SELECT min(max(iif(next_at > ?1 + ?3, ?1, next_at), iif(claim > ?1 + ?4, ?1, claim))) FROM deliveries WHERE state = 'pending'
			UNION ALL SELECT min(until_at) FROM mutes)`, now, longestWait.Milliseconds(), longestBackoff.Milliseconds(), claimLength.Milliseconds()).Scan(&next)
	})
	if err != nil || !next.Valid {
		return time.Time{}, err
	}
	return fromMillis(next.Int64), nil
}
