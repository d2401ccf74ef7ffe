package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// TestBackupOfALiveAgentOverProcesses is BenchmarkBackupLive, shorter.
func TestBackupOfALiveAgentOverProcesses(t *testing.T) {
	l := newLive(t, "openclawssy")
	l.run(2, 40)
	l.check()
}

// BenchmarkBackupLive backs an agent up while a server takes events over HTTP from
// four clients, and other processes write memories, distil and maintain without
// pause. Each backup is restored: every database must be whole, and every event
// and memory that was acknowledged before the backup began be there.
func BenchmarkBackupLive(b *testing.B) {
	bin := program(b)
	for b.Loop() {
		l := newLive(b, bin)
		l.run(5, 400)
		l.check()
		b.ReportMetric(float64(len(l.acked)), "acknowledged")
		b.ReportMetric(0, "lost") // check fails where one is
		b.ReportMetric(l.longest.Seconds(), "s/backup")
		b.ReportMetric(float64(l.most)/(1<<20), "MiB/backup")
		b.ReportMetric(float64(l.distilled), "checkpoints")
		b.ReportMetric(float64(l.maintained), "maintenances")
	}
}

// live is a home with the agent "live", on which several processes work.
type live struct {
	testing.TB
	bin, home, dir string
	url, token     string
	server         *exec.Cmd
	ended          chan error // of the server

	mu                    sync.Mutex
	acked                 []string // what was acknowledged, in that order
	distilled, maintained int
	backups               []taken
	longest               time.Duration
	most                  int64 // bytes of the largest backup
}

// taken is a backup, and how much was acknowledged when it began.
type taken struct {
	file  string
	acked int
}

func newLive(tb testing.TB, bin string) *live {
	tb.Helper()
	l := &live{TB: tb, bin: bin, home: filepath.Join(tb.TempDir(), "home"), dir: tb.TempDir(), ended: make(chan error, 1)}
	l.server = l.command("serve", "--listen", "127.0.0.1:0")
	out, err := l.server.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	l.server.Stderr = l.server.Stdout
	if err := l.server.Start(); err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for l.url == "" && lines.Scan() {
		l.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	}
	go func() {
		_, copying := io.Copy(io.Discard, out)
		l.ended <- errors.Join(copying, l.server.Wait())
	}()
	token, err := os.ReadFile(filepath.Join(l.home, "first.token"))
	if err != nil || l.url == "" {
		tb.Fatalf("the server listens on %q: %v", l.url, err)
	}
	l.token = strings.TrimSpace(string(token))
	return l
}

func (l *live) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.bin, append(args, "--home", l.home)...)
	cmd.Env = append(os.Environ(), "HOME="+l.dir)
	return cmd
}

// call runs a command on the agent, and reports whether it did what it was to do:
// where another process does the same, it need not.
func (l *live) call(args ...string) bool {
	out, err := l.command(append(args, "--agent", "live", "--quiet")...).CombinedOutput()
	var status *exec.ExitError
	const conflict = 4
	if err != nil && !(errors.As(err, &status) && status.ExitCode() == conflict) {
		l.Errorf("%v: %v: %s", args, err, out)
	}
	return err == nil
}

func (l *live) acknowledged(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, name)
}

