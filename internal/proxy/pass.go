package proxy

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// writeTime is how long a client may take to take a part of an answer.
const writeTime = 30 * time.Second

// writer writes to a client that must keep up.
type writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
	stream  bool // each part goes out at once
}

func (p *Proxy) writer(w http.ResponseWriter) *writer {
	return &writer{w: w, control: http.NewResponseController(w), now: p.Now}
}

func (o *writer) length(n int64) { o.w.Header().Set("Content-Length", strconv.FormatInt(n, 10)) }

func (o *writer) Write(part []byte) (int, error) {
	if err := o.control.SetWriteDeadline(o.now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := o.w.Write(part)
	if err == nil && o.stream {
		err = o.control.Flush()
	}
	return n, err
}

// pass gives the provider's answer to the client, and ends the exchange.
func (x *exchange) pass(w http.ResponseWriter, resp *http.Response, cancel func()) {
	out := x.p.writer(w)
	if isStream(resp.Header.Get("Content-Type")) {
		x.stream(out, resp, cancel)
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.p.fail(w, &wayError{err})
		x.end(nil, err)
		return
	}
	var r *reply
	if resp.StatusCode == http.StatusOK {
		r = replyOf(body)
		x.answered(r)
	} else {
		err = memory.Errorf(memory.ErrUnavailable, "the provider answered %s", resp.Status)
	}
	out.length(int64(len(body)))
	out.stream = true // the client has the answer while it is written down
	w.WriteHeader(resp.StatusCode)
	if _, failed := out.Write(body); failed != nil {
		x.p.Log.Debug().Err(failed).Msg("the caller has gone")
	}
	x.end(r, err)
}

// stream passes an answer on as it comes. A client that leaves ends the provider's
// work too; what came by then is kept.
func (x *exchange) stream(out *writer, resp *http.Response, cancel func()) {
	out.stream = true
	out.w.Header().Set("X-Accel-Buffering", "no")
	out.w.WriteHeader(resp.StatusCode)
	var l listener
	var failure error
	part := make([]byte, 32<<10)
	for failure == nil {
		n, err := resp.Body.Read(part)
		if n > 0 {
			if l.hear(part[:n]) {
				x.answered(l.heard())
			}
			if _, failed := out.Write(part[:n]); failed != nil {
				cancel()
				failure = memory.Errorf(memory.ErrUnavailable, "the client has gone: %w", failed)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && failure == nil {
			failure = memory.Errorf(memory.ErrUnavailable, "the answer broke off: %w", err)
		}
	}
	r := l.heard()
	x.answered(r)
	x.end(r, failure)
	if failure != nil {
		panic(http.ErrAbortHandler) // so that nobody takes it for the whole answer
	}
}
