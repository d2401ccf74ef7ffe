//go:build fault && linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/scheduler"
)

// almanac is some days of the whole program's schedule, on a clock that a test may
// turn: processes of two hours at most each serve it one after another. Time goes by as
// fast as the program lets it.
type almanac struct {
	name  string
	start string // what the clock shows at first
	lasts time.Duration
	lives time.Duration // of a process; less than two hours if 0
	turns []turn
	zone  string // of the job that is due once a day, at
	daily string
	days  int // on which it is
}

// turn is a jump of the clock.
type turn struct{ after, by time.Duration }

var almanacs = []almanac{
	{name: "a day", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, daily: "30 3 * * *", days: 1},
	{name: "a day, of processes that end as the hour strikes", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, lives: 2 * time.Hour, daily: "30 3 * * *", days: 1},
	{name: "an hour forth and back", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, turns: []turn{{4*time.Hour + time.Minute, time.Hour}, {9 * time.Hour, -time.Hour}}, daily: "30 3 * * *", days: 1},
	{name: "72 h forth", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, turns: []turn{{5*time.Hour + 7*time.Minute, 72 * time.Hour}}, daily: "30 3 * * *", days: 1},
	{name: "72 h back", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, turns: []turn{{5*time.Hour + 7*time.Minute, -72 * time.Hour}}, daily: "30 3 * * *", days: 1},
	{name: "asleep for 9 h", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, turns: []turn{{8 * time.Hour, 9 * time.Hour}}, daily: "30 3 * * *", days: 1},
	{name: "lost, and set", start: "2026-05-08T00:00:00Z", lasts: 24 * time.Hour, turns: []turn{{4 * time.Hour, -30 * 365 * 24 * time.Hour}, {13 * time.Hour, 30 * 365 * 24 * time.Hour}}, daily: "30 3 * * *", days: 1},
	{name: "summer time begins in the north", start: "2026-03-28T12:00:00Z", lasts: 48 * time.Hour, zone: "Europe/Berlin", daily: "30 2 * * *", days: 2},
	{name: "summer time ends in the north", start: "2026-10-24T12:00:00Z", lasts: 48 * time.Hour, zone: "Europe/Berlin", daily: "30 2 * * *", days: 2},
	{name: "summer time begins in the south", start: "2026-09-05T12:00:00Z", lasts: 48 * time.Hour, zone: "America/Santiago", daily: "0 0 * * *", days: 2},
	{name: "summer time ends in the south", start: "2026-04-04T12:00:00Z", lasts: 48 * time.Hour, zone: "America/Santiago", daily: "30 23 * * *", days: 2},
}

// seasonAgents are two that were talked to, and one that nobody ever did.
var seasonAgents = []memory.AgentID{"busy", "other", "quiet"}

// kept is what came of an almanac.
type kept struct {
	runs, missed, extra, overlapping int
	grown                            int // agents that have more than before, though nobody talked to them
	unrecorded                       int // jobs that hung or panicked and do not say so
	wrong                            []string
}

// tick is a job's run of its test operation.
type tick struct {
	mu      sync.Mutex
	starts  map[string]int
	running map[string]int
	overlap int
}

func (c *tick) enter(key string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts[key]++
	c.running[key]++
	if c.running[key] > 1 {
		c.overlap++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running[key]--
	}
}

type noInput struct{}

type wellDone struct {
	Ok bool `json:"ok"`
}

