package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stars hides one word.
type stars struct{}

func (stars) Text(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }

func (stars) Asks(string) string { return "" }

func (r stars) Answer(_, s string) string { return r.Text(s) }

func (r stars) Value(v any) any {
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = r.Value(e)
		}
		return out
	}
	return v
}

// start is one start of a job, in real time since the test began.
type start struct {
	at   time.Duration
	wall time.Time
}

// home is a home whose processes come and go, on a clock that jumps.
type home struct {
	t       *testing.T
	dir     string
	agents  []memory.AgentID
	auto    Auto
	catalog op.Catalog
	offset  atomic.Int64 // of the wall clock, from real time
	began   time.Time
	poll    time.Duration // 0 for the usual
	deaf    chan struct{} // ends calls of test.deaf, which hear nothing else

	mu      sync.Mutex
	starts  map[string][]start // by agent/operation
	now     map[string]int     // running at this moment
	overlap int
	said    []string
}

type noInput struct{}

type done struct {
	Ok bool `json:"ok"`
}

// quickDir returns a directory in memory where the system has one: what is tested
// here is the clock, and 90 days of it hold thousands of writes that wait for the
// disk.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "scheduler")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func newHome(t *testing.T) *home {
	h := &home{t: t, dir: quickDir(t), agents: []memory.AgentID{"a"}, began: time.Now(), deaf: make(chan struct{}),
		starts: map[string][]start{}, now: map[string]int{}}
	add := func(name string, effect op.Effect, fn func(ctx context.Context) error) {
		h.catalog.Add(op.New(name, "For tests.", effect, func(ctx context.Context, agent memory.AgentID, _ noInput) (done, error) {
			leave := h.enter(string(agent) + "/" + name)
			defer leave()
			return done{true}, fn(ctx)
		}))
	}
	quick := func(context.Context) error { return nil }
	add("memory.checkpoint", op.Write, quick)
	add("memory.maintenance", op.Write, quick)
	add("test.chatter", op.Write, quick)
	add("test.erase", op.Destroy, quick)
	add("test.fail", op.Write, func(context.Context) error { return memory.Errorf(memory.ErrConflict, "hunter2 is in use") })
	add("test.panic", op.Write, func(context.Context) error { panic("hunter2 everywhere") })
	add("test.hang", op.Write, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	add("test.deaf", op.Write, func(context.Context) error {
		<-h.deaf
		return nil
	})
	add("test.slow", op.Write, func(ctx context.Context) error {
		if !sleep(ctx, time.Minute, nil) {
			return ctx.Err()
		}
		return nil
	})
	h.catalog.Add(op.New("test.echo", "For tests.", op.Read, func(_ context.Context, _ memory.AgentID, in struct {
		Text string `json:"text"`
	}) (map[string]string, error) {
		return map[string]string{"text": in.Text}, nil
	}))
	h.catalog.Freeze()
	return h
}

func (h *home) enter(key string) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts[key] = append(h.starts[key], start{time.Since(h.began), h.wall()})
	h.now[key]++
	if h.now[key] > 1 {
		h.overlap++
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now[key]--
	}
}

func (h *home) wall() time.Time { return time.Now().Add(time.Duration(h.offset.Load())) }

func (h *home) jump(by time.Duration) { h.offset.Add(int64(by)) }

func (h *home) CheckMessage(message string) error {
	if strings.HasPrefix(message, "/tool no.such") {
		return memory.Errorf(memory.ErrNotFound, "there is no operation no.such")
	}
	return nil
}

func (h *home) Say(ctx context.Context, agent memory.AgentID, session, message string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, fmt.Sprintf("%s %s %s: %s", agent, session, memory.Actor(ctx), message))
	return "fine", nil
}

func none[T any](context.Context, memory.AgentID) (T, func(), error) {
	var zero T
	return zero, nil, memory.ErrNotFound
}

