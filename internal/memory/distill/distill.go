// Package distill turns a batch of conversation turns into entries of working
// memory. It holds the answer format and its strict parser, the evidence gate
// that every answer passes, the prompt for a model, and the rule-based distiller
// that is used where no model is configured. Both distillers answer raw JSON, so
// that one parser and one gate stand between any of them and the store.
package distill

import (
	"context"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Batch is what a distiller is given.
type Batch struct {
	Agent memory.AgentID
	// Events are the turns to distil, in the order of the log. Only they may be
	// cited as evidence.
	Events []memory.Event
	// Context are a few turns just before Events, for resolving what the first
	// ones refer to. They were distilled before and are not to be cited.
	Context []memory.Event
	// Related are the active items that the batch may repeat or replace. Their ids
	// are the offered set: no other item can be touched.
	Related []memory.Item
	// Sessions holds what is known of the sessions of Events, by id; it may be nil.
	Sessions map[string]memory.Session
	// Now is the time of the checkpoint.
	Now time.Time
}

// Usage is what one Distill call cost.
type Usage struct {
	Model     string // "rules" for the rule-based distiller
	Calls     int    // requests to a model
	TokensIn  int
	TokensOut int
}

// Distiller answers a batch with a raw reply in the format that Parse reads. An
// error means that there is no answer: a model could not be reached, or ctx
// ended. A reply that does not conform is not an error here; Parse finds it.
type Distiller interface {
	Distill(ctx context.Context, b Batch) (raw []byte, usage Usage, err error)
}
