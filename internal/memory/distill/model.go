package distill

import (
	"context"
	"encoding/json"
	"fmt"
)

// client asks a model for one answer. schema is the JSON Schema of the answer,
// for endpoints that can be held to one.
type client interface {
	Complete(ctx context.Context, system, user string, schema json.Marshaler) (text string, usage Usage, err error)
}

// Model is the distiller that asks a language model.
type Model struct{ client client }

// NewModel returns a distiller that asks c. Retries after failures of transport
// are c's business.
func NewModel(c client) *Model { return &Model{client: c} }

// Distill asks the model, and once more where the first reply does not conform.
// It returns the last reply as it came.
func (m *Model) Distill(ctx context.Context, b Batch) ([]byte, Usage, error) {
	system, user, err := Prompt(b)
	if err != nil {
		return nil, Usage{}, err
	}
	text, usage, err := m.client.Complete(ctx, system, user, Schema())
	if err != nil {
		return nil, usage, fmt.Errorf("distil with the model: %w", err)
	}
	_, problem := Parse([]byte(text), DefaultLimits)
	if problem == nil {
		return []byte(text), usage, nil
	}
	repaired, more, err := m.client.Complete(ctx, system, RepairPrompt(user, problem), Schema())
	usage.Calls += more.Calls
	usage.TokensIn += more.TokensIn
	usage.TokensOut += more.TokensOut
	if err != nil {
		return nil, usage, fmt.Errorf("ask the model to repair its reply: %w", err)
	}
	return []byte(repaired), usage, nil
}
