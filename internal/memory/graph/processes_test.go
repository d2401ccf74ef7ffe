package graph

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Variables that make the test binary a second process.
const (
	childRole = "GRAPH_TEST_ROLE"
	childPath = "GRAPH_TEST_PATH"
	childName = "GRAPH_TEST_NAME"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := child(role, os.Getenv(childPath), os.Getenv(childName), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// perProcess is how many changes a process makes that is left to finish.
const perProcess = 60

// child writes a node and an edge at a time, and tells each when it is durable.
// The roles file and journal say where changes go; endless ones wait to be
// killed.
func child(role, path, name string, acknowledge io.Writer) error {
	opts := Options{Now: time.Now, Log: zerolog.Nop(), NewID: func() string { return name }, Limits: defaultLimits}
	opts.Limits.JournalFrom = 1 << 40
	if strings.Contains(role, "journal") {
		opts.Limits.JournalFrom = 1
	}
	s, err := Open(context.Background(), path, opts)
	if err != nil {
		return err
	}
	for i := 0; i < perProcess || strings.HasPrefix(role, "endless"); i++ {
		id := name + "-" + strconv.Itoa(i)
		err := s.Update(context.Background(), Write{}, func(tx *Tx) error {
			if err := addRow(tx, row(id)); err != nil {
				return err
			}
			return addRow(tx, link("e"+id, id, References, "all"))
		})
		if err != nil {
			return err
		}
		if i%17 == 16 {
			if err := s.Fold(context.Background()); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(acknowledge, id); err != nil {
			return err
		}
	}
	return s.Close()
}

func childCommand(t *testing.T, role, path, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path, childName+"="+name)
	return cmd
}

// missingOf returns which nodes, or the edges that came with them, are not in
// the graph.
func (f *fixture) missingOf(ids []string) []string {
	var lost []string
	err := f.View(context.Background(), func(v *View) error {
		for _, id := range ids {
			if v.Node(id) == nil || v.Edge("e"+id) == nil {
				lost = append(lost, id)
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return lost
}

func TestDefectTwoProcessesOverwriteEachOther(t *testing.T) {
	for _, role := range []string{"file", "journal"} {
		t.Run(role, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			var ids []string
			var wg sync.WaitGroup
			for p := range 4 {
				name := "p" + strconv.Itoa(p)
				for i := range perProcess {
					ids = append(ids, name+"-"+strconv.Itoa(i))
				}
				wg.Go(func() {
					if out, err := childCommand(t, role, path, name).CombinedOutput(); err != nil {
						t.Errorf("process %s: %v: %s", name, err, out)
					}
				})
			}
			wg.Wait()
			f := openTest(t, path, nil)
			if lost := f.missingOf(ids); len(lost) > 0 {
				t.Errorf("%d of %d changes are lost: %q", len(lost), len(ids), lost)
			}
			next := map[string]int{} // each process's own nodes stand in the order of their adding
			for word := range strings.FieldsSeq(f.dump()) {
				name, number, isNode := strings.Cut(strings.SplitN(word, ":", 2)[0], "-")
				if !isNode || !strings.Contains(word, ":") {
					continue
				}
				if number != strconv.Itoa(next[name]) {
					t.Fatalf("node %s-%s stands where %d should", name, number, next[name])
				}
				next[name]++
			}
		})
	}
}

// kills is how many times the process that writes is killed.
const kills = 200

func TestKilledWhileWritingLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes 200 times")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, role := range []string{"endless file", "endless journal"} {
		t.Run(role, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			var known []string
			for k := range kills / 2 {
				known = append(known, killedWriter(t, role, path, "k"+strconv.Itoa(k), random.IntN(40))...)
				if k%10 != 9 {
					continue
				}
				f := openTest(t, path, nil)
				if lost := f.missingOf(known); len(lost) > 0 {
					t.Fatalf("after %d kills %d of %d acknowledged changes are lost: %q", k+1, len(lost), len(known), lost)
				}
				if notes := f.Notes(); len(notes) > 0 {
					t.Fatalf("after %d kills the store says %q", k+1, notes)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d acknowledged changes", len(known))
		})
	}
}

// killedWriter starts a writer, kills it some time after it has acknowledged a
// number of changes, and returns all that it acknowledged.
func killedWriter(t *testing.T, role, path, name string, after int) []string {
	t.Helper()
	cmd := childCommand(t, role, path, name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) > after && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return acknowledged
}
