package distill

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// day is a calendar day that a text names, with the span of the words.
type day struct {
	date       time.Time
	start, end int
}

// daysOf finds the days that s names, said at the given time: those that the text
// package reads, a bare day of the month ("the 20th", "Monday 15th") and a day of
// the week ahead ("on Thursday"). Where no year is given the nearest such day is
// meant, the next one before the last.
func daysOf(s string, at time.Time) []day {
	var out []day
	for _, d := range text.Dates(s, at) {
		if d.Day == 0 || d.Month == 0 {
			continue
		}
		if d.Year == 0 && counted.MatchString(s[d.Start:d.End]) {
			continue // "in January, 20 a day": no day of the month
		}
		if d.Year == 0 {
			d.Year = nearestYear(d.Month, d.Day, at)
		}
		when, ok := d.Time(at.Location())
		if !ok || when.Day() != d.Day || blurred.MatchString(strings.ToLower(s[d.Start:d.End])) || goesOn.MatchString(s[d.End:]) {
			continue
		}
		out = append(out, day{date: when, start: d.Start, end: d.End})
		out = append(out, listedBefore(s, out[len(out)-1])...)
	}
	lower := strings.ToLower(s)
	named := slices.Clone(out)
	for _, m := range bareDay.FindAllStringSubmatchIndex(lower, -1) {
		n, err := strconv.Atoi(lower[m[2]:m[3]])
		if err != nil || n < 1 || n > 31 || covered(out, m[0], m[1]) || ofEach.MatchString(lower[m[1]:]) {
			continue
		}
		near := at
		if len(named) > 0 { // the month that the sentence speaks of
			y, month, _ := named[0].date.Date()
			near = time.Date(y, month, 1, 0, 0, 0, 0, at.Location())
		}
		out = append(out, day{date: nextDay(n, near), start: m[0], end: m[1]})
	}
	recurs := recurrence.MatchString(lower)
	for _, m := range weekdayAhead.FindAllStringSubmatchIndex(lower, -1) {
		if covered(out, m[0], m[1]) || recurs {
			continue
		}
		gap := (int(weekdayNames[lower[m[2]:m[3]]]) - int(at.Weekday()) + 6) % 7
		out = append(out, day{date: startOfDay(at.AddDate(0, 0, gap+1)), start: m[0], end: m[1]})
	}
	slices.SortFunc(out, func(a, b day) int { return a.start - b.start })
	return out
}

var (
	// blurred are spans that the text package resolves to one day though more are
	// meant, or that only say that it is now.
	blurred = match(`week|^in |^to(?:day|night)|^this (?:morning|afternoon|evening)`)
	// bareDay is a day of the month without its month.
	bareDay = match(`\b(?:the|monday|tuesday|wednesday|thursday|friday|saturday|sunday)(?: the)? (\d{1,2})(?:st|nd|rd|th)\b`)
	// counted is a month and a number that a comma parts, with no year behind them.
	counted = match(`^[\pL.]+, \d{1,2}$`)
	// goesOn shows that a number taken for a day is longer: "March: 24,500".
	goesOn = match(`^[.,]?\d`)
	// ofEach makes a day of the month recur; recurrence does so for weekdays.
	ofEach     = match(`^ of (?:each|every|the) month`)
	recurrence = match(`\b(?:prefer|always|usually|normally|every|each|weekly|never|generally|per week|a week)\b`)
	// weekdayAhead is a weekday that is to come; plurals and "every" recur.
	weekdayAhead = match(`\b(?:on|by|until|till|before|from|starts|coming|(?:moved?|moves|pushed|postponed|shifted|rescheduled|brought forward)(?: (?:it|this|that))? to) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`)
	weekdayNames = map[string]time.Weekday{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}
)

// listedBefore finds the days that share the month of d: "24 and 25 June".
func listedBefore(s string, d day) []day {
	var out []day
	if s[d.start] < '0' || s[d.start] > '9' {
		return nil
	}
	for {
		m := dayInList.FindStringSubmatchIndex(s[:d.start])
		if m == nil {
			return out
		}
		n, err := strconv.Atoi(s[m[2]:m[3]])
		if err != nil || n < 1 || n >= d.date.Day() {
			return out
		}
		d = day{date: d.date.AddDate(0, 0, n-d.date.Day()), start: m[2], end: m[4]}
		out = append(out, d)
	}
}

var dayInList = match(`(?:^|[\s(])(\d{1,2})(?:st|nd|rd|th)?()(?:,|,? and|,? or| to| until| till| &) $`)

