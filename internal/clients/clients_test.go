package clients

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

var server = Server{Command: "/opt/oc", Args: []string{"mcp", "--agent", "default"}}

func setup(t *testing.T, env map[string]string) Setup {
	t.Helper()
	home := t.TempDir()
	return Setup{Place: Place{Home: home, OS: "linux", Getenv: func(name string) string { return env[name] }}, Dir: filepath.Join(home, ".oc", "setup")}
}

// files are what a person may have: comments, trailing commas, no entry, other
// entries, tabs, one line, nothing.
var files = map[Client][]string{
	ClaudeCode: {"", "{}", "{\n}\n", `{"numStartups":3}`, "{\n  \"numStartups\": 3\n}\n", "{\n  \"mcpServers\": {}\n}",
		"{\n\t\"mcpServers\": {\n\t\t\"other\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t},\n\t\"z\": 1\n}\n"},
	VSCode: {"{\n  // my servers\n  \"servers\": {\n    \"other\": {\"command\": \"x\"}, // keep\n    /* and */\n  },\n  \"inputs\": [],\n}\n",
		"{\n  \"servers\": {\n    \"other\": {\"command\": \"x\"} // no comma\n  }\n}\n", "{\"servers\": {\"a\": {}}}", "// nothing yet\n{\n}\n"},
	OpenClaw: {"{\n  \"mcp\": {\"servers\": {\"docs\": {\"url\": \"https://d.example\"}}},\n  \"agents\": {}\n}\n", "{\"agents\":{}}", "{\n  \"mcp\": {\n    \"sessionIdleTtlMs\": 5\n  }\n}\n"},
	Codex: {"", "model = \"m\"", "# mine\nmodel = \"m\"\n\n[mcp_servers.docs] # keep\ncommand = \"d\"\n\n[profiles.x]\nmodel = \"n\"\n",
		"notes = '''\n[mcp_servers.openclawssy]\n'''\n"},
}

