package workspace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// parseJSON5 reads a JSON5 text (spec.json5.org, version 1.0.0) as encoding/json
// reads JSON into an any. Of a name that stands twice the last one counts.
//
// The Go packages for JSON5 refuse parts of it that people write: names that are
// not ASCII, \x escapes, a byte order mark.
func parseJSON5(text string) (v any, err error) {
	p := &json5{text: text}
	defer func() {
		switch broken := recover().(type) {
		case nil:
		default:
			panic(broken)
		case syntaxError:
			line := 1 + strings.Count(text[:min(p.at, len(text))], "\n")
			v, err = nil, memory.Errorf(memory.ErrInvalid, "line %d: %s", line, string(broken))
		}
	}()
	v = p.value(0)
	p.space()
	if p.at < len(text) {
		p.fail("there is something after the value")
	}
	return v, nil
}

const deepestJSON5 = 200

// json5 is one reading. Its methods fail by panicking with a syntaxError.
type json5 struct {
	text string
	at   int
}

type syntaxError string

func (p *json5) fail(format string, args ...any) {
	panic(syntaxError(fmt.Sprintf(format, args...)))
}

// peek returns the next character, 0 at the end.
func (p *json5) peek() rune {
	if p.at >= len(p.text) {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return r
}

func (p *json5) next() rune {
	if p.at >= len(p.text) {
		p.fail("the text breaks off")
	}
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += size
	return r
}

// skip takes what stands next if it is s.
func (p *json5) skip(s string) bool {
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// space skips white space and comments.
func (p *json5) space() {
	for {
		rest := strings.TrimLeftFunc(p.text[p.at:], func(r rune) bool {
			return r == '\t' || r == '\v' || r == '\f' || r == '\n' || r == '\r' || r == '\ufeff' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Zs, r)
		})
		p.at = len(p.text) - len(rest)
		switch {
		case p.skip("//"):
			end := strings.IndexAny(p.text[p.at:], "\n\r\u2028\u2029")
			if end < 0 {
				end = len(p.text) - p.at
			}
			p.at += end
		case p.skip("/*"):
			end := strings.Index(p.text[p.at:], "*/")
			if end < 0 {
				p.fail("a comment is not closed")
			}
			p.at += end + len("*/")
		default:
			return
		}
	}
}

func (p *json5) value(depth int) any {
	if depth > deepestJSON5 {
		p.fail("it is nested too deeply")
	}
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"' || c == '\'':
		return p.quoted()
	case c == '+' || c == '-' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	switch word := p.name(); word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	case "Infinity":
		return math.Inf(1)
	case "NaN":
		return math.NaN()
	default:
		p.fail("%q is no value", word)
	}
	return nil
}

func (p *json5) object(depth int) any {
	p.next()
	out := map[string]any{}
	for {
		p.space()
		if p.skip("}") {
			return out
		}
		var key string
		if c := p.peek(); c == '"' || c == '\'' {
			key = p.quoted()
		} else {
			key = p.name()
		}
		p.space()
		if !p.skip(":") {
			p.fail("a colon must follow the name %q", key)
		}
		out[key] = p.value(depth + 1)
		p.space()
		if p.skip("}") {
			return out
		}
		if !p.skip(",") {
			p.fail("a comma must follow the value of %q", key)
		}
	}
}

func (p *json5) array(depth int) any {
	p.next()
	out := []any{}
	for {
		p.space()
		if p.skip("]") {
			return out
		}
		out = append(out, p.value(depth+1))
		p.space()
		if p.skip("]") {
			return out
		}
		if !p.skip(",") {
			p.fail("a comma must follow an element of a list")
		}
	}
}

// name reads an identifier.
func (p *json5) name() string {
	var sb strings.Builder
	for {
		c := p.peek()
		if c == '\\' {
			p.next()
			if p.next() != 'u' {
				p.fail("a name may only have escapes of the form \\u0000")
			}
			c = p.hex(4)
		} else if !isNamePart(c) || sb.Len() == 0 && (unicode.IsNumber(c) && !unicode.Is(unicode.Nl, c) || unicode.IsMark(c)) {
			break
		} else {
			p.next()
		}
		sb.WriteRune(c)
	}
	if sb.Len() == 0 {
		if p.at >= len(p.text) {
			p.fail("the text breaks off")
		}
		p.fail("%q is not expected here", p.peek())
	}
	return sb.String()
}

func isNamePart(c rune) bool {
	return c == '$' || c == '_' || c == 0x200c || c == 0x200d || unicode.IsLetter(c) || unicode.In(c, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}

func (p *json5) hex(digits int) rune {
	if p.at+digits > len(p.text) {
		p.fail("the text breaks off")
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	if err != nil {
		p.fail("%q is no hexadecimal number", p.text[p.at:p.at+digits])
	}
	p.at += digits
	return rune(n)
}

func (p *json5) quoted() string {
	quote := p.next()
	var sb strings.Builder
	for {
		switch c := p.next(); c {
		case quote:
			return sb.String()
		case '\\':
			p.escape(&sb)
		case '\n', '\r':
			p.fail("a text in quotes is not closed")
		default:
			sb.WriteRune(c)
		}
	}
}

func (p *json5) escape(sb *strings.Builder) {
	switch c := p.next(); c {
	case 'b', 'f', 'n', 'r', 't', 'v', '0':
		if c == '0' && p.peek() >= '0' && p.peek() <= '9' {
			p.fail("octal escapes are not allowed")
		}
		sb.WriteByte(map[rune]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '0': 0}[c])
	case 'x':
		sb.WriteRune(p.hex(2))
	case 'u':
		r := p.hex(4)
		if utf16.IsSurrogate(r) && p.skip(`\u`) {
			r = utf16.DecodeRune(r, p.hex(4))
		}
		sb.WriteRune(r)
	case '\r':
		p.skip("\n") // the line goes on
	case '\n', '\u2028', '\u2029':
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		p.fail("\\%c is no escape", c)
	default:
		sb.WriteRune(c)
	}
}

func (p *json5) number() float64 {
	sign := 1.
	if p.peek() == '+' || p.peek() == '-' {
		if p.next() == '-' {
			sign = -1
		}
	}
	switch {
	case p.skip("Infinity"):
		return sign * math.Inf(1)
	case p.skip("NaN"):
		return math.NaN()
	case p.skip("0x") || p.skip("0X"):
		digits := p.run("0123456789abcdefABCDEF")
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			p.fail("0x%s is no number", digits)
		}
		return sign * float64(n)
	}
	whole := p.run("0123456789")
	text := whole
	if p.skip(".") {
		fraction := p.run("0123456789")
		text += "." + fraction
		whole += fraction
	}
	if whole == "" || len(text) > 1 && text[0] == '0' && text[1] != '.' {
		p.fail("%q is no number", text)
	}
	if p.skip("e") || p.skip("E") {
		text += "e"
		if p.skip("-") {
			text += "-"
		} else {
			p.skip("+")
		}
		text += p.run("0123456789")
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(n, 0) {
		p.fail("%q is no number", text)
	}
	return sign * n
}

// run takes the characters that stand next and are in set.
func (p *json5) run(set string) string {
	rest := strings.TrimLeft(p.text[p.at:], set)
	taken := p.text[p.at : len(p.text)-len(rest)]
	p.at += len(taken)
	return taken
}
