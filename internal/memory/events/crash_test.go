package events

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// childVariable makes the test binary a child that appends to the log in that
// directory and prints the id of each event once it is acknowledged. With
// scriptVariable set it follows a script that ends.
const (
	childVariable  = "EVENTS_TEST_CHILD"
	scriptVariable = "EVENTS_TEST_SCRIPT"
)

func runChild(dir string) int {
	work := appendForever
	if os.Getenv(scriptVariable) != "" {
		work = followScript
	}
	if err := work(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// appendForever writes one by one, in batches and queued with a flush, from
// several goroutines, until it is killed or its standard input ends.
func appendForever(dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := Open(ctx, dir, Options{Now: time.Now, NewID: newID, Redact: plainly{}})
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		bufio.NewReader(os.Stdin).ReadByte()
	}()
	var all sync.WaitGroup
	failed := make(chan error, 4)
	for producer := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := produce(ctx, l, producer); err != nil && !errors.Is(err, context.Canceled) {
				failed <- err
			}
		}()
	}
	all.Wait()
	close(failed)
	return errors.Join(<-failed, l.Close())
}

// followScript writes a few batches over three days with one reopening. It
// prints "ok" or "refused" with the ids of each batch, and goes on after errors.
func followScript(dir string) error {
	ctx := context.Background()
	at := day
	for half := range 2 {
		l, err := Open(ctx, dir, Options{Now: func() time.Time { return at }, NewID: newID, Redact: plainly{}})
		if err != nil {
			fmt.Println("closed", err)
			continue
		}
		for n := range 6 {
			at = day.AddDate(0, 0, (half*6+n)/4)
			batch := []memory.Event{said("a"), said(strings.Repeat("b", 3000*n))}
			for i := range batch {
				batch[i].ID = idPrefix + newID()
			}
			outcome := "ok"
			if _, err := l.Write(ctx, batch...); err != nil {
				outcome = "refused"
				if strings.Contains(err.Error(), "not known") {
					outcome = "unknown"
				}
				fmt.Fprintln(os.Stderr, err)
			}
			fmt.Println(outcome, batch[0].ID, batch[1].ID)
		}
		if err := l.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
		}
	}
	return nil
}

func produce(ctx context.Context, l *Log, producer int) error {
	for n := 0; ; n++ {
		batch := make([]memory.Event, 1+n%3)
		for i := range batch {
			batch[i] = said(strings.Repeat("word ", n*17%400))
		}
		var done []memory.Event
		var err error
		if producer%2 == 0 {
			done, err = l.Write(ctx, batch...)
		} else if done, err = l.Append(ctx, batch...); err == nil {
			err = l.Flush(ctx)
		}
		if err != nil {
			return err
		}
		for _, e := range done { // one line is one write, which a pipe does not split
			if _, err := os.Stdout.WriteString(e.ID + "\n"); err != nil {
				return err
			}
		}
	}
}

// plainly redacts nothing.
type plainly struct{}

func (plainly) Text(s string) string      { return s }
func (plainly) Value(v any) any           { return v }
func (plainly) Asks(string) string        { return "" }
func (plainly) Answer(_, s string) string { return s }

// child is a running child and the ids that it has acknowledged.
type child struct {
	cmd   *exec.Cmd
	read  chan struct{} // closed once its output has ended
	first chan struct{} // closed at the first acknowledgement

	mu  sync.Mutex
	ids []string
}

// acked returns the ids acknowledged so far.
func (c *child) acked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

func (c *child) acknowledge(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids = append(c.ids, id); len(c.ids) == 1 {
		close(c.first)
	}
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), read: make(chan struct{}), first: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childVariable+"="+dir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if len(lines.Text()) < len("evt_")+26 {
				continue // cut by the kill
			}
			c.acknowledge(lines.Text())
		}
	}()
	return c
}

// wait waits for the first acknowledgement.
func (c *child) wait(t *testing.T) {
	t.Helper()
	select {
	case <-c.first:
	case <-c.read:
		t.Fatal("the child ended by itself")
	}
}

// kill kills the child some time after its first acknowledgement.
func (c *child) kill(t *testing.T, after time.Duration) []string {
	t.Helper()
	c.wait(t)
	<-time.After(after)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.read
	if err := c.cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
	return c.acked()
}

// checkAcknowledged fails unless every acknowledged id is in the log once and
// the log has neither damage nor gaps.
func checkAcknowledged(t *testing.T, dir string, acked []string) {
	t.Helper()
	l := open(t, dir, options(t)) // repairs
	rep, err := l.Verify(context.Background())
	if err != nil || !rep.Ok || rep.FirstSeq != 1 || rep.LastSeq != rep.Lines {
		t.Fatalf("verify: %d lines, seq %d to %d, damage %v, gaps %v, %v", rep.Lines, rep.FirstSeq, rep.LastSeq, rep.Damage, rep.Gaps, err)
	}
	times := map[string]int{}
	for _, e := range readAll(t, l.Reader) {
		times[e.ID]++
	}
	lost, double := 0, 0
	for _, id := range acked {
		if times[id] == 0 {
			lost++
		}
	}
	for _, n := range times {
		if n > 1 {
			double++
		}
	}
	if lost > 0 || double > 0 || len(acked) == 0 {
		t.Fatalf("of %d acknowledged events %d are lost, %d of %d stand twice", len(acked), lost, double, len(times))
	}
}

func TestKillDuringAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	kills := 40
	if testing.Short() {
		kills = 5
	}
	var acked []string
	for range kills {
		c := startChild(t, dir)
		acked = append(acked, c.kill(t, rand.N(25*time.Millisecond))...)
	}
	checkAcknowledged(t, dir, acked)
	t.Logf("%d kills, %d acknowledged events, 0 lost", kills, len(acked))
}

// Processes append to one log at once; one of them is killed now and then.
func TestProcessesAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	var acked []string
	steady := startChild(t, dir)
	for range 8 {
		acked = append(acked, startChild(t, dir).kill(t, rand.N(40*time.Millisecond))...)
	}
	acked = append(acked, steady.kill(t, 0)...)
	checkAcknowledged(t, dir, acked)
}
