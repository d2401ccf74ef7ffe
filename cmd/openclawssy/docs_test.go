package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
)

// TestReferencePages holds docs/ against the code; make docs writes them anew.
func TestReferencePages(t *testing.T) {
	for _, page := range []string{"operations", "config"} {
		h := newHouse(time.Now, func(string) string { return "" }, nil)
		var out bytes.Buffer
		if status := cli.Run(t.Context(), h.app(), []string{"docs", page, "--home", t.TempDir()}, cli.Streams{Out: &out, Err: os.Stderr}); status != 0 {
			t.Fatalf("docs %s ended with status %d", page, status)
		}
		if err := h.close(); err != nil {
			t.Error(err)
		}
		want, err := os.ReadFile("../../docs/" + strings.ToUpper(page) + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("docs/%s.md is not what the code says: run make docs", strings.ToUpper(page))
		}
	}
}
