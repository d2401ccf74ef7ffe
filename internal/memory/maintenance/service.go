// Package maintenance keeps an agent's memory in order without anybody's help:
// items that say the same become one, what is of little importance and no use is
// archived, what a person should look at is marked, old days of the event log are
// packed, and the databases give back what they no longer need. Everything that it
// does to items is a change like any other: in the event log, in their history,
// and reversible.
//
// What to do is planned first, by a Survey, which changes nothing and needs no
// content in memory; then the plan is carried out, a few items at a time.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// eventLog is the part of an event log that maintenance works with.
type eventLog interface {
	Tail(ctx context.Context, n int) ([]memory.Event, error)
	Packable(before time.Time) ([]events.Packed, error)
	Pack(ctx context.Context, before time.Time) ([]events.Packed, error)
}

// eventWriter writes events, and returns once they are durable.
type eventWriter interface {
	Write(ctx context.Context, events ...memory.Event) ([]memory.Event, error)
}

// Agent is what the maintenance of one agent works with.
type Agent struct {
	Store    *working.Store
	Log      eventLog
	Settings Settings
	Write    eventWriter // nil where the agent is lent for reading
}

// Uses finds when items were last recalled for a prompt, by handle, looking back
// to a time.
type Uses func(ctx context.Context, agent memory.AgentID, since time.Time) (map[string]time.Time, error)

// Near finds pairs of items whose vectors are close. Whether they say the same, their
// words tell; with none there is only less to look at. The order does not matter, but
// is the same as long as the vectors are.
type Near func(ctx context.Context, agent memory.AgentID) ([]Pair, error)

// Followed is what came of following the workspace that an agent lives in.
type Followed struct {
	Path    string `json:"path"`
	Files   int    `json:"files" jsonschema:"that are new, different or gone, or hold what is no longer kept"`
	Added   int    `json:"added" jsonschema:"memories and events that are new"`
	Changed int    `json:"changed" jsonschema:"sections that say something else now, or stand elsewhere"`
	Removed int    `json:"removed" jsonschema:"sections that are gone or whose retention is over"`
}

// Follow brings the workspace that an agent lives in into its memory; in a dry run
// it only counts the files that would be read. It answers nil where the agent has
// no workspace or nothing has changed there.
type Follow func(ctx context.Context, agent memory.AgentID, dry bool) (*Followed, error)

// Options are what a Service works with. Those that end with "may be nil" are left
// out where they are.
type Options struct {
	Read, Write memory.Borrow[Agent]
	Uses        Uses   // may be nil
	Near        Near   // may be nil
	Follow      Follow // may be nil
	// Compact lets the agent's databases give back what they no longer need, in
	// small steps, and returns how many bytes that were. It may be nil.
	Compact func(ctx context.Context, agent memory.AgentID) (int64, error)
	// Scheduled is called at the end of a run of the schedule. It may be nil.
	Scheduled func(ctx context.Context, agent memory.AgentID) error
	Now       func() time.Time
	NewID     func() string // a ULID
	Holder    string        // names this process to others that wait: "pid 4711 on host"
}

// leaseLength is for how long a process that hangs keeps its lease: others are to
// have it within 15 seconds, and need a moment to ask again.
const leaseLength = 12 * time.Second

// Service maintains agents.
type Service struct{ opts Options }

// NewService returns a service.
func NewService(opts Options) *Service { return &Service{opts: opts} }

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.maintenance", "Merge memories that say the same, archive what is of no use, mark what a person should look at, and tidy the files.", op.Write, s.Maintain).
			WithExample(`{"dry_run": true}`),
	}
}

// Request is the input of memory.maintenance.
type Request struct {
	DryRun bool `json:"dry_run,omitempty" jsonschema:"true: say what would be done, and do nothing"`
}

// Finding is something that maintenance has come upon and a person should know.
type Finding struct {
	Kind       string   `json:"kind" jsonschema:"contradiction, stale (important, and not confirmed for a long time) or verify"`
	Handle     string   `json:"handle"`
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Importance int      `json:"importance"`
	Reasons    []string `json:"reasons"`
}

// Kinds of finding.
const (
	FoundContradiction = "contradiction"
	FoundStale         = "stale"
	FoundVerify        = "verify"
)

// Result is the output of memory.maintenance.
type Result struct {
	Agent   memory.AgentID `json:"agent"`
	DryRun  bool           `json:"dry_run"`
	AsOf    time.Time      `json:"as_of" jsonschema:"the time that ages are counted to; of a scheduled run that of the agent's last activity, so that nothing grows old while nobody talks to it"`
	Looked  int            `json:"looked" jsonschema:"active and quarantined memories looked at"`
	Changes []Change       `json:"changes" jsonschema:"what was done, or would be"`
	Skipped int            `json:"skipped" jsonschema:"changes left out, since somebody changed the memory meanwhile"`
	Waiting int            `json:"waiting" jsonschema:"memories not confirmed for a long time that are not marked as such, since enough are"`
	Found   []Finding      `json:"found" jsonschema:"what was newly found that a person should look at"`
	// Workspace is set where files have changed.
	Workspace *Followed       `json:"workspace" jsonschema:"what came of following the agent's workspace; in a dry run what is there to follow, and the changes are those without it; null for nothing"`
	Packed    []events.Packed `json:"packed" jsonschema:"old days of the event log that were packed; in a dry run those that would be"`
	Freed     int64           `json:"freed" jsonschema:"bytes that the databases gave back to the disk; it is known afterwards only"`
}

