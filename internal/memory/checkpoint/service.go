// Package checkpoint turns the event log into working memory, batch by batch,
// oldest first. A batch is a range of the log: it is distilled, passes the
// evidence gate, and is stored with the cursor in one change; or, where nobody
// can distil it, it is parked in one change, and retried first at the next run.
// So every event is distilled once, parked, or still to come.
package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// reader reads the event log: up to limit events behind a cursor, and the cursor
// behind the last of them.
type reader interface {
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

// sessions knows the sessions that events belong to.
type sessions interface {
	Get(ctx context.Context, id string) (memory.Session, error)
}

// redactor takes secrets out of a text.
type redactor interface{ Text(string) string }

// What to do where the model cannot be had.
const (
	Park    = "park"    // the batch waits
	Offline = "offline" // the rules distil it, provisionally
)

// Agent is what the checkpoints of one agent work with.
type Agent struct {
	Store    *working.Store
	Log      reader
	Sessions sessions
	Dir      string // of the checkpoint files; made where it is missing
	// Model distils; nil where no model is configured, and the rules do.
	Model       distill.Distiller
	BatchTokens int    // of events in one batch at most; a token is 4 characters
	OnFailure   string // Park or Offline
}

// Options are what a Service works with. All are required unless said otherwise.
type Options struct {
	Write  memory.Borrow[Agent]
	Read   memory.Borrow[*working.Store]
	Redact redactor
	Now    func() time.Time
	NewID  func() string // a ULID
	Holder string        // names this process to others that wait: "pid 4711 on host"
	// Ended is told how a run ended; nil: nobody is.
	Ended func(context.Context, memory.AgentID, Result, error)
	// Hold keeps erasures out while a file is written; it may be nil.
	Hold erasure.Hold
}

// leaseLength is for how long a process that hangs keeps its lease: others are to
// have it within 15 seconds, and need a moment to ask again.
const leaseLength = 12 * time.Second

// Service runs checkpoints.
type Service struct {
	opts  Options
	lease time.Duration
}

// NewService returns a service.
func NewService(opts Options) *Service { return &Service{opts: opts, lease: leaseLength} }

// Ops returns the operations on checkpoints.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("memory.checkpoint", "Distil what was said since the last checkpoint into memories.", op.Write, s.Checkpoint).WithExample(`{}`),
		op.New("memory.checkpoint.list", "List checkpoints, newest first.", op.Read, s.List).WithExample(`{"limit": 10}`),
		op.New("memory.checkpoint.show", "Show one checkpoint: its events, and what became of them.", op.Read, s.Show),
		op.New("memory.checkpoint.revert", "Undo what one checkpoint did to memories.", op.Write, s.Revert),
	}
}

// Request is the input of memory.checkpoint.
type Request struct {
	Batches  int  `json:"batches,omitempty" jsonschema:"most batches to distil; 0 or absent for all that is there"`
	Estimate bool `json:"estimate,omitempty" jsonschema:"only say what distilling everything would cost; no model is asked and nothing changes"`
}

// Result is the output of memory.checkpoint.
type Result struct {
	Batches     int                 `json:"batches" jsonschema:"number of batches dealt with"`
	Events      int                 `json:"events" jsonschema:"turns among them"`
	Created     []string            `json:"created" jsonschema:"handles of new memories"`
	Updated     []string            `json:"updated" jsonschema:"handles of memories that were replaced"`
	Merged      []string            `json:"merged" jsonschema:"handles of memories that were said again"`
	Quarantined []string            `json:"quarantined" jsonschema:"handles of memories that wait for approval"`
	Archived    []string            `json:"archived" jsonschema:"handles of memories archived because there were too many"`
	Refused     []memory.Refusal    `json:"refused" jsonschema:"what the distiller proposed and was not taken"`
	Parked      []memory.ParkedNote `json:"parked" jsonschema:"ranges of events that wait to be distilled, after this run"`
	BacklogLeft int64               `json:"backlog_left" jsonschema:"turns not dealt with yet"`
	TokensIn    int                 `json:"tokens_in"`
	TokensOut   int                 `json:"tokens_out"`
	Mode        string              `json:"mode" jsonschema:"model or rules; offline where the model was away; empty if there was nothing to do"`
	Model       string              `json:"model"`
	Stopped     string              `json:"stopped" jsonschema:"why it ended before everything was dealt with; empty if it did not"`
	StoppedBy   Reason              `json:"stopped_by" jsonschema:"spend, model or asked; empty if it was not stopped"`
	Estimate    *Estimate           `json:"estimate,omitempty" jsonschema:"what a run would cost, where that was asked for"`
}

// Reason is the class of why a run ended before everything was dealt with.
type Reason string

// The reasons.
const (
	BySpend Reason = "spend" // a budget is used up, or the model's account refuses
	ByModel Reason = "model" // it does not answer, or not in a form that can be used
	ByLimit Reason = "asked" // Request.Batches
)

// Failed reports whether something was left undistilled that should not have been.
func (res Result) Failed() bool {
	return res.Estimate == nil && (len(res.Parked) > 0 || res.Stopped != "")
}

