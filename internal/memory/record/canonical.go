package record

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// canonical writes a decoded JSON value (see decodeAny) as Python's json.dumps
// does with sorted keys, compact separators and \u escapes for all that is not
// ASCII: the form that the contract's content hashes are of.
func canonical(out []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names) // bytes of UTF-8 sort as Python's code points do
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = canonical(append(canonicalText(out, name), ':'), v[name])
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, x := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = canonical(out, x)
		}
		return append(out, ']')
	case string:
		return canonicalText(out, v)
	case json.Number:
		return append(out, pythonNumber(string(v))...)
	case bool:
		return strconv.AppendBool(out, v)
	}
	return append(out, "null"...)
}

func canonicalText(out []byte, s string) []byte {
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\f':
			out = append(out, `\f`...)
		case r == '\b':
			out = append(out, `\b`...)
		case ' ' <= r && r < utf8.RuneSelf-1:
			out = append(out, byte(r))
		case r < 0x10000:
			out = appendEscape(out, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = appendEscape(appendEscape(out, high), low)
		}
	}
	return append(out, '"')
}

func appendEscape(out []byte, r rune) []byte {
	hex := strconv.FormatInt(int64(r), 16)
	return append(append(append(out, `\u`...), "0000"[len(hex):]...), hex...)
}

// pythonNumber writes a JSON number as Python writes the int or float that it
// reads it as.
func pythonNumber(token string) string {
	if !strings.ContainsAny(token, ".eE") {
		if token == "-0" {
			return "0"
		}
		return token
	}
	// An error means infinity, which ParseFloat returns beside it.
	x, err := strconv.ParseFloat(token, 64)
	switch {
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	case err != nil:
		return token
	}
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64) // both write two digits of exponent at least
	}
	plain := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(plain, ".") {
		plain += ".0"
	}
	return plain
}
