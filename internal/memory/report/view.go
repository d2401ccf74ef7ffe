package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	dayForm    = "2 January 2006"
	minuteForm = "2 Jan 2006 15:04 UTC"
)

// Text shows the report to a person in a terminal.
func (r Report) Text() string {
	text := r.Markdown()
	if r.File != "" {
		text += "\nThis report: " + r.File + "\n"
	}
	return text
}

// Markdown is the report as it is written down. What is most urgent comes first; each
// memory is one line.
func (r Report) Markdown() string {
	w := &writing{r: &r}
	w.line("# Memory of %s, %s", r.Agent, r.span())
	w.line("")
	w.summary()
	w.decisions()
	w.trouble()
	w.list("Learned", r.Counts.Learned, r.Learned, "memory list --limit 0")
	w.list("Replaced by something newer", r.Counts.Superseded, r.Superseded, "memory list --status superseded --limit 0")
	w.list("Changed", r.Counts.Changed, r.Changed, "")
	w.list("Merged, since they say the same", r.Counts.Merged, r.Merged, "memory list --status superseded --limit 0")
	w.list("Archived: no longer recalled, and brought back by memory revert", r.Counts.Archived, r.Archived, "memory list --status archived --limit 0")
	w.list("Brought back", r.Counts.Restored, r.Restored, "")
	w.list("New in quarantine: not recalled", r.Counts.Quarantined, r.Quarantined, "memory list --status quarantined --limit 0")
	w.cost()
	w.growth()
	return w.sb.String()
}

func (r Report) span() string {
	last := r.Until.Add(-time.Millisecond)
	switch {
	case r.From.IsZero():
		return "until " + last.Format(dayForm)
	case r.From.Format(time.DateOnly) == last.Format(time.DateOnly):
		return last.Format(dayForm)
	case r.From.Year() != last.Year():
		return r.From.Format(dayForm) + " to " + last.Format(dayForm)
	case r.From.Month() != last.Month():
		return r.From.Format("2 January") + " to " + last.Format(dayForm)
	}
	return r.From.Format("2") + " to " + last.Format(dayForm)
}

type writing struct {
	r  *Report
	sb strings.Builder
}

func (w *writing) line(format string, args ...any) { fmt.Fprintf(&w.sb, format+"\n", args...) }

func (w *writing) heading(format string, args ...any) { w.line("\n## "+format+"\n", args...) }

func (w *writing) command(command string) string { return "`" + Command(w.r.Agent, command) + "`" }

// summary says it all in a few words.
func (w *writing) summary() {
	c, r := w.r.Counts, w.r
	var said []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Learned, "learned"}, {c.Confirmed, "confirmed"}, {c.Superseded, "replaced"}, {c.Changed, "changed"}, {c.Merged, "merged"}, {c.Archived, "archived"},
		{c.Restored, "brought back"}, {c.Quarantined, "quarantined"}, {c.Approved, "approved"}, {c.Rejected, "rejected"}, {c.Forgotten, "forgotten"}} {
		if part.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	switch {
	case len(said) > 0:
		w.line("%s.", strings.Join(said, ", "))
	case r.Quiet:
		w.line("Nothing was learned or changed, and no model was asked to distil.")
	default:
		w.line("Nothing was learned or changed.")
	}
	if n := r.Waiting.Quarantine + r.Waiting.Verify; n > 0 {
		w.line("%s a decision of yours.", memories(n, "needs", "need"))
	}
	if n := r.Waiting.Messages; n > 0 {
		w.line("%s held or could not be delivered: %s", memory.Count(n, "message is", "messages are"), w.command("agent message held"))
	}
	if n := len(r.Condition.Problems); n > 0 {
		w.line("%s wrong, see below.", memory.Count(n, "thing is", "things are"))
	}
	if n := r.Condition.Backlog; n > 0 {
		w.line("%s to be distilled: %s", memory.Count(int(n), "turn waits", "turns wait"), w.command("memory checkpoint"))
	}
}

func memories(n int, one, many string) string {
	return memory.Count(n, "memory "+one, "memories "+many)
}

