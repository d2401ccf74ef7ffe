package httpapi

import (
	"bytes"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// guard is what every request passes first: a name that is this server's, an
// origin that may ask, no encoding that could swell.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := s.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == http.ErrAbortHandler {
				s.counts.observe(r, rec.code(), s.Now().Sub(began))
				panic(p) // the connection is broken off, so that nobody takes what came for all
			}
			if p != nil {
				s.Log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Str("path", r.URL.Path).Msg("a request ended in a defect")
				if !rec.wrote {
					s.fail(rec, memory.Errorf(memory.ErrInternal, "the request ended in a defect; the server's log has it"))
				}
			}
			s.counts.observe(r, rec.code(), s.Now().Sub(began))
		}()
		head := rec.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-store")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		if err := s.passable(r); err != nil {
			s.fail(rec, err)
			return
		}
		if r.Method == http.MethodGet && r.URL.Path == "/healthz" {
			rec.Header().Set("Content-Type", "application/json")
			io.WriteString(rec, "{\"status\":\"ok\"}\n") //nolint:errcheck // whoever asked has gone
			return
		}
		if page := s.page(r); page != nil {
			page.ServeHTTP(rec, r)
			return
		}
		token, err := s.authenticate(r)
		if err != nil {
			rec.Header().Set("WWW-Authenticate", `Bearer realm="openclawssy"`)
			s.answer(rec, http.StatusUnauthorized, err)
			return
		}
		if !s.rates.allow(token.ID, began) {
			rec.Header().Set("Retry-After", "1")
			s.answer(rec, http.StatusTooManyRequests, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "too many requests with this token"), "wait a second, or raise http.rate_per_second"))
			return
		}
		next.ServeHTTP(rec, r.WithContext(access.WithCaller(r.Context(), token)))
	})
}

// passable refuses what no client of good will sends.
func (s *Server) passable(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	// A web page whose name was made to point here still asks for its own name.
	if !isLoopback(host) && !slices.Contains(s.Hosts, host) {
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "this server is not asked by the name %q", host), "add the name to http.hosts")
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return memory.Errorf(memory.ErrInvalid, "the method %s is not used here", r.Method)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "a body encoded as %q is not taken", encoding), "send it plain")
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !s.isOrigin(origins[0], r) {
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "pages of %q may not ask this server", strings.Join(origins, " ")), "add the origin to http.origins")
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// isOrigin reports whether a page of origin may ask: one of this very server, or
// one that was allowed.
func (s *Server) isOrigin(origin string, r *http.Request) bool {
	if slices.Contains(s.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" too
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}

// authenticate returns the token of a request: exactly one, in the header.
func (s *Server) authenticate(r *http.Request) (access.Token, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return access.Token{}, memory.WithHint(memory.Errorf(memory.ErrDenied, "a token is needed"), "send Authorization: Bearer and a token; openclawssy token create --name NAME makes one")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return access.Token{}, memory.WithHint(memory.Errorf(memory.ErrDenied, "the Authorization header must be one Bearer token"), "Authorization: Bearer and the token")
	}
	return s.Tokens.Check(strings.TrimSpace(text))
}

// page returns the page at a request's address; nil where there is none.
func (s *Server) page(r *http.Request) http.Handler {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	for at, page := range s.Pages {
		if r.URL.Path == at || len(at) > 1 && strings.HasSuffix(at, "/") && strings.HasPrefix(r.URL.Path, at) {
			return page
		}
	}
	return nil
}

// checked is a route behind its own conditions: the right, and a body in form.
func (s *Server) checked(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if caller := access.Caller(r.Context()); !caller.Right.Includes(rt.right) {
			s.fail(w, caller.Lacks(rt.right))
			return
		}
		if rt.body > 0 {
			if err := s.takeBody(w, r, rt); err != nil {
				s.fail(w, err)
				return
			}
		}
		if err := rt.handle(w, r); err != nil {
			s.fail(w, err)
		}
	})
}

// takeBody reads a request's body whole, within its bounds of size and time, and
// puts it back. What a caller sends slowly must not hold a connection.
func (s *Server) takeBody(w http.ResponseWriter, r *http.Request, rt route) error {
	r.Body = http.MaxBytesReader(w, r.Body, rt.body)
	if rt.own || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(s.Now().Add(s.Limits.BodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return memory.Errorf(memory.ErrInternal, "bound the body: %w", err)
	}
	raw, err := io.ReadAll(r.Body)
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		w.Header().Set("Connection", "close")
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the body is longer than %d bytes", tooLong.Limit), "send it in parts")
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return memory.Errorf(memory.ErrUnavailable, "the body did not arrive within %s", s.Limits.BodyTime)
		}
		return memory.Errorf(memory.ErrInvalid, "read the body: %w", err)
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return memory.Errorf(memory.ErrInternal, "bound the body: %w", err)
	}
	if len(bytes.TrimSpace(raw)) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the body must be JSON, and the header says %q", r.Header.Get("Content-Type")), "send Content-Type: application/json")
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return nil
}

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// rates keeps how fast each token asks.
type rates struct {
	limit float64
	burst int
	mu    sync.Mutex
	of    map[string]*rate.Limiter
}

func (x *rates) allow(id string, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[string]*rate.Limiter{}
	}
	l := x.of[id]
	if l == nil { // as many as there are valid tokens
		l = rate.NewLimiter(rate.Limit(x.limit), x.burst)
		x.of[id] = l
	}
	return l.AllowN(now, 1)
}

// recorder remembers how an answer began.
type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if !r.wrote {
		r.status, r.wrote = http.StatusOK, true
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) Flush() {
	if f, can := r.ResponseWriter.(http.Flusher); can {
		f.Flush()
	}
}

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// quiet turns what the HTTP server says about broken connections into lines of
// the program's log, at the level that they deserve.
func quiet(log zerolog.Logger) *stdlog.Logger {
	return stdlog.New(lineWriter(func(line string) { log.Debug().Msg(line) }), "", 0)
}

type lineWriter func(string)

func (w lineWriter) Write(p []byte) (int, error) {
	w(strings.TrimSpace(string(p)))
	return len(p), nil
}
