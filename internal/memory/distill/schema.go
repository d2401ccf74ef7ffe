package distill

import (
	"encoding/json"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Schema returns the JSON Schema of a reply for endpoints with structured
// outputs. It keeps to what strict mode allows: every key required, optional
// values nullable, no other keys.
func Schema() json.RawMessage {
	kinds := `"` + strings.Join(memory.ItemKinds, `","`) + `"`
	return json.RawMessage(strings.Replace(replySchema, "KINDS", kinds, 1))
}

const replySchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["new_items", "updates"],
  "properties": {
    "new_items": {"type": "array", "items": {
      "type": "object",
      "additionalProperties": false,
      "required": ["kind", "title", "content", "importance", "confidence", "evidence", "valid_from", "valid_to", "supersedes"],
      "properties": {
        "kind": {"type": "string", "enum": [KINDS]},
        "title": {"type": "string", "description": "short and specific, at most 80 characters"},
        "content": {"type": "string", "description": "one self-contained sentence, names and dates resolved"},
        "importance": {"type": "integer", "description": "1 to 5; 4 and 5 are what must not be forgotten"},
        "confidence": {"type": "number", "description": "0 to 1"},
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/quote"}},
        "valid_from": {"type": ["string", "null"], "description": "RFC 3339 date or time from which the content holds"},
        "valid_to": {"type": ["string", "null"], "description": "RFC 3339 date or time until which the content holds"},
        "supersedes": {"type": ["string", "null"], "description": "id of the offered item that this replaces, or new:n for entry n of new_items"}
      }}},
    "updates": {"type": "array", "items": {
      "type": "object",
      "additionalProperties": false,
      "required": ["id", "new_title", "new_content", "confidence", "evidence"],
      "properties": {
        "id": {"type": "string", "description": "id of an offered item"},
        "new_title": {"type": ["string", "null"]},
        "new_content": {"type": "string"},
        "confidence": {"type": "number"},
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/quote"}}
      }}}
  },
  "$defs": {"quote": {
    "type": "object",
    "additionalProperties": false,
    "required": ["event_id", "quote"],
    "properties": {
      "event_id": {"type": "string"},
      "quote": {"type": "string", "description": "exact span of that event's text"}
    }}}
}`
