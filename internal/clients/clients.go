// Package clients writes the memory server into the configuration of programs
// that speak the Model Context Protocol, and takes it out again. Of a file only
// what is ours changes: the rest stays byte for byte, comments too.
package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Client names a program.
type Client string

// The clients.
const (
	ClaudeCode Client = "claude-code"
	Cursor     Client = "cursor"
	VSCode     Client = "vscode"
	Codex      Client = "codex"
	OpenClaw   Client = "openclaw"
	Gemini     Client = "gemini"
)

// All lists the clients.
var All = []Client{ClaudeCode, Cursor, VSCode, Codex, OpenClaw, Gemini}

// Title is what a person calls the client.
func (c Client) Title() string {
	return map[Client]string{ClaudeCode: "Claude Code", Cursor: "Cursor", VSCode: "VS Code", Codex: "Codex", OpenClaw: "OpenClaw", Gemini: "Gemini CLI"}[c]
}

// name is that of our entry.
const name = "openclawssy"

// Place says where a person's files are.
type Place struct {
	Home   string              // the person's directory
	OS     string              // as runtime.GOOS
	Getenv func(string) string // "" for a variable that is not set
}

// Server is how a client starts the memory server.
type Server struct {
	Command string
	Args    []string
}

// form is how a client is configured.
type form struct {
	file string
	path []string // of the object that holds the servers; none in TOML
	kind string   // value of the member type; "" for none
	toml bool
}

// form returns where a client has its servers, for all of a person's projects,
// and how:
//
//   - Claude Code: mcpServers of ~/.claude.json, user scope (code.claude.com/docs/en/mcp);
//     it lies in CLAUDE_CONFIG_DIR where that is set;
//   - Cursor: mcpServers of ~/.cursor/mcp.json (cursor.com/docs/context/mcp);
//   - VS Code: servers of mcp.json in the user's profile
//     (code.visualstudio.com/docs/agents/reference/mcp-configuration);
//   - Codex: [mcp_servers.<name>] of ~/.codex/config.toml, or CODEX_HOME
//     (developers.openai.com/codex/mcp);
//   - OpenClaw: mcp.servers of ~/.openclaw/openclaw.json, OPENCLAW_CONFIG_PATH or
//     OPENCLAW_STATE_DIR (docs/cli/mcp.md of github.com/openclaw/openclaw);
//   - Gemini CLI: mcpServers of ~/.gemini/settings.json
//     (docs/tools/mcp-server.md of github.com/google-gemini/gemini-cli).
func (c Client) form(p Place) (form, error) {
	below := func(variable, usual string) string {
		if dir := p.Getenv(variable); dir != "" {
			return dir
		}
		return filepath.Join(p.Home, usual)
	}
	switch c {
	case ClaudeCode:
		return form{file: filepath.Join(below("CLAUDE_CONFIG_DIR", ""), ".claude.json"), path: []string{"mcpServers"}, kind: "stdio"}, nil
	case Cursor:
		return form{file: filepath.Join(p.Home, ".cursor", "mcp.json"), path: []string{"mcpServers"}}, nil
	case VSCode:
		config := below("XDG_CONFIG_HOME", ".config")
		switch p.OS {
		case "darwin":
			config = filepath.Join(p.Home, "Library", "Application Support")
		case "windows":
			config = below("APPDATA", filepath.Join("AppData", "Roaming"))
		}
		return form{file: filepath.Join(config, "Code", "User", "mcp.json"), path: []string{"servers"}, kind: "stdio"}, nil
	case Codex:
		return form{file: filepath.Join(below("CODEX_HOME", ".codex"), "config.toml"), toml: true}, nil
	case OpenClaw:
		file := p.Getenv("OPENCLAW_CONFIG_PATH")
		if file == "" {
			file = filepath.Join(below("OPENCLAW_STATE_DIR", ".openclaw"), "openclaw.json")
		}
		return form{file: file, path: []string{"mcp", "servers"}}, nil
	case Gemini:
		return form{file: filepath.Join(p.Home, ".gemini", "settings.json"), path: []string{"mcpServers"}}, nil
	}
	names := make([]string, len(All))
	for i, known := range All {
		names[i] = string(known)
	}
	return form{}, &memory.FieldError{Field: "client", Reason: fmt.Sprintf("must be %s, not %q", strings.Join(names, ", "), c)}
}

// entry is our member as JSON.
type entry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// with returns a file's text with our entry in it, which may be unchanged.
func (f form) with(text []byte, s Server) ([]byte, error) {
	if f.toml {
		return tomlWith(text, s)
	}
	return jsonWith(text, append(slices.Clone(f.path), name), entry{Type: f.kind, Command: s.Command, Args: s.Args})
}

// without returns a file's text without our entry, and whether it had one.
func (f form) without(text []byte) ([]byte, bool, error) {
	if f.toml {
		return tomlWithout(text)
	}
	return jsonWithout(text, append(slices.Clone(f.path), name))
}

// Snippet is our entry in a file that has nothing else, for a person to read or
// to put in by hand.
func (c Client) Snippet(p Place, s Server) (string, error) {
	f, err := c.form(p)
	if err != nil {
		return "", err
	}
	text, err := f.with(nil, s)
	return string(text), err
}

// File returns the client's file.
func (c Client) File(p Place) (string, error) {
	f, err := c.form(p)
	return f.file, err
}

// quoted writes a string as JSON does, which TOML reads the same.
func quoted(v any, prefix, indent string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if indent != "" {
		enc.SetIndent(prefix, indent)
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
