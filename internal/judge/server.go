// Package judge is for tests only: a stub model server that speaks real HTTP
// and misbehaves on demand, a model of truth that says what a memory must hold
// after any fault, and children that can be killed at any moment.
package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Server is a stub of an OpenAI-compatible model server: /v1/chat/completions
// (whole and streamed, with tools), /v1/embeddings (which is Voyage's form too),
// /v1/models, and Gemini's batchEmbedContents under /v1beta. Asked to distil, it answers one item per event; asked to chat, it follows the script
// or answers plainly; and any request can be given a Behaviour of the table. It
// is safe for concurrent use.
type Server struct {
	// URL is the base URL, /v1 included.
	URL string

	http      *http.Server
	once      sync.Once
	closing   chan struct{}
	running   sync.WaitGroup // the accepting loop and every chat under way
	elsewhere string         // where redirects lead

	mu     sync.Mutex
	embeds embedding
	next   []Behaviour
	always *Behaviour
	mix    []Behaviour
	chance *rand.Rand
	script []Answer
	think  time.Duration
	calls  []Call
}

// Call is one request that the server has got.
type Call struct {
	Path      string
	Behaviour string // name; "" for the plain answer
	Bytes     int    // of the request's body
	Auth      string // the Authorization header, or the key of a Gemini request
	Request   ChatRequest
	Embed     EmbedRequest
}

// Answer is what a scripted model says: text, tool calls, or both.
type Answer struct {
	Text      string
	ToolCalls []ToolCall
}

// ToolCall is a scripted tool call; Arguments is its JSON.
type ToolCall struct{ Name, Arguments string }

// NewServer starts a stub on a free port of loopback, and ends it with the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l)
	closeWith(t, s)
	return s
}

func closeWith(t testing.TB, s *Server) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the stub model server: %v", err)
		}
	})
}

// Serve starts a stub on l.
func Serve(l net.Listener) *Server { return start(l, "http://"+l.Addr().String()+"/v1", nil) }

func start(l net.Listener, url string, errorLog *log.Logger) *Server {
	s := &Server{URL: url, closing: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("POST /v1beta/models/{call}", s.geminiEmbeddings)
	mux.HandleFunc("GET /v1/models", s.models)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: errorLog}
	s.running.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("judge: %v", err))
		}
	})
	return s
}

// Close ends the server and every connection, the hanging ones included, and
// waits until nothing of it runs. Closing it again does nothing.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closing)
		err = s.http.Close()
		s.running.Wait()
	})
	return err
}

// RedirectTo sets where the behaviours that redirect to another host lead.
func (s *Server) RedirectTo(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elsewhere = url
}

// Next gives the next chat requests these behaviours, one each, in order.
func (s *Server) Next(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, pick(names)...)
}

// Always gives every chat request that Next says nothing about this behaviour;
// "" ends that.
func (s *Server) Always(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = nil
	if name != "" {
		s.always = &pick([]string{name})[0]
	}
}

// Mix gives every chat request that nothing else is said about one of these
// behaviours, chosen by a seed; no names stands for all of the table.
func (s *Server) Mix(seed uint64, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chance = rand.New(rand.NewPCG(seed, seed))
	s.mix = pick(names)
	if len(names) == 0 {
		s.mix = Behaviours()
	}
}

// Think makes every chat request wait before it is answered, as a real model
// would.
func (s *Server) Think(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.think = d
}

// Script sets the answers to the next chats, one each; distillations take none.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, answers...)
}

// Calls returns the requests so far, in the order of their arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// pick returns behaviours by name. A name that is not in the table is a defect
// of the test.
func pick(names []string) []Behaviour {
	out := make([]Behaviour, len(names))
	for i, name := range names {
		at := slices.IndexFunc(table, func(b Behaviour) bool { return b.Name == name })
		if at < 0 {
			panic(fmt.Sprintf("judge: there is no behaviour %q", name))
		}
		out[i] = table[at]
	}
	return out
}

// choose takes the behaviour of a request.
func (s *Server) choose() Behaviour {
	switch {
	case len(s.next) > 0:
		b := s.next[0]
		s.next = s.next[1:]
		return b
	case s.always != nil:
		return *s.always
	case len(s.mix) > 0:
		return s.mix[s.chance.IntN(len(s.mix))]
	}
	return plain
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return // the client has gone
	}
	var req ChatRequest
	if err := json.Unmarshal(raw, &req); err != nil {
		failWith(w, http.StatusBadRequest, "the request is not JSON")
		return
	}
	s.mu.Lock()
	b := s.choose()
	s.calls = append(s.calls, Call{Path: r.URL.Path, Behaviour: b.Name, Bytes: len(raw), Auth: r.Header.Get("Authorization"), Request: req})
	number, think := len(s.calls), s.think
	s.mu.Unlock()
	select {
	case <-time.After(think):
	case <-r.Context().Done():
	case <-s.closing:
	}
	b.serve(&exchange{server: s, w: w, r: r, req: req, number: number})
}

const maxRequest = 16 << 20

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	s.record(Call{Path: r.URL.Path})
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []map[string]any{{"id": modelName, "object": "model", "owned_by": "judge"}}})
}

func (s *Server) record(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// answerOf returns the next answer of the script.
func (s *Server) answerOf(req ChatRequest) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.script) == 0 {
		return converse(req)
	}
	a := s.script[0]
	s.script = s.script[1:]
	return a
}

// writeJSON answers with a JSON document. A client that has gone is none of the
// stub's business.
func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("judge: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	send(w, string(text))
}

// failWith answers as the API does when it refuses.
func failWith(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": message, "type": "error", "code": nil}})
}

// send writes text and reports whether the client is still there.
func send(w io.Writer, text string) bool {
	_, err := io.WriteString(w, text)
	return err == nil
}

// Pipe is a network inside the process: what Dial returns, Accept gets. It lets
// a server run in the fake time of testing/synctest.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipe returns an open Pipe.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to whoever accepts.
func (p *Pipe) Dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Accept waits for a Dial.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends all waiting Dials and Accepts.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is that of a host that is never asked.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:1" }

var _ net.Listener = (*Pipe)(nil)

// hijack takes the connection over, to speak what no HTTP library would.
func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := w.(http.Hijacker).Hijack()
	if errors.Is(err, http.ErrHijacked) || err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}
