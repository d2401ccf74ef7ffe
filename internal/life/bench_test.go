package life

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// benchRecords is a workspace of many years.
const benchRecords = 50_000

func benchWorkspace(b *testing.B) string {
	var sb strings.Builder
	for i := range benchRecords {
		fmt.Fprintf(&sb, "## Section %d\n\n- [decision|i=0.%d] The crane contract %d was renewed for one year #port%d\n- the fog horn of pier %d sounds every %d seconds; keep it so until further notice\n- more words on the %dth matter, so that the section has a usual size\n\n", i, i%10, i, i%50, i%9, i%60, i)
	}
	return tree(b, map[string]string{"SOUL.md": "# Ada", "MEMORY.md": sb.String()})
}

func BenchmarkExport(b *testing.B) {
	dir, keep, out := benchWorkspace(b), Keep{b.TempDir()}, filepath.Join(b.TempDir(), "b.alf")
	for b.Loop() {
		w, err := workspace.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ExportWorkspace(context.Background(), w, ExportOptions{Output: out, Keep: keep, Now: now}); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImport(b *testing.B) {
	archive, _ := export(b, benchWorkspace(b), Keep{})
	for b.Loop() {
		bringIn(b, archive, filepath.Join(b.TempDir(), "workspace"), Keep{}, Merge)
	}
}

func BenchmarkDelta(b *testing.B) {
	dir := benchWorkspace(b)
	old, _ := export(b, dir, Keep{})
	text := string(bytesOf(b, filepath.Join(dir, "MEMORY.md")))
	if err := os.WriteFile(filepath.Join(dir, "MEMORY.md"), []byte("## First of all\n\nnew\n\n"+text), 0o600); err != nil {
		b.Fatal(err)
	}
	new, _ := export(b, dir, Keep{})
	for b.Loop() {
		from, to := open(b, old), open(b, new)
		d, err := alf.Compare(from, to)
		if err != nil {
			b.Fatal(err)
		}
		if len(d.Moved) != benchRecords {
			b.Fatalf("%d moves", len(d.Moved))
		}
		if _, err := alf.WriteFile(filepath.Join(b.TempDir(), "d.alf-delta"), func(out io.Writer) error {
			_, err := alf.WriteDelta(out, "", from, to, d, testNow)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	archive, _ := export(b, benchWorkspace(b), Keep{})
	for b.Loop() {
		if rep, err := alf.Validate(archive, alf.DefaultLimits); err != nil || !rep.Valid {
			b.Fatal(rep.Text(), err)
		}
	}
}
