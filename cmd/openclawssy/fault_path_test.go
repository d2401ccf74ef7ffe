//go:build fault

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// badNames are what hostile ids are made of.
var badNames = []string{
	"..", ".", "../..", "../../etc", "..\\..\\x", "%2e%2e", "%2e%2e%2f", "..%2f", "..%252f", "%c0%ae%c0%ae", "....//", "./x", "x/..", "x/../../y", "/", "//x", "/etc/passwd", "/tmp/x", "\\\\host\\share", "C:\\x", "C:x",
	"x\x00", "\x00", "x\x00.json", "x\n", "x\r\ny", "\tx", " x", "x ", "x.", "x..", "\u202ex", "x\u200b", "\ufeffx", "ｘ", "．．", "‥", "..／", "Default", "DEFAULT", "dEfault", "con", "CON", "nul.txt", "aux", "com1", "lpt9",
	"x?_pragma=synchronous(0)", "x?mode=memory", "x#frag", "x&_pragma=journal_mode(off)", "file:x", "file:///tmp/x", ":memory:", "x;y", "x|y", "$(id)", "`id`", "${HOME}", "~", "~root", "*", "?", "[a]", "{a,b}", "!x",
	"-rf", "--help", "-", "--home", "_x", ".hidden", ".git", "memory", "events", "", strings.Repeat("a", 64), strings.Repeat("a", 300), strings.Repeat("../", 40), "é", "é", "ß", "ı", "K", "x%00", "x%0a", "agents", "..;/x", "x/", "x//y", "a:b", "CON.json",
}

// hostileName is one of them, or two or three put together.
func hostileName(chance *rand.Rand) string {
	pick := func() string { return badNames[chance.IntN(len(badNames))] }
	switch chance.IntN(6) {
	case 0:
		return pick()
	case 1:
		return pick() + pick()
	case 2:
		return pick() + "/" + pick()
	case 3:
		return "a" + pick() + "b"
	case 4:
		raw := make([]byte, 1+chance.IntN(12))
		for i := range raw {
			raw[i] = byte(chance.IntN(256))
		}
		return string(raw)
	}
	return url.PathEscape(pick()) + pick()
}

