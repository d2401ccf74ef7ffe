package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stars hides one word, in strings and keys.
type stars struct{}

func (stars) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

func (r stars) Value(v any) any {
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.Value(v[i])
		}
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[r.Text(k)] = r.Value(e)
		}
		return out
	}
	return v
}

var start = time.Date(2026, 5, 8, 23, 59, 50, 0, time.UTC)

// open returns a store whose clock moves a second at each look, and whose ids
// count.
func open(dir string) *Store {
	at, n := start, 0
	return Open(dir, Options{Agent: "default", Redact: stars{},
		Now:   func() time.Time { at = at.Add(time.Second); return at },
		NewID: func() string { n++; return fmt.Sprintf("01J%023d", n) }})
}

// whole writes one run in which every text holds a secret.
func whole(t *testing.T, s *Store) string {
	t.Helper()
	r, err := s.Start(Input{Session: "s1", Channel: "cli", Text: "my password is hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	trace := map[string]any{"candidates": []any{map[string]any{"handle": "MEM-1", "score": .5, "text": "hunter2"}}}
	for _, err := range []error{
		r.Recall(Recall{Query: "password hunter2", Block: "--- RELEVANT MEMORY ---\n[MEM-1] hunter2\n", Trace: trace}),
		r.Prompt("# system\nhunter2\n"),
		r.Tool(ToolCall{At: start, Round: 1, ID: "c1", Tool: "memory.search", Input: json.RawMessage(`{"text":"hunter2","hunter2":1}`), Decision: Allow, Outcome: OK, Result: "hunter2"}),
		r.Tool(ToolCall{At: start, Round: 1, ID: "c2", Tool: "no hunter2", Input: json.RawMessage(`{hunter2`), Decision: Deny, Result: "x"}),
		r.Finish("it is hunter2", Meta{Status: Failed, Error: "hunter2 refused", Rounds: 1, Warnings: []string{"hunter2"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r.ID()
}

func TestBundleComesBack(t *testing.T) {
	dir := t.TempDir()
	run := whole(t, open(dir))
	got, err := open(dir).Get(run)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	want := Bundle{
		Input:  Input{Run: run, Agent: "default", Session: "s1", Channel: "cli", Text: "my password is ***", Started: at(1)},
		Prompt: "# system\n***\n",
		ToolCalls: []ToolCall{
			{At: start, Round: 1, ID: "c1", Tool: "memory.search", Input: json.RawMessage(`{"***":1,"text":"***"}`), Decision: Allow, Outcome: OK, Result: "***"},
			{At: start, Round: 1, ID: "c2", Tool: "no ***", Input: json.RawMessage(`"{***"`), Decision: Deny, Result: "x"},
		},
		Output: "it is ***",
		Recall: Recall{Query: "password ***", Block: "--- RELEVANT MEMORY ---\n[MEM-1] ***\n",
			Trace: map[string]any{"candidates": []any{map[string]any{"handle": "MEM-1", "score": .5, "text": "***"}}}},
		Meta: Meta{Run: run, Agent: "default", Session: "s1", Status: Failed, Error: "*** refused", Started: at(1), Ended: at(2), Rounds: 1,
			ToolCalls: 2, Warnings: []string{"***"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
}

func TestNothingSecretAndTightModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent")
	s := open(dir)
	whole(t, s)
	if err := s.Audit(Entry{Op: "hunter2", Effect: op.Write, Decision: Deny, Error: "hunter2"}); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			if st.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %o", path, st.Mode().Perm())
			}
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("hunter2")) || st.Mode().Perm() != 0o600 {
			t.Errorf("%s (mode %o) holds the secret or may be read by others:\n%s", path, st.Mode().Perm(), text)
		}
		return err
	})
	if err != nil || files != 7 {
		t.Errorf("%d files, %v, want the 6 of a bundle and an audit log", files, err)
	}
}

// TestUnfinishedRunIsVisible stops a run at each of its steps, as a crash would.
func TestUnfinishedRunIsVisible(t *testing.T) {
	dir := t.TempDir()
	s := open(dir)
	r, err := s.Start(Input{Session: "s1", Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Tool(ToolCall{Tool: "memory.get", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "runs", r.ID(), callsFile)
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) {
		if err := os.WriteFile(calls, append(bytes.Clone(text), text[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := s.Get(r.ID())
		if err != nil || b.Meta.Status != Unfinished || b.Input.Text != "hello" || len(b.ToolCalls) < 1 {
			t.Fatalf("with %d torn bytes Get = %+v, %v", cut, b, err)
		}
	}
	whole(t, s)
	list, err := s.List(0)
	if err != nil || len(list) != 2 || list[0].Status != Failed || list[1].Status != Unfinished || list[1].Session != "s1" {
		t.Errorf("List = %+v, %v", list, err)
	}
	if err := r.root.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGetRefuses(t *testing.T) {
	s := open(t.TempDir())
	run := whole(t, s)
	for id, kind := range map[string]memory.Kind{
		"../" + run:                         memory.ErrInvalid,
		"":                                  memory.ErrInvalid,
		strings.ToLower(run):                memory.ErrInvalid,
		"run_01J" + strings.Repeat("9", 23): memory.ErrNotFound,
	} {
		if _, err := s.Get(id); !errors.Is(err, kind) {
			t.Errorf("Get(%q) = %v, want %s", id, err, kind)
		}
	}
	dir := filepath.Join(s.dir, "runs", run)
	if err := os.WriteFile(filepath.Join(dir, metaFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(run); !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("Get of a damaged bundle = %v", err)
	}
	if list, err := s.List(0); !errors.Is(err, memory.ErrCorrupt) || len(list) != 0 {
		t.Errorf("List = %v, %v", list, err)
	}
	if err := os.Rename(dir, dir+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(run); err == nil {
		t.Error("Get followed a link out of the agent's directory")
	}
}

func TestReadsCreateNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent")
	s := open(dir)
	if _, err := s.Get("run_01J" + strings.Repeat("0", 23)); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get = %v", err)
	}
	if list, err := s.List(0); err != nil || list == nil || len(list) != 0 {
		t.Errorf("List = %#v, %v", list, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("reading created the directory")
	}
}

func TestAuditByDayAfterATornLine(t *testing.T) {
	dir := t.TempDir()
	s := open(dir) // the clock passes midnight at its tenth look
	first := filepath.Join(dir, "audit", "2026-05-08.jsonl")
	for i := range 12 {
		if i == 3 {
			f, err := os.OpenFile(first, os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"op":"torn`); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Audit(Entry{Op: "memory.search", Effect: op.Read, Caller: CallerModel, Decision: Allow, Outcome: OK}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"2026-05-08.jsonl": 9, "2026-05-09.jsonl": 3} {
		text, err := os.ReadFile(filepath.Join(dir, "audit", name))
		if err != nil {
			t.Fatal(err)
		}
		good := 0
		for line := range strings.Lines(string(text)) {
			var e Entry
			if json.Unmarshal([]byte(line), &e) == nil && e.Op == "memory.search" && e.Agent == "default" {
				good++
			}
		}
		if good != want {
			t.Errorf("%s has %d whole lines, want %d:\n%s", name, good, want, text)
		}
	}
}

func TestWhy(t *testing.T) {
	s := open(t.TempDir())
	service := NewService(func(context.Context, memory.AgentID) (*Store, func(), error) { return s, func() {}, nil },
		func(context.Context, memory.AgentID, Asked) ([]string, error) { return []string{"[MEM-2] new"}, nil })
	ctx := context.Background()
	if _, err := service.Why(ctx, "default", WhyQuery{}); !errors.Is(err, memory.ErrNotFound) || memory.HintOf(err) == "" {
		t.Errorf("Why without runs = %v", err)
	}
	run := whole(t, s)
	typed, err := s.Start(Input{Session: "s1", Text: "/tool memory.get {}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := typed.Finish("{}", Meta{Status: OK}); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{}`, `{"run":"` + run + `"}`} {
		out, err := service.Ops()[0].Call(ctx, "default", json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if w := out.(Why); w.Run != run || w.Block != "--- RELEVANT MEMORY ---\n[MEM-1] ***\n" || w.Trace == nil || w.Status != Failed {
			t.Errorf("Why(%s) = %+v", raw, w)
		}
	}
}

func TestDifference(t *testing.T) {
	block := "--- RELEVANT MEMORY ---\n(reference data)\n[MEM-1] a\n[MEM-2] b\n------------------------\n"
	for name, tc := range map[string]struct {
		block          string
		now            []string
		added, removed int
	}{
		"the same":    {block, []string{"[MEM-1] a", "[MEM-2] b"}, 0, 0},
		"one other":   {block, []string{"[MEM-1] a", "[MEM-2] c"}, 1, 1},
		"nothing now": {block, nil, 0, 2},
		"nothing was": {"", []string{"[MEM-1] a"}, 1, 0},
		"neither":     {"", nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := difference(tc.block, tc.now)
			if len(d.Added) != tc.added || len(d.Removed) != tc.removed || d.Same != (tc.added+tc.removed == 0) {
				t.Errorf("%+v", d)
			}
		})
	}
}
