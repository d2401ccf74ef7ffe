package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/sashabaranov/go-openai"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// ReplyClass says what is wrong with an answer that arrived.
type ReplyClass string

// The classes.
const (
	NotJSON   ReplyClass = "not_json"   // the body is not what the API answers
	NoChoices ReplyClass = "no_choices" // a chat completion without a message
	Empty     ReplyClass = "empty"      // no text (null or blank) and no tool call
	Refused   ReplyClass = "refused"    // the model, or a filter before it, declines
	Truncated ReplyClass = "truncated"  // cut at the token limit
	TooLarge  ReplyClass = "too_large"  // more bytes than are read
)

// ReplyError is an answer that arrived and is of no use. Asking again as it
// stands is not worth it, so the client does not. It is an ErrUnavailable.
type ReplyError struct {
	Class ReplyClass
	What  string // what is wrong, where Class is none of the above
	Text  string // what there is of the answer: its beginning, or the refusal; never part of Error
}

func (e *ReplyError) Error() string {
	if e.What != "" {
		return "the model's answer cannot be used: " + e.What
	}
	return "the model's answer cannot be used: " + map[ReplyClass]string{
		NotJSON:   "it is not the JSON of the API",
		NoChoices: "it holds no message",
		Empty:     "it is empty",
		Refused:   "the model declines to answer",
		Truncated: "it was cut at the token limit",
		TooLarge:  "it is too large",
	}[e.Class]
}

// Unwrap makes every ReplyError an ErrUnavailable.
func (e *ReplyError) Unwrap() error { return memory.ErrUnavailable }

// StatusError is an HTTP status that says no. 401 and 403 are ErrDenied, all
// others ErrUnavailable.
type StatusError struct {
	Host       string
	Status     int
	Message    string        // the endpoint's own words, cleaned and cut; may be empty
	Code       string        // the endpoint's own code; may be empty
	RetryAfter time.Duration // how long it asks to be left alone; 0 if it does not say
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.Host, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap gives the status its kind.
func (e *StatusError) Unwrap() error {
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return memory.ErrDenied
	}
	return memory.ErrUnavailable
}

// quotaCodes are codes of a 429 that no waiting helps against.
var quotaCodes = map[string]bool{"insufficient_quota": true, "billing_hard_limit_reached": true}

// temporary reports whether the same request may succeed a little later.
func (e *StatusError) temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	case http.StatusTooManyRequests:
		return !quotaCodes[e.Code]
	case http.StatusNotImplemented:
		return false
	}
	return e.Status >= 500
}

func (e *StatusError) hint(k Keys) string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "check " + k.Key + " and that it may use " + k.Model
	case e.Status == http.StatusNotFound:
		return "check " + k.BaseURL + " (it usually ends in /v1) and " + k.Model
	case quotaCodes[e.Code]:
		return "the account at the provider is out of credit"
	case e.RetryAfter > 0:
		return "it asks to be left alone for " + e.RetryAfter.Round(time.Second).String()
	case e.temporary():
		return "try again later; the endpoint has trouble"
	}
	return "check " + k.Model + " and " + k.BaseURL
}

// brokenError is a conversation that broke off on the way.
type brokenError struct{ what string }

func (e *brokenError) Error() string { return e.what }
func (e *brokenError) Unwrap() error { return memory.ErrUnavailable }

// accountError is a failure to note what a call cost. What was reserved for it
// stays counted.
type accountError struct{ err error }

func (e *accountError) Error() string { return "the model call is not accounted: " + e.err.Error() }
func (e *accountError) Unwrap() error { return e.err }

// Retryable reports whether err may be gone at the next try.
func Retryable(err error) bool {
	var reply *ReplyError
	var status *StatusError
	var account *accountError
	switch {
	case errors.As(err, &reply), errors.As(err, &account), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return status.temporary()
	}
	return memory.KindOf(err) == memory.ErrUnavailable
}

// classify gives the error of one exchange its type. The library's own errors
// are not passed on: they carry the body.
func (w *Wire) classify(err error) error {
	var inFlight *url.Error
	if errors.As(err, &inFlight) {
		err = inFlight.Err // without the method and URL
	}
	switch {
	case w.status == 0 && w.sent:
		return w.unreached(kinded(err))
	case w.status == 0:
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the request cannot be sent: %w", err), "choose another "+w.of.Keys.Model+", or fewer options")
	case w.status >= http.StatusBadRequest:
		return w.statusError(err)
	}
	return w.replyError(err)
}

// unreached adds to an error without an answer what to look at.
func (w *Wire) unreached(err error) error {
	var redirect *egress.RedirectError
	switch {
	case memory.HintOf(err) != "":
		return err
	case errors.As(err, &redirect):
		return memory.WithHint(err, "if you trust the place that it leads to, put that into "+w.of.Keys.BaseURL)
	case errors.Is(err, memory.ErrUnavailable):
		return memory.WithHint(err, "is the endpoint running? check "+w.of.Keys.BaseURL)
	}
	return err
}

// kinded makes an error of transport an ErrUnavailable, unless it has a kind
// already or is the caller's own end of the request.
func kinded(err error) error {
	if memory.HasKind(err) || errors.Is(err, context.Canceled) {
		return err
	}
	return memory.Errorf(memory.ErrUnavailable, "%w", err)
}

func (w *Wire) statusError(err error) error {
	out := &StatusError{Host: w.of.Host, Status: w.status, RetryAfter: retryAfter(w.header, w.of.Now())}
	var api *openai.APIError
	if errors.As(err, &api) {
		out.Message = w.clean(api.Message)
		if api.Code != nil {
			out.Code = w.clean(fmt.Sprint(api.Code))
		}
	}
	return memory.WithHint(out, out.hint(w.of.Keys))
}

// replyError types what went wrong in reading an answer that began well.
func (w *Wire) replyError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var api *openai.APIError
	switch {
	case errors.Is(err, egress.ErrTooLarge):
		return &ReplyError{Class: TooLarge}
	case errors.As(err, &api): // an error inside a stream
		return &brokenError{what: w.of.Host + " reports an error in its answer: " + w.clean(api.Message)}
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.EOF):
		return memory.WithHint(&ReplyError{Class: NotJSON}, "check "+w.of.Keys.BaseURL+": it usually ends in /v1")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &brokenError{what: w.of.Host + " broke off its answer"}
	}
	return kinded(err)
}

const maxMessage = 200 // characters of an endpoint's words in an error

// clean makes an endpoint's words fit for an error: one line, cut, and without
// the key, which some endpoints send back.
func (w *Wire) clean(s string) string {
	if w.of.Key != "" {
		s = strings.ReplaceAll(s, w.of.Key, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > maxMessage {
		runes = append(runes[:maxMessage], '…')
	}
	return string(bytes.ToValidUTF8([]byte(string(runes)), nil))
}
