// Package spend keeps what agents spend on models within bounds: a ledger of
// tokens and calls per agent and UTC day, and a breaker that stops asking an
// endpoint which does not answer.
package spend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	keepDays  = 35              // days of history in the file
	lockWait  = 5 * time.Second // for another process that writes the file
	lockRetry = 2 * time.Millisecond
)

// Limits are what one agent may spend in one UTC day, and all agents of the home
// together; 0 is no limit.
type Limits struct {
	DailyTokens int `json:"daily_tokens"`
	DailyCalls  int `json:"daily_calls"`
	TotalTokens int `json:"total_tokens"`
	TotalCalls  int `json:"total_calls"`
}

// Used is what an agent has spent in one day. Reserved tokens belong to calls
// that have not been settled: those under way, and those whose process died.
type Used struct {
	Calls     int `json:"calls"`
	TokensIn  int `json:"tokens_in"`
	TokensOut int `json:"tokens_out"`
	Reserved  int `json:"reserved,omitempty"`
}

// Tokens is what counts against the limit.
func (u Used) Tokens() int { return u.TokensIn + u.TokensOut + u.Reserved }

// Day is an agent's account of one day.
type Day struct {
	Date     string    `json:"date"` // UTC, 2006-01-02
	Used     Used      `json:"used"`
	All      Used      `json:"all"` // of all agents of the home
	Limits   Limits    `json:"limits"`
	ResetsAt time.Time `json:"resets_at"`
	// Damaged are files of the ledger that could not be read and were put aside;
	// what they counted is lost.
	Damaged []string `json:"damaged,omitempty"`
}

// UsedUp says which limit leaves no room for another call; "" for none.
func (d Day) UsedUp() string {
	for _, bound := range []struct {
		who, what    string
		used, atMost int
	}{
		{"the agent", "calls", d.Used.Calls, d.Limits.DailyCalls},
		{"the agent", "tokens", d.Used.Tokens(), d.Limits.DailyTokens},
		{"all agents together", "calls", d.All.Calls, d.Limits.TotalCalls},
		{"all agents together", "tokens", d.All.Tokens(), d.Limits.TotalTokens},
	} {
		if bound.atMost > 0 && bound.used >= bound.atMost {
			return fmt.Sprintf("%s used up today's %d %s", bound.who, bound.atMost, bound.what)
		}
	}
	return ""
}

// OverError says which limit a call would have broken. It is an ErrDenied.
type OverError struct {
	Agent    memory.AgentID // "" where it is the limit of all agents together
	What     string         // "tokens" or "calls"
	Used     int
	Wanted   int
	Limit    int
	ResetsAt time.Time
}

func (e *OverError) Error() string {
	who := "all agents together have"
	if e.Agent != "" {
		who = "agent " + string(e.Agent) + " has"
	}
	return fmt.Sprintf("%s spent %d of %d %s today and needs %d more: no model call before %s",
		who, e.Used, e.Limit, e.What, e.Wanted, e.ResetsAt.Format(time.RFC3339))
}

// Unwrap makes every OverError an ErrDenied.
func (e *OverError) Unwrap() error { return memory.ErrDenied }

// Ledger counts what the agents of one home spend, in one JSON file that any
// number of processes may share. It is safe for concurrent use.
type Ledger struct {
	path   string
	keys   string // section of the configuration that has the limits
	limits func(memory.AgentID) Limits
	now    func() time.Time
}

// New returns the ledger kept in the file at path. Nothing is read or created
// before it is needed.
func New(path string, limits func(memory.AgentID) Limits, now func() time.Time) *Ledger {
	return &Ledger{path: path, keys: "spend", limits: limits, now: now}
}

// Section says in which section of the configuration l's limits stand, if not in
// spend, and returns l.
func (l *Ledger) Section(name string) *Ledger {
	l.keys = name
	return l
}

// Ticket is the leave for one model call.
type Ticket struct {
	ledger   *Ledger
	agent    memory.AgentID
	date     string
	reserved int
	settled  bool
}

// book is the content of the file.
type book struct {
	Days    map[string]map[memory.AgentID]Used `json:"days"`
	Damaged []string                           `json:"damaged,omitempty"`
}

