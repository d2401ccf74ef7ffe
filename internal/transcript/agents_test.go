package transcript

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/session"
)

// histories are the fixtures, and what they are.
var histories = map[string]Format{
	"claude-code.jsonl": ClaudeCode, "codex.jsonl": Codex, "codex-old.jsonl": Codex, "codex-subagent.jsonl": Codex,
	"openclaw.jsonl": OpenClaw, "chatgpt.json": ChatGPT, "claude.json": Claude,
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Each fixture is known by its content, and gives the turns of its .want file,
// which was checked by hand.
func TestReadAgents(t *testing.T) {
	for name, format := range histories {
		t.Run(name, func(t *testing.T) {
			text := fixture(t, name)
			if found, err := detect([]byte(text)); found != format || err != nil {
				t.Errorf("detected %q, %v", found, err)
			}
			got, err := read(t, text, "")
			if err != nil {
				t.Fatal(err)
			}
			whole := strings.Join(got, "\n") + "\n"
			if want := fixture(t, name+".want"); whole != want {
				t.Errorf("got\n%s\nwant\n%s", whole, want)
			}
		})
	}
}

// What a program puts into the user's turn never passes for the user's word.
func TestTyped(t *testing.T) {
	for text, want := range map[string]string{
		"hello": "hello",
		"a\n<system-reminder>\nx\n</system-reminder>\nb":                                "a\n\nb",
		"<system-reminder>x</system-reminder>":                                          "",
		"<system-reminder>x <system-reminder>y</system-reminder> z</system-reminder> a": "a",
		"<system-reminder>x</system-reminder> evil</system-reminder> a":                 "a",
		"a\n<system-reminder>\ncut off":                                                 "a",
		"What does <system-reminder> mean?":                                             "What does <system-reminder> mean?",
		"<SYSTEM-REMINDER>x</System-Reminder>a":                                         "a",
		"evil</system-reminder> a":                                                      "a",
		"<new_kind_of_context>x</new_kind_of_context>":                                  "",
		"<div>x</div>":                                            "<div>x</div>",
		"<command-name>/clear</command-name>":                     "/clear",
		"<bash-input>ls</bash-input>":                             "! ls",
		"<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>": "",
		"[Request interrupted by user for tool use]":              "",
		"a\n--- RELEVANT MEMORY ---\n[MEM-1] x":                   "a",
	} {
		if got := typed(text); got != want {
			t.Errorf("typed(%q) = %q, want %q", text, got, want)
		}
	}
}

// A tool's long answer is cut, and says by how much.
func TestToolTextIsCut(t *testing.T) {
	line := `{"type":"message","id":"1","message":{"role":"toolResult","toolName":"read","content":"` + strings.Repeat("é", maxToolText) + `"}}`
	n := 0
	err := Source{Format: OpenClaw, Session: "s"}.Read(strings.NewReader(line), func(turn Turn) error {
		n++
		if e := turn.Event; len(e.Text) > maxToolText || e.Metadata[MetaCut] != 2*maxToolText-len(e.Text) || e.Origin != memory.OriginTool || e.SessionID != "s" {
			t.Errorf("%d bytes, %v", len(e.Text), e.Metadata)
		}
		return nil
	}, func(b Bad) { t.Error(b) })
	if n != 1 || err != nil {
		t.Errorf("%d turns, %v", n, err)
	}
}

func fuzzFormat(f *testing.F, format Format) {
	for name, of := range histories {
		if of == format {
			f.Add(fixture(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 32<<10 {
			return
		}
		turns := 0
		err := Source{Format: format}.Read(strings.NewReader(text), func(turn Turn) error {
			turns++
			e := turn.Event
			if err := e.Validate(); err != nil && len(e.Text) <= memory.MaxEventText {
				t.Fatal(err)
			}
			if e.SessionID == "" || len(e.SessionID) > maxSessionID || strings.TrimSpace(e.Text) == "" || turn.Line < 1 || e.Meta(memory.MetaSourceID) == "" {
				t.Fatalf("turn %+v", turn)
			}
			if e.Type == memory.ToolResult && e.Origin != memory.OriginTool && e.Origin != memory.OriginWeb {
				t.Fatalf("a tool's result is of origin %s", e.Origin)
			}
			return nil
		}, func(b Bad) {
			if b.Line < 1 || b.Reason == "" {
				t.Fatalf("bad %+v", b)
			}
		})
		if err != nil && memory.KindOf(err) != memory.ErrInvalid {
			t.Fatal(err)
		}
		if turns > len(text)+1 {
			t.Fatalf("%d turns of %d bytes", turns, len(text))
		}
	})
}

func FuzzClaudeCode(f *testing.F) { fuzzFormat(f, ClaudeCode) }
func FuzzCodex(f *testing.F)      { fuzzFormat(f, Codex) }
func FuzzOpenClaw(f *testing.F)   { fuzzFormat(f, OpenClaw) }
func FuzzChatGPT(f *testing.F)    { fuzzFormat(f, ChatGPT) }
func FuzzClaude(f *testing.F)     { fuzzFormat(f, Claude) }

// A directory's histories come in whole, a second time nothing does, and a file
// that is broken keeps none of the others out.
func TestImportDirectory(t *testing.T) {
	a := newAgent(t, t.TempDir())
	dir := t.TempDir()
	for name := range histories {
		if err := os.WriteFile(filepath.Join(dir, strings.Replace(name, ".json", "-", 1)+".jsonl"), []byte(fixture(t, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"x/conversations-000.json": fixture(t, "chatgpt.json"), "conversations-001.json": "[{", "chat.html": "<html>"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"export.zip": archive.String(), "other.zip": "PK\x03\x04", "settings.jsonl": `{"a":1}`, "readme.md": "# x", "conversations.json": fixture(t, "claude.json")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "endless.jsonl")); err != nil {
		t.Fatal(err)
	}
	inputs, err := Inputs(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.importer.ImportAll(context.Background(), inputs)
	if err != nil || first.Imported == 0 || first.Files != 10 {
		t.Fatalf("first = %+v, %v", first, err)
	}
	broken := slices.ContainsFunc(first.Bad, func(b Bad) bool { return strings.HasSuffix(b.File, "export.zip:conversations-001.json") && b.Line == 0 })
	if !broken {
		t.Errorf("the broken export is not named: %+v", first.Bad)
	}
	again, err := a.importer.ImportAll(context.Background(), inputs)
	if err != nil || again.Imported != 0 || again.Skipped != first.Imported+first.Skipped {
		t.Errorf("again = %+v, %v", again, err)
	}
	all := strings.Join(a.texts(t), "\n")
	for _, never := range []string{"tracking pixels", "Mallory", "sailor", "abandoned", "asked for again", "hates boats", "HEARTBEAT", "file deleted"} {
		if strings.Contains(all, never) {
			t.Errorf("the log holds %q", never)
		}
	}
	a.importer.Since = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if late, err := a.importer.ImportAll(context.Background(), inputs); err != nil || late.Imported != 0 || late.Older == 0 {
		t.Errorf("late = %+v, %v", late, err)
	}
	sess, err := a.importer.Sessions.(*session.Store).Get(context.Background(), "b2c00000-0000-4000-8000-000000000005")
	if err != nil || sess.UserID != "4711" || sess.Channel != "openclaw" {
		t.Errorf("session %+v, %v", sess, err)
	}
	if _, err := Inputs(t.TempDir(), ""); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Inputs(filepath.Join(dir, "none"), ""); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("no file: %v", err)
	}
}

// OpenClaw's index tells where a session was held, and that a schedule spoke.
func TestBesides(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	index := `{"agent:main:discord:channel:7":{"sessionId":"a","lastChannel":"discord"},"agent:main:subagent:x":{"sessionId":"b"},"broken":5}`
	if err := os.WriteFile(filepath.Join(dir, "sessions.json"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Source{
		"a.jsonl": {Channel: "discord", Group: true}, "a-topic-9.jsonl": {Channel: "discord", Group: true},
		"a.jsonl.reset.2026": {Channel: "discord", Group: true}, "b.jsonl": {ByAgent: true}, "c.jsonl": {},
	} {
		if got := besides(filepath.Join(dir, name), Source{}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
