package backup

import (
	"errors"
	"os"
)

// exchangeInSteps is exchange where the file system cannot do it in one step.
// Should the second step fail, the first is taken back.
func exchangeInSteps(a, b string) error {
	aside := a + ".old"
	if err := os.Rename(b, aside); err != nil {
		return unavailable(err)
	}
	if err := os.Rename(a, b); err != nil {
		return unavailable(errors.Join(err, os.Rename(aside, b)))
	}
	return unavailableOrNil(os.Rename(aside, a))
}
