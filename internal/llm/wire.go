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

// wire carries one request for the go-openai client, and keeps what that client
// hides: the status, the header, and a body that it leaves open after errors of
// a stream.
type wire struct {
	out      *http.Client
	host     string
	key      string
	now      func() time.Time
	maxBytes int64 // of the body

	sent   bool
	status int // 0 until an answer begins
	header http.Header
	body   io.ReadCloser
}

// Do sends req.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	w.sent = true
	resp, err := w.out.Do(req)
	if err != nil {
		return nil, err
	}
	w.status, w.header, w.body = resp.StatusCode, resp.Header, resp.Body
	resp.Body = &capped{ReadCloser: resp.Body, left: w.maxBytes, host: w.host}
	return resp, nil
}

// close ends the exchange. A connection that breaks at its end is of no account.
func (w *wire) close() {
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
