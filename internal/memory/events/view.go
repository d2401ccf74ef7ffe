package events

import (
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Failed reports whether the log is damaged or incomplete.
func (r VerifyResult) Failed() bool { return !r.Ok }

// Text sums the report up for a person.
func (r VerifyResult) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d events in %s, seq %d to %d\n", r.Agent, r.Lines, memory.Count(len(r.Files), "file", "files"), r.FirstSeq, r.LastSeq)
	for _, d := range r.Damage {
		fmt.Fprintf(&sb, "  damaged: %s, %d bytes at byte %d (%s)\n", d.File, d.Length, d.Offset, d.Reason)
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&sb, "  missing: seq %d to %d\n", g.First, g.Last)
	}
	for _, t := range r.Torn {
		fmt.Fprintf(&sb, "  set aside: %s, %d bytes of a write that was interrupted and never acknowledged\n", t.File, t.Bytes)
	}
	if r.Ok {
		sb.WriteString("  nothing is damaged or missing\n")
	}
	return sb.String()
}

// Text shows the events to a person, one a line.
func (r TailResult) Text() string {
	var sb strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&sb, "%6d %s %-16s %s: %s\n", e.Seq, e.Timestamp.Format("2006-01-02 15:04:05"), e.Type, strings.ReplaceAll(e.Speaker(), "\n", " "), strings.ReplaceAll(e.Text, "\n", " "))
	}
	return sb.String()
}
