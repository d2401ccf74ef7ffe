//go:build fault && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// chore is something that writes, by its name.
type chore struct {
	name string
	do   func(context.Context) error
}

// chores are the twelve ways to write.
func (l *lifetime) chores() []chore {
	op := func(name string, in any) chore {
		return chore{name, func(ctx context.Context) error { return l.call(ctx, name, in, nil) }}
	}
	return []chore{
		{"turns", func(ctx context.Context) error { return l.jot(ctx, 3) }},
		{"talk", l.talk},
		{"memory.write", l.note},
		{"import", func(ctx context.Context) error { return l.importHistory(ctx, 5) }},
		{"memory.checkpoint", l.checkpoint},
		{"memory.maintenance", l.maintain},
		op("record.put", map[string]any{"namespace": "workflow", "record_kind": "note", "record_id": "r1", "payload": map[string]any{"x": strings.Repeat("y", 500)}}),
		op("graph.add_node", map[string]any{"node_type": "semantic", "label": "kiln", "payload": map[string]any{"fact": "the kiln is blue"}}),
		op("agent.message.send", map[string]any{"session_id": "s1", "text": "It is done."}),
		op("cron.pause", map[string]any{"name": "greet"}),
		op("cron.resume", map[string]any{"name": "greet"}),
		op("memory.rebuild", struct{}{}),
	}
}

// recalls reports how many of the ways to read fail.
func (l *lifetime) recalls(ctx context.Context) (failed []string) {
	for _, name := range []string{"memory.search", "memory.list", "memory.status"} {
		in := map[string]any{}
		if name == "memory.search" {
			in = map[string]any{"text": "where do I keep it", "scope": "all"}
		}
		if err := l.call(ctx, name, in, nil); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return failed
}

// stubbornPart does every chore again and again, whatever goes wrong, until it has
// done all of them; and says what still fails after many times. strace counts the
// calls of each thread, so one rule may strike several times.
func stubbornPart(dir string, pipe func(string) error) error {
	ack := func(line string) error {
		if pipe(line) == nil {
			return nil
		}
		return pipe(line) // the call that failed was this one
	}
	l, err := opened(dir, ack)
	if err != nil {
		return ack("failed to open: " + oneLine(err))
	}
	ctx := context.Background()
	const rounds = 15
	clean := 0
	for round := 0; round < rounds && clean < 2; round++ {
		clean++
		for _, c := range l.chores() {
			err := c.do(ctx)
			if err == nil {
				continue
			}
			clean = 0
			what := "failed"
			if round == rounds-1 {
				what = "still"
			}
			if memory.KindOf(err) == memory.ErrInternal {
				what = "untyped"
			}
			if err := ack(what + " " + c.name + ": " + oneLine(err)); err != nil {
				return err
			}
		}
		for _, failure := range l.recalls(ctx) {
			if err := ack("deaf " + strings.ReplaceAll(failure, "\n", " ")); err != nil {
				return err
			}
		}
	}
	if err := l.house.close(); err != nil {
		return ack("failed to close: " + oneLine(err))
	}
	return nil
}

func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	return text[:min(len(text), 1000)]
}

