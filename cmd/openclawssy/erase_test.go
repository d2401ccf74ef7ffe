package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// placesOf counts in which files below dir a text stands, in whatever case: as
// they are, and packed ones unpacked too.
func placesOf(t testing.TB, dir, text string) map[string]int {
	t.Helper()
	found, err := filesWith(dir, text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func filesWith(dir, text string) (map[string]int, error) {
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer unpack.Close()
	found := map[string]int{}
	return found, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below := strings.TrimPrefix(path, dir)
		if n := bytes.Count(bytes.ToLower(raw), []byte(strings.ToLower(text))); n > 0 {
			found[below] = n
		}
		if strings.HasSuffix(path, ".zst") {
			plain, err := unpack.DecodeAll(raw, nil)
			if err != nil {
				return err
			}
			if n := bytes.Count(bytes.ToLower(plain), []byte(strings.ToLower(text))); n > 0 {
				found[below+" (unpacked)"] = n
			}
		}
		return nil
	})
}

// slow stands before a server and lets each request through when it is told to.
type slow struct {
	came, pass chan struct{}
	behind     http.Handler
}

func newSlow(behind http.Handler) *slow {
	return &slow{came: make(chan struct{}, 100), pass: make(chan struct{}, 100), behind: behind}
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.came <- struct{}{}
	select {
	case <-s.pass:
		s.behind.ServeHTTP(w, r)
	case <-r.Context().Done():
	}
}

// processes runs the command in processes of its own, over one home.
type processes struct {
	t    *testing.T
	home string
	env  []string
}

func newProcesses(t *testing.T, env ...string) *processes {
	home := filepath.Join(t.TempDir(), "home")
	return &processes{t, home, append(append(os.Environ(), "OPENCLAWSSY_HOME="+home, "HOME="+t.TempDir(), "OPENCLAWSSY_RECALL_DEADLINE_MS=20000"), env...)}
}

// child is a process of the program.
type child struct {
	*exec.Cmd
	out  bytes.Buffer
	done chan error
}

func (p *processes) start(in io.Reader, args ...string) *child {
	p.t.Helper()
	c := &child{Cmd: exec.Command("openclawssy", args...), done: make(chan error, 1)}
	c.Env, c.Stdin, c.Stdout, c.Stderr = p.env, in, &c.out, &c.out
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { c.done <- c.Wait() }()
	return c
}

func (p *processes) run(args ...string) string {
	p.t.Helper()
	c := p.start(nil, args...)
	if err := <-c.done; err != nil {
		p.t.Fatalf("%v: %v\n%s", args, err, c.out.String())
	}
	return c.out.String()
}

func (p *processes) file(name string) string { return filepath.Join(p.home, "agents", "default", name) }

// locked waits until somebody holds a lock file of the agent, so that nobody else
// gets it.
func (p *processes) locked(name string) {
	p.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		l := flock.New(p.file("memory/" + name))
		free, err := l.TryLock()
		if err = errors.Join(err, l.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.t.Fatal(err)
		}
		if !free && err == nil {
			return
		}
		if time.Since(begin) > time.Minute {
			p.t.Fatalf("nobody took %s within a minute", name)
		}
	}
}

func (p *processes) nowhere(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if found := placesOf(p.t, p.home, text); len(found) > 0 {
			p.t.Errorf("%s stands in %v", text, found)
		}
	}
}

// withModel returns the environment of a model server behind s.
func withModel(t *testing.T) (*slow, *judge.Server, []string) {
	model := judge.NewServer(t)
	to, err := url.Parse(model.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newSlow(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host}))
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, model, []string{"OPENCLAWSSY_MODEL_PROVIDER=generic", "OPENCLAWSSY_MODEL_BASE_URL=" + server.URL + "/v1", "OPENCLAWSSY_MODEL_NAME=stub",
		"OPENCLAWSSY_MODEL_KEY=env:STUB_KEY", "STUB_KEY=sk-stub-0123456789"}
}

