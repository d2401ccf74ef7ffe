package runtime

import (
	"context"

	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// recall asks memory about the message and keeps the answer in the run's bundle.
// Where memory is slow or broken the turn goes on without, and says so. The error
// is trouble with the bundle.
func (x *turn) recall(ctx context.Context) (block string, err error) {
	if x.log == nil || x.rt.Recall == nil {
		return "", nil
	}
	said := x.events[0]
	inPrompt := x.window.since(said.Seq)
	if x.quotes {
		inPrompt = said.Seq
	}
	got := x.rt.Recall.Block(ctx, x.Agent, recall.Request{Text: said.Text, Session: x.session.ID, Now: x.now, InPrompt: inPrompt})
	if got.Degraded != "" {
		x.res.Notes = append(x.res.Notes, "memory was not fully asked: "+got.Degraded)
	}
	return got.Text, x.bundle.Recall(runlog.Recall{Query: said.Text, Block: got.Text, Trace: got.Trace, Degraded: got.Degraded, InPrompt: inPrompt})
}
