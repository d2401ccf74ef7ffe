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

// Count shows how many there are of something to a person: "1 turn", "3 turns".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Text shows the record of a checkpoint to a person.
func (c Checkpoint) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s\n  %s, events %d to %d (%s), by %s", c.ID, c.At.UTC().Format("2006-01-02 15:04 UTC"), c.Range.First, c.Range.Last, Count(c.Events, "turn", "turns"), c.Mode)
	if c.Model != "" && c.Model != c.Mode {
		fmt.Fprintf(&sb, " %s", c.Model)
	}
	if c.TokensIn+c.TokensOut > 0 {
		fmt.Fprintf(&sb, ", %d tokens in and %d out", c.TokensIn, c.TokensOut)
	}
	sb.WriteByte('\n')
	for _, part := range []struct {
		what    string
		handles []string
	}{{"learned", c.Created}, {"replaced", c.Updated}, {"said again", c.Merged}, {"quarantined", c.Quarantined}, {"archived", c.Archived}} {
		if len(part.handles) > 0 {
			fmt.Fprintf(&sb, "  %s: %s\n", part.what, strings.Join(part.handles, " "))
		}
	}
	for _, r := range c.Refused {
		fmt.Fprintf(&sb, "  refused: %s: %s\n", r.Reason, r.Entry)
	}
	if c.Parked != nil {
		fmt.Fprintf(&sb, "  parked, to be tried again by the next checkpoint: events %d to %d, %s\n", c.Parked.Range.First, c.Parked.Range.Last, c.Parked.Reason)
	}
	for _, r := range c.Unparked {
		fmt.Fprintf(&sb, "  settles what was parked: events %d to %d\n", r.First, r.Last)
	}
	return sb.String()
}
