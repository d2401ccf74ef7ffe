package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// run is one run of Checkpoint.
type run struct {
	Agent
	service *Service
	agent   memory.AgentID
	lease   working.Lease
	most    int  // batches; 0 for all
	offLine bool // the model was away, and the rules do its work
	reached bool // the distiller has answered in this run
	misses  int  // calls without an answer since then
	useless int  // answers in a row that were of no use
	res     Result
}

// outcome is what became of one batch.
type outcome int

const (
	distilled outcome = iota
	refused           // the distiller answered, and the answer was of no use
	away              // there was no answer
)

// errStop ends a run that cannot go on now, though nothing is wrong with it.
var errStop = errors.New("stop")

// all deals with everything there is: parked ranges first, then the backlog.
func (r *run) all(ctx context.Context) error {
	progress, err := r.Store.Progress(ctx)
	if err != nil {
		return err
	}
	next, err := r.collect(ctx, progress.Cursor)
	if err != nil {
		return err
	}
	if len(progress.Parked) == 0 && next.turns == 0 {
		return nil
	}
	err = r.leased(ctx, func(ctx context.Context) error {
		if err := r.restoreFiles(ctx); err != nil {
			return err
		}
		waiting, err := r.retryParked(ctx)
		if err != nil {
			return err
		}
		if err := r.backlog(ctx); err != nil {
			return err
		}
		return r.retryRest(ctx, waiting)
	})
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	return r.sumUp(ctx)
}

// sumUp fills in what is left to do.
func (r *run) sumUp(ctx context.Context) error {
	health, err := r.Store.Health(ctx)
	if err != nil {
		return err
	}
	r.res.Parked, r.res.BacklogLeft = health.Parked, health.Backlog
	return nil
}

// leased runs fn under the lease of this agent's checkpoints.
func (r *run) leased(ctx context.Context, fn func(context.Context) error) error {
	opts := r.service.opts
	return r.Store.Leased(ctx, "checkpoint", opts.Holder+", run "+opts.NewID(), r.service.lease, func(ctx context.Context, l working.Lease) error {
		r.lease = l
		return fn(ctx)
	})
}

// retryParked tries the parked ranges, oldest first, until one finds no answer.
// It returns that one and those behind it.
func (r *run) retryParked(ctx context.Context) ([]memory.ParkedNote, error) {
	progress, err := r.Store.Progress(ctx)
	if err != nil {
		return nil, err
	}
	for i, note := range progress.Parked {
		if r.done() {
			return nil, errStop
		}
		what, err := r.retry(ctx, note)
		if err != nil {
			return nil, err
		}
		if r.useless >= mayBeUseless {
			break // the rest waits for the next run, so that the backlog gets its turn
		}
		if what == away {
			return progress.Parked[i:], nil
		}
	}
	r.useless = 0
	return nil, nil
}

// retryRest tries again what found no answer before, where the distiller has
// answered since: then it is the range that it cannot answer.
func (r *run) retryRest(ctx context.Context, waiting []memory.ParkedNote) error {
	if !r.reached {
		return nil
	}
	for _, note := range waiting {
		if r.done() {
			return errStop
		}
		what, err := r.retry(ctx, note)
		if err != nil || what == away {
			return err
		}
	}
	return nil
}

// backlog deals with everything behind the cursor.
func (r *run) backlog(ctx context.Context) error {
	for {
		progress, err := r.Store.Progress(ctx)
		if err != nil {
			return err
		}
		b, err := r.collect(ctx, progress.Cursor)
		if err != nil {
			return err
		}
		if b.turns == 0 {
			return nil
		}
		if r.done() {
			return errStop
		}
		if err := r.complete(ctx, &b); err != nil {
			return err
		}
		if err := r.try(ctx, b); err != nil {
			return err
		}
		op.Report(ctx, op.Progress{Done: int64(r.res.Events), Unit: "turns"})
	}
}

// done reports whether the run has dealt with as many batches as it may.
func (r *run) done() bool {
	if r.most > 0 && r.res.Batches >= r.most {
		r.res.Stopped, r.res.StoppedBy = fmt.Sprintf("%d batches were asked for", r.most), ByLimit
		return true
	}
	return false
}

// mayBeAway is the number of batches in a row that find no answer before the
// run gives up, and maxMisses the same while a range is taken apart: more than
// the halvings that lead to one turn of a batch.
const (
	mayBeAway = 2
	maxMisses = 12
)

// mayBeUseless is the number of answers in a row that are of no use before a run
// gives up: it is the model then, not the turns, and each of them is paid for. It
// is more than the halvings that find the turn to blame in a batch.
const mayBeUseless = 12

