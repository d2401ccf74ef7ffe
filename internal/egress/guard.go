package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// ErrTooLarge is wrapped by the error for a body over Options.MaxBytes.
var ErrTooLarge = memory.Errorf(memory.ErrUnavailable, "the answer is too large")

// slowError is a deadline of ours that has passed.
type slowError struct {
	host string
	what string // reads on from the host
	wait time.Duration
}

func (e *slowError) Error() string { return fmt.Sprintf("%s %s %s", e.host, e.what, e.wait) }

// Unwrap makes every slowError an ErrUnavailable that is also a deadline.
func (e *slowError) Unwrap() []error {
	return []error{memory.ErrUnavailable, context.DeadlineExceeded}
}

// guard is the RoundTripper that holds every request to the Options.
type guard struct {
	next      *http.Transport
	options   Options
	endpoints map[string]endpoint
}

// CloseIdleConnections drops the connections that are kept for the next request.
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }

// RoundTrip sends req to a configured endpoint; see New for its errors.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, known := g.endpoints[keyOf(req.URL)]; !known {
		err := memory.Errorf(memory.ErrDenied, "%s is not a configured endpoint: request not sent", req.URL.Host)
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	host, o := req.URL.Host, g.options
	ctx, endTotal := context.WithTimeoutCause(req.Context(), o.Timeout, &slowError{host, "gave no whole answer within", o.Timeout})
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(nil); endTotal() }
	header := time.AfterFunc(o.HeaderTimeout, func() { cancel(&slowError{host, "began no answer within", o.HeaderTimeout}) })

	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	header.Stop()
	if err != nil {
		err = failure(ctx, host, err)
		end()
		return nil, err
	}
	if err := refusal(req, resp, o.MaxBytes); err != nil {
		end()
		return nil, errors.Join(err, resp.Body.Close())
	}
	resp.Body = &body{
		inner: resp.Body, ctx: ctx, end: end, host: host, left: o.MaxBytes, max: o.MaxBytes, idle: o.IdleTimeout,
		silent: func() { cancel(&slowError{host, "fell silent in its answer for", o.IdleTimeout}) },
	}
	return resp, nil
}

// refusal reports what the header alone forbids.
func refusal(req *http.Request, resp *http.Response, maxBytes int64) error {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return redirect(req, resp)
	case resp.ContentLength > maxBytes:
		return tooLarge(req.URL.Host, maxBytes)
	}
	return nil
}

func tooLarge(host string, maxBytes int64) error {
	return fmt.Errorf("%s sends more than %d bytes: %w", host, maxBytes, ErrTooLarge)
}

// body is an answer's body under the limits. It is read by one goroutine at a
// time, as every body is.
type body struct {
	inner  io.ReadCloser
	ctx    context.Context
	end    func()
	host   string
	left   int64 // bytes that may still come; negative once there were too many
	max    int64
	idle   time.Duration
	silent func() // called when a Read has waited for idle
}

// Read reads on, at most to one byte over the limit.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLarge(b.host, b.max)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	wait := time.AfterFunc(b.idle, b.silent)
	n, err := b.inner.Read(p)
	wait.Stop()
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return n - 1, tooLarge(b.host, b.max)
	case err != nil && !errors.Is(err, io.EOF):
		return n, failure(b.ctx, b.host, err)
	}
	return n, err
}

// Close ends the request, whatever of its body is still to come.
func (b *body) Close() error {
	b.end()
	return b.inner.Close()
}
