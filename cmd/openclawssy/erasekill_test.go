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
		return ourselves(t, home, "memory", "erase", "--session", session, "--yes")
	}
	whole := copyHome(t, base)
	length := timeOf(t, erase(whole))
	begun := 0
	for i := range kills {
		home := copyHome(t, base)
		agent := filepath.Join(home, "agents", "default")
		cmd := erase(home)
		err := killBegun(t, cmd, func() bool { return care.Pending(agent) }, time.Duration(w.random.Int64N(int64(length)/2)))
		if err != nil && care.Pending(agent) {
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
		if care.Pending(agent) {
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
