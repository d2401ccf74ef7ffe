package working

import (
	"fmt"
	"strings"
)

// Text shows the items to a person, one a line.
func (r ListResult) Text() string {
	if len(r.Items) == 0 {
		return "no memories; --status all lists those of every status\n"
	}
	var sb strings.Builder
	for _, it := range r.Items {
		sb.WriteString(it.Line() + "\n")
	}
	return sb.String()
}

// Text shows what was written to a person.
func (r WriteResult) Text() string {
	out := r.Item.Line() + "\n"
	if r.Merged {
		out = "merged with what was known: " + out
	}
	if r.Superseded != "" {
		out += "it took the place of " + r.Superseded + "\n"
	}
	if len(r.Archived) > 0 {
		out += "archived, since there are too many: " + strings.Join(r.Archived, ", ") + "\n"
	}
	return out
}

// Text shows the changed item to a person.
func (c Changed) Text() string { return c.Item.Line() + "\n" }

// Text says what was forgotten.
func (r ForgetResult) Text() string {
	return fmt.Sprintf("%s is forgotten; %d turns that it rested on are no longer recalled\n", r.Handle, len(r.Suppressed))
}

// Text shows the versions to a person, one a line.
func (r HistoryResult) Text() string {
	var sb strings.Builder
	for _, v := range r.Revisions {
		fmt.Fprintf(&sb, "version %d, %s, %s by %s", v.Item.Version, v.At.UTC().Format("2006-01-02 15:04 UTC"), v.Action, v.By)
		if v.Why != "" {
			fmt.Fprintf(&sb, " (%s)", v.Why)
		}
		sb.WriteString("\n  " + v.Item.Line() + "\n")
	}
	return sb.String()
}
