package workspace

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// lossy replaces what is not UTF-8 in a name, one replacement character for each
// longest piece that could have begun a character.
func lossy(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	text, err := unicode.UTF8.NewDecoder().String(name)
	if err != nil {
		return strings.ToValidUTF8(name, "\uFFFD")
	}
	return text
}
