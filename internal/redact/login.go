package redact

import (
	"strings"
	"unicode/utf8"
)

// loginAt reads a user and a password after a cue that ends at p: "log in with jo / x", "credentials are jo:x".
// It always answers 0: what stands before the password is still to be read.
func (sc *scanner) loginAt(start, p int) int {
	s := sc.s
	if start > 0 && isLetter(s[start-1]) && isLetter(s[start]) {
		return 0
	}
	previous := ""
	for range 10 {
		for p < len(s) && (isBlank(s[p]) || strings.IndexByte(":=(*`\"'", s[p]) >= 0) {
			p++
		}
		end := wordEnd(s, p)
		if end == p {
			return 0
		}
		word := s[p:end]
		at := strings.IndexAny(word, ":/|")
		switch {
		case at == 0 && len(word) > 1 && word[0] == '/' && isLetter(word[1]): // a path, as in "the login page is /login?next=/home"
			return 0
		case at >= 0 && !strings.Contains(word, "://"):
			if strings.ContainsAny(word[:at], "\"'{}") || sc.second(p, p+at, previous) > 0 {
				return 0
			}
		case strings.ContainsAny(word, "\"{}"):
			return 0
		}
		if plain := decodeBase64(word); isBasic(word) && utf8.ValidString(plain) && stands(plain, shapeOf(plain)) {
			sc.add("authorization", p, end)
			return 0
		}
		if sh := shapeOf(word); (isOneOf(withWords, previous) || isOneOf(andWords, previous) && sh.digits > 1 && sh.symbols+sh.joiners > 0) && len(word) >= 8 && sh.digits > 0 && stands(word, sh) && !isResourceName(word, sh) {
			sc.take(password, p, bare)
			return 0
		}
		if tail := word[len(word)-1]; tail == '.' || tail == ';' || tail == '?' {
			return 0
		}
		previous, p = word, end
	}
	return 0
}

// withWords join a user and a password.
var withWords = setOf(`with using mit con avec com met z с`)

// andWords may join them too, where what follows is no other account.
var andWords = setOf(`and und et y e en / plus`)

// second reads the password after the mark at i that parts it from the user, whose word begins at begin or is the one before.
func (sc *scanner) second(begin, i int, previous string) int {
	s := sc.s
	if i == begin && previous == "" {
		return 0
	}
	p := i + 1
	if p < len(s) && (s[p] == '/' || s[p] == s[i]) {
		p++
	}
	apart := i == begin || p < len(s) && isBlank(s[p])
	p = skipBlanks(s, p)
	if v, ok := sc.quotedValue(p); ok {
		if v.end-v.start >= 4 && !isPlaceholder(v.of(s)) {
			return sc.addValue(password, v)
		}
		return 0
	}
	v := sc.plainValue(p, spoken, maxJudged)
	sh := shapeOf(v.of(s))
	if v.end-v.start < 5 || !stands(v.of(s), sh) || isPlaceholder(v.of(s)) || !apart && (isPath(s[begin:v.end]) || sh.letters() == 0) {
		return 0
	}
	return sc.addValue(password, v)
}
