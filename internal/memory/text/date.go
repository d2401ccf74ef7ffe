package text

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Date is a day, month or year that a text names. What the text leaves open is
// 0: "in May" has a Month only, "in 2022" a Year only.
type Date struct {
	Year  int
	Month time.Month
	Day   int
	// Start and End are the byte span of the words that name it.
	Start, End int
}

// Time returns the first moment of d in loc; ok is false where the year is open.
func (d Date) Time(loc *time.Location) (t time.Time, ok bool) {
	if d.Year == 0 {
		return time.Time{}, false
	}
	return time.Date(d.Year, max(d.Month, 1), max(d.Day, 1), 0, 0, 0, 0, loc), true
}

// DayOf returns the calendar day of t, in t's zone.
func DayOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{Year: y, Month: m, Day: d}
}

// Dates returns the dates that s names, in order. Relative ones ("yesterday",
// "last Friday", "2 weeks ago", "next month") are resolved against at, and left
// out where at is zero. English only; a weekday alone names no date.
func Dates(s string, at time.Time) []Date {
	p := dateParser{words: dateWords(s), at: at}
	var out []Date
	for i := 0; i < len(p.words); {
		d, n := p.dateAt(i)
		if n == 0 {
			i++
			continue
		}
		d.Start, d.End = p.words[i].start, p.words[i+n-1].end
		out = append(out, d)
		i += n
	}
	return out
}

// dateWord is a word of ASCII letters or of digits, with its place.
type dateWord struct {
	text       string // lower case
	start, end int
	capital    bool
	number     int  // value of digits; -1 for letters
	gap        byte // the byte before the word, where it is all that stands between two words; else 0
}

// dateWords cuts s between letters and digits too: "15th" is two words.
func dateWords(s string) []dateWord {
	var out []dateWord
	for i := 0; i < len(s); {
		c := class(s[i])
		if c == 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		j := i
		for j < len(s) && class(s[j]) == c {
			j++
		}
		w := dateWord{text: strings.ToLower(s[i:j]), start: i, end: j, capital: 'A' <= s[i] && s[i] <= 'Z', number: -1}
		if c == 'd' && j-i <= 4 {
			w.number, _ = strconv.Atoi(s[i:j]) // at most four digits: cannot fail
		}
		if n := len(out); n > 0 && out[n-1].end == i-1 {
			w.gap = s[i-1]
		}
		out = append(out, w)
		i = j
	}
	return out
}

func class(b byte) byte {
	switch {
	case isDigit(b):
		return 'd'
	case 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z':
		return 'a'
	}
	return 0
}

var months = map[string]time.Month{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9, "october": 10,
	"november": 11, "december": 12, "jan": 1, "feb": 2, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11, "dec": 12,
}

var weekdays = map[string]time.Weekday{
	"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6,
	"sun": 0, "mon": 1, "tue": 2, "tues": 2, "wed": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6,
}

var counts = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "couple": 2, "few": 3, "several": 3,
}

// monthLeads are words after which "may" and "march" are months.
var monthLeads = wordSet("in of last next this since until till by early late mid during before after from every")

type dateParser struct {
	words []dateWord
	at    time.Time
}

// word returns the lower-case text of word i, "" outside.
func (p dateParser) word(i int) string {
	if i < 0 || i >= len(p.words) {
		return ""
	}
	return p.words[i].text
}

// number returns the value of word i where it is a number of at most four digits.
func (p dateParser) number(i int) (int, bool) {
	if i < 0 || i >= len(p.words) || p.words[i].number < 0 {
		return 0, false
	}
	return p.words[i].number, true
}

// dateAt returns the date that starts at word i and how many words it takes; 0
// words for none.
func (p dateParser) dateAt(i int) (Date, int) {
	if d, n := p.absolute(i); n > 0 {
		return d, n
	}
	if p.at.IsZero() {
		return Date{}, 0
	}
	return p.relative(i)
}

