package message

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Times of deliveries.
const (
	firstBackoff   = 10 * time.Second // after the first failure; four times as long after each further one
	longestBackoff = 12 * time.Hour
	mostAttempts   = 10              // in about two days; then it has failed, and a person may retry it
	claimLength    = 2 * time.Minute // a process that dies while it delivers holds the others up so long
	routeTimeout   = 30 * time.Second
)

// Delivery is how far a message has come on a route.
type Delivery struct {
	Route    string     `json:"route" jsonschema:"webhook, or agent for another agent's inbox"`
	State    string     `json:"state" jsonschema:"pending, done or failed"`
	Attempts int        `json:"attempts"`
	NextAt   *time.Time `json:"next_at,omitempty" jsonschema:"of a pending one: when it is tried"`
	Error    string     `json:"error,omitempty"`
	DoneAt   *time.Time `json:"done_at,omitempty"`
}

// claimed is a delivery that this process has taken on.
type claimed struct {
	Message
	route    string
	attempts int // this one included
	until    int64
}

// claim takes on a few deliveries that are due, so that no other process tries
// them meanwhile: no more than fit into a claim's length if all are slow.
func (s *Store) claim(ctx context.Context) ([]claimed, error) {
	var list []claimed
	err := s.update(ctx, func(tx *sql.Tx) error {
		list = nil
		now := s.Now()
		rows, err := tx.QueryContext(ctx, `SELECT n, route, attempts FROM deliveries WHERE state = 'pending' AND (next_at <= ?1 OR next_at > ?1 + ?2)
			AND (claim <= ?1 OR claim > ?1 + ?3) ORDER BY next_at, n LIMIT 3`, now.UnixMilli(), longestBackoff.Milliseconds(), claimLength.Milliseconds())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			c := claimed{until: now.Add(claimLength).UnixMilli()}
			if err := rows.Scan(&c.number, &c.route, &c.attempts); err != nil {
				return err
			}
			c.attempts++
			list = append(list, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for i, c := range list {
			if _, err := tx.ExecContext(ctx, `UPDATE deliveries SET claim = ?, attempts = ? WHERE n = ? AND route = ?`, c.until, c.attempts, c.number, c.route); err != nil {
				return err
			}
			if list[i].Message, err = s.find(ctx, tx, handleOf(c.number)); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}

// settle writes down how a delivery went: failure is nil where it went well. One
// that may go well later is tried again at a time that grows with each attempt; a
// claim that another process has taken over is left alone.
func (s *Store) settle(ctx context.Context, c claimed, failure error, jitter float64) error {
	state, next, text := "done", s.Now(), ""
	var done any = next.UnixMilli()
	if failure != nil {
		done, text = nil, s.Redact.Text(failure.Error())
		state, next = "pending", next.Add(backoff(c.attempts, failure, jitter))
		if c.attempts >= mostAttempts || forGood(failure) {
			state = "failed"
		}
	}
	return s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE deliveries SET state = ?, next_at = ?, claim = 0, error = ?, done_at = ? WHERE n = ? AND route = ? AND claim = ? AND state = 'pending'`,
			state, next.UnixMilli(), text, done, c.number, c.route, c.until)
		return err
	})
}

// LaterError is a failure after which the receiver names a time to try again.
type LaterError struct {
	After time.Duration
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns the failure itself.
func (e *LaterError) Unwrap() error { return e.Err }

// backoff returns how long to wait after so many attempts; jitter is in [0, 1) and
// spreads it by a fifth.
func backoff(attempts int, failure error, jitter float64) time.Duration {
	d := firstBackoff
	for range attempts - 1 {
		d = min(4*d, longestBackoff*5/6)
	}
	d += time.Duration(jitter * .2 * float64(d))
	var later *LaterError
	if errors.As(failure, &later) {
		d = max(d, min(later.After, longestBackoff))
	}
	return d
}

// forGood reports whether trying again cannot help.
func forGood(err error) bool {
	return errors.Is(err, memory.ErrInvalid) || errors.Is(err, memory.ErrDenied) || errors.Is(err, memory.ErrNotFound)
}

// retry has the failed deliveries of a message tried again.
func (s *Store) retry(ctx context.Context, v *Viewer, name string) (Message, error) {
	return s.change(ctx, v, name, func(tx *sql.Tx, m Message, now time.Time) error {
		res, err := tx.ExecContext(ctx, `UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, claim = 0 WHERE n = ? AND state = 'failed'`, now.UnixMilli(), m.number)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return memory.Errorf(memory.ErrConflict, "no delivery of %s has failed", m.Handle)
	})
}

// deliveries returns how far a message has come on its routes.
func (s *Store) deliveries(ctx context.Context, number int64) ([]Delivery, error) {
	list := []Delivery{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT route, state, attempts, next_at, error, done_at FROM deliveries WHERE n = ? ORDER BY route`, number)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var d Delivery
			var next int64
			var done sql.NullInt64
			if err := rows.Scan(&d.Route, &d.State, &d.Attempts, &next, &d.Error, &done); err != nil {
				return err
			}
			if at := fromMillis(next); d.State == "pending" {
				d.NextAt = &at
			}
			d.DoneAt = maybe(done)
			list = append(list, d)
		}
		return rows.Err()
	})
	return list, err
}
