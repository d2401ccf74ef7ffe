package scheduler

import (
	"strings"
	"testing"
	"time"
)

func TestListingIsReadable(t *testing.T) {
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	end := at.Add(44 * time.Millisecond)
	l := Listing{Agent: "a", Jobs: []JobStatus{
		{Job: Job{Name: "nightly", Schedule: "@daily", Op: "memory.checkpoint", Runs: []Run{{Started: at, Ended: &end, Outcome: Failed}}}, Next: &at, Overdue: true},
		{Job: Job{Name: "hello", Schedule: "0 8 * * *", Timezone: "Europe/Lisbon", Message: "good morning", Paused: true}},
	}, Trouble: []string{"jobs.json was damaged"}}
	want := `nightly  @daily (UTC)  memory.checkpoint
  overdue since 2026-05-04 09:00 UTC, last 2026-05-04 09:00 UTC, failed after 44ms
hello  0 8 * * * (Europe/Lisbon)  says good morning
  paused
nothing runs the schedule now: openclawssy serve does, or openclawssy cron run --due
! jobs.json was damaged
`
	if got := l.Text(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := (Listing{Agent: "a", Serving: true}).Text(); !strings.HasPrefix(got, "a has no jobs") {
		t.Error(got)
	}
}
