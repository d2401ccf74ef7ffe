package events

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// appendEvent appends e to dst as a JSON object without its seq, which the
// journal adds with the checksum. Strings in e are valid UTF-8.
func appendEvent(dst []byte, e memory.Event) ([]byte, error) {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, e.ID)
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, string(e.Type))
	dst = append(dst, `,"text":`...)
	dst = appendString(dst, e.Text)
	dst = append(dst, `,"session_id":`...)
	dst = appendString(dst, e.SessionID)
	dst = append(dst, `,"run_id":`...)
	dst = appendString(dst, e.RunID)
	dst = append(dst, `,"timestamp":"`...)
	dst = e.Timestamp.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","origin":`...)
	dst = appendString(dst, string(e.Origin))
	if len(e.Metadata) > 0 {
		dst = append(dst, `,"metadata":`...)
		var err error
		if dst, err = appendValue(dst, e.Metadata); err != nil {
			return nil, &memory.FieldError{Field: "metadata", Reason: "must be plain data: " + err.Error()}
		}
	}
	return append(dst, '}'), nil
}

// plain says of each byte below 128 whether it stands in a JSON string as it is.
var plain = func() (table [utf8.RuneSelf]bool) {
	for c := range table {
		table[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return table
}()

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf || plain[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendValue appends plain data as JSON; members stand in the order of their
// names. What is not of the common types goes through encoding/json.
func appendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return appendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v has no form in JSON", v)
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	case map[string]any:
		return appendObject(dst, v)
	case []any:
		return appendList(dst, v)
	}
	raw, err := json.Marshal(value)
	return append(dst, raw...), err
}

func appendObject(dst []byte, object map[string]any) ([]byte, error) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		var err error
		if dst, err = appendValue(dst, object[name]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendList(dst []byte, list []any) ([]byte, error) {
	dst = append(dst, '[')
	for i, element := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, element); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}
