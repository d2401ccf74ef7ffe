package record

import (
	"errors"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestDatabasePath(t *testing.T) {
	for _, tc := range []struct {
		variable string
		scope    Scope
		want     string
		err      error
	}{
		{"", DefaultAgent, "own", nil}, {"", OneAgent, "own", nil}, {"", ManyAgents, "own", nil},
		{"env", DefaultAgent, "own", nil}, {"env", OneAgent, "env", nil}, {"env", ManyAgents, "", memory.ErrInvalid},
	} {
		if got, err := DatabasePath("own", tc.variable, tc.scope); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q, %v: %q, %v", tc.variable, tc.scope, got, err)
		}
	}
}
