package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/httpapi"
)

// listening is the server as the command runs it, on a port of its own.
type listening struct {
	served
	addr string
	end  func() error
}

// listenHome serves a fresh home, with limits that a test need not wait for.
func listenHome(t *testing.T, limits httpapi.Limits) *listening {
	t.Helper()
	s := &listening{served: served{t: t, home: filepath.Join(t.TempDir(), "home")}}
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	if err := h.setup(cli.Options{Home: s.home, Set: []string{"recall.deadline_ms=20000"}}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.tokens, err = h.tokens(); err != nil {
		t.Fatal(err)
	}
	face, err := h.httpServer(app.Catalog, s.tokens)
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range map[*time.Duration]time.Duration{&face.Limits.HeaderTime: limits.HeaderTime, &face.Limits.BodyTime: limits.BodyTime, &face.Limits.IdleTime: limits.IdleTime} {
		if from > 0 {
			*to = from
		}
	}
	if limits.Connections > 0 {
		face.Limits.Connections = limits.Connections
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr, s.url = l.Addr().String(), "http://"+l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- face.Serve(ctx, l, nil) }()
	s.end = sync.OnceValue(func() error {
		stop()
		return errors.Join(<-ended, h.close())
	})
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw sends bytes as they are and returns the status line and the body of the
// first answer; "" where the connection was closed without one.
func (s *listening) raw(request string) (status int, body string) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		return 0, ""
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return resp.StatusCode, ""
	}
	return resp.StatusCode, string(raw)
}

// planted is what no answer may hold.
const planted = "The heirloom lies under the third stair."

// TestNobodyGetsInWithoutAToken tries forty ways around the token.
func TestNobodyGetsInWithoutAToken(t *testing.T) {
	s := listenHome(t, httpapi.Limits{})
	token := s.token(access.Admin)
	if status, body := s.ask(token, "POST", "/v1/agents/default/runs", `{"text":"`+planted+`"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	host := "Host: " + s.addr + "\r\n"
	get := func(target, headers string) string {
		return "GET " + target + " HTTP/1.1\r\n" + host + headers + "Connection: close\r\n\r\n"
	}
	post := func(target, headers, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\n%s%sContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", target, host, headers, len(body), body)
	}
	search, search2 := "/v1/agents/default/ops/memory.search", `{"text":"heirloom","scope":"all"}`
	recall := "/v1/agents/default/recall?q=heirloom"
	good := "Authorization: Bearer " + token + "\r\n"
	cases := map[string]string{
		"no header":               get(recall, ""),
		"empty header":            get(recall, "Authorization:\r\n"),
		"only the scheme":         get(recall, "Authorization: Bearer\r\n"),
		"scheme and blank":        get(recall, "Authorization: Bearer  \r\n"),
		"another scheme":          get(recall, "Authorization: Basic "+token+"\r\n"),
		"no scheme":               get(recall, "Authorization: "+token+"\r\n"),
		"upper case":              get(recall, "Authorization: Bearer "+strings.ToUpper(token)+"\r\n"),
		"cut":                     get(recall, "Authorization: Bearer "+token[:len(token)-1]+"\r\n"),
		"longer":                  get(recall, "Authorization: Bearer "+token+"0\r\n"),
		"trailing NUL":            get(recall, "Authorization: Bearer "+token+"\x00\r\n"),
		"quoted":                  get(recall, "Authorization: Bearer \""+token+"\"\r\n"),
		"two headers, good first": get(recall, good+"Authorization: Bearer x\r\n"),
		"two headers, good last":  get(recall, "Authorization: Bearer x\r\n"+good),
		"two in one":              get(recall, "Authorization: Bearer x, Bearer "+token+"\r\n"),
		"folded":                  get(recall, "Authorization: Bearer\r\n "+token+"x\r\n"),
		"query":                   get(recall+"&token="+token, ""),
		"query access_token":      get(recall+"&access_token="+token, ""),
		"cookie":                  get(recall, "Cookie: token="+token+"; Authorization=Bearer "+token+"\r\n"),
		"X-Api-Key":               get(recall, "X-Api-Key: "+token+"\r\n"),
		"Proxy-Authorization":     get(recall, "Proxy-Authorization: Bearer "+token+"\r\n"),
		"user info":               get("http://"+token+"@"+s.addr+recall, ""),
		"X-Forwarded-For":         get(recall, "X-Forwarded-For: 127.0.0.1\r\nX-Real-Ip: 127.0.0.1\r\n"),
		"X-Original-URL":          get("/healthz", "X-Original-URL: "+recall+"\r\nX-Rewrite-URL: "+recall+"\r\n"),
		"method override":         post("/healthz", "X-HTTP-Method-Override: GET\r\n", ""),
		"double slash":            get("//v1/agents/default/recall?q=heirloom", ""),
		"dots":                    get("/healthz/../v1/agents/default/recall?q=heirloom", ""),
		"encoded dots":            get("/admin/%2e%2e/v1/agents/default/recall?q=heirloom", ""),
		"encoded slash":           get("/admin%2f..%2fv1/agents/default/recall?q=heirloom", ""),
		"page and dots":           get("/admin/../v1/agents/default/recall?q=heirloom", ""),
		"semicolon":               get("/healthz;/v1/agents/default/recall?q=heirloom", ""),
		"fragment":                get("/healthz#/v1/agents/default/recall?q=heirloom", ""),
		"absolute form":           get("http://"+s.addr+recall, ""),
		"HEAD":                    "HEAD " + recall + " HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n",
		"OPTIONS":                 "OPTIONS " + recall + " HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n",
		"TRACE":                   "TRACE " + recall + " HTTP/1.1\r\n" + host + good + "Connection: close\r\n\r\n",
		"HTTP/1.0":                "GET " + recall + " HTTP/1.0\r\n\r\n",
		"HTTP/1.0 with a host":    "GET " + recall + " HTTP/1.0\r\n" + host + "\r\n",
		"an operation":            post(search, "", search2),
		"the admin's document":    get("/api/admin/memory/default", ""),
		"figures":                 get("/metrics", ""),
		"the description":         get("/openapi.json", ""),
		"MCP":                     post("/mcp", "Accept: application/json, text/event-stream\r\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":`+search2+`}}`),
		"another host":            strings.Replace(get(recall, good), s.addr, "evil.example", 1),
		"rebound host":            strings.Replace(get(recall, good), s.addr, "127.0.0.1.evil.example", 1),
		"origin null":             get(recall, good+"Origin: null\r\n"),
		"another origin":          post(search, good+"Origin: http://evil.example\r\n", search2),
		"two origins":             post(search, good+"Origin: "+s.url+"\r\nOrigin: http://evil.example\r\n", search2),
		"length and chunks":       "POST " + search + " HTTP/1.1\r\n" + host + good + "Content-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET " + recall + " HTTP/1.1\r\n" + host + "\r\n",
		"two lengths":             "POST " + search + " HTTP/1.1\r\n" + host + good + "Content-Type: application/json\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\n" + search2,
		"a simple form":           strings.Replace(post(search, good, search2), "application/json", "text/plain", 1),
	}
	for name, request := range cases {
		status, body := s.raw(request)
		if strings.Contains(body, "heirloom lies") || status >= 200 && status < 300 && !strings.Contains(body, `"status":"ok"`) && !(name == "length and chunks") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if len(cases) < 40 {
		t.Errorf("%d cases", len(cases))
	}
	if status, body := s.raw(get(recall, good)); status != 200 || !strings.Contains(body, "heirloom lies") {
		t.Errorf("with the token: %d %s", status, body)
	}
	if status, _ := s.raw(get(recall, "authorization: bearer "+token+"\r\n")); status != 200 {
		t.Errorf("a scheme in lower case: %d", status)
	}
}

