//go:build fault && linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// What a recall may take, and the grace that a machine has to wake a thread.
const (
	recallDeadline = 50 * time.Millisecond
	recallGrace    = 5 * time.Millisecond
)

// recalledFiles are the databases that recall reads.
var recalledFiles = []string{"memory.db", "archive.db"}

// onDatabases opens those databases beside whoever else has them open, and does
// something with each, again and again.
func onDatabases(dir, options string, do func(ctx context.Context, db *sql.Conn) error) error {
	ctx := context.Background()
	var list []*sql.Conn
	for _, name := range recalledFiles {
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "agents", "default", "memory", name)+"?_busy_timeout=60000"+options)
		if err != nil {
			return err
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		list = append(list, conn)
	}
	for {
		for _, db := range list {
			if err := do(ctx, db); err != nil {
				return err
			}
		}
	}
}

// vacuumPart writes the databases anew until it is killed.
func vacuumPart(dir string, ack func(string) error) error {
	return onDatabases(dir, "", func(ctx context.Context, db *sql.Conn) error {
		if _, err := db.ExecContext(ctx, `VACUUM`); err != nil {
			return err
		}
		return ack("vacuumed")
	})
}

// exclusivePart locks each database for most of the time until it is killed.
func exclusivePart(dir string, ack func(string) error) error {
	return onDatabases(dir, "", func(ctx context.Context, db *sql.Conn) error {
		if _, err := db.ExecContext(ctx, `BEGIN EXCLUSIVE`); err != nil {
			return err
		}
		if err := ack("locked"); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		_, err := db.ExecContext(ctx, `ROLLBACK`)
		return err
	})
}

// alonePart keeps every other process out of the databases until it is killed.
func alonePart(dir string, ack func(string) error) error {
	return onDatabases(dir, "&_locking_mode=EXCLUSIVE", func(ctx context.Context, db *sql.Conn) error {
		if _, err := db.ExecContext(ctx, `BEGIN EXCLUSIVE; COMMIT`); err != nil {
			return err
		}
		if err := ack("alone"); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		return nil
	})
}

// lateness is how late a thread is that does nothing but sleep: what the machine
// itself adds to whatever is measured on it.
type lateness struct {
	stop atomic.Bool
	done chan struct{}
	all  []delay
}

type delay struct {
	at time.Time // when it woke
	by time.Duration
}

func watchLateness() *lateness {
	l := &lateness{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread()
		const nap = time.Millisecond
		for !l.stop.Load() {
			began := time.Now()
			time.Sleep(nap)
			now := time.Now()
			l.all = append(l.all, delay{now, now.Sub(began) - nap})
		}
	}()
	return l
}

func (l *lateness) end() {
	l.stop.Store(true)
	<-l.done
}

// during is how late the thread was altogether between two moments. To be asked
// after end only.
func (l *lateness) during(from, to time.Time) time.Duration {
	sum := time.Duration(0)
	first, _ := slices.BinarySearchFunc(l.all, from, func(x delay, t time.Time) int { return x.at.Compare(t) })
	for _, x := range l.all[first:] {
		sum += max(0, x.by)
		if x.at.After(to) {
			break
		}
	}
	return sum
}

// recalled is what came of many recalls.
type recalled struct {
	mu                           sync.Mutex
	took                         []time.Duration
	over                         []span
	whole, main, nothing, failed int
	why                          map[string]int // of failed
}

type span struct{ from, to time.Time }

// ask recalls n times in each of some goroutines.
func (a *recalled) ask(ctx context.Context, rec *recall.Service, n, callers int) {
	var all sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(n))
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				text := strings.Join([]string{word(rand.Uint64N(50)), word(500 + rand.Uint64N(1000)), word(3000 + rand.Uint64N(3000))}, " ")
				began := time.Now()
				b := rec.Block(ctx, "default", recall.Request{Text: text, Session: "s1"})
				a.take(began, time.Now(), b)
			}
		})
	}
	all.Wait()
}

func (a *recalled) take(from, to time.Time, b recall.Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, to.Sub(from))
	if to.Sub(from) > recallDeadline+recallGrace {
		a.over = append(a.over, span{from, to})
	}
	switch {
	case b.Degraded == "" && b.Text == "":
		a.nothing++
	case b.Degraded == "":
		a.whole++
	case b.Text != "":
		a.main++
	default:
		a.failed++
		if a.why == nil {
			a.why = map[string]int{}
		}
		a.why[b.Degraded]++
	}
}

// quantile returns the duration below which that share of a list is; it sorts the
// list.
func quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(float64(len(list))*share))]
}

// fill stores items as an import would, and turns that nobody has distilled.
func (l *lifetime) fill(ctx context.Context, items, turns int) error {
	store, release, err := l.house.items.write(ctx, l.agent)
	if err != nil {
		return err
	}
	defer release()
	sentence := sentences()
	for n := 0; n < items; {
		in := working.Imported{Why: "much"}
		for range min(2000, items-n) {
			n++
			in.Put = append(in.Put, working.Entry{Item: memory.Item{ID: fmt.Sprintf("mem_%d", n), Kind: memory.KindFact, Title: "about " + word(uint64(n)), Content: sentence(),
				Importance: 3, Confidence: .9, Status: memory.Active, Trust: memory.TrustUser}})
		}
		if _, err := store.Import(ctx, in); err != nil {
			return err
		}
	}
	log, giveBack, err := l.house.logs.write(ctx, l.agent)
	if err != nil {
		return err
	}
	defer giveBack()
	for range turns {
		if _, err := log.Append(ctx, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s3", Text: sentence()}); err != nil && !errors.Is(err, events.ErrBackpressure) {
			return err
		}
	}
	return log.Flush(ctx)
}

