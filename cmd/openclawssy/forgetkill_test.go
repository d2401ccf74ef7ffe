package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// TestForgettingThatIsKilled kills a forgetting at many moments after it has begun. What
// was forgotten by then leaves no word once anything of the agent is opened again.
func TestForgettingThatIsKilled(t *testing.T) {
	const kills = 24
	base := filepath.Join(t.TempDir(), "base")
	w := newWorld(t, base, 21)
	w.importChat("import-0", 3)
	word := w.word()
	w.call("memory", "write", "--title", "about "+word, "--content", "The "+word+" hangs behind the door.", "--importance", "4")
	w.now = w.now.Add(5 * 24 * time.Hour)
	w.call("memory", "maintenance") // packs
	w.call("memory", "update", "MEM-1", "--content", "The "+word+" hangs in the cellar.", "--why", "about "+word+" I was told otherwise")
	for _, kind := range []int{5, 13} { // nobody is told of it: runs keep what they recalled
		w.step(kind)
	}
	forget := func(home string) *exec.Cmd { return ourselves(t, home, "memory", "forget", "MEM-1") }
	whole := copyHome(t, base)
	length := timeOf(t, forget(whole))
	w.home = whole
	w.gone("forgotten", []string{word})
	half := 0
	for i := range kills {
		home := copyHome(t, base)
		w.home = home
		agent := filepath.Join(home, "agents", "default")
		cmd := forget(home)
		err := killBegun(t, cmd, func() bool { return care.Forgetting(agent) }, time.Duration(w.random.Int64N(int64(length)/2)))
		begun := err != nil && care.Forgetting(agent)
		var status memory.Status
		for _, it := range w.items("all") { // somebody comes
			if it.Handle == "MEM-1" {
				status = it.Status
			}
		}
		if care.Forgetting(agent) {
			t.Errorf("kill %d: it has not ended", i)
		}
		switch {
		case status == memory.Forgotten:
			w.gone(fmt.Sprint("kill ", i), []string{word})
			if begun {
				half++
			}
		case err == nil:
			t.Errorf("kill %d: it was acknowledged, and MEM-1 is %s", i, status)
		default: // nothing was done: it can be
			w.call("memory", "forget", "MEM-1")
			w.gone(fmt.Sprint("again after kill ", i), []string{word})
		}
		if i%6 == 0 {
			w.sound(fmt.Sprint("kill ", i))
		}
		if t.Failed() {
			return
		}
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d kills came when it was forgotten, and its words were not gone everywhere; it takes %v", half, kills, length.Round(time.Millisecond))
	if half == 0 {
		t.Error("no kill came half way")
	}
}
