// Package proxy is an OpenAI-compatible server that gives any client a memory: it
// passes requests on to the configured provider, with what an agent's memory holds
// about them, and writes down what was said.
//
// A request's body is changed in two places only: the block of memory is put in as
// a message of its own, behind everything that stays the same from request to
// request and before the last user turn, and the name of the model where the client
// leaves it open. Every other byte passes as it came, both ways. In a tool loop the
// block stands in the same place with the same bytes, so a provider's prompt cache
// keeps working. Where memory fails, the chat goes on without it and says so.
package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// Channel is the channel of the sessions that are led through the proxy.
const Channel = "proxy"

// MaxBody is the most bytes of a request.
const MaxBody = 32 << 20

// The headers of requests and answers.
const (
	HeaderAgent   = "X-Openclawssy-Agent"
	HeaderSession = "X-Openclawssy-Session"
	HeaderMemory  = "X-Openclawssy-Memory"
	HeaderRun     = "X-Openclawssy-Run"
	HeaderError   = "X-Openclawssy-Memory-Error"
)

// ownModel is the model that stands for the configured one.
const ownModel = "openclawssy"

// Said is a message that an agent's memory holds.
type Said struct {
	Source string // the id that the proxy gave it
	Seq    int64  // of its event
	Answer bool   // it is of the assistant
}

// Options are what a Proxy needs. All are required unless said otherwise.
type Options struct {
	// Upstream returns the provider; nil where none is configured.
	Upstream func() (*Upstream, error)
	// Remembers says whether an agent has a memory.
	Remembers func(memory.AgentID) (bool, error)
	// Open opens an agent's stores before its first request.
	Open   func(context.Context, memory.AgentID) error
	Recall runtime.Recaller
	// Take writes events down, each id once.
	Take func(context.Context, memory.AgentID, memory.Session, []intake.Event) (intake.Report, error)
	// Past returns the latest messages of a session that the proxy wrote down,
	// oldest first, at most so many.
	Past func(ctx context.Context, agent memory.AgentID, session string, most int) ([]Said, error)
	// Written is told that an agent's log has grown.
	Written func(memory.AgentID)
	Runs    memory.Borrow[*runlog.Store]
	Hold    erasure.Hold    // nil: nothing is erased
	Flush   runtime.Flusher // nil: nothing is queued to be distilled
	// FlushAt is how many tokens of a session fill the model's window.
	FlushAt func(memory.AgentID) int
	Redact  interface{ Text(string) string }
	Key     func() ([]byte, error) // a secret of the home's, for the ids of messages; asked for by each request
	Now     func() time.Time
	Log     zerolog.Logger
}

// Proxy answers requests. Make one with New; it is safe for concurrent use.
type Proxy struct {
	Options
	mux     *http.ServeMux
	threads threads
	blocks  blocks
	stats   struct{ requests, recallFailed, captureFailed, tokensIn, tokensOut atomic.Int64 }
}

// New returns a proxy.
func New(o Options) *Proxy {
	p := &Proxy{Options: o, mux: http.NewServeMux()}
	p.mux.HandleFunc("POST /v1/chat/completions", p.chat)
	p.mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) { p.plain(w, r, "/embeddings") })
	p.mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) { p.plain(w, r, "/models") })
	p.mux.HandleFunc("GET /v1/models/{model...}", func(w http.ResponseWriter, r *http.Request) {
		p.plain(w, r, "/models/"+strings.TrimPrefix(r.URL.EscapedPath(), "/v1/models/"))
	})
	return p
}

// Stats are counts since the Proxy was made.
type Stats struct {
	Requests      int64 // chat completions
	RecallFailed  int64 // of them, those that went on without a part of memory
	CaptureFailed int64 // of them, those that could not be written down
	TokensIn      int64 // as the provider counts them
	TokensOut     int64
}

// Stats returns the counts.
func (p *Proxy) Stats() Stats {
	s := &p.stats
	return Stats{s.requests.Load(), s.recallFailed.Load(), s.captureFailed.Load(), s.tokensIn.Load(), s.tokensOut.Load()}
}

// Forget drops what is kept of an agent's memory for prompts to come: something of
// it has changed.
func (p *Proxy) Forget(agent memory.AgentID) { p.blocks.drop(agent) }

