package working

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Lease is the right to do one long job (checkpoint, maintenance, rebuild,
// erase) on an agent. It is lost when it expires and another holder takes it;
// what is then done under it is refused. A holder also keeps a lock on a file for
// as long as it lives, so that one whose process has died is replaced at once,
// and one that only hangs when its lease expires.
type Lease struct {
	Name    string
	Holder  string
	Token   int64 // grows with every new holder of that name
	Expires time.Time
	alive   *flock.Flock // not locked where it was taken from a holder that lives
	instead *flock.Flock // locked then: a holder that ends must not leave the lease to the first who asks
}

// leaseLocks are the files on which holders of a lease keep their locks.
func leaseLocks(dir, name string) (alive, instead string) {
	return filepath.Join(dir, "lease-"+name+".lock"), filepath.Join(dir, "lease-"+name+".instead.lock")
}

// unlock gives the locks back.
func (l Lease) unlock() error { return errors.Join(l.alive.Close(), l.instead.Close()) }

// Acquire takes the lease of that name for a while. While another holder lives
// and its lease has not expired the answer is ErrConflict, with who and until
// when.
func (s *Store) Acquire(ctx context.Context, name, holder string, length time.Duration) (Lease, error) {
	return s.acquire(ctx, name, holder, length, false)
}

func (s *Store) acquire(ctx context.Context, name, holder string, length time.Duration, seize bool) (Lease, error) {
	now := s.opts.Now()
	alive, instead := leaseLocks(s.dir, name)
	l := Lease{Name: name, Holder: holder, Expires: milliseconds(now.Add(length)), alive: flock.New(alive, flock.SetPermissions(0o600)), instead: flock.New(instead, flock.SetPermissions(0o600))}
	alone, err := l.alive.TryLock()
	if err != nil {
		return Lease{}, errors.Join(memory.Errorf(memory.ErrUnavailable, "lock the lease of a %s: %w", name, err), l.unlock())
	}
	err = s.update(ctx, func(tx *sql.Tx) error {
		var other string
		var until int64
		err := tx.QueryRowContext(ctx, `SELECT holder, token, expires FROM leases WHERE name = ?`, name).Scan(&other, &l.Token, &until)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if alone { // unless somebody has it instead of the one who had this lock
			taken, err := isLocked(instead)
			if err != nil {
				return err
			}
			alone = !taken
		}
		if !seize && !alone && until > now.UnixMilli() && until <= now.Add(maxLease).UnixMilli() {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "a %s is already running: %s holds it until %s", name, other, time.UnixMilli(until).UTC().Format(time.RFC3339)),
				"wait for it to end; a holder that hangs is replaced after that time, one that has died at once")
		}
		if !alone {
			if err := l.lockInstead(ctx); err != nil {
				return err
			}
		}
		l.Token++
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)`, name, holder, l.Token, l.Expires.UnixMilli())
		return err
	})
	if err != nil {
		return Lease{}, errors.Join(err, l.unlock())
	}
	return l, nil
}

// lockLook is for how long a lock is waited for that others only look at.
const lockLook = 100 * time.Millisecond

// lockInstead takes the second lock, unless another one that hangs has that too.
func (l Lease) lockInstead(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, lockLook)
	defer cancel()
	_, err := l.instead.TryLockContext(soon, lockPoll)
	if err != nil && (soon.Err() == nil || ctx.Err() != nil) {
		return memory.Errorf(memory.ErrUnavailable, "lock the lease of a %s: %w", l.Name, err)
	}
	return nil
}

// maxLease bounds what is believed of an expiry: one further off was written
// under a clock that has been set back since.
const maxLease = 10 * time.Minute

// Renew makes the lease last for length from now; ErrConflict where it was lost.
func (s *Store) Renew(ctx context.Context, l Lease, length time.Duration) error {
	// The holder that hung may have gone since, and left its lock.
	if _, err := l.alive.TryLock(); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock the lease of a %s: %w", l.Name, err)
	}
	return s.update(ctx, func(tx *sql.Tx) error {
		if err := holds(ctx, tx, l); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE leases SET expires = ? WHERE name = ?`, s.opts.Now().Add(length).UnixMilli(), l.Name)
		return err
	})
}

// Release gives the lease back. A lease that was lost is none of the caller's
// any more, and is left alone.
func (s *Store) Release(ctx context.Context, l Lease) error {
	// The lock goes first: whoever finds it free takes the row, whatever it says.
	unlocking := l.unlock()
	return errors.Join(unlocking, s.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET expires = 0 WHERE name = ? AND holder = ? AND token = ?`, l.Name, l.Holder, l.Token)
		return err
	}))
}

// Leased runs fn under the lease of that name, which is renewed meanwhile. Should
// it be lost, fn's context ends, and the answer is ErrConflict.
func (s *Store) Leased(ctx context.Context, name, holder string, length time.Duration, fn func(context.Context, Lease) error) error {
	lease, err := s.Acquire(ctx, name, holder, length)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		tick := time.NewTicker(length / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := s.Renew(ctx, lease, length); err != nil {
					cancel(err)
					return
				}
			}
		}
	}()
	err = fn(ctx, lease)
	if lost := context.Cause(ctx); err != nil && lost != nil {
		err = lost
	}
	cancel(nil)
	<-renewed
	return errors.Join(err, s.Release(context.WithoutCancel(ctx), lease))
}

// holds refuses with ErrConflict where the lease has gone to somebody else.
func holds(ctx context.Context, q querier, l Lease) error {
	var mine bool
	err := q.QueryRowContext(ctx, `SELECT holder = ? AND token = ? FROM leases WHERE name = ?`, l.Holder, l.Token, l.Name).Scan(&mine)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("lease %s: %w", l.Name, err)
	}
	if !mine {
		return memory.Errorf(memory.ErrConflict, "the lease of this %s has expired and gone to another process", l.Name)
	}
	return nil
}

// Held is a lease that has not been given back.
type Held struct {
	Name    string
	Holder  string
	Expires time.Time
	Alive   bool // its holder lives; one that has died is replaced at once
}

// LookLeases returns the leases of the store in a directory that have not been given
// back, as the files stand. Nothing is written. ErrNotFound where there is no store.
func LookLeases(ctx context.Context, dir string) (held []Held, err error) {
	s := newStore(dir, Options{})
	if s.db, err = sqlite.Open(ctx, filepath.Join(dir, fileName), sqlite.Options{ReadOnly: true, Traceless: true}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(scan func(...any) error) error {
			var h Held
			var until int64
			err := scan(&h.Name, &h.Holder, &until)
			h.Expires = time.UnixMilli(until).UTC()
			held = append(held, h)
			return err
		}, `SELECT name, holder, expires FROM leases WHERE expires > 0 ORDER BY name`)
	})
	for i := range held {
		if err == nil {
			alive, instead := leaseLocks(dir, held[i].Name)
			if held[i].Alive, err = isLocked(alive); err == nil && !held[i].Alive {
				held[i].Alive, err = isLocked(instead)
			}
		}
	}
	return held, err
}

// isLocked reports whether a process holds the lock of a file.
func isLocked(path string) (bool, error) {
	if there, err := exists(path); !there {
		return false, err
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil {
		err = memory.Errorf(memory.ErrUnavailable, "look at the lock %s: %w", path, err)
	}
	return !free, errors.Join(err, lock.Close())
}
