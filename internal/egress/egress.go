// Package egress is the one way out of the program. Its HTTP client reaches the
// configured endpoints and nothing else: the address is checked when the
// connection is made, after DNS, redirects are errors, the environment's proxy
// is not read, certificates are verified, and every answer has a size and a
// deadline.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The limits that stand where Options leaves a zero.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultIdleTimeout = 30 * time.Second
	DefaultMaxBytes    = 32 << 20
)

const (
	connectTimeout = 10 * time.Second
	maxHeaderBytes = 64 << 10
	maxIdlePerHost = 4
)

// Endpoint is a place that requests may go to.
type Endpoint struct {
	// URL names it by scheme (http or https), host and port; the port defaults
	// to the scheme's. Path, if any, is not looked at.
	URL string
	// Private lets the host's name stand for a private, shared or loopback
	// address, as names do inside a container network. Without it a name must
	// resolve to a public address. A host that is itself an address, and
	// localhost, need no such leave.
	Private bool
}

// Options are the bounds of a client.
type Options struct {
	Allow         []Endpoint     // the only places that requests go to
	Timeout       time.Duration  // of one request, its answer read to the end; 0 for DefaultTimeout
	HeaderTimeout time.Duration  // until the answer begins; 0 for Timeout
	IdleTimeout   time.Duration  // the longest silence inside an answer; 0 for DefaultIdleTimeout
	MaxBytes      int64          // of an answer's body, decompressed; 0 for DefaultMaxBytes
	Proxy         string         // URL of a forward proxy; "" for none. With one, the proxy resolves names, so only it is address-checked
	RootCAs       *x509.CertPool // nil for the system's
	Resolver      *net.Resolver  // nil for the system's
}

// New returns a client that is bound by o. Its errors, also those of reading a
// body, wrap a memory.Kind: ErrDenied for what is refused on purpose (another
// host, a forbidden address, a redirect, a bad certificate), ErrUnavailable for
// what may work later; a body over MaxBytes also wraps ErrTooLarge. It holds
// idle connections; CloseIdleConnections drops them.
func New(o Options) (*http.Client, error) {
	o = o.withDefaults()
	g := &guard{options: o, endpoints: map[string]endpoint{}}
	for i, allowed := range o.Allow {
		e, err := parseEndpoint(allowed)
		if err != nil {
			return nil, fmt.Errorf("endpoint %d: %w", i, err)
		}
		g.endpoints[e.key()] = e
	}
	byAddress := map[string]endpoint{}
	for _, e := range g.endpoints {
		byAddress[e.address()] = e
	}
	proxy, err := proxyOf(o.Proxy, byAddress)
	if err != nil {
		return nil, err
	}
	g.next = &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer(byAddress, o.Resolver),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        time.Minute,
	}
	return &http.Client{Transport: g}, nil
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = o.Timeout
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return o
}

// proxyOf returns the transport's proxy function, nil for none, and makes the
// proxy one of the addresses that may be dialled.
func proxyOf(raw string, byAddress map[string]endpoint) (func(*http.Request) (*url.URL, error), error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &memory.FieldError{Field: "proxy", Reason: "must be a URL", Hint: "for example http://proxy.example:3128"}
	}
	login := u.User
	u.User = nil
	e, err := parseEndpoint(Endpoint{URL: u.String(), Private: true})
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	u.User = login
	byAddress[e.address()] = e
	return http.ProxyURL(u), nil
}

// dialer connects to the given host:port pairs only, and checks each address
// that the host resolves to at the moment of connecting, so that a name that
// changes its address in between gains nothing.
func dialer(byAddress map[string]endpoint, resolver *net.Resolver) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		e, known := byAddress[strings.ToLower(address)]
		if !known {
			return nil, memory.Errorf(memory.ErrDenied, "%s is not a configured endpoint", address)
		}
		d := net.Dialer{Timeout: connectTimeout, Resolver: resolver}
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return memory.Errorf(memory.ErrDenied, "%s resolves to %q, which is no address", e.host, resolved)
			}
			return e.admits(to.Addr())
		}
		return d.DialContext(ctx, network, address)
	}
}

