package care

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

const (
	canarySession = "openclawssy-canary" // of all probes
	canaryLock    = "canary.lock"        // in the memory directory, while a probe is under way
	canaryWithin  = time.Minute          // for one probe
	canaryTick    = time.Minute          // between looks at which agents are due
	canaryRead    = 2000                 // events read of the log at a time
)

var errOff = errors.New("nothing is written")

// Canary tells whether what is written down is recalled. A probe appends an event
// of type memory.Probe to the log, lets the archive follow, asks recall for it, and
// takes it away again: of the event a tombstone stays, so that the log has no gap.
// Nothing but the probe's own search sees such an event, not even one that a killed
// probe has left behind, which the next one removes.
type Canary struct {
	Dir      func(memory.AgentID) (string, error) // of an agent; ErrNotFound where it has none
	Logs     memory.Borrow[*events.Log]           // for writing
	Reads    memory.Borrow[*events.Reader]
	Archives memory.Borrow[*archive.Store] // up to date with the log
	// Finds reports whether recall finds the event of that id by words.
	Finds func(ctx context.Context, agent memory.AgentID, words, eventID string) (bool, error)
	Hold  erasure.Hold // against erasures
	// Every is how long after a probe the next one is due, if anything was said
	// meanwhile; 0 for never.
	Every  func(memory.AgentID) (time.Duration, error)
	Agents func() ([]memory.AgentID, error)
	Now    func() time.Time
	NewID  func() string // a ULID
	Log    zerolog.Logger

	idle sync.Map // of agents: the seq up to which nothing was said since the last probe
}

// CanaryResult is what memory.canary answers.
type CanaryResult struct {
	Agent memory.AgentID `json:"agent"`
	vitals.Canary
}

// Failed reports whether what was written could not be recalled.
func (r CanaryResult) Failed() bool { return !r.Ok }

// Text shows the outcome to a person.
func (r CanaryResult) Text() string {
	if r.Ok {
		return fmt.Sprintf("%s: what was written was recalled within %d ms, and is removed again\n", r.Agent, r.Millis)
	}
	return fmt.Sprintf("%s: what was written could not be recalled: %s\nopenclawssy doctor --agent %s says more\n", r.Agent, r.Error, r.Agent)
}

// Ops returns the operation memory.canary.
func (c *Canary) Ops() []op.Op {
	return []op.Op{op.New("memory.canary", "Write an event of no meaning, see whether recall finds it, and remove it again.", op.Write,
		func(ctx context.Context, agent memory.AgentID, _ struct{}) (CanaryResult, error) {
			out, err := c.Probe(ctx, agent)
			return CanaryResult{agent, out}, err
		})}
}

// Probe makes one probe and keeps its outcome in the agent's vitals. That nothing
// was recalled is no error. An agent that remembers nothing is ErrNotFound; while
// another process probes it is ErrConflict.
func (c *Canary) Probe(ctx context.Context, agent memory.AgentID) (out vitals.Canary, err error) {
	dir, err := c.Dir(agent)
	if err != nil {
		return out, err
	}
	if _, err := os.Stat(filepath.Join(dir, "memory", "events")); errors.Is(err, fs.ErrNotExist) {
		return out, memory.WithHint(memory.Errorf(memory.ErrNotFound, "agent %s remembers nothing yet", agent), "say something to it first")
	}
	ctx, done, err := c.Hold.Begin(ctx, agent)
	if err != nil {
		return out, err
	}
	defer done()
	lock := flock.New(filepath.Join(dir, "memory", canaryLock), flock.SetPermissions(0o600))
	mine, err := lock.TryLock()
	if err == nil && !mine {
		err = memory.WithHint(memory.Errorf(memory.ErrConflict, "a probe of this agent is under way"), "wait for it to end")
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, canaryWithin)
	defer cancel()
	began := c.Now()
	seq, failure := c.probe(ctx, agent, dir)
	if errors.Is(failure, errOff) || errors.Is(failure, context.Canceled) {
		return out, failure // also where the program ends: that says nothing of the memory
	}
	ended := c.Now()
	err = vitals.Update(context.WithoutCancel(ctx), dir, func(s *vitals.State) {
		out = vitals.Canary{At: ended.UTC(), Ok: failure == nil, Millis: ended.Sub(began).Milliseconds(), Seq: seq}
		delete(s.Wrong, "canary")
		if failure != nil {
			out.Error = failure.Error()
			if s.Canary != nil { // what it has left is removed by the next one
				out.Open, out.Seq = s.Canary.Open, s.Canary.Seq
			}
			if s.Wrong == nil {
				s.Wrong = map[string]time.Time{}
			}
			s.Wrong["canary"] = ended.UTC().Truncate(time.Second)
		}
		s.Canary = &out
	})
	return out, err
}

