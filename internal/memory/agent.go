package memory

import (
	"context"
	"regexp"
)

// AgentID names one agent, and with it a directory and its databases. The zero
// value is no agent. Make one with ParseAgentID: code that holds an AgentID may
// trust its form.
type AgentID string

// DefaultAgent is the agent used where none is named.
const DefaultAgent AgentID = "default"

var agentID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// reservedNames are device names on some systems; a directory of that name
// could not be carried there.
var reservedNames = map[string]bool{
	"con": true, "prn": true, "aux": true, "nul": true,
	"com1": true, "com2": true, "com3": true, "com4": true, "com5": true, "com6": true, "com7": true, "com8": true, "com9": true,
	"lpt1": true, "lpt2": true, "lpt3": true, "lpt4": true, "lpt5": true, "lpt6": true, "lpt7": true, "lpt8": true, "lpt9": true,
}

// ParseAgentID checks s and returns it as an AgentID. It never changes s: an id
// with upper-case letters is refused, not folded, so that two spellings cannot
// share one directory.
func ParseAgentID(s string) (AgentID, error) {
	switch {
	case s == "":
		return "", &FieldError{Field: "agent", Reason: "must not be empty", Hint: "give --agent NAME, or leave it out for the agent named default"}
	case !agentID.MatchString(s):
		return "", &FieldError{Field: "agent", Reason: "must be 1 to 63 of a-z, 0-9, - and _, and start with a letter or digit",
			Hint: "try a name such as default or support-bot"}
	case reservedNames[s]:
		return "", &FieldError{Field: "agent", Reason: "is a name that some systems reserve for devices", Hint: "choose another name"}
	}
	return AgentID(s), nil
}

// Borrow lends the open T of an agent. The borrower calls release once it is
// done with it. A Borrow for reading answers ErrNotFound for an agent that has
// nothing on disk, and creates nothing; one for writing creates the agent.
type Borrow[T any] func(ctx context.Context, agent AgentID) (value T, release func(), err error)