// process returns a scheduler as a new process of the home has it.
func (h *home) process() *Scheduler {
	began := time.Now()
	s := New(Options{Dir: func() string { return filepath.Join(h.dir, "scheduler") }, Now: h.wall, Elapsed: func() time.Duration { return time.Since(began) },
		Catalog: &h.catalog, Talker: h, Redact: stars{}, Deadline: func() time.Duration { return 10 * time.Minute },
		Agents: func() ([]memory.AgentID, error) { return h.agents, nil },
		Auto:   func(memory.AgentID) (Auto, error) { return h.auto, nil },
		Reads:  none[*events.Reader], Writes: none[*events.Log], Audit: none[*runlog.Store], Log: zerolog.Nop()})
	if h.poll > 0 {
		s.poll = h.poll
	}
	return s
}

// live lets a process serve for a while.
func (h *home) live(d time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := h.process().Serve(ctx); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) add(agent memory.AgentID, in AddRequest) {
	h.t.Helper()
	if _, err := h.process().Add(context.Background(), agent, in); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) job(agent memory.AgentID, name string) JobStatus {
	h.t.Helper()
	l, err := h.process().List(context.Background(), agent, struct{}{})
	if err != nil {
		h.t.Fatal(err)
	}
	i := slices.IndexFunc(l.Jobs, func(j JobStatus) bool { return j.Name == name })
	if i < 0 {
		h.t.Fatalf("no job %s in %+v", name, l)
	}
	return l.Jobs[i]
}

func (h *home) count(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts[key])
}

// widest returns the longest real time between two starts, from the beginning
// and to now included.
func (h *home) widest(key string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, most := time.Duration(0), time.Duration(0)
	for _, s := range h.starts[key] {
		most, last = max(most, s.at-last), s.at
	}
	return max(most, time.Since(h.began)-last)
}

// TestAcceleratedTime lets processes of two hours each run cron for a day and for
// 90, while the clock jumps, one job hangs and one panics.
func TestAcceleratedTime(t *testing.T) {
	const day = 24 * time.Hour
	type jump struct{ at, by time.Duration }
	for name, tc := range map[string]struct {
		days  int
		jumps []jump
	}{
		"a day":                                 {1, nil},
		"a day, an hour forth and back":         {1, []jump{{3*time.Hour + time.Minute, time.Hour}, {9 * time.Hour, -time.Hour}}},
		"a day, 72 h forth":                     {1, []jump{{5*time.Hour + 7*time.Minute, 3 * day}}},
		"a day, 72 h back":                      {1, []jump{{5*time.Hour + 7*time.Minute, -3 * day}}},
		"a day, back a little before a restart": {1, []jump{{5*time.Hour + 59*time.Minute, -3 * time.Hour}}},
		"a day, asleep for 9 h":                 {1, []jump{{8 * time.Hour, 9 * time.Hour}}},
		"a day, the clock lost and set":         {1, []jump{{4 * time.Hour, -30 * 365 * day}, {13 * time.Hour, 30 * 365 * day}}},
		"90 days": {90, []jump{{10 * day, 3 * day}, {20*day + time.Hour, -3 * day}, {40 * day, time.Hour}, {41 * day, -time.Hour},
			{60*day + 90*time.Minute, 9 * time.Hour}, {70 * day, -30 * 365 * day}, {70*day + time.Hour, 30 * 365 * day}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.days > 1 && testing.Short() {
				t.Skip("90 days take some seconds")
			}
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHome(t)
				h.agents, h.auto = []memory.AgentID{"a", "b", "c"}, Auto{Checkpoint: true, Maintenance: true}
				chatter := "@hourly"
				if tc.days > 1 {
					chatter, h.poll = "0 */8 * * *", 5*time.Minute
				}
				for _, a := range h.agents {
					h.add(a, AddRequest{Name: "chatter", Schedule: chatter, Op: "test.chatter"})
				}
				h.add("a", AddRequest{Name: "hang", Schedule: "@every 5h", Op: "test.hang", Deadline: "20m"})
				h.add("b", AddRequest{Name: "panic", Schedule: "@every 5h", Op: "test.panic"})
				go func() {
					for _, j := range tc.jumps {
						time.Sleep(j.at - time.Since(h.began))
						h.jump(j.by)
					}
				}()
				for range tc.days * 12 {
					h.live(2 * time.Hour)
				}
				h.judge(time.Duration(tc.days)*day, len(tc.jumps))
			})
		})
	}
}

