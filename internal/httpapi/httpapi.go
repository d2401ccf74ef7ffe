// Package httpapi shows the Catalog of operations and the agent loop over HTTP.
//
// Nothing but the answer to /healthz and the files of the admin page is given to
// whoever has no token. Every answer is JSON, or a stream of server-sent events;
// an error is problem details (RFC 9457) whose member "error" is the same object
// that the command line prints.
package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// Channel is the channel of sessions that begin here and name none.
const Channel = "http"

// Options are what a Server needs. All are required unless said otherwise.
type Options struct {
	Catalog *op.Catalog
	Tokens  *access.Store
	Version string
	// Run runs one turn of an agent.
	Run func(context.Context, runtime.Turn) (runtime.Result, error)
	// Ingest writes down what another program's conversations held.
	Ingest func(context.Context, memory.AgentID, memory.Session, []intake.Event) (intake.Report, error)
	// Admin tells how an agent's memory is: a document for people and dashboards.
	Admin func(context.Context, memory.AgentID) (any, error)
	// AdminForm is the JSON schema of that document.
	AdminForm any
	// Agents lists the agents of the home.
	Agents func() ([]memory.AgentID, error)
	// Audit keeps who asked for what. An agent that does not exist is not made by it.
	Audit func(context.Context, memory.AgentID, runlog.Entry) error
	// Mounts are the other faces that are served here, by the pattern of an
	// http.ServeMux; each request has the caller's token in its context.
	Mounts []Mount
	// Pages are shown to everybody, such as the files of the admin page: they hold
	// no data. By their path; one that ends in a slash, but for / itself, stands for all
	// below it. May be empty.
	Pages map[string]http.Handler
	// Hosts are the names, without port, that a request may ask for besides those
	// of the loopback; Origins the web origins that may ask besides the server's own.
	Hosts, Origins []string
	Limits         Limits
	Registry       *prometheus.Registry
	Now            func() time.Time // the real clock: deadlines of connections follow from it
	Log            zerolog.Logger
}

// Mount is a face that is served behind the server's own checks.
type Mount struct {
	Pattern string
	Summary string       // what it is for, in a sentence: the description lists it
	Takes   []Header     // headers of its own, for the description
	Answers []string     // media types of its answers; application/json if absent
	Right   access.Right // that the token must hold, for some agent; the face checks for which
	Body    int64        // most bytes of a body
	// Own is true for a face that reads bodies itself, as they come: the server then
	// only bounds them.
	Own     bool
	Handler http.Handler
}

// Header is a header that a request may carry.
type Header struct{ Name, Description string }

// address returns where a mount is: a method, POST where its pattern has none, and a
// path.
func (m Mount) address() (method, path string) {
	method, path, both := strings.Cut(m.Pattern, " ")
	if !both {
		return http.MethodPost, m.Pattern
	}
	return method, strings.ReplaceAll(path, "...}", "}")
}

// Limits bound what one server takes. A zero member stands for its default.
type Limits struct {
	Body        int64         // most bytes of a body; 1 MiB
	Rate        float64       // requests a second of one token; 1000
	Burst       int           // at once; twice the rate
	Connections int           // at the same time; 2048
	Work        int           // operations at the same time, others wait; 4 a core
	BodyTime    time.Duration // for a body to arrive; 8 s
	WriteTime   time.Duration // for a part of an answer to be taken; 30 s
	HeaderTime  time.Duration // for a request's head; 5 s
	IdleTime    time.Duration // of a connection without request; 50 s
}

// Server answers requests. Make one with New; it is safe for concurrent use.
type Server struct {
	Options
	handler http.Handler
	rates   rates
	work    chan struct{}
	counts  counts
	open    atomic.Int64
}

// New returns a server.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	s := &Server{Options: o, work: make(chan struct{}, o.Limits.Work), rates: rates{limit: o.Limits.Rate, burst: o.Limits.Burst}}
	s.counts = newCounts(o.Registry)
	s.handler = s.guard(s.routes())
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// route is one address and what it asks for.
type route struct {
	method, path string
	right        access.Right
	summary      string
	body         int64 // most bytes of a body; 0: none is read
	own          bool
	handle       func(http.ResponseWriter, *http.Request) error
}

