package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxNesting is the depth of values from which on they are left out.
const maxNesting = 64

// Value returns a copy of v without its secrets and leaves v as it is. Texts are redacted as by Text, in whatever kind
// of map, slice, array, struct, pointer or interface they lie, and so are the keys of maps. What lies under a name of a
// secret (a key of a map, a field of a struct, the member "value" beside a "name", the argument after a flag) is
// replaced whatever it is; only nil, booleans and empty texts stay.
//
// The copy has the type of v where that type can hold a tag. Otherwise numbers become 0 in typed places, an error or
// a Stringer that shows a secret becomes a text of the same words (an error stays an error), and a struct with a secret
// in an unexported field becomes a map of its fields. json.RawMessage keeps its order and stays JSON; []byte that is no
// UTF-8 keeps its other bytes. Values that contain themselves and those nested deeper than 64 levels are cut there.
func (r *Redactor) Value(v any) any {
	if v == nil {
		return nil
	}
	w := walker{r: r, open: make(map[visit]bool)}
	out := w.value(reflect.ValueOf(v), notSecret, 0)
	if !out.IsValid() {
		return nil
	}
	return out.Interface()
}

// visit is a reference that is being followed.
type visit struct {
	at  uintptr
	typ reflect.Type
	len int
}

// walker copies one value.
type walker struct {
	r    *Redactor
	open map[visit]bool
}

// secretName answers the class of a name if everything under it is a secret.
func secretName(name string) class {
	switch c := nameClass(name); c {
	case password, token, pin, oneTime, seedPhrase, authHeader, cookie, hashed:
		return c
	}
	return notSecret
}

// value answers the copy of v, which lies under a name of class c. The copy may have another type.
func (w *walker) value(v reflect.Value, c class, depth int) reflect.Value {
	if !v.IsValid() {
		return v
	}
	if depth > maxNesting {
		return reflect.Zero(v.Type())
	}
	if out, done := w.special(v, c); done {
		return out
	}
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(w.text(v.String(), c)).Convert(v.Type())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return w.number(v, c)
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return w.value(v.Elem(), c, depth)
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
		at := visit{at: v.Pointer(), typ: v.Type()}
		if v.Kind() == reflect.Slice {
			at.len = v.Len()
		}
		if w.open[at] {
			return reflect.Zero(v.Type())
		}
		w.open[at] = true
		defer delete(w.open, at)
	}
	return w.compound(v, c, depth)
}

// compound copies what holds other values.
func (w *walker) compound(v reflect.Value, c class, depth int) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		inner := w.value(v.Elem(), c, depth+1)
		if !inner.IsValid() || inner.Type() != v.Type().Elem() {
			return inner
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(inner)
		return out
	case reflect.Map:
		return w.mapping(v, c, depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return reflect.ValueOf(w.bytes(v.Bytes(), c)).Convert(v.Type())
		}
		return w.list(v, reflect.MakeSlice(v.Type(), v.Len(), v.Len()), c, depth)
	case reflect.Array:
		return w.list(v, reflect.New(v.Type()).Elem(), c, depth)
	case reflect.Struct:
		return w.structure(v, c, depth)
	}
	return v // booleans, channels, functions, unsafe pointers: they hold no text
}

// text answers s without secrets; under a secret's name all of it is one.
func (w *walker) text(s string, c class) string {
	if c == notSecret || s == "" || isTag(s) {
		return w.r.Text(s)
	}
	return w.r.tag(classKinds[c], s)
}

// number keeps a number that is no secret. A secret one becomes a tag, which fit turns into 0 where only a number goes.
func (w *walker) number(v reflect.Value, c class) reflect.Value {
	if c == notSecret {
		if text := fmt.Sprint(v.Interface()); len(text) < 14 || len(w.r.Find(text)) == 0 {
			return v
		}
		c = token
	}
	return reflect.ValueOf(w.r.tag(classKinds[c], fmt.Sprint(v.Interface())))
}

// bytes treats b as text, and leaves the bytes between secrets alone.
func (w *walker) bytes(b []byte, c class) []byte {
	if len(b) == 0 {
		return slices.Clone(b)
	}
	if utf8.Valid(b) || c != notSecret {
		return []byte(w.text(string(b), c))
	}
	s := string(b)
	return []byte(w.r.replace(s, w.r.Find(s)))
}

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	timeType     = reflect.TypeFor[time.Time]()
	errorType    = reflect.TypeFor[error]()
	stringerType = reflect.TypeFor[fmt.Stringer]()
)

