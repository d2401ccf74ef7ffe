package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// raw rewrites JSON without secrets, in its own order. What is no JSON is treated as text and becomes a JSON string.
func (w *walker) raw(b []byte, c class) json.RawMessage {
	if len(b) == 0 {
		return slices.Clone(json.RawMessage(b))
	}
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err := w.rewrite(d, &out, c, 0)
	if err == nil && json.Valid(b) {
		return out.Bytes()
	}
	text, err := json.Marshal(w.text(string(b), c))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

// errDeep stops the rewriting of JSON that is nested too deep.
var errDeep = errors.New("nested too deep")

// rewrite copies the next JSON value from d to out.
func (w *walker) rewrite(d *json.Decoder, out *bytes.Buffer, c class, depth int) error {
	if depth > maxNesting {
		return errDeep
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		return w.rewriteMembers(d, out, t, c, depth)
	case string:
		return writeJSON(out, w.text(t, c))
	case json.Number:
		clean, _ := w.special(reflect.ValueOf(t), c)
		return writeJSON(out, clean.Interface())
	}
	return writeJSON(out, t)
}

// rewriteMembers copies the members of an object or the entries of an array, and what closes it.
func (w *walker) rewriteMembers(d *json.Decoder, out *bytes.Buffer, opener json.Delim, c class, depth int) error {
	out.WriteRune(rune(opener))
	paired, previous := notSecret, notSecret
	for i := 0; d.More(); i++ {
		if i > 0 {
			out.WriteByte(',')
		}
		under := c
		if opener == '[' {
			if previous != notSecret {
				under = previous
			}
		} else {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := t.(string)
			if own := secretName(name); own != notSecret {
				under = own
			} else if paired != notSecret && isOneOf(valueMembers, name) {
				under = paired
			}
			if err := writeJSON(out, w.r.Text(name)); err != nil {
				return err
			}
			out.WriteByte(':')
			start := out.Len()
			if err := w.rewrite(d, out, under, depth+1); err != nil {
				return err
			}
			if isOneOf(nameMembers, name) {
				paired = secretName(strings.Trim(string(out.Bytes()[start:]), `"`))
			}
			continue
		}
		start := out.Len()
		if err := w.rewrite(d, out, under, depth+1); err != nil {
			return err
		}
		previous = flagClass(reflect.ValueOf(strings.Trim(string(out.Bytes()[start:]), `"`)))
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	out.WriteByte(map[json.Delim]byte{'{': '}', '[': ']'}[opener])
	return nil
}

// writeJSON appends v without escaping < and >, as json.RawMessage values usually stand.
func writeJSON(out *bytes.Buffer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the line break of Encode
	return nil
}
