package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
)

// running is one process that works on a home.
type running struct {
	*house
	app cli.App
}

func newRunning(t *testing.T, home string) *running {
	t.Helper()
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	p := &running{h, h.app()}
	if err := h.setup(cli.Options{Home: home}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.close(); err != nil && !errors.Is(err, memory.ErrUnavailable) {
			t.Error(err)
		}
	})
	return p
}

// statusOf returns an agent's status as another process shows it.
func statusOf(t *testing.T, home, agent string) care.Status {
	t.Helper()
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	defer h.close()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), h.app(), []string{"memory", "status", "--agent", agent, "--home", home, "--json"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	var st care.Status
	if err := json.Unmarshal(out.Bytes(), &st); err != nil {
		t.Fatalf("status %d: %s%s: %v", code, &out, &errs, err)
	}
	return st
}

// TestOthersSeeAtOnceWhatARunningProcessDrops fills the queue of a process that
// goes on running, while another one has the log's lock.
func TestOthersSeeAtOnceWhatARunningProcessDrops(t *testing.T) {
	home := t.TempDir()
	p := newRunning(t, home)
	log, release, err := p.logs.write(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	head, err := os.OpenFile(filepath.Join(home, "agents", "a", "memory", "events", "journal.head"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer head.Close()
	if err := unix.Flock(int(head.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a long story ", 5000)
	for err == nil {
		_, err = log.Append(t.Context(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s1", Text: long})
	}
	if !errors.Is(err, events.ErrBackpressure) {
		t.Fatal(err)
	}
	if err := unix.Flock(int(head.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	var st care.Status
	for st.Dropped == 0 && t.Context().Err() == nil { // it is noted behind the caller's back
		st = statusOf(t, home, "a")
	}
	if st.Dropped != 1 || len(st.Problems) == 0 || st.Problems[0].Code != "dropped" || st.DegradedSince == nil {
		t.Errorf("another process sees %+v", st)
	}
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
