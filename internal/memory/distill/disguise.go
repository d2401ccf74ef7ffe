package distill

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leet maps digits and signs that stand for letters.
var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i", "|", "l", "8", "b", "9", "g", "+", "t")

// squeezed is what an order to ignore instructions looks like when everything but
// its letters is gone.
var squeezed = match(`(ignor(?:e|ing)|disregard|forget|override|bypass)(all|any|every|of|your|the|my|our|these|those|and)*(previous|prior|earlier|preceding|above|former|system|safety)(system|developer|safety|user)*(instructions?|prompts?|rules|orders|guidelines|directives?|commands?)`)

// spelledOrder is an order in words of which each letter stands alone.
var spelledOrder = match(`(?:ignore|disregard|forget|override|bypass|obey)[a-z]{0,30}(?:instruction|prompt|rules|orders|guideline|directive|command)|(?:send|forward|reveal|share)[a-z]{0,20}(?:password|mail|secret|contact|diary|token|key)`)

// spelledOut returns the letters of an unmasked text that stand alone, where there
// are so many of them, one after the other, that they must be words.
func spelledOut(plain string) string {
	const least = 12
	var all, run []byte
	for at := 0; at < len(plain); at++ {
		if !isLowerLetter(plain, at) {
			continue
		}
		if isLowerLetter(plain, at-1) || isLowerLetter(plain, at+1) {
			if len(run) >= least {
				all = append(all, run...)
			}
			run = run[:0]
			continue
		}
		run = append(run, plain[at])
	}
	if len(run) >= least {
		all = append(all, run...)
	}
	return string(all)
}

func isLowerLetter(s string, at int) bool {
	return at >= 0 && at < len(s) && s[at] >= 'a' && s[at] <= 'z'
}

// jumbled reports such an order in a form that people still read, or that a
// program undoes, in a text that is unmasked: spaced or dotted letters, digits for letters, backwards, or
// turned in the alphabet. Where own is true, the text is the user's, who may speak
// of such an order as it stands.
func jumbled(plain string, own bool) bool {
	if len(plain) > maxJumbled {
		plain = plain[:maxJumbled]
	}
	if spelt := spelledOut(plain); spelt != "" && spelledOrder.MatchString(spelt) {
		return true
	}
	forms := []string{letters(plain)}
	if spelt := letters(leet.Replace(plain)); spelt != forms[0] {
		forms = append(forms, spelt)
	}
	for at, form := range forms {
		backwards := []byte(form)
		slices.Reverse(backwards)
		for i, f := range []string{form, string(backwards), mirrored(form)} {
			if own && i == 0 { // what stands there in plain words is not hidden
				if at > 0 && (len(squeezed.FindAllString(f, -1)) > len(squeezed.FindAllString(forms[0], -1)) || misspelt(f) && !misspelt(forms[0])) {
					return true
				}
				continue
			}
			if orders(f) || turned(f) || orders(strings.Replace(f, "ignore", "", 1)) || misspelt(f) {
				return true
			}
		}
	}
	return false
}

// misspelt reports the order with some letters wrong, as where look-alikes stand
// for them: one of the verb, so that one half of it is right, and one in six of
// what follows.
func misspelt(s string) bool {
	for _, phrase := range []struct {
		verb  string
		rests []string
	}{
		{"ignore", []string{"allpreviousinstructions", "previousinstructions", "yourpreviousinstructions", "yourinstructions"}},
		{"disregard", []string{"previousinstructions", "allpreviousinstructions"}},
	} {
		half := len(phrase.verb) / 2
		for _, part := range []struct{ from, to int }{{0, half}, {half, len(phrase.verb)}} {
			for found := range indexes(s, phrase.verb[part.from:part.to]) {
				at := found - part.from
				if at < 0 || !nearly(s[at:], phrase.verb, 1) {
					continue
				}
				for _, rest := range phrase.rests {
					if nearly(s[at+len(phrase.verb):], rest, len(rest)/6) {
						return true
					}
				}
			}
		}
	}
	return false
}

// nearly reports whether s begins with want but for so many letters.
func nearly(s, want string, wrong int) bool {
	if len(s) < len(want) {
		return false
	}
	for i := range len(want) {
		if s[i] != want[i] {
			if wrong--; wrong < 0 {
				return false
			}
		}
	}
	return true
}

