package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWake(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"SOUL.md": "\ufeff# Marlow\n", "USER.md": "Ines\n", "AGENTS.md": " \n", "IDENTITY.md": "\xff", "TOOLS.md": "no", "MEMORY.md": "private",
		"memory/active-context.md": "half way\n<!-- openclawssy:begin -->\nMara said\n<!-- openclawssy:end -->\n",
		"memory/2026-05-08.md":     "today " + strings.Repeat("日", 100) + " late", "memory/2026-05-07.md": "yesterday", "memory/2026-05-06.md": "before",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	wake := func(o Waking) string {
		t.Helper()
		o.Now = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
		var left []string
		text, err := w.Wake(context.Background(), o, func(n Notice) { left = append(left, n.File) })
		if err != nil || len(left) != 1 || left[0] != "IDENTITY.md" || !utf8.ValidString(text) {
			t.Errorf("%v, left out: %v, %q", err, left, text)
		}
		return text
	}
	got := wake(Waking{Private: true, File: 60, Total: 10000})
	want := "--- SOUL.md ---\n# Marlow\n--- USER.md ---\nInes\n--- memory/active-context.md ---\nhalf way\n<!-- openclawssy:begin -->\nMara\n[… cut here …]\n" +
		"--- memory/2026-05-07.md ---\nyesterday\n--- memory/2026-05-08.md ---\n[… cut here …]\n日日日日日日日日日日日日 late\n--- MEMORY.md ---\nprivate\n"
	if got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got = wake(Waking{File: 1000, Total: 10000}); strings.Contains(got, "private") || strings.Contains(got, "Mara") || !strings.Contains(got, "half way") {
		t.Errorf("in a group: %q", got)
	}
	if got = wake(Waking{Private: true, File: 1000, Total: 40}); got != "--- SOUL.md ---\n# Marlow\n--- USER.md ---\nInes\n" {
		t.Errorf("little room: %q", got)
	}
}