// Maintain follows the agent's workspace, plans, and unless it is a dry run carries
// the plan out and tidies the files. With nothing to do it leaves no trace. While
// another run carries out changes, here or in another process, the answer is
// ErrConflict. An agent without memory needs none. A workspace that cannot be read
// keeps nothing from being done, and is the error in the end.
func (s *Service) Maintain(ctx context.Context, agent memory.AgentID, in Request) (Result, error) {
	ctx = working.Patiently(ctx)
	res := Result{Agent: agent, DryRun: in.DryRun, Changes: []Change{}, Found: []Finding{}, Packed: []events.Packed{}}
	var trouble error
	if s.opts.Follow != nil {
		res.Workspace, trouble = s.opts.Follow(ctx, agent, in.DryRun)
	}
	borrow := s.opts.Write
	if in.DryRun {
		borrow = s.opts.Read
	}
	a, release, err := borrow(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return res, trouble
	}
	if err != nil {
		return res, errors.Join(err, trouble)
	}
	defer release()
	r := &run{Service: s, Agent: a, agent: agent, res: res}
	if err := r.plan(ctx); err != nil {
		return Result{}, errors.Join(fmt.Errorf("plan the maintenance of %s: %w", agent, err), trouble)
	}
	if !in.DryRun {
		if r.res.Looked > manyItems {
			// What the plan needed is garbage now. Those who follow the changes, as a graph
			// that is read whole, would come on top of it before it is collected.
			debug.FreeOSMemory()
		}
		if err := r.carryOut(ctx); err != nil {
			return Result{}, errors.Join(fmt.Errorf("maintenance of %s: %w", agent, err), trouble)
		}
	}
	if trouble != nil {
		return Result{}, fmt.Errorf("maintenance of %s: follow the workspace (the rest was done): %w", agent, trouble)
	}
	return r.res, nil
}

// manyItems is from how many items on a plan takes memory worth giving back at once:
// about 10 MiB.
const manyItems = 10_000

// run is one run of Maintain.
type run struct {
	*Service
	Agent
	agent memory.AgentID
	marks map[string][]string // of items that had some before, by id
	res   Result
}

// plan fills in what is to be done.
func (r *run) plan(ctx context.Context) error {
	ground, err := r.Store.Ground(ctx)
	if err != nil {
		return err
	}
	if r.res.AsOf, err = r.asOf(ctx, ground); err != nil {
		return err
	}
	var near []Pair
	if r.opts.Near != nil {
		if near, err = r.opts.Near(ctx, r.agent); err != nil {
			return fmt.Errorf("look for memories that mean the same: %w", err)
		}
	}
	survey := NewSurvey(r.Settings, r.res.AsOf, ground, near)
	r.marks = map[string][]string{}
	err = r.Store.Survey(ctx, func(it memory.Item) error {
		if r.res.Looked++; r.res.Looked%1000 == 0 {
			op.Report(ctx, op.Progress{Done: int64(r.res.Looked), Unit: "memories looked at"})
		}
		if len(it.Verify) > 0 {
			r.marks[it.ID] = it.Verify
		}
		return survey.Add(it)
	})
	if err != nil {
		return err
	}
	var used map[string]time.Time
	if r.opts.Uses != nil && survey.MayBeStale() {
		if used, err = r.opts.Uses(ctx, r.agent, survey.since()); err != nil {
			return fmt.Errorf("look up which memories were used: %w", err)
		}
	}
	r.res.Changes = append(r.res.Changes, survey.Plan(used)...)
	r.res.Waiting = survey.waiting
	r.find(r.res.Changes)
	if r.Settings.PackAfter > 0 {
		list, err := r.Log.Packable(r.packBefore())
		if err != nil {
			return err
		}
		r.res.Packed = append(r.res.Packed, list...)
	}
	return nil
}

// packBefore is the time before which days of the log are packed.
func (r *run) packBefore() time.Time {
	return r.opts.Now().UTC().Add(-time.Duration(r.Settings.PackAfter) * day)
}

// asOf is the time that ages are counted to: now, where somebody asks for it; of
// a scheduled run the agent's last activity. So an agent that nobody talks to for
// a season forgets nothing meanwhile, and its log does not grow.
func (r *run) asOf(ctx context.Context, ground working.Ground) (time.Time, error) {
	now := r.opts.Now().UTC()
	if memory.Actor(ctx) != memory.OriginSystem {
		return now, nil
	}
	last := ground.LastChange
	events, err := r.Log.Tail(ctx, lookBack)
	if err != nil {
		return now, err
	}
	for _, e := range events {
		if e.Type.IsTurn() && e.Timestamp.After(last) {
			last = e.Timestamp.UTC()
		}
	}
	if last.After(now) {
		return now, nil
	}
	return last, nil
}