// indexes yields every place of part in s, also where they overlap.
func indexes(s, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; ; {
			at := strings.Index(s[from:], part)
			if at < 0 || !yield(from+at) {
				return
			}
			from += at + 1
		}
	}
}

// orders reports the order in a text of letters alone.
func orders(s string) bool {
	for _, noun := range []string{"instruction", "prompt", "rules", "orders", "guidelines", "directive", "command"} {
		if strings.Contains(s, noun) {
			return squeezed.MatchString(s)
		}
	}
	return false
}

const maxJumbled = 4096 // bytes that are looked at

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, s)
}

// turned reports the order with all letters moved by the same step, which keeps
// the steps between letters.
func turned(s string) bool {
	between := steps(s)
	for _, core := range []string{"previousinstruction", "priorinstruction", "systemprompt", "previousprompt", "previousrules", "aboveinstruction", "earlierinstruction"} {
		for at := range indexes(between, steps(core)) {
			if s[at] != core[0] {
				return true
			}
		}
	}
	return false
}

// steps are how far, in the alphabet, it is from each letter to the next.
func steps(s string) string {
	out := make([]byte, max(0, len(s)-1))
	for i := range out {
		out[i] = (s[i+1] - s[i] + 26) % 26
	}
	return string(out)
}

// mirrored swaps a for z, b for y and so on.
func mirrored(s string) string {
	return strings.Map(func(r rune) rune { return 'a' + 'z' - r }, s)
}

// commonWords are those that any English sentence is full of.
var commonWords = wordSet(`the of and to a in is it you that he was for on are with as i his they be at one have this from or had by but not what all were we when your can said there use an each which she do how their if will up
	other about out many then them these so some her would make like him into time has look two more write go see no way could my than first been call who its now find long down day did get come made may part any send only never always must new user me`)

// isEnglish reports whether a sentence of four words or more reads as English: in
// what is not, as good as none of its words are common.
func isEnglish(sentence string) bool {
	words, common := 0, 0
	for w := range strings.FieldsFuncSeq(sentence, func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' }) {
		if words++; commonWords[w] {
			common++
		}
	}
	return words >= 4 && common*10 >= words*3
}

// unscrambled returns what sentences of an unmasked text say that are no English as they stand, and
// are once their letters are turned in the alphabet, mirrored, or read backwards, as a whole or word by word.
func unscrambled(plain string) []string {
	var found []string
	for sentence := range sentencesOf(plain) {
		if sentence = clipBytes(strings.TrimSpace(sentence), 1024); strings.Count(sentence, " ") < 3 || isEnglish(sentence) {
			continue
		}
		backwards := []rune(sentence)
		slices.Reverse(backwards)
		words := strings.Fields(sentence)
		for i, w := range words {
			turned := []rune(w)
			slices.Reverse(turned)
			words[i] = string(turned)
		}
		forms := []string{string(backwards), strings.Join(words, " "), alphabet(sentence, func(r rune) rune { return 'z' - r })}
		for step := rune(1); step < 26; step++ {
			forms = append(forms, alphabet(sentence, func(r rune) rune { return (r - 'a' + step) % 26 }))
		}
		for _, form := range forms {
			if isEnglish(form) {
				found = append(found, form)
			}
		}
	}
	return found
}

// alphabet puts another letter in the place of each: to says which, from 0.
func alphabet(s string, to func(rune) rune) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return r
		}
		return 'a' + to(r)
	}, s)
}

// maxLayers is how many codes around each other are undone.
const maxLayers = 3

var (
	base64Run  = match(`[A-Za-z0-9+/_-]{12,}={0,2}`)
	base32Run  = match(`[A-Z2-7]{24,}={0,6}`)
	hexRun     = match(`(?i)(?:(?:0x|\\x)?[0-9a-f]{2}[ :,]?){10,}`)
	numberRun  = match(`(?:(?:1[0-2][0-9]|[3-9][0-9])[ ,;]+){9,}(?:1[0-2][0-9]|[3-9][0-9])`)
	bitRun     = match(`(?:[01]{8}[ ,]?){8,}`)
	ascii85Run = match(`<~[!-uz\s]{10,}~>`)
	unicodeRun = match(`(?i)(?:\\u\{?[0-9a-f]{4,6}\}?){4,}`)
	morseRun   = match(`(?:[.-]{1,5}[ /]+){12,}[.-]{1,5}`)
)

