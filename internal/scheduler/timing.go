package scheduler

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// timing says when a job is due.
type timing struct {
	every time.Duration      // between starts; 0 for a calendar
	spec  *cron.SpecSchedule // the calendar, in zone where every hour matches and on the bare wall clock otherwise
	zone  *time.Location
	wall  bool // spec is evaluated on the wall clock, without regard to its shifts
}

// maxSchedule is the most bytes of a schedule.
const maxSchedule = 200

const scheduleHint = `five fields such as "30 2 * * 0" (minute, hour, day of month, month, day of week with 0 for Sunday), or @hourly, @daily, @weekly, @monthly, or @every 6h`

// parseTiming reads a five-field schedule or a descriptor in a time zone, by its
// IANA name; "" stands for UTC. One that never comes is refused.
func parseTiming(schedule, zone string) (timing, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return timing{}, &memory.FieldError{Field: "timezone", Reason: "must be an IANA time zone", Hint: "such as Europe/Lisbon, or leave it out for UTC"}
	}
	bad := func(reason string) error {
		return &memory.FieldError{Field: "schedule", Reason: reason, Hint: scheduleHint}
	}
	schedule = strings.TrimSpace(schedule)
	if len(schedule) > maxSchedule || strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=") {
		return timing{}, bad("must be a schedule without a time zone in it; timezone is a field of its own")
	}
	if interval, found := strings.CutPrefix(schedule, "@every "); found {
		d, err := time.ParseDuration(strings.TrimSpace(interval))
		if err != nil || d < time.Second {
			return timing{}, bad("must be @every and a duration of at least 1s, such as @every 6h")
		}
		return timing{every: d.Truncate(time.Second), zone: loc}, nil
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return timing{}, bad("is no schedule: " + err.Error())
	}
	spec, isSpec := parsed.(*cron.SpecSchedule)
	if !isSpec {
		return timing{}, bad("is no schedule")
	}
	const allHours = 1<<24 - 1
	t := timing{spec: spec, zone: loc, wall: spec.Hour&allHours != allHours}
	spec.Location = loc
	if t.wall {
		spec.Location = time.UTC
	}
	// A leap year is at most eight years away.
	if t.next(time.Date(2023, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return timing{}, bad("never comes")
	}
	return t, nil
}

// next returns the first time after t at which the job is due; zero where there
// is none within five years.
//
// A schedule of every hour follows real time through a change of the clock. One
// that names its hours follows the wall clock: in the hour that is left out it is
// due as much after the change as it was named after the hour's beginning, and in
// the hour that comes twice it is due once.
func (tm timing) next(t time.Time) time.Time {
	if tm.every > 0 {
		return t.Add(tm.every).Truncate(time.Second)
	}
	if !tm.wall {
		return tm.spec.Next(t.In(tm.zone))
	}
	const most = 200 // candidates in an hour that comes twice, and some
	naive := onWall(t.In(tm.zone))
	for range most {
		if naive = tm.spec.Next(naive); naive.IsZero() {
			return time.Time{}
		}
		if at := tm.real(naive); at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// onWall returns what the clock on the wall shows at t, as a time in UTC.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// real returns when the wall clock of the zone first shows naive. For a time that
// the clock leaves out, it is as much later as the clock is put forward.
func (tm timing) real(naive time.Time) time.Time {
	at := time.Date(naive.Year(), naive.Month(), naive.Day(), naive.Hour(), naive.Minute(), naive.Second(), 0, tm.zone)
	if early := naive.Sub(onWall(at)); early > 0 {
		return at.Add(early)
	}
	// time.Date does not say which of two it takes: look before the last change.
	if change, _ := at.ZoneBounds(); !change.IsZero() {
		_, offset := change.Add(-time.Second).Zone()
		first := naive.Add(-time.Duration(offset) * time.Second).In(tm.zone)
		if first.Before(change) && onWall(first).Equal(naive) {
			return first
		}
	}
	return at
}
