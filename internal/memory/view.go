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

// Bytes shows a size to a person: "812 B", "1.2 KiB", "3.4 MiB".
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if size < 1<<10 {
			break
		}
		size, unit = size/(1<<10), next
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}
