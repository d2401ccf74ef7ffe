package erasure

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// stretch is what a part of some bytes says that is written in a code.
type stretch struct {
	text []byte
	// Byte i of text comes from the bytes at index[i] and on, up to index[i+1].
	index []int
	// For base64 there is no index: of three bytes of text each four stand there.
	from int
}

// span returns where text[start:end] stands, rounded outwards.
func (s stretch) span(start, end int) (from, to int) {
	if s.index != nil {
		return s.index[start], s.index[end]
	}
	return s.from + start/3*4, s.from + (end*4+2)/3
}

// unveil hands over the stretches of b that are written as base64 (of both
// alphabets, beginning anywhere in it), with percent signs, or as UTF-16 (of either
// order), and say at least so many bytes, until visit returns false.
//
// UTF-16 is seen by its high bytes: of the scripts below U+0700, which have few.
// Of others, a Finder knows how its needles are written (see wide).
func unveil(b []byte, least int, visit func(stretch) bool) bool {
	return unveil64(b, least, visit) && unveilPercent(b, least, visit) && unveilWide(b, least, visit)
}

// sextets are the values of base64 digits of both alphabets; 0xFF for no digit.
var sextets = func() (of [256]byte) {
	for i := range of {
		of[i] = 0xFF
	}
	for i := range byte(26) {
		of['A'+i], of['a'+i] = i, 26+i
	}
	for i := range byte(10) {
		of['0'+i] = 52 + i
	}
	of['+'], of['-'], of['/'], of['_'] = 62, 62, 63, 63
	return of
}()

func unveil64(b []byte, least int, visit func(stretch) bool) bool {
	digits := (least*4 + 2) / 3
	for i := 0; i+digits <= len(b); i++ {
		// What ends a run within the next digits makes all starts before it too late.
		last := i + digits - 1
		for last >= i && sextets[b[last]] != 0xFF {
			last--
		}
		if last >= i {
			i = last
			continue
		}
		end := i + digits
		for end < len(b) && sextets[b[end]] != 0xFF {
			end++
		}
		for from := i; from < i+4 && end-from >= digits; from++ {
			if !visit(stretch{text: decode64(b[from:end]), from: from}) {
				return false
			}
		}
		i = end
	}
	return true
}

// decode64 decodes digits, whole bytes of them.
func decode64(digits []byte) []byte {
	out := make([]byte, 0, len(digits)*3/4+3)
	for ; len(digits) >= 4; digits = digits[4:] {
		v := uint32(sextets[digits[0]])<<18 | uint32(sextets[digits[1]])<<12 | uint32(sextets[digits[2]])<<6 | uint32(sextets[digits[3]])
		out = append(out, byte(v>>16), byte(v>>8), byte(v))
	}
	if len(digits) >= 2 {
		v := uint32(sextets[digits[0]])<<18 | uint32(sextets[digits[1]])<<12
		out = append(out, byte(v>>16))
		if len(digits) == 3 {
			out = append(out, byte((v|uint32(sextets[digits[2]])<<6)>>8))
		}
	}
	return out
}

// inURL are the bytes that a URL or the body of a form may have.
var inURL = func() (of [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		of[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '{' && c != '}' && c != '|' && c != '^' && c != '`'
	}
	return of
}()

func unveilPercent(b []byte, least int, visit func(stretch) bool) bool {
	for done := 0; ; {
		at := done
		for at < len(b) && b[at] != '%' && b[at] != '+' {
			at++
		}
		if at == len(b) {
			return true
		}
		if b[at] == '%' && (at+2 >= len(b) || hexOf(b[at+1]) < 0 || hexOf(b[at+2]) < 0) ||
			b[at] == '+' && (at == 0 || at+1 == len(b) || !inURL[b[at-1]] || !inURL[b[at+1]]) {
			done = at + 1
			continue
		}
		from, to := at, at
		for from > done && inURL[b[from-1]] {
			from--
		}
		for to < len(b) && inURL[b[to]] {
			to++
		}
		done = to
		if to-from < least {
			continue
		}
		s := stretch{text: b[from:to], index: make([]int, to-from+1)}
		for i := range s.index {
			s.index[i] = from + i
		}
		for range 2 { // also of a URL within a URL
			plain := unquote(s, '+')
			if !visit(plain) || bytes.ContainsRune(s.text, '+') && !visit(unquote(s, ' ')) {
				return false
			}
			if bytes.Equal(plain.text, s.text) {
				break
			}
			s = plain
		}
	}
}

// unquote undoes percent signs; plus is what a plus sign stands for.
func unquote(s stretch, plus byte) stretch {
	out := stretch{text: make([]byte, 0, len(s.text)), index: make([]int, 0, len(s.index))}
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		out.index = append(out.index, s.index[i])
		switch {
		case c == '%' && i+2 < len(s.text) && hexOf(s.text[i+1]) >= 0 && hexOf(s.text[i+2]) >= 0:
			c = byte(hexOf(s.text[i+1])<<4 | hexOf(s.text[i+2]))
			i += 2
		case c == '+':
			c = plus
		}
		out.text = append(out.text, c)
	}
	out.index = append(out.index, s.index[len(s.text)])
	return out
}

func hexOf(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// isHigh are the high bytes of the scripts that unveilWide knows, and of
// typographical marks.
var isHigh = [256]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 0x20: true}

func unveilWide(b []byte, least int, visit func(stretch) bool) bool {
	units := max(4, least/2) // a unit says two bytes of UTF-8 at most
	for i := 0; i+2*units <= len(b); i++ {
		if !isHigh[b[i]] || !isHigh[b[i+2]] || !isHigh[b[i+4]] || b[i+1] == 0 && b[i] == 0 {
			continue
		}
		end := i
		for end < len(b) && isHigh[b[end]] && (b[end] != 0 || end+1 >= len(b) || b[end+1] != 0) {
			end += 2
		}
		if end-i < 2*(units-1) {
			continue
		}
		// High bytes stand at i, i+2 and so on: before the low ones, or behind them.
		for _, big := range []bool{true, false} {
			from := i
			if !big {
				if from--; from < 0 {
					from += 2
				}
			}
			if s := narrow(b[from:min(end+1, len(b))], from, big); len(s.text) >= least && !visit(s) {
				return false
			}
		}
		i = end
	}
	return true
}

// narrow reads UTF-16.
func narrow(b []byte, from int, big bool) stretch {
	var s stretch
	for i := 0; i+1 < len(b); i += 2 {
		u := rune(b[i]) | rune(b[i+1])<<8
		if big {
			u = rune(b[i])<<8 | rune(b[i+1])
		}
		for range len(string(u)) {
			s.index = append(s.index, from+i)
		}
		s.text = utf8.AppendRune(s.text, u)
	}
	s.index = append(s.index, from+len(b)&^1)
	return s
}

// wide returns how a text is written as UTF-16, in both orders, where unveil does
// not see it.
func wide(text string) (forms [][]byte) {
	if !slices.ContainsFunc([]rune(text), func(r rune) bool { return r >= 0x700 && (r < 0x2000 || r > 0x20FF) }) {
		return nil
	}
	var little, big []byte
	for _, u := range utf16.Encode([]rune(text)) {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	return [][]byte{little, big}
}
