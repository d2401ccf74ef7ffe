// Package access says who may ask a server: bearer tokens with rights over
// agents, kept in one file that only the owner of the home can read.
//
// A token is text of 256 random bits that is shown once, when it is made. The
// file holds its SHA-256, which is enough to know it again and of no use to
// whoever reads the file.
package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Right is what a token may do. Each holds the ones before it.
type Right string

// The rights.
const (
	Read  Right = "read"  // ask, search, recall
	Write Right = "write" // chat, add events, change what can be undone
	Admin Right = "admin" // erase, and see how the server itself is
)

var rank = map[Right]int{Read: 1, Write: 2, Admin: 3}

// Includes reports whether whoever has r may do what asks for other.
func (r Right) Includes(other Right) bool { return rank[other] > 0 && rank[r] >= rank[other] }

// Needed returns the right that an operation of an effect asks for.
func Needed(effect op.Effect) Right {
	switch effect {
	case op.Read:
		return Read
	case op.Write:
		return Write
	}
	return Admin
}

// AllAgents in a token's list stands for every agent.
const AllAgents = "*"

// AgentHeader is the request header that names the agent where the address does
// not.
const AgentHeader = "X-Openclawssy-Agent"

// Token is what is known of a token; not the secret.
type Token struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`   // for people: whose it is
	Agents  []string   `json:"agents"` // names, or AllAgents alone
	Right   Right      `json:"right"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// May reports whether the token may do what asks for right with an agent.
func (t Token) May(right Right, agent memory.AgentID) bool {
	return t.Right.Includes(right) && (slices.Contains(t.Agents, AllAgents) || slices.Contains(t.Agents, string(agent)))
}

// Anywhere reports whether the token may do what asks for right with every agent.
func (t Token) Anywhere(right Right) bool {
	return t.Right.Includes(right) && slices.Contains(t.Agents, AllAgents)
}

// Allow is nil where May is true, else an ErrDenied that says what is missing.
func (t Token) Allow(right Right, agent memory.AgentID) error {
	switch {
	case t.May(right, agent):
		return nil
	case !t.Right.Includes(right):
		return t.Lacks(right)
	}
	return memory.WithHint(memory.Errorf(memory.ErrDenied, "the token is not for agent %s", agent),
		fmt.Sprintf("openclawssy token create --name NAME --right %s --for %s makes one that is", right, agent))
}

// Lacks returns the ErrDenied of a token whose right does not include another.
func (t Token) Lacks(right Right) error {
	return memory.WithHint(memory.Errorf(memory.ErrDenied, "the token may %s, and this asks for %s", t.Right, right),
		"openclawssy token create --name NAME --right "+string(right)+" makes one that may")
}

// Agent returns the agent that a request is about where its address does not say:
// the one that it names, else the token's only one, else the default.
func (t Token) Agent(named string) (memory.AgentID, error) {
	if named == "" {
		named = string(memory.DefaultAgent)
		if len(t.Agents) == 1 && t.Agents[0] != AllAgents {
			named = t.Agents[0]
		}
	}
	return memory.ParseAgentID(named)
}

type callerKey struct{}

// WithCaller returns a context that says whose request it is.
func WithCaller(ctx context.Context, t Token) context.Context {
	return context.WithValue(ctx, callerKey{}, t)
}

// Caller returns the token of a request. Without one it is a Token that may
// nothing.
func Caller(ctx context.Context) Token {
	t, ok := ctx.Value(callerKey{}).(Token)
	if !ok {
		return Token{}
	}
	return t
}
