// Package llm asks chat models: any endpoint that speaks the OpenAI chat
// completions API, or, where none is configured, an answerer that quotes memory.
package llm

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Role says who speaks in a Message.
type Role string

// The roles.
const (
	System    Role = "system"
	Developer Role = "developer" // sent as system to endpoints other than OpenAI's
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role       Role
	Content    string
	ToolCalls  []ToolCall // of an Assistant that wants tools called
	ToolCallID string     // of a Tool: the call that this answers
}

// ToolCall is a model's wish to have a tool called. Arguments is what the model
// wrote; it need not be JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// ToolSpec offers a tool to the model. Name is 1 to 64 of a-z, A-Z, 0-9, _ and
// -; Parameters is a JSON Schema of an object.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.Marshaler
}

// Request is what a model is asked.
type Request struct {
	Agent       memory.AgentID // whose budget pays
	Messages    []Message
	Tools       []ToolSpec
	Schema      json.Marshaler     // JSON Schema of the answer, for endpoints that can be held to one; nil for free text
	MaxTokens   int                // of the answer; 0 for the endpoint's own limit
	Temperature *float64           // nil for the endpoint's own
	Stream      func(delta string) // is called with each piece of the answer's text as it comes; nil for the whole at once
}

// Usage is what a request cost, its retries included.
type Usage struct {
	Calls     int // HTTP requests
	TokensIn  int
	TokensOut int
	Estimated bool // the endpoint did not say: tokens are characters / 4
}

func (u *Usage) add(more Usage) {
	u.Calls += more.Calls
	u.TokensIn += more.TokensIn
	u.TokensOut += more.TokensOut
	u.Estimated = u.Estimated || more.Estimated
}

// Reply is a model's answer: text, tool calls, or both.
type Reply struct {
	Text         string
	ToolCalls    []ToolCall
	Usage        Usage
	Model        string // as the endpoint names it
	FinishReason string // as the endpoint names it: stop, tool_calls, …
}

// Chatter answers a conversation: a Client, or the Offline answerer.
type Chatter interface {
	Chat(ctx context.Context, req Request) (Reply, error)
}

// charsPerToken turns characters into tokens where nobody has counted.
const charsPerToken = 4

func estimate(parts ...string) int {
	chars := 0
	for _, p := range parts {
		chars += utf8.RuneCountInString(p)
	}
	return (chars + charsPerToken - 1) / charsPerToken
}

// tokensIn estimates the tokens of a request.
func (r Request) tokensIn() int {
	var sb strings.Builder
	for _, m := range r.Messages {
		sb.WriteString(m.Content)
		for _, call := range m.ToolCalls {
			sb.WriteString(call.Name + call.Arguments)
		}
	}
	for _, t := range r.Tools {
		sb.WriteString(t.Name + t.Description + schemaText(t.Parameters))
	}
	return estimate(sb.String(), schemaText(r.Schema))
}

// schemaText returns a schema's JSON; a schema that has none is found when the
// request is written.
func schemaText(schema json.Marshaler) string {
	if schema == nil {
		return ""
	}
	text, err := schema.MarshalJSON()
	if err != nil {
		return ""
	}
	return string(text)
}