// TestHostileBodies sends what no client of good will sends; the server answers
// each with an error, and the next request as ever.
func TestHostileBodies(t *testing.T) {
	s := listenHome(t, httpapi.Limits{BodyTime: time.Second})
	token := s.token(access.Write)
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := zip.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	path := "/v1/agents/default/ops/memory.search"
	request := func(headers, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, s.addr, token, headers, len(body), body)
	}
	const plain = "Content-Type: application/json\r\n"
	for name, raw := range map[string]string{
		"gzip bomb":        request(plain+"Content-Encoding: gzip\r\n", bomb.String()),
		"deep":             request(plain, strings.Repeat("[", 500_000)),
		"deep objects":     request(plain, strings.Repeat(`{"text":`, 100_000)),
		"100k keys":        request(plain, "{"+strings.Join(keys, ",")+"}"),
		"twice":            request(plain, `{"text":"a","text":"b"}`),
		"more follows":     request(plain, `{"text":"a"}{"text":"b"}`),
		"not UTF-8":        request(plain, "{\"text\":\"\xff\xfe\", \"limit\": \"x\"}"),
		"unknown member":   request(plain, `{"text":"a","agent":"other"}`),
		"too long":         fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, s.addr, token, plain, 1<<30, strings.Repeat(" ", 2<<20)),
		"a head of 1 MB":   fmt.Sprintf("GET /healthz HTTP/1.1\r\nHost: %s\r\nX-Pad: %s\r\n\r\n", s.addr, strings.Repeat("a", 1<<20)),
		"slow body":        fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%sContent-Length: 100\r\n\r\n{", path, s.addr, token, plain),
		"an endless chunk": fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%sTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{", path, s.addr, token, plain),
	} {
		if status, body := s.raw(raw); status >= 200 && status < 300 || status == 500 {
			t.Errorf("%s: %d %.200s", name, status, body)
		}
	}
	if status, body := s.ask(token, "POST", path, `{"text":"a"}`); status != 200 {
		t.Errorf("afterwards: %d %s", status, body)
	}
	if _, err := os.Stat(filepath.Join(s.home, "agents", "other")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused request made an agent")
	}
}

// TestSlowConnectionsAreClosed holds many connections open and sends nothing
// useful on them.
func TestSlowConnectionsAreClosed(t *testing.T) {
	s := listenHome(t, httpapi.Limits{HeaderTime: 500 * time.Millisecond, IdleTime: 500 * time.Millisecond})
	const many = 300
	var held []net.Conn
	for i := range many {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
		if i%2 == 0 {
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if status, _ := s.ask("", "GET", "/healthz", ""); status != 200 {
		t.Errorf("beside them: %d", status)
	}
	alive := 0
	for _, c := range held {
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			alive++
		}
	}
	if alive > 0 {
		t.Errorf("%d of %d connections are still open", alive, many)
	}
}

// TestServerEndsClean ends a server with a stream under way, and leaves no
// goroutine behind.
func TestServerEndsClean(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := listenHome(t, httpapi.Limits{})
	token := s.token(access.Write)
	if status, body := s.ask(token, "POST", "/v1/agents/default/chat", `{"text":"I like the smell of rain."}`); status != 200 || !strings.Contains(body, "event: answer") {
		t.Fatalf("%d %s", status, body)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := net.DialTimeout("tcp", s.addr, time.Second); err == nil {
		t.Error("it still listens")
	}
	goleak.VerifyNone(t, before)
}