// An entry comes in, all else stays as it was, a second time nothing changes, an
// undo restores every byte, and one after another edit takes out the entry alone.
func TestApplyAndUndo(t *testing.T) {
	for client, texts := range files {
		for _, before := range texts {
			t.Run(string(client)+" "+before, func(t *testing.T) {
				s := setup(t, nil)
				f, err := client.form(s.Place)
				if err != nil {
					t.Fatal(err)
				}
				if before != "" {
					if err := os.MkdirAll(filepath.Dir(f.file), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(f.file, []byte(before), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				change, err := s.Apply(client, server)
				if err != nil || !change.Changed || change.Created != (before == "") {
					t.Fatalf("%+v, %v", change, err)
				}
				after := readFile(t, f.file)
				if !reflect.DeepEqual(entryOf(t, f, after), map[string]any{"command": "/opt/oc", "args": []any{"mcp", "--agent", "default"}}) {
					t.Errorf("the entry in\n%s\nis %v", after, entryOf(t, f, after))
				}
				allIn(t, before, after)
				if again, err := s.Apply(client, server); err != nil || again.Changed || readFile(t, f.file) != after {
					t.Errorf("again: %+v, %v", again, err)
				}
				// Another agent, then back to the start in one step.
				if _, err := s.Apply(client, Server{Command: "/opt/oc", Args: []string{"mcp", "--agent", "studio"}}); err != nil {
					t.Fatal(err)
				}
				undone, err := s.Undo(client)
				if err != nil || !undone.Exact || undone.Removed != (before == "") {
					t.Fatalf("undo: %+v, %v", undone, err)
				}
				if before != "" && readFile(t, f.file) != before {
					t.Errorf("after the undo\n%s", readFile(t, f.file))
				}
				if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
					t.Errorf("left: %v, %v", left, err)
				}
				if before == "" {
					return
				}
				if st, err := os.Stat(f.file); err != nil || st.Mode().Perm() != 0o640 {
					t.Errorf("mode %v, %v", st.Mode(), err)
				}
				// Somebody edits in between.
				if _, err := s.Apply(client, server); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f.file, []byte(readFile(t, f.file)+"\n"), 0o640); err != nil {
					t.Fatal(err)
				}
				undone, err = s.Undo(client)
				if err != nil || !undone.Changed || undone.Exact {
					t.Fatalf("undo after an edit: %+v, %v", undone, err)
				}
				text := readFile(t, f.file)
				if entryOf(t, f, text) != nil {
					t.Errorf("the entry is still in\n%s", text)
				}
				allIn(t, before, text)
				if nothing, err := s.Undo(client); err != nil || nothing.Changed {
					t.Errorf("a second undo: %+v, %v", nothing, err)
				}
			})
		}
	}
}

// allIn checks that each word of a text is in another one.
func allIn(t *testing.T, text, in string) {
	t.Helper()
	for _, word := range strings.Fields(strings.NewReplacer(",", " ", "{", " ", "}", " ").Replace(text)) {
		if !strings.Contains(in, word) {
			t.Errorf("%q is gone from\n%s", word, in)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// entryOf returns our entry, without its type; nil for none.
func entryOf(t *testing.T, f form, text string) any {
	t.Helper()
	var tree any
	path := append(append([]string{}, f.path...), name)
	if f.toml {
		path = []string{tables, name}
		var m map[string]any
		if err := toml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		tree = m
	} else {
		var err error
		if tree, err = plainOf([]byte(text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, key := range path {
		m, is := tree.(map[string]any)
		if !is {
			return nil
		}
		tree = m[key]
	}
	if m, is := tree.(map[string]any); is {
		delete(m, "type")
		return m
	}
	return nil
}

// What cannot be edited safely is left alone, with a word on what to do.
func TestApplyRefuses(t *testing.T) {
	for client, text := range map[Client]string{
		OpenClaw: "{mcp: {servers: {}}}", Cursor: `{"mcpServers": []}`, Codex: "mcp_servers = { openclawssy = { command = \"x\" } }\n", Gemini: `{"a":`, VSCode: "[]",
	} {
		s := setup(t, nil)
		f, err := client.form(s.Place)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(f.file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = s.Apply(client, server)
		if !errors.Is(err, memory.ErrInvalid) || !strings.Contains(memory.HintOf(err), "--print") || readFile(t, f.file) != text {
			t.Errorf("%s: %v, hint %q", client, err, memory.HintOf(err))
		}
	}
	if _, err := Client("emacs").Snippet(Place{}, server); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("emacs: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	env := map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "OPENCLAW_STATE_DIR": "/o", "XDG_CONFIG_HOME": "/g"}
	for _, tc := range []struct {
		client Client
		os     string
		env    map[string]string
		want   string
	}{
		{ClaudeCode, "linux", nil, "/h/.claude.json"}, {ClaudeCode, "linux", env, "/c/.claude.json"},
		{Cursor, "linux", nil, "/h/.cursor/mcp.json"}, {Gemini, "linux", nil, "/h/.gemini/settings.json"},
		{VSCode, "linux", nil, "/h/.config/Code/User/mcp.json"}, {VSCode, "linux", env, "/g/Code/User/mcp.json"},
		{VSCode, "darwin", nil, "/h/Library/Application Support/Code/User/mcp.json"},
		{Codex, "linux", nil, "/h/.codex/config.toml"}, {Codex, "linux", env, "/x/config.toml"},
		{OpenClaw, "linux", nil, "/h/.openclaw/openclaw.json"}, {OpenClaw, "linux", env, "/o/openclaw.json"},
		{OpenClaw, "linux", map[string]string{"OPENCLAW_CONFIG_PATH": "/p.json"}, "/p.json"},
	} {
		f, err := tc.client.form(Place{Home: "/h", OS: tc.os, Getenv: func(name string) string { return tc.env[name] }})
		if err != nil || f.file != tc.want {
			t.Errorf("%s on %s: %s, %v; want %s", tc.client, tc.os, f.file, err, tc.want)
		}
	}
}

// A link is followed, so that a person's dotfiles stay linked.
func TestApplyFollowsLinks(t *testing.T) {
	s := setup(t, nil)
	real := filepath.Join(s.Place.Home, "dotfiles.json")
	link := filepath.Join(s.Place.Home, ".claude.json")
	if err := errors.Join(os.WriteFile(real, []byte("{}"), 0o600), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ClaudeCode, server); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 || !strings.Contains(readFile(t, real), name) {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// A file whose lines end in CRLF has no other ends of lines after the setup.
func TestApplyKeepsLineEnds(t *testing.T) {
	for client, text := range map[Client]string{
		ClaudeCode: "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": {\"command\": \"x\"}\r\n\t}\r\n}\r\n",
		Cursor:     "{\r\n  // mine\r\n  \"a\": 1\r\n}",
		Codex:      "model = \"o3\" # mine\r\n[mcp_servers.other]\r\ncommand = \"x\"",
	} {
		s := setup(t, nil)
		f, err := client.form(s.Place)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(f.file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(client, server); err != nil {
			t.Fatal(err)
		}
		got := readFile(t, f.file)
		if !strings.Contains(got, "openclawssy") || strings.Count(got, "\n") != strings.Count(got, "\r\n") || strings.Contains(got, "\r\r") {
			t.Errorf("%s: %q", client, got)
		}
		if again, err := s.Apply(client, server); err != nil || again.Changed {
			t.Errorf("%s: a second time: %+v, %v", client, again, err)
		}
		if _, err := s.Undo(client); err != nil || readFile(t, f.file) != text {
			t.Errorf("%s: undone to %q, %v", client, readFile(t, f.file), err)
		}
	}
}

// Whatever stands in a file besides, it means the same with our entry, and
// without it again.
func TestJSONKeepsAllElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Custom(func(t *rapid.T) any { return tree(t, 3) })
		m := map[string]any{"x": value.Draw(t, "x")}
		if rapid.Bool().Draw(t, "servers") {
			m["mcpServers"] = map[string]any{rapid.StringMatching(`[a-z"\\é]{1,5}`).Draw(t, "name"): value.Draw(t, "server")}
		}
		raw, err := json.MarshalIndent(m, "", rapid.SampledFrom([]string{"", " ", "  ", "\t"}).Draw(t, "indent"))
		if rapid.Bool().Draw(t, "compact") {
			raw, err = json.Marshal(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := form{path: []string{"mcpServers"}}
		out, err := f.with(raw, server)
		if err != nil {
			t.Fatal(err)
		}
		back, had, err := f.without(out)
		if err != nil || !had {
			t.Fatalf("%v %v in %s", had, err, out)
		}
		got, err := plainOf(back)
		if err != nil {
			t.Fatalf("%v in %s", err, back)
		}
		if servers := got.(map[string]any)["mcpServers"]; m["mcpServers"] == nil && reflect.DeepEqual(servers, map[string]any{}) {
			delete(got.(map[string]any), "mcpServers")
		}
		want, err := plainOf(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("from %s\nto %s\nand back %s, %v", raw, out, back, err)
		}
	})
}

func tree(t *rapid.T, depth int) any {
	switch k := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case k == 0 && depth > 0:
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			m[rapid.StringN(0, 4, -1).Draw(t, "key")] = tree(t, depth-1)
		}
		return m
	case k == 1 && depth > 0:
		return []any{tree(t, depth-1), true}
	case k == 2:
		return rapid.StringN(0, 6, -1).Draw(t, "string")
	}
	return nil
}

func FuzzJSON(f *testing.F) {
	for _, texts := range files {
		for _, text := range texts {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		form := form{path: []string{"mcp", "servers"}}
		out, err := form.with([]byte(text), server)
		if err != nil {
			if memory.KindOf(err) != memory.ErrInvalid {
				t.Fatal(err)
			}
			return
		}
		if again, err := form.with(out, server); err != nil || string(again) != string(out) {
			t.Fatalf("again: %v\n%s\n%s", err, out, again)
		}
		if _, had, err := form.without(out); err != nil || !had {
			t.Fatalf("without: %v %v\n%s", had, err, out)
		}
	})
}

func FuzzTOML(f *testing.F) {
	for _, text := range files[Codex] {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := tomlWith([]byte(text), server)
		if err != nil {
			return
		}
		if again, err := tomlWith(out, server); err != nil || string(again) != string(out) {
			t.Fatalf("again: %v\n%s\n%s", err, out, again)
		}
	})
}
