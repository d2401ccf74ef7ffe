package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// tree writes files into a new workspace, all of one time.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, dir, name, text, time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	}
	return dir
}

func put(t testing.TB, dir, name, text string, at time.Time) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
	if err != nil {
		t.Fatal(err)
	}
}

// names returns the id names of a workspace's records, and what was left out.
func names(t *testing.T, dir string, o Options) (ids, left []string) {
	t.Helper()
	o.Notice = func(n Notice) {
		if n.Skipped {
			left = append(left, n.String())
		}
	}
	for _, r := range read(t, dir, o) {
		ids = append(ids, r.IDName)
	}
	return ids, left
}

func TestOneBadFileIsNotTheEnd(t *testing.T) {
	dir := tree(t, map[string]string{"memory/a.md": "## a", "memory/b.md": "\xff", "memory/d.md/x": "", "memory/e.md": "## e", "memory/sub/f.md": "## f"})
	if err := syscall.Mkfifo(filepath.Join(dir, "memory", "c.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("c.md", filepath.Join(dir, "memory", "g.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("h.md", filepath.Join(dir, "memory", "h.md")); err != nil {
		t.Fatal(err)
	}
	ids, left := names(t, dir, Options{})
	if !slices.Equal(ids, []string{"memory/a.md:0", "memory/e.md:0", "memory/sub/f.md:0"}) {
		t.Errorf("%q", ids)
	}
	want := []string{"memory/c.md left out: it is no regular file", "memory/g.md left out: it is a link to what is no regular file",
		"memory/h.md left out: it is a link that leads nowhere", "memory/b.md left out: it is not UTF-8"}
	if !slices.Equal(left, want) {
		t.Errorf("%q", left)
	}
}

func TestLinkedMemory(t *testing.T) {
	dir := tree(t, map[string]string{"notes/a.md": "## a", "notes/deep/b.md": "## b", "MEMORY.md": "## m"})
	if err := os.Symlink("notes", filepath.Join(dir, "memory")); err != nil {
		t.Fatal(err)
	}
	inside, err := filepath.Abs(filepath.Join(dir, "notes", "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(inside, filepath.Join(dir, "notes", "z.md")); err != nil {
		t.Fatal(err)
	}
	ids, left := names(t, dir, Options{})
	if !slices.Equal(ids, []string{"MEMORY.md:0", "memory/a.md:0", "memory/deep/b.md:0", "memory/z.md:0"}) || len(left) != 0 {
		t.Errorf("%q, %q", ids, left)
	}
	outside := tree(t, map[string]string{"a.md": "## a"})
	if err := errors.Join(os.Remove(filepath.Join(dir, "memory")), os.Symlink(outside, filepath.Join(dir, "memory"))); err != nil {
		t.Fatal(err)
	}
	ids, left = names(t, dir, Options{})
	if !slices.Equal(ids, []string{"MEMORY.md:0"}) || !slices.Equal(left, []string{"memory left out: it is a link that leads out of the workspace"}) {
		t.Errorf("%q, %q", ids, left)
	}
}

func TestAWorkspaceThatChangesWhileItIsRead(t *testing.T) {
	dir := tree(t, map[string]string{"memory/2026-01-01.md": "## first", "memory/2026-01-02.md": "## grows", "memory/a.md": "## touched", "memory/b.md": "## stays", "memory/c.md": "## goes"})
	w, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got, left []string
	for r, err := range w.Records(context.Background(), Options{Notice: func(n Notice) { left = append(left, n.String()) }}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.IDName+" "+r.Content)
		if len(got) == 1 {
			now := time.Date(2026, 2, 4, 0, 0, 0, 0, time.UTC)
			put(t, dir, "memory/2026-01-02.md", "## grows\n## more", now)
			put(t, dir, "memory/a.md", "## touched and changed", now)
			if err := os.Remove(filepath.Join(dir, "memory", "c.md")); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"memory/2026-01-01.md:0 ## first", "memory/2026-01-02.md:0 ## grows", "memory/2026-01-02.md:1 ## more", "memory/b.md:0 ## stays", "memory/a.md:0 ## touched and changed"}
	if !slices.Equal(got, want) || len(left) != 1 || !strings.HasPrefix(left[0], "memory/c.md left out: ") {
		t.Errorf("%q, %q", got, left)
	}
}

func TestEveryWayToCutHasItsOwnIDs(t *testing.T) {
	dir := tree(t, map[string]string{"MEMORY.md": "## a\n```\n## b\n```", "memory/gating-policies.md": "|a|\n|-|\n|b|\n|c|\n", "memory/active-context.md": "x"})
	seen := map[string]Split{}
	for _, mode := range []Split{SplitClient, SplitFenceAware, SplitRows} {
		for _, r := range read(t, dir, Options{Split: mode}) {
			if other, taken := seen[r.ID.String()]; taken {
				t.Errorf("%s: %s has the id of a record of %s", mode, r.IDName, other)
			}
			seen[r.ID.String()] = mode
		}
	}
	if len(seen) != 4+3+5 {
		t.Errorf("%d records", len(seen))
	}
}

func TestOpenAndStop(t *testing.T) {
	dir := tree(t, map[string]string{"MEMORY.md": "## a\n## b"})
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("a missing workspace: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "MEMORY.md")); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("a file: %v", err)
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
	for range w.Records(context.Background(), Options{}) {
		break // must not go on
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var last error
	for _, err := range w.Records(ctx, Options{}) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after the end: %v", last)
	}
}

// BenchmarkRecords reads 50,000 records of 1,000 days.
func BenchmarkRecords(b *testing.B) {
	files := map[string]string{}
	for day := range 1000 {
		var sb strings.Builder
		for n := range 50 {
			fmt.Fprintf(&sb, "## Entry %d\n- [decision|i=0.%d] the harbour crane contract was renewed for another year #tag%d\n- two more words about it\n\n", n, n%9+1, n)
		}
		files[DailyFile(time.Date(2023, 1, 1+day, 0, 0, 0, 0, time.UTC))] = sb.String()
	}
	w, err := Open(tree(b, files))
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	}()
	for b.Loop() {
		n := 0
		for r, err := range w.Records(context.Background(), Options{}) {
			if err != nil || r.View().ContentBytes == 0 {
				b.Fatal(err)
			}
			n++
		}
		if n != 50_000 {
			b.Fatalf("%d records", n)
		}
	}
}