// ServeHTTP answers one request, whose caller is in its context.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// plain passes a request on as it is.
func (p *Proxy) plain(w http.ResponseWriter, r *http.Request, path string) {
	up, err := p.upstream()
	if err != nil {
		p.fail(w, err)
		return
	}
	var body []byte
	if r.Method != http.MethodGet {
		if body, err = io.ReadAll(r.Body); err != nil {
			p.fail(w, memory.Errorf(memory.ErrInvalid, "read the body: %w", err))
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	resp, err := up.send(ctx, r, path, body)
	if err != nil {
		p.fail(w, err)
		return
	}
	defer resp.Body.Close()
	head(w.Header(), resp.Header)
	out := p.writer(w)
	if resp.ContentLength >= 0 {
		out.length(resp.ContentLength)
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(out, resp.Body); err != nil {
		p.Log.Debug().Err(err).Msg("an answer broke off")
		panic(http.ErrAbortHandler)
	}
}

// upstream returns the provider. Without one the error says what to set.
func (p *Proxy) upstream() (*Upstream, error) {
	up, err := p.Upstream()
	if err == nil && up == nil {
		err = errNoModel
	}
	return up, err
}

var errNoModel = memory.WithHint(memory.Errorf(memory.ErrUnavailable, "no model provider is configured, so there is nobody to pass this on to"),
	"set model.provider, model.base_url, model.name and model.key in config.yaml, and start the server again")

// exchange is one chat completion under way. It belongs to one goroutine.
type exchange struct {
	p       *Proxy
	r       *http.Request
	agent   memory.AgentID
	talk    *talk
	mode    mode
	named   bool // the client names the session
	session memory.Session
	retry   bool // the client says that it asks again

	key    keyed
	thread *thread
	placed []placed
	block  string
	run    string         // whose block it is; "" for none
	bundle *runlog.Run    // of a run that begins here; nil for none
	meta   runlog.Meta    // of it
	last   int64          // seq of the last event written
	failed []intake.Event // that could not
	lost   error          // why
	wrong  []string       // what is wrong with memory, for the header
	given  []func()       // give back what the exchange has borrowed
	model  string

	// The request and the bundle are written down beside asking the provider.
	capturing, keeping sync.WaitGroup
}

// mode says what memory does for a request.
type mode struct{ read, write bool }

var modes = map[string]mode{"": {true, true}, "both": {true, true}, "read": {read: true}, "write": {write: true}, "off": {}}

// chat answers a chat completion.
func (p *Proxy) chat(w http.ResponseWriter, r *http.Request) {
	p.stats.requests.Add(1)
	x, err := p.begin(r)
	if err != nil {
		p.fail(w, err)
		return
	}
	up, err := p.upstream()
	if err != nil {
		p.fail(w, err)
		return
	}
	defer x.leave()
	x.remember()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	resp, err := up.send(ctx, r, "/chat/completions", x.talk.with(x.block, up.Model))
	x.await()
	h := w.Header()
	if x.thread != nil {
		h.Set(HeaderSession, x.session.ID)
	}
	if x.run != "" {
		h.Set(HeaderRun, x.run)
	}
	if len(x.wrong) > 0 {
		h.Set(HeaderError, headerText(strings.Join(x.wrong, "; ")))
	}
	if err != nil {
		p.fail(w, err)
		x.end(nil, err)
		return
	}
	defer resp.Body.Close()
	head(h, resp.Header)
	x.pass(w, resp, cancel)
}

// begin reads what a request asks for, and checks that its caller may.
func (p *Proxy) begin(r *http.Request) (*exchange, error) {
	caller := access.Caller(r.Context())
	agent, err := caller.Agent(r.Header.Get(HeaderAgent))
	if err != nil {
		return nil, err
	}
	if err := caller.Allow(access.Write, agent); err != nil {
		return nil, err
	}
	x := &exchange{p: p, r: r, agent: agent, retry: retried(r)}
	var known bool
	if x.mode, known = modes[strings.ToLower(strings.TrimSpace(r.Header.Get(HeaderMemory)))]; !known {
		return nil, &memory.FieldError{Field: HeaderMemory, Reason: "must be off, read, write or both"}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "read the body: %w", err)
	}
	if x.talk, err = parse(body); err != nil {
		return nil, err
	}
	x.model = x.talk.named
	return x, x.nameSession(r.Header.Get(HeaderSession))
}

// retried reports whether the client's library says that it asks again.
func retried(r *http.Request) bool {
	n := r.Header.Get("X-Stainless-Retry-Count")
	return n != "" && n != "0"
}

func (x *exchange) leave() {
	x.capturing.Wait()
	x.keeping.Wait()
	for i := len(x.given) - 1; i >= 0; i-- {
		x.given[i]()
	}
}

// fail answers with an error in the form that clients of the API know.
func (p *Proxy) fail(w http.ResponseWriter, err error) {
	status, kind := statusOf(err), "api_error"
	switch memory.KindOf(err) {
	case memory.ErrInvalid, memory.ErrNotFound, memory.ErrConflict:
		status, kind = http.StatusBadRequest, "invalid_request_error"
	case memory.ErrDenied:
		if !errors.As(err, new(*wayError)) {
			status, kind = http.StatusForbidden, "permission_error"
		}
	}
	f := op.FailureOf(err)
	message := f.Message
	if f.Hint != "" {
		message += ". " + f.Hint
	}
	code := string(memory.KindOf(err))
	if errors.Is(err, errNoModel) {
		status, code = http.StatusServiceUnavailable, "no_model_configured"
		w.Header().Set("X-Should-Retry", "false")
	}
	raw, failed := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
	if failed != nil {
		raw = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := p.writer(w).Write(raw); err != nil {
		p.Log.Debug().Err(err).Msg("the caller has gone")
	}
}

// headerText is a text as a header holds it.
func headerText(s string) string {
	var sb strings.Builder
	for _, c := range s {
		if c < ' ' || c > '~' {
			c = ' '
		}
		sb.WriteRune(c)
		if sb.Len() == 500 {
			break
		}
	}
	return sb.String()
}
