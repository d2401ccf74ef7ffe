package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client for one server's URL, with o's limits.
func client(t *testing.T, o Options, urls ...string) *http.Client {
	t.Helper()
	for _, u := range urls {
		o.Allow = append(o.Allow, Endpoint{URL: u})
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// fetch reads url to the end.
func fetch(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	if closing := resp.Body.Close(); closing != nil {
		t.Errorf("close: %v", closing)
	}
	return string(text), err
}

func TestForbidden(t *testing.T) {
	for address, want := range map[string]string{
		"1.1.1.1": "", "104.18.7.192": "", "2606:4700::6812:7c0": "", "172.15.255.255": "", "172.32.0.1": "",
		"100.63.255.255": "", "100.128.0.1": "", "::ffff:8.8.8.8": "", "64:ff9b::8.8.8.8": "",
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "metadata",
		"0.0.0.0": "unspecified", "::": "unspecified",
		"10.1.2.3": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
		"::ffff:10.0.0.1": "private", "fd12::1": "private", "fc00::1": "private",
		"100.64.0.1": "shared", "100.127.255.255": "shared",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"169.254.169.254": "metadata", "168.63.129.16": "metadata", "100.100.100.200": "metadata", "fd00:ec2::254": "metadata",
		"224.0.0.1": "multicast", "239.255.255.250": "multicast", "ff02::1": "multicast",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved", "192.0.0.192": "reserved",
		"2001::1": "reserved", "2002:7f00:1::": "reserved", "64:ff9b:1::7f00:1": "reserved", "::7f00:1": "reserved", "fec0::1": "reserved",
		"198.18.0.1": "benchmarking", "192.0.2.1": "documentation", "2001:db8::1": "documentation",
	} {
		if got := forbidden(netip.MustParseAddr(address)); got != want {
			t.Errorf("forbidden(%s) = %q, want %q", address, got, want)
		}
	}
}

func TestEndpointAdmits(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint  Endpoint
		yes, deny []string
	}{
		"a name": {Endpoint{URL: "https://api.example.com/v1"},
			[]string{"1.1.1.1", "2606:4700::1"}, []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"}},
		"a name that may be private": {Endpoint{URL: "http://ollama:11434/v1", Private: true},
			[]string{"1.1.1.1", "10.0.0.9", "172.18.0.2", "127.0.0.1", "fd12::1", "100.64.1.1"}, []string{"169.254.169.254", "169.254.1.1", "fd00:ec2::254", "100.100.100.200", "224.0.0.1", "0.0.0.0"}},
		"localhost":          {Endpoint{URL: "http://LOCALHOST:1"}, []string{"127.0.0.1", "127.0.0.2", "::1"}, []string{"1.1.1.1", "10.0.0.1"}},
		"under localhost":    {Endpoint{URL: "http://llm.localhost:1"}, []string{"127.0.0.1"}, []string{"1.1.1.1"}},
		"not localhost":      {Endpoint{URL: "http://notlocalhost:1"}, nil, []string{"127.0.0.1"}},
		"a loopback address": {Endpoint{URL: "http://127.0.0.1:1"}, []string{"127.0.0.1", "::ffff:127.0.0.1"}, []string{"127.0.0.2", "::1", "10.0.0.1", "1.1.1.1"}},
		"IPv6":               {Endpoint{URL: "http://[::1]:1"}, []string{"::1"}, []string{"127.0.0.1", "fe80::1"}},
		"a mapped address":   {Endpoint{URL: "http://[::ffff:10.0.0.1]:1"}, []string{"10.0.0.1"}, []string{"10.0.0.2"}},
		"metadata itself":    {Endpoint{URL: "http://169.254.169.254"}, []string{"169.254.169.254"}, []string{"169.254.169.253", "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseEndpoint(tc.endpoint)
			if err != nil {
				t.Fatal(err)
			}
			for _, ip := range tc.yes {
				if err := e.admits(netip.MustParseAddr(ip)); err != nil {
					t.Errorf("%s: %v", ip, err)
				}
			}
			for _, ip := range tc.deny {
				if err := e.admits(netip.MustParseAddr(ip)); !errors.Is(err, memory.ErrDenied) || memory.HintOf(err) == "" {
					t.Errorf("%s: %v, want denied with a hint", ip, err)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no scheme":  {Allow: []Endpoint{{URL: "api.example.com"}}},
		"file":       {Allow: []Endpoint{{URL: "file:///etc/passwd"}}},
		"no host":    {Allow: []Endpoint{{URL: "http://"}}},
		"password":   {Allow: []Endpoint{{URL: "http://a:b@example.com"}}},
		"key inside": {Allow: []Endpoint{{URL: "http://example.com/v1?key=abc"}}},
		"not ASCII":  {Allow: []Endpoint{{URL: "http://bücher.example"}}},
		"bad proxy":  {Proxy: "ftp://proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); !errors.Is(err, memory.ErrInvalid) {
				t.Errorf("New() = %v, want invalid", err)
			}
		})
	}
}

func TestOnlyConfiguredEndpoints(t *testing.T) {
	var hits atomic.Int32
	count := func(w http.ResponseWriter, _ *http.Request) { hits.Add(1) }
	mine, other := serve(t, count), serve(t, count)
	c := client(t, Options{}, mine.URL+"/v1")

	if _, err := fetch(t, c, mine.URL+"/v1/models"); err != nil {
		t.Fatalf("the configured endpoint: %v", err)
	}
	hits.Store(0)
	port := mine.URL[strings.LastIndex(mine.URL, ":"):]
	for _, url := range []string{other.URL, "http://localhost" + port, "https://127.0.0.1" + port, "http://127.0.0.2" + port, "http://169.254.169.254/latest/meta-data"} {
		if _, err := fetch(t, c, url); !errors.Is(err, memory.ErrDenied) {
			t.Errorf("%s: %v, want denied", url, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached a server", hits.Load())
	}
}

// answerAll is a DNS server that gives every name the address ip.
func answerAll(t *testing.T, ip [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if _, err := conn.WriteTo(answer(buf[:n], ip), from); err != nil {
				t.Error(err)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer is the DNS answer (RFC 1035, section 4) to a question for one name:
// an A record if it asks for one, else nothing.
func answer(query []byte, ip [4]byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // root label, type, class
	out := append([]byte{}, query[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180)
	isA := binary.BigEndian.Uint16(query[end-4:]) == 1
	for i, count := range []uint16{1, 0, 0, 0} {
		binary.BigEndian.PutUint16(out[4+2*i:], count)
	}
	if isA {
		binary.BigEndian.PutUint16(out[6:], 1)
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		out = append(out, ip[:]...)
	}
	return out
}

func TestNameThatResolvesInward(t *testing.T) {
	var hits atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	url := "http://api.example.com" + port

	c := client(t, Options{Resolver: answerAll(t, [4]byte{127, 0, 0, 1})}, url)
	if _, err := fetch(t, c, url); !errors.Is(err, memory.ErrDenied) || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a name for loopback: %v, want denied", err)
	}
	if hits.Load() != 0 {
		t.Error("the request was sent")
	}
	metadata := client(t, Options{Allow: []Endpoint{{URL: url, Private: true}}, Resolver: answerAll(t, [4]byte{169, 254, 169, 254})})
	if _, err := fetch(t, metadata, url); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("a private name for the metadata service: %v, want denied", err)
	}
	private := client(t, Options{Allow: []Endpoint{{URL: url, Private: true}}, Resolver: answerAll(t, [4]byte{127, 0, 0, 1})})
	if _, err := fetch(t, private, url); err != nil || hits.Load() != 1 {
		t.Errorf("a name that may be private: %v, %d requests", err, hits.Load())
	}
}

func TestRedirectsAreErrors(t *testing.T) {
	var leaked atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { leaked.Add(1) })
	for name, tc := range map[string]struct{ location, want string }{
		"another host": {other.URL + "/v1", strings.TrimPrefix(other.URL, "http://")},
		"metadata":     {"http://169.254.169.254/latest", "169.254.169.254"},
		"a file":       {"file:///etc/passwd", "file:/etc/passwd"},
		"none":         {"", "without a target"},
		"unreadable":   {"http://[::1", "an unreadable target"},
		"itself":       {"/v2", "127.0.0.1"},
	} {
		for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.location != "" {
					w.Header().Set("Location", tc.location)
				}
				w.WriteHeader(status)
			})
			c := client(t, Options{}, s.URL)
			_, err := c.Post(s.URL, "application/json", strings.NewReader(`{"events":"secret"}`))
			var r *RedirectError
			if !errors.As(err, &r) || !errors.Is(err, memory.ErrDenied) || r.Status != status || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %d: %v, want a redirect error naming %q", name, status, err, tc.want)
			}
		}
	}
	if leaked.Load() != 0 {
		t.Errorf("%d requests went to another host", leaked.Load())
	}
}

func TestSizeIsBounded(t *testing.T) {
	const limit = 1000
	send := map[string]http.HandlerFunc{
		"declared": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1001")
			_, _ = w.Write(make([]byte, 1001))
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		},
		"gzip bomb": func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Error("the client offers no gzip, so this tests nothing")
			}
			w.Header().Set("Content-Encoding", "gzip")
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = z.Write(make([]byte, 10<<20))
			_ = z.Close()
			_, _ = w.Write(packed.Bytes())
		},
	}
	for name, h := range send {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			text, err := fetch(t, client(t, Options{MaxBytes: limit}, s.URL), s.URL)
			if !errors.Is(err, ErrTooLarge) || !errors.Is(err, memory.ErrUnavailable) || len(text) > limit {
				t.Errorf("%d bytes, %v, want ErrTooLarge", len(text), err)
			}
		})
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, limit)) })
	if text, err := fetch(t, client(t, Options{MaxBytes: limit}, s.URL), s.URL); err != nil || len(text) != limit {
		t.Errorf("exactly the limit: %d bytes, %v", len(text), err)
	}
}

func TestHugeHeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("a", 1<<20))
	})
	if _, err := fetch(t, client(t, Options{}, s.URL), s.URL); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("a header of 1 MiB: %v, want unavailable", err)
	}
}

// TestDeadlines runs in fake time, over a pipe in place of the network.
func TestDeadlines(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	for name, tc := range map[string]struct {
		reply func(conn net.Conn)
		want  string
		after time.Duration
	}{
		"no answer": {func(net.Conn) {}, "began no answer within 20s", 20 * time.Second},
		"silence":   {func(c net.Conn) { write(c, head+"x") }, "fell silent in its answer for 5s", 5 * time.Second},
		"a drip": {func(c net.Conn) {
			write(c, head)
			for range 100 {
				time.Sleep(time.Second)
				if !write(c, "x") {
					return
				}
			}
		}, "gave no whole answer within 30s", 30 * time.Second},
		"provisional for ever": {func(c net.Conn) {
			for write(c, "HTTP/1.1 100 Continue\r\n\r\n") {
				time.Sleep(time.Second)
			}
		}, "began no answer within 20s", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(Options{Allow: []Endpoint{{URL: "http://127.0.0.1"}}, Timeout: 30 * time.Second, HeaderTimeout: 20 * time.Second, IdleTimeout: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				near, far := net.Pipe()
				c.Transport.(*guard).next.DialContext = func(context.Context, string, string) (net.Conn, error) { return near, nil }
				done := make(chan struct{})
				go func() {
					defer close(done)
					if _, err := far.Read(make([]byte, 4096)); err == nil {
						tc.reply(far)
					}
				}()
				start := time.Now()
				_, err = fetch(t, c, "http://127.0.0.1/")
				if !errors.Is(err, memory.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %s, want %s", took, tc.after)
				}
				if err := far.Close(); err != nil {
					t.Error(err)
				}
				<-done
			})
		})
	}
}

