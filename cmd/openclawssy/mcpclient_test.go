package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/mcpapi"
)

// mcpVersion is the version of the official client that the tools are tested with.
const mcpVersion = "1.32.2"

// nodeProgram installs packages from npm beside a script of testdata, and returns what
// runs it. Where that cannot be done the test is skipped.
func nodeProgram(t *testing.T, script string, packages ...string) func(env ...string) *exec.Cmd {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: the official client is not tried, since node is not installed")
	}
	dir := t.TempDir()
	install := exec.Command("npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir}, packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the official client is not tried, since npm cannot install it: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, script)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(env ...string) *exec.Cmd {
		cmd := exec.Command(node, path)
		cmd.Env = append(os.Environ(), env...)
		return cmd
	}
}

// TestMCPWithTheOfficialClient has the client from npm use the tools, over both
// transports.
func TestMCPWithTheOfficialClient(t *testing.T) {
	script := nodeProgram(t, "mcp.mjs", "@modelcontextprotocol/sdk@"+mcpVersion)
	t.Run("stdio", func(t *testing.T) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// The test binary is the program when it is called by its name.
		program := filepath.Join(t.TempDir(), "openclawssy")
		if err := os.Symlink(self, program); err != nil {
			t.Fatal(err)
		}
		exerciseByScript(t, script("PROGRAM="+program, "HOME_DIR="+filepath.Join(t.TempDir(), "home"), "AGENT=studio"))
	})
	t.Run("HTTP", func(t *testing.T) {
		s := serveHome(t)
		exerciseByScript(t, script("URL="+s.url+"/mcp", "TOKEN="+s.token(access.Admin, "studio"), "AGENT=studio"))
	})
}

func exerciseByScript(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, raw, errs.String())
	}
	type answer struct {
		Error      bool
		Text       string
		Structured json.RawMessage
	}
	var got struct {
		Server, Item, Other, NoTool              string
		Written, Found, Block, Got, Bad, Missing answer
		Templates, Prompts, Prompt               []string
		Tools                                    []struct {
			Name, Schema     string
			Reads, Described bool
		}
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	var names []string
	for _, tool := range got.Tools {
		names = append(names, tool.Name)
		if writes := slices.Contains([]string{"memory_write", "memory_update", "memory_forget", "decision_log"}, tool.Name); tool.Reads == writes || tool.Schema != "object" || !tool.Described {
			t.Errorf("the client is told %+v", tool)
		}
	}
	var want []string
	for _, name := range mcpapi.DefaultTools {
		want = append(want, strings.ReplaceAll(name, ".", "_"))
	}
	slices.Sort(names)
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	for name, check := range map[string]struct {
		answer
		want string
	}{"write": {got.Written, "MEM-1"}, "search": {got.Found, "Heron"}, "recall": {got.Block, "RELEVANT MEMORY"}, "get": {got.Got, "Heron"}} {
		if check.Error || !strings.Contains(check.Text, check.want) {
			t.Errorf("%s: %+v", name, check.answer)
		}
	}
	if !got.Bad.Error || !got.Missing.Error || got.Bad.Text == "" || got.Missing.Text == "" {
		t.Errorf("mistakes are answered by %+v and %+v", got.Bad, got.Missing)
	}
	if !strings.Contains(got.Item, "Heron") || got.Other == "" || got.NoTool == "" {
		t.Errorf("item %q; another agent's: %q; no tool: %q", got.Item, got.Other, got.NoTool)
	}
	if len(got.Templates) == 0 || !slices.Contains(got.Prompts, "recall") || len(got.Prompt) != 2 || !strings.Contains(got.Prompt[0], "Heron") {
		t.Errorf("templates %v, prompts %v, recall %q", got.Templates, got.Prompts, got.Prompt)
	}
	if got.Server == "" || errs.Len() > 0 {
		t.Errorf("server %q said %s", got.Server, errs.String())
	}
}
