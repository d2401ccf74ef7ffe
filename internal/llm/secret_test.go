package llm_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestSecret(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "key"), "  sk-file\n")
	write(filepath.Join(root, "empty"), "\n")
	write(filepath.Join(root, "two-lines"), "sk-one\nsk-two\n")
	write(filepath.Join(root, "long"), strings.Repeat("x", 20<<10))
	write(filepath.Join(outside, "key"), "sk-outside")
	if err := os.Symlink(filepath.Join(outside, "key"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KEY": "sk-env", "BLANK": " ", "CONTROL": "sk-a\r\nX: y"}
	for ref, want := range map[string]struct {
		secret string
		kind   memory.Kind
	}{
		"":                                    {"", ""},
		"env:KEY":                             {"sk-env", ""},
		"env:BLANK":                           {"", memory.ErrInvalid},
		"env:MISSING":                         {"", memory.ErrInvalid},
		"env:CONTROL":                         {"", memory.ErrInvalid},
		"env:":                                {"", memory.ErrInvalid},
		"file:key":                            {"sk-file", ""},
		"file:" + filepath.Join(root, "key"):  {"sk-file", ""},
		"file:" + filepath.Join(root, "link"): {"sk-outside", ""}, // an absolute path is the operator's own word
		"file:empty":                          {"", memory.ErrInvalid},
		"file:two-lines":                      {"", memory.ErrInvalid},
		"file:long":                           {"", memory.ErrInvalid},
		"file:missing":                        {"", memory.ErrInvalid},
		"file:pipe":                           {"", memory.ErrInvalid},
		"file:" + filepath.Join(root, "pipe"): {"", memory.ErrInvalid},
		"file:" + root:                        {"", memory.ErrInvalid},
		"file:../key":                         {"", memory.ErrUnavailable},
		"file:link":                           {"", memory.ErrUnavailable},
		"sk-inline":                           {"", memory.ErrInvalid},
		"vault:x":                             {"", memory.ErrInvalid},
	} {
		got, err := llm.Secret(ref, func(name string) string { return env[name] }, root)
		if got != want.secret || memory.KindOf(err) != want.kind {
			t.Errorf("Secret(%q) = %q, %v, want %q, kind %q", ref, got, err, want.secret, want.kind)
		}
		if err != nil && strings.Contains(err.Error()+memory.HintOf(err), "sk-") {
			t.Errorf("Secret(%q): the error holds it: %v", ref, err)
		}
	}
}