func write(c net.Conn, s string) bool {
	_, err := c.Write([]byte(s))
	return err == nil
}

func TestCancelIsNotAFailureOfTheHost(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := client(t, Options{}, s.URL).Do(req); !errors.Is(err, context.Canceled) || errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("%v, want canceled", err)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = discardLog()
	s.StartTLS()
	t.Cleanup(s.Close)
	if _, err := fetch(t, client(t, Options{}, s.URL), s.URL); !errors.Is(err, memory.ErrDenied) || memory.HintOf(err) == "" {
		t.Errorf("a certificate of nobody: %v, want denied with a hint", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if _, err := fetch(t, client(t, Options{RootCAs: roots}, s.URL), s.URL); err != nil {
		t.Errorf("a certificate of the given root: %v", err)
	}
}

func TestProxyOnlyWhereSet(t *testing.T) {
	var seen atomic.Value
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { seen.Store(r.URL.String()) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	if _, err := fetch(t, client(t, Options{}, s.URL), s.URL); err != nil || seen.Load() != nil {
		t.Errorf("the environment's proxy was asked for %v (%v)", seen.Load(), err)
	}
	const target = "http://api.example.com/v1"
	c := client(t, Options{Proxy: proxy.URL}, target)
	if _, err := fetch(t, c, target); err != nil || seen.Load() != target {
		t.Errorf("the proxy was asked for %v (%v)", seen.Load(), err)
	}
	if _, err := fetch(t, c, "http://elsewhere.example.com/"); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("another host by the proxy: %v, want denied", err)
	}
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