// absolute reads 2023-05-08, 5/8/2023, 8 May 2023, the 8th of May, May 8th,
// 2023, May 2023, in May, 2022.
func (p dateParser) absolute(i int) (Date, int) {
	if d, n := p.numeric(i); n > 0 {
		return d, n
	}
	if day, isNumber := p.number(i); isNumber && 1 <= day && day <= 31 {
		j := i + 1
		if ordinal(p.word(j)) {
			j++
		}
		if p.word(j) == "of" {
			j++
		}
		if m, ok := p.month(j); ok {
			return p.withYear(Date{Month: m, Day: day}, i, j+1)
		}
	}
	if m, ok := p.month(i); ok {
		if day, isNumber := p.number(i + 1); isNumber && 1 <= day && day <= 31 && !p.year(i+1) {
			j := i + 2
			if ordinal(p.word(j)) {
				j++
			}
			return p.withYear(Date{Month: m, Day: day}, i, j)
		}
		if p.year(i+1) || p.clearMonth(i) {
			return p.withYear(Date{Month: m}, i, i+1)
		}
	}
	if p.year(i) {
		y, _ := p.number(i)
		return Date{Year: y}, 1
	}
	return Date{}, 0
}

// numeric reads three numbers joined by the same - or /: year first, or month
// and day before the year (the first one is the day where it cannot be a month).
func (p dateParser) numeric(i int) (Date, int) {
	a, okA := p.number(i)
	b, okB := p.number(i + 1)
	c, okC := p.number(i + 2)
	if !okA || !okB || !okC || p.words[i+1].gap != p.words[i+2].gap || !strings.ContainsRune("-/.", rune(p.words[i+1].gap)) {
		return Date{}, 0
	}
	d := Date{Year: c, Month: time.Month(a), Day: b}
	switch {
	case isYear(p.word(i)):
		d = Date{Year: a, Month: time.Month(b), Day: c}
	case !isYear(p.word(i + 2)):
		return Date{}, 0
	case a > 12:
		d.Month, d.Day = time.Month(b), a
	}
	if d.Month < 1 || d.Month > 12 || d.Day < 1 || d.Day > 31 {
		return Date{}, 0
	}
	return d, 3
}

func ordinal(w string) bool { return w == "st" || w == "nd" || w == "rd" || w == "th" }

// month reads a month's name at word i.
func (p dateParser) month(i int) (time.Month, bool) {
	m, ok := months[p.word(i)]
	return m, ok
}

// clearMonth reports whether the month's name at word i cannot be another word:
// "may" and "march" need a capital and a word before that calls for a month.
func (p dateParser) clearMonth(i int) bool {
	if w := p.word(i); w != "may" && w != "march" {
		return len(w) > 3 || p.words[i].capital
	}
	return p.words[i].capital && monthLeads[p.word(i-1)]
}

func (p dateParser) year(i int) bool { return isYear(p.word(i)) }

// withYear completes a date of words i to j (excluded) with a year after it.
func (p dateParser) withYear(d Date, i, j int) (Date, int) {
	k := j
	if p.word(k) == "of" || p.word(k) == "in" {
		k++
	}
	if p.year(k) {
		d.Year, _ = p.number(k)
		j = k + 1
	}
	return d, j - i
}

// relative reads what depends on the day of the text.
func (p dateParser) relative(i int) (Date, int) {
	switch p.word(i) {
	case "yesterday":
		return p.days(-1), 1
	case "today", "tonight":
		return p.days(0), 1
	case "tomorrow":
		return p.days(1), 1
	case "day":
		switch {
		case p.word(i+1) == "before" && p.word(i+2) == "yesterday":
			return p.days(-2), 3
		case p.word(i+1) == "after" && p.word(i+2) == "tomorrow":
			return p.days(2), 3
		}
	case "last", "past", "previous":
		return p.step(i, -1)
	case "this":
		return p.step(i, 0)
	case "next", "coming":
		return p.step(i, 1)
	}
	return p.counted(i)
}

func (p dateParser) days(n int) Date { return DayOf(p.at.AddDate(0, 0, n)) }