// special copies values whose type has its own meaning. It answers false for the others.
func (w *walker) special(v reflect.Value, c class) (reflect.Value, bool) {
	t := v.Type()
	switch {
	case t == rawType:
		return reflect.ValueOf(w.raw(v.Bytes(), c)), true
	case t == numberType:
		if c == notSecret && len(w.r.Find(v.String())) == 0 {
			return v, true
		}
		if c == notSecret {
			c = token
		}
		return reflect.ValueOf(w.r.tag(classKinds[c], v.String())), true
	case t == timeType || !v.CanInterface() || v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && v.IsNil():
		return v, t == timeType
	}
	var text string
	switch {
	case t.Implements(errorType):
		text = describe(v.Interface().(error).Error)
		clean := w.text(text, c)
		if clean == text {
			return v, true
		}
		return reflect.ValueOf(errors.New(clean)), true
	case t.Implements(stringerType) && (v.Kind() == reflect.Struct || v.Kind() == reflect.Pointer || v.Kind() == reflect.String):
		text = describe(v.Interface().(fmt.Stringer).String)
		if clean := w.text(text, c); clean != text && v.Kind() != reflect.String {
			return reflect.ValueOf(clean), true
		}
	}
	return reflect.Value{}, false
}

// describe calls a method of a foreign type. A method that panics says nothing.
func describe(method func() string) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return method()
}

// list copies v into out, or into a []any if an entry changes its type. The entry after a flag of a secret is one.
func (w *walker) list(v, out reflect.Value, c class, depth int) reflect.Value {
	entries := make([]reflect.Value, v.Len())
	fits := true
	for i := range entries {
		under := c
		if i > 0 && c == notSecret {
			under = flagClass(v.Index(i - 1))
		}
		entries[i] = w.value(v.Index(i), under, depth+1)
		fits = fits && canHold(v.Type().Elem(), entries[i])
	}
	if !fits {
		out = reflect.ValueOf(make([]any, len(entries)))
	}
	for i, e := range entries {
		if e.IsValid() {
			out.Index(i).Set(e)
		}
	}
	return out
}

// flagClass answers the class of the value after v, if v is the flag of a secret that has its value in the next argument.
func flagClass(v reflect.Value) class {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.String || !strings.HasPrefix(v.String(), "--") || strings.Contains(v.String(), "=") {
		return notSecret
	}
	return secretName(v.String())
}

// canHold tells whether a place of type t can hold v.
func canHold(t reflect.Type, v reflect.Value) bool {
	return !v.IsValid() || v.Type().AssignableTo(t)
}

// mapping copies a map. It keeps the type if every entry fits, and becomes a map[string]any or map[any]any otherwise.
func (w *walker) mapping(v reflect.Value, c class, depth int) reflect.Value {
	t := v.Type()
	paired := w.pairClass(v)
	keys, values := make([]reflect.Value, 0, v.Len()), make([]reflect.Value, 0, v.Len())
	fits := true
	for entries := v.MapRange(); entries.Next(); {
		name := keyText(entries.Key())
		under := c
		if own := secretName(name); own != notSecret {
			under = own
		} else if paired != notSecret && isOneOf(valueMembers, name) {
			under = paired
		}
		key := w.value(entries.Key(), notSecret, depth+1)
		value := w.value(entries.Value(), under, depth+1)
		fits = fits && canHold(t.Key(), key) && canHold(t.Elem(), value)
		keys, values = append(keys, key), append(values, value)
	}
	if !fits {
		t = reflect.TypeFor[map[any]any]()
		if v.Type().Key().Kind() == reflect.String {
			t = reflect.TypeFor[map[string]any]()
		}
	}
	out := reflect.MakeMapWithSize(t, len(keys))
	for i, key := range keys {
		if t.Key().Kind() == reflect.String {
			key = freeKey(out, key.String()).Convert(t.Key())
		}
		value := values[i]
		if !value.IsValid() {
			value = reflect.Zero(t.Elem())
		}
		out.SetMapIndex(key, value)
	}
	return out
}

// freeKey answers key, with a number behind it if out has one already: two keys may get one tag.
func freeKey(out reflect.Value, key string) reflect.Value {
	free := key
	for n := 2; out.MapIndex(reflect.ValueOf(free).Convert(out.Type().Key())).IsValid(); n++ {
		free = key + "~" + strconv.Itoa(n)
	}
	return reflect.ValueOf(free)
}

// keyText answers the key of a map as a name.
func keyText(key reflect.Value) string {
	for key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	if key.Kind() == reflect.String {
		return key.String()
	}
	return ""
}

var (
	nameMembers  = setOf("name key field header variable var param")
	valueMembers = setOf("value val content plaintext")
)

// pairClass answers the class of the member "value" of a map such as {"name": "DB_PASSWORD", "value": "x"}.
func (w *walker) pairClass(v reflect.Value) class {
	if v.Len() > 16 || v.Type().Key().Kind() != reflect.String {
		return notSecret
	}
	for entries := v.MapRange(); entries.Next(); {
		if isOneOf(nameMembers, entries.Key().String()) {
			if c := secretName(keyText(entries.Value())); c != notSecret {
				return c
			}
		}
	}
	return notSecret
}
