package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// talker is a home with a model server, for commands of the real program.
type talker struct {
	t      *testing.T
	home   string
	server *judge.Server
}

func newTalker(t *testing.T) *talker {
	return &talker{t: t, home: filepath.Join(t.TempDir(), "home"), server: judge.NewServer(t)}
}

func (k *talker) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(k.t.Context(), "openclawssy", args...)
	c.Env = append(os.Environ(), "OPENCLAWSSY_HOME="+k.home, "HOME="+k.t.TempDir(), "OPENCLAWSSY_MODEL_PROVIDER=generic", "OPENCLAWSSY_MODEL_BASE_URL="+k.server.URL,
		"OPENCLAWSSY_MODEL_NAME=stub", "OPENCLAWSSY_MODEL_KEY=env:STUB_KEY", "STUB_KEY=sk-stub-0123456789", "OPENCLAWSSY_RECALL_DEADLINE_MS=20000",
		"OPENCLAWSSY_MEMORY_AUTO_CHECKPOINT=false") // so that only the queue asks for one
	return c
}

// run runs a command that must end well, and reads the document that it prints.
func (k *talker) run(into any, args ...string) {
	k.t.Helper()
	out, err := k.command(append(args, "--json")...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func (k *talker) flush() vitals.Flush {
	k.t.Helper()
	var s care.Statuses
	k.run(&s, "status")
	if len(s.Agents) != 1 || s.Agents[0].Flush == nil {
		return vitals.Flush{}
	}
	return *s.Agents[0].Flush
}

func (k *talker) checkpoints() []int {
	k.t.Helper()
	var list checkpoint.ListResult
	k.run(&list, "memory", "checkpoint", "list")
	var turns []int
	for _, c := range list.Checkpoints {
		turns = append(turns, c.Events)
	}
	return turns
}

// chat is a chat that runs.
type chat struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (k *talker) chat() *chat {
	k.t.Helper()
	c := &chat{Cmd: k.command("chat", "--session", "s1")}
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		k.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		k.t.Fatal(err)
	}
	return c
}

// say says a line and waits for the answer.
func (c *chat) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil || !c.out.Scan() {
		t.Fatalf("%q: %v, %v", line, err, c.out.Err())
	}
}

// distilling counts the requests to distil, which offer no tools; behaving is how
// they were answered.
func (k *talker) distilling(behaving string) int {
	n := 0
	for _, c := range k.server.Calls() {
		if len(c.Request.Tools) == 0 && len(c.Request.Messages) > 0 && c.Behaviour == behaving {
			n++
		}
	}
	return n
}

// TestFlushOutlivesItsProcess ends a session while the model hangs: the chat goes
// on meanwhile. Then the process is killed, or ends; what was queued is distilled
// later, once, however many processes look for it.
func TestFlushOutlivesItsProcess(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *chat){
		"killed": func(t *testing.T, c *chat) {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err == nil {
				t.Error("it was killed, and ended well")
			}
		},
		"ends": func(t *testing.T, c *chat) {
			if err := c.in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Errorf("the chat ended with %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalker(t)
			c := k.chat()
			c.say(t, "My sister Ana lives in Porto.")
			k.server.Next("hang")
			c.say(t, "/new")
			for deadline := time.Now().Add(time.Minute); k.distilling("hang") == 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("what /new has queued is not distilled")
				}
			}
			c.say(t, "Are you still there?")
			end(t, c)
			if f := k.flush(); f.State != vitals.FlushQueued || f.UpTo == 0 {
				t.Fatalf("after the process: %+v", f)
			}
			var drains sync.WaitGroup
			for range 3 {
				drains.Go(func() {
					if out, err := k.command("cron", "run", "--due").CombinedOutput(); err != nil {
						t.Errorf("cron run --due: %v\n%s", err, out)
					}
				})
			}
			drains.Wait()
			if f := k.flush(); f.State != vitals.FlushDone || f.Reason != "" {
				t.Errorf("after it was drained: %+v", f)
			}
			if turns := k.checkpoints(); len(turns) != 1 || turns[0] != 4 {
				t.Errorf("checkpoints of %v turns, want one of 4", turns)
			}
			if n := k.distilling(""); n != 1 {
				t.Errorf("the model was asked %d times to distil", n)
			}
		})
	}
}

// TestSkippedFlushIsShown lets a flush run into a used-up budget and a model that
// is away: status says since when, why, and what to do, until it is made good.
func TestSkippedFlushIsShown(t *testing.T) {
	for name, tc := range map[string]struct {
		set, behaviour, reason string
	}{
		"spend": {"spend.daily_calls=1", "", vitals.ForSpend},
		"model": {"model.max_retries=0", "404", vitals.ForModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalker(t)
			chat := k.command("chat", "--session", "s1")
			chat.Stdin = strings.NewReader("My sister Ana lives in Porto.\n")
			if out, err := chat.CombinedOutput(); err != nil {
				t.Fatalf("chat: %v\n%s", err, out)
			}
			if tc.behaviour != "" {
				k.server.Always(tc.behaviour)
			}
			for range 2 { // the second finds nothing to do: it is not tried again at once
				if out, err := k.command("cron", "run", "--due", "--set", tc.set).CombinedOutput(); err != nil {
					t.Fatalf("cron run --due: %v\n%s", err, out)
				}
			}
			status := k.command("status", "--json")
			raw, err := status.Output()
			if err == nil {
				t.Errorf("status says that all is well: %s", raw)
			}
			var all care.Statuses
			if err := json.Unmarshal(raw, &all); err != nil {
				t.Fatalf("%v: %s", err, raw)
			}
			st := all.Agents[0]
			if st.Flush == nil || st.Flush.State != vitals.FlushSkipped || st.Flush.Reason != tc.reason || st.DegradedSince == nil {
				t.Fatalf("status: %s", raw)
			}
			if text := fmt.Sprint(st.Degraded); !strings.Contains(text, "for "+tc.reason) || !strings.Contains(text, "memory checkpoint --agent default") {
				t.Errorf("degraded: %v", text)
			}
			k.server.Always("")
			var res checkpoint.Result
			k.run(&res, "memory", "checkpoint")
			if f := k.flush(); f.State != vitals.FlushDone {
				t.Errorf("after it was made good: %+v", f)
			}
		})
	}
}
