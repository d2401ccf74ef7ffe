package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Upstream is the provider that requests are passed on to.
type Upstream struct {
	BaseURL string // with /v1
	Key     string // "" for none
	Model   string // in place of "openclawssy" and of none
	Client  *http.Client
}

// passed are the headers of a client that a provider gets. Its Authorization is not
// among them: that is the way in to this server.
var passed = []string{
	"Content-Type", "Accept", "Accept-Language", "User-Agent", "Idempotency-Key", "OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project", "HTTP-Referer", "X-Title",
	"X-Client-Request-Id", "Traceparent", "Tracestate",
}

// kept are the headers of an answer that are ours to set, or only of its connection.
var kept = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Content-Length": true, "Set-Cookie": true, "Strict-Transport-Security": true, "Alt-Svc": true, "Server": true, "Date": true,
	"X-Content-Type-Options": true, "Referrer-Policy": true, "Cache-Control": true, "Cross-Origin-Resource-Policy": true,
	"Content-Security-Policy": true, "Content-Security-Policy-Report-Only": true, "Www-Authenticate": true, "Clear-Site-Data": true, "Refresh": true, "Location": true,
}

// send passes a request on. Its errors are of our side or of the way: whatever the
// provider answers is an answer.
func (u *Upstream) send(ctx context.Context, from *http.Request, path string, body []byte) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, from.Method, strings.TrimRight(u.BaseURL, "/")+path, payload)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "ask the provider: %w", err)
	}
	for _, name := range passed {
		if v := from.Header.Values(name); len(v) > 0 {
			req.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	if u.Key != "" {
		req.Header.Set("Authorization", "Bearer "+u.Key)
	}
	req.URL.RawQuery = from.URL.RawQuery
	resp, err := u.Client.Do(req)
	if err != nil {
		return nil, &wayError{err}
	}
	return resp, nil
}

// wayError is a failure on the way to the provider, or back.
type wayError struct{ err error }

func (e *wayError) Error() string { return "ask the provider: " + e.err.Error() }
func (e *wayError) Unwrap() error { return e.err }

// head copies what of an answer's header is the client's business.
func head(to http.Header, from http.Header) {
	for name, values := range from {
		if !kept[http.CanonicalHeaderKey(name)] && !strings.HasPrefix(name, "Access-Control-") && !strings.HasPrefix(name, "X-Openclawssy-") {
			to[name] = values
		}
	}
	// An error page of the provider's must not run as a page of ours.
	to.Set("Content-Security-Policy", "sandbox; default-src 'none'")
}

// statusOf is the status of an error that kept a request from its provider.
func statusOf(err error) int {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, memory.ErrInvalid):
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}
