package scheduler

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestEraseEmptiesWhatRunsEndedWith(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := &Scheduler{store: &store{dir: func() string { return dir }, now: time.Now}}
	hit := func(b []byte) bool { return bytes.Contains(b, []byte("albatross")) }
	if n, err := s.Erase(ctx, "a", hit); n != 0 || err != nil {
		t.Fatalf("without jobs: %d, %v", n, err)
	}
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for _, agent := range []memory.AgentID{"a", "b"} {
		_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
			*jobs = append(*jobs, Job{Agent: agent, Name: "ask", Schedule: "@every 6h", Message: "what is new?", Deadline: "10m", By: memory.OriginUser, Since: at,
				Runs: []Run{{Due: at, Started: at, Ended: &at, Trigger: BySchedule, Outcome: Done, Detail: "the albatross of " + string(agent)}}})
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Erase(ctx, "a", hit); n != 1 || err != nil {
		t.Fatalf("Erase = %d, %v", n, err)
	}
	for _, name := range []string{jobsFile, previousFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "albatross of a") || !strings.Contains(string(text), "albatross of b") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
