package graphview

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Session is one run of the viewer for one person.
type Session struct {
	// Token is the secret that lets a request in; never empty.
	Token string
	// Addr is the loopback address that the viewer listens on, host:port.
	Addr string
}

// URL is the address to open: the token in it becomes a cookie.
func (s Session) URL() string {
	return (&url.URL{Scheme: "http", Host: s.Addr, Path: "/", RawQuery: url.Values{"token": {s.Token}}.Encode()}).String()
}

// cookie names one session: cookies do not know ports, so the name does.
func (s Session) cookie() string {
	port := s.Addr[strings.LastIndexByte(s.Addr, ':')+1:]
	return "openclawssy_graph_" + port
}

// Guard lets requests through that name this host (which keeps out web pages
// whose name was made to point here) and carry the token: as a bearer, or as the
// cookie that ?token= is exchanged for. Others get 403 or 401.
func (s Session) Guard(next http.Handler) http.Handler {
	return secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isHost(r.Host) {
			http.Error(w, "This viewer answers at "+s.Addr+" only.", http.StatusForbidden)
			return
		}
		query := r.URL.Query()
		if r.Method == http.MethodGet && query.Has("token") && s.isToken(query.Get("token")) {
			http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			query.Del("token")
			// Out of the address bar and the history.
			http.Redirect(w, r, (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).RequestURI(), http.StatusSeeOther)
			return
		}
		if !s.isToken(presented(r, s.cookie())) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Open the whole address that openclawssy graph view printed.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func (s Session) isHost(host string) bool {
	_, port, err := net.SplitHostPort(s.Addr)
	return err == nil && slices.Contains([]string{s.Addr, net.JoinHostPort("localhost", port)}, strings.ToLower(host))
}

// isToken compares in constant time, whatever the lengths.
func (s Session) isToken(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// presented returns the token of a request, "" for none.
func presented(r *http.Request, cookie string) string {
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value
	}
	return ""
}

// Limits of a connection.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 3 * time.Second
)

// Serve answers on l until ctx ends, lets what is being answered finish for
// three seconds, and returns nil. It closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	} else if err != nil {
		return err
	}
	return nil
}
