package working

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// filled makes a store with some items and closes it.
func filledStore(t *testing.T, dir string, l *memLog) map[string][]string {
	t.Helper()
	s, err := Open(context.Background(), dir, options(l))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		write(t, s, fmt.Sprint("t", i), fmt.Sprintf("the thing of number %d is %s", i, strings.Repeat("long ", i)))
	}
	before := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return before
}

// TestDamageIsFoundAndRepaired flips bytes and cuts the file at many places. The
// store must then show everything, or say that it is damaged and show everything
// when it is opened next.
func TestDamageIsFoundAndRepaired(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	want := filledStore(t, dir, l)
	path := filepath.Join(dir, fileName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const mutants = 120
	rebuilt := 0
	for n := range mutants {
		at := len(good) / mutants * n
		bad := append([]byte(nil), good...)
		switch n % 4 {
		case 0:
			bad = bad[:at]
		case 1:
			clear(bad[at/4096*4096 : min(at/4096*4096+4096, len(bad))])
		default:
			bad[at] ^= 1 << (n % 8)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		shown, err := openAndList(ctx, dir, l)
		if err != nil && !errors.Is(err, memory.ErrCorrupt) && !errors.Is(err, memory.ErrConflict) {
			t.Fatalf("mutant %d: %v", n, err)
		}
		if errors.Is(err, memory.ErrConflict) {
			continue // the flipped bit was in the schema version: refused, untouched
		}
		if err != nil {
			rebuilt++
			if shown, err = openAndList(ctx, dir, l); err != nil {
				t.Fatalf("mutant %d, opened again: %v", n, err)
			}
		}
		if diff := cmp.Diff(want["memory_items"], shown); diff != "" {
			t.Fatalf("mutant %d: wrong answers without a word:\n%s", n, diff)
		}
	}
	t.Logf("%d of %d mutants were found on reading and rebuilt", rebuilt, mutants)
}

// openAndList opens a store, reads every item and its history, and returns the
// rows.
func openAndList(ctx context.Context, dir string, l *memLog) (_ []string, err error) {
	s, err := Open(ctx, dir, options(l))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	res, err := s.List(ctx, ListRequest{Status: "all", Limit: ptr(0)})
	if err != nil {
		return nil, err
	}
	if len(res.Items) != 40 {
		return nil, fmt.Errorf("%d items", len(res.Items))
	}
	var failed fatal
	rows := dump(&failed, s)["memory_items"]
	return rows, failed.err
}

type fatal struct{ err error }

func (f *fatal) Fatal(args ...any) {
	err, isErr := args[len(args)-1].(error)
	if !isErr {
		err = errors.New(fmt.Sprint(args...))
	}
	f.err = err
}

func TestDamagedFileIsSetAsideAndNamed(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	want := filledStore(t, dir, l)
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	opts := options(l)
	opts.Logger = zerolog.New(&told)
	s, err := Open(ctx, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if text := told.String(); !strings.Contains(text, asideName) || !strings.Contains(text, "not a database") {
		t.Errorf("the log says %q", text)
	}
	if diff := cmp.Diff(want, dump(t, s)); diff != "" {
		t.Errorf("rebuilt store differs:\n%s", diff)
	}
	h, err := s.Health(ctx)
	if err != nil || !h.Failed() || !strings.Contains(h.Degraded[0], asideName) {
		t.Errorf("health %+v, %v", h, err)
	}
	aside, err := filepath.Glob(filepath.Join(dir, asideName+"*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("set aside: %v, %v", aside, err)
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	s, err := Open(ctx, dir, options(l))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.db.Exec(ctx, "PRAGMA user_version = 99"), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, dir, options(l)); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("opening a newer database: %v", err)
	}
	if aside, err := filepath.Glob(filepath.Join(dir, asideName+"*")); err != nil || len(aside) != 0 {
		t.Errorf("it was set aside: %v, %v", aside, err)
	}
}

func TestReaderChangesNothing(t *testing.T) {
	ctx, dir, l := context.Background(), t.TempDir(), &memLog{}
	if _, err := OpenReader(ctx, dir, "a", l); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("reading where there is nothing: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("reading left %v, %v", entries, err)
	}
	filledStore(t, dir, l)
	r, err := OpenReader(ctx, dir, "a", l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Get(ctx, GetRequest{Handle: "MEM-3"}); err != nil || got.Item.Handle != "MEM-3" {
		t.Errorf("get: %+v, %v", got, err)
	}
	if h, err := r.Health(ctx); err != nil || h.Failed() || h.LastSeq != 40 {
		t.Errorf("health: %+v, %v", h, err)
	}
}

func TestFailedAppendChangesNothing(t *testing.T) {
	ctx, l := context.Background(), &memLog{}
	s := open(t, t.TempDir(), l)
	write(t, s, "one", "first thing")
	before := dump(t, s)
	l.fail = memory.Errorf(memory.ErrUnavailable, "the disk is full")
	if _, err := s.Forget(ctx, ForgetRequest{Handle: "MEM-1"}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("forget on a full disk: %v", err)
	}
	if diff := cmp.Diff(before, dump(t, s)); diff != "" {
		t.Errorf("half-written:\n%s", diff)
	}
	l.fail = nil
	if _, err := s.Forget(ctx, ForgetRequest{Handle: "MEM-1"}); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
}

// TestSeveralWriters lets several stores on one directory, as several processes
// would have them, change the memory at once.
func TestSeveralWriters(t *testing.T) {
	dir, l := t.TempDir(), &memLog{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			s, err := Open(context.Background(), dir, options(l))
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 15 {
				if _, err := s.write(context.Background(), WriteRequest{Title: fmt.Sprint("w", w), Content: fmt.Sprintf("writer %d says %d", w, i)}, "write", "", nil); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := open(t, dir, l)
	res, err := s.List(context.Background(), ListRequest{Limit: ptr(0)})
	if err != nil || len(res.Items) != 60 {
		t.Fatalf("%d items, %v, want 60", len(res.Items), err)
	}
	integrity(t, s)
	rebuilt := open(t, t.TempDir(), l)
	if diff := cmp.Diff(dump(t, rebuilt), dump(t, s)); diff != "" {
		t.Errorf("not what replay gives:\n%s", diff)
	}
}

func TestLease(t *testing.T) {
	ctx, s := context.Background(), open(t, t.TempDir(), &memLog{})
	first, err := s.Acquire(ctx, "checkpoint", "one", 15e9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(ctx, "checkpoint", "two", 15e9); !errors.Is(err, memory.ErrConflict) || !strings.Contains(err.Error(), "one holds it until") {
		t.Errorf("second holder: %v", err)
	}
	for range 20 { // each look at the clock is a second later
		s.opts.Now()
	}
	second, err := s.Acquire(ctx, "checkpoint", "two", 15e9)
	if err != nil || second.Token <= first.Token {
		t.Fatalf("take-over: %+v, %v", second, err)
	}
	if err := s.Renew(ctx, first, 15e9); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("renewing a lost lease: %v", err)
	}
	if _, err := s.Apply(ctx, Batch{Lease: first, Record: memory.Checkpoint{Range: memory.Range{First: 1, Last: 1}, Cursor: memory.Cursor{Seq: 1}}}); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("applying under a lost lease: %v", err)
	}
	if err := s.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(ctx, second, 15e9); err != nil {
		t.Errorf("releasing a lost lease took the new holder's away: %v", err)
	}
}

const leaseChild = "WORKING_TEST_LEASE_CHILD"

// TestLeaseOfADeadProcess kills a process that holds a lease with minutes to go.
func TestLeaseOfADeadProcess(t *testing.T) {
	if dir := os.Getenv(leaseChild); dir != "" {
		holdLease(t, dir)
	}
	dir := t.TempDir()
	s := open(t, dir, &memLog{})
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), leaseChild+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said, readErr := bufio.NewReader(out).ReadString('\n')
	if said != "held\n" {
		t.Errorf("the holder said %q (%v)", said, readErr)
	}
	_, err = s.Acquire(t.Context(), "checkpoint", "other", time.Minute)
	if !errors.Is(err, memory.ErrConflict) {
		t.Errorf("while the holder lives: %v, want a conflict", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the holder ended well")
	}
	lease, err := s.Acquire(t.Context(), "checkpoint", "other", time.Minute)
	if err != nil || lease.Token != 2 {
		t.Fatalf("after its death: %+v, %v", lease, err)
	}
	if _, err := s.Acquire(t.Context(), "checkpoint", "third", time.Minute); !errors.Is(err, memory.ErrConflict) {
		t.Errorf("a third holder: %v, want a conflict", err)
	}
	if err := s.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// holdLease takes the lease and waits to be killed.
func holdLease(t *testing.T, dir string) {
	s := open(t, dir, &memLog{})
	if _, err := s.Acquire(t.Context(), "checkpoint", "child", 5*time.Minute); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

// A reader that runs out of time between two rows has met no damage.
func TestOutOfTimeIsNoDamage(t *testing.T) {
	dir, l := t.TempDir(), &memLog{}
	s := open(t, dir, l)
	in := Imported{Why: "much"}
	for n := range 500 {
		in.Put = append(in.Put, Entry{Item: memory.Item{ID: fmt.Sprint("mem_", n), Kind: memory.KindFact, Title: fmt.Sprint("number ", n), Content: fmt.Sprint("The number is ", n, "."), Importance: 3,
			Confidence: .9, Status: memory.Active, Trust: memory.TrustUser, Evidence: []memory.Evidence{}}})
	}
	if _, err := s.Import(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	all := 0
	for i := range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
		_, err := s.List(ctx, ListRequest{Status: "all", Limit: &all})
		cancel()
		if errors.Is(err, memory.ErrCorrupt) || s.Damaged() {
			t.Fatalf("after %d0 µs: %v", i, err)
		}
	}
	if there, err := exists(filepath.Join(dir, suspectName)); err != nil || there {
		t.Errorf("the database is marked to be rebuilt: %v, %v", there, err)
	}
}
