package working

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Health says how an agent's working memory is.
type Health struct {
	Agent       memory.AgentID        `json:"agent"`
	Items       map[memory.Status]int `json:"items" jsonschema:"number of items by status"`
	Kinds       map[string]int        `json:"kinds" jsonschema:"number of active items by kind"`
	Backlog     int64                 `json:"backlog" jsonschema:"turns not yet distilled, parked ones aside"`
	Parked      []memory.ParkedNote   `json:"parked" jsonschema:"ranges of events that could not be distilled yet"`
	Suppressed  int                   `json:"suppressed" jsonschema:"events no longer recalled"`
	AppliedSeq  int64                 `json:"applied_seq" jsonschema:"every change up to this event is in the database"`
	LastSeq     int64                 `json:"last_seq" jsonschema:"last event of the log"`
	LastApplied *memory.Checkpoint    `json:"last_checkpoint"`
	Bytes       int64                 `json:"bytes" jsonschema:"size of the database on disk"`
	Degraded    []string              `json:"degraded" jsonschema:"what is wrong; empty if nothing is"`
}

// Failed reports whether anything is wrong.
func (h Health) Failed() bool { return len(h.Degraded) > 0 }

// Look is Health of the store in a directory, as the files stand: nothing is
// written, and no file is made beside the database. ErrNotFound where there is none.
func Look(ctx context.Context, dir string, agent memory.AgentID, log reader) (h Health, err error) {
	s := newStore(dir, Options{Agent: agent})
	s.events = log
	if s.db, err = sqlite.Open(ctx, filepath.Join(dir, fileName), sqlite.Options{ReadOnly: true, Traceless: true}); err != nil {
		return Health{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Health(ctx)
}

// Health counts what the store holds, and says what is wrong with it.
func (s *Store) Health(ctx context.Context) (Health, error) {
	h := Health{Agent: s.opts.Agent, Items: map[memory.Status]int{}, Kinds: map[string]int{}, Degraded: []string{}}
	var st state
	err := s.view(ctx, func(tx *sql.Tx) error {
		var err error
		if st, err = readState(ctx, tx); err != nil {
			return err
		}
		if err := h.count(ctx, tx); err != nil {
			return err
		}
		if h.Parked, err = parkedRanges(ctx, tx); err != nil {
			return err
		}
		last, err := checkpoints(ctx, tx, "ORDER BY seq DESC LIMIT 1")
		if len(last) > 0 {
			h.LastApplied = &last[0]
		}
		return err
	})
	if err != nil {
		return Health{}, err
	}
	h.AppliedSeq, h.LastSeq = st.applied.at.Seq, st.applied.at.Seq
	if why := s.behind.Load(); why != nil {
		h.Degraded = append(h.Degraded, *why)
	}
	pending, err := s.tail(ctx, st.applied, &h)
	if err != nil {
		h.Degraded = append(h.Degraded, err.Error())
	}
	h.Backlog = max(st.applied.turns+pending-st.passed, 0)
	return h, s.lookAround(&h)
}

// count fills in the numbers of items.
func (h *Health) count(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT status, kind, count(*) FROM memory_items GROUP BY status, kind`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var status memory.Status
		var kind string
		var n int
		if err := rows.Scan(&status, &kind, &n); err != nil {
			return err
		}
		h.Items[status] += n
		if status == memory.Active {
			h.Kinds[kind] += n
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `SELECT count(*) FROM suppressed`).Scan(&h.Suppressed)
}

// tail reads what the log holds beyond the position applied: it returns the
// number of turns, and notes a change that has not been applied.
func (s *Store) tail(ctx context.Context, from position, h *Health) (turns int64, err error) {
	at, unapplied := from.at, 0
	for {
		events, next, err := s.readLog(ctx, at)
		if err != nil {
			return turns, err
		}
		if len(events) == 0 {
			break
		}
		changes, n, err := changesOf(events)
		if err != nil {
			return turns, err
		}
		turns, unapplied, at, h.LastSeq = turns+n, unapplied+len(changes), next, next.Seq
	}
	if unapplied > 0 {
		h.Degraded = append(h.Degraded, fmt.Sprintf("%d changes of the event log are not applied yet; the next write applies them", unapplied))
	}
	return turns, nil
}

// lookAround fills in what the files say: the size of the database, and the
// damaged ones that have been set aside.
func (s *Store) lookAround(h *Health) error {
	for _, suffix := range []string{"", "-wal"} {
		st, err := os.Stat(filepath.Join(s.dir, fileName+suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			h.Bytes += st.Size()
		}
	}
	aside, err := filepath.Glob(filepath.Join(s.dir, asideName+"*"))
	if err != nil {
		return err
	}
	for _, path := range aside {
		if name := filepath.Base(path); !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			h.Degraded = append(h.Degraded, "the database was damaged and rebuilt from the event log; the damaged file is "+name+": look at it, then delete it")
		}
	}
	suspect, err := exists(filepath.Join(s.dir, suspectName))
	if suspect {
		h.Degraded = append(h.Degraded, "the database is damaged; it is rebuilt from the event log when it is opened next")
	}
	return err
}
