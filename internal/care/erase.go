package care

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Eraser takes what a Target names out of one store of an agent. It answers how
// many things it took, and none where there is no store. Doing it again does
// nothing, since an erasure that was interrupted goes through all stores again.
type Eraser interface {
	Name() string
	Erase(ctx context.Context, agent memory.AgentID, t *erasure.Target) (n int, err error)
}

// Step is an Eraser made of a function.
type Step struct {
	Store string
	Do    func(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error)
}

// Name returns the store's name.
func (s Step) Name() string { return s.Store }

// Erase calls Do.
func (s Step) Erase(ctx context.Context, agent memory.AgentID, t *erasure.Target) (int, error) {
	return s.Do(ctx, agent, t)
}

// Erasing is what erasures work with. All but Outside and Copies are required.
type Erasing struct {
	// Dir returns an agent's directory; ErrNotFound where it has none.
	Dir      func(memory.AgentID) (string, error)
	Logs     memory.Borrow[*events.Reader]
	Items    memory.Borrow[*working.Store]
	Archives memory.Borrow[*archive.Store] // up to date with the log
	Erasers  []Eraser                      // of the other stores, in the order in which they are asked
	// Follow takes what was forgotten out of what follows memory: vectors, and what
	// tools and messages told the graph of it. It may be nil.
	Follow func(ctx context.Context, agent memory.AgentID, t *erasure.Target) error
	// Knows reports whether there is a session of that id, also one without turns.
	Knows func(ctx context.Context, agent memory.AgentID, session string) bool
	// Outside lists what may hold what was erased and is not the agent's own: files
	// of its workspace, backups.
	Outside func(ctx context.Context, agent memory.AgentID, t *erasure.Target) ([]string, error)
	// Copies lists the half copies that interrupted backups of any agent have left. It
	// may be nil.
	Copies func() ([]string, error)
	Now    func() time.Time
	NewID  func() string // a ULID
	Holder string        // names this process to others that wait
	// Patience is how long an erasure waits for work that is under way, which could
	// bring back what it erases; a minute if 0.
	Patience time.Duration
	Log      zerolog.Logger
}

// Erasure erases what was said and what was made of it, from every store.
type Erasure struct{ Erasing }

// NewErasure returns the service.
func NewErasure(e Erasing) *Erasure { return &Erasure{e} }

// Ops returns the operation.
func (s *Erasure) Ops() []op.Op {
	return []op.Op{op.New("memory.erase", "Erase a session, a memory, an event, or all that was said before a day or holds a text, from every file; without yes, show what would go.", op.Destroy, s.Erase).
		WithExample(`{"session": "s1"}`)}
}

// EraseRequest is the input of memory.erase. Exactly one of the first five is set.
type EraseRequest struct {
	Session string `json:"session,omitempty" jsonschema:"id of a session: all that was said in it, and what was learned from that"`
	Item    string `json:"item,omitempty" jsonschema:"MEM handle: a memory, the turns that it rests on, and what else was learned from those"`
	Before  string `json:"before,omitempty" jsonschema:"day (2026-05-08) or time (RFC 3339): all that was said before it"`
	Match   string `json:"match,omitempty" jsonschema:"text of at least 3 characters: every turn, memory, record and note that holds it, whatever its case"`
	Event   string `json:"event,omitempty" jsonschema:"EVT handle or id of an event: one turn"`
	Yes     bool   `json:"yes,omitempty" jsonschema:"do it; there is no way back"`
}

// EraseResult is the output of memory.erase.
type EraseResult struct {
	Agent    memory.AgentID `json:"agent"`
	Done     bool           `json:"done" jsonschema:"false: nothing has been erased, this is what would be"`
	Events   int            `json:"events" jsonschema:"turns and other events whose content goes; their numbers stay"`
	Items    []string       `json:"items" jsonschema:"handles of memories that go"`
	Cleaned  []string       `json:"cleaned" jsonschema:"handles of memories that stay, without their history, since that quotes what goes"`
	Sessions []string       `json:"sessions" jsonschema:"sessions of which nothing stays"`
	Runs     int            `json:"runs" jsonschema:"run bundles that go"`
	Turns    []string       `json:"turns" jsonschema:"the first of the turns that would go; empty once it is done"`
	Stores   []Erased       `json:"stores" jsonschema:"what was taken from each store"`
	Holding  []Leftover     `json:"holding" jsonschema:"files of the agent in which something of it stands: now, or after the erasure, then it is not complete"`
	Copies   []string       `json:"copies" jsonschema:"half copies of backups that were interrupted, which may hold it: openclawssy doctor --fix removes them"`
	Outside  []string       `json:"outside" jsonschema:"places outside of the agent's directory that may hold it: look at them yourself"`
	Receipt  string         `json:"receipt,omitempty" jsonschema:"file with counts and hashes of the erasure, without its content"`
}

