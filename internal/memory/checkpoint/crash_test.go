package checkpoint

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	childVariable = "CHECKPOINT_TEST_CHILD"
	firstVariable = "CHECKPOINT_TEST_FIRST" // number of the first thing that a child says
	mostSaid      = 1000                    // by one child: without a disk to wait for it would say ten times as much
	shortLease    = 100 * time.Millisecond  // so that runs end and begin between two kills
)

// runChild says things and makes checkpoints until it is killed, and prints the
// id of each turn that is durable.
func runChild(dir string) int {
	first, err := strconv.Atoi(os.Getenv(firstVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w, err := openWorld(dir, &echo{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w.service.lease, w.agent.BatchTokens = shortLease, 400
	var wg sync.WaitGroup
	ctx := context.Background()
	wg.Go(func() {
		for i := range mostSaid {
			done, err := w.log.Write(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s1",
				Text: sayings(first+i, 1)[0]})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(done[0].ID)
		}
	})
	wg.Go(func() {
		for {
			if _, err := w.service.Checkpoint(ctx, "a", Request{}); err != nil && memory.KindOf(err) != memory.ErrConflict {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			time.Sleep(time.Millisecond)
		}
	})
	wg.Wait()
	return 0
}

// TestKilledWhereverItIs kills processes that say things and make checkpoints,
// two at a time on one agent. Whatever was acknowledged must be distilled once,
// or still to come; nothing else may be there. No two of them say the same: that
// would be one item, which rests on both.
func TestKilledWhereverItIs(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	var acked []string
	children := 0
	for round := range rounds {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 1 + round%2 {
			first := 1 + children*mostSaid
			children++
			wg.Go(func() {
				ids, err := runAndKill(dir, first, time.Duration(30+rand.IntN(300))*time.Millisecond)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				acked = append(acked, ids...)
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	w := sameWorld(t, dir, &echo{})
	w.agent.BatchTokens = 400
	deadline := time.Now().Add(30 * time.Second) // the lease of the last one killed has to run out
	for {
		_, err := w.service.Checkpoint(context.Background(), "a", Request{})
		if err == nil {
			break
		}
		if memory.KindOf(err) != memory.ErrConflict || time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	h := w.health(t)
	if h.Backlog != 0 || len(h.Parked) != 0 || h.Failed() {
		t.Errorf("health %+v", h)
	}
	count := map[string]int{}
	for _, it := range w.items(t, "all") {
		count[it.Title]++
		if len(it.Evidence) != 1 {
			t.Errorf("%s rests on %d events", it.Handle, len(it.Evidence))
		}
	}
	lost, twice := 0, 0
	for _, id := range acked {
		if count[id] == 0 {
			lost++
		}
	}
	for _, n := range count {
		if n > 1 {
			twice++
		}
	}
	runs, err := w.store.Checkpoints(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d batches, %d acknowledged, %d distilled, %d never, %d twice", rounds+rounds/2, len(runs), len(acked), len(count), lost, twice)
	if lost+twice > 0 || len(acked) == 0 {
		t.Error("not exactly once")
	}
}

// runAndKill runs a child on dir that says things from a number on, kills it after a while, and returns what it
// acknowledged.
func runAndKill(dir string, first int, after time.Duration) ([]string, error) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir, firstVariable+"="+strconv.Itoa(first))
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	var ids []string
	lines := bufio.NewScanner(out)
	kill := time.AfterFunc(time.Minute, func() { child.Process.Kill() }) // one that says nothing is not waited for
	for lines.Scan() {
		if len(ids) == 0 {
			kill.Reset(after)
		}
		ids = append(ids, lines.Text())
	}
	err = child.Wait()
	if stderr.Len() > 0 || len(ids) == 0 {
		return ids, fmt.Errorf("child: %s (%w)", stderr.String(), err)
	}
	// A last line that was cut off is no acknowledgement.
	if n := len(ids); n > 0 && len(ids[n-1]) < len("evt_")+26 {
		ids = ids[:n-1]
	}
	return ids, nil
}
