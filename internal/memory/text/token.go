// Package text cuts text into what is indexed and searched: words, their stems
// and prefixes, bigrams of scripts written without spaces, passages, and the
// dates that a text names. Writers and queries use the same functions, so that
// what was indexed can be found. It does no I/O.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

const (
	maxWord   = 40 // runes of a word that are looked at: no language needs more
	prefixLen = 4  // runes of a word in the prefix column
)

// unspaced are the scripts that write words without a space between them, or,
// as Korean does, with endings that grow onto the word.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// Words returns the words of s in order: maximal runs of letters and digits, in
// lower case, compatibility forms and accents folded (NFKC, marks dropped). A
// run of an unspaced script is one word; a run ends where the script changes
// between spaced and unspaced. Long words are cut to 40 runes.
func Words(s string) []string {
	words := make([]string, 0, len(s)/6+1)
	EachWord(s, func(word []byte) { words = append(words, string(word)) })
	return words
}

// EachWord hands over the words of s, as Words returns them, one after the other.
// A word is valid within the call that it is handed to.
func EachWord(s string, visit func(word []byte)) {
	word := make([]byte, 0, 4*maxWord)
	runes, wide := 0, false
	flush := func() {
		if runes > 0 {
			visit(word)
		}
		word, runes = word[:0], 0
	}
	for _, r := range compatible(s) {
		if r >= utf8.RuneSelf {
			if unicode.Is(unicode.M, r) {
				continue // what it modified stays, in the word
			}
			r = foldRune(r)
		}
		if !isWordRune(r) {
			flush()
			continue
		}
		if w := r >= 0x0E00 && unicode.In(r, unspaced...); w != wide {
			flush()
			wide = w
		}
		if runes < maxWord || wide {
			word = utf8.AppendRune(word, lower(r))
			runes++
		}
	}
	flush()
}

// compatible returns s as valid UTF-8 in the form NFKC.
func compatible(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return norm.NFKC.String(strings.ToValidUTF8(s, " "))
		}
	}
	return s
}

// foldRune takes the accent off a letter. Scripts in which the mark makes
// another letter (kana) keep it.
func foldRune(r rune) rune {
	if !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
		return r
	}
	d := norm.NFD.PropertiesString(string(r)).Decomposition()
	if len(d) == 0 {
		return r
	}
	base, _ := utf8.DecodeRune(d)
	return base
}

func lower(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isWide reports whether word, one of Words, is of an unspaced script.
func isWide(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return r >= 0x0E00 && unicode.In(r, unspaced...)
}

// Stem returns the form under which a word of Words is indexed: the base of an
// irregular form, then its English stem (Snowball). Words with letters outside
// a-z are their own stems.
func Stem(word string) string {
	if base, irregular := bases[word]; irregular {
		word = base
	}
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}

// Bigrams returns each two neighbouring runes of a word of an unspaced script;
// none for a word of one rune.
func Bigrams(word string) []string {
	runes := []rune(word)
	if len(runes) < 2 {
		return nil
	}
	out := make([]string, 0, len(runes)-1)
	for i := range len(runes) - 1 {
		out = append(out, string(runes[i:i+2]))
	}
	return out
}

// prefix returns the first four runes of a word.
func prefix(word string) string {
	if len(word) <= prefixLen {
		return word
	}
	n := 0
	for i := range word {
		if n == prefixLen {
			return word[:i]
		}
		n++
	}
	return word
}

// Columns are what a full-text row (tokenizer unicode61) holds of one text. A
// term of a Query is found in Main or Prefix as it stands there.
type Columns struct {
	// Main holds the stems of all words in order; of unspaced scripts the
	// bigrams. FTS5's own porter tokenizer is not used, so that the terms, their
	// document frequencies and the static features of a passage agree.
	Main string
	// Prefix holds the first four letters of each word that is no stopword; of
	// unspaced scripts each single character, which also serves queries of one.
	Prefix string
}

// Index returns the columns of a text. Join what belongs to one row (text and
// image caption, title and content) with a line break.
func Index(s string) Columns {
	var main, pre strings.Builder
	main.Grow(len(s))
	pre.Grow(len(s) / 2)
	for _, w := range Words(s) {
		eachTerm(w, func(t string) { add(&main, t) })
		eachPrefix(w, func(t string) { add(&pre, t) })
	}
	return Columns{Main: main.String(), Prefix: pre.String()}
}

// Content returns the terms of s that say what it is about, in order and as often as
// they stand there: those of the main column of its words that are no stopwords.
func Content(s string) []string {
	var out []string
	for _, w := range Words(s) {
		if !stopwords[w] {
			eachTerm(w, func(t string) { out = append(out, t) })
		}
	}
	return out
}

func add(b *strings.Builder, term string) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(term)
}

// eachTerm calls yield with the terms of the main column for one word.
func eachTerm(word string, yield func(string)) {
	if !isWide(word) {
		yield(Stem(word))
		return
	}
	for _, b := range Bigrams(word) {
		yield(b)
	}
}

// eachPrefix calls yield with the terms of the prefix column for one word.
func eachPrefix(word string, yield func(string)) {
	switch {
	case isWide(word):
		for _, r := range word {
			yield(string(r))
		}
	case !stopwords[word]:
		yield(prefix(word))
	}
}
