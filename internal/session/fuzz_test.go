package session

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSessionID: an id that is accepted names one file in the directory of sessions.
func FuzzSessionID(f *testing.F) {
	for _, seed := range []string{"s1", "a:b", "a..b", "..", ".x", "a/b", `a\..\b`, "s\x00", "s\n", "s?x=1", strings.Repeat("s", 129), "Ｓ", "s\u202e", "-s", "s%2fx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if CheckID(id) != nil {
			return
		}
		name := id + ".json"
		if path := filepath.Join("/sessions", name); filepath.Dir(path) != "/sessions" || filepath.Base(path) != name || strings.HasPrefix(name, ".") || len(name) > 255 {
			t.Fatalf("%q leads to %s", id, path)
		}
	})
}
