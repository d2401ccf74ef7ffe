package alf

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxPath bounds a path in bytes, maxSegment one name in it: what file systems
// allow.
const (
	maxPath    = 4096
	maxSegment = 255
)

// CheckPath reports why a path must not be used as one below a directory: it
// is empty, absolute, has a drive letter, a backslash, a control character, an
// empty, "." or ".." segment, or a device name of some systems.
func CheckPath(path string) error {
	reason := ""
	switch {
	case path == "":
		reason = "is empty"
	case len(path) > maxPath:
		reason = "is longer than 4096 bytes"
	case !utf8.ValidString(path):
		reason = "is not UTF-8"
	case strings.HasPrefix(path, "/"):
		reason = "is absolute"
	case len(path) > 1 && path[1] == ':' && unicode.IsLetter(rune(path[0])):
		reason = "has a drive letter"
	case strings.ContainsRune(path, '\\'):
		reason = "has a backslash"
	case strings.ContainsFunc(path, unicode.IsControl):
		reason = "has a control character"
	}
	for segment := range strings.SplitSeq(path, "/") {
		if reason != "" {
			break
		}
		reason = checkSegment(segment)
	}
	if reason == "" {
		return nil
	}
	if len(path) > 120 {
		path = path[:120] + "…"
	}
	return memory.Errorf(memory.ErrDenied, "path %s %s", strconv.QuoteToGraphic(path), reason)
}

func checkSegment(name string) string {
	switch {
	case name == "":
		return "has an empty segment"
	case name == "." || name == "..":
		return "leaves its directory"
	case len(name) > maxSegment:
		return "has a name longer than 255 bytes"
	}
	stem, _, _ := strings.Cut(name, ".")
	if isDevice(strings.ToLower(strings.TrimRight(stem, " "))) {
		return "has a name that some systems reserve for devices"
	}
	return ""
}

func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	numbered := strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")
	return numbered && len(stem) == 4 && stem[3] >= '0' && stem[3] <= '9'
}

// FileName returns text as a file name: letters, digits, "-", "_" and "." are
// kept and everything else is a "-". It is never empty, hidden or reserved.
func FileName(text string) string {
	var sb strings.Builder
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("-_.", r) {
			r = '-'
		}
		if sb.Len()+utf8.RuneLen(r) > 120 {
			break
		}
		sb.WriteRune(r)
	}
	name := strings.Trim(sb.String(), "-.")
	if name == "" || checkSegment(name) != "" {
		return "memory-" + name
	}
	return name
}
