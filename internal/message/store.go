package message

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// FileName is the ledger's name in an agent's memory directory.
const FileName = "messages.db"

//go:embed migrations/*.sql
var migrations embed.FS

// redactor takes secrets out of a text.
type redactor interface{ Text(string) string }

// Options are what a Store works with. All are required unless said otherwise.
type Options struct {
	Agent  memory.AgentID
	Redact redactor // goes over every text before it is written
	Now    func() time.Time
	// ReadOnly opens a ledger that exists without changing it.
	ReadOnly bool
}

// Store is one agent's ledger of messages. It is safe for concurrent use, by
// several goroutines and several processes: each of its methods is one
// transaction.
type Store struct {
	Options
	db *sqlite.DB
}

// Open opens the ledger at path, and creates it where it is missing.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{Migrations: sub, ReadOnly: o.ReadOnly, Readers: 2, CacheKiB: 512})
	if err != nil {
		return nil, fmt.Errorf("open messages of %s: %w", o.Agent, err)
	}
	return &Store{Options: o, db: db}, nil
}

// Close closes the ledger.
func (s *Store) Close() error { return s.db.Close() }

// columns of messages, as scan reads them.
const columns = `n, id, trigger, lead, memories, session_id, channel, user_id, zone, private, from_agent, to_agent, own_hour,
	state, hold, reason, created_at, due_at, until_at, sent_at, shown_at, acked_at`

func (s *Store) scan(row interface{ Scan(...any) error }) (Message, error) {
	m := Message{Agent: s.Agent}
	var refs string
	var created, due, until int64
	var sent, shown, acked sql.NullInt64
	if err := row.Scan(&m.number, &m.ID, &m.Trigger, &m.lead, &refs, &m.SessionID, &m.Channel, &m.UserID, &m.Zone, &m.Private, &m.From, &m.To, &m.ownHour,
		&m.State, &m.hold, &m.Reason, &created, &due, &until, &sent, &shown, &acked); err != nil {
		return Message{}, err
	}
	if err := json.Unmarshal([]byte(refs), &m.Memories); err != nil {
		return Message{}, memory.Errorf(memory.ErrCorrupt, "message %s: %w", m.ID, err)
	}
	m.Handle, m.Text = handleOf(m.number), render(m.lead, m.Memories)
	m.CreatedAt, m.DueAt = fromMillis(created), fromMillis(due)
	if m.State == Waiting {
		at := fromMillis(until)
		m.Until = &at
	}
	m.SentAt, m.ShownAt, m.AckedAt = maybe(sent), maybe(shown), maybe(acked)
	return m, nil
}

func (s *Store) query(ctx context.Context, tx *sql.Tx, rest string, args ...any) ([]Message, error) {
	rows, err := tx.QueryContext(ctx, `SELECT `+columns+` FROM messages `+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Message{}
	for rows.Next() {
		m, err := s.scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// insert adds a draft, unless its key is known already: then it returns the
// message that has it, and false.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, d Draft, now time.Time) (Message, bool, error) {
	for i := range d.Memories {
		d.Memories[i].Text = s.Redact.Text(d.Memories[i].Text)
	}
	id := d.id(s.Agent)
	if known, err := s.query(ctx, tx, `WHERE id = ?`, id); err != nil || len(known) > 0 {
		if err != nil {
			return Message{}, false, err
		}
		return known[0], false, nil
	}
	refs, err := encodeRefs(d.Memories)
	if err != nil {
		return Message{}, false, err
	}
	state := Waiting
	if d.Hold != "" {
		state = Held
	}
	due := d.Due
	if due.IsZero() {
		due = now
	}
	row := tx.QueryRowContext(ctx, `INSERT INTO messages (id, trigger, lead, memories, session_id, channel, user_id, zone, private, from_agent, to_agent, own_hour,
		state, hold, reason, created_at, due_at, until_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?17) RETURNING `+columns,
		id, d.Trigger, s.Redact.Text(d.Lead), refs, d.SessionID, d.Channel, s.Redact.Text(d.UserID), d.Zone, d.Private, d.From, d.To, d.OwnHour,
		state, d.Hold, s.Redact.Text(d.Reason), now.UnixMilli(), due.UnixMilli())
	m, err := s.scan(row)
	if err != nil {
		return Message{}, false, err
	}
	for _, ref := range d.Memories {
		if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO rests VALUES (?, ?)`, ref.ID, m.number); err != nil {
			return Message{}, false, err
		}
	}
	return m, true, nil
}

// find returns the message of a handle or an id.
func (s *Store) find(ctx context.Context, tx *sql.Tx, name string) (Message, error) {
	rest, arg := `WHERE id = ?`, any(name)
	if digits, isHandle := strings.CutPrefix(strings.ToUpper(name), "MSG-"); isHandle {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return Message{}, noMessage(name)
		}
		rest, arg = `WHERE n = ?`, n
	}
	list, err := s.query(ctx, tx, rest, arg)
	if err != nil {
		return Message{}, err
	}
	if len(list) == 0 {
		return Message{}, noMessage(name)
	}
	return list[0], nil
}

func noMessage(name string) error {
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no message %q", name), "openclawssy agent message inbox --all lists them")
}

// update runs fn in a writing transaction.
func (s *Store) update(ctx context.Context, fn func(*sql.Tx) error) error {
	if err := s.db.Update(ctx, fn); err != nil {
		return fmt.Errorf("messages of %s: %w", s.Agent, err)
	}
	return nil
}

// view runs fn in a reading transaction.
func (s *Store) view(ctx context.Context, fn func(*sql.Tx) error) error {
	if err := s.db.View(ctx, fn); err != nil {
		return fmt.Errorf("messages of %s: %w", s.Agent, err)
	}
	return nil
}

func handleOf(n int64) string { return "MSG-" + strconv.FormatInt(n, 10) }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func maybe(ms sql.NullInt64) *time.Time {
	if !ms.Valid {
		return nil
	}
	t := fromMillis(ms.Int64)
	return &t
}
