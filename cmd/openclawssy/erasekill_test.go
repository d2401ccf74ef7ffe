package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
)

// TestErasureThatIsKilled kills an erasure at many moments after it has begun. It is
// ended by whoever comes next.
func TestErasureThatIsKilled(t *testing.T) {
	const kills = 40
	base := filepath.Join(t.TempDir(), "base")
	w := newWorld(t, base, 11)
	w.importChat("import-0", 3)
	for _, kind := range []int{0, 0, 4, 5, 6, 0, 3, 7, 9, 10, 11, 12, 4, 5, 9, 0, 10, 12, 11, 7} {
		w.step(kind)
	}
	var words []string
	var session string
	for _, s := range w.said { // the session of the most words
		n := 0
		for _, other := range w.said {
			if other.session == s.session {
				n++
			}
		}
		if n > len(words) {
			session, words = s.session, make([]string, n)
		}
	}
	words = words[:0]
	for _, s := range w.said {
		elsewhere := slices.ContainsFunc(w.said, func(o statement) bool { return o.word == s.word && o.session != session })
		if s.session == session && !elsewhere {
			words = append(words, s.word)
		}
	}
	if len(words) == 0 {
		t.Fatal("nothing to erase")
	}
	erase := func(home string) *exec.Cmd {
		cmd := exec.Command("openclawssy", "memory", "erase", "--session", session, "--yes", "--home", home)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		return cmd
	}
	fresh := func(name string) string {
		home := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(home, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		return home
	}
	whole := fresh("whole")
	begin := time.Now()
	if out, err := erase(whole).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	length := time.Since(begin)
	begun := 0
	for i := range kills {
		home := fresh("killed")
		cmd := erase(home)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for len(ended) == 0 && !care.Pending(filepath.Join(home, "agents", "default")) {
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Duration(w.random.Int64N(int64(length) / 2)))
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		err := <-ended
		killed := err != nil
		if pending := care.Pending(filepath.Join(home, "agents", "default")); pending && killed {
			begun++
		}
		w.home = home
		if i%2 == 0 { // somebody else comes first
			w.call("memory", "list")
		}
		if out, err := erase(home).CombinedOutput(); err != nil {
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 3 {
				t.Fatalf("after kill %d: %v: %s", i, err, out)
			}
		}
		if care.Pending(filepath.Join(home, "agents", "default")) {
			t.Errorf("after kill %d it has not ended", i)
		}
		w.gone(fmt.Sprint("kill ", i), words)
		if i%8 == 0 {
			w.sound(fmt.Sprint("kill ", i))
		}
		if t.Failed() {
			return
		}
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d kills came after the erasure had begun; it takes %v", begun, kills, length.Round(time.Millisecond))
	if begun == 0 {
		t.Error("no kill came while an erasure was under way")
	}
}
