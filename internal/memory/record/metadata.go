package record

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// payloadMetadata is the payload member that stands for metadata where none is
// given beside the payload (RFC 4.1). It stays in the payload.
const payloadMetadata = "_metadata"

// The members of metadata that have rules. Others are kept as they are.
const (
	metaSource       = "source"
	metaConfidence   = "confidence"
	metaTags         = "tags"
	metaValidAt      = "valid_at"
	metaLastAccessed = "last_accessed"
	metaAccessCount  = "access_count"
)

// metadataOf checks what was given as metadata beside a payload and returns it
// as compact JSON, or nil for none. nil means that nothing was given, and the
// payload's own member counts; JSON null means none whatever the payload says.
func metadataOf(given json.RawMessage, payload object) (json.RawMessage, error) {
	field := "metadata"
	if given == nil {
		convention, present := payload.get(payloadMetadata)
		if !present {
			return nil, nil
		}
		field, given = "payload."+payloadMetadata, convention
	}
	return checkedMetadata(field, given)
}

// checkedMetadata returns metadata as compact JSON, or nil for JSON null.
func checkedMetadata(field string, given json.RawMessage) (json.RawMessage, error) {
	if isNull(given) {
		return nil, nil
	}
	o, err := parseObject(field, given)
	if err != nil {
		return nil, err
	}
	if faults := metadataFaults(o, false); len(faults) > 0 {
		return nil, &memory.FieldError{Field: field + "." + faults[0].path, Reason: faults[0].reason}
	}
	return o.raw(), nil
}

type fault struct{ path, reason string }

// metadataFaults lists the rules that metadata breaks. Times need only be text,
// as in the reference, unless strict: then they must be times.
func metadataFaults(o object, strict bool) []fault {
	var faults []fault
	for _, m := range o {
		if isNull(m.value) {
			continue
		}
		var err error
		path := m.name
		switch m.name {
		case metaSource:
			err = textRule(m.value)
		case metaValidAt, metaLastAccessed:
			if err = textRule(m.value); err == nil && strict {
				err = timeRule(m.value)
			}
		case metaConfidence:
			err = confidenceRule(m.value)
		case metaAccessCount:
			err = countRule(m.value)
		case metaTags:
			path, err = tagsRule(m.value)
		}
		if err != nil {
			faults = append(faults, fault{path, err.Error()})
		}
	}
	return faults
}

func textRule(raw json.RawMessage) error {
	s, err := decodeText(raw)
	if err == nil && s == "" {
		err = fmt.Errorf("must not be empty")
	}
	return err
}

func timeRule(raw json.RawMessage) error {
	s, err := decodeText(raw)
	if err != nil {
		return err
	}
	if _, _, ok := parseTime(s); !ok {
		return fmt.Errorf("must be a time such as 2026-03-01T00:00:00Z, not %q", s)
	}
	return nil
}

func confidenceRule(raw json.RawMessage) error {
	if x, err := floatOf(raw); err != nil || x < 0 || x > 1 {
		return fmt.Errorf("must be a number from 0 to 1")
	}
	return nil
}

// floatOf reads a JSON number.
func floatOf(raw json.RawMessage) (float64, error) { return strconv.ParseFloat(string(raw), 64) }

func countRule(raw json.RawMessage) error {
	n, err := decodeInteger(raw)
	if err == nil && n < 0 {
		err = fmt.Errorf("must not be negative")
	}
	return err
}

// tagsRule returns also the path of what is wrong.
func tagsRule(raw json.RawMessage) (string, error) {
	if !isList(raw) {
		return metaTags, fmt.Errorf("must be a list")
	}
	tags, err := items(raw)
	if err != nil {
		return metaTags, err
	}
	for i, tag := range tags {
		if err := textRule(tag); err != nil {
			return fmt.Sprintf("%s[%d]", metaTags, i), err
		}
	}
	return metaTags, nil
}
