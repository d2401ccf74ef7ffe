package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// Text shows the jobs to a person, one in two or three lines.
func (l Listing) Text() string {
	var sb strings.Builder
	for _, j := range l.Jobs {
		sb.WriteString(j.text())
	}
	if len(l.Jobs) == 0 {
		fmt.Fprintf(&sb, "%s has no jobs; openclawssy cron add makes one\n", l.Agent)
	}
	if !l.Serving {
		sb.WriteString("nothing runs the schedule now: openclawssy serve does, or openclawssy cron run --due\n")
	}
	for _, t := range l.Trouble {
		fmt.Fprintf(&sb, "! %s\n", t)
	}
	return sb.String()
}

// Text shows the job to a person.
func (r JobResult) Text() string { return r.Job.text() }

func (j JobStatus) text() string {
	var sb strings.Builder
	zone := j.Timezone
	if zone == "" {
		zone = "UTC"
	}
	fmt.Fprintf(&sb, "%s  %s (%s)  %s\n", j.Name, j.Schedule, zone, j.does())
	switch {
	case j.Paused:
		sb.WriteString("  paused")
	case j.Overdue:
		fmt.Fprintf(&sb, "  overdue since %s", stamp(j.Next))
	default:
		fmt.Fprintf(&sb, "  next %s", stamp(j.Next))
	}
	if len(j.Runs) > 0 {
		fmt.Fprintf(&sb, ", last %s", j.Runs[0].text())
	}
	if j.Stuck {
		sb.WriteString(", which has not returned")
	}
	if j.Skipped > 0 {
		fmt.Fprintf(&sb, ", skipped while it ran: %d", j.Skipped)
	}
	sb.WriteByte('\n')
	return sb.String()
}

// does says what a job does: its operation, or what it says to the agent.
func (j Job) does() string {
	if j.Message != "" {
		return "says " + j.Message
	}
	return j.Op
}

// Text shows the runs to a person, one a line.
func (r RunResult) Text() string {
	if len(r.Runs) == 0 {
		return "nothing is due\n"
	}
	var sb strings.Builder
	for _, run := range r.Runs {
		fmt.Fprintf(&sb, "%s: %s\n", run.Name, run.text())
		if run.Detail != "" {
			fmt.Fprintf(&sb, "  %s\n", run.Detail)
		}
	}
	return sb.String()
}

// text says when a run was and how it ended.
func (r Run) text() string {
	if r.Ended == nil {
		return stamp(&r.Started) + ", running"
	}
	return fmt.Sprintf("%s, %s after %s", stamp(&r.Started), r.Outcome, r.Ended.Sub(r.Started).Round(time.Millisecond))
}

func stamp(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
