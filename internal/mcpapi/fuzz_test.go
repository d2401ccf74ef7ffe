package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// FuzzMCPFrame: whatever comes in, what goes out are JSON-RPC messages, a line
// each, and the server ends with its input.
func FuzzMCPFrame(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, seed := range []string{"", "{}", "\n\n", hello, hello + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n", hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}` + "\n",
		hello + `{"jsonrpc":"2.0","id":1,"method":"nothing"}` + "\n", "[" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "]\n", `{"jsonrpc":"2.0","id":{},"method":1}` + "\n", "\xff\xfe\n", `{"jsonrpc":"1.0"}` + "\n", `null` + "\n", hello + `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"say","arguments":[]}}` + "\n"} {
		f.Add([]byte(seed))
	}
	type words struct {
		Text string `json:"text"`
	}
	var catalog op.Catalog
	catalog.Add(op.New("say", "Say words.", op.Read, func(_ context.Context, _ memory.AgentID, in words) (words, error) { return in, nil }))
	face := New(Options{Catalog: catalog.Freeze(), Version: "test",
		Report: func(context.Context, memory.AgentID) (string, error) { return "", memory.ErrNotFound },
		Audit:  func(context.Context, memory.AgentID, runlog.Entry) error { return nil }, Now: time.Now, Log: zerolog.Nop()})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return
		}
		var out bytes.Buffer
		// A client whose messages cannot be read is told, and left: no error of ours.
		_ = face.Stdio(context.Background(), memory.DefaultAgent, catalog.All(), bytes.NewReader(in), &out)
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("%q answers %q", in, line)
			}
		}
	})
}
