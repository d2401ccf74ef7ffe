package redact

import (
	"reflect"
	"strings"
)

// structure copies a struct. Its fields are named as in JSON.
func (w *walker) structure(v reflect.Value, c class, depth int) reflect.Value {
	t := v.Type()
	out := reflect.New(t).Elem()
	out.Set(v)
	fields := make(map[string]any, t.NumField())
	fits := true
	for i := range t.NumField() {
		name := fieldName(t.Field(i))
		under := c
		if own := secretName(name); own != notSecret {
			under = own
		}
		var field reflect.Value
		if t.Field(i).IsExported() {
			field = w.value(v.Field(i), under, depth+1)
			fits = setField(out.Field(i), field) && fits
		} else {
			left := maxExposed
			hidden := exposed(v.Field(i), depth, &left)
			field = w.value(reflect.ValueOf(hidden), under, depth+1)
			fits = fits && (hidden == nil || reflect.DeepEqual(hidden, field.Interface()))
		}
		if field.IsValid() {
			fields[name] = field.Interface()
		}
	}
	if !fits {
		return reflect.ValueOf(fields)
	}
	return out
}

// fieldName answers the name of a field in JSON.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

// setField sets a field of a copy to its clean value. It answers false if the field cannot hold that.
func setField(field, clean reflect.Value) bool {
	switch {
	case !clean.IsValid():
	case canHold(field.Type(), clean):
		field.Set(clean)
	case clean.Kind() == reflect.String && isNumeric(field.Kind()):
		field.SetZero() // a number has no room for a tag
	default:
		return false
	}
	return true
}

func isNumeric(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Complex128 }

// maxExposed bounds how many values exposed looks at in one unexported field.
const maxExposed = 1000

// exposed copies the texts that an unexported field shows, in plain types; nil where there are none. It does not follow
// pointers and interfaces: what lies behind them is no part of the struct's own text. left is what maxExposed leaves.
func exposed(v reflect.Value, depth int, left *int) any {
	if *left--; depth > maxNesting || *left < 0 {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			return string(v.Bytes())
		}
		var list []any
		for i := range min(v.Len(), maxExposed) {
			list = append(list, exposed(v.Index(i), depth+1, left))
		}
		return list
	case reflect.Map:
		fields := make(map[string]any)
		for entries := v.MapRange(); entries.Next() && *left >= 0; {
			fields[keyText(entries.Key())] = exposed(entries.Value(), depth+1, left)
		}
		return fields
	case reflect.Struct:
		fields := make(map[string]any, v.NumField())
		for i := range v.NumField() {
			fields[v.Type().Field(i).Name] = exposed(v.Field(i), depth+1, left)
		}
		return fields
	}
	return nil
}