// judge checks that no job missed a run, and that none has more than one too many
// for each jump.
func (h *home) judge(lasted time.Duration, jumps int) {
	h.t.Helper()
	const late = 10 * time.Minute // a run that hangs until a restart, and the look after it
	for _, iv := range []struct {
		key   string
		every time.Duration
	}{{"a/memory.checkpoint", 6 * time.Hour}, {"b/memory.checkpoint", 6 * time.Hour}, {"c/memory.checkpoint", 6 * time.Hour},
		{"a/test.hang", 5 * time.Hour}, {"b/test.panic", 5 * time.Hour}} {
		n, least := h.count(iv.key), int(lasted/(iv.every+time.Minute))
		most := int(lasted/iv.every) + jumps
		if n < least || n > most || h.widest(iv.key) > iv.every+late {
			h.t.Errorf("%s ran %d times, at most %v apart; want %d to %d times, every %v", iv.key, n, h.widest(iv.key), least, most, iv.every)
		}
	}
	if n := h.count("a/memory.maintenance"); n < int(lasted/(7*24*time.Hour)) || n > int(lasted/(7*24*time.Hour))+1+jumps {
		h.t.Errorf("maintenance ran %d times in %v", n, lasted)
	}
	for _, a := range h.agents {
		key := string(a) + "/test.chatter"
		n, want := h.count(key), int(lasted/time.Hour)
		if lasted > 24*time.Hour {
			want = int(lasted / (8 * time.Hour))
		}
		if n < want-1 || n > want+jumps {
			h.t.Errorf("%s ran %d times, want %d and one more for each of %d jumps at most", key, n, want, jumps)
		}
	}
	if h.overlap > 0 {
		h.t.Errorf("%d runs overlapped", h.overlap)
	}
}

func TestOneHungJobHangsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.add("a", AddRequest{Name: "deaf", Schedule: "@every 1m", Op: "test.deaf", Deadline: "30s"})
		h.add("a", AddRequest{Name: "fine", Schedule: "@every 1s", Op: "test.chatter"})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- h.process().Serve(ctx) }()
		time.Sleep(10*time.Minute + 30*time.Second)
		j := h.job("a", "deaf")
		if h.count("a/test.deaf") != 1 || !j.Stuck || j.Running != nil || j.Overdue || len(j.Runs) != 1 || j.Runs[0].Outcome != TimedOut {
			t.Errorf("the deaf job ran %d times and is %+v", h.count("a/test.deaf"), j)
		}
		if j.Skipped < 8 || j.Skipped > 10 {
			t.Errorf("it was skipped %d times in 9 minutes", j.Skipped)
		}
		if n := h.count("a/test.chatter"); n < 600 {
			t.Errorf("the healthy job ran %d times in ten minutes, want about 630", n)
		}
		if _, err := h.process().Run(ctx, "a", RunRequest{Name: "deaf"}); !errors.Is(err, memory.ErrConflict) {
			t.Errorf("running it by hand = %v, want conflict", err)
		}
		h.deaf <- struct{}{} // it returns at last
		time.Sleep(time.Minute)
		if j := h.job("a", "deaf"); j.Stuck || h.count("a/test.deaf") != 2 {
			t.Errorf("after it returned it ran %d times and is %+v", h.count("a/test.deaf"), j)
		}
		cancel()
		if err := <-ended; err != nil { // Serve does not wait for it for ever
			t.Error(err)
		}
		close(h.deaf)
		synctest.Wait() // it writes down that it has returned
	})
}

