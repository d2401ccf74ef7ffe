package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestBodySaysWhatItTakes(t *testing.T) {
	type where struct {
		ID   string `json:"id"`
		Zone string `json:"zone,omitempty"`
	}
	type doc struct {
		Session where   `json:"session"`
		Events  []where `json:"events"`
		Hidden  string  `json:"-"`
	}
	for _, c := range []struct{ body, message, hint string }{
		{`{"session": {"id": "s"}, "events": []}`, "", ""},
		{`{"sesion": {}}`, `unknown field "sesion"`, "it takes session (id, zone), events (id, zone); GET"},
		{`{"session": {"name": "s"}}`, `unknown field "name"`, "session (id, zone)"},
		{`{"session": 7}`, "cannot unmarshal number", "it takes session"},
		{`{} {}`, "more follows it", ""},
		{``, "EOF", "it takes session"},
		{`{"session": `, "unexpected EOF", "it takes session"},
	} {
		var into doc
		err := body(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &into)
		if c.message == "" {
			if err != nil || into.Session.ID != "s" {
				t.Errorf("%s: %+v, %v", c.body, into, err)
			}
			continue
		}
		if !errors.Is(err, memory.ErrInvalid) || !strings.Contains(err.Error(), c.message) || !strings.Contains(memory.HintOf(err), c.hint) {
			t.Errorf("%s: %v (%s)", c.body, err, memory.HintOf(err))
		}
	}
}

func TestTagsMatch(t *testing.T) {
	for header, want := range map[string]bool{"": false, `"a"`: true, `W/"a"`: true, `"b", "a"`: true, `"b"`: false, "*": true, `a`: false} {
		if got := matches(header, `"a"`); got != want {
			t.Errorf("If-None-Match: %s matches %t, want %t", header, got, want)
		}
	}
}

// TestEveryKindHasAStatus: an error whose kind has none would be answered with status 0.
func TestEveryKindHasAStatus(t *testing.T) {
	for _, kind := range []memory.Kind{memory.ErrInvalid, memory.ErrNotFound, memory.ErrConflict, memory.ErrDenied, memory.ErrUnavailable, memory.ErrCorrupt, memory.ErrInternal} {
		status := statusOf[kind]
		if doc := problemOf(status, memory.Errorf(kind, "no")); http.StatusText(status) == "" || doc.Status != status || doc.Error.Kind != kind {
			t.Errorf("%s: %+v", kind, doc)
		}
	}
}
