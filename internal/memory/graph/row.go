package graph

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxNesting is how deep JSON may be nested. It keeps the stack of whoever reads
// it small.
const maxNesting = 1000

// parseRow checks one JSON value and returns it for reading.
func parseRow(field string, raw []byte) (gjson.Result, error) {
	text := string(raw)
	if err := checkJSON(text); err != nil {
		return gjson.Result{}, &memory.FieldError{Field: field, Reason: err.Error()}
	}
	return gjson.Parse(text), nil
}

// unreadable says why a text cannot be read.
type unreadable string

func (u unreadable) Error() string { return string(u) }

// checkJSON reports why text is not one JSON value in UTF-8 that can be read.
func checkJSON(text string) error {
	switch {
	case !utf8.ValidString(text):
		return unreadable("is not UTF-8 text")
	case tooDeep(text):
		return unreadable("is nested too deep")
	case !gjson.Valid(text):
		return unreadable("is not JSON")
	}
	return nil
}

// tooDeep reports whether brackets outside of strings are nested deeper than
// maxNesting.
func tooDeep(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxNesting {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Members whose absence is told from an empty text.
const (
	hasAgent = 1 << iota
	hasType
)

// reader reads the members of a row and keeps the first error.
type reader struct {
	seen int
	err  error
}

func (r *reader) has(member int) {
	if r.err == nil {
		r.seen |= member
	}
}

func (r *reader) refuse(field, reason string) {
	if r.err == nil {
		r.err = &memory.FieldError{Field: field, Reason: reason}
	}
}

// text reads a text, or a number or boolean as one. null counts as missing.
func (r *reader) text(field string, v gjson.Result) string {
	if v.Type == gjson.Null {
		if field == "agent_id" || field == "edge_type" {
			r.err = missing(field)
		}
		return ""
	}
	s, ok := textOf(v)
	if !ok {
		r.refuse(field, "must be a text")
	}
	return s
}

// texts reads a list of texts; null stands for an empty one.
func (r *reader) texts(field string, v gjson.Result) []string {
	if v.Type == gjson.Null {
		return nil
	}
	if !v.IsArray() {
		r.refuse(field, "must be a list of texts")
		return nil
	}
	var list []string
	v.ForEach(func(_, item gjson.Result) bool {
		s, ok := textOf(item)
		if !ok {
			r.refuse(field, "must be a list of texts")
		}
		list = append(list, s)
		return ok
	})
	return list
}

// oneOrMoreTexts reads a list of texts, or one text as a list.
func (r *reader) oneOrMoreTexts(field string, v gjson.Result) []string {
	if s, ok := textOf(v); ok {
		return []string{s}
	}
	return r.texts(field, v)
}

// object reads an object; null and what is empty stand for none.
func (r *reader) object(field string, v gjson.Result) json.RawMessage {
	switch {
	case v.IsObject():
		return json.RawMessage(v.Raw)
	case v.Type == gjson.Null, v.Raw == `""`, v.IsArray() && len(v.Array()) == 0:
		return nil
	}
	r.refuse(field, "must be an object")
	return nil
}

func (r *reader) number(field string, v gjson.Result) float64 {
	f, ok := numberOf(v)
	if !ok {
		r.refuse(field, "must be a number")
	}
	return f
}

func (r *reader) optionalNumber(field string, v gjson.Result) *float64 {
	if v.Type == gjson.Null {
		return nil
	}
	f := r.number(field, v)
	return &f
}

// optional returns a value; nil for null.
func optional(v gjson.Result) json.RawMessage {
	if v.Type == gjson.Null {
		return nil
	}
	return json.RawMessage(v.Raw)
}

func missing(field string) error { return &memory.FieldError{Field: field, Reason: "is missing"} }

// textOf reads a scalar as a text, booleans as the reference prints them.
func textOf(v gjson.Result) (s string, ok bool) {
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Number:
		return v.Raw, true
	case gjson.True:
		return "True", true
	case gjson.False:
		return "False", true
	}
	return "", false
}

// numberOf reads a finite number, or a text or boolean as one.
func numberOf(v gjson.Result) (f float64, ok bool) {
	text := v.Raw
	switch v.Type {
	case gjson.True:
		return 1, true
	case gjson.False:
		return 0, true
	case gjson.String:
		text = strings.TrimSpace(v.Str)
	case gjson.Number:
	default:
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// appendText appends a text as JSON.
func appendText(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendQuoted(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendQuoted appends a text that needs escapes.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s { // what is no UTF-8 becomes U+FFFD
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

// appendNumber appends a finite number, whole ones without a fraction.
func appendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	form := byte('f')
	if size := math.Abs(f); size < 1e-6 || size >= 1e21 {
		form = 'e'
	}
	return strconv.AppendFloat(b, f, form, -1, 64)
}

func appendObject(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "{}"...)
	}
	return appendRaw(b, raw)
}

func appendMember(b []byte, m Member) []byte {
	b = appendText(append(b, ','), m.Name)
	return appendRaw(append(b, ':'), m.Value)
}

// appendRaw appends valid JSON on one line.
func appendRaw(b []byte, raw json.RawMessage) []byte {
	if bytes.IndexByte(raw, '\n') < 0 {
		return append(b, raw...)
	}
	line := bytes.NewBuffer(b)
	if err := json.Compact(line, raw); err != nil { // it was valid when it was read
		return append(b, "null"...)
	}
	return line.Bytes()
}

// quoted shows a text in an error.
func quoted(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}