// probe returns the seq up to which there is nothing left of any probe.
func (c *Canary) probe(ctx context.Context, agent memory.AgentID, dir string) (seq int64, err error) {
	state, err := vitals.Read(dir)
	if err != nil && !errors.Is(err, memory.ErrCorrupt) {
		return 0, err
	}
	from, open := int64(0), true // of an agent without any outcome, who knows
	if state.Canary != nil {
		from, open = state.Canary.Seq, state.Canary.Open
	}
	log, release, err := c.Logs(ctx, agent)
	if errors.Is(err, memory.ErrDenied) {
		return 0, fmt.Errorf("%w: %w", errOff, err)
	}
	if err != nil {
		return 0, fmt.Errorf("open the event log: %w", err)
	}
	defer release()
	// Before anything is written: what cannot be followed could not be removed either.
	a, releaseArchive, err := c.Archives(ctx, agent)
	if err != nil {
		return 0, fmt.Errorf("open the archive: %w", err)
	}
	defer releaseArchive()
	if open {
		left, err := probesIn(ctx, log.Reader, from)
		if err == nil {
			err = c.remove(ctx, dir, log.Reader, a, left)
		}
		if err != nil {
			return 0, fmt.Errorf("remove what an earlier probe has left: %w", err)
		}
	}
	last, err := log.LastSeq()
	if err != nil {
		return 0, err
	}
	err = vitals.Update(ctx, dir, func(s *vitals.State) {
		if s.Canary == nil {
			s.Canary = &vitals.Canary{}
		}
		s.Canary.Open, s.Canary.Seq = true, last
	})
	if err != nil {
		return 0, err
	}
	words := canaryWords(c.NewID())
	written, err := log.Write(ctx, memory.Event{Type: memory.Probe, Origin: memory.OriginSystem, SessionID: canarySession, Text: "A probe of the memory: " + words + "."})
	if err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	probe := erasure.Event{Seq: written[0].Seq, ID: written[0].ID}
	found, err := c.Finds(ctx, agent, words, probe.ID)
	switch {
	case err != nil:
		err = fmt.Errorf("recall: %w", err)
	case !found:
		err = memory.Errorf(memory.ErrUnavailable, "recall does not find what was just written")
	}
	// A program that ends takes its probe with it.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryWithin)
	defer cancel()
	if left := c.remove(ending, dir, log.Reader, a, []erasure.Event{probe}); left != nil {
		return 0, errors.Join(err, fmt.Errorf("remove the probe: %w", left))
	}
	if err != nil {
		err = errors.Join(err, vitals.Update(ending, dir, func(s *vitals.State) {
			if s.Canary != nil {
				s.Canary.Open, s.Canary.Seq = false, probe.Seq
			}
		}))
	}
	return probe.Seq, err
}

// probesIn returns the probes behind a seq, those that are tombstones already too:
// something of them may be left elsewhere.
func probesIn(ctx context.Context, log *events.Reader, from int64) ([]erasure.Event, error) {
	var out []erasure.Event
	for at := (memory.Cursor{Seq: from}); ; {
		batch, next, err := log.Read(ctx, at, canaryRead)
		if err != nil || len(batch) == 0 {
			return out, err
		}
		for _, e := range batch {
			if e.Type == memory.Probe {
				out = append(out, erasure.Event{Seq: e.Seq, ID: e.ID})
			}
		}
		at = next
	}
}

