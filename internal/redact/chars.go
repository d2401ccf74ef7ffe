package redact

import "strings"

// charset is a set of ASCII bytes.
type charset [128]bool

func newCharset(chars string) *charset {
	var set charset
	for i := range len(chars) {
		set[chars[i]] = true
	}
	return &set
}

func (set *charset) has(c byte) bool { return c < 128 && set[c] }

const (
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	alnums = lowers + uppers + digits
)

var (
	charsAlnum   = newCharset(alnums)
	charsUpper   = newCharset(uppers + digits)
	charsWord    = newCharset(alnums + "_")
	charsDash    = newCharset(alnums + "_-")
	charsDot     = newCharset(alnums + "_-.")
	charsBase64  = newCharset(alnums + "+/=_-")
	charsPercent = newCharset(alnums + "_-.%+/=")
	charsTilde   = newCharset(alnums + "_-.~")
	charsPath    = newCharset(alnums + "_-/.@%?&=:+")
	charsHash    = newCharset(alnums + "$./+=,-_*")
	charsName    = newCharset(alnums + "_-.$@")
)

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }
func isBlank(c byte) bool  { return c == ' ' || c == '\t' }
func isSpace(c byte) bool  { return isBlank(c) || c == '\n' || c == '\r' }
func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// startsWord tells whether a word may begin at i: the byte before it is no letter or digit,
// or it belongs to an escape such as \n, %3D or \u003d.
func startsWord(s string, i int) bool {
	if i == 0 || !isAlnum(s[i-1]) {
		return true
	}
	c := s[i-1]
	switch {
	case i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf", c) >= 0:
		return true
	case i >= 3 && s[i-3] == '%' && isHex(s[i-2]) && isHex(c):
		return true
	case i >= 4 && s[i-4] == '\\' && s[i-3] == 'x' && isHex(s[i-2]) && isHex(c):
		return true
	}
	return i >= 6 && s[i-6] == '\\' && s[i-5] == 'u' && isHex(s[i-4]) && isHex(s[i-3]) && isHex(s[i-2]) && isHex(c)
}

// hasFold tells whether s has the lower-case text at i, in whatever case.
func hasFold(s string, i int, text string) bool {
	return i >= 0 && len(s)-i >= len(text) && strings.EqualFold(s[i:i+len(text)], text)
}

// run answers the end of the longest stretch of bytes of set that begins at i, at most limit bytes.
func run(s string, i int, set *charset, limit int) int {
	end := min(len(s), i+limit)
	for i < end && set.has(s[i]) {
		i++
	}
	return i
}

// skipBlanks answers the first position from i on that holds no blank.
func skipBlanks(s string, i int) int {
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	return i
}

// skipSpaces answers the first position from i on that holds no white space, looking at no more than 256 bytes.
func skipSpaces(s string, i int) int {
	for limit := i + 256; i < len(s) && i < limit && isSpace(s[i]); i++ {
	}
	return i
}

// isOneOf tells whether word, compared without case, is in set, without allocating.
func isOneOf(set map[string]bool, word string) bool {
	var buf [40]byte
	if len(word) > len(buf) {
		return false
	}
	for i := range len(word) {
		buf[i] = lower(word[i])
	}
	return set[string(buf[:len(word)])]
}

// setOf makes a set of the words of a text.
func setOf(text string) map[string]bool {
	words := strings.Fields(text)
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}