func covered(days []day, from, to int) bool {
	for _, d := range days {
		if from < d.end && d.start < to {
			return true
		}
	}
	return false
}

func startOfDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// nearestYear returns the year in which month and day come next, or the current
// one where that day is less than two months ago.
func nearestYear(m time.Month, d int, at time.Time) int {
	that := time.Date(at.Year(), m, d, 0, 0, 0, 0, at.Location())
	switch {
	case at.Sub(that) > 60*24*time.Hour:
		return at.Year() + 1
	case that.Sub(at) > 305*24*time.Hour:
		return at.Year() - 1
	}
	return at.Year()
}

// nextDay returns the next day with that number in its month, today included.
func nextDay(n int, at time.Time) time.Time {
	y, m, _ := at.Date()
	for i := range 12 {
		d := time.Date(y, m+time.Month(i), n, 0, 0, 0, 0, at.Location())
		if d.Day() == n && !d.Before(startOfDay(at)) {
			return d
		}
	}
	return startOfDay(at)
}

// dated writes after each day that s names its date, where s does not have it:
// "the 20th of April (2026-04-20)". A weekday said with a verb of the past lies
// behind.
func dated(s string, at time.Time) string {
	days := daysOf(s, at)
	for i := len(days) - 1; i >= 0; i-- { // from the end, so that spans stay true
		d := days[i]
		said := strings.ToLower(s[d.start:d.end])
		if strings.HasPrefix(said, "on ") && d.date.After(at) && liesBehind(s, d) {
			d.date = d.date.AddDate(0, 0, -7)
		}
		iso := d.date.Format(time.DateOnly)
		if !strings.Contains(s, iso) && !strings.HasPrefix(s[d.end:], "'") {
			s = s[:d.end] + " (" + iso + ")" + s[d.end:]
		}
	}
	return s
}

// liesBehind reports that the verb which governs a day stands in the past: the
// nearest one before it in its clause, or else the first one after it.
func liesBehind(s string, d day) bool {
	from, to := 0, len(s)
	if at := strings.LastIndexAny(s[:d.start], ",.;:!?"); at >= 0 {
		from = at + 1
	}
	if at := strings.IndexAny(s[d.end:], ",.;:!?"); at >= 0 {
		to = d.end + at
	}
	before := plainWords(s[from:d.start])
	for i := len(before) - 1; i >= 0; i-- {
		if past, verb := tenseOf(before, i); verb {
			return past
		}
	}
	after := plainWords(s[d.end:to])
	for i := range after {
		if past, verb := tenseOf(after, i); verb {
			return past
		}
	}
	return false
}

// tenseOf tells whether the word at i is a finite verb, as far as its form and the
// word before it show, and whether it stands in the past. A participle after a
// present auxiliary speaks of what is to come ("is planned on Friday"), and so do
// verbs of planning.
func tenseOf(words []word, i int) (past, verb bool) {
	w := words[i].lower
	before := ""
	if i > 0 {
		before = words[i-1].lower
	}
	switch {
	case before == "to", before == "will", before == "be", before == "being", presentBe[before] && (pastForms[w] || strings.HasSuffix(w, "ed")):
		return false, true
	case presentBe[w], w == "will", strings.HasSuffix(w, "'ll"), plansAhead[w]:
		return false, true
	case pastForms[w], len(w) > 4 && strings.HasSuffix(w, "ed") && !endsInEed[w]:
		return true, true
	}
	return false, statives[w] && !functionWords[w]
}

var (
	presentBe  = wordSet(`is are am i'm we're you're he's she's it's they're that's gets get`)
	plansAhead = wordSet(`booked scheduled planned arranged moved pushed postponed rescheduled delayed set agreed shifted reserved expected due`)
	endsInEed  = wordSet(`need needed indeed speed breed freed`)
	// pastForms are irregular forms of the simple past that are not also present.
	pastForms = wordSet(`was were had did went got came saw met told found sold bought left took gave made said sent lost won paid held kept felt knew thought
		brought taught caught fought wrote rode drove broke spoke woke chose froze stole flew grew drew threw blew began drank sang rang swam sank ran ate fell forgot
		became built spent lent bent dealt meant heard stood understood sat slept wept swept shot hung stuck struck dug spun wore tore swore bore rose shook died`)
)

var saysPast = match(`\b(?:was|were|had|did|sold|bought|turned|went|got|came|happened|told|found|saw|met|died|born|started|failed|called)\b`)