// shapeOf is every path below dir with what it is, and the bytes of its file, but for
// what is below except.
func shapeOf(t *testing.T, dir, except string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == except {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(raw)
			what += hex.EncodeToString(sum[:8])
		}
		out[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changed counts the paths that differ.
func changed(t *testing.T, was, is map[string]string) int {
	t.Helper()
	n := 0
	for path, what := range is {
		if was[path] != what {
			n++
			t.Logf("outside of the home: %s is %s, was %q", path, what, was[path])
		}
	}
	for path := range was {
		if is[path] == "" {
			n++
			t.Logf("outside of the home: %s is gone", path)
		}
	}
	return n
}

// TestFaultF8 gives hostile names to every entry, imports hostile trees, and swaps
// directories for links while they are used.
func TestFaultF8(t *testing.T) {
	r := fault.Begin(t, "F8")
	parent := fault.Dir(t)
	home := filepath.Join(parent, "in", "home")
	outside := filepath.Join(parent, "outside")
	for _, dir := range []string{filepath.Dir(home), outside, filepath.Join(parent, "etc"), filepath.Join(outside, "memory")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(outside, "secret.md"), filepath.Join(parent, "etc", "passwd"), filepath.Join(outside, "memory", "memory.db")} {
		if err := os.WriteFile(name, []byte("# Outside\n\nThe heirloom lies under the third stair.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chance := rand.New(rand.NewPCG(8, 8))
	s, end := serveAt(t, home)
	token := s.token(access.Admin)
	if status, body := s.ask(token, "POST", "/v1/agents/default/ops/memory.write", `{"title":"tea","content":"Tea is green."}`); status != 200 {
		t.Fatal(body)
	}
	was := shapeOf(t, parent, home)
	names := r.N(10_000)
	accepted, shared, leaked, crashes := 0, 0, 0, 0
	spellings := map[string]string{} // accepted ids by their folded spelling
	for range names {
		name := hostileName(chance)
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		id, idErr := memory.ParseAgentID(name)
		if idErr == nil {
			accepted++
			fold := strings.ToLower(strings.TrimRight(string(id), ". "))
			if other, there := spellings[fold]; there && other != name {
				shared++
			}
			spellings[fold] = name
		}
		if session.CheckID(name) == nil && filepath.Dir(filepath.Join("/s", name+".json")) != "/s" {
			leaked++
		}
		see := func(status int, body string) {
			if status >= 500 && !strings.Contains(body, "unavailable") {
				crashes++
				t.Logf("%q: %d %s", name, status, body)
			}
			if strings.Contains(body, "heirloom") {
				leaked++
				t.Logf("%q reads what is outside: %s", name, body)
			}
		}
		path := url.PathEscape(name)
		if chance.IntN(2) == 0 && !strings.ContainsAny(name, "?#%") && isInked(name) {
			path = name // as it is
		}
		see(s.ask(token, "POST", "/v1/agents/"+path+"/ops/memory.list", `{}`))
		op := []string{
			`record.put {"namespace":"workflow","record_kind":%s,"record_id":%[1]s,"payload":{}}`, `record.get {"namespace":%s,"record_kind":"k","record_id":%[1]s}`, `graph.add_node {"id":%s,"node_type":"semantic","label":%[1]s}`,
			`memory.get {"handle":%s}`, `cron.add {"name":%s,"schedule":"@daily","op":"memory.list"}`, `agent.message.send {"text":"x","to":%s}`, `agent.message.send {"text":"x","session_id":%s}`, `workspace.get {"path":%s}`, `memory.erase {"session":%s}`,
		}[chance.IntN(9)]
		opName, body, _ := strings.Cut(op, " ")
		see(s.ask(token, "POST", "/v1/agents/default/ops/"+opName, fmt.Sprintf(body, quoted)))
		if chance.IntN(4) == 0 {
			see(s.ask(token, "POST", "/v1/agents/default/events", `{"session":{"id":`+string(quoted)+`},"events":[{"type":"user_message","text":"hello"}]}`))
			see(s.ask(token, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":`+string(quoted)+`}}`))
		}
		if chance.IntN(20) == 0 && idErr != nil {
			var out bytes.Buffer
			h := newHouse(time.Now, func(string) string { return "" }, nil)
			if cli.Run(context.Background(), h.app(), []string{"memory", "list", "--home", home, "--agent=" + name}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}) == 0 {
				leaked++
				t.Logf("the command takes the agent %q: %s", name, &out)
			}
			if err := h.close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	end()
	r.Count("names", names)
	r.Count("accepted as agents", accepted)
	r.Zero("ids that share a directory", shared)
	r.Zero("answers with status 5xx", crashes)
	outsideAfterNames := changed(t, was, shapeOf(t, parent, home))

	trees := r.N(500)
	for i := range trees {
		leaked += importTree(t, chance, home, outside, i)
	}
	r.Count("trees imported", trees)

	races := r.N(2000)
	race := raceLinks(t, outside, races)
	r.Count("swaps of a directory for a link", races)
	r.Zero("read outside by a race", race)
	r.Zero("files changed outside", outsideAfterNames+changed(t, was, shapeOf(t, parent, home)))
	r.Zero("read from outside", leaked)
}

// isInked reports that all of s can stand in the path of an address.
func isInked(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// importTree makes a workspace with links, pipes and odd names, takes it over, and
// counts what came from outside.
func importTree(t *testing.T, chance *rand.Rand, home, outside string, i int) int {
	t.Helper()
	space := filepath.Join(t.TempDir(), "space")
	for _, dir := range []string{space, filepath.Join(space, "memory")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	try := func(err error) { // some names cannot be: that is fine
		if err != nil && !os.IsExist(err) {
			t.Logf("tree %d: %v", i, err)
		}
	}
	try(os.WriteFile(filepath.Join(space, "MEMORY.md"), fmt.Appendf(nil, "# Notes\n\nThe number of this tree is %d.\n", i), 0o600))
	for range 3 {
		at := filepath.Join(space, []string{"", "memory"}[chance.IntN(2)], []string{"2026-05-04.md", "USER.md", "notes.md", "x\n.md", "..md", "SOUL.md"}[chance.IntN(6)])
		switch chance.IntN(5) {
		case 0:
			try(os.Symlink(filepath.Join(outside, "secret.md"), at))
		case 1:
			try(os.Symlink(outside, at))
		case 2:
			try(syscall.Mkfifo(at, 0o600))
		case 3:
			try(os.Symlink("../../../../../../../../../../../etc/passwd", at))
		case 4:
			try(os.Symlink(at, at))
		}
	}
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	var out bytes.Buffer
	cli.Run(context.Background(), h.app(), []string{"workspace", "records", space, "--home", home, "--json"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	if i%10 == 0 {
		cli.Run(context.Background(), h.app(), []string{"workspace", "import", space, "--home", home, "--agent", "importer", "--json"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		cli.Run(context.Background(), h.app(), []string{"memory", "list", "--home", home, "--agent", "importer", "--limit", "0", "--json"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "heirloom") || strings.Contains(out.String(), "root:x:") {
		t.Logf("tree %d: %s", i, &out)
		return 1
	}
	return 0
}

// raceLinks reads a workspace again and again while somebody swaps its folder of
// notes for a link to outside, and counts what came from there. (Whoever may write
// into the home itself owns the memory anyway.)
func raceLinks(t *testing.T, outside string, n int) int {
	t.Helper()
	space := t.TempDir()
	notes, aside := filepath.Join(space, "memory"), filepath.Join(space, "aside")
	if err := os.Mkdir(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret.md", "2026-05-04.md"} {
		if err := os.WriteFile(filepath.Join(notes, name), []byte("# Inside\n\nThe well is deep.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	var swaps atomic.Int64
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(notes, aside) == nil && os.Symlink(outside, notes) == nil {
				swaps.Add(1)
				if os.Remove(notes) != nil {
					return
				}
			}
			if os.Rename(aside, notes) != nil {
				return
			}
		}
	}()
	wrong := 0
	for i := 0; i < n || swaps.Load() < int64(n) && i < 50*n; i++ {
		w, err := workspace.Open(space)
		if err != nil {
			t.Fatal(err)
		}
		for record, err := range w.Records(context.Background(), workspace.Options{}) {
			if err == nil && strings.Contains(record.Content, "heirloom") {
				wrong++
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
	if swaps.Load() < int64(n) {
		t.Errorf("only %d swaps", swaps.Load())
	}
	return wrong
}
