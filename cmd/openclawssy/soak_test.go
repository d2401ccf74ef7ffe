//go:build fault && linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

// soakVar is the variable that says how long `make soak` goes on; without it there is
// nothing to do.
const soakVar = "SOAK"

// erasingPart has sessions of its own, and erases them, until it is killed. What it
// acknowledges as erased must be in no file afterwards.
func erasingPart(dir string, ack func(string) error) error {
	l, err := opened(dir, ack)
	if err != nil {
		return err
	}
	ctx := context.Background()
	log, release, err := l.house.logs.write(ctx, l.agent)
	if err != nil {
		return err
	}
	defer release()
	failed := make(chan error, 1)
	if _, err := tellHeap(ack, failed); err != nil {
		return err
	}
	for {
		select {
		case err := <-failed:
			return err
		default:
		}
		session, words := "e-"+lifeWord(), make([]string, 3+rand.IntN(5))
		for i := range words {
			words[i] = lifeWord()
			if _, err := log.Append(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: session, Text: sentence(words[i])}); err != nil {
				return err
			}
		}
		if err := log.Flush(ctx); err != nil {
			return err
		}
		for done := false; !done; { // it may have been distilled by then, recalled, and said again
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Millisecond)
			var res care.EraseResult
			if err := l.call(ctx, "memory.erase", care.EraseRequest{Session: session, Yes: true}, &res); unlessBusy(err) != nil {
				return err
			}
			if len(res.Holding) > 0 {
				return fmt.Errorf("after an erasure there is something left in %v", res.Holding)
			}
			done = res.Done
		}
		if err := ack("erased " + strings.Join(words, " ")); err != nil {
			return err
		}
	}
}

// memoryOf is the memory that a process has resident now, in MiB; 0 for one that has
// ended.
func memoryOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil {
		return 0
	}
	return float64(kib) / 1024
}

// grown are samples of the heap of a process, from a moment on.
func grown(lines []string, from time.Time) (heap []judge.Sample) {
	for _, line := range lines {
		var at, kib int64
		if n, err := fmt.Sscanf(line, "heap %d %d", &at, &kib); n == 2 && err == nil && at >= from.UnixMilli() {
			heap = append(heap, judge.Sample{At: time.UnixMilli(at), Value: float64(kib) / 1024})
		}
	}
	return heap
}

// leasts are the least values of the first and the second half of samples: what is in
// use for a moment does not count.
func leasts(samples []judge.Sample) (first, second float64) {
	least := func(of []judge.Sample) float64 {
		v := of[0].Value
		for _, s := range of {
			v = min(v, s.Value)
		}
		return v
	}
	half := len(samples) / 2
	return least(samples[:half]), least(samples[half:])
}

// standIn are the files of a home in which one of the words stands.
func standIn(home string, words []string) ([]string, error) {
	var out []string
	return out, filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				out = append(out, w+" in "+filepath.Base(path))
			}
		}
		return nil
	})
}

// What the heap of a process may differ by between two halves of the time in which its
// home no longer grows.
const heapLeeway = 4 // MiB