// Erased is what was taken from one store.
type Erased struct {
	Store string `json:"store"`
	Count int    `json:"count"`
}

// Leftover is a file in which something stands that goes.
type Leftover struct {
	File   string `json:"file"` // below the agent's directory
	Places int64  `json:"places"`
	Coded  int64  `json:"coded,omitempty" jsonschema:"of the places, those where it is written as base64, with percent signs or as UTF-16"`
	First  int64  `json:"first" jsonschema:"byte of the file at which the first place begins; of a packed day of events, unpacked"`
}

// Failed reports whether something is left that should have gone.
func (r EraseResult) Failed() bool { return r.Done && len(r.Holding) > 0 }

// Text shows the result to a person.
func (r EraseResult) Text() string {
	var sb strings.Builder
	verb := "would go"
	if r.Done {
		verb = "erased"
	}
	fmt.Fprintf(&sb, "%s: %d events, %d memories, %d sessions, %d runs %s\n", r.Agent, r.Events, len(r.Items), len(r.Sessions), r.Runs, verb)
	for _, list := range []struct {
		what  string
		lines []string
	}{{"memories: ", r.Items}, {"memories that lose their history: ", r.Cleaned}, {"sessions: ", r.Sessions}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&sb, "  %s%s\n", list.what, strings.Join(list.lines, ", "))
		}
	}
	for _, t := range r.Turns {
		sb.WriteString("  " + t + "\n")
	}
	for _, e := range r.Stores {
		if e.Count > 0 {
			fmt.Fprintf(&sb, "  %s: %d\n", e.Store, e.Count)
		}
	}
	for _, l := range r.Holding {
		fmt.Fprintf(&sb, "  %s %s, %s from byte %d on", map[bool]string{false: "stands in", true: "! is still in"}[r.Done], l.File, memory.Count(int(l.Places), "place", "places"), l.First)
		if l.Coded > 0 {
			fmt.Fprintf(&sb, ", %d of them as base64, with percent signs or as UTF-16", l.Coded)
		}
		sb.WriteByte('\n')
	}
	for _, c := range r.Copies {
		fmt.Fprintf(&sb, "  half a copy of a backup that was interrupted, may hold it: %s (openclawssy doctor --fix removes it)\n", c)
	}
	for _, o := range r.Outside {
		fmt.Fprintf(&sb, "  not touched, may hold it: %s\n", o)
	}
	switch {
	case r.Receipt != "":
		fmt.Fprintf(&sb, "receipt: %s\n", r.Receipt)
	case !r.Done:
		sb.WriteString("nothing has been erased. To erase it, for good: the same with --yes\n")
	}
	return sb.String()
}

// Erase takes what in asks for out of every store of an agent, or shows what
// would go. Turns, jobs, imports and what else writes what it has read before are
// waited for, and are ErrConflict where they take longer than Patience; those that
// begin meanwhile wait. A checkpoint, a maintenance or a rebuild that is under way
// is refused what it has read.
func (s *Erasure) Erase(ctx context.Context, agent memory.AgentID, in EraseRequest) (EraseResult, error) {
	if err := in.check(); err != nil {
		return EraseResult{}, err
	}
	dir, err := s.Dir(agent)
	if err != nil {
		return EraseResult{}, err
	}
	if !in.Yes {
		p, t, err := s.plan(ctx, agent, in)
		if err != nil {
			return EraseResult{}, err
		}
		res := s.result(agent, t)
		res.Turns = append(res.Turns, p.samples...)
		return res, s.look(ctx, agent, dir, t, &res)
	}
	lock, err := lockErasure(dir)
	if err != nil {
		return EraseResult{}, err
	}
	res, err := s.erase(working.Patiently(ctx), agent, dir, in)
	return res, errors.Join(err, lock.Close())
}

func (in EraseRequest) check() error {
	given := 0
	for _, s := range []string{in.Session, in.Item, in.Before, in.Match, in.Event} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return memory.WithHint(&memory.FieldError{Field: "session", Reason: "must be given, or one of item, before, match and event, and only one"},
			"openclawssy memory erase --session ID shows what would go")
	}
	if in.Match != "" && len([]rune(strings.TrimSpace(in.Match))) < 3 {
		return &memory.FieldError{Field: "match", Reason: "must have at least 3 characters"}
	}
	_, err := in.day()
	return err
}

// day returns the time of Before; nil for none.
func (in EraseRequest) day() (*time.Time, error) {
	if in.Before == "" {
		return nil, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, in.Before); err == nil {
			return &t, nil
		}
	}
	return nil, &memory.FieldError{Field: "before", Reason: "must be a day (2026-05-08) or a time (RFC 3339)"}
}