// lookBack is how many events the last turn is looked for in.
const lookBack = 200

// find lists what the changes newly mark.
func (r *run) find(changes []Change) {
	r.res.Found = r.res.Found[:0]
	for _, c := range changes {
		if c.Action != working.ActionVerify {
			continue
		}
		f := Finding{Kind: FoundVerify, Handle: c.Handle, ID: c.ID, Title: c.Title, Importance: c.Importance, Reasons: fresh(c.Verify, r.marks[c.ID])}
		if len(f.Reasons) == 0 {
			continue
		}
		for _, reason := range f.Reasons {
			switch {
			case isContradiction(reason):
				f.Kind = FoundContradiction
			case reason == memory.MarkOld && c.Importance >= important && f.Kind == FoundVerify:
				f.Kind = FoundStale
			}
		}
		r.res.Found = append(r.res.Found, f)
	}
}

// carryOut does what is planned: what changes items or the log under the lease.
func (r *run) carryOut(ctx context.Context) error {
	if len(r.res.Changes)+len(r.res.Packed) > 0 {
		err := r.Store.Leased(ctx, "maintenance", r.opts.Holder+", run "+r.opts.NewID(), leaseLength, r.change)
		if err != nil {
			return err
		}
	}
	if r.opts.Compact != nil {
		freed, err := r.opts.Compact(ctx, r.agent)
		if err != nil {
			return fmt.Errorf("compact the databases: %w", err)
		}
		r.res.Freed = freed
	}
	if r.opts.Scheduled != nil && memory.Actor(ctx) == memory.OriginSystem {
		return r.opts.Scheduled(ctx, r.agent)
	}
	return nil
}

// change changes the items, and packs.
func (r *run) change(ctx context.Context, lease working.Lease) error {
	if len(r.res.Changes) > 0 {
		if err := r.apply(ctx, lease); err != nil {
			return err
		}
		r.find(r.res.Changes)
		if err := r.note(ctx); err != nil {
			return err
		}
	}
	if len(r.res.Packed) == 0 {
		return nil
	}
	// The changes may have made another day an old one: that is for the next run.
	last, err := time.Parse(time.DateOnly, dayOf(r.res.Packed[len(r.res.Packed)-1]))
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "pack the event log: %w", err)
	}
	done, err := r.Log.Pack(ctx, last.Add(day))
	r.res.Packed = append(r.res.Packed[:0], done...)
	return err
}

// batchItems is how many items one change of the store touches at most, so that
// others get at the store in between.
const batchItems = 200

// apply makes the changes, batch by batch, and keeps in the result those that were
// made.
func (r *run) apply(ctx context.Context, lease working.Lease) error {
	planned := r.res.Changes
	var steps []working.Step
	var of []int // the change of each step
	for i, c := range planned {
		for _, part := range c.steps {
			steps, of = append(steps, part), append(of, i)
		}
	}
	made := make([]bool, len(planned))
	defer r.Store.Tell()
	for done := 0; done < len(steps); {
		n := batchOf(steps[done:])
		taken, err := r.Store.Maintain(ctx, lease, steps[done:done+n])
		if err != nil {
			return err
		}
		for i, was := range taken {
			made[of[done+i]] = made[of[done+i]] || was
		}
		done += n
		op.Report(ctx, op.Progress{Done: int64(done), Total: int64(len(steps)), Unit: "changes"})
	}
	r.res.Changes = []Change{}
	for i, c := range planned {
		if made[i] {
			r.res.Changes = append(r.res.Changes, c)
		}
	}
	r.res.Skipped = len(planned) - len(r.res.Changes)
	return nil
}

// batchOf returns how many of the steps, of one action, go into one change.
func batchOf(steps []working.Step) int {
	items := 0
	for i, step := range steps {
		items += 1 + len(step.Merged)
		if i > 0 && (items > batchItems || step.Action != steps[0].Action) {
			return i
		}
	}
	return len(steps)
}

// note writes down in the event log that maintenance was done, if it changed
// anything.
func (r *run) note(ctx context.Context) error {
	if len(r.res.Changes) == 0 {
		return nil
	}
	count := map[string]int{}
	for _, c := range r.res.Changes {
		count[c.Action]++
	}
	_, err := r.Agent.Write.Write(ctx, memory.Event{Type: memory.Maintenance, Origin: memory.OriginSystem, Timestamp: r.opts.Now(),
		Text:     fmt.Sprintf("maintenance: %d merged, %d archived, %d marked", count[working.ActionMerge], count[working.ActionArchive], count[working.ActionVerify]),
		Metadata: map[string]any{"merged": count[working.ActionMerge], "archived": count[working.ActionArchive], "marked": count[working.ActionVerify], "found": len(r.res.Found)}})
	if err != nil {
		return fmt.Errorf("write down what was done: %w", err)
	}
	return nil
}
