package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
)

// TestChangesAtTheEndAreFollowed lets a command change memory when its program is at
// its end already, as it is where the machine is so busy that what follows the change
// begins late. The next recall finds the change in the graph, under its deadline too.
func TestChangesAtTheEndAreFollowed(t *testing.T) {
	home := t.TempDir()
	run := func(ending bool, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		h := newHouse(time.Now, func(string) string { return "" }, nil)
		if ending {
			h.end()
		}
		args = append(args, "--home", home, "--set", "recall.deadline_ms=20000", "--set", "recall.graph_hops=2", "--json")
		status := cli.Run(context.Background(), h.app(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if err := h.close(); err != nil {
			t.Error(err)
		}
		if status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, errs.String())
		}
		return out.String()
	}
	run(true, "memory", "write", "--title", "Marit", "--content", "User's boss Marit leads the project Lighthouse.")
	run(true, "memory", "write", "--title", "Lighthouse", "--content", "Lighthouse ships on 4 May, after the harbour tests.")
	var block struct{ Text string }
	if err := json.Unmarshal([]byte(run(false, "memory", "recall", "What should I tell Marit?")), &block); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(block.Text, "[MEM-2]") {
		t.Errorf("two steps from Marit: %q", block.Text)
	}
}