// TestErasureWaitsForATurn erases a session while one process waits for the
// model's answer in it, and while that answer calls a tool that remembers.
func TestErasureWaitsForATurn(t *testing.T) {
	s, model, env := withModel(t)
	p := newProcesses(t, env...)
	model.Script(judge.Answer{Text: "I keep quorvexil in mind.", ToolCalls: []judge.ToolCall{{Name: "memory_write", Arguments: `{"title":"quorvexil","content":"The word is quorvexil, says the user."}`}}},
		judge.Answer{Text: "Done: quorvexil is the word, and zantrimule the other."})
	turn := p.start(nil, "ask", "--session", "s-secret-1", "The word is quorvexil, remember it.")
	<-s.came
	erasing := p.start(nil, "memory", "erase", "--session", "s-secret-1", "--yes")
	p.locked("erase-gate.lock")
	s.pass <- struct{}{}
	<-s.came
	s.pass <- struct{}{}
	if err := <-turn.done; err != nil {
		t.Fatalf("%v\n%s", err, turn.out.String())
	}
	if !strings.Contains(turn.out.String(), "zantrimule") {
		t.Fatalf("the turn answered %s", turn.out.String())
	}
	if err := <-erasing.done; err != nil {
		t.Fatalf("%v\n%s", err, erasing.out.String())
	}
	p.nowhere("quorvexil", "zantrimule", "s-secret-1")
	p.run("events", "verify")
}

// TestErasureStopsACheckpoint erases what a checkpoint has read while it waits for
// the model: what the model then makes of it is refused, and its reply not kept.
func TestErasureStopsACheckpoint(t *testing.T) {
	s, _, env := withModel(t)
	p := newProcesses(t, env...)
	p.env = append(p.env, "OPENCLAWSSY_MODEL_PROVIDER=")
	p.run("ask", "--session", "s-secret-1", "My cellar is called quorvexil, and I like its zantrimule wine.")
	p.env = append(p.env, "OPENCLAWSSY_MODEL_PROVIDER=generic")
	distilling := p.start(nil, "memory", "checkpoint")
	<-s.came
	p.run("memory", "erase", "--session", "s-secret-1", "--yes")
	for range cap(s.pass) {
		s.pass <- struct{}{}
	}
	if err := <-distilling.done; err == nil {
		t.Errorf("the checkpoint went well:\n%s", distilling.out.String())
	}
	p.nowhere("quorvexil", "zantrimule", "s-secret-1")
	p.run("memory", "checkpoint")
	p.nowhere("quorvexil", "zantrimule")
}

