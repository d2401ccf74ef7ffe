package alf

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Time is an instant as the format writes it: UTC with 0, 3, 6 or 9 digits of
// fraction. Any zone is read, and a blank in place of the T; a time without a
// zone or without seconds is refused. The zero Time is an absent one, and no
// instant: year 1 has a first second too.
type Time struct {
	time.Time
	there bool
}

// At returns t as the format keeps it.
func At(t time.Time) Time { return Time{t.UTC(), true} }

// IsZero reports whether the time is absent.
func (t Time) IsZero() bool { return !t.there }

// Equal reports whether both are the same instant, or both absent.
func (t Time) Equal(other Time) bool { return t.there == other.there && t.Time.Equal(other.Time) }

// String returns the written form. A year of other than four digits is signed.
func (t Time) String() string {
	u := t.UTC()
	layout := "T15:04:05Z"
	switch ns := u.Nanosecond(); {
	case ns == 0:
	case ns%1_000_000 == 0:
		layout = "T15:04:05.000Z"
	case ns%1_000 == 0:
		layout = "T15:04:05.000000Z"
	default:
		layout = "T15:04:05.000000000Z"
	}
	return day(u) + u.Format(layout)
}

// day writes the day of t as YYYY-MM-DD, and a year of other than four digits
// with its sign.
func day(t time.Time) string {
	form := "%04d"
	if t.Year() < 0 || t.Year() > 9999 {
		form = "%+05d"
	}
	return fmt.Sprintf(form, t.Year()) + t.Format("-01-02")
}

// ParseTime reads the forms that Time describes.
func ParseTime(s string) (Time, error) {
	text, shift := strings.ToUpper(s), 0 // RFC 3339 allows t and z
	if signed := text != "" && (text[0] == '+' || text[0] == '-'); signed {
		// Go reads years of four digits: take one that has the same days.
		year, rest, found := cutYear(text)
		if found {
			shift = year - (2000 + year%400)
			text = fmt.Sprintf("%04d", 2000+year%400) + rest
		}
	}
	if len(text) > 10 && text[10] == ' ' {
		text = text[:10] + "T" + text[11:]
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Time{}, memory.Errorf(memory.ErrInvalid, "%.60q is no time with date, seconds and zone such as 2026-03-01T09:30:00Z", s)
	}
	return At(t.AddDate(shift, 0, 0)), nil
}

// cutYear reads a signed year off the front of s.
func cutYear(s string) (year int, rest string, found bool) {
	digits, rest, found := strings.Cut(s[1:], "-")
	year, err := strconv.Atoi(digits)
	if !found || err != nil || year > 262_142 {
		return 0, "", false
	}
	if s[0] == '-' {
		year = -year
	}
	return year, "-" + rest, true
}

// MarshalJSONTo writes the form of String.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(t.String()))
}

// UnmarshalJSONFrom reads what ParseTime does; null is the zero Time.
func (t *Time) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case 'n':
		*t = Time{}
		return nil
	case '"':
		*t, err = ParseTime(tok.String())
		return err
	}
	return memory.Errorf(memory.ErrInvalid, "a time must be a string")
}

// List is an array that may be absent and never null: readers of the format
// refuse the whole archive for a null in its place.
type List[T any] []T

// UnmarshalJSONFrom reads an array and refuses null, also as an element unless
// the elements are any JSON.
func (l *List[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind == 'n' {
		return errNullList
	} else if kind != '[' {
		return json.UnmarshalDecode(dec, (*[]T)(l)) // says what is wrong
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	_, free := any(*new(T)).(jsontext.Value)
	out := List[T]{}
	for dec.PeekKind() != ']' {
		if dec.PeekKind() == 'n' && !free {
			return errNullElement
		}
		var element T
		if err := json.UnmarshalDecode(dec, &element); err != nil {
			return err
		}
		out = append(out, element)
	}
	*l = out
	_, err := dec.ReadToken()
	return err
}

// Vector is an embedding; a list that is read in one go, for it is long.
type Vector []float64

// UnmarshalJSONFrom reads an array of numbers and refuses null in it and for it.
func (v *Vector) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	switch {
	case err != nil:
		return err
	case raw.Kind() == 'n':
		return errNullList
	case raw.Kind() == '[' && bytes.IndexByte(raw, 'n') >= 0:
		return errNullElement
	}
	return json.Unmarshal(raw, (*[]float64)(v))
}

// Map is an object of free keys that may be absent and never null.
type Map[T any] map[string]T

// UnmarshalJSONFrom reads an object and refuses null, also as a value unless the
// values are any JSON.
func (m *Map[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		return errNullList
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var values map[string]jsontext.Value
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	_, free := any(*new(T)).(jsontext.Value)
	for _, v := range values {
		if v.Kind() == 'n' && !free {
			return errNullElement
		}
	}
	return json.Unmarshal(raw, (*map[string]T)(m))
}

var (
	errNullList    = memory.Errorf(memory.ErrInvalid, "must not be null: leave it out, or write [] or {}")
	errNullElement = memory.Errorf(memory.ErrInvalid, "must not hold null")
)

// decode reads one JSON value into v. A key given twice and bytes that are no
// UTF-8 are refused.
func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return memory.Errorf(memory.ErrInvalid, "%s", plain(err))
	}
	return nil
}

// plain is an error of the JSON library without its package's name and Go types.
func plain(err error) string {
	s := err.Error()
	for _, prefix := range []string{"json: ", "jsontext: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	if before, _, found := strings.Cut(s, " of Go type "); found {
		return before
	}
	if i := strings.Index(s, " into Go "); i >= 0 {
		rest := s[i+len(" into Go "):]
		if _, where, found := strings.Cut(rest, " within "); found {
			return s[:i] + " within " + where
		}
		return s[:i]
	}
	return s
}

// line encodes v as one line without its line break; keys of maps are sorted.
func line(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// document encodes v as a document of several lines.
func document(v any) ([]byte, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
