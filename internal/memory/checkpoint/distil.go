package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// distil has a batch distilled, judged and stored. Where that does not come off
// it stores nothing, and says whether there was an answer, and what was wrong.
// An error ends the run: the caller's context, a budget, the disk.
func (r *run) distil(ctx context.Context, b batch, record memory.Checkpoint) (outcome, string, error) {
	by, mode := r.distiller()
	record.Mode = mode
	if len(b.Events) == 0 {
		return distilled, "", r.apply(ctx, record, nil) // all of it is suppressed
	}
	reply, usage, err := r.ask(ctx, by, b)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return away, "", context.Cause(ctx)
	case errors.Is(err, memory.ErrDenied):
		r.res.Stopped, r.res.StoppedBy = r.reason(err), BySpend
		return away, "", errStop
	case isStructural(err), errors.Is(err, memory.ErrInvalid):
		r.reached, r.misses = true, 0
		r.useless++
		return refused, r.reason(err), nil
	default:
		r.misses++
		return away, r.reason(err), nil
	}
	r.reached, r.misses, r.useless = true, 0, 0
	record.Model, record.TokensIn, record.TokensOut = usage.Model, usage.TokensIn, usage.TokensOut
	return distilled, "", r.apply(ctx, record, r.judge(b, reply, &record))
}

// reason is what is written down of an error, with its hint.
func (r *run) reason(err error) string {
	text := err.Error()
	if hint := memory.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	return r.service.opts.Redact.Text(text)
}

func isStructural(err error) bool {
	var structure *distill.StructureError
	return errors.As(err, &structure)
}

// ask returns the reply to a batch: one that was kept before a crash, or a new
// one, which is kept.
func (r *run) ask(ctx context.Context, by distill.Distiller, b batch) (distill.Reply, distill.Usage, error) {
	if r.Model == nil {
		raw, usage, err := by.Distill(ctx, b.Batch)
		if err != nil {
			return distill.Reply{}, usage, err
		}
		reply, err := distill.Parse(raw, distill.DefaultLimits)
		return reply, usage, err
	}
	key, err := replyKey(b)
	if err != nil {
		return distill.Reply{}, distill.Usage{}, err
	}
	kept, found, err := r.keptReply(key)
	if err != nil {
		return distill.Reply{}, distill.Usage{}, err
	}
	if found {
		if reply, err := distill.Parse([]byte(kept.Reply), distill.DefaultLimits); err == nil {
			return reply, kept.Usage, nil
		}
	}
	raw, usage, err := by.Distill(ctx, b.Batch)
	if err != nil {
		return distill.Reply{}, usage, err
	}
	reply, problem := distill.Parse(raw, distill.DefaultLimits)
	if err := r.keepReply(ctx, key, b, raw, usage, problem); err != nil {
		return distill.Reply{}, usage, err
	}
	return reply, usage, problem
}

// byRules has the rules distil a batch, provisionally.
func (r *run) byRules(ctx context.Context, b batch, record *memory.Checkpoint) ([]working.Entry, error) {
	raw, usage, err := distill.Rules{}.Distill(ctx, b.Batch)
	if err != nil {
		return nil, err
	}
	reply, err := distill.Parse(raw, distill.DefaultLimits)
	if err != nil {
		return nil, err
	}
	record.Model = usage.Model
	entries := r.judge(b, reply, record)
	for i := range entries {
		entries[i].Item.Provisional = true
	}
	return entries, nil
}

// judge passes a reply through the gate, and returns what is to be stored, in
// the order of the reply. What the gate refuses goes into the record.
func (r *run) judge(b batch, reply distill.Reply, record *memory.Checkpoint) []working.Entry {
	verdict := distill.Gate(b.Batch, reply)
	record.Refused = append(record.Refused, verdict.Refused...)
	passed := append(slices.Clone(verdict.Accepted), verdict.Quarantined...)
	slices.SortFunc(passed, func(x, y distill.Entry) int { return cmp.Compare(x.Index, y.Index) })
	happened := map[string]time.Time{}
	for _, e := range b.Events {
		happened[e.ID] = e.Timestamp
	}
	entries := make([]working.Entry, len(passed))
	for i, p := range passed {
		e := working.Entry{Item: p.Item, Replaces: p.Replaces}
		e.Item.ID = r.itemID(b.span, record.Mode, p.Index)
		if p.ReplacesEntry >= 0 {
			e.Replaces = r.itemID(b.span, record.Mode, p.ReplacesEntry)
		}
		if len(p.Flags) > 0 {
			e.Item.Metadata = map[string]any{"flags": p.Flags}
		}
		for _, ev := range p.Item.Evidence {
			if at := happened[ev.EventID]; at.After(e.At) {
				e.At = at
			}
		}
		entries[i] = e
	}
	return entries
}

// itemID is the id of the item that an entry of the reply to a range becomes: the
// same however often the range is distilled.
func (r *run) itemID(span memory.Range, mode string, ordinal int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%s/%d", r.agent, span.First, span.Last, mode, ordinal))
	return "mem_" + hex.EncodeToString(sum[:13])
}
