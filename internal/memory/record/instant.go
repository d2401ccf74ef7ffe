package record

import (
	"regexp"
	"strings"
	"time"
)

// formatTime writes the contract's form of a time: UTC, offset +00:00,
// microseconds only where they are not zero. As text it sorts by time.
func formatTime(t time.Time) string {
	t = t.UTC()
	if micros := t.Nanosecond() / 1000; micros != 0 {
		return t.Format("2006-01-02T15:04:05.000000+00:00")
	}
	return t.Format("2006-01-02T15:04:05+00:00")
}

var timeText = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?)?$`)

// parseTime reads RFC 3339 and its common variants: a blank for the T, no
// seconds, a date alone. Without an offset it stands for UTC, and zoned is
// false. Times are cut to microseconds.
func parseTime(s string) (t time.Time, zoned, ok bool) {
	m := timeText.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false, false
	}
	date, clock, seconds, zone := m[1], m[2], m[3], strings.ToUpper(m[4])
	if clock == "" {
		clock = "00:00"
	}
	if seconds == "" {
		seconds = ":00"
	}
	switch {
	case zone == "":
		zone = "Z"
	case len(zone) == 5:
		zone = zone[:3] + ":" + zone[3:]
	}
	t, err := time.Parse(time.RFC3339Nano, date+"T"+clock+seconds+zone)
	if year := t.UTC().Year(); err != nil || year < 0 || year > 9999 { // no four digits in UTC
		return time.Time{}, false, false
	}
	return t.Truncate(time.Microsecond), m[4] != "", true
}

// canonicalTime writes a time that has an offset in the store's own form, so
// that one column holds one form. What is no such time is returned as it is.
func canonicalTime(s string) string {
	t, zoned, ok := parseTime(s)
	if !ok || !zoned {
		return s
	}
	return formatTime(t)
}

// expired reports whether a record of that age must no longer be shown: now −
// created > ttl, strictly, in microseconds. A creation time that cannot be read
// or has no offset says nothing, and the record is shown.
func expired(createdAt string, ttlSeconds *int64, now time.Time) bool {
	if ttlSeconds == nil {
		return false
	}
	created, zoned, ok := parseTime(createdAt)
	if !ok || !zoned {
		return false
	}
	const second = int64(time.Second / time.Microsecond)
	age := now.UnixMicro() - created.UnixMicro()
	whole, rest := age/second, age%second
	if rest < 0 {
		whole, rest = whole-1, rest+second
	}
	return whole > *ttlSeconds || whole == *ttlSeconds && rest > 0
}

// instantSQL is the SQL expression of the time in a text column, in
// microseconds of Unix time; NULL where parseTime would refuse it. It is used in
// an index, so it calls nothing that depends on the day: the pattern in front
// keeps 'now' from the date functions. They round milliseconds, so the fraction
// is read apart.
func instantSQL(column string) string {
	return strings.ReplaceAll(instantExpr, "X", column)
}

const instantExpr = `CASE WHEN X GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND X NOT GLOB '*[^-+0-9TtZz:. ]*' AND date(substr(X, 1, 10)) = substr(X, 1, 10) THEN
	CAST(strftime('%s', upper(substr(X, 1, CASE WHEN substr(X, 17, 1) = ':' THEN 19 ELSE 16 END)) ||
		CASE WHEN length(X) > 16 AND substr(X, -6) GLOB '[+-][0-9][0-9]:[0-9][0-9]' THEN substr(X, -6)
			WHEN length(X) > 16 AND substr(X, -5) GLOB '[+-][0-9][0-9][0-9][0-9]' THEN substr(X, -5, 3) || ':' || substr(X, -2)
			ELSE '' END) AS INTEGER) * 1000000
	+ CASE WHEN substr(X, 20, 1) = '.' THEN CAST(CAST('0' || substr(X, 20) AS REAL) * 1000000 + 0.001 AS INTEGER) ELSE 0 END END`
