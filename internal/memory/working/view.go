package working

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
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
	return fmt.Sprintf("%s is forgotten; %s that it rested on will not be recalled again\n", r.Handle, memory.Count(len(r.Suppressed), "turn", "turns"))
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

// Text shows to a person what undoing a checkpoint did.
func (r Reverted) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s is undone\n", r.ID)
	for _, part := range []struct {
		what    string
		handles []string
	}{{"archived, as it had created them", r.Withdrawn}, {"as they were before it", r.Restored}, {"left alone, as they have been changed since", r.Kept}} {
		if len(part.handles) > 0 {
			fmt.Fprintf(&sb, "  %s: %s\n", part.what, strings.Join(part.handles, " "))
		}
	}
	return sb.String()
}

// Text shows the counts to a person.
func (h Health) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %s", h.Agent, memory.Count(h.Items[memory.Active], "memory in use", "memories in use"))
	for _, other := range []memory.Status{memory.Quarantined, memory.Superseded, memory.Archived, memory.Forgotten} {
		if n := h.Items[other]; n > 0 {
			fmt.Fprintf(&sb, ", %d %s", n, other)
		}
	}
	sb.WriteByte('\n')
	if len(h.Kinds) > 0 {
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(h.Kinds)) {
			kinds = append(kinds, fmt.Sprintf("%s %d", k, h.Kinds[k]))
		}
		fmt.Fprintf(&sb, "  in use by kind: %s\n", strings.Join(kinds, ", "))
	}
	fmt.Fprintf(&sb, "  %d of %d events applied, %s to be distilled, %s on disk\n", h.AppliedSeq, h.LastSeq, memory.Count(int(h.Backlog), "turn", "turns"), memory.Bytes(h.Bytes))
	if h.LastApplied != nil {
		fmt.Fprintf(&sb, "  last checkpoint: %s\n", h.LastApplied.ID)
	}
	for _, p := range h.Parked {
		fmt.Fprintf(&sb, "  parked: events %d to %d, %s\n", p.Range.First, p.Range.Last, p.Reason)
	}
	for _, d := range h.Degraded {
		fmt.Fprintf(&sb, "  ! %s\n", d)
	}
	return sb.String()
}
