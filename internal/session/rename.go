package session

import (
	"context"
	"errors"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Rename makes the sessions in a directory, which are one agent's, another's.
// A file that is no session of that agent is an error, and nothing has changed
// then.
func Rename(dir string, from, to memory.AgentID) error {
	had := Open(dir, Options{Agent: from})
	list, err := had.List(context.Background(), 0)
	if err != nil {
		return err
	}
	next := Open(dir, Options{Agent: to})
	var errs []error
	for _, s := range list {
		s.Agent = to
		errs = append(errs, next.write(s))
	}
	return errors.Join(errs...)
}
