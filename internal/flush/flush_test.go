package flush

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is an agent's directory with a log, and a checkpoint that distils all of it.
type desk struct {
	*Queue
	dir       string
	log       *events.Log
	clock     time.Time
	distilled int64
	runs      int
	fails     error         // what the next checkpoints end with
	hangs     chan struct{} // not nil: a checkpoint waits until its context ends
	reads     int           // times that how far was distilled was asked
	mu        sync.Mutex
}

func newDesk(t testing.TB, dir string) *desk {
	sum := sha256.Sum256([]byte("key"))
	red, err := redact.New(sum[:])
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{dir: dir, clock: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	if d.log, err = events.Open(context.Background(), filepath.Join(dir, "events"), events.Options{Now: d.now, NewID: func() string { return ulid.Make().String() }, Redact: red}); err != nil {
		t.Fatal(err)
	}
	d.restart(red)
	return d
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

func (d *desk) later(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(by)
}

// restart makes a queue as another process would.
func (d *desk) restart(red interface{ Text(string) string }) {
	d.Queue = New(Options{
		Agents: func() ([]memory.AgentID, error) { return []memory.AgentID{"default"}, nil },
		Dir:    func(memory.AgentID) (string, error) { return d.dir, nil },
		Logs: func(context.Context, memory.AgentID) (*events.Reader, func(), error) {
			r := events.OpenReader(filepath.Join(d.dir, "events"), zerolog.Nop())
			return r, func() { r.Close() }, nil
		},
		Distilled: func(context.Context, memory.AgentID) (int64, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reads++
			return d.distilled, nil
		},
		Checkpoint: d.checkpoint,
		Idle:       func(memory.AgentID) (time.Duration, error) { return 30 * time.Minute, nil },
		Redact:     red, Now: d.now, Log: zerolog.Nop(),
	})
}

func (d *desk) checkpoint(ctx context.Context, agent memory.AgentID) error {
	d.mu.Lock()
	d.runs++
	err, hangs := d.fails, d.hangs
	d.mu.Unlock()
	if hangs != nil {
		close(hangs)
		<-ctx.Done()
		err = ctx.Err()
	}
	if err == nil {
		last, lastErr := d.log.LastSeq()
		if lastErr != nil {
			return lastErr
		}
		d.mu.Lock()
		d.distilled = last
		d.mu.Unlock()
	}
	return errors.Join(err, d.Settle(ctx, agent, Outcome{Err: err}))
}

// say writes a turn and returns its seq.
func (d *desk) say(t testing.TB, session, run string) int64 {
	t.Helper()
	list, err := d.log.Write(context.Background(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: "hello", SessionID: session, RunID: run, Timestamp: d.now()})
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Seq
}

func (d *desk) ask(t testing.TB, why vitals.Edge, upTo int64, want bool) {
	t.Helper()
	got, err := d.Ask(context.Background(), "default", why, upTo)
	if err != nil || got != want {
		t.Fatalf("Ask(%s, %d) = %t, %v; want %t", why, upTo, got, err, want)
	}
}

func (d *desk) drain(t testing.TB, want bool) {
	t.Helper()
	ran, err := d.Drain(context.Background(), "default")
	if ran != want || err != nil {
		t.Fatalf("Drain = %t, %v; want %t", ran, err, want)
	}
}

func (d *desk) vitals(t testing.TB) vitals.Flush {
	t.Helper()
	s, err := vitals.Read(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Flush == nil {
		return vitals.Flush{}
	}
	return *s.Flush
}

func TestOneEntryUntilItIsDrained(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	first := d.say(t, "s1", "run_1")
	d.ask(t, vitals.EdgeWindow, first, true)
	asked := d.vitals(t).Asked
	d.later(time.Minute)
	d.ask(t, vitals.EdgeNew, first, false)
	second := d.say(t, "s1", "run_2")
	d.ask(t, vitals.EdgeNew, second, true)
	if f := d.vitals(t); f.UpTo != second || f.Why != vitals.EdgeNew || !f.Asked.Equal(asked) || f.State != vitals.FlushQueued || d.Asked("default") != second {
		t.Errorf("the entry is %+v", f)
	}
	d.restart(d.Redact) // the process was killed
	d.drain(t, true)
	d.drain(t, false)
	if f := d.vitals(t); d.runs != 1 || f.State != vitals.FlushDone {
		t.Errorf("%d checkpoints; %+v", d.runs, f)
	}
	// What is distilled is not queued at the next edge, nor by the next process.
	d.ask(t, vitals.EdgeShutdown, second, false)
	d.ask(t, vitals.EdgeWindow, second, false)
	d.restart(d.Redact)
	d.ask(t, vitals.EdgeNew, second, false)
}

// TestMoreWasSaidMeanwhile asks for more while a checkpoint runs that did not see it.
func TestMoreWasSaidMeanwhile(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	d.ask(t, vitals.EdgeNew, d.say(t, "s1", "run_1"), true)
	d.distilled = 1
	late := d.say(t, "s1", "run_2")
	d.ask(t, vitals.EdgeNew, late, true)
	if err := d.Settle(t.Context(), "default", Outcome{Left: 1}); err != nil {
		t.Fatal(err)
	}
	if f := d.vitals(t); f.State != vitals.FlushQueued || f.UpTo != late {
		t.Errorf("the entry is %+v", f)
	}
}

func TestFailureIsKeptWithItsReason(t *testing.T) {
	for name, tc := range map[string]struct {
		out    Outcome
		state  vitals.FlushState
		reason string
	}{
		"spend":     {Outcome{Left: 1, Stopped: "the budget is used up", StoppedBy: "spend"}, vitals.FlushSkipped, vitals.ForSpend},
		"model":     {Outcome{Left: 1, Stopped: "no answer", StoppedBy: "model"}, vitals.FlushSkipped, vitals.ForModel},
		"read only": {Outcome{Err: memory.Errorf(memory.ErrUnavailable, "open: %w", syscall.EROFS)}, vitals.FlushFailed, vitals.ForReadOnly},
		"error":     {Outcome{Err: errors.New(strings.Repeat("é", 400))}, vitals.FlushFailed, vitals.ForError},
		"asked":     {Outcome{Left: 1, Stopped: "1 batches", StoppedBy: "asked"}, vitals.FlushQueued, ""},
		"busy":      {Outcome{Err: memory.Errorf(memory.ErrConflict, "one is running")}, vitals.FlushQueued, ""},
		"stopped":   {Outcome{Err: fmt.Errorf("checkpoint: %w", context.Canceled)}, vitals.FlushQueued, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, t.TempDir())
			defer d.log.Close()
			d.ask(t, vitals.EdgeNew, d.say(t, "s1", "run_1"), true)
			if err := d.Settle(t.Context(), "default", tc.out); err != nil {
				t.Fatal(err)
			}
			f := d.vitals(t)
			if f.State != tc.state || f.Reason != tc.reason || len(f.Detail) > maxDetail {
				t.Fatalf("the entry is %+v", f)
			}
			if tc.reason == "" {
				return
			}
			// Another edge forgets neither the reason nor since when; it is tried again
			// after a while, and not at once.
			next := d.say(t, "s1", "run_2")
			d.ask(t, vitals.EdgeNew, next, true)
			if after := d.vitals(t); after.State != tc.state || after.UpTo != next || !after.Asked.Equal(f.Asked) || after.Reason != f.Reason {
				t.Errorf("after another edge: %+v", after)
			}
			d.drain(t, false)
			d.later(retryAfter)
			d.drain(t, true)
			if after := d.vitals(t); after.State != vitals.FlushDone || after.Reason != "" || after.Detail != "" {
				t.Errorf("after it was tried again: %+v", after)
			}
		})
	}
}

func TestSilentSessionsAreQueued(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	listen := func() {
		t.Helper()
		if err := d.Listen(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
	}
	d.say(t, "imported", "") // no run has made it
	quiet := d.say(t, "quiet", "run_1")
	listen()
	d.later(29 * time.Minute)
	d.say(t, "busy", "run_2")
	listen()
	if f := d.vitals(t); f.UpTo != 0 {
		t.Fatalf("queued too early: %+v", f)
	}
	d.later(time.Minute)
	listen()
	if f := d.vitals(t); f.UpTo != quiet || f.Why != vitals.EdgeIdle {
		t.Fatalf("the entry is %+v, want up to %d", f, quiet)
	}
	d.drain(t, true)
	d.later(24 * time.Hour)
	listen()
	if d.vitals(t).State != vitals.FlushDone || d.runs != 1 {
		t.Errorf("what was distilled along is queued: %+v", d.vitals(t))
	}
	// A clock that was set back, by a day, keeps nothing waiting for a day.
	d.later(-48 * time.Hour)
	d.say(t, "later", "run_3")
	d.later(-24 * time.Hour)
	d.restart(d.Redact)
	listen()
	d.later(31 * time.Minute)
	listen()
	d.drain(t, true)
}

// TestIdleAgentCostsNothing looks at an agent for a simulated month in which
// nothing is said.
func TestIdleAgentCostsNothing(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	d.say(t, "s1", "run_1")
	d.later(time.Hour)
	if err := d.Listen(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	d.drain(t, true)
	before, reads := tree(t, d.dir), d.reads
	for range 30 * 24 {
		d.later(time.Hour)
		if err := d.Listen(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		d.drain(t, false)
	}
	if after := tree(t, d.dir); after != before || d.runs != 1 || d.reads != reads {
		t.Errorf("%d checkpoints, %d looks at the database; files before:\n%s\nafter:\n%s", d.runs, d.reads-reads, before, after)
	}
}

// tree lists files with what tells whether they were written.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var sb strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err == nil {
			fmt.Fprintln(&sb, path, st.Size(), st.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sb.String()
}

// TestServe drains what it finds and what is queued meanwhile, and ends at once
// though the model hangs; what hung is still queued then.
func TestServe(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	d.ask(t, vitals.EdgeShutdown, d.say(t, "s1", "run_1"), true)
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { d.Serve(ctx) })
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	until("what another process queued is not drained", func() bool { return d.vitals(t).State == vitals.FlushDone })
	hanging := make(chan struct{})
	d.mu.Lock()
	d.hangs = hanging
	d.mu.Unlock()
	d.ask(t, vitals.EdgeNew, d.say(t, "s2", "run_2"), true)
	<-hanging
	stop()
	serving.Wait()
	if f := d.vitals(t); f.State != vitals.FlushQueued {
		t.Errorf("the entry is %+v", f)
	}
}

// TestQueueModel checks against a model that an entry is never behind what was
// asked for, and that there is a checkpoint for it only if something was at stake.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		d := newDesk(t, dir)
		defer d.log.Close()
		var last, asked int64 // of the log; of those asked for
		r.Repeat(map[string]func(*rapid.T){
			"say": func(*rapid.T) { last = d.say(t, "s1", "run_1") },
			"ask": func(r *rapid.T) {
				if last == 0 {
					return
				}
				news := last > d.distilled && last > asked
				if got, err := d.Ask(t.Context(), "default", vitals.EdgeNew, last); err != nil || got != news {
					r.Fatalf("Ask(%d) = %t, %v, with %d asked for and %d distilled", last, got, err, asked, d.distilled)
				}
				if news {
					asked = last
				}
			},
			"drain": func(r *rapid.T) {
				waiting, before := asked > d.distilled, d.runs
				if ran, err := d.Drain(t.Context(), "default"); err != nil || ran != waiting || d.runs-before > 1 {
					r.Fatalf("Drain = %t, %v, with %d asked for and %d distilled", ran, err, asked, d.distilled)
				}
			},
			"restart": func(*rapid.T) { d.restart(d.Redact) },
		})
	})
}

// TestLeaveQueuesWhatWasSaidLately ends a server while a session goes on that another
// program told of, beside what was imported.
func TestLeaveQueuesWhatWasSaidLately(t *testing.T) {
	d := newDesk(t, t.TempDir())
	defer d.log.Close()
	d.say(t, "imported", "")
	if err := d.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := d.vitals(t); f.UpTo != 0 {
		t.Fatalf("an import is queued: %+v", f)
	}
	told, err := d.log.Write(t.Context(), memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: "hello", SessionID: "told", Timestamp: d.now(), Metadata: map[string]any{memory.MetaTold: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Listen(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if f := d.vitals(t); f.UpTo != 0 {
		t.Fatalf("queued while it goes on: %+v", f)
	}
	if err := d.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := d.vitals(t); f.UpTo != told[0].Seq || f.Why != vitals.EdgeShutdown || f.State != vitals.FlushQueued {
		t.Errorf("the entry is %+v", f)
	}
	d.drain(t, true)
	if err := d.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := d.vitals(t); f.State != vitals.FlushDone {
		t.Errorf("what is distilled is queued again: %+v", f)
	}
}