// tell sends an event and returns when it is acknowledged.
func (l *live) tell(client, n int) error {
	name := fmt.Sprintf("note%dx%d", client, n)
	body, err := json.Marshal(map[string]any{"session": map[string]string{"id": fmt.Sprint("s", client)},
		"events": []map[string]string{{"id": name, "type": "user_message", "text": "Remember that " + name + " is kept in cellar " + word(uint64(n)) + "."}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, l.url+"/v1/agents/live/events", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	if err == nil {
		l.acknowledged(name)
	}
	return err
}

// run takes some backups while everything else goes on; between two of them so much
// is acknowledged at least.
func (l *live) run(backups, between int) {
	l.Helper()
	stop := make(chan struct{})
	var work sync.WaitGroup
	again := func(do func(n int)) {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					do(n)
				}
			}
		})
	}
	for client := range 4 {
		again(func(n int) {
			if err := l.tell(client, n); err != nil {
				l.Error(err)
			}
		})
	}
	again(func(n int) {
		name := fmt.Sprintf("memo9x%d", n)
		if l.call("memory", "write", "--title", name, "--content", "The key of "+name+" hangs on hook "+word(uint64(n))+".") {
			l.acknowledged(name)
		}
	})
	again(func(int) {
		if l.call("memory", "checkpoint") {
			l.distilled++
		}
	})
	again(func(int) {
		if l.call("memory", "maintenance") {
			l.maintained++
		}
	})
	for n := range backups {
		for so := 0; so < (n+1)*between && !l.Failed(); time.Sleep(5 * time.Millisecond) {
			l.mu.Lock()
			so = len(l.acked)
			l.mu.Unlock()
		}
		l.backup(filepath.Join(l.dir, fmt.Sprintf("live-%d.tar.zst", n)))
	}
	close(stop)
	work.Wait()
	if err := l.server.Process.Signal(syscall.SIGTERM); err != nil {
		l.Fatal(err)
	}
	if err := <-l.ended; err != nil {
		l.Errorf("the server ended with %v", err)
	}
}

func (l *live) backup(file string) {
	l.mu.Lock()
	before := len(l.acked)
	l.mu.Unlock()
	start := time.Now()
	if !l.call("backup", file) {
		l.Errorf("backup of %s refused", file)
		return
	}
	l.longest = max(l.longest, time.Since(start))
	st, err := os.Stat(file)
	if err != nil {
		l.Fatal(err)
	}
	l.most = max(l.most, st.Size())
	l.backups = append(l.backups, taken{file, before})
}

// check restores every backup and looks for what was acknowledged before it began,
// and at last for all of it in the agent itself.
func (l *live) check() {
	l.Helper()
	for n, b := range l.backups {
		as := fmt.Sprint("restored-", n)
		for _, args := range [][]string{{"backup", "verify", b.file}, {"restore", b.file, "--as", as}, {"events", "verify", "--agent", as}} {
			if out, err := l.command(args...).CombinedOutput(); err != nil {
				l.Fatalf("%v: %v: %s", args, err, out)
			}
		}
		l.holds(as, l.acked[:b.acked])
	}
	l.holds("live", l.acked)
	l.Logf("%d acknowledged, %d backups, the longest took %v; %d checkpoints and %d maintenances meanwhile", len(l.acked), len(l.backups),
		l.longest.Round(time.Millisecond), l.distilled, l.maintained)
}

var nameOf = regexp.MustCompile(`(note|memo)[0-9]+x[0-9]+`)

// holds fails unless every database of an agent is whole, and all that was
// acknowledged is there: what was said in the log, what was written in the store.
func (l *live) holds(agent string, acked []string) {
	l.Helper()
	ctx := context.Background()
	dir := filepath.Join(l.home, "agents", agent, "memory")
	databases, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(databases) < 3 {
		l.Fatalf("%s has the databases %v, %v", agent, databases, err)
	}
	for _, path := range databases {
		db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true})
		if err != nil {
			l.Fatal(err)
		}
		if err := errors.Join(db.Check(ctx, true), db.Close()); err != nil {
			l.Error(err)
		}
	}
	there := map[string]bool{}
	log := events.OpenReader(filepath.Join(dir, "events"), zerolog.Nop())
	defer log.Close() //nolint:errcheck // only read
	err = log.Scan(ctx, func(e *events.Head) error {
		if !strings.HasPrefix(string(e.Type), "memory") {
			there[nameOf.FindString(string(e.Line))] = true
		}
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
	store, err := working.OpenReader(ctx, dir, memory.AgentID(agent), log)
	if err != nil {
		l.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // only read
	none := 0
	list, err := store.List(ctx, working.ListRequest{Status: "all", Limit: &none})
	if err != nil {
		l.Fatal(err)
	}
	for _, it := range list.Items {
		there[nameOf.FindString(it.Title)] = true
	}
	for _, name := range acked {
		if !there[name] {
			l.Errorf("%s: %s was acknowledged and is lost", agent, name)
		}
	}
}
