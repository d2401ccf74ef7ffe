package backup

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPath: a path of an archive that may be written stays below the directory.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"memory/memory.db", "../x", "/etc/passwd", "a/../../b", "a//b", "./a", "a/.", "", ".", "a\x00b", `..\x`, "memory/.hidden", "sessions/s.json", "a/b/../c", "~/x", "C:/x", "memory/memory.db-wal"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) != nil {
			return
		}
		joined := filepath.Join("/agent", filepath.FromSlash(path))
		if !strings.HasPrefix(joined, "/agent/") || !filepath.IsLocal(path) || strings.ContainsRune(joined, 0) || filepath.ToSlash(joined) != "/agent/"+path {
			t.Fatalf("%q leads to %s", path, joined)
		}
	})
}