// Text says in a few lines what a run has done.
func (res Result) Text() string {
	if res.Estimate != nil {
		return res.Estimate.Text()
	}
	var b strings.Builder
	if res.Batches == 0 && res.Stopped == "" {
		b.WriteString("Nothing new to distil.\n")
	} else {
		fmt.Fprintf(&b, "Distilled %s in %s (%s): %s, %d replaced, %d said again, %d in quarantine, %d refused.\n",
			memory.Count(res.Events, "turn", "turns"), memory.Count(res.Batches, "batch", "batches"), cmp.Or(strings.TrimSpace(res.Mode+" "+strings.TrimPrefix(res.Model, res.Mode)), "nothing but parking"),
			memory.Count(len(res.Created), "new memory", "new memories"), len(res.Updated), len(res.Merged), len(res.Quarantined), len(res.Refused))
	}
	for _, p := range res.Parked {
		fmt.Fprintf(&b, "Events %d to %d wait: %s\n", p.Range.First, p.Range.Last, p.Reason)
	}
	if len(res.Quarantined) > 0 {
		b.WriteString("Look at what is in quarantine with: openclawssy memory list --status quarantined\n")
	}
	if res.Stopped != "" {
		fmt.Fprintf(&b, "Stopped with %s left: %s\n", memory.Count(int(res.BacklogLeft), "turn", "turns"), res.Stopped)
	}
	return b.String()
}

// Checkpoint distils parked ranges, and then the backlog, batch by batch. With
// nothing to do it leaves no trace. While another run is going on, here or in
// another process, the answer is ErrConflict; where another process keeps the database
// busy for longer than it waits (working.Patiently), ErrUnavailable. Either way what was
// distilled until then stays, and the next run goes on behind it.
func (s *Service) Checkpoint(ctx context.Context, agent memory.AgentID, in Request) (Result, error) {
	if in.Batches < 0 {
		return Result{}, &memory.FieldError{Field: "batches", Reason: "must not be negative"}
	}
	if in.Estimate {
		e, err := s.Estimate(ctx, agent, -1)
		res := emptyResult()
		res.Estimate = &e
		return res, err
	}
	res, err := s.distil(working.Patiently(ctx), agent, in)
	if s.opts.Ended != nil {
		s.opts.Ended(ctx, agent, res, err)
	}
	return res, err
}

func (s *Service) distil(ctx context.Context, agent memory.AgentID, in Request) (Result, error) {
	a, release, err := s.opts.Write(ctx, agent)
	if err != nil {
		return Result{}, err
	}
	defer release()
	r := &run{service: s, agent: agent, Agent: a, most: in.Batches, res: emptyResult()}
	if err := r.all(ctx); err != nil {
		return Result{}, fmt.Errorf("checkpoint of %s, after %d batches: %w", agent, r.res.Batches, err)
	}
	return r.res, nil
}

func emptyResult() Result {
	return Result{Created: []string{}, Updated: []string{}, Merged: []string{}, Quarantined: []string{}, Archived: []string{},
		Refused: []memory.Refusal{}, Parked: []memory.ParkedNote{}}
}

// ListRequest is the input of memory.checkpoint.list.
type ListRequest struct {
	Limit *int `json:"limit,omitempty" jsonschema:"most checkpoints to list; 0 for all; 20 if absent"`
}

// ListResult is the output of memory.checkpoint.list.
type ListResult struct {
	Checkpoints []memory.Checkpoint `json:"checkpoints" jsonschema:"newest first"`
}

// Text shows the records to a person.
func (r ListResult) Text() string {
	if len(r.Checkpoints) == 0 {
		return "no checkpoint yet; openclawssy memory checkpoint makes one where there is something to distil\n"
	}
	var sb strings.Builder
	for _, c := range r.Checkpoints {
		sb.WriteString(c.Text())
	}
	return sb.String()
}

// List returns the records of checkpoints, newest first.
func (s *Service) List(ctx context.Context, agent memory.AgentID, in ListRequest) (ListResult, error) {
	limit := 20
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 0 {
		return ListResult{}, &memory.FieldError{Field: "limit", Reason: "must not be negative; 0 lists all"}
	}
	st, release, err := s.opts.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return ListResult{Checkpoints: []memory.Checkpoint{}}, nil
	}
	if err != nil {
		return ListResult{}, err
	}
	defer release()
	list, err := st.Checkpoints(ctx, limit)
	return ListResult{Checkpoints: list}, err
}

// IDRequest is the input of memory.checkpoint.show and memory.checkpoint.revert.
type IDRequest struct {
	ID string `json:"id" cli:"arg" jsonschema:"id of a checkpoint, as memory.checkpoint.list shows it"`
}

// Show returns the record of one checkpoint.
func (s *Service) Show(ctx context.Context, agent memory.AgentID, in IDRequest) (memory.Checkpoint, error) {
	st, release, err := s.opts.Read(ctx, agent)
	if err != nil {
		return memory.Checkpoint{}, err
	}
	defer release()
	return st.Checkpoint(ctx, in.ID)
}

// Revert undoes what a checkpoint did to items.
func (s *Service) Revert(ctx context.Context, agent memory.AgentID, in IDRequest) (working.Reverted, error) {
	a, release, err := s.opts.Write(ctx, agent)
	if err != nil {
		return working.Reverted{}, err
	}
	defer release()
	return a.Store.RevertCheckpoint(ctx, in.ID)
}
