package checkpoint

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Estimate is what distilling would cost, reckoned without asking the model.
type Estimate struct {
	Batches   int    `json:"batches"`
	Events    int    `json:"events" jsonschema:"turns in them"`
	Calls     int    `json:"calls" jsonschema:"of the model, at least: a reply that does not conform costs a second one"`
	TokensIn  int    `json:"tokens_in"`
	TokensOut int    `json:"tokens_out"`
	How       string `json:"how" jsonschema:"how this was reckoned"`
}

// Tokens is the sum of both directions.
func (e Estimate) Tokens() int { return e.TokensIn + e.TokensOut }

// Text says the estimate to a person.
func (e Estimate) Text() string {
	return fmt.Sprintf("%s in %s: about %d model calls, %d tokens in and %d out.\n(%s)\n", memory.Count(e.Events, "turn", "turns"), memory.Count(e.Batches, "batch", "batches"), e.Calls, e.TokensIn, e.TokensOut, e.How)
}

const (
	charsPerToken   = 4
	shareOfAnswer   = 4  // an answer has about a quarter of the tokens of the events, where nothing is known yet
	checkpointsSeen = 20 // the latest ones, whose answers tell how long the next will be
)

// Estimate reckons what it would cost to distil everything behind an event: from
// the agent's own cursor, parked ranges included, where from is negative, else
// from that seq on, as a rebuild does. It asks no model and changes nothing.
func (s *Service) Estimate(ctx context.Context, agent memory.AgentID, from int64) (Estimate, error) {
	a, release, err := s.opts.Write(ctx, agent)
	if err != nil {
		return Estimate{}, err
	}
	defer release()
	r := &run{service: s, agent: agent, Agent: a, res: emptyResult()}
	e, err := r.estimate(ctx, from)
	if err != nil {
		return Estimate{}, fmt.Errorf("estimate a checkpoint of %s: %w", agent, err)
	}
	return e, nil
}

func (r *run) estimate(ctx context.Context, from int64) (Estimate, error) {
	progress, err := r.Store.Progress(ctx)
	if err != nil {
		return Estimate{}, err
	}
	at, parked := progress.Cursor, progress.Parked
	if from >= 0 {
		at, parked = memory.Cursor{Seq: from}, nil
	}
	rate, err := r.answerRate(ctx)
	if err != nil {
		return Estimate{}, err
	}
	out := Estimate{How: rate.how}
	for _, note := range parked {
		b, err := r.load(ctx, note.Range)
		if err != nil {
			return Estimate{}, err
		}
		if err := r.reckon(&out, b, rate); err != nil {
			return Estimate{}, err
		}
	}
	for {
		b, err := r.collect(ctx, at)
		if err != nil || b.turns == 0 {
			return out, err
		}
		if err := r.complete(ctx, &b); err != nil {
			return Estimate{}, err
		}
		if err := r.reckon(&out, b, rate); err != nil {
			return Estimate{}, err
		}
		at = b.next
		op.Report(ctx, op.Progress{Done: int64(out.Events), Unit: "turns"})
	}
}

// reckon adds a batch to an estimate; a reply that is kept costs nothing.
func (r *run) reckon(e *Estimate, b batch, rate answers) error {
	e.Batches++
	e.Events += b.turns
	if r.Model == nil || len(b.Events) == 0 {
		return nil
	}
	key, err := replyKey(b)
	if err != nil {
		return err
	}
	if _, found, err := r.keptReply(key); err != nil || found {
		return err
	}
	system, user, err := distill.Prompt(b.Batch)
	if err != nil {
		return err
	}
	schema, err := distill.Schema().MarshalJSON()
	if err != nil {
		return err
	}
	said := 0
	for _, event := range b.Events {
		said += utf8.RuneCountInString(event.Text)
	}
	e.Calls++
	e.TokensIn += (utf8.RuneCountInString(system) + utf8.RuneCountInString(user) + len(schema)) / charsPerToken
	e.TokensOut += rate.to(len(b.Events), said)
	return nil
}

// answerRate is how long the model's answers are, and how that is known.
func (r *run) answerRate(ctx context.Context) (answers, error) {
	if r.Model == nil {
		return answers{how: "no model is configured: the rules distil, and cost nothing"}, nil
	}
	latest, err := r.Store.Checkpoints(ctx, checkpointsSeen)
	if err != nil {
		return answers{}, err
	}
	const counted = "tokens are characters / 4 of what the model would be sent"
	turns, out, n := 0, 0, 0
	for _, c := range latest {
		if c.Mode == working.ModeModel && c.TokensOut > 0 {
			turns, out, n = turns+c.Events, out+c.TokensOut, n+1
		}
	}
	if turns == 0 {
		return answers{share: 1.0 / shareOfAnswer, how: counted + "; answers a quarter as long as the events, since none is known yet"}, nil
	}
	each := float64(out) / float64(turns)
	return answers{perTurn: each, how: fmt.Sprintf("%s; answers as in the last %d checkpoints, %.0f tokens for a turn", counted, n, each)}, nil
}

// answers tells how long answers are: tokens for a turn, or as a share of what the
// events hold where that is not known yet.
type answers struct {
	perTurn, share float64
	how            string
}

func (a answers) to(turns, chars int) int {
	return int(a.perTurn*float64(turns) + a.share*float64(chars/charsPerToken))
}