// routes returns the handlers of every address, each behind its check.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.Handle(r.method+" "+r.path, s.checked(r))
	}
	for _, m := range s.Mounts {
		mux.Handle(m.Pattern, s.checked(route{path: m.Pattern, right: m.Right, body: m.Body, own: m.Own, handle: func(w http.ResponseWriter, r *http.Request) error {
			m.Handler.ServeHTTP(w, r)
			return nil
		}}))
	}
	mux.Handle("/", s.checked(route{right: access.Read, handle: func(w http.ResponseWriter, r *http.Request) error {
		if methods := s.methodsOf(mux, r); len(methods) > 0 {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			s.answer(w, http.StatusMethodNotAllowed, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s does not go with %s", r.Method, r.URL.Path), "use "+strings.Join(methods, " or ")))
			return nil
		}
		return memory.WithHint(memory.Errorf(memory.ErrNotFound, "nothing is at %s %s", r.Method, r.URL.Path), "GET /openapi.json lists what there is")
	}}))
	return mux
}

// methodsOf returns the methods that a request's address would be answered with.
func (s *Server) methodsOf(mux *http.ServeMux, r *http.Request) []string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			methods = append(methods, method)
		}
	}
	return methods
}

func (s *Server) table() []route {
	return []route{
		{"GET", "/v1/ops", access.Read, "List the operations.", 0, false, s.listOps},
		{"GET", "/v1/agents", access.Read, "List the agents that the token is for.", 0, false, s.listAgents},
		{"POST", "/v1/agents/{agent}/ops/{op}", access.Read, "Run an operation.", s.Limits.Body, false, s.runOp},
		{"POST", "/v1/agents/{agent}/runs", access.Write, "Say something to the agent and get the answer whole.", s.Limits.Body, false, s.run},
		{"POST", "/v1/agents/{agent}/chat", access.Write, "Say something to the agent and get the answer as it comes, as server-sent events.", s.Limits.Body, false, s.chat},
		{"POST", "/v1/agents/{agent}/events", access.Write, "Write down events of a conversation that takes place elsewhere; one that is there already is skipped, by its id.", s.Limits.Body, false, s.ingest},
		{"GET", "/v1/agents/{agent}/recall", access.Read, "The block of relevant memory for a question (?q=, ?session=, ?tokens=).", 0, false, s.recall},
		{"GET", "/api/admin/memory/{agent}", access.Read, "How an agent's memory is: health, counts, checkpoints, backlog, spend, recent recalls.", 0, false, s.admin},
		{"GET", "/metrics", access.Read, "Figures for Prometheus.", 0, false, s.metrics},
		{"GET", "/openapi.json", access.Read, "This description.", 0, false, s.describe},
	}
}

// listOps answers with every operation, its effect and its schemas.
func (s *Server) listOps(w http.ResponseWriter, r *http.Request) error {
	type entry struct {
		Name    string       `json:"name"`
		Summary string       `json:"summary"`
		Effect  op.Effect    `json:"effect"`
		Right   access.Right `json:"right"`
		Input   any          `json:"input"`
		Output  any          `json:"output"`
	}
	list := []entry{}
	for _, o := range s.Catalog.All() {
		list = append(list, entry{o.Name, o.Summary, o.Effect, access.Needed(o.Effect), o.Input, o.Output})
	}
	return s.reply(w, r, map[string]any{"ops": list})
}

func (s *Server) listAgents(w http.ResponseWriter, r *http.Request) error {
	all, err := s.Agents()
	if err != nil {
		return err
	}
	mine := []memory.AgentID{}
	for _, agent := range all {
		if access.Caller(r.Context()).May(access.Read, agent) {
			mine = append(mine, agent)
		}
	}
	return s.reply(w, r, map[string]any{"agents": mine})
}

func (s *Server) admin(w http.ResponseWriter, r *http.Request) error {
	agent, err := s.agent(r, access.Read)
	if err != nil {
		return err
	}
	release, err := s.admit(r.Context())
	if err != nil {
		return err
	}
	defer release()
	doc, err := s.Admin(r.Context(), agent)
	if err != nil {
		return err
	}
	return s.reply(w, r, doc)
}

// agent returns the agent that a request's path names, if its token may do what
// asks for right with it.
func (s *Server) agent(r *http.Request, right access.Right) (memory.AgentID, error) {
	agent, err := memory.ParseAgentID(r.PathValue("agent"))
	if err != nil {
		return "", err
	}
	return agent, access.Caller(r.Context()).Allow(right, agent)
}

// admit waits for a place among the operations that run at the same time: memory
// is bounded by how many do.
func (s *Server) admit(ctx context.Context) (release func(), err error) {
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	case <-ctx.Done():
		return nil, memory.Errorf(memory.ErrUnavailable, "the caller has gone: %w", ctx.Err())
	}
}
