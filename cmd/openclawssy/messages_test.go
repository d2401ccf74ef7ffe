package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/message"
)

// posts is a webhook that keeps what it was sent.
type posts struct {
	mu     sync.Mutex
	ids    []string
	bodies []string
	valid  int
}

func (p *posts) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	want, err := message.Sign("a-secret-of-some-length", req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp"), body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids, p.bodies = append(p.ids, req.Header.Get("webhook-id")), append(p.bodies, string(body))
	if err == nil && want == req.Header.Get("webhook-signature") {
		p.valid++
	}
}

// TestReminderReachesTheWebhook says something on a Tuesday, lets the schedule run
// on the Friday after, and looks at what was posted.
func TestReminderReachesTheWebhook(t *testing.T) {
	hook := &posts{}
	server := httptest.NewServer(hook)
	defer server.Close()
	home := t.TempDir()
	at := time.Date(2026, 5, 12, 11, 0, 0, 0, time.UTC)
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		getenv := func(name string) string { return map[string]string{"HOOK_SECRET": "a-secret-of-some-length"}[name] }
		h := newHouse(func() time.Time { return at }, getenv, nil)
		args = append(args, "--home", home, "--set", "proactive.webhook_url="+server.URL+"/in", "--set", "proactive.webhook_secret=env:HOOK_SECRET", "--set", "recall.deadline_ms=20000")
		status := cli.Run(context.Background(), h.app(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if err := h.close(); err != nil {
			t.Error(err)
		}
		if status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, errs.String())
		}
		return out.String()
	}
	run("ask", "--session", "s1", "--user", "mara", "--zone", "Europe/Lisbon", "Remind me every Friday at 6:30 am to run.")
	run("memory", "checkpoint")
	run("agent", "message", "deliver") // that it will be remembered
	run("agent", "message", "deliver")
	at = time.Date(2026, 5, 15, 5, 29, 0, 0, time.UTC)
	if out := run("cron", "list"); strings.Contains(out, "agent.message.deliver") {
		t.Errorf("there is a job while nothing is due:\n%s", out)
	}
	at = at.Add(time.Minute + 20*time.Second)
	if out := run("cron", "list"); !strings.Contains(out, "agent.message.deliver") {
		t.Errorf("there is no job though something is due:\n%s", out)
	}
	run("cron", "run", "--due")
	run("cron", "run", "--due")
	if hook.valid != 2 || len(hook.bodies) != 2 || hook.ids[0] == hook.ids[1] {
		t.Fatalf("%d of %d posts are signed: %q", hook.valid, len(hook.bodies), hook.bodies)
	}
	var got struct {
		Data struct {
			Text                    string
			Trigger, Channel, Agent string
			UserID                  string `json:"user_id"`
			SessionID               string `json:"session_id"`
			Memories                []message.Ref
		}
	}
	if err := json.Unmarshal([]byte(hook.bodies[1]), &got); err != nil {
		t.Fatal(err)
	}
	d := got.Data
	if d.Trigger != "reminder" || d.UserID != "mara" || d.SessionID != "s1" || d.Channel != "cli" || d.Agent != "default" || len(d.Memories) != 1 || !strings.Contains(d.Text, "to run. [MEM-1]") {
		t.Errorf("posted %+v", d)
	}
	if found, err := filepath.Glob(filepath.Join(home, "agents", "*", "memory", "messages.db")); err != nil || len(found) != 1 {
		t.Errorf("ledgers %v, %v", found, err)
	}
}

// TestProcessesDeliverOnce has several processes come upon the same memories at
// once: two that deliver and two chats with the same person. Each message is posted
// once, and shown by one of the chats.
func TestProcessesDeliverOnce(t *testing.T) {
	hook := &posts{}
	server := httptest.NewServer(hook)
	defer server.Close()
	dir := t.TempDir()
	program := func(stdin string, args ...string) *exec.Cmd {
		cmd := exec.Command("openclawssy", append(args, "--set", "proactive.webhook_url="+server.URL+"/in", "--set", "proactive.webhook_secret=env:HOOK_SECRET",
			"--set", "proactive.quiet_hours=0-0", "--set", "proactive.cooldown=0s", "--set", "recall.deadline_ms=20000")...)
		cmd.Env = append(os.Environ(), "OPENCLAWSSY_HOME="+filepath.Join(dir, "home"), "HOME="+dir, "HOOK_SECRET=a-secret-of-some-length")
		cmd.Stdin = strings.NewReader(stdin)
		return cmd
	}
	for n, said := range []string{"I am severely allergic to peanuts.", "I am severely allergic to bees.", "I am severely allergic to latex."} {
		for _, args := range [][]string{{"ask", "--session", fmt.Sprint("s", n), "--user", "mara", said}, {"memory", "checkpoint"}} {
			// Nobody follows yet, so that all begin with the same.
			if out, err := program("", append(args, "--set", "proactive.enabled=false")...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
	}
	var wg sync.WaitGroup
	outs := make([]bytes.Buffer, 4)
	for i := range outs {
		cmd := program("", "agent", "message", "deliver")
		if i%2 == 1 {
			cmd = program("hello\n", "chat", "--user", "mara")
		}
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args, err, outs[i].String())
			}
		})
	}
	wg.Wait()
	// Whoever came first may have taken what the others were about to: the rest
	// comes with one more of each.
	last, err := program("hello\n", "chat", "--user", "mara").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, last)
	}
	if out, err := program("", "agent", "message", "deliver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown := string(last) + outs[1].String() + outs[3].String()
	for _, handle := range []string{"MSG-1 ", "MSG-2 ", "MSG-3 "} {
		if n := strings.Count(shown, "[message] "+handle); n != 1 {
			t.Errorf("%s was shown %d times:\n%s", handle, n, shown)
		}
	}
	slices.Sort(hook.ids)
	if len(hook.ids) != 3 || len(slices.Compact(slices.Clone(hook.ids))) != 3 || hook.valid != 3 {
		t.Errorf("posted %q, %d signed", hook.ids, hook.valid)
	}
}

// TestMaintenanceAsksOnce lets maintenance run two weeks apart over a memory that
// has grown old: it is asked about once.
func TestMaintenanceAsksOnce(t *testing.T) {
	home := t.TempDir()
	at := time.Date(2026, 5, 12, 11, 0, 0, 0, time.UTC)
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		h := newHouse(func() time.Time { return at }, func(string) string { return "" }, nil)
		status := cli.Run(context.Background(), h.app(), append(args, "--home", home, "--set", "recall.deadline_ms=20000"), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if err := h.close(); err != nil {
			t.Error(err)
		}
		if status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, errs.String())
		}
		return out.String()
	}
	run("ask", "--session", "s1", "--user", "mara", "My sister Ana lives in Porto.")
	run("memory", "checkpoint")
	asked := 0
	for range 3 {
		at = at.AddDate(0, 0, 14)
		run("memory", "maintenance")
		at = at.AddDate(0, 0, 14)
		if out := run("memory", "maintenance"); strings.Contains(out, "MEM-1") {
			t.Errorf("marked again:\n%s", out)
		}
		asked = strings.Count(run("agent", "message", "inbox", "--all"), "not confirmed for a long time")
	}
	if asked != 1 {
		t.Errorf("asked %d times:\n%s", asked, run("agent", "message", "inbox", "--all"))
	}
}
