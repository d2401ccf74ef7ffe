package workspace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// The namespaces of workspace records.
const (
	Daily         = "daily"
	Curated       = "curated"
	ActiveContext = "active-context"
	Project       = "project"
	Procedural    = "procedural"
	Other         = "workspace"
)

// The memory types and ways of extraction of workspace records.
const (
	Semantic     = "semantic"
	Episodic     = "episodic"
	Summary      = "summary"
	Procedure    = "procedural"
	UserAuthored = "user_authored"
	AgentWritten = "agent_written"
)

// class is what a file's path says of its records.
type class struct {
	namespace, memoryType, method string

	dated bool
	day   time.Time // of a dated file: midnight UTC
	exact bool      // its name is YYYY-MM-DD.md to the letter
}

// classify reads a path relative to the workspace. Type and namespace are tested
// in different orders, as the reference client does.
func classify(origin string) class {
	p := cases.Lower(language.Und).String(origin)
	gatingHyphen := strings.Contains(p, "gating-policies")
	gating := gatingHyphen || strings.Contains(p, "gating_policies")
	c := class{namespace: Other, memoryType: Semantic, method: AgentWritten}
	c.day, c.exact, c.dated = dayOf(p)
	switch {
	case c.dated:
		c.memoryType = Episodic
	case p == "memory.md":
	case strings.Contains(p, "active-context"):
		c.memoryType = Summary
	case gating:
		c.memoryType = Procedure
	}
	switch {
	case c.dated:
		c.namespace = Daily
	case p == "memory.md":
		c.namespace = Curated
	case strings.Contains(p, "active-context"):
		c.namespace = ActiveContext
	case strings.HasPrefix(p, "memory/project-"):
		c.namespace = Project
	case gating:
		c.namespace = Procedural
	}
	if p == "memory.md" || gatingHyphen {
		c.method = UserAuthored
	}
	return c
}

// dayOf returns the day that a lower-case path names: directly below memory/, a
// date and nothing else. The date is read as leniently as the reference client
// reads it: white space before a number, one or two digits of month and day, one
// to four of the year or any after a sign.
func dayOf(p string) (day time.Time, exact, dated bool) {
	stem, inside := strings.CutPrefix(p, MemoryDir+"/")
	stem, isMarkdown := strings.CutSuffix(stem, ".md")
	if !inside || !isMarkdown {
		return time.Time{}, false, false
	}
	rest := strings.TrimLeftFunc(stem, unicode.IsSpace)
	sign, width := 1, 4
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		if rest[0] == '-' {
			sign = -1
		}
		rest, width = rest[1:], len(rest)
	}
	year, rest, ok := number(rest, width)
	if !ok || !strings.HasPrefix(rest, "-") {
		return time.Time{}, false, false
	}
	month, rest, ok := number(strings.TrimLeftFunc(rest[1:], unicode.IsSpace), 2)
	if !ok || !strings.HasPrefix(rest, "-") {
		return time.Time{}, false, false
	}
	date, rest, ok := number(strings.TrimLeftFunc(rest[1:], unicode.IsSpace), 2)
	if !ok || rest != "" || year > 262_142 {
		return time.Time{}, false, false
	}
	day = time.Date(sign*year, time.Month(month), date, 0, 0, 0, 0, time.UTC)
	if day.Month() != time.Month(month) || day.Day() != date {
		return time.Time{}, false, false
	}
	return day, stem == fmt.Sprintf("%04d-%02d-%02d", year, month, date) && year > 0, true
}

// number reads up to width ASCII digits off the front of s.
func number(s string, width int) (n int, rest string, ok bool) {
	end := 0
	for end < len(s) && end < width && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	return n, s[end:], err == nil
}
