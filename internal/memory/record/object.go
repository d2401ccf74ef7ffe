package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// object is a JSON object whose members keep their order and whose values keep
// their text: numbers of any size, escapes and empty lists come out as they
// went in. A name that was given twice keeps its last value.
type object []member

type member struct {
	name  string
	key   json.RawMessage // name as JSON
	value json.RawMessage
}

// parseObject reads one JSON object; field names it in the error.
func parseObject(field string, raw []byte) (object, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, &memory.FieldError{Field: field, Reason: "must be a JSON object: " + err.Error()}
	}
	text := compact.Bytes()
	switch {
	case len(text) == 0 || text[0] != '{':
		return nil, &memory.FieldError{Field: field, Reason: "must be a JSON object"}
	case !utf8.Valid(text):
		return nil, &memory.FieldError{Field: field, Reason: "must be UTF-8 text"}
	}
	o := object{}
	for at := 1; text[at] != '}'; {
		if text[at] == ',' {
			at++
		}
		end := valueEnd(text, at)
		key := text[at:end]
		at = end + 1 // the colon
		end = valueEnd(text, at)
		o.put(nameOf(key), key, text[at:end])
		at = end
	}
	return o, nil
}

// nameOf reads a JSON string that is known to be one. Half of a surrogate pair
// keeps its escape, so that two such names stay two.
func nameOf(key []byte) string {
	s, err := decodeText(key)
	if err != nil {
		return string(key)
	}
	return s
}

// valueEnd returns where the value that begins at at ends, in valid compact
// JSON.
func valueEnd(text []byte, at int) int {
	depth := 0
	for i := at; ; i++ {
		switch text[i] {
		case '"':
			i++
			for ; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if next := text[i+1]; depth > 0 || next != ',' && next != '}' && next != ']' {
				continue
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// get returns the value of a member.
func (o object) get(name string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// set replaces a member's value in its place, or adds it at the end. The name is
// of letters, digits and underscores.
func (o *object) set(name string, value json.RawMessage) {
	o.put(name, json.RawMessage(`"`+name+`"`), value)
}

func (o *object) put(name string, key, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, key, value})
}

// without returns o less one member.
func (o object) without(name string) object {
	var rest object
	for _, m := range o {
		if m.name != name {
			rest = append(rest, m)
		}
	}
	return rest
}

// raw writes o as compact JSON.
func (o object) raw() json.RawMessage {
	size := 2
	for _, m := range o {
		size += len(m.key) + len(m.value) + 2
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.key...), ':'), m.value...)
	}
	return append(out, '}')
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// isList reports whether raw is a JSON array.
func isList(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// items cuts a JSON array into its members.
func items(raw json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	return list, nil
}

// decodeText reads a JSON value that must be a string. One with half of a
// surrogate pair is refused: Go would read all such halves as the same character.
func decodeText(raw json.RawMessage) (string, error) {
	if len(raw) > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", fmt.Errorf("must be a string")
	}
	if halfSurrogate(raw) {
		return "", fmt.Errorf("must be well-formed text")
	}
	return *s, nil
}

// halfSurrogate reports whether a valid JSON string holds a \u escape of half a
// surrogate pair.
func halfSurrogate(raw []byte) bool {
	high := -1 // where the second half of a pair must begin
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			if high >= 0 {
				return true
			}
			continue
		}
		i++
		isHigh, isLow := false, false
		if raw[i] == 'u' {
			code, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 32)
			isHigh = err == nil && 0xD800 <= code && code < 0xDC00
			isLow = err == nil && 0xDC00 <= code && code < 0xE000
			i += 4
		}
		if isLow != (high >= 0) {
			return true
		}
		high = -1
		if isHigh {
			high = i + 1
		}
	}
	return high >= 0
}

// decodeInteger reads a JSON number without fraction and exponent that fits in
// 64 bits.
func decodeInteger(raw json.RawMessage) (int64, error) {
	for i, c := range raw {
		if (c < '0' || c > '9') && !(i == 0 && c == '-') {
			return 0, fmt.Errorf("must be an integer")
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must be an integer of 64 bits")
	}
	return n, nil
}

// decodeAny reads JSON with numbers as json.Number.
func decodeAny(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// encode writes v as compact JSON without escaping for HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// standard replaces the numbers NaN, Infinity and -Infinity, which the
// reference writes though JSON has none, by null. ok is false where text is no
// JSON even then.
func standard(text string) (raw json.RawMessage, ok bool) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		switch {
		case inString && text[i] == '\\' && i+1 < len(text):
			out = append(out, text[i])
			i++
		case text[i] == '"':
			inString = !inString
		case !inString:
			if n := notANumber(text[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out, json.Valid(out)
}

func notANumber(s string) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if len(s) >= len(word) && s[:len(word)] == word {
			return len(word)
		}
	}
	return 0
}