// TestSoak is `make soak`: for a while two processes chat, distil, maintain, import,
// search and export, a third one erases, and this one recalls, all on one home. For the
// last part of the time nothing new is said: what memory is needed then must stay the
// same. It tells what all that does to memory, latency and files, and fails where
// anything broke.
func TestSoak(t *testing.T) {
	if os.Getenv(soakVar) == "" {
		t.Skip("make soak runs this")
	}
	length, err := time.ParseDuration(os.Getenv(soakVar))
	if err != nil || length < 10*time.Second {
		t.Fatalf("%s is %q: give it a duration from 10s, such as 10m", soakVar, os.Getenv(soakVar))
	}
	s := judge.NewServer(t)
	home := filepath.Join(fault.Dir(t), "home")
	var parts []*listened
	grows := length / 2
	for _, part := range []string{"life", "life", "erasing"} {
		parts = append(parts, listen(judge.StartChild(t, part, home, lifeModel+"="+s.URL, lifeSlower+"=200", lifeGrows+"="+grows.String())))
	}
	count := func(kind string) (n int) {
		for _, p := range parts {
			n += p.count(kind)
		}
		return n
	}
	l, err := newLifetime(home, s.URL, time.Now, func(string) error { return nil }, fmt.Sprint("recall.deadline_ms=", recallDeadline.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if l != nil {
			if err := l.house.close(); err != nil {
				t.Error(err)
			}
		}
	}()
	fmt.Printf("%s, two processes that live, one that erases and one that recalls, in %s\n", length, home)

	began := time.Now()
	var still time.Time // since when the home no longer grows
	var status struct {
		Backlog int64 `json:"backlog"`
	}
	nextLook := began.Add(grows)
	rss := make([][]judge.Sample, len(parts))
	peak := make([]float64, len(parts))
	all, minute := &recalled{}, &recalled{}
	asked, known, every, nextSample, nextLine := 0, 0, time.Minute, began, began.Add(time.Minute)
	if length < 5*time.Minute {
		every = length / 5
		nextLine = began.Add(every)
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	for time.Since(began) < length && !t.Failed() {
		if word := parts[rand.IntN(2)].anyWord(); word != "" {
			from := time.Now()
			b := l.house.recalls.Block(t.Context(), l.agent, recall.Request{Text: "Where do I keep the " + word + "?", Session: "s9"})
			to := time.Now()
			all.take(from, to, b)
			minute.take(from, to, b)
			if b.Degraded == "" {
				asked++
				if strings.Contains(b.Text, word) {
					known++
				}
			}
		}
		now := time.Now()
		if now.After(nextSample) {
			nextSample = now.Add(time.Second)
			for i, p := range parts {
				mib := memoryOf(p.Pid())
				peak[i] = max(peak[i], mib)
				if !still.IsZero() {
					rss[i] = append(rss[i], judge.Sample{At: now, Value: mib})
				}
				select {
				case <-p.done:
					t.Errorf("a process has ended after %s", time.Since(began).Round(time.Second))
				default:
				}
			}
		}
		if still.IsZero() && now.After(nextLook) {
			nextLook = now.Add(2 * time.Second)
			if err := l.call(t.Context(), "memory.status", struct{}{}, &status); err != nil {
				t.Error(err)
			}
			if status.Backlog == 0 {
				still = now
				fmt.Printf("%6s  nothing new is said any more, and all that was is distilled\n", now.Sub(began).Round(time.Second))
			}
		}
		if now.After(nextLine) {
			nextLine = nextLine.Add(every)
			fmt.Printf("%6s  %d turns and more acknowledged, %d checkpoints, %d maintained, %d sessions erased; %d recalls, p50 %s, p99 %s, most %s ms, %d not whole; resident %.0f, %.0f, %.0f MiB\n", now.Sub(began).Round(time.Second), count("said"),
				count("distilled"), count("maintained"), count("erased"), len(minute.took), ms(quantile(minute.took, .5)), ms(quantile(minute.took, .99)), ms(quantile(minute.took, 1)), minute.main+minute.failed, memoryOf(parts[0].Pid()), memoryOf(parts[1].Pid()), memoryOf(parts[2].Pid()))
			minute = &recalled{}
		}
		time.Sleep(50 * time.Millisecond)
	}
	stood := time.Since(still)
	o, erased, calls := &told{}, []string{}, map[string]int{}
	heaps := make([][]judge.Sample, len(parts))
	for i, p := range parts {
		lines := p.kill(t)
		if !still.IsZero() {
			heaps[i] = grown(lines, still)
		}
		o.take(lines...)
		for _, line := range lines {
			what, rest, _ := strings.Cut(line, " ")
			calls[what]++
			if what == "erased" {
				erased = append(erased, strings.Fields(rest)...)
			}
		}
	}
	if err := l.call(t.Context(), "memory.status", struct{}{}, &status); err != nil {
		t.Error(err)
	}
	err = l.house.close()
	l = nil
	if err != nil {
		t.Error(err)
	}
	databases, err := filepath.Glob(filepath.Join(home, "agents", "*", "memory", "*.db"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := examine(t.Context(), home, s.URL, time.Now, o, true)
	if err != nil {
		t.Error(err)
	}
	if len(found.Findings) > 0 {
		t.Errorf("the home after it:\n%s", found.Findings)
	}
	left, err := standIn(home, erased)
	if err != nil {
		t.Error(err)
	}
	if len(left) > 0 {
		t.Errorf("erased, and there all the same: %s", strings.Join(left[:min(5, len(left))], ", "))
	}
	if len(o.said) == 0 || len(all.took) == 0 || len(erased) == 0 && length >= time.Minute {
		t.Errorf("%d words were said, %d erased, and there were %d recalls: that proves nothing", len(o.said), len(erased), len(all.took))
	}
	var kept []string
	for i := range parts {
		if len(heaps[i]) < 10 {
			continue
		}
		first, second := leasts(heaps[i])
		if second > first+heapLeeway {
			t.Errorf("of a home that no longer grew, process %d needed %.1f MiB of heap, and then %.1f", i+1, first, second)
		}
		kept = append(kept, fmt.Sprintf("heap at least %.1f, then %.1f, resident %+.1f an hour", first, second, judge.Slope(rss[i])))
	}
	memoryTold := "was not measured, the home was still growing"
	if len(kept) > 0 {
		memoryTold = fmt.Sprintf("in MiB, in the first and the second half of the last %s: %s", stood.Round(time.Second), strings.Join(kept, "; "))
	}
	lost := len(found.Findings[judge.Lost])
	fmt.Printf("\nacknowledged %d words and notes, found %d; %d events, %d items\n", len(o.said)+len(o.noted), len(o.said)+len(o.noted)-lost, found.events, found.items)
	fmt.Printf("checkpoints that came to an end %d, turns left for the last one %d; maintenance %d, sessions erased %d, of their %d words found %d\n", calls["distilled"], status.Backlog, calls["maintained"], calls["erased"], len(erased), len(left))
	fmt.Printf("integrity_check, of %d databases damaged: %d\n", len(databases), len(found.Findings[judge.Damaged]))
	fmt.Printf("resident at most %.0f, %.0f, %.0f MiB\n", peak[0], peak[1], peak[2])
	fmt.Printf("memory of a home that no longer grows, %s\n", memoryTold)
	fmt.Printf("recalls %d, p50 %s, p99 %s, most %s ms; not whole for want of time %d; whole ones that knew the answer %d of %d\n", len(all.took), ms(quantile(all.took, .5)), ms(quantile(all.took, .99)), ms(quantile(all.took, 1)), all.main+all.failed, known, asked)
	fmt.Println(cmp.Or(map[bool]string{true: "something broke, see below"}[t.Failed()], "nothing broke"))
}

// anyWord is one of the words that a process has said; "" for none.
func (l *listened) anyWord() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range 8 { // most lines are of that kind
		if len(l.lines) == 0 {
			return ""
		}
		what, rest, _ := strings.Cut(l.lines[rand.IntN(len(l.lines))], " ")
		if words := strings.Fields(rest); what == "said" && len(words) > 0 {
			return words[rand.IntN(len(words))]
		}
	}
	return ""
}
