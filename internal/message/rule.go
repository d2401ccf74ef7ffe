package message

import (
	"slices"
	"time"
)

// unit is what a Rule counts in.
type unit string

const (
	once    unit = "" // a single day
	instant unit = "instant"
	minutes unit = "minute"
	days    unit = "day"
	weeks   unit = "week"
	months  unit = "month"
	years   unit = "year"
)

// rule says when a reminder is due.
type rule struct {
	Every    unit           `json:"every,omitempty"`
	N        int            `json:"n,omitempty"`        // of Every, counted from Anchor; at least 1 where Every is a span
	Weekdays []time.Weekday `json:"weekdays,omitempty"` // of weeks, and of a month with Nth
	Nth      int            `json:"nth,omitempty"`      // which such weekday of the month; -1 for the last
	Month    time.Month     `json:"month,omitempty"`    // of years
	Day      int            `json:"day,omitempty"`      // of months and years; the last one where there is no such day
	Minute   int            `json:"minute,omitempty"`   // after midnight
	Named    bool           `json:"named,omitempty"`    // the hour was named
	// Anchor is the day of once, the moment of instant, and the first day of what is
	// counted; in the zone of the reminder.
	Anchor time.Time `json:"anchor"`
}

// mostDays bounds how far ahead next looks: a leap day is at most eight years
// away.
const mostDays = 8*366 + 1

// next returns the first time after t at which the rule is due, in a zone; zero
// where there is none.
func (r rule) next(after time.Time, loc *time.Location) time.Time {
	anchor := r.Anchor.In(loc)
	switch r.Every {
	case instant:
		return later(r.Anchor, after)
	case once:
		return later(wall(anchor, 0, r.Minute), after)
	case minutes:
		step := time.Duration(r.N) * time.Minute
		if !r.Anchor.After(after) {
			return r.Anchor.Add((after.Sub(r.Anchor)/step + 1) * step)
		}
		return r.Anchor.Add(step)
	}
	from := after.In(loc)
	if anchor.After(from) {
		from = anchor
	}
	for i := range mostDays {
		if !r.on(time.Date(from.Year(), from.Month(), from.Day()+i, 0, 0, 0, 0, time.UTC), anchor) {
			continue
		}
		if at := wall(from, i, r.Minute); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// later returns t where it lies after the other, else zero.
func later(t, other time.Time) time.Time {
	if t.After(other) {
		return t
	}
	return time.Time{}
}

// on reports whether the rule is due on a day, given as midnight UTC.
func (r rule) on(day, anchor time.Time) bool {
	first := time.Date(anchor.Year(), anchor.Month(), anchor.Day(), 0, 0, 0, 0, time.UTC)
	passed := int(day.Sub(first) / (24 * time.Hour))
	switch r.Every {
	case days:
		return passed >= 0 && passed%r.N == 0
	case weeks:
		monday := passed + int(first.Weekday()+6)%7 // days since the Monday of the first week
		return passed >= 0 && monday/7%r.N == 0 && slices.Contains(r.Weekdays, day.Weekday())
	case months:
		gone := int(day.Month()-first.Month()) + 12*(day.Year()-first.Year())
		return passed >= 0 && gone%r.N == 0 && r.inMonth(day)
	case years:
		return day.Month() == r.Month && day.Day() == min(r.Day, lastDay(day)) && (day.Year()-first.Year())%r.N == 0
	}
	return false
}

// inMonth reports whether day is the day of the month that the rule names.
func (r rule) inMonth(day time.Time) bool {
	if r.Nth == 0 {
		return day.Day() == min(r.Day, lastDay(day))
	}
	if !slices.Contains(r.Weekdays, day.Weekday()) {
		return false
	}
	if r.Nth < 0 {
		return day.Day() > lastDay(day)-7
	}
	return (day.Day()-1)/7+1 == r.Nth
}

// lastDay returns the number of days in day's month.
func lastDay(day time.Time) int {
	return time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// latest returns the last time not after now at which the rule was due, from a
// time at which it was due on; and the next one, zero for none.
func (r rule) latest(due, now time.Time, loc *time.Location) (last, next time.Time) {
	for {
		next = r.next(due, loc)
		if next.IsZero() || next.After(now) {
			return due, next
		}
		due = next
	}
}
