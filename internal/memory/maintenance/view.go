package maintenance

import (
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Text says to a person what was done, or would be, one thing a line.
func (r Result) Text() string {
	var sb strings.Builder
	if len(r.Changes)+r.Skipped+len(r.Packed) == 0 && r.Workspace == nil {
		fmt.Fprintf(&sb, "%d memories looked at: nothing to do\n", r.Looked)
	}
	if w := r.Workspace; w != nil {
		sb.WriteString(w.line(r.DryRun) + "\n")
	}
	for _, c := range r.Changes {
		sb.WriteString(c.line() + "\n")
	}
	if r.Waiting > 0 {
		fmt.Fprintf(&sb, "%d more were not confirmed for a long time; they are marked once some of those that are have been looked at\n", r.Waiting)
	}
	if n := len(r.Packed); n > 0 {
		sb.WriteString(packLine(r.Packed) + "\n")
	}
	if r.Freed > 0 {
		fmt.Fprintf(&sb, "gave %s back to the disk\n", memory.Bytes(r.Freed))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&sb, "%d changes were left out, since somebody changed the memories meanwhile; run it again\n", r.Skipped)
	}
	if r.DryRun && (len(r.Changes)+len(r.Packed) > 0 || r.Workspace != nil) {
		sb.WriteString("This was a dry run: nothing was changed. Without --dry-run it is done.\n")
	}
	return sb.String()
}

func (c Change) line() string {
	title := strings.Join(strings.Fields(c.Title), " ")
	switch {
	case c.Action == working.ActionMerge:
		return fmt.Sprintf("merge %s into %s (%s): they say the same", strings.Join(c.Merged, ", "), c.Handle, title)
	case c.Action == working.ActionArchive:
		return fmt.Sprintf("archive %s (%s): %s", c.Handle, title, c.Reason)
	case len(c.Verify) == 0:
		return fmt.Sprintf("unmark %s (%s): nothing about it is in doubt any more", c.Handle, title)
	}
	return fmt.Sprintf("mark %s (%s) to be verified: %s", c.Handle, title, strings.Join(c.Verify, "; "))
}

func (f Followed) line(dry bool) string {
	if dry {
		return fmt.Sprintf("first follow the workspace %s, where %d files have changed; what that brings is not looked at here", f.Path, f.Files)
	}
	return fmt.Sprintf("followed the workspace %s: %d added, %d changed, %d removed", f.Path, f.Added, f.Changed, f.Removed)
}

// packLine names the days that are packed, by the names of their files.
func packLine(list []events.Packed) string {
	var size int64
	for _, p := range list {
		size += p.Bytes
	}
	days := "the day " + dayOf(list[0])
	if len(list) > 1 {
		days = fmt.Sprintf("%d days from %s to %s", len(list), dayOf(list[0]), dayOf(list[len(list)-1]))
	}
	return fmt.Sprintf("pack %s of the event log (%s): they are read as before", days, memory.Bytes(size))
}

func dayOf(p events.Packed) string { return strings.TrimSuffix(p.File, ".jsonl") }