// keep lets an almanac's days go by in a bubble of fake time.
func (a almanac) keep(t *testing.T, home string) (k kept) {
	wrong := func(format string, args ...any) { // a bubble that fails would end the row before it has told its figures
		k.wrong = append(k.wrong, a.name+": "+fmt.Sprintf(format, args...))
	}
	start, err := time.Parse(time.RFC3339, a.start)
	if err != nil {
		t.Fatal(err)
	}
	begins := time.Now()
	var offset atomic.Int64
	offset.Store(int64(start.Sub(begins)))
	now := func() time.Time { return time.Now().Round(0).Add(time.Duration(offset.Load())) }
	c := &tick{starts: map[string]int{}, running: map[string]int{}}
	process := func(do func(h *house)) {
		t.Helper()
		h := newHouse(now, func(string) string { return "" }, nil)
		app := h.app()
		if err := h.setup(cli.Options{Home: home, Agent: "busy", Set: []string{"log.level=error", "embeddings.provider=off"}}); err != nil {
			t.Fatal(err)
		}
		var catalog op.Catalog
		catalog.Add(app.Catalog.All()...)
		add := func(name string, fn func(context.Context) error) {
			catalog.Add(op.New(name, "For tests.", op.Write, func(ctx context.Context, agent memory.AgentID, _ noInput) (wellDone, error) {
				defer c.enter(string(agent) + "/" + name)()
				return wellDone{true}, fn(ctx)
			}))
		}
		quick := func(context.Context) error { return nil }
		add("test.chatter", quick)
		add("test.daily", quick)
		add("test.panic", func(context.Context) error { panic("on purpose") })
		add("test.hang", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		catalog.Freeze()
		h.schedule.Catalog = &catalog
		born := time.Now()
		h.schedule.Elapsed = func() time.Duration { return time.Since(born) }
		do(h)
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}
	size := func(agent memory.AgentID) (out [2]int) {
		for i, part := range []string{"checkpoints/checkpoint-*.json", "reports/*"} {
			found, err := filepath.Glob(filepath.Join(home, "agents", string(agent), "memory", filepath.FromSlash(part)))
			if err != nil {
				t.Fatal(err)
			}
			out[i] = len(found)
		}
		return out
	}
	process(func(h *house) {
		for _, agent := range seasonAgents {
			if agent == "quiet" {
				if err := os.MkdirAll(filepath.Join(home, "agents", "quiet"), 0o700); err != nil {
					t.Fatal(err)
				}
			} else {
				l := &lifetime{house: h, agent: agent, ack: func(string) error { return nil }}
				if err := l.jot(context.Background(), 3); err != nil {
					t.Fatal(err)
				}
			}
			for _, job := range []scheduler.AddRequest{
				{Name: "chatter", Schedule: "@hourly", Op: "test.chatter"},
				{Name: "daily", Schedule: a.daily, Timezone: a.zone, Op: "test.daily"},
				{Name: "hang", Schedule: "@every 5h", Op: "test.hang", Deadline: "20m"},
				{Name: "panic", Schedule: "@every 5h", Op: "test.panic"},
			} {
				if _, err := h.schedule.Add(context.Background(), agent, job); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	go func() {
		for _, j := range a.turns {
			time.Sleep(j.after - time.Since(begins))
			offset.Add(int64(j.by))
		}
	}()
	var settled map[memory.AgentID][2]int
	for time.Since(begins) <= a.lasts {
		process(func(h *house) {
			ctx, end := context.WithTimeout(context.Background(), min(cmp.Or(a.lives, 113*time.Minute), a.lasts-time.Since(begins)+time.Minute))
			defer end()
			if err := h.schedule.Serve(ctx); err != nil {
				t.Error(err)
			}
		})
		if settled == nil && time.Since(begins) > 8*time.Hour { // the first checkpoint has taken what there was
			settled = map[memory.AgentID][2]int{}
			for _, agent := range seasonAgents {
				settled[agent] = size(agent)
			}
		}
	}
	lasted, jumps := time.Since(begins), len(a.turns)
	for _, agent := range seasonAgents {
		for op, want := range map[string]int{"test.chatter": int(lasted / time.Hour), "test.daily": a.days, "test.hang": int(lasted / (5*time.Hour + 21*time.Minute)), "test.panic": int(lasted / (5*time.Hour + time.Minute))} {
			n, most := c.starts[string(agent)+"/"+op], want+jumps
			if op == "test.hang" || op == "test.panic" {
				most = int(lasted/(5*time.Hour)) + jumps
			}
			k.runs += n
			if n < want || n > most {
				wrong("%s %s ran %d times, want %d to %d", agent, op, n, want, most)
			}
			k.missed += max(0, want-n)
			k.extra += max(0, n-most)
		}
		// Maintenance comes round once where the clock shows its hour, and writes one report.
		if got := size(agent); got[0] != settled[agent][0] || agent == "quiet" && got != [2]int{} {
			k.grown++
			wrong("%s has %v checkpoints and reports, and had %v", agent, got, settled[agent])
		}
	}
	k.overlapping = c.overlap
	process(func(h *house) {
		for _, agent := range seasonAgents {
			list, err := h.schedule.List(context.Background(), agent, struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]scheduler.Outcome{"hang": scheduler.TimedOut, "panic": scheduler.Panicked} {
				i := slices.IndexFunc(list.Jobs, func(j scheduler.JobStatus) bool { return j.Name == name })
				if i < 0 || !slices.ContainsFunc(list.Jobs[i].Runs, func(r scheduler.Run) bool { return r.Outcome == want }) {
					k.unrecorded++
					wrong("the runs of %s/%s do not say %s: %+v", agent, name, want, list.Jobs)
				}
			}
		}
	})
	return k
}

// TestFaultF10 lets the whole program's schedule go by over days on which the clock
// jumps or summer time begins or ends, while one job hangs and one panics; then 90
// days over an agent that was talked to for three of them, and one that nobody
// talked to; then 90 days of the scheduler alone, with jumps. P17, P21, P22.
func TestFaultF10(t *testing.T) {
	r := fault.Begin(t, "F10")
	var sum kept
	some := almanacs[:max(1, min(len(almanacs), r.N(len(almanacs))))]
	for _, a := range some {
		home := filepath.Join(fault.Dir(t), "home")
		synctest.Test(t, func(t *testing.T) {
			k := a.keep(t, home)
			sum.runs, sum.missed, sum.extra, sum.overlapping = sum.runs+k.runs, sum.missed+k.missed, sum.extra+k.extra, sum.overlapping+k.overlapping
			sum.grown, sum.unrecorded, sum.wrong = sum.grown+k.grown, sum.unrecorded+k.unrecorded, append(sum.wrong, k.wrong...)
		})
	}
	for _, what := range sum.wrong {
		t.Error(what)
	}
	r.Count("almanacs of jumps and summer times", len(some))
	r.Count("runs", sum.runs)
	r.Zero("missed", sum.missed)
	r.Zero("too many", sum.extra)
	r.Zero("overlapping", sum.overlapping)
	r.Zero("idle agents that grew", sum.grown)
	r.Zero("hung or panicked jobs that do not say so", sum.unrecorded)

	wrong := 0
	if !t.Run("season", TestSeason) {
		wrong++
	}
	r.Count("days", 90)
	r.Zero("growth of idle agents, messages sent twice", wrong)

	cmd := exec.Command("go", "test", "-tags=sqlite_fts5", "-count=1", "-v", "-run=^(TestAcceleratedTime|TestOneHungJobHangsAlone|TestJumpsWithinOneProcess)$", "./internal/scheduler")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	passed := len(regexp.MustCompile(`(?m)^    --- PASS: `).FindAll(out, -1))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || passed == 0 {
		t.Errorf("the scheduler's own days: %v\n%s", err, out)
	}
	failed := strings.Count(string(out), "--- FAIL: ")
	if failed > 0 || err != nil {
		t.Errorf("the scheduler's own days: %v\n%s", err, out)
	}
	r.Count("of the scheduler alone, with jumps", passed)
	r.Zero("of them wrong", failed)
}
