package memory

import (
	"strings"
	"unicode"
)

// The note of an item that took another's place: what the other said, and behind
// it what of that still holds.
const (
	NoteOpens  = " (previously: "
	NoteLeaves = " Unchanged:"
)

// CutNote returns what a title or content says itself, and its note from the bracket
// on; "" for none.
func CutNote(text string) (own, note string) {
	i := strings.Index(text, NoteOpens[1:])
	if i < 0 {
		return text, ""
	}
	return strings.TrimRightFunc(text[:i], unicode.IsSpace), text[i:]
}
