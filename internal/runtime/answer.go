package runtime

import "github.com/openclawssy/openclawssy/internal/memory"

// Answer is a Result as programs get it, from every face.
type Answer struct {
	Agent   memory.AgentID `json:"agent"`
	Session string         `json:"session"`
	Run     string         `json:"run"`
	Text    string         `json:"text"`
	Memory  string         `json:"memory"` // the block that was injected
	Model   string         `json:"model"`
	Tools   int            `json:"tool_calls"`
	Tokens  int            `json:"tokens"`
	Notes   []string       `json:"notes"` // never null
}

// Answer returns the result of an agent's turn in the form for programs.
func (r Result) Answer(agent memory.AgentID) Answer {
	notes := r.Notes
	if notes == nil {
		notes = []string{}
	}
	return Answer{Agent: agent, Session: r.Session, Run: r.Run, Text: r.Text, Memory: r.Block, Model: r.Model,
		Tools: r.ToolCalls, Tokens: r.Usage.TokensIn + r.Usage.TokensOut, Notes: notes}
}
