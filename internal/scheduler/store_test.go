package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func newStore(dir string) *store {
	return &store{dir: func() string { return dir }, now: func() time.Time { return time.Date(2026, 5, 8, 9, 0, 0, 0, time.UTC) }}
}

func someJob(name string) Job {
	at := time.Date(2026, 5, 8, 9, 0, 0, 0, time.UTC)
	return Job{Agent: "a", Name: name, Schedule: "@every 6h", Op: "memory.checkpoint", Deadline: "10m0s", By: memory.OriginUser, Since: at, LastStart: &at,
		Runs: []Run{{Due: at, Started: at, Ended: &at, Trigger: BySchedule, Outcome: Done, Detail: "a <b> & ü"}}}
}

func add(t *testing.T, s *store, jobs ...Job) {
	t.Helper()
	_, err := s.update(context.Background(), func(all *[]Job) (bool, error) {
		*all = append(*all, jobs...)
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scheduler")
	if jobs, err := newStore(dir).load(); err != nil || len(jobs) != 0 {
		t.Errorf("load of nothing = %v, %v", jobs, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("reading created the directory")
	}
	add(t, newStore(dir), someJob("b"), someJob("a"))
	got, err := newStore(dir).load()
	if diff := cmp.Diff([]Job{someJob("a"), someJob("b")}, got); err != nil || diff != "" {
		t.Errorf("load: %v\n%s", err, diff)
	}
	for _, path := range []string{dir, filepath.Join(dir, jobsFile), filepath.Join(dir, jobsLock)} {
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v: others may read it", path, st.Mode(), err)
		}
	}
}

// TestDamageIsNeverTakenForEmpty changes one byte, and cuts the file, at every
// place. The jobs must come back, from the file or from the one before it.
func TestDamageIsNeverTakenForEmpty(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir)
	add(t, s, someJob("kept"))
	add(t, s, someJob("newest"))
	path := filepath.Join(dir, jobsFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mutants := map[string][]byte{}
	for i := range good {
		flipped := append([]byte{}, good...)
		flipped[i] ^= 1 << (i % 8)
		mutants[fmt.Sprintf("bit flipped at %d", i)] = flipped
		mutants[fmt.Sprintf("cut at %d", i)] = good[:i]
	}
	for name, text := range mutants {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		jobs, err := newStore(dir).load()
		switch {
		case err == nil && len(jobs) == 2 && jobs[0].Name == "kept" && jobs[1].Name == "newest": // white space
			if diff := cmp.Diff([]Job{someJob("kept"), someJob("newest")}, jobs); diff != "" {
				t.Fatalf("%s: a changed job was taken for good:\n%s", name, diff)
			}
		case errors.Is(err, memory.ErrCorrupt) && len(jobs) == 1 && jobs[0].Name == "kept":
		default:
			t.Fatalf("%s: load = %+v, %v", name, jobs, err)
		}
	}
}

func TestDamagedFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir)
	add(t, s, someJob("kept"))
	add(t, s, someJob("newest"))
	if err := os.WriteFile(filepath.Join(dir, jobsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, s, someJob("later"))
	jobs, err := s.load()
	if err != nil || len(jobs) != 2 || jobs[0].Name != "kept" || jobs[1].Name != "later" {
		t.Errorf("after the repair load = %+v, %v", jobs, err)
	}
	aside, err := s.setAside()
	if err != nil || len(aside) != 1 {
		t.Fatalf("setAside = %v, %v", aside, err)
	}
	if text, err := os.ReadFile(aside[0]); err != nil || string(text) != "{" {
		t.Errorf("%s holds %q, %v", aside[0], text, err)
	}
	for _, name := range []string{jobsFile, previousFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if jobs, err := s.load(); !errors.Is(err, memory.ErrCorrupt) || jobs != nil || memory.HintOf(err) == "" {
		t.Errorf("with both files damaged load = %v, %v", jobs, err)
	}
	_, err = s.update(context.Background(), func(*[]Job) (bool, error) {
		t.Error("a change was made on nothing")
		return true, nil
	})
	if !errors.Is(err, memory.ErrCorrupt) {
		t.Errorf("update = %v", err)
	}
}

func TestStoreRefusesWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir)
	add(t, s, someJob("a"))
	path := filepath.Join(dir, jobsFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(good), `"version": 1`, `"version": 2`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if jobs, err := newStore(dir).load(); !errors.Is(err, memory.ErrUnavailable) || jobs != nil {
		t.Errorf("load of a newer file = %v, %v", jobs, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", path); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(dir).load(); !errors.Is(err, memory.ErrDenied) {
		t.Errorf("load of a link = %v", err)
	}
}

// TestStoreManyWriters has several processes' stores add jobs at once.
func TestStoreManyWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		s := newStore(dir)
		wg.Go(func() {
			for i := range 10 {
				_, err := s.update(context.Background(), func(all *[]Job) (bool, error) {
					*all = append(*all, someJob(fmt.Sprintf("w%d-%d", w, i)))
					return true, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if jobs, err := newStore(dir).load(); err != nil || len(jobs) != 40 {
		t.Errorf("%d jobs are there, %v, want 40", len(jobs), err)
	}
}

func FuzzDecode(f *testing.F) {
	dir := f.TempDir()
	s := newStore(dir)
	if _, err := s.update(context.Background(), func(all *[]Job) (bool, error) {
		*all = append(*all, someJob("a"))
		return true, nil
	}); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, jobsFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"crc":"00000000","jobs":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		jobs, err := decode("jobs.json", text)
		if err != nil {
			if k := memory.KindOf(err); k != memory.ErrCorrupt && k != memory.ErrUnavailable {
				t.Fatalf("decode = %v, of kind %s", err, k)
			}
			return
		}
		for i := range jobs {
			if err := jobs[i].check(); err != nil {
				t.Fatalf("decode let through %+v: %v", jobs[i], err)
			}
		}
	})
}