// remove makes tombstones of probes and empties what the archive has of them.
func (c *Canary) remove(ctx context.Context, dir string, log *events.Reader, a *archive.Store, probes []erasure.Event) error {
	if len(probes) == 0 {
		return nil
	}
	ids, seqs := make([]string, len(probes)), make([]int64, len(probes))
	for i, p := range probes {
		ids[i], seqs[i] = p.ID, p.Seq
	}
	if _, err := a.Follow(ctx, log); err != nil { // so that their handles are known
		return err
	}
	passages, err := a.Passages(ctx, ids)
	if err != nil {
		return err
	}
	for i := range probes {
		probes[i].Passages = len(passages[probes[i].ID])
	}
	t := &erasure.Target{Events: probes}
	t.Prepare()
	_, err = events.Rewrite(ctx, filepath.Join(dir, "memory", "events"), c.Log, events.Edits{
		Seqs:  seqs,
		Wants: func(h *events.Head) bool { return h.Type == memory.Probe },
		Event: func(e *memory.Event) (bool, error) { return editEvent(e, t) },
	})
	if err != nil {
		return err
	}
	_, err = a.Erase(ctx, log, t)
	return err
}

// canaryWords makes words that stand in no other text out of a ULID's random part:
// they look like words, so that no one takes them for a secret.
func canaryWords(id string) string {
	const digits, consonants = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "bdfgklmnprstvzhj"
	var sb strings.Builder
	for i, r := range strings.ToUpper(id[10:]) {
		if i > 0 && i%4 == 0 {
			sb.WriteByte(' ')
		}
		n := max(0, strings.IndexRune(digits, r))
		sb.WriteByte(consonants[n/2])
		sb.WriteByte("ao"[n%2])
	}
	return sb.String()
}

// Due makes a probe where one is due: so long after the last one, or, where there
// was none, after the first event since, and only if somebody has said something
// meanwhile, or the last one failed.
func (c *Canary) Due(ctx context.Context, agent memory.AgentID) (ran bool, err error) {
	every, err := c.Every(agent)
	if err != nil || every <= 0 {
		return false, err
	}
	dir, err := c.Dir(agent)
	if errors.Is(err, memory.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	state, err := vitals.Read(dir)
	if err != nil && !errors.Is(err, memory.ErrCorrupt) {
		return false, err
	}
	last := state.Canary
	if last != nil && !last.At.IsZero() {
		if since := c.Now().Sub(last.At); since >= 0 && since < every {
			return false, nil
		}
	}
	if last == nil || last.Ok {
		first, err := c.saidSince(ctx, agent, last)
		if err != nil || first.IsZero() {
			return false, err
		}
		if since := c.Now().Sub(first); last == nil && since >= 0 && since < every {
			return false, nil
		}
	}
	_, err = c.Probe(ctx, agent)
	if errors.Is(err, memory.ErrConflict) || errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrDenied) {
		return false, nil
	}
	return err == nil, err
}

// saidSince returns when the first turn since a probe was written; the zero time
// where there was none.
func (c *Canary) saidSince(ctx context.Context, agent memory.AgentID, probe *vitals.Canary) (time.Time, error) {
	log, release, err := c.Reads(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	end, err := log.LastSeq()
	if err != nil {
		return time.Time{}, err
	}
	var from int64
	if probe != nil {
		from = probe.Seq
	}
	if looked, known := c.idle.Load(agent); known && looked.(int64) <= end {
		from = max(from, looked.(int64))
	}
	for at := (memory.Cursor{Seq: from}); at.Seq < end; {
		batch, next, err := log.Read(ctx, at, canaryRead)
		if err != nil || len(batch) == 0 {
			return time.Time{}, err
		}
		for _, e := range batch {
			if _, gone := e.Erased(); !gone && e.Type.IsTurn() {
				return writtenAt(e), nil
			}
		}
		at = next
		c.idle.Store(agent, at.Seq)
	}
	return time.Time{}, nil
}

// writtenAt returns when an event came into the log: what was imported was said
// long before.
func writtenAt(e memory.Event) time.Time {
	id, err := ulid.ParseStrict(strings.TrimPrefix(e.ID, "evt_"))
	if err != nil {
		return e.Timestamp
	}
	return id.Timestamp()
}

// Serve probes agents that are due, until ctx ends.
func (c *Canary) Serve(ctx context.Context) {
	tick := time.NewTicker(canaryTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		ids, err := c.Agents()
		if err != nil {
			c.Log.Warn().Err(err).Msg("agents cannot be listed")
		}
		for _, agent := range ids {
			if _, err := c.Due(ctx, agent); err != nil && ctx.Err() == nil {
				c.Log.Warn().Err(err).Str("agent", string(agent)).Msg("memory not probed")
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