// endpoint is a parsed Endpoint.
type endpoint struct {
	scheme, host, port string     // host in lower case, without brackets
	literal            netip.Addr // valid where the host is itself an address
	private            bool
}

func parseEndpoint(e Endpoint) (endpoint, error) {
	const hint = "for example https://api.openai.com/v1 or http://localhost:11434/v1"
	u, err := url.Parse(e.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return endpoint{}, &memory.FieldError{Field: "url", Reason: "must be an http or https URL with a host", Hint: hint}
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, &memory.FieldError{Field: "url", Reason: "must have no user, password, query or fragment",
			Hint: "they would stand in logs; give a key as env:NAME or file:PATH"}
	}
	if strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > unicode.MaxASCII }) {
		return endpoint{}, &memory.FieldError{Field: "url", Reason: "must have a host in ASCII", Hint: "write an international name in its xn-- form"}
	}
	out := endpoint{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: portOf(u), private: e.Private}
	if literal, err := netip.ParseAddr(out.host); err == nil {
		out.literal = literal.Unmap()
	}
	return out, nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }
func (e endpoint) key() string     { return e.scheme + "://" + e.address() }

func keyOf(u *url.URL) string {
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), portOf(u))
}

// admits reports whether a connection to this address may stand for e.
func (e endpoint) admits(ip netip.Addr) error {
	ip = ip.Unmap()
	switch {
	case e.literal.IsValid():
		if ip == e.literal {
			return nil
		}
	case e.host == "localhost" || strings.HasSuffix(e.host, ".localhost"):
		if ip.IsLoopback() {
			return nil
		}
	case e.private && isPrivate(ip), forbidden(ip) == "":
		return nil
	}
	why := forbidden(ip)
	if why == "" {
		why = "another"
	}
	return memory.WithHint(
		memory.Errorf(memory.ErrDenied, "%s resolves to %s, %s address: not connected", e.host, ip, article(why)),
		"if this is meant, put the address itself into the URL")
}

func article(why string) string {
	if why == "another" {
		return why
	}
	if strings.ContainsRune("aeiou", rune(why[0])) {
		return "an " + why
	}
	return "a " + why
}

// RedirectError says where an answer wanted to send the request. It is an
// ErrDenied.
type RedirectError struct {
	Status int
	From   string // host and port asked
	To     string // host of the target, or what stands for it; "" if the answer names none
}

func (e *RedirectError) Error() string {
	if e.To == "" {
		return fmt.Sprintf("%s answers %d without a target: redirects are not followed", e.From, e.Status)
	}
	return fmt.Sprintf("%s answers %d and redirects to %q: redirects are not followed", e.From, e.Status, e.To)
}

// Unwrap makes every RedirectError an ErrDenied.
func (e *RedirectError) Unwrap() error { return memory.ErrDenied }

func redirect(req *http.Request, resp *http.Response) error {
	out := &RedirectError{Status: resp.StatusCode, From: req.URL.Host}
	if raw := resp.Header.Get("Location"); raw != "" {
		out.To = "an unreadable target"
		if u, err := req.URL.Parse(raw); err == nil {
			out.To = u.Host
			if u.Host == "" {
				out.To = u.Scheme + ":" + u.Opaque + u.Path
			}
		}
	}
	return out
}

// failure gives err, met on the way to host, its kind.
func failure(ctx context.Context, host string, err error) error {
	var slow *slowError
	if errors.As(context.Cause(ctx), &slow) {
		return slow
	}
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("request to %s: %w", host, err)
	case errors.Is(err, memory.ErrDenied):
		return err
	case errors.As(err, &cert):
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "%s shows a certificate that does not hold: %w", host, err),
			"check the URL and the clock; certificates are always verified")
	}
	return memory.Errorf(memory.ErrUnavailable, "request to %s: %w", host, err)
}