func (w *writing) decisions() {
	if len(w.r.Decide) == 0 {
		return
	}
	w.heading("To decide")
	shown := 0
	for _, d := range w.r.Decide {
		shown += len(d.About)
		if len(d.About) == 1 {
			w.line("- %s: %s", d.About[0].Handle, d.About[0].Text)
			w.line("  %s", d.Question)
		} else {
			w.line("- %s", d.Question)
			for _, l := range d.About {
				w.line("  %s: %s", l.Handle, l.Text)
			}
		}
		for _, c := range d.Choices {
			w.line("  - %s: `%s`", c.Says, c.Command)
		}
	}
	if more := w.r.Waiting.Quarantine + w.r.Waiting.Verify - shown; more > 0 {
		w.line("- and %d more: %s, %s", more, w.command("memory list --verify"), w.command("memory list --status quarantined"))
	}
}

// trouble says what is wrong and since when.
func (w *writing) trouble() {
	c := w.r.Condition
	if len(c.Problems) == 0 {
		return
	}
	w.heading("What is wrong")
	for _, p := range c.Problems {
		w.line("- since %s: %s", p.Since.UTC().Format(minuteForm), p.Text)
	}
}

func (w *writing) list(title string, n int, lines []Line, command string) {
	if n == 0 {
		return
	}
	w.heading("%s (%d)", title, n)
	for _, l := range lines {
		w.line("- %s", l.markdown())
	}
	switch more := n - len(lines); {
	case more <= 0:
	case command == "":
		w.line("- and %d more", more)
	default:
		w.line("- and %d more: %s", more, w.command(command))
	}
}

func (l Line) markdown() string {
	s := l.Handle + ": " + l.Text
	switch {
	case l.ByText != "":
		s += "\n  → " + l.By + ": " + l.ByText
	case l.By != "":
		s += " → " + l.By
	case l.Before != "":
		s += "\n  before: " + l.Before
	}
	if l.Why != "" {
		s += " (" + l.Why + ")"
	}
	return s
}

func (w *writing) cost() {
	d, m := w.r.Cost.Distilling, w.r.Cost.Model
	if d.Checkpoints == 0 && m.Calls == 0 {
		return
	}
	w.heading("Cost")
	tokens := d.TokensIn + d.TokensOut
	switch {
	case d.Checkpoints > 0 && tokens > 0:
		w.line("- distilling: %s, %s tokens, %.0f for each of %s", memory.Count(d.Checkpoints, "checkpoint", "checkpoints"), grouped(tokens), d.PerItem, memories(d.Items, "made or confirmed", "made or confirmed"))
	case d.Checkpoints > 0:
		w.line("- distilling: %s by rules, no tokens", memory.Count(d.Checkpoints, "checkpoint", "checkpoints"))
	}
	if m.Calls > 0 {
		w.line("- all models: %s, %s tokens in, %s out", memory.Count(m.Calls, "call", "calls"), grouped(m.TokensIn), grouped(m.TokensOut))
	}
}

// grouped writes a number with a comma between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// barWidth is the length of the longest bar of the chart, in characters.
const barWidth = 40

func (w *writing) growth() {
	r := w.r
	most := 0
	for _, p := range r.Growth {
		most = max(most, p.Active)
	}
	if most > 0 && len(r.Growth) > 1 {
		w.heading("Memories in use")
		for _, p := range r.Growth {
			w.line("    %6s  %6d  %s", p.At.Add(-time.Millisecond).Format("2 Jan"), p.Active, strings.Repeat("█", max(p.Active*barWidth/most, min(p.Active, 1))))
		}
	}
	lost := "none missing"
	if r.Condition.Gaps+r.Condition.Dropped > 0 {
		lost = fmt.Sprintf("%d missing, %d could not be taken", r.Condition.Gaps, r.Condition.Dropped)
	}
	if r.Condition.Events > 0 {
		now := 0
		if n := len(r.Growth); n > 0 {
			now = r.Growth[n-1].Active
		}
		w.line("\n%s in use, %s events in the log (%s), %s on disk.", memories(now, "is", "are"), grouped(int(r.Condition.Events)), lost, memory.Bytes(r.Bytes))
	}
}