// step reads last, this or next (direction -1, 0, 1) and a unit or a weekday.
func (p dateParser) step(i, direction int) (Date, int) {
	unit := p.word(i + 1)
	if day, ok := weekdays[unit]; ok && (len(unit) > 3 || p.words[i+1].capital) {
		return p.weekday(day, direction), 2
	}
	if m, ok := p.month(i + 1); ok && (len(unit) > 3 || p.words[i+1].capital) {
		return Date{Year: p.yearOf(m, direction), Month: m}, 2
	}
	switch unit {
	case "night", "evening":
		if direction <= 0 {
			return p.days(direction), 2
		}
	case "morning", "afternoon":
		if direction == 0 {
			return p.days(0), 2
		}
	case "week":
		return p.days(7 * direction), 2
	case "weekend":
		if direction < 0 {
			return p.weekday(time.Saturday, -1), 2
		}
		return p.days(int(time.Saturday-p.at.Weekday()) + 7*direction), 2
	case "month":
		return p.shift(0, direction), 2
	case "year":
		return Date{Year: p.at.Year() + direction}, 2
	}
	return Date{}, 0
}

// weekday returns the last such day before, the one of this week (from Monday),
// or the first one after.
func (p dateParser) weekday(day time.Weekday, direction int) Date {
	gap := int(day - p.at.Weekday())
	switch {
	case direction < 0 && gap >= 0:
		gap -= 7
	case direction > 0 && gap <= 0:
		gap += 7
	case direction == 0 && day == time.Sunday && gap < 0:
		gap += 7
	}
	return p.days(gap)
}

// yearOf returns the year of the last, this or the next month m.
func (p dateParser) yearOf(m time.Month, direction int) int {
	y := p.at.Year()
	switch {
	case direction < 0 && m >= p.at.Month():
		return y - 1
	case direction > 0 && m <= p.at.Month():
		return y + 1
	}
	return y
}

// shift returns the month that lies years and months away.
func (p dateParser) shift(years, months int) Date {
	y, m, _ := p.at.Date()
	t := time.Date(y+years, m+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	return Date{Year: t.Year(), Month: t.Month()}
}

// counted reads "2 weeks ago", "a couple of days later", "in three months".
func (p dateParser) counted(i int) (Date, int) {
	first, sign := i, 0
	if p.word(i) == "in" {
		sign, i = 1, i+1
	}
	if p.word(i) == "a" && (p.word(i+1) == "couple" || p.word(i+1) == "few") {
		i++
	}
	n, known := counts[p.word(i)]
	if digits, isNumber := p.number(i); isNumber && digits < 1000 {
		n, known = digits, true
	}
	if !known {
		return Date{}, 0
	}
	i++
	if p.word(i) == "of" {
		i++
	}
	unit := strings.TrimSuffix(p.word(i), "s")
	i++
	if sign == 0 {
		switch {
		case p.word(i) == "ago" || p.word(i) == "back" || p.word(i) == "earlier":
			sign = -1
		case p.word(i) == "from" && (p.word(i+1) == "now" || p.word(i+1) == "today"):
			sign = 1
			i++
		default:
			return Date{}, 0
		}
		i++
	}
	n *= sign
	switch unit {
	case "day":
		return p.days(n), i - first
	case "week":
		return p.days(7 * n), i - first
	case "month":
		return p.shift(0, n), i - first
	case "year":
		return Date{Year: p.at.Year() + n}, i - first
	}
	return Date{}, 0
}

// Match says how well a date asked for fits a date known, 0 to 1. Open parts
// fit weakly; a year that differs does not fit at all.
func (d Date) Match(known Date) float64 {
	if d.Year != 0 && known.Year != 0 && d.Year != known.Year {
		return 0
	}
	if d.Month == 0 || known.Month == 0 {
		if d.Year != 0 && d.Year == known.Year {
			return .3
		}
		return 0
	}
	if d.Day == 0 || known.Day == 0 {
		if d.Month == known.Month {
			return .7
		}
		return 0
	}
	gap := dayOfYear(d) - dayOfYear(known)
	if gap < 0 {
		gap = -gap
	}
	switch {
	case d.Month == known.Month && gap <= 1:
		return 1
	case d.Month == known.Month && gap <= 7:
		return .8
	case d.Month == known.Month:
		return .4
	case gap <= 7:
		return .6
	}
	return 0
}

// dayOfYear counts in a leap year, so that open years compare.
func dayOfYear(d Date) int {
	return time.Date(2000, d.Month, d.Day, 0, 0, 0, 0, time.UTC).YearDay()
}
