package distill

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sieve tells of most texts that an expression cannot match them, at a small part
// of the cost of trying. It is made from the expression itself, so that it cannot
// say no to a text in which there is a match.
type sieve struct {
	need *need
	// Where nothing is needed: a match has only these bytes, and so many of them.
	bytes *[256]bool
	least int
}

// need is what a text must hold for an expression to match: one of some words, or
// what all or one of its parts need. nil is for an expression that needs nothing.
type need struct {
	words []string
	parts []*need
	all   bool
}

// newSieve reads an expression, which must be valid.
func newSieve(expression string) sieve {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err) // as regexp.MustCompile does of the same expression
	}
	f := look(re)
	s := sieve{need: f.needs()}
	if s.need == nil {
		var all [256]bool
		if least := widen(re, &all); least > 1 {
			for _, there := range all {
				if !there {
					s.bytes, s.least = &all, least
					break
				}
			}
		}
	}
	return s
}

// passes reports whether there may be a match in text. Known are the grams of text,
// or nil, where nobody has asked for them yet.
func (s sieve) passes(text string, known *grams) bool {
	switch {
	case s.need != nil && known != nil:
		return s.need.in(known)
	case s.need != nil:
		return s.need.in(newGrams(text))
	case s.bytes != nil:
		run := 0
		for i := range len(text) {
			if !s.bytes[text[i]] {
				run = 0
			} else if run++; run >= s.least {
				return true
			}
		}
		return false
	}
	return true
}

// in reports whether a text has what is needed.
func (n *need) in(text *grams) bool {
	for _, w := range n.words {
		if text.holds(w) {
			return true
		}
	}
	for _, p := range n.parts {
		if p.in(text) != n.all {
			return !n.all
		}
	}
	return n.all
}

// facts are what is known of the texts that an expression matches.
type facts struct {
	exact []string // it matches these and no others; nil where they are too many to name
	need  *need    // where exact is nil
}

// mostExact is how many texts are named.
const mostExact = 256

// needs returns what all of the texts have.
func (f facts) needs() *need {
	if f.exact == nil {
		return f.need
	}
	for _, w := range f.exact {
		if len(w) < 2 { // that is in every text
			return nil
		}
	}
	return &need{words: f.exact}
}

// look tells what an expression matches.
func look(re *syntax.Regexp) facts {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return facts{exact: []string{""}}
	case syntax.OpLiteral:
		parts := make([]facts, len(re.Rune))
		for i, r := range re.Rune {
			parts[i] = facts{exact: cases(r, re.Flags&syntax.FoldCase != 0)}
		}
		return chain(parts)
	case syntax.OpCharClass:
		var exact []string
		for i := 0; i < len(re.Rune); i += 2 {
			if int(re.Rune[i+1]-re.Rune[i])+len(exact) >= 12 {
				return facts{}
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if r == utf8.RuneError { // matches a byte that is no character, too
					return facts{}
				}
				exact = append(exact, string(r))
			}
		}
		return facts{exact: exact}
	case syntax.OpCapture:
		return look(re.Sub[0])
	case syntax.OpPlus:
		return facts{need: look(re.Sub[0]).needs()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return facts{need: look(re.Sub[0]).needs()}
		}
	case syntax.OpQuest:
		if f := look(re.Sub[0]); f.exact != nil && len(f.exact) < mostExact {
			return facts{exact: append([]string{""}, f.exact...)}
		}
	case syntax.OpConcat:
		parts := make([]facts, len(re.Sub))
		for i, sub := range re.Sub {
			parts[i] = look(sub)
		}
		return chain(parts)
	case syntax.OpAlternate:
		return choice(re.Sub)
	}
	return facts{}
}

// cases are the forms of a character.
func cases(r rune, fold bool) []string {
	if r == utf8.RuneError {
		return nil
	}
	out := []string{string(r)}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			out = append(out, string(f))
		}
	}
	return out
}

// chain is one after another: of pieces in a row that are known, every joining.
func chain(parts []facts) facts {
	var needed []*need
	whole, known := true, []string{""}
	end := func() {
		if n := (facts{exact: known}).needs(); n != nil {
			needed = append(needed, n)
		}
		known = []string{""}
	}
	for _, p := range parts {
		switch {
		case p.exact == nil:
			whole = false
			end()
			if p.need != nil {
				needed = append(needed, p.need)
			}
			continue
		case len(known)*len(p.exact) > mostExact:
			whole = false
			end()
		}
		joined := make([]string, 0, len(known)*len(p.exact))
		for _, a := range known {
			for _, b := range p.exact {
				joined = append(joined, a+b)
			}
		}
		known = joined
	}
	if whole {
		return facts{exact: known}
	}
	end()
	switch len(needed) {
	case 0:
		return facts{}
	case 1:
		return facts{need: needed[0]}
	}
	return facts{need: &need{parts: needed, all: true}}
}

// choice is one of several.
func choice(subs []*syntax.Regexp) facts {
	var exact []string
	var parts []facts
	named := true
	for _, sub := range subs {
		f := look(sub)
		parts, exact = append(parts, f), append(exact, f.exact...)
		named = named && f.exact != nil
	}
	if named && len(exact) <= mostExact {
		return facts{exact: exact}
	}
	one := &need{}
	for _, f := range parts {
		n := f.needs()
		switch {
		case n == nil:
			return facts{}
		case len(n.parts) == 0:
			one.words = append(one.words, n.words...)
		default:
			one.parts = append(one.parts, n)
		}
	}
	return facts{need: one}
}

// widen adds the bytes that a match of an expression may have, and returns how
// many it has at least.
func widen(re *syntax.Regexp, all *[256]bool) (least int) {
	add := func(from, to rune) {
		for r := from; r <= min(to, utf8.RuneSelf-1); r++ {
			all[r] = true
		}
		if to >= utf8.RuneSelf {
			for b := utf8.RuneSelf; b < len(all); b++ {
				all[b] = true
			}
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			add(r, r)
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					add(f, f)
				}
			}
		}
		return len(re.Rune)
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			add(re.Rune[i], re.Rune[i+1])
		}
		return 1
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		add(0, utf8.MaxRune)
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return widen(re.Sub[0], all)
	case syntax.OpStar, syntax.OpQuest:
		widen(re.Sub[0], all)
		return 0
	case syntax.OpRepeat:
		return re.Min * widen(re.Sub[0], all)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			least += widen(sub, all)
		}
		return least
	case syntax.OpAlternate:
		least = widen(re.Sub[0], all)
		for _, sub := range re.Sub[1:] {
			least = min(least, widen(sub, all))
		}
		return least
	}
	return 0 // places that have no width
}

// grams is a text with the sets of three bytes that are in it, by which most words
// that are not in it are known without reading it again.
type grams struct {
	text string
	// there has a bit for each; some share one. nil for a text so short that it is
	// as well read again.
	there *[1 << gramBits / 64]uint64
}

const gramBits = 16

func newGrams(text string) *grams {
	g := &grams{text: text}
	if len(text) < 128 {
		return g
	}
	g.there = new([1 << gramBits / 64]uint64)
	for i := range len(text) - 2 {
		at := gram(text, i)
		g.there[at/64] |= 1 << (at % 64)
	}
	return g
}

func gram(s string, i int) uint32 {
	return (uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16) * 0x9E3779B1 >> (32 - gramBits)
}

// holds reports whether a word stands in the text.
func (g *grams) holds(word string) bool {
	if g.there != nil {
		for i := range len(word) - 2 {
			if at := gram(word, i); g.there[at/64]&(1<<(at%64)) == 0 {
				return false
			}
		}
	}
	return strings.Contains(g.text, word)
}
