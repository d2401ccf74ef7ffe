package redact

import (
	"strings"
	"unicode/utf8"
)

// leastSeed is the number of words of the shortest wallet phrase.
const leastSeed = 12

// seedAt reads the words of a wallet phrase after a cue that ends at p.
func (sc *scanner) seedAt(p int) int {
	s := sc.s
	limit := min(len(s), p+120)
	for p < limit {
		for p < limit && !isLower(s[p]) {
			p++
		}
		start, end, next := seedRun(s, p)
		if end > 0 {
			sc.add("seed_phrase", start, end)
			return 0
		}
		p = max(next, p+1)
	}
	return 0
}

// seedRun reads words of small letters from p on, with blanks, line breaks, numbers and commas between them.
// It answers their bounds if they may be a wallet phrase, and where reading stopped.
func seedRun(s string, p int) (start, end, next int) {
	start = p
	count, full := 0, 0
	for count < 25 {
		w := p
		for w < len(s) && w-p < 12 && isLower(s[w]) {
			w++
		}
		word := s[p:w]
		if len(word) < 2 || len(word) > 10 || neverSeeds[word] || w < len(s) && (isAlnum(s[w]) || s[w] >= utf8.RuneSelf) {
			if count == 0 {
				return 0, 0, w
			}
			break
		}
		count++
		end = w
		if count == 12 || count == 15 || count == 18 || count == 21 || count == 24 {
			full = w
		}
		p = w
		if strings.HasPrefix(s[p:], ":") || strings.HasPrefix(s[p:], "):") {
			return 0, 0, p // a heading
		}
		ends := p < len(s) && strings.IndexByte(".!?\"'`", s[p]) >= 0
		for q := p + 10; p < len(s) && p < q && (isSpace(s[p]) || isDigit(s[p]) || strings.IndexByte(",.;:)(-|/\\\"'>*#", s[p]) >= 0); p++ {
			if s[p] == '\\' && p+1 < len(s) && strings.IndexByte("nrt", s[p+1]) >= 0 {
				p++
			}
		}
		if ends && p < len(s) && (p == w+1 || isUpper(s[p])) || p >= len(s) || isUpper(s[p]) {
			full = max(full, end)
			if count >= leastSeed {
				return start, end, p
			}
			break
		}
	}
	if count < leastSeed {
		return 0, 0, p
	}
	return start, full, p
}

// neverSeeds are frequent words that no list of wallet words has.
var neverSeeds = setOf(`
	the and of to is be in on it for your are was by or as at an if so my we he his she her its do does not should has had have were
	with from you must may please never keep write down them our their into than would could which who been only when where
	der die das und ist nicht ein eine mit von zu auf den dem des im les des une est que pas sur pour dans los las una por con para`)
