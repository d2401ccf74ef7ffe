package transcript

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/session"
)

// agent is an agent's log and sessions in a directory.
type agent struct {
	log      *events.Log
	importer *Importer
	dir      string
}

func openAgent(dir string) (*agent, error) {
	r, err := redact.New([]byte("a key of the tests, 32 bytes long"))
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }
	l, err := events.Open(context.Background(), filepath.Join(dir, "events"), events.Options{Now: now, Redact: r, NewID: func() string { return ulid.Make().String() }})
	if err != nil {
		return nil, err
	}
	return &agent{log: l, dir: dir, importer: &Importer{Agent: "default", Log: l, Redact: r, Lock: filepath.Join(dir, "import.lock"),
		Sessions: session.Open(filepath.Join(dir, "sessions"), session.Options{Agent: "default", Now: now, Redact: r})}}, nil
}

func newAgent(t *testing.T, dir string) *agent {
	t.Helper()
	a, err := openAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.log.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *agent) texts(t *testing.T) (texts []string) {
	t.Helper()
	for at := (memory.Cursor{}); ; {
		list, next, err := a.log.Read(context.Background(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return texts
		}
		for _, e := range list {
			texts = append(texts, e.Text)
		}
		at = next
	}
}

func TestImportIsIdempotent(t *testing.T) {
	for name, text := range map[string]string{"locomo": aLoCoMo, "longmemeval": aLongMemEval, "jsonl": aJSONL} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, t.TempDir())
			first, err := a.importer.Import(context.Background(), strings.NewReader(text), "")
			if err != nil {
				t.Fatal(err)
			}
			again, err := a.importer.Import(context.Background(), strings.NewReader(text), Format(name))
			if err != nil {
				t.Fatal(err)
			}
			if first.Imported == 0 || first.Skipped != 0 || first.BadCount == 0 || len(first.Bad) != first.BadCount || first.Sessions == 0 {
				t.Errorf("first = %+v", first)
			}
			if again.Imported != 0 || again.Skipped != first.Imported || again.BadCount != first.BadCount {
				t.Errorf("again = %+v", again)
			}
			if texts := a.texts(t); len(texts) != first.Imported {
				t.Errorf("the log holds %q", texts)
			}
		})
	}
}

// More turns at the end of a file are the only ones that are new, and the
// sessions know where the turns came from.
func TestImportOfAFileThatHasGrown(t *testing.T) {
	a := newAgent(t, t.TempDir())
	ctx := context.Background()
	text := aJSONL
	if _, err := a.importer.Import(ctx, strings.NewReader(text), ""); err != nil {
		t.Fatal(err)
	}
	report, err := a.importer.Import(ctx, strings.NewReader(text+"\n"+`{"role":"user","text":"one more","session":"s1","channel":"cli"}`), "")
	if err != nil || report.Imported != 1 {
		t.Errorf("report = %+v, %v", report, err)
	}
	sess, err := a.importer.Sessions.(*session.Store).Get(ctx, "s1")
	if err != nil || sess.Channel != "cli" || sess.UserID != "u1" || sess.Kind != memory.SessionMain {
		t.Errorf("session = %+v, %v", sess, err)
	}
	sess, err = a.importer.Sessions.(*session.Store).Get(ctx, "imported")
	if err != nil || sess.Channel != "import" {
		t.Errorf("session = %+v, %v", sess, err)
	}
}

func TestImportRefuses(t *testing.T) {
	a := newAgent(t, t.TempDir())
	for name, text := range map[string]string{"empty": "", "prose": "Dear diary", "all bad": `{"role":"user","text":"x","time":"noon"}`, "no turns": `[{"conversation":{}}]`} {
		t.Run(name, func(t *testing.T) {
			_, err := a.importer.Import(context.Background(), strings.NewReader(text), "")
			if !errors.Is(err, memory.ErrInvalid) || memory.HintOf(err) == "" {
				t.Errorf("Import = %v, hint %q", err, memory.HintOf(err))
			}
		})
	}
	if n := len(a.texts(t)); n != 0 {
		t.Errorf("%d events", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.importer.Import(ctx, strings.NewReader(aJSONL), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Import, cancelled = %v", err)
	}
}

// A secret in the history is in no file, and not in the hash of an event's id.
func TestImportRedacts(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE6gH9j", 4)[:36]
	a := newAgent(t, t.TempDir())
	line := `{"role":"user","text":"token ` + secret + ` there"}`
	if _, err := a.importer.Import(context.Background(), strings.NewReader(line), ""); err != nil {
		t.Fatal(err)
	}
	if texts := a.texts(t); strings.Contains(fmt.Sprint(texts), secret) || !strings.Contains(fmt.Sprint(texts), "[REDACTED:") {
		t.Errorf("the log holds %q", texts)
	}
}

// history is a file of n turns, some longer than one event.
func longHistory(n int) string {
	var sb strings.Builder
	for i := range n {
		text := fmt.Sprintf("turn %d", i)
		if i%97 == 0 {
			text += strings.Repeat(" and a long one", 9000)
		}
		fmt.Fprintf(&sb, `{"n":%d,"role":"user","text":"%s","session":"s%d"}`+"\n", i, text, i/1000)
	}
	return sb.String()
}

// Two imports of one file at once do its turns once.
func TestImportsAtOnce(t *testing.T) {
	dir := t.TempDir()
	text := longHistory(300)
	var all sync.WaitGroup
	reports := make([]Report, 3)
	for i := range reports {
		a := newAgent(t, dir)
		all.Add(1)
		go func() {
			defer all.Done()
			var err error
			if reports[i], err = a.importer.Import(context.Background(), strings.NewReader(text), ""); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if n := reports[0].Imported + reports[1].Imported + reports[2].Imported; n != 300 {
		t.Errorf("%d turns imported, want 300: %+v", n, reports)
	}
}

const (
	childVariable = "TRANSCRIPT_TEST_CHILD"
	historyTurns  = 1500
)

// runChild imports the long history into the agent in dir.
func runChild(dir string) int {
	a, err := openAgent(dir)
	if err == nil {
		fmt.Println("importing")
		_, err = a.importer.Import(context.Background(), slow{strings.NewReader(longHistory(historyTurns))}, "")
		err = errors.Join(err, a.log.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// slow reads a little at a time, so that there is time for a kill.
type slow struct{ r *strings.Reader }

func (s slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 4096)]) }

// An import that is killed and started again, as often as it takes, leaves what
// one that was never killed leaves: every turn once, in order.
func TestKillDuringImport(t *testing.T) {
	dir := t.TempDir()
	kills := 0
	for patience := 5 * time.Millisecond; ; patience += 30 * time.Millisecond {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(rand.N(patience), func() {
			if err := child.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		})
		err = child.Wait()
		kill.Stop()
		if err == nil {
			break
		}
		if child.ProcessState.Exited() {
			t.Fatalf("the import failed: %v", err)
		}
		kills++
	}
	whole := newAgent(t, t.TempDir())
	if _, err := whole.importer.Import(context.Background(), strings.NewReader(longHistory(historyTurns)), ""); err != nil {
		t.Fatal(err)
	}
	killed, want := newAgent(t, dir).texts(t), whole.texts(t)
	if strings.Join(killed, "\n") != strings.Join(want, "\n") {
		t.Errorf("after %d kills the log has %d events, want the %d of an import in one go", kills, len(killed), len(want))
	}
	t.Logf("%d kills, %d events", kills, len(want))
}
