package care

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHalfWrittenNotesGo leaves what a writer that is killed leaves.
func TestHalfWrittenNotesGo(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "memory")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := begin(dir, begun{}); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(folder, ".erase.pending123456789")
	other := filepath.Join(folder, "memory.db")
	for _, path := range []string{half, other} {
		if err := os.WriteFile(path, []byte("Albatross"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropHalfNotes(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the half-written note is still there: %v", err)
	}
	for _, path := range []string{other, pendingPath(dir)} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