// TestErasureWaitsForAnImport erases by text while an import that holds the text
// has not come to its end.
func TestErasureWaitsForAnImport(t *testing.T) {
	p := newProcesses(t)
	p.run("ask", "--session", "s1", "I like green tea.")
	in, out := io.Pipe()
	importing := p.start(in, "import", "chat", "-")
	if _, err := io.WriteString(out, `{"n":1,"role":"user","text":"The word is quorvexil, remember it.","time":"2026-05-08T10:00:00Z","session":"old-1"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	p.locked("erase-import.lock")
	erasing := p.start(nil, "memory", "erase", "--match", "quorvexil", "--yes")
	p.locked("erase-gate.lock")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-importing.done; err != nil {
		t.Fatalf("%v\n%s", err, importing.out.String())
	}
	if err := <-erasing.done; err != nil || !strings.Contains(erasing.out.String(), "1 events") {
		t.Fatalf("%v\n%s", err, erasing.out.String())
	}
	p.nowhere("quorvexil")
}

// TestErasureWaitsForADelivery erases a session while a message about it is on its
// way to a webhook.
func TestErasureWaitsForADelivery(t *testing.T) {
	hook := newSlow(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server := httptest.NewServer(hook)
	defer server.Close()
	p := newProcesses(t, "HOOK_SECRET=a-secret-of-some-length")
	set := []string{"--set", "proactive.webhook_url=" + server.URL + "/in", "--set", "proactive.webhook_secret=env:HOOK_SECRET", "--set", "proactive.quiet_hours="}
	p.run(append([]string{"ask", "--session", "s-secret-1", "--user", "mara", "Hello, I am here."}, set...)...)
	p.run(append([]string{"agent", "message", "send", "Think of quorvexil today.", "--channel", "cli", "--user-id", "mara", "--session-id", "s-secret-1"}, set...)...)
	delivering := p.start(nil, append([]string{"agent", "message", "deliver"}, set...)...)
	select {
	case <-hook.came:
	case err := <-delivering.done:
		t.Fatalf("nothing was delivered: %v\n%s", err, delivering.out.String())
	}
	erasing := p.start(nil, "memory", "erase", "--session", "s-secret-1", "--yes")
	p.locked("erase-gate.lock")
	hook.pass <- struct{}{}
	if err := <-delivering.done; err != nil {
		t.Fatalf("%v\n%s", err, delivering.out.String())
	}
	if err := <-erasing.done; err != nil {
		t.Fatalf("%v\n%s", err, erasing.out.String())
	}
	p.nowhere("quorvexil", "s-secret-1")
}

// TestErasureRefusesWhatTakesTooLong says what to wait for, and leaves everything
// as it was.
func TestErasureRefusesWhatTakesTooLong(t *testing.T) {
	s, _, env := withModel(t)
	p := newProcesses(t, env...)
	turn := p.start(nil, "ask", "--session", "s1", "The word is quorvexil.")
	<-s.came
	h := testHouse(t, p.home)
	h.erasure.Patience = time.Millisecond
	_, err := h.erasure.Erase(context.Background(), "default", care.EraseRequest{Session: "s1", Yes: true})
	if !errors.Is(err, memory.ErrConflict) || !strings.Contains(err.Error(), "a chat turn") || memory.HintOf(err) == "" {
		t.Errorf("beside a turn: %v", err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
	s.pass <- struct{}{}
	if err := <-turn.done; err != nil {
		t.Fatalf("%v\n%s", err, turn.out.String())
	}
	if out := p.run("memory", "search", "quorvexil", "--scope", "episodes"); !strings.Contains(out, "quorvexil") {
		t.Errorf("the turn is not there: %s", out)
	}
	p.run("memory", "erase", "--session", "s1", "--yes")
	p.nowhere("quorvexil")
}

// TestErasureInALongLivedProcess keeps a session in view in one process, with all
// that it has open, while another erases from it: the next prompt, recall, list and
// graph hold nothing of it any more.
func TestErasureInALongLivedProcess(t *testing.T) {
	s, model, env := withModel(t)
	for range cap(s.pass) {
		s.pass <- struct{}{}
	}
	p := newProcesses(t)
	vars := map[string]string{}
	for _, v := range append(env, "OPENCLAWSSY_RECALL_DEADLINE_MS=20000") {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	h := newHouse(time.Now, func(name string) string { return vars[name] }, append(env, "OPENCLAWSSY_RECALL_DEADLINE_MS=20000"))
	app := h.app()
	call := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if status := cli.Run(context.Background(), app, append(args, "--home", p.home), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, errs.String())
		}
		return out.String()
	}
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	model.Script(judge.Answer{Text: "Noted."}, judge.Answer{Text: "Aye, quorvexil it is."}, judge.Answer{Text: "Fine."})
	call("ask", "--session", "s-both", "I like green tea a lot.")
	call("ask", "--session", "s-both", "The word for the vault is quorvexil.")
	call("ask", "--session", "s-other", "I live in Lisbon.")
	call("memory", "checkpoint")
	if out := call("memory", "recall", "What is the word for the vault?"); !strings.Contains(out, "quorvexil") {
		t.Fatalf("recalled before: %s", out)
	}
	call("graph", "search", "quorvexil")
	p.run("memory", "erase", "--match", "quorvexil", "--yes")
	before := len(model.Calls())
	model.Script(judge.Answer{Text: "I do not know."})
	call("ask", "--session", "s-both", "What is the word for the vault?")
	asked := model.Calls()[before:]
	if len(asked) == 0 {
		t.Fatal("the model was not asked")
	}
	for _, c := range asked {
		raw, err := json.Marshal(c.Request)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, "quorvexil") {
			t.Errorf("the model was told %s", text)
		} else if !strings.Contains(text, "green tea") {
			t.Errorf("the rest of the session is gone: %s", text)
		}
	}
	for _, args := range [][]string{{"memory", "recall", "What is the word for the vault?", "--json"}, {"memory", "list", "--status", "all", "--json"},
		{"memory", "search", "quorvexil", "--scope", "all", "--json"}, {"graph", "search", "vault", "--json"}} {
		if out := call(args...); strings.Contains(out, "quorvexil") {
			t.Errorf("%v: %s", args, out)
		}
	}
	p.nowhere("quorvexil")
}
