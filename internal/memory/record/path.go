package record

import (
	"strconv"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// PathVariable is the contract's environment variable for the database's path.
const PathVariable = "AINL_MEMORY_DB"

// Scope is how a program came to work on an agent's records, which decides
// whether PathVariable counts.
type Scope int

// The scopes.
const (
	DefaultAgent Scope = iota // no agent was named: the variable does not count
	OneAgent                  // the bridge, or one agent named by a flag: the variable wins
	ManyAgents                // a program that serves several agents: the variable is refused, or they would share one database
)

// DatabasePath returns the path of an agent's records: own, or the value of
// PathVariable where the scope lets it win.
func DatabasePath(own, variable string, scope Scope) (string, error) {
	switch {
	case variable == "" || scope == DefaultAgent:
		return own, nil
	case scope == ManyAgents:
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is set to %s, but several agents cannot share one database", PathVariable, strconv.Quote(variable)),
			"unset it, or name one agent with --agent")
	}
	return variable, nil
}
