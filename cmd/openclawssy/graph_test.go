package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
)

// TestGraphView runs the command as a person would: it prints an address, the
// address shows the agent's graph, and an interrupt ends it with status 0.
func TestGraphView(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "agents", "studio", "memory")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const row = `{"nodes":[{"id":"a","node_type":"semantic","agent_id":"studio","label":"Seen","created_at":1,"payload":{"n":9007199254740993},"kept":true}],"edges":[]}`
	for name, text := range map[string]string{"graph.json": row, "old.json": strings.ReplaceAll(row, "Seen", "Old")} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	printed, out := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, h.app(), []string{"graph", "view", "--home", home, "--agent", "studio"}, cli.Streams{Out: out, Err: &errs})
	}()
	url, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	if page := get(t, browser, strings.TrimSpace(url)); !strings.Contains(page, "<title>Graph memory") {
		t.Errorf("the address shows %.200q", page)
	}
	base, _, _ := strings.Cut(url, "?")
	var doc struct {
		Nodes []struct {
			Label   string
			Payload json.RawMessage
			Kept    bool
		}
	}
	for path, want := range map[string]string{"api/memory/graph": "Seen", "api/memory/graph?src=old.json": "Old"} {
		if err := json.Unmarshal([]byte(get(t, browser, base+path)), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Nodes) != 1 || doc.Nodes[0].Label != want || string(doc.Nodes[0].Payload) != `{"n":9007199254740993}` || !doc.Nodes[0].Kept {
			t.Errorf("%s has %+v", path, doc.Nodes)
		}
	}
	browser.CloseIdleConnections()
	interrupt()
	if status := <-ended; status != 0 {
		t.Errorf("it ended with status %d: %s", status, errs.String())
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d, %s", url, r.StatusCode, body)
	}
	return string(body)
}
