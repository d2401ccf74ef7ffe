package message

import (
	"fmt"
	"time"
)

// Settings are what of an agent's configuration the ledger keeps to.
type Settings struct {
	Enabled  bool
	DailyCap int           // messages to one person in a day of theirs; 0 for none at all
	Cooldown time.Duration // between two of one trigger to one person
	// Quiet hours, in minutes after midnight where the person is; none where both
	// are the same.
	QuietFrom, QuietTo int
	Routes             []string // names of those that messages go besides the inbox
	Agents             []string // of this home that may be written to; "*" for all
	PrivateInGroups    bool     // what was said in private may be told in a group
}

// history is what the gate knows of earlier messages to the same addressee.
type history struct {
	today int       // sent in the addressee's day
	last  time.Time // when the last one of the same trigger was sent; zero for never
}

// gate returns until when a message has to wait, and why; the zero time where it
// may be sent now. A reminder whose hour the user named, and what was snoozed until
// an hour, is not held by quiet hours; neither they nor any other reminder nor
// what was told to be sent is held by the cooldown.
func (s Settings) gate(m Message, h history, now time.Time) (time.Time, string) {
	if m.DueAt.After(now) {
		return m.DueAt, "due then"
	}
	loc := m.location()
	if until, quiet := s.quietUntil(now, loc); quiet && m.To == "" && !m.ownHour {
		return until, fmt.Sprintf("quiet hours (%s to %s, %s)", clock(s.QuietFrom), clock(s.QuietTo), loc)
	}
	paced := m.Trigger != ReminderDue && m.Trigger != Sent && !m.ownHour
	if again := h.last.Add(s.Cooldown); paced && !h.last.IsZero() && !h.last.After(now) && again.After(now) {
		return again, fmt.Sprintf("cooldown of %s after the last message of this kind", s.Cooldown)
	}
	if h.today >= s.DailyCap {
		_, tomorrow := day(now, loc)
		return tomorrow, fmt.Sprintf("%d messages were sent today, and the daily cap is %d", h.today, s.DailyCap)
	}
	return time.Time{}, ""
}

// quietUntil reports whether now lies in the quiet hours of a zone, and when they
// end. They follow the clock on the wall through its changes.
func (s Settings) quietUntil(now time.Time, loc *time.Location) (time.Time, bool) {
	if s.QuietFrom == s.QuietTo {
		return time.Time{}, false
	}
	local := now.In(loc)
	minute := local.Hour()*60 + local.Minute()
	in := s.QuietFrom <= minute && minute < s.QuietTo
	if s.QuietFrom > s.QuietTo {
		in = minute >= s.QuietFrom || minute < s.QuietTo
	}
	if !in {
		return time.Time{}, false
	}
	until := wall(local, 0, s.QuietTo)
	if !until.After(now) {
		until = wall(local, 1, s.QuietTo)
	}
	return until, true
}

// day returns the beginning and the end of t's day in a zone.
func day(t time.Time, loc *time.Location) (from, to time.Time) {
	local := t.In(loc)
	return wall(local, 0, 0), wall(local, 1, 0)
}

func clock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// wall returns when the clock on the wall, in on's zone, first shows a minute
// after midnight, so many days after on's day. A minute that the clock leaves out
// comes as much later as it is put forward.
func wall(on time.Time, days, minute int) time.Time {
	y, m, d := on.Date()
	loc := on.Location()
	t := time.Date(y, m, d+days, minute/60, minute%60, 0, 0, loc)
	want := time.Date(y, m, d+days, minute/60, minute%60, 0, 0, time.UTC)
	if early := want.Sub(shown(t)); early > 0 {
		return t.Add(early)
	}
	// Of a minute that comes twice time.Date does not say which it takes: look
	// before the last change.
	if change, _ := t.ZoneBounds(); !change.IsZero() {
		_, offset := change.Add(-time.Second).Zone()
		first := want.Add(-time.Duration(offset) * time.Second).In(loc)
		if first.Before(change) && shown(first).Equal(want) {
			return first
		}
	}
	return t
}

// shown returns what the clock on the wall shows at t, as a time in UTC.
func shown(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