// TestFaultF3 lets the disk refuse: it is full, read-only, over its quota, broken
// for one fsync, or there are no file descriptors left. P18: what is read is read
// all the same, nothing is acknowledged that is not there, and when the disk is
// well again nobody has to be started anew.
func TestFaultF3(t *testing.T) {
	r := fault.Begin(t, "F3")
	s := judge.NewServer(t)
	ctx := context.Background()
	var deaf, stuck, untyped []string
	c := counted{}
	refused, blind, points := 0, 0, 0

	// In one process: a disk that is full, and too few descriptors.
	inOne := func(name, home string, readable bool, breaks, mends func()) {
		o := &told{}
		l, err := newLifetime(home, s.URL, time.Now, func(line string) error { o.take(line); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := l.call(ctx, "cron.add", map[string]any{"name": "greet", "schedule": "0 9 * * *", "message": "Good morning."}, nil); err != nil {
			t.Fatal(err)
		}
		for _, c := range l.chores() {
			if err := c.do(ctx); err != nil {
				t.Fatalf("%s, before anything is wrong: %s: %v", name, c.name, err)
			}
		}
		breaks()
		var failed []string
		for _, c := range l.chores() {
			if err := c.do(ctx); err != nil {
				refused++
				failed = append(failed, c.name)
				if memory.KindOf(err) == memory.ErrInternal {
					untyped = append(untyped, fmt.Sprintf("%s: %s: %v", name, c.name, err))
				}
			}
		}
		for _, failure := range l.recalls(ctx) {
			if !readable {
				blind++
				continue
			}
			deaf = append(deaf, name+": "+failure)
		}
		mends()
		if len(failed) == 0 {
			t.Errorf("%s: nothing failed: this has tested nothing", name)
		}
		t.Logf("%s: refused: %v", name, failed)
		for _, c := range l.chores() {
			if err := c.do(ctx); err != nil {
				stuck = append(stuck, fmt.Sprintf("%s: %s: %v", name, c.name, err))
			}
		}
		if err := l.house.close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		// Elsewhere, since the doctor finds a disk of this size small.
		copied := filepath.Join(fault.Dir(t), "home")
		cloneHome(t, copied, home)
		found, err := examine(ctx, copied, s.URL, clockAhead(generation), o, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		c.add(t, name, found.Findings)
	}
	if r.Has(fault.Root, "a full disk") {
		disk := fault.SmallDisk(t, 64<<10)
		filler := filepath.Join(disk, "filler")
		inOne("a full disk", filepath.Join(disk, "home"), true, func() { fill(t, filler) }, func() {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		})
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	setLimit := func(n uint64) {
		few := limit
		few.Cur = n
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
	}
	inOne("no descriptors left", filepath.Join(fault.Dir(t), "home"), false, func() { setLimit(24) }, func() { setLimit(limit.Cur) })

	// In processes whose Nth call fails, once or from then on.
	if r.Has(fault.Strace, "errors of the Nth system call") {
		base := filepath.Join(fault.Dir(t), "base")
		o := &told{}
		l, err := newLifetime(base, s.URL, time.Now, func(line string) error { o.take(line); return nil })
		if err != nil {
			t.Fatal(err)
		}
		err = l.call(ctx, "cron.add", map[string]any{"name": "greet", "schedule": "0 9 * * *", "message": "Good morning."}, nil)
		if err := errors.Join(err, l.jot(ctx, 5), l.checkpoint(ctx), l.house.close()); err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct{ calls, what string }{{"fsync,fdatasync", "EIO"}, {"write", "ENOSPC"}, {"pwrite64", "EDQUOT"}, {"openat", "EMFILE"}, {"rename,renameat,renameat2", "EROFS"}, {"ftruncate", "EIO"}} {
			for i := range r.N(100) / 6 {
				n := 1 + i*3
				points++
				home := filepath.Join(fault.Dir(t), "home")
				cloneHome(t, home, base)
				here := &told{said: append([]string{}, o.said...), noted: append([]string{}, o.noted...)}
				inject := fault.Inject{Calls: f.calls, What: "error=" + f.what, When: fmt.Sprint(n)}
				if f.calls == "write" { // to the log alone: Go's own runtime ends where its pipe cannot be written
					logs, err := filepath.Glob(filepath.Join(home, "agents/default/memory/events/*.jsonl"))
					if err != nil || len(logs) == 0 {
						t.Fatalf("there is no log: %v", err)
					}
					inject.Path, inject.When = logs[len(logs)-1], fmt.Sprint(1+i)
				}
				under := inject.Command()
				child := judge.StartChildUnder(t, under, "stubborn", home, lifeModel+"="+s.URL, lifeAhead+"="+generation.String())
				where := fmt.Sprintf("%s of %s number %d", f.what, f.calls, n)
				lines := child.Wait()
				here.take(lines...)
				for _, line := range lines {
					what, rest, _ := strings.Cut(line, " ")
					switch what {
					case "failed":
						refused++
					case "still":
						stuck = append(stuck, where+": "+rest)
					case "untyped":
						untyped = append(untyped, where+": "+rest)
					case "deaf":
						deaf = append(deaf, where+": "+rest)
					}
				}
				found, err := examine(ctx, home, s.URL, clockAhead(2*generation), here, true)
				if err != nil {
					t.Errorf("%s: %v", where, err)
					continue
				}
				c.add(t, where, found.Findings)
				if err := os.RemoveAll(home); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for what, list := range map[string][]string{"cannot be read meanwhile": deaf, "does not recover": stuck, "an error of no kind": untyped} {
		for _, at := range list {
			t.Errorf("%s: %s", what, at)
		}
	}
	r.Count("points", points)
	r.Count("operations refused", refused)
	r.Zero("acknowledged and not durable", c[judge.Lost])
	r.Zero("partial files", c[judge.Litter]+c[judge.Damaged])
	delete(c, judge.Lost)
	delete(c, judge.Litter)
	delete(c, judge.Damaged)
	other := 0
	for _, n := range c {
		other += n
	}
	r.Zero("other faults", other)
	r.Zero("operations that need a restart", len(stuck))
	r.Zero("failures to recall meanwhile", len(deaf))
	r.Count("reads refused for want of a descriptor", blind)
	r.Zero("errors without a kind", len(untyped))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			block = block[:len(block)/2]
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
