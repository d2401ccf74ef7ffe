package message

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Minutes after midnight of what names no hour.
const (
	morning   = 9 * 60
	midday    = 12 * 60
	afternoon = 14 * 60
	evening   = 18 * 60
	night     = 20 * 60
)

const (
	weekdayName = `(?:mon|tues|wednes|thurs|fri|satur|sun)day`
	countName   = `\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half an`
)

var (
	asksToRemind = regexp.MustCompile(`(?i)\bremind(?:s|ed|er|ers|ing)?\b|\b(?:ping|nudge) (?:me|us|the user|user)\b|\bdon't let (?:me|us) forget\b`)
	declines     = regexp.MustCompile(`(?i)\b(?:don't|do not|doesn't|does not|didn't|never|stop|without|not|no more|no longer|no need to)\b[^.;,]{0,24}\bremind`)

	// topic begins what a reminder is about.
	topic = regexp.MustCompile(`(?i)\b(?:to|about|that|for)\b|[:;.!?](?:\s|$)`)

	clockTime  = regexp.MustCompile(`\b(?:at )?(\d{1,2}):(\d{2})(?:\s*([ap])\.?m\b)?|\b(?:at )?(\d{1,2})(?:\.(\d{2}))?\s*([ap])\.?m\b|\bat (\d{1,2})(?:\.(\d{2}))?(?: o'clock)?(?:[\s,.;!?]|$)|\b(noon|midday|midnight)\b`)
	partOfDay  = regexp.MustCompile(`\b(morning|lunch|lunchtime|afternoon|evening|tonight|night)s?\b`)
	inSpan     = regexp.MustCompile(`\bin (` + countName + `) (minute|hour)s?\b`)
	before     = regexp.MustCompile(`\b(` + countName + `|the) (day|week|evening|night)s? (?:before|ahead|earlier|in advance)\b`)
	everyUnit  = regexp.MustCompile(`\b(?:every|each) (?:(other|second|third|fourth|` + countName + `) )?(minute|hour|day|morning|afternoon|evening|night|weekday|workday|working day|week|weekend|fortnight|month|quarter|year)s?\b`)
	everyDay   = regexp.MustCompile(`\b(?:every|each)(?: (other|second|third|fourth))? (` + weekdayName + `)s?\b`)
	moreDays   = regexp.MustCompile(`^(?:,? and |, ?| ?/ ?| ?& ?)(?:every |each |on )?(` + weekdayName + `)s?\b`)
	plurals    = regexp.MustCompile(`\b(` + weekdayName + `)s\b`)
	adverb     = regexp.MustCompile(`(?:^|(\S+) )\b(hourly|daily|weekly|fortnightly|biweekly|monthly|quarterly|yearly|annually)\b`)
	nthWeekday = regexp.MustCompile(`\b(first|1st|second|2nd|third|3rd|fourth|4th|last) (` + weekdayName + `) (?:of|in) (?:the|every|each) month\b`)
	dayOfMonth = regexp.MustCompile(`\b(?:the )?(\d{1,2})(?:st|nd|rd|th) (?:day )?of (?:the|every|each) month\b|\b(last) day of (?:the|every|each) month\b`)
	bareDay    = regexp.MustCompile(`\bthe (\d{1,2})(?:st|nd|rd|th)\b`)
	aWeekday   = regexp.MustCompile(`\b(` + weekdayName + `)\b`)
)

var weekdays = map[string]time.Weekday{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}

