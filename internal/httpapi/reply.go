package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// statusOf is the HTTP status of each kind of error.
var statusOf = map[memory.Kind]int{
	memory.ErrInvalid: http.StatusBadRequest, memory.ErrNotFound: http.StatusNotFound, memory.ErrConflict: http.StatusConflict, memory.ErrDenied: http.StatusForbidden,
	memory.ErrUnavailable: http.StatusServiceUnavailable, memory.ErrCorrupt: http.StatusInternalServerError, memory.ErrInternal: http.StatusInternalServerError,
}

// problem is RFC 9457's problem details. Error is the object that every face
// shows.
type problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Detail string     `json:"detail"`
	Hint   string     `json:"hint,omitempty"`
	Error  op.Failure `json:"error"`
}

// fail answers with an error, in the status of its kind.
func (s *Server) fail(w http.ResponseWriter, err error) {
	s.answer(w, statusOf[memory.KindOf(err)], err)
}

func (s *Server) answer(w http.ResponseWriter, status int, err error) {
	doc := problemOf(status, err)
	if status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable {
		s.Log.Error().Err(err).Msg("a request failed")
	}
	raw, failed := encode(doc)
	if failed != nil {
		raw = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	s.bound(w)
	w.WriteHeader(status)
	s.put(w, raw)
}

func problemOf(status int, err error) problem {
	f := op.FailureOf(err)
	return problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Message, Hint: f.Hint, Error: f}
}

// reply answers with a document. A read that carries the tag of the very same
// answer gets 304.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, doc any) error {
	raw, err := encode(doc)
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		sum := sha256.Sum256(raw)
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "private, no-cache")
		if matches(r.Header.Get("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	s.bound(w)
	s.put(w, raw)
	return nil
}

func matches(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
			return true
		}
	}
	return false
}

// bound gives the caller so long to take the answer.
func (s *Server) bound(w http.ResponseWriter) {
	if err := http.NewResponseController(w).SetWriteDeadline(s.Now().Add(s.Limits.WriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.Log.Debug().Err(err).Msg("bound an answer")
	}
}

// put sends bytes; a caller that has gone is not our trouble.
func (s *Server) put(w http.ResponseWriter, raw []byte) {
	if _, err := w.Write(raw); err != nil {
		s.Log.Debug().Err(err).Msg("the caller has gone")
	}
}

// encode writes a document as the command line's --json does, on one line.
func encode(doc any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// body reads a JSON object into doc. An unknown member is refused.
func body(r *http.Request, doc any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(doc); err != nil {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the body: %w", err), "it takes "+membersOf(reflect.TypeOf(doc))+"; GET /openapi.json shows its form")
	}
	if dec.More() {
		return memory.Errorf(memory.ErrInvalid, "the body must be one JSON object, and more follows it")
	}
	return nil
}

// membersOf lists the members of a document, those of objects within it in brackets.
func membersOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return ""
	}
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || !field.IsExported() || name == "-" {
			continue
		}
		if within := membersOf(field.Type); within != "" {
			name += " (" + within + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// stream is an answer of server-sent events.
type stream struct {
	s   *Server
	w   http.ResponseWriter
	ctx context.Context
	err error // of the first write that failed
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &stream{s: s, w: w, ctx: r.Context()}
}

// send sends one event. After a failure it does nothing.
func (t *stream) send(event string, doc any) {
	raw, err := encode(doc)
	if t.err != nil {
		return
	}
	if t.err = err; err == nil {
		t.raw("event: " + event + "\ndata: " + string(raw) + "\n")
	}
}

// raw sends text and sees that it goes out now.
func (t *stream) raw(text string) {
	t.s.bound(t.w)
	if _, t.err = t.w.Write([]byte(text)); t.err == nil {
		t.err = http.NewResponseController(t.w).Flush()
	}
}