// decoded returns what the codes in a text say, as far as that is readable, and
// what the codes in that say, so many layers deep.
func decoded(s string, layers int) []string {
	if layers == 0 {
		return nil
	}
	var found []string
	keep := func(text string) {
		if text = strings.TrimSpace(text); text != s && readable(text) {
			found = append(found, text)
			found = append(found, decoded(text, layers-1)...)
		}
	}
	for _, run := range base64Run.FindAllString(s, maxRuns) {
		bare := strings.TrimRight(run, "=")
		for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if raw, err := code.DecodeString(bare); err == nil {
				keep(string(raw))
			}
		}
	}
	for _, run := range base32Run.FindAllString(s, maxRuns) {
		if raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(run, "=")); err == nil {
			keep(string(raw))
		}
	}
	for _, run := range hexRun.FindAllString(s, maxRuns) {
		bare := strings.NewReplacer("0x", "", "0X", "", `\x`, "", `\X`, "", " ", "", ":", "", ",", "").Replace(run)
		if raw, err := hex.DecodeString(bare[:len(bare)&^1]); err == nil {
			keep(string(raw))
		}
	}
	for _, run := range numberRun.FindAllString(s, maxRuns) {
		keep(codes(run, " ,;", 10))
	}
	for _, run := range bitRun.FindAllString(s, maxRuns) {
		keep(bits(run))
	}
	for _, run := range ascii85Run.FindAllString(s, maxRuns) {
		raw := make([]byte, len(run))
		if n, _, err := ascii85.Decode(raw, []byte(strings.TrimSuffix(strings.TrimPrefix(run, "<~"), "~>")), true); err == nil {
			keep(string(raw[:n]))
		}
	}
	for _, run := range unicodeRun.FindAllString(s, maxRuns) {
		keep(codes(run, `\uU{}`, 16))
	}
	for _, run := range morseRun.FindAllString(s, maxRuns) {
		keep(fromMorse(run))
	}
	if strings.Count(s, "%") >= 3 {
		if text, err := url.QueryUnescape(s); err == nil {
			keep(text)
		}
	}
	if strings.Count(s, "&") >= 2 {
		keep(html.UnescapeString(s))
	}
	if strings.Count(s, "=") >= 4 {
		keep(fromQuotedPrintable(s))
	}
	return found
}

const maxRuns = 32 // codes of one kind that are looked at

// readable reports text of which nearly all is letters, digits, blanks and
// punctuation.
func readable(s string) bool {
	if len(s) < 8 || !utf8.ValidString(s) {
		return false
	}
	n, good := 0, 0
	for _, r := range s {
		n++
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == ' ' || r == '\n' || unicode.IsPunct(r) {
			good++
		}
	}
	return good*100 >= n*95
}

// codes reads characters that are given by their numbers.
func codes(run, between string, base int) string {
	var b strings.Builder
	for _, field := range strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune(between, r) }) {
		n, err := strconv.ParseUint(field, base, 21)
		if err != nil {
			return ""
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

func bits(run string) string {
	bare := strings.NewReplacer(" ", "", ",", "").Replace(run)
	var b strings.Builder
	for ; len(bare) >= 8; bare = bare[8:] {
		n, err := strconv.ParseUint(bare[:8], 2, 8)
		if err != nil {
			return ""
		}
		b.WriteByte(byte(n))
	}
	return b.String()
}

func fromQuotedPrintable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '=' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const morseLetters = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."

func fromMorse(run string) string {
	signs := strings.Fields(morseLetters)
	var b strings.Builder
	for word := range strings.SplitSeq(run, "/") {
		for _, sign := range strings.Fields(word) {
			at := slices.Index(signs, sign)
			if at < 0 {
				return ""
			}
			b.WriteByte(byte('a' + at))
		}
		b.WriteByte(' ')
	}
	return b.String()
}