// TestJumpsWithinOneProcess checks when, in real time, jobs start around a jump
// of the clock that a single process lives through. The clock begins at midnight.
func TestJumpsWithinOneProcess(t *testing.T) {
	const h, m = time.Hour, time.Minute
	for name, tc := range map[string]struct {
		schedule string
		at, by   time.Duration
		want     []time.Duration // of the first starts
	}{
		"interval, no jump":        {"@every 6h", 0, 0, []time.Duration{6 * h, 12 * h, 18 * h}},
		"interval, back":           {"@every 6h", 5*h + 10*m, -3 * h, []time.Duration{6 * h, 12 * h, 18 * h}},
		"interval, far back":       {"@every 6h", 7 * h, -72 * h, []time.Duration{6 * h, 12 * h, 18 * h}},
		"interval, asleep":         {"@every 6h", 1 * h, 9 * h, []time.Duration{1 * h, 7 * h, 13 * h}},
		"interval, a little forth": {"@every 6h", 1 * h, 2 * h, []time.Duration{4 * h, 10 * h, 16 * h}},
		"hourly, far back":         {"@hourly", 3*h + 30*m, -72 * h, []time.Duration{1 * h, 2 * h, 3 * h, 4 * h, 5 * h}},
		"hourly, far forth":        {"@hourly", 3*h + 30*m, 72 * h, []time.Duration{1 * h, 2 * h, 3 * h, 3*h + 30*m, 4 * h}},
		"daily, back before it":    {"0 3 * * *", 1 * h, -1 * h, []time.Duration{3 * h, 4 * h, 28 * h}},
		"daily, back over it":      {"0 3 * * *", 4 * h, -2 * h, []time.Duration{3 * h, 27 * h, 29 * h}},
		"daily, asleep over it":    {"0 3 * * *", 1 * h, 9 * h, []time.Duration{1 * h, 18 * h, 42 * h}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hm := newHome(t)
				hm.add("a", AddRequest{Name: "job", Schedule: tc.schedule, Op: "test.chatter"})
				go func() {
					time.Sleep(tc.at)
					hm.jump(tc.by)
				}()
				hm.live(tc.want[len(tc.want)-1] + m)
				var got []time.Duration
				for _, s := range hm.starts["a/test.chatter"] {
					got = append(got, s.at.Truncate(m)) // it looks at the clock twice a minute
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("it started after %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestMissedRunsAreMadeUpForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.add("a", AddRequest{Name: "hourly", Schedule: "@hourly", Op: "test.chatter"})
		h.add("a", AddRequest{Name: "paused", Schedule: "@hourly", Op: "test.slow"})
		ctx := context.Background()
		if _, err := h.process().Pause(ctx, "a", NameRequest{"paused"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(72*time.Hour + 30*time.Minute) // nobody serves
		if j := h.job("a", "hourly"); !j.Overdue || j.Next == nil {
			t.Errorf("after three days the job is %+v, want overdue", j)
		}
		h.live(10 * time.Minute)
		if n := h.count("a/test.chatter"); n != 1 {
			t.Errorf("it ran %d times, want once", n)
		}
		if _, err := h.process().Resume(ctx, "a", NameRequest{"paused"}); err != nil {
			t.Fatal(err)
		}
		h.live(10 * time.Minute)
		if n := h.count("a/test.slow"); n != 0 {
			t.Errorf("the resumed job ran %d times for what it missed", n)
		}
		h.live(30 * time.Minute)
		if a, b := h.count("a/test.chatter"), h.count("a/test.slow"); a != 2 || b != 1 {
			t.Errorf("after the hour they ran %d and %d times, want 2 and 1", a, b)
		}
	})
}

// TestCrashDoesNotRunTwice leaves a run on disk as a process that died in it does.
func TestCrashDoesNotRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		ctx := context.Background()
		h.add("a", AddRequest{Name: "hourly", Schedule: "@hourly", Op: "test.chatter"})
		time.Sleep(time.Hour)
		died := h.process()
		run := Run{Due: died.wall(), Started: died.wall(), Trigger: BySchedule}
		_, unlock, err := died.claim(ctx, &Job{Agent: "a", Name: "hourly"}, run, func(*Job) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if j := h.job("a", "hourly"); j.Running == nil || j.Overdue {
			t.Fatalf("while it runs the job is %+v", j)
		}
		if err := unlock(); err != nil { // as the system does with the locks of the dead
			t.Fatal(err)
		}
		h.live(30 * time.Minute)
		if j := h.job("a", "hourly"); h.count("a/test.chatter") != 0 || j.Running != nil || len(j.Runs) != 1 || j.Runs[0].Outcome != Interrupted {
			t.Errorf("it ran %d more times and is %+v", h.count("a/test.chatter"), j)
		}
		h.live(time.Hour)
		if n := h.count("a/test.chatter"); n != 1 {
			t.Errorf("it ran %d times in the next hour, want once", n)
		}
	})
}

func TestLeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.add("a", AddRequest{Name: "often", Schedule: "@every 10s", Op: "test.chatter"})
		var stops []context.CancelFunc
		var wg sync.WaitGroup
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			stops = append(stops, cancel)
			wg.Go(func() {
				if err := h.process().Serve(ctx); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first one holds the lease
		}
		for _, stop := range stops {
			time.Sleep(time.Minute)
			if l, err := h.process().List(context.Background(), "a", struct{}{}); err != nil || !l.Serving {
				t.Errorf("List = %+v, %v, want serving", l, err)
			}
			stop()
		}
		wg.Wait()
		if n, gap := h.count("a/test.chatter"), h.widest("a/test.chatter"); n < 16 || n > 18 || gap > 15*time.Second || h.overlap > 0 {
			t.Errorf("three processes ran it %d times, at most %v apart, %d at once", n, gap, h.overlap)
		}
		if l, err := h.process().List(context.Background(), "a", struct{}{}); err != nil || l.Serving {
			t.Errorf("List = %+v, %v, want nobody serving", l, err)
		}
	})
}

func TestStopEndsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.add("a", AddRequest{Name: "hang", Schedule: "@every 1m", Op: "test.hang"})
		h.live(90 * time.Second)
		j := h.job("a", "hang")
		if j.Running != nil || len(j.Runs) != 1 || j.Runs[0].Outcome != Stopped || time.Since(h.began) > 92*time.Second {
			t.Errorf("after %v the job is %+v", time.Since(h.began), j)
		}
	})
}

func TestOutcomesAndHistory(t *testing.T) {
	ctx := context.Background()
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		s := h.process()
		for name, in := range map[string]AddRequest{
			"ok":       {Op: "test.echo", Input: map[string]any{"text": "hunter2"}},
			"failed":   {Op: "test.fail"},
			"panic":    {Op: "test.panic"},
			"deadline": {Op: "test.hang", Deadline: "5s"},
		} {
			in.Name, in.Schedule = name, "@hourly"
			h.add("a", in)
			for range RunsKept + 2 {
				out, err := s.Run(ctx, "a", RunRequest{Name: name})
				if len(out.Runs) != 1 || string(out.Runs[0].Outcome) != name || (err == nil) != (name == "ok") {
					t.Fatalf("running %s = %+v, %v", name, out, err)
				}
			}
			j := h.job("a", name)
			if len(j.Runs) != RunsKept || j.Runs[0].Trigger != ByHand || j.Runs[0].Ended == nil {
				t.Errorf("history of %s = %+v", name, j.Runs)
			}
			if text, err := json.Marshal(j); err != nil || strings.Contains(string(text), "hunter2") {
				t.Errorf("job %s holds the secret: %s, %v", name, text, err)
			}
		}
	})
}

func TestMessageIsSaidInItsAddersName(t *testing.T) {
	h := newHome(t)
	s := h.process()
	byModel := memory.WithActor(context.Background(), memory.OriginAssistant)
	if _, err := s.Add(byModel, "a", AddRequest{Name: "hello", Schedule: "@hourly", Message: "hi hunter2"}); err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(context.Background(), "a", RunRequest{Name: "hello"})
	if err != nil || out.Runs[0].Detail != "fine" {
		t.Errorf("Run = %+v, %v", out, err)
	}
	if want := "a cron:hello assistant: hi ***"; len(h.said) != 1 || h.said[0] != want {
		t.Errorf("said %q, want %q", h.said, want)
	}
}