// try distils a new batch. Where that fails the batch is parked, or distilled by
// the rules until the model is back.
func (r *run) try(ctx context.Context, b batch) error {
	record := memory.Checkpoint{Range: b.span, Events: b.turns, Cursor: b.next}
	if r.offLine {
		return r.offline(ctx, b, record)
	}
	what, reason, err := r.distil(ctx, b, record)
	if err != nil || what == distilled {
		return err
	}
	if what == away && r.OnFailure == Offline {
		r.offLine = true
		return r.offline(ctx, b, record)
	}
	record.Mode, record.Parked = working.ModeParked, &memory.ParkedNote{Range: b.span, Reason: reason, Attempts: 1}
	if err := r.apply(ctx, record, nil); err != nil {
		return err
	}
	if r.useless >= mayBeUseless {
		r.res.Stopped, r.res.StoppedBy = fmt.Sprintf("%d answers of the model in a row could not be used: %s", r.useless, reason), ByModel
		return errStop
	}
	if what == away && (!r.reached || r.misses >= mayBeAway) {
		r.res.Stopped, r.res.StoppedBy = reason, ByModel
		return errStop
	}
	return nil
}

// offline has the rules distil what the model could not be asked about. The
// range stays parked, so that the model gets it when it is back.
func (r *run) offline(ctx context.Context, b batch, record memory.Checkpoint) error {
	record.Mode = working.ModeOffline
	record.Parked = &memory.ParkedNote{Range: b.span, Reason: "distilled by rules while the model was away", Attempts: 1}
	entries, err := r.byRules(ctx, b, &record)
	if err != nil {
		return err
	}
	return r.apply(ctx, record, entries)
}

// recordedAttempts is the number of attempts at one parked turn that are written
// down: an idle agent's log must not grow by what cannot be distilled.
const recordedAttempts = 3

// retry distils a parked range; where the distiller's answer is of no use, or it
// answers others but not this, its halves, down to the single turns that are to
// blame.
func (r *run) retry(ctx context.Context, note memory.ParkedNote) (outcome, error) {
	b, err := r.load(ctx, note.Range)
	if err != nil {
		return away, err
	}
	record := memory.Checkpoint{Range: b.span, Events: b.turns, Unparked: []memory.Range{b.span}}
	what, reason, err := r.distil(ctx, b, record)
	if err != nil || what == distilled || what == away && (!r.reached || r.misses > maxMisses) {
		return what, err
	}
	if len(b.Events) > 1 && r.useless < mayBeUseless {
		return r.halve(ctx, note, b.Events)
	}
	if note.Attempts >= recordedAttempts || len(b.Events) > 1 {
		return refused, nil
	}
	record.Mode, record.Parked = working.ModeParked, &memory.ParkedNote{Range: b.span, Reason: reason, Attempts: note.Attempts + 1}
	return refused, r.apply(ctx, record, nil)
}

// halve retries the two halves of a parked range that holds those turns.
func (r *run) halve(ctx context.Context, note memory.ParkedNote, turns []memory.Event) (outcome, error) {
	cut := turns[len(turns)/2-1].Seq
	for _, half := range []memory.Range{{First: note.Range.First, Last: cut}, {First: cut + 1, Last: note.Range.Last}} {
		what, err := r.retry(ctx, memory.ParkedNote{Range: half, Reason: note.Reason, Attempts: note.Attempts})
		if err != nil || what == away {
			return what, err
		}
	}
	return distilled, nil
}

// apply stores what came of a batch, and writes its file.
func (r *run) apply(ctx context.Context, record memory.Checkpoint, entries []working.Entry) error {
	record, err := r.Store.Apply(ctx, working.Batch{Lease: r.lease, Record: record, Entries: entries})
	if err != nil {
		return err
	}
	r.res.add(record)
	return r.writeFile(ctx, record)
}

// add counts a checkpoint into the result.
func (res *Result) add(c memory.Checkpoint) {
	res.Batches++
	res.Events += c.Events
	res.Created = append(res.Created, c.Created...)
	res.Updated = append(res.Updated, c.Updated...)
	res.Merged = append(res.Merged, c.Merged...)
	res.Quarantined = append(res.Quarantined, c.Quarantined...)
	res.Archived = append(res.Archived, c.Archived...)
	res.Refused = append(res.Refused, c.Refused...)
	res.TokensIn += c.TokensIn
	res.TokensOut += c.TokensOut
	if c.Mode != working.ModeParked {
		res.Mode, res.Model = c.Mode, c.Model
	}
}

// distiller returns who distils, and the mode of what they answer.
func (r *run) distiller() (distill.Distiller, string) {
	if r.Model == nil {
		return distill.Rules{}, working.ModeRules
	}
	return r.Model, working.ModeModel
}