// Reserve asks leave for one call that is expected to take so many tokens. The
// call counts from now on, and the tokens until Settle says what they really
// were. Over a limit it answers an OverError and nothing has changed.
func (l *Ledger) Reserve(ctx context.Context, agent memory.AgentID, tokens int) (*Ticket, error) {
	if tokens < 0 {
		return nil, memory.Errorf(memory.ErrInternal, "reserve %d tokens", tokens)
	}
	t := &Ticket{ledger: l, agent: agent, date: l.today(), reserved: tokens}
	err := l.change(ctx, func(b *book) error {
		used := b.Days[t.date][agent]
		if err := l.over(agent, used, b.total(t.date), tokens); err != nil {
			return err
		}
		used.Calls++
		used.Reserved += tokens
		b.set(t.date, agent, used)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Settle replaces the reserved tokens by those that the call took. It is called
// once, also for a call that failed, and works although ctx has ended.
func (t *Ticket) Settle(ctx context.Context, tokensIn, tokensOut int) error {
	if t.settled {
		return memory.Errorf(memory.ErrInternal, "a model call of agent %s was settled twice", t.agent)
	}
	t.settled = true
	return t.ledger.change(context.WithoutCancel(ctx), func(b *book) error {
		used := b.Days[t.date][t.agent]
		used.Reserved = max(0, used.Reserved-t.reserved)
		used.TokensIn += tokensIn
		used.TokensOut += tokensOut
		b.set(t.date, t.agent, used)
		return nil
	})
}

// Today returns an agent's account of the current UTC day. It writes nothing.
func (l *Ledger) Today(agent memory.AgentID) (Day, error) {
	day := Day{Date: l.today(), Limits: l.limits(agent), ResetsAt: l.resetsAt()}
	b, err := l.read()
	var corrupt *memory.CorruptError
	switch {
	case errors.As(err, &corrupt):
		day.Damaged = []string{l.path}
		return day, nil
	case err != nil:
		return Day{}, err
	}
	day.Used, day.All, day.Damaged = b.Days[day.Date][agent], b.total(day.Date), b.Damaged
	return day, nil
}

// Between returns what an agent has spent in the UTC days from one to another,
// both included, as far back as the ledger goes (35 days). It writes nothing.
func (l *Ledger) Between(agent memory.AgentID, from, to time.Time) (Used, error) {
	var sum Used
	b, err := l.read()
	if err != nil {
		return sum, err
	}
	first, last := from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly)
	for date, agents := range b.Days {
		if date >= first && date <= last {
			sum.add(agents[agent])
		}
	}
	return sum, nil
}

func (u *Used) add(more Used) {
	u.Calls += more.Calls
	u.TokensIn += more.TokensIn
	u.TokensOut += more.TokensOut
	u.Reserved += more.Reserved
}

// total is what all agents have spent in a day.
func (b *book) total(date string) Used {
	var sum Used
	for _, used := range b.Days[date] {
		sum.add(used)
	}
	return sum
}

func (l *Ledger) today() string { return l.now().UTC().Format(time.DateOnly) }

func (l *Ledger) resetsAt() time.Time {
	return l.now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// over answers an OverError where a call of so many tokens would break a limit of
// the agent, or of all.
func (l *Ledger) over(agent memory.AgentID, used, all Used, tokens int) error {
	limits := l.limits(agent)
	for _, bound := range []struct {
		agent                memory.AgentID
		what, key            string
		used, wanted, atMost int
	}{
		{agent, "calls", "daily_calls", used.Calls, 1, limits.DailyCalls},
		{agent, "tokens", "daily_tokens", used.Tokens(), tokens, limits.DailyTokens},
		{"", "calls", "total_calls", all.Calls, 1, limits.TotalCalls},
		{"", "tokens", "total_tokens", all.Tokens(), tokens, limits.TotalTokens},
	} {
		if bound.atMost > 0 && bound.used+bound.wanted > bound.atMost {
			e := &OverError{Agent: bound.agent, What: bound.what, Used: bound.used, Wanted: bound.wanted, Limit: bound.atMost, ResetsAt: l.resetsAt()}
			return memory.WithHint(e, "raise "+l.keys+"."+bound.key+" or set it to 0 for no limit")
		}
	}
	return nil
}

// change edits the book under the lock that all processes of the home share.
func (l *Ledger) change(ctx context.Context, edit func(*book) error) (err error) {
	dir := filepath.Dir(l.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "create the spend ledger's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(l.path+".lock", flock.SetPermissions(0o600))
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "lock the spend ledger: %w", err)
	}
	b, err := l.readOrPutAside()
	if err != nil {
		return err
	}
	if err := edit(&b); err != nil {
		return err
	}
	b.prune(l.now())
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write the spend ledger: %w", err)
	}
	if err := replace(l.path, append(text, '\n')); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write the spend ledger: %w", err)
	}
	return nil
}

// read returns what the file says; an empty book where there is none, and a
// CorruptError where it is damaged.
func (l *Ledger) read() (book, error) {
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return book{}, nil
	}
	if err != nil {
		return book{}, memory.Errorf(memory.ErrUnavailable, "read the spend ledger: %w", err)
	}
	var b book
	if err := json.Unmarshal(text, &b); err != nil {
		return book{}, &memory.CorruptError{Path: l.path, Offset: -1, Reason: err.Error()}
	}
	return b, nil
}

// Check reads the ledger at path and returns the damaged files that were put aside
// before; a CorruptError where it is damaged itself. A missing one is empty.
func Check(path string) (aside []string, err error) {
	b, err := (&Ledger{path: path}).read()
	return b.Damaged, err
}

// readOrPutAside reads the file. A damaged one is renamed and noted, and
// counting starts anew: an agent must not stay mute because of its accounts.
func (l *Ledger) readOrPutAside() (book, error) {
	b, err := l.read()
	var corrupt *memory.CorruptError
	if !errors.As(err, &corrupt) {
		return b, err
	}
	aside := l.path + ".corrupt-" + strconv.FormatInt(l.now().UnixMilli(), 10)
	if err := os.Rename(l.path, aside); err != nil {
		return book{}, memory.Errorf(memory.ErrUnavailable, "put the damaged spend ledger aside: %w", err)
	}
	return book{Damaged: []string{aside}}, nil
}

func (b *book) set(date string, agent memory.AgentID, used Used) {
	if b.Days == nil {
		b.Days = map[string]map[memory.AgentID]Used{}
	}
	if b.Days[date] == nil {
		b.Days[date] = map[memory.AgentID]Used{}
	}
	b.Days[date][agent] = used
}

// prune drops the days that are too old to be kept. Dates of this form sort as
// their days do.
func (b *book) prune(now time.Time) {
	oldest := now.UTC().AddDate(0, 0, -keepDays).Format(time.DateOnly)
	for date := range b.Days {
		if date < oldest {
			delete(b.Days, date)
		}
	}
}

// replace writes a file whole or not at all.
func replace(path string, text []byte) (err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
