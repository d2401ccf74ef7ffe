package clients

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// errForm is a file that is not as it should be.
func errForm(format string, args ...any) error {
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, format, args...), "--print shows what belongs into the file, to put in by hand; nothing was changed")
}

// object returns the object that v is, nil for another value.
func object(v *hujson.Value) *hujson.Object {
	o, is := v.Value.(*hujson.Object)
	if !is {
		return nil
	}
	return o
}

// at returns the position of a member, the last one of that name; -1 for none.
func at(o *hujson.Object, key string) int {
	found := -1
	for i := range o.Members {
		if literal, is := o.Members[i].Name.Value.(hujson.Literal); is && literal.String() == key {
			found = i
		}
	}
	return found
}

// plainOf returns a JSON text with comments as values.
func plainOf(text []byte) (any, error) {
	standard, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, err
	}
	var v any
	return v, json.Unmarshal(standard, &v)
}

// jsonWith returns a JSON text, which may have comments and trailing commas, with
// value at path. Objects on the way are made. All else stays as it is.
func jsonWith(text []byte, path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(bytes.Clone(text))
	if err != nil {
		return nil, errForm("it is not JSON: %w", err)
	}
	v := &root
	indent := ""
	for i, key := range path {
		o := object(v)
		if o == nil {
			return nil, errForm("its member %s is no object", strings.Join(path[:i], "."))
		}
		k := at(o, key)
		if k < 0 {
			for _, missing := range slices.Backward(path[i+1:]) {
				value = map[string]any{missing: value}
			}
			return insert(text, v, o, indent, key, value)
		}
		indent = indentBefore(text, o.Members[k].Name.StartOffset)
		v = &o.Members[k].Value
	}
	have, err := plainOf(text[v.StartOffset:v.EndOffset])
	if err != nil {
		return nil, errForm("it is not JSON: %w", err)
	}
	raw, err := quoted(value, indent, "  ")
	if err != nil {
		return nil, err
	}
	want, err := plainOf(raw)
	if err != nil || reflect.DeepEqual(have, want) {
		return text, err
	}
	return slices.Concat(text[:v.StartOffset], raw, text[v.EndOffset:]), nil
}

// indentBefore returns the white space in front of a position, where it begins a
// line.
func indentBefore(text []byte, pos int) string {
	line := text[bytes.LastIndexByte(text[:pos], '\n')+1 : pos]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}

// insert adds a member at the end of the object o, which is the value v. outer is
// the indentation of the line on which v begins.
func insert(text []byte, v *hujson.Value, o *hujson.Object, outer, key string, value any) ([]byte, error) {
	name, err := quoted(key, "", "")
	if err != nil {
		return nil, err
	}
	end := v.EndOffset - 1 // the brace
	from, comma := v.StartOffset+1, ""
	indent, unit := outer+"  ", "  "
	if n := len(o.Members); n > 0 {
		last := o.Members[n-1]
		from = last.Value.EndOffset
		if last.Value.AfterExtra == nil { // no trailing comma
			comma = ","
		}
		if !bytes.Contains(text[v.StartOffset:end], []byte("\n")) { // all on one line
			raw, err := quoted(value, "", "")
			return slices.Concat(text[:from], []byte(comma), text[from:end], []byte(" "), name, []byte(": "), raw, text[end:]), err
		}
		if own := indentBefore(text, last.Name.StartOffset); own != "" {
			indent = own
			if rest, deeper := strings.CutPrefix(own, outer); deeper && rest != "" {
				unit = rest
			}
		}
	}
	raw, err := quoted(value, indent, unit)
	if err != nil {
		return nil, err
	}
	// What stands behind the last member, comments as a rule, stays with it.
	tail := text[from:end]
	kept := bytes.TrimRight(tail, " \t\r\n")
	closing := tail[len(kept):]
	if !bytes.Contains(closing, []byte("\n")) {
		closing = []byte("\n" + outer)
	}
	return slices.Concat(text[:from], []byte(comma), kept, []byte("\n"+indent), name, []byte(": "), raw, closing, text[end:]), nil
}

// jsonWithout returns a JSON text without the member at path, and whether it was
// there. All else stays, but for the comma.
func jsonWithout(text []byte, path []string) ([]byte, bool, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return text, false, nil
	}
	root, err := hujson.Parse(bytes.Clone(text))
	if err != nil {
		return nil, false, errForm("it is not JSON: %w", err)
	}
	v := &root
	for i, key := range path {
		o := object(v)
		if o == nil {
			return text, false, nil
		}
		k := at(o, key)
		if k < 0 {
			return text, false, nil
		}
		if i < len(path)-1 {
			v = &o.Members[k].Value
			continue
		}
		m := o.Members[k]
		before := bytes.TrimRight(m.Name.BeforeExtra, " \t\r\n") // comments
		start, end := m.Name.StartOffset-len(m.Name.BeforeExtra), m.Value.EndOffset
		switch {
		case k > 0: // the comma before it goes
			previous := o.Members[k-1].Value
			return slices.Concat(text[:previous.EndOffset], previous.AfterExtra, before, text[end:]), true, nil
		case len(o.Members) > 1: // the comma behind it goes
			next := o.Members[1].Name
			return slices.Concat(text[:start], before, text[next.StartOffset-len(next.BeforeExtra):]), true, nil
		}
		if m.Value.AfterExtra != nil { // with its trailing comma
			end += len(m.Value.AfterExtra) + 1
		}
		return slices.Concat(text[:start], before, text[end:]), true, nil
	}
	return text, false, nil
}
