package memory

import (
	"fmt"
	"strings"
)

// Line shows an item to a person in one line, without line break.
func (it Item) Line() string {
	what := it.Content
	if what == "" {
		what = "(" + string(it.Status) + ")"
	}
	verify := ""
	if len(it.Verify) > 0 {
		verify = ", to verify: " + strings.Join(it.Verify, "; ")
	}
	return fmt.Sprintf("%s (%s, %s, %s, importance %d, confidence %.2f%s) %s", it.Handle, it.Kind, it.Trust, it.Status, it.Importance, it.Confidence, verify, what)
}

// Line shows an episode to a person in one line, without line break.
func (e Episode) Line() string {
	return fmt.Sprintf("%s (%s, %s, session %s) %s", e.Handle, e.Time.Format("2006-01-02 15:04"), e.Speaker, e.SessionID, strings.ReplaceAll(e.Text, "\n", " "))
}
