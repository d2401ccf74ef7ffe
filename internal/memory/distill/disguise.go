package distill

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
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

// jumbled reports such an order in a form that people still read, or that a
// program undoes: spaced or dotted letters, digits for letters, backwards, or
// turned in the alphabet.
func jumbled(s string) bool {
	plain := unmask(s)
	if len(plain) > maxJumbled {
		plain = plain[:maxJumbled]
	}
	for _, form := range []string{letters(plain), letters(leet.Replace(plain))} {
		backwards := []rune(form)
		slices.Reverse(backwards)
		for _, f := range []string{form, string(backwards), mirrored(form)} {
			if orders(f) || turned(f) || orders(strings.Replace(f, "ignore", "", 1)) || misspelt(f) {
				return true
			}
		}
	}
	return false
}

// misspelt reports the order with some letters wrong, as where look-alikes stand
// for them.
func misspelt(s string) bool {
	for _, phrase := range [][2]string{{"ignore", "allpreviousinstructions"}, {"ignore", "previousinstructions"}, {"ignore", "yourpreviousinstructions"}, {"ignore", "yourinstructions"},
		{"disregard", "previousinstructions"}, {"disregard", "allpreviousinstructions"}} {
		verb, rest := phrase[0], phrase[1]
		for at := 0; at+len(verb)+len(rest) <= len(s); at++ {
			if wrongLetters(s[at:], verb) <= 1 && wrongLetters(s[at+len(verb):], rest) <= len(rest)/6 {
				return true
			}
		}
	}
	return false
}

// wrongLetters counts the letters of want that s does not begin with.
func wrongLetters(s, want string) int {
	n := 0
	for i := range len(want) {
		if s[i] != want[i] {
			n++
		}
	}
	return n
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

// turned reports the order with all letters moved by the same step. Moving keeps
// the steps between letters, so that one pass finds every turn.
func turned(s string) bool {
	for _, core := range []string{"previousinstruction", "priorinstruction", "systemprompt", "previousprompt", "previousrules", "aboveinstruction", "earlierinstruction"} {
		for at := 0; at+len(core) <= len(s); at++ {
			step := (int(s[at]) - int(core[0]) + 26) % 26
			if step != 0 && shifted(s[at:at+len(core)], core, step) {
				return true
			}
		}
	}
	return false
}

func shifted(s, core string, step int) bool {
	for i := range len(core) {
		if (int(core[i])-'a'+step)%26 != int(s[i])-'a' {
			return false
		}
	}
	return true
}

// mirrored swaps a for z, b for y and so on.
func mirrored(s string) string {
	return strings.Map(func(r rune) rune { return 'a' + 'z' - r }, s)
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