// TestFaultF11 recalls while others distil, vacuum, lock, stop, and take the files
// away. P7: it keeps its deadline, and no turn fails. Whatever takes longer is told;
// what fails the row is a recall that was later than a thread which only sleeps.
func TestFaultF11(t *testing.T) {
	r := fault.Begin(t, "F11")
	ctx := t.Context()
	s := judge.NewServer(t)
	home := filepath.Join(fault.Dir(t), "home")
	began := time.Now()
	open := func() *lifetime {
		l, err := newLifetime(home, s.URL, time.Now, func(string) error { return nil }, fmt.Sprint("recall.deadline_ms=", recallDeadline.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	closed := func(l *lifetime) {
		if err := l.house.close(); err != nil {
			t.Logf("close: %v", err) // its files may be gone
		}
	}
	l := open()
	items := r.N(100_000)
	if err := l.fill(ctx, items, r.N(10_000)); err != nil {
		t.Fatal(err)
	}
	if _, release, err := l.house.followed(ctx, l.agent); err != nil {
		t.Fatal(err)
	} else {
		release()
	}
	t.Logf("filled after %s", time.Since(began).Round(time.Second))
	start := func(part string) *judge.Child {
		return judge.StartChild(t, part, home, lifeModel+"="+s.URL, lifeSlower+"=10")
	}
	watch := watchLateness()
	turns, failed := 0, []error{}
	var all, over = []time.Duration{}, []span{}
	whole, main, nothing, empty := 0, 0, 0, 0
	phases := []struct {
		name string
		part string
		do   func(c *judge.Child) (undo func())
	}{
		{"while nothing else happens", "", nil},
		{"beside chats, checkpoints, imports and maintenance", "life", nil},
		{"beside VACUUM", "vacuum", nil},
		{"beside an exclusive lock", "exclusive", nil},
		{"beside the holder of a lock that is stopped", "exclusive", func(c *judge.Child) func() {
			c.Signal(syscall.SIGSTOP)
			return func() { c.Signal(syscall.SIGCONT) }
		}},
		{"beside a process that keeps all others out", "alone", func(*judge.Child) func() {
			l = open() // what was open would keep it from that
			return func() {}
		}},
		{"over files that were deleted", "", func(*judge.Child) func() {
			for _, name := range recalledFiles {
				for _, suffix := range []string{"", "-wal", "-shm"} {
					if err := os.Remove(filepath.Join(home, "agents", "default", "memory", name+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				}
			}
			return func() {}
		}},
	}
	for i, p := range phases {
		if p.part == "alone" {
			closed(l)
		}
		var c *judge.Child
		if p.part != "" {
			c = start(p.part)
			if _, lives := c.Ack(); !lives {
				t.Fatalf("%s: %s", p.name, c.Err())
			}
		}
		undo := func() {}
		if p.do != nil {
			undo = p.do(c)
		}
		if p.part == "life" {
			go func() { // it must not wait for the one who reads
				for more := true; more; {
					_, more = c.Ack()
				}
			}()
		}
		a := &recalled{}
		n := r.N(20_000)*(i+1)/len(phases) - r.N(20_000)*i/len(phases)
		callers := 2
		if p.part == "alone" { // all of them only wait
			callers = 8
		}
		a.ask(ctx, l.house.recalls, n, callers)
		for range r.N(10) { // and as a turn asks
			turns++
			if err := l.talk(ctx); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			}
		}
		undo()
		if c != nil {
			if _, err := c.End(); err != nil {
				t.Errorf("%s: %v\n%s", p.name, err, c.Err())
			}
		}
		if p.part == "alone" { // to have open what is deleted next
			closed(l)
			l = open()
			l.house.recalls.Block(ctx, l.agent, recall.Request{Text: "anything", Session: "s1"})
		}
		all, over = append(all, a.took...), append(over, a.over...)
		whole, main, nothing, empty = whole+a.whole, main+a.main, nothing+a.nothing, empty+a.failed
		t.Logf("%s: %d recalls, p50 %s, p99 %s, max %s, %d over; %d whole, %d in part, %d empty (%d for want of relevance) %v; after %s", p.name, len(a.took), quantile(a.took, .5).Round(10*time.Microsecond),
			quantile(a.took, .99).Round(10*time.Microsecond), quantile(a.took, 1).Round(10*time.Microsecond), len(a.over), a.whole, a.main, a.failed+a.nothing, a.nothing, a.why, time.Since(began).Round(time.Second))
	}
	closed(l)
	watch.end()
	unlike := 0 // what the machine does not explain
	for _, o := range over {
		if watch.during(o.from, o.to) < o.to.Sub(o.from)-recallDeadline-recallGrace {
			unlike++
		}
	}
	naps := make([]time.Duration, len(watch.all))
	for i, x := range watch.all {
		naps[i] = x.by
	}
	for _, err := range failed {
		t.Error(err)
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	r.Count("items", items)
	r.AtLeast("recalls", float64(len(all)), float64(r.N(20_000)), "")
	r.Count("p50", ms(quantile(all, .5)))
	r.Count("p99", ms(quantile(all, .99)))
	r.Count("max", ms(quantile(all, 1)))
	r.Count("whole, in part, empty, nothing relevant", fmt.Sprintf("%d, %d, %d, %d", whole, main, empty, nothing))
	r.Count("lateness of a thread that only sleeps, p99 and max", ms(quantile(naps, .99))+", "+ms(quantile(naps, 1)))
	r.Count("over 55 ms", len(over))
	r.Zero("of these, while that thread was less late", unlike)
	r.Count("turns", turns)
	r.Zero("errors that reached a turn", len(failed))
}
