package maintenance

import (
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Text says to a person what was done, or would be, one thing a line.
func (r Result) Text() string {
	var sb strings.Builder
	if len(r.Changes) == 0 && r.Skipped == 0 {
		fmt.Fprintf(&sb, "%d memories looked at: nothing to do\n", r.Looked)
	}
	for _, c := range r.Changes {
		sb.WriteString(c.line() + "\n")
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&sb, "%d changes were left out, since somebody changed the memories meanwhile; run it again\n", r.Skipped)
	}
	if r.DryRun && len(r.Changes) > 0 {
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
