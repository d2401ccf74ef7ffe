package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/egress"
)

// Wire carries one request, for the go-openai client or without it, and keeps
// what that client hides: the status, the header, and a body that it leaves open
// after errors of a stream. An Endpoint makes it.
type Wire struct {
	// MaxBytes bounds the answer's body; more is egress.ErrTooLarge.
	MaxBytes int64
	// Watch, unless nil, gets a copy of the answer's body as it is read.
	Watch io.Writer

	of     *Endpoint
	sent   bool
	status int // 0 until an answer begins
	header http.Header
	body   io.ReadCloser
}

// Do sends req.
func (w *Wire) Do(req *http.Request) (*http.Response, error) {
	w.sent = true
	resp, err := w.of.Out.Do(req)
	if err != nil {
		return nil, err
	}
	w.status, w.header, w.body = resp.StatusCode, resp.Header, resp.Body
	resp.Body = &capped{ReadCloser: resp.Body, left: w.MaxBytes, host: w.of.Host}
	if w.Watch != nil {
		resp.Body = watched{io.TeeReader(resp.Body, w.Watch), resp.Body}
	}
	return resp, nil
}

type watched struct {
	io.Reader
	io.Closer
}

// Answered reports whether the endpoint took the request: it has answered with a
// status below 300.
func (w *Wire) Answered() bool { return w.status > 0 && w.status < http.StatusMultipleChoices }

// Sent reports whether the request has gone out.
func (w *Wire) Sent() bool { return w.sent }

// Wait notes how long the endpoint asks to be left alone, where it says so in its
// answer's body; its header wins.
func (w *Wire) Wait(d time.Duration) {
	if w.header.Get("Retry-After") == "" && d > 0 {
		w.header.Set("Retry-After", strconv.Itoa(int(d.Round(time.Second)/time.Second)))
	}
}

// close ends the exchange. A connection that breaks at its end is of no account.
func (w *Wire) close() {
	if w.body != nil {
		w.body.Close()
	}
}

// capped reads up to left bytes and fails on more.
type capped struct {
	io.ReadCloser
	left int64
	host string
}

func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.ReadCloser.Read(p)
	if int64(n) > c.left {
		return int(c.left), fmt.Errorf("answer of %s: %w", c.host, egress.ErrTooLarge)
	}
	c.left -= int64(n)
	return n, err
}

// maxRetryAfter is the longest wait that is taken at its word.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads the header of that name (RFC 9110, section 10.2.3): seconds,
// or an HTTP date. Anything else, and what lies in the past, is 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	seconds, err := strconv.ParseUint(text, 10, 63)
	if errors.Is(err, strconv.ErrRange) {
		return maxRetryAfter
	}
	if err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(0, date.Sub(now)), maxRetryAfter)
}
