package workspace

import (
	"regexp"
	"slices"
	"strings"
)

// Marks around what Openclawssy writes into a workspace's Markdown. Each stands on
// a line of its own.
const (
	BeginMark = "<!-- openclawssy:begin -->"
	EndMark   = "<!-- openclawssy:end -->"
)

// ownNote ends a line that was written for an item or of a session.
var ownNote = regexp.MustCompile(`<!-- (MEM-[0-9]+|session [A-Za-z0-9._:-]+) -->\s*$`)

// NotedItem returns the handle of the item that a line was written for; "" for
// none.
func NotedItem(line string) string {
	found := ownNote.FindStringSubmatch(line)
	if found == nil || !strings.HasPrefix(found[1], "MEM-") {
		return ""
	}
	return found[1]
}

// WithoutOwn blanks the lines of a text that Openclawssy has written, so that the
// others keep their numbers.
func WithoutOwn(text string) string {
	if !strings.Contains(text, "<!-- ") {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	inside := false
	for i, line := range lines {
		bare := strings.TrimSpace(line)
		switch {
		case bare == BeginMark && !inside:
			inside = slices.ContainsFunc(lines[i:], func(l string) bool { return strings.TrimSpace(l) == EndMark })
			lines[i] = lineEnd(line)
		case inside || bare == EndMark || ownNote.MatchString(line):
			inside = inside && bare != EndMark
			lines[i] = lineEnd(line)
		}
	}
	return strings.Join(lines, "")
}

func lineEnd(line string) string { return line[len(strings.TrimRight(line, "\r\n")):] }