var numbers = map[string]int{"a": 1, "an": 1, "one": 1, "other": 2, "two": 2, "second": 2, "2nd": 2, "three": 3, "third": 3, "3rd": 3, "four": 4, "fourth": 4, "4th": 4,
	"five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "first": 1, "1st": 1, "last": -1}

// number reads a count; 1 for none.
func number(s string) int {
	if n, known := numbers[s]; known {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// isReminder reports whether an item asks for being reminded: it is of kind
// reminder, or says so. What a tool or another agent said asks for nothing.
func isReminder(it memory.Item) bool {
	if it.Trust.Rank() < memory.TrustImport.Rank() || it.Kind != memory.KindReminder && !asksToRemind.MatchString(it.Content) {
		return false
	}
	return !declines.MatchString(it.Content) // asked last: few items come so far
}

// parseWhen derives from what a reminder says when it is due. at is when it was
// said, in the zone of who said it. It reports false where the text names no time
// that it understands; what it understands is English.
//
// The words between the request and what it is about decide ("remind me every
// Friday to …"); where they name no time, the whole text does.
func parseWhen(content string, at time.Time) (rule, bool) {
	s := strings.Join(strings.Fields(content), " ")
	if m := lastMatch(asksToRemind, s); m != nil {
		head := s[m[1]:]
		if t := topic.FindStringIndex(head); t != nil {
			if r, ok := whenIn(head[:t[0]], at); ok {
				return r, true
			}
		}
	}
	return whenIn(s, at)
}

// lastMatch returns the place of the last match, nil for none.
func lastMatch(re *regexp.Regexp, s string) []int {
	all := re.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// whenIn reads the first time that a text names.
func whenIn(s string, at time.Time) (rule, bool) {
	lower := strings.ToLower(s)
	minute, named, timed := timeOfDay(lower)
	if r, ok := recurring(s, lower, at); ok {
		r.Minute, r.Named = minute, named
		if r.Every == minutes {
			r.Minute = 0
		}
		return r, true
	}
	if m := inSpan.FindStringSubmatch(lower); m != nil {
		span := time.Minute
		if m[2] == "hour" {
			span = time.Hour
		}
		d := time.Duration(number(m[1])) * span
		if m[1] == "half an" {
			d = span / 2
		}
		return rule{Every: instant, Named: true, Anchor: at.Add(d)}, true
	}
	r := rule{Minute: minute, Named: named}
	if on, ok := singleDay(s, lower, at); ok {
		shift, late := dayBefore(lower)
		if late != 0 && !timed {
			r.Minute = late
		}
		r.Anchor = on.AddDate(0, 0, -shift)
		return r, true
	}
	if !timed {
		return rule{}, false
	}
	r.Anchor = startOf(at)
	if !wall(r.Anchor, 0, minute).After(at) {
		r.Anchor = r.Anchor.AddDate(0, 0, 1)
	}
	return r, true
}

// timeOfDay returns the minute after midnight that a text names, whether as an
// hour, and whether at all. A bare hour from 1 to 6 is one of the afternoon.
func timeOfDay(lower string) (minute int, named, timed bool) {
	part := ""
	if m := partOfDay.FindStringSubmatch(lower); m != nil {
		part = m[1]
	}
	for _, m := range clockTime.FindAllStringSubmatch(lower, -1) {
		if minute, ok := clockOf(m, part); ok {
			return minute, true, true
		}
	}
	switch part {
	case "":
		return morning, false, false
	case "lunch", "lunchtime":
		return midday, false, true
	case "afternoon":
		return afternoon, false, true
	case "evening":
		return evening, false, true
	case "night", "tonight":
		return night, false, true
	}
	return morning, false, true
}

// clockOf reads a match of clockTime.
func clockOf(m []string, part string) (int, bool) {
	switch m[9] {
	case "midnight":
		return 0, true
	case "noon", "midday":
		return midday, true
	}
	hourText, minuteText, half := m[1]+m[4]+m[7], m[2]+m[5]+m[8], m[3]+m[6]
	hour, err := strconv.Atoi(hourText)
	if err != nil || hour > 23 || half != "" && (hour < 1 || hour > 12) {
		return 0, false
	}
	minute := 0
	if minuteText != "" {
		if minute, err = strconv.Atoi(minuteText); err != nil || minute > 59 {
			return 0, false
		}
	}
	late := slices.Contains([]string{"afternoon", "evening", "tonight", "night"}, part)
	bare := half == "" && part == "" && m[7] != "" && 1 <= hour && hour <= 6
	switch {
	case half == "a" && hour == 12:
		hour = 0
	case hour < 12 && (half == "p" || half == "" && late || bare):
		hour += 12
	}
	return hour*60 + minute, true
}

// recurring reads a time that comes again and again, without its hour.
func recurring(s, lower string, at time.Time) (rule, bool) {
	r := rule{N: 1, Anchor: startOf(at)}
	if m := nthWeekday.FindStringSubmatch(lower); m != nil {
		r.Every, r.Nth, r.Weekdays = months, number(m[1]), []time.Weekday{weekdays[m[2]]}
		return r, true
	}
	if m := dayOfMonth.FindStringSubmatch(lower); m != nil {
		r.Every, r.Day = months, 31
		if m[2] == "" {
			r.Day = number(m[1])
		}
		return r, r.Day <= 31
	}
	if m := everyDay.FindStringSubmatchIndex(lower); m != nil {
		if m[2] >= 0 {
			r.N = number(lower[m[2]:m[3]])
		}
		return onWeekdays(r, listOfDays(lower[m[4]:m[5]], lower[m[1]:]), at), true
	}
	every, n := repetition(lower)
	if yearly, ok := onDate(s, lower, every, at); ok {
		return yearly, true
	}
	if every == "" {
		if m := plurals.FindStringSubmatchIndex(lower); m != nil {
			return onWeekdays(r, listOfDays(lower[m[2]:m[3]], lower[m[1]:]), at), true
		}
		return rule{}, false
	}
	r.N = n
	return r.repeated(every, lower, at), true
}

// repetition returns the unit that a text repeats in, as it names it, and how
// many of it; "" for none.
func repetition(lower string) (string, int) {
	if m := everyUnit.FindStringSubmatch(lower); m != nil {
		n := 1
		if m[1] != "" {
			n = number(m[1])
		}
		return m[2], n
	}
	m := adverb.FindStringSubmatch(lower)
	if m == nil || slices.Contains([]string{"the", "a", "my", "our", "your", "their", "his", "her", "this", "next"}, m[1]) {
		return "", 0
	}
	return map[string]string{"hourly": "hour", "daily": "day", "weekly": "week", "fortnightly": "fortnight", "biweekly": "fortnight",
		"monthly": "month", "quarterly": "quarter", "yearly": "year", "annually": "year"}[m[2]], 1
}

// repeated completes r for a unit as a text names it.
func (r rule) repeated(every, lower string, at time.Time) rule {
	switch every {
	case "minute":
		r.Every, r.Anchor = minutes, at
	case "hour":
		r.Every, r.N, r.Anchor = minutes, 60*r.N, at
	case "weekday", "workday", "working day":
		r.Every, r.N, r.Weekdays = weeks, 1, []time.Weekday{1, 2, 3, 4, 5}
	case "weekend":
		return onWeekdays(r, []time.Weekday{time.Saturday}, at)
	case "week", "fortnight":
		if every == "fortnight" {
			r.N *= 2
		}
		on := []time.Weekday{at.Weekday()}
		if m := aWeekday.FindStringSubmatchIndex(lower); m != nil {
			on = listOfDays(lower[m[2]:m[3]], lower[m[1]:])
		}
		return onWeekdays(r, on, at)
	case "month", "quarter":
		if every == "quarter" {
			r.N *= 3
		}
		r.Every, r.Day = months, at.Day()
		if m := bareDay.FindStringSubmatch(lower); m != nil {
			r.Day = number(m[1])
		}
	case "year":
		r.Every, r.Month, r.Day = years, at.Month(), at.Day()
	default: // day, and its parts
		r.Every = days
	}
	return r
}

// onDate reads a day of the year that comes every year.
func onDate(s, lower, every string, at time.Time) (rule, bool) {
	if every != "year" && !strings.Contains(lower, "every ") && !strings.Contains(lower, "each ") {
		return rule{}, false
	}
	for _, d := range text.Dates(s, at) {
		named := every == "year" || strings.HasSuffix(strings.ToLower(s[:d.Start]), "every ") || strings.HasSuffix(strings.ToLower(s[:d.Start]), "each ")
		if d.Month != 0 && d.Day != 0 && d.Year == 0 && named {
			return rule{Every: years, N: 1, Month: d.Month, Day: d.Day, Anchor: startOf(at)}, true
		}
	}
	return rule{}, false
}

// onWeekdays completes r for days of the week. What is counted in weeks begins
// with the first such day after at.
func onWeekdays(r rule, on []time.Weekday, at time.Time) rule {
	r.Every, r.Weekdays = weeks, on
	for i := 1; i <= 7; i++ {
		if d := r.Anchor.AddDate(0, 0, i); slices.Contains(on, d.Weekday()) && r.N > 1 {
			r.Anchor = d
			break
		}
	}
	return r
}

// listOfDays reads a day of the week and those that are listed after it.
func listOfDays(first, rest string) []time.Weekday {
	list := []time.Weekday{weekdays[first]}
	for {
		m := moreDays.FindStringSubmatchIndex(rest)
		if m == nil {
			return list
		}
		list = append(list, weekdays[rest[m[2]:m[3]]])
		rest = rest[m[1]:]
	}
}

// singleDay reads a day that comes once, as its beginning.
func singleDay(s, lower string, at time.Time) (time.Time, bool) {
	for _, d := range text.Dates(s, at) {
		if d.Month == 0 {
			continue
		}
		open := d.Year == 0
		if open {
			d.Year = at.Year()
		}
		on, _ := d.Time(at.Location()) // its year is set
		if on.Month() != d.Month {
			continue // there is no such day
		}
		if open && on.Before(startOf(at)) {
			on = on.AddDate(1, 0, 0)
		}
		return on, true
	}
	if m := aWeekday.FindStringSubmatch(lower); m != nil {
		gap := int(weekdays[m[1]]-at.Weekday()+6)%7 + 1
		return startOf(at).AddDate(0, 0, gap), true
	}
	if m := bareDay.FindStringSubmatch(lower); m != nil {
		if n := number(m[1]); n <= 31 {
			r := rule{Every: months, N: 1, Day: n, Anchor: startOf(at), Minute: 24*60 - 1}
			return startOf(r.next(at, at.Location())), true
		}
	}
	return time.Time{}, false
}

// dayBefore reads how many days before the day that a text names it wants to be
// told, and at which minute where it says the evening; 0 for neither.
func dayBefore(lower string) (shift, minute int) {
	m := before.FindStringSubmatch(lower)
	if m == nil {
		return 0, 0
	}
	n := number(m[1])
	switch m[2] {
	case "week":
		return 7 * n, 0
	case "evening":
		return 1, evening
	case "night":
		return 1, night
	}
	return n, 0
}

// startOf returns the beginning of t's day, in its zone.
func startOf(t time.Time) time.Time { return wall(t, 0, 0) }
