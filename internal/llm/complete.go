package llm

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Completer asks for single answers on behalf of one agent.
type Completer struct {
	client *Client
	agent  memory.AgentID
}

// For returns what asks for agent, and is paid for by its budget.
func (c *Client) For(agent memory.AgentID) Completer { return Completer{client: c, agent: agent} }

// Complete answers a user message under a system message, with the least chance
// and in the form of schema where the endpoint can be held to it. The text is
// the model's, as it came: a refusal or an answer that was cut, is empty or is
// no answer at all is for the caller's parser to find, not an error. An error
// means that there is no answer to be had.
func (c Completer) Complete(ctx context.Context, system, user string, schema json.Marshaler) (string, Usage, error) {
	coldest := 0.0
	reply, err := c.client.Chat(ctx, Request{
		Agent:       c.agent,
		Messages:    []Message{{Role: System, Content: system}, {Role: User, Content: user}},
		Schema:      schema,
		Temperature: &coldest,
	})
	var unusable *ReplyError
	if errors.As(err, &unusable) {
		return unusable.Text, reply.Usage, nil
	}
	return reply.Text, reply.Usage, err
}