// what names the kind of request and its value.
func (in EraseRequest) what() (kind, value string) {
	for _, f := range [][2]string{{"session", in.Session}, {"item", in.Item}, {"before", in.Before}, {"match", in.Match}, {"event", in.Event}} {
		if f[1] != "" {
			return f[0], f[1]
		}
	}
	return "", ""
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// plan finds out what goes.
func (s *Erasure) plan(ctx context.Context, agent memory.AgentID, in EraseRequest) (*planner, *erasure.Target, error) {
	log, release, err := s.Logs(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	p := newPlanner(log)
	turns, releaseTurns, err := s.Archives(ctx, agent)
	switch {
	case err == nil:
		defer releaseTurns()
		p.passages = turns.Passages
	case !errors.Is(err, memory.ErrNotFound):
		return nil, nil, err
	default:
		p.passages = func(context.Context, []string) (map[string][]int64, error) { return nil, nil }
	}
	if err := s.aim(ctx, agent, p, in); err != nil {
		return nil, nil, err
	}
	t, err := p.run(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find out what goes: %w", err)
	}
	if in.Session != "" {
		if len(t.Events) == 0 && !s.Knows(ctx, agent, in.Session) {
			return nil, nil, memory.Errorf(memory.ErrNotFound, "agent %s has no session %q", agent, in.Session)
		}
		t.Sessions = []string{in.Session}
		t.Prepare()
	}
	if in.Event != "" && len(t.Events) == 0 {
		return nil, nil, memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no event %s to erase", in.Event), "openclawssy memory search --scope episodes shows handles")
	}
	store, releaseItems, err := s.Items(ctx, agent)
	switch {
	case err == nil:
		defer releaseItems()
	case errors.Is(err, memory.ErrNotFound):
		store = nil
	default:
		return nil, nil, err
	}
	return p, t, p.inherit(ctx, t, store)
}

// aim tells the planner what was asked for.
func (s *Erasure) aim(ctx context.Context, agent memory.AgentID, p *planner, in EraseRequest) error {
	day, err := in.day()
	if err != nil {
		return err
	}
	switch {
	case in.Session != "":
		p.session = in.Session
	case day != nil:
		p.before = day
	case in.Match != "":
		p.match = strings.ToLower(strings.TrimSpace(in.Match))
	case in.Event != "":
		id, err := s.eventID(ctx, agent, in.Event)
		if err != nil {
			return err
		}
		p.event = id
	default:
		store, release, err := s.Items(ctx, agent)
		if err != nil {
			return err
		}
		defer release()
		got, err := store.Get(ctx, working.GetRequest{Handle: in.Item})
		if err != nil {
			return err
		}
		p.item = got.Item.ID
	}
	return nil
}

// eventID returns the id of an event that a handle or an id names.
func (s *Erasure) eventID(ctx context.Context, agent memory.AgentID, name string) (string, error) {
	if sort(name) != "EVT" || strings.HasPrefix(name, "evt_") {
		return name, nil
	}
	a, release, err := s.Archives(ctx, agent)
	if err != nil {
		return "", err
	}
	defer release()
	return a.EventOf(ctx, strings.ToUpper(name))
}

func (s *Erasure) result(agent memory.AgentID, t *erasure.Target) EraseResult {
	res := EraseResult{Agent: agent, Events: len(t.Events), Items: []string{}, Cleaned: []string{}, Sessions: []string{}, Runs: len(t.Runs),
		Turns: []string{}, Stores: []Erased{}, Holding: []Leftover{}, Copies: []string{}, Outside: []string{}}
	for _, it := range t.Items {
		res.Items = append(res.Items, it.Handle)
	}
	for _, it := range t.Cleaned {
		res.Cleaned = append(res.Cleaned, it.Handle)
	}
	res.Sessions = append(res.Sessions, t.Sessions...)
	return res
}

// look scans every byte of the agent's directory for what goes, and asks what lies
// outside.
func (s *Erasure) look(ctx context.Context, agent memory.AgentID, dir string, t *erasure.Target, res *EraseResult) error {
	left, _, err := scan(ctx, dir, t)
	if err != nil {
		return err
	}
	res.Holding = append(res.Holding, left...)
	if err := s.copies(res); err != nil {
		return err
	}
	if s.Outside == nil {
		return nil
	}
	outside, err := s.Outside(ctx, agent, t)
	res.Outside = append(res.Outside, outside...)
	return err
}

// copies lists what interrupted backups have left.
func (s *Erasure) copies(res *EraseResult) error {
	if s.Copies == nil {
		return nil
	}
	left, err := s.Copies()
	res.Copies = append(res.Copies, left...)
	return err
}

// lockErasure makes this the only erasure of an agent.
func lockErasure(dir string) (*flock.Flock, error) {
	lock := flock.New(lockPath(dir), flock.SetPermissions(0o600))
	mine, err := lock.TryLock()
	if err == nil && !mine {
		err = memory.WithHint(memory.Errorf(memory.ErrConflict, "an erasure of this agent is under way"), "wait for it to end")
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
