package memory

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzAgentID: what is accepted is its own canonical form, and names one directory
// right below the one that it is joined to.
func FuzzAgentID(f *testing.F) {
	for _, seed := range []string{"default", "support-bot", "a_1", "", ".", "..", "../x", "a/b", `a\b`, "A", "Default", "con", "nul.txt", "a\x00", "a\n", "x?_pragma=synchronous(0)", "a#b", "a%2f..", "ｄ", "-rf", "_x",
		"a ", "a.", "é", "a\u200b", strings.Repeat("a", 63), strings.Repeat("a", 64), "file:x", "~root", "$HOME", "*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseAgentID(s)
		if err != nil {
			return
		}
		if string(id) != s || strings.ToLower(s) != s || len(s) > 63 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("%q is accepted as %q", s, id)
		}
		if path := filepath.Join("/root", s); filepath.Dir(path) != "/root" || filepath.Base(path) != s || !filepath.IsLocal(s) {
			t.Fatalf("%q leads to %s", s, path)
		}
	})
}
