package message

import (
	"context"
	"database/sql"
	"fmt"
)

// Erase deletes the messages and reminders in whose words hit finds what is
// erased, or that rest on an item that goes says is, or belong to a session that is,
// and empties the write-ahead log. n counts them.
func (s *Store) Erase(ctx context.Context, hit func([]byte) bool, goes func(Ref) bool, session func(id string) bool) (n int, err error) {
	err = s.update(ctx, func(tx *sql.Tx) error {
		list, err := s.query(ctx, tx, `ORDER BY n`)
		if err != nil {
			return err
		}
		for _, m := range list {
			if !erased(m.lead, m.Reason, m.Address, m.Memories, hit, goes, session) {
				continue
			}
			n++
			for _, statement := range []string{`DELETE FROM messages WHERE n = ?`, `DELETE FROM rests WHERE n = ?`, `DELETE FROM deliveries WHERE n = ?`} {
				if _, err := tx.ExecContext(ctx, statement, m.number); err != nil {
					return err
				}
			}
		}
		asked, err := reminders(ctx, tx, "")
		if err != nil {
			return err
		}
		for _, r := range asked {
			if !erased(r.Text, r.Reason, r.Address, []Ref{{ID: r.Item, Text: r.Text}}, hit, goes, session) {
				continue
			}
			n++
			if _, err := tx.ExecContext(ctx, `DELETE FROM reminders WHERE item = ?`, r.Item); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.db.Fold(ctx)
	}
	if err != nil {
		return n, fmt.Errorf("erase messages: %w", err)
	}
	return n, nil
}

func erased(words, reason string, a Address, rests []Ref, hit func([]byte) bool, goes func(Ref) bool, session func(string) bool) bool {
	if a.SessionID != "" && session(a.SessionID) || hit([]byte(words)) || hit([]byte(reason)) || hit([]byte(a.UserID)) {
		return true
	}
	for _, r := range rests {
		if goes(r) || hit([]byte(r.Text)) {
			return true
		}
	}
	return false
}
