//go:build fault

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/httpapi"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// TestFaultF12 does to the server what no client of good will does, with the limits
// that it has.
func TestFaultF12(t *testing.T) {
	r := fault.Begin(t, "F12")
	for name, run := range map[string]func(*testing.T){"around the token": TestNobodyGetsInWithoutAToken, "bodies": TestHostileBodies, "scopes": TestServeKeepsAgentsAndRightsApart} {
		if !t.Run(name, run) {
			t.Logf("%s failed: see above", name)
		}
	}
	s := listenHome(t, httpapi.Limits{})
	writer, stranger := s.token(access.Write, "default"), s.token(access.Write, "other")
	if status, body := s.ask(writer, "POST", "/v1/agents/default/runs", `{"text":"`+planted+`"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	panics, crossed, opened := 0, 0, 0
	look := func(what string, status int, body string, mayKnow bool) {
		if status == 500 || strings.Contains(body, "panic") {
			panics++
			t.Logf("%s: %d %.300s", what, status, body)
		}
		if !mayKnow && strings.Contains(body, "heirloom lies") {
			crossed++
			t.Logf("%s tells: %.300s", what, body)
		}
	}

	// Another agent's token, at every address and tool.
	for _, path := range []string{
		"/v1/agents/default/recall?q=heirloom", "/v1/agents/default/ops/memory.search", "/v1/agents/default/ops/events.tail", "/v1/agents/default/ops/memory.recall", "/v1/agents/default/runs", "/v1/agents/default/chat", "/v1/agents/default/events",
		"/v1/agents/other/../default/recall?q=heirloom", "/v1/agents/other%2f..%2fdefault/recall?q=heirloom", "/v1/agents/DEFAULT/recall?q=heirloom", "/v1/agents/default%00/recall?q=heirloom", "/v1/agents/default/ops/memory.list",
		"/api/admin/memory/default", "/metrics", "/v1/agents/other/recall?q=heirloom&agent=default",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"} {
			status, body := s.ask(stranger, method, path, `{"text":"heirloom","agent":"default"}`)
			look(method+" "+path, status, body, false)
		}
	}

	// The protocol for tools.
	frames := []string{
		`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"text":"heirloom"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"text":"heirloom","agent":"default"}}}`, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"openclawssy://default/report"}}`,
		`[]`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"1.0","method":"ping"}`, `null`, `"x"`, `{`,
		"\xff\xfe", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":[1]}}`, `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 900_000) + `"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":"` + strings.Repeat("y", 10<<20) + `"}`,
	}
	for range r.N(1000) { // a flood of notifications
		frames = append(frames, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
	}
	for i, frame := range frames {
		status, body := s.ask(stranger, "POST", "/mcp", frame)
		look(fmt.Sprint("MCP frame ", i), status, body, false)
		if status, _ := s.ask("", "POST", "/mcp", frame); status >= 200 && status < 300 {
			opened++
		}
	}

	// Smuggled and piled up requests: only the first, that has a token, may be answered.
	host := "Host: " + s.addr + "\r\n"
	secret := "GET /v1/agents/default/recall?q=heirloom HTTP/1.1\r\n" + host + "\r\n"
	for i, raw := range []string{
		"POST /healthz HTTP/1.1\r\n" + host + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + secret,
		"POST /healthz HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + secret,
		"POST /healthz HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + secret,
		"POST /healthz HTTP/1.1\r\n" + host + "Content-Length: +0\r\n\r\n" + secret,
		"GET /healthz HTTP/1.1\r\n" + host + "\r\n" + strings.Repeat(secret, 200),
		"GET /healthz HTTP/1.1\r\n" + host + "Authorization: Bearer " + stranger + "\r\n\r\n" + secret,
	} {
		status, body := s.raw(raw)
		look(fmt.Sprint("smuggled ", i), status, body, false)
	}

	// A body of 1 GiB, and many slow connections at once.
	runtime.GC()
	debug.FreeOSMemory()
	before := residentBytes(t)
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST /v1/agents/default/ops/memory.search HTTP/1.1\r\n%sAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", host, writer, 1<<30); err != nil {
		t.Fatal(err)
	}
	block, sent := make([]byte, 1<<20), 0
	for ; sent < 1<<10; sent++ {
		if err := c.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(block); err != nil {
			break
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	most := before
	measure := func() { most = max(most, residentBytes(t)) }
	many := r.N(500)
	var held []net.Conn
	for i := range many {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			break // it takes no more: that is a limit too
		}
		held = append(held, c)
		switch i % 3 {
		case 0:
			_, err = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-")
		case 1:
			_, err = fmt.Fprintf(c, "POST /v1/agents/default/ops/memory.search HTTP/1.1\r\n%sAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", host, writer)
		}
		if err != nil && i < 10 {
			t.Fatal(err)
		}
	}
	measure()
	limit := time.Now().Add(10 * time.Second)
	var alive sync.Map
	var waiting sync.WaitGroup
	for i, c := range held {
		waiting.Go(func() {
			defer c.Close()
			if c.SetReadDeadline(limit) != nil {
				return
			}
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				alive.Store(i, true)
			}
		})
	}
	waiting.Wait()
	measure()
	left := map[int]int{}
	alive.Range(func(i, _ any) bool { left[i.(int)%3]++; return true })
	if status, _ := s.ask(writer, "GET", "/v1/agents/default/recall?q=heirloom", ""); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
	r.Count("cases", 50+12+15*6+len(frames)+6)
	r.Zero("answers without a token", opened)
	r.Zero("read across agents", crossed)
	r.Zero("panics", panics)
	r.Count("MiB of the 1 GiB body taken from the wire", sent)
	r.Count("slow connections", len(held))
	r.Zero("of them alive after 10 s with a head unfinished", left[0])
	r.Zero("with a body unfinished", left[1])
	r.Zero("with nothing said", left[2])
	r.AtMost("growth of resident memory", float64(most-before)/(1<<20), 32, " MiB")
}

// residentBytes is this process's resident memory, in bytes.
func residentBytes(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
