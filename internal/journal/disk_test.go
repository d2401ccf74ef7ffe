package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// failing is a journal whose fdatasync fails while broken is set.
func failing(t *testing.T, dir string) (j *Journal, broken *atomic.Bool) {
	t.Helper()
	w, err := newWriter(context.Background(), dir, atNoon().Now, atNoon().Log)
	if err != nil {
		t.Fatal(err)
	}
	broken = &atomic.Bool{}
	w.sync = func(file *os.File) error {
		if broken.Load() {
			return os.NewSyscallError("fdatasync", syscall.EIO)
		}
		return syncData(file)
	}
	return start(w, atNoon()), broken
}

// After a failed fsync, what was waited for is not in the log, what was queued
// is written once the disk works again, and nothing is written twice.
func TestFailedSync(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	j, broken := failing(t, dir)
	broken.Store(true)
	if _, err := j.Write(ctx, object("first of a new file")); !errors.Is(err, memory.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Write = %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, today)); !os.IsNotExist(err) {
		t.Errorf("an empty file is left: %v", err)
	}
	broken.Store(false)
	write(t, j, "a")
	broken.Store(true)
	if _, err := j.Write(ctx, object("refused")); !errors.Is(err, syscall.EIO) {
		t.Errorf("Write = %v", err)
	}
	if err := j.Append(ctx, object("queued"), object("queued too")); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(ctx); !errors.Is(err, syscall.EIO) {
		t.Errorf("Flush = %v", err)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[a]" {
		t.Errorf("while the disk fails: %v", texts)
	}
	broken.Store(false)
	if err := j.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if first := write(t, j, "z"); first != 4 {
		t.Errorf("first = %d, want 4", first)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if texts, seqs, _ := contents(t, dir); fmt.Sprint(texts, seqs) != "[a queued queued too z] [1 2 3 4]" {
		t.Errorf("afterwards: %v %v", texts, seqs)
	}
}

func TestCloseSaysWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	j, broken := failing(t, dir)
	write(t, j, "a")
	broken.Store(true)
	if err := j.Append(context.Background(), object("b"), object("c")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := j.Close()
		var lost *LostError
		if !errors.As(err, &lost) || len(lost.Objects) != 2 || !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("Close = %v", err)
		}
	}
	if s := j.Stats(); s.Lost != 2 || s.Failures == 0 {
		t.Errorf("stats = %+v", s)
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[a]" {
		t.Errorf("log = %v", texts)
	}
}

// fillAndFree writes until the disk refuses, looks at what is left, makes room
// and goes on.
func fillAndFree(t *testing.T, dir string, free func()) {
	t.Helper()
	ctx := context.Background()
	j := openTest(t, dir, atNoon())
	acked := 0
	var failed error
	for failed == nil {
		if _, failed = j.Write(ctx, []byte(`{"text":"`+strings.Repeat("x", 3000)+`"}`)); failed == nil {
			acked++
		}
	}
	if !errors.Is(failed, memory.ErrUnavailable) || memory.HintOf(failed) == "" || acked < 3 {
		t.Fatalf("after %d lines: %v, hint %q", acked, failed, memory.HintOf(failed))
	}
	if err := j.Append(ctx, []byte(`{"text":"`+strings.Repeat("q", 9000)+`"}`)); err != nil {
		t.Errorf("Append while the disk is full = %v, want it queued", err)
	}
	if err := j.Flush(ctx); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Flush while the disk is full = %v", err)
	}
	if rep := verify(t, dir); !rep.Ok || rep.Lines != int64(acked) || len(rep.Torn) > 0 {
		t.Errorf("while the disk is full: %d lines of %d, %+v", rep.Lines, acked, rep)
	}
	free()
	if err := j.Flush(ctx); err != nil {
		t.Fatalf("after space has returned: %v", err)
	}
	write(t, j, "end")
	if rep := verify(t, dir); !rep.Ok || rep.Lines != int64(acked)+2 {
		t.Errorf("afterwards %d lines, want %d: %+v", rep.Lines, acked+2, rep)
	}
}

// tmpfs mounts a small file system.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: a full and a read-only disk; mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := tmpfs(t)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	fillAndFree(t, filepath.Join(dir, "log"), func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReadOnlyDisk(t *testing.T) {
	mount := tmpfs(t)
	dir := filepath.Join(mount, "log")
	j := openTest(t, dir, atNoon())
	write(t, j, "a")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", mount, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, atNoon()); !errors.Is(err, memory.ErrUnavailable) || memory.HintOf(err) == "" {
		t.Errorf("Open = %v, hint %q", err, memory.HintOf(err))
	}
	if texts, _, _ := contents(t, dir); fmt.Sprint(texts) != "[a]" {
		t.Errorf("log = %v", texts)
	}
	if err := unix.Mount("", mount, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	write(t, openTest(t, dir, atNoon()), "b")
}

const limitVariable = "JOURNAL_TEST_FILE_LIMIT"

// The limit holds for a whole process, so the test runs in one of its own. A
// write beyond it is cut short in the middle of a group.
func TestFileSizeLimit(t *testing.T) {
	if os.Getenv(limitVariable) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$", "-test.v")
		child.Env = append(os.Environ(), limitVariable+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	setLimit(t, 100_000)
	fillAndFree(t, t.TempDir(), func() { setLimit(t, 1<<30) })
}

func setLimit(t *testing.T, bytes uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = bytes
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
}
