package spend

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// clock is a clock that tests set.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func at(s string) *clock {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return &clock{t}
}

func always(l Limits) func(memory.AgentID) Limits {
	return func(memory.AgentID) Limits { return l }
}

func open(t testing.TB, l Limits, c *clock) (*Ledger, string) {
	path := filepath.Join(t.TempDir(), "home", "spend.json")
	return New(path, always(l), c.now), path
}

func mustReserve(t *testing.T, l *Ledger, agent memory.AgentID, tokens int) *Ticket {
	t.Helper()
	ticket, err := l.Reserve(t.Context(), agent, tokens)
	if err != nil {
		t.Fatalf("Reserve(%s, %d): %v", agent, tokens, err)
	}
	return ticket
}

func today(t *testing.T, l *Ledger, agent memory.AgentID) Used {
	t.Helper()
	day, err := l.Today(agent)
	if err != nil {
		t.Fatal(err)
	}
	return day.Used
}

func TestReserveAndSettle(t *testing.T) {
	c := at("2026-11-20T23:59:00Z")
	l, path := open(t, Limits{DailyTokens: 1000, DailyCalls: 3}, c)
	if got := today(t, l, "a"); got != (Used{}) {
		t.Errorf("before anything: %+v", got)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("reading has created the home")
	}

	first := mustReserve(t, l, "a", 600)
	if got, want := today(t, l, "a"), (Used{Calls: 1, Reserved: 600}); got != want {
		t.Errorf("reserved: %+v, want %+v", got, want)
	}
	_, err := l.Reserve(t.Context(), "a", 500)
	var over *OverError
	if !errors.As(err, &over) || !errors.Is(err, memory.ErrDenied) || over.What != "tokens" || memory.HintOf(err) != "raise spend.daily_tokens or set it to 0 for no limit" {
		t.Errorf("over the tokens: %v", err)
	}
	if want := "2026-11-21T00:00:00Z"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say when it resets (%s)", err, want)
	}
	if err := first.Settle(t.Context(), 100, 50); err != nil {
		t.Fatal(err)
	}
	if err := first.Settle(t.Context(), 100, 50); !errors.Is(err, memory.ErrInternal) {
		t.Errorf("settled twice: %v", err)
	}
	mustReserve(t, l, "a", 850)
	mustReserve(t, l, "b", 1000)
	mustReserve(t, l, "a", 0)
	if _, err := l.Reserve(t.Context(), "a", 0); !errors.As(err, &over) || over.What != "calls" {
		t.Errorf("over the calls: %v", err)
	}
	if got, want := today(t, l, "a"), (Used{Calls: 3, TokensIn: 100, TokensOut: 50, Reserved: 850}); got != want {
		t.Errorf("at the end of the day: %+v, want %+v", got, want)
	}

	c.Time = c.Add(2 * time.Minute)
	if got := today(t, l, "a"); got != (Used{}) {
		t.Errorf("the next day: %+v", got)
	}
	mustReserve(t, l, "a", 1000)
}

func TestSettleBelongsToTheDayOfTheCall(t *testing.T) {
	c := at("2026-11-20T23:59:59Z")
	l, _ := open(t, Limits{}, c)
	ticket := mustReserve(t, l, "a", 10)
	c.Time = c.Add(time.Minute)
	if err := ticket.Settle(t.Context(), 7, 1); err != nil {
		t.Fatal(err)
	}
	if got := today(t, l, "a"); got != (Used{}) {
		t.Errorf("the new day: %+v", got)
	}
	c.Time = c.Add(-time.Minute)
	if got, want := today(t, l, "a"), (Used{Calls: 1, TokensIn: 7, TokensOut: 1}); got != want {
		t.Errorf("the day of the call: %+v, want %+v", got, want)
	}
}

func TestFileIsPrivateAndBounded(t *testing.T) {
	c := at("2026-01-01T12:00:00Z")
	l, path := open(t, Limits{}, c)
	for range 100 {
		mustReserve(t, l, "a", 1)
		c.Time = c.Add(24 * time.Hour)
	}
	b, err := l.read()
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Days) > keepDays+1 {
		t.Errorf("%d days are kept", len(b.Days))
	}
	for _, name := range []string{path, path + ".lock"} {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(name), st.Mode().Perm())
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("files left: %v (%v)", entries, err)
	}
}

func TestDamagedFileIsPutAside(t *testing.T) {
	c := at("2026-11-20T12:00:00Z")
	l, path := open(t, Limits{DailyCalls: 5}, c)
	mustReserve(t, l, "a", 1)
	if err := os.WriteFile(path, []byte(`{"days": {"2026-`), 0o600); err != nil {
		t.Fatal(err)
	}
	day, err := l.Today("a")
	if err != nil || len(day.Damaged) != 1 {
		t.Errorf("reading a damaged ledger: %+v, %v", day, err)
	}
	mustReserve(t, l, "a", 1)
	day, err = l.Today("a")
	if err != nil || day.Used.Calls != 1 || len(day.Damaged) != 1 {
		t.Fatalf("after a damaged ledger: %+v, %v", day, err)
	}
	if text, err := os.ReadFile(day.Damaged[0]); err != nil || !strings.HasPrefix(string(text), `{"days"`) {
		t.Errorf("the damaged file: %q, %v", text, err)
	}
}

func TestUnwritableLedger(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := New(filepath.Join(blocked, "spend.json"), always(Limits{}), at("2026-11-20T12:00:00Z").now)
	if _, err := l.Reserve(t.Context(), "a", 1); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("Reserve under a file: %v, want unavailable", err)
	}
}

// TestManyWritersKeepTheLimit stands for several processes: every ledger takes
// the lock by its own file handle.
func TestManyWritersKeepTheLimit(t *testing.T) {
	c := at("2026-11-20T12:00:00Z")
	path := filepath.Join(t.TempDir(), "spend.json")
	const limit = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 8 {
		wg.Go(func() {
			l := New(path, always(Limits{DailyCalls: limit}), c.now)
			for range 10 {
				ticket, err := l.Reserve(t.Context(), "a", 10)
				if errors.Is(err, memory.ErrDenied) {
					continue
				}
				if err == nil {
					err = ticket.Settle(t.Context(), 3, 4)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				granted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got, want := today(t, New(path, always(Limits{}), c.now), "a"), (Used{Calls: limit, TokensIn: 3 * limit, TokensOut: 4 * limit}); granted != limit || got != want {
		t.Errorf("%d granted, ledger %+v, want %d and %+v", granted, got, limit, want)
	}
}

// TestLedgerModel holds the ledger against a plain sum.
func TestLedgerModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		limits := Limits{DailyTokens: rapid.IntRange(0, 500).Draw(rt, "tokens"), DailyCalls: rapid.IntRange(0, 6).Draw(rt, "calls")}
		c := at("2026-11-20T12:00:00Z")
		l := New(filepath.Join(dir, "spend.json"), always(limits), c.now)
		model := map[string]Used{}
		type pending struct {
			ticket   *Ticket
			key      string
			reserved int
		}
		var open []pending
		agent := rapid.SampledFrom([]memory.AgentID{"a", "b"})
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				for _, a := range []memory.AgentID{"a", "b"} {
					day, err := l.Today(a)
					if want := model[day.Date+string(a)]; err != nil || day.Used != want {
						rt.Fatalf("%s on %s: %+v (%v), want %+v", a, day.Date, day.Used, err, want)
					}
				}
			},
			"reserve": func(rt *rapid.T) {
				a, n := agent.Draw(rt, "agent"), rapid.IntRange(0, 200).Draw(rt, "n")
				key := l.today() + string(a)
				used := model[key]
				want := (limits.DailyCalls == 0 || used.Calls < limits.DailyCalls) && (limits.DailyTokens == 0 || used.Tokens()+n <= limits.DailyTokens)
				ticket, err := l.Reserve(t.Context(), a, n)
				if (err == nil) != want {
					rt.Fatalf("Reserve(%d) with %+v: %v, want leave %v", n, used, err, want)
				}
				if err == nil {
					used.Calls, used.Reserved = used.Calls+1, used.Reserved+n
					model[key] = used
					open = append(open, pending{ticket, key, n})
				}
			},
			"settle": func(rt *rapid.T) {
				if len(open) == 0 {
					rt.Skip("nothing is open")
				}
				p := open[0]
				open = open[1:]
				in, out := rapid.IntRange(0, 300).Draw(rt, "in"), rapid.IntRange(0, 300).Draw(rt, "out")
				if err := p.ticket.Settle(t.Context(), in, out); err != nil {
					rt.Fatal(err)
				}
				used := model[p.key]
				used.Reserved, used.TokensIn, used.TokensOut = used.Reserved-p.reserved, used.TokensIn+in, used.TokensOut+out
				model[p.key] = used
			},
			"clock": func(rt *rapid.T) {
				c.Time = c.Add(time.Duration(rapid.IntRange(-30, 30).Draw(rt, "hours")) * time.Hour)
			},
		})
	})
}

func TestBreaker(t *testing.T) {
	c := at("2026-11-20T12:00:00Z")
	b := NewBreaker(3, time.Minute, c.now)
	allowed := func(want bool) {
		t.Helper()
		if err := b.Allow(); (err == nil) != want {
			t.Fatalf("Allow() = %v, want leave %v", err, want)
		}
	}
	b.Report(false)
	b.Report(false)
	b.Report(true)
	b.Report(false)
	b.Report(false)
	allowed(true) // never three in a row
	b.Report(false)
	if err := b.Allow(); !errors.Is(err, memory.ErrUnavailable) || memory.HintOf(err) != "it is tried again in 1m0s" {
		t.Fatalf("open: %v (%q)", err, memory.HintOf(err))
	}
	c.Time = c.Add(59 * time.Second)
	allowed(false)
	c.Time = c.Add(time.Second)
	allowed(true)  // half open: one tries
	allowed(false) // the others wait
	b.Report(false)
	allowed(false)
	c.Time = c.Add(time.Minute)
	allowed(true)
	c.Time = c.Add(time.Minute)
	allowed(true) // the one that tried never reported
	b.Report(true)
	allowed(true)
	allowed(true)

	for range 3 {
		b.Report(false)
	}
	c.Time = c.Add(-1000 * time.Hour) // a clock set back must not keep it open
	allowed(false)
	c.Time = c.Add(time.Minute)
	allowed(true)
}

// BenchmarkCall is what one model call costs in account-keeping, with a month of
// history of 5 agents in the file.
func BenchmarkCall(b *testing.B) {
	c := at("2026-11-01T12:00:00Z")
	l, _ := open(b, Limits{DailyTokens: 1 << 30, DailyCalls: 1 << 30}, c)
	for range keepDays {
		for _, agent := range []memory.AgentID{"a", "b", "c", "d", "e"} {
			if _, err := l.Reserve(b.Context(), agent, 1); err != nil {
				b.Fatal(err)
			}
		}
		c.Time = c.Add(24 * time.Hour)
	}
	for b.Loop() {
		ticket, err := l.Reserve(b.Context(), "a", 100)
		if err == nil {
			err = ticket.Settle(b.Context(), 50, 10)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestAllAgentsTogether(t *testing.T) {
	c := at("2026-11-20T12:00:00Z")
	l, _ := open(t, Limits{DailyTokens: 800, TotalTokens: 1000, TotalCalls: 3}, c)
	mustReserve(t, l, "a", 600)
	_, err := l.Reserve(t.Context(), "b", 500)
	var over *OverError
	if !errors.As(err, &over) || over.Agent != "" || over.Used != 600 || !strings.Contains(err.Error(), "all agents together have spent 600 of 1000 tokens") ||
		memory.HintOf(err) != "raise spend.total_tokens or set it to 0 for no limit" {
		t.Errorf("over the tokens of all: %v (%q)", err, memory.HintOf(err))
	}
	mustReserve(t, l, "b", 400)
	mustReserve(t, l, "c", 0)
	if _, err := l.Reserve(t.Context(), "d", 0); !errors.As(err, &over) || over.What != "calls" || over.Agent != "" {
		t.Errorf("over the calls of all: %v", err)
	}
	day, err := l.Today("b")
	if err != nil || day.Used.Tokens() != 400 || day.All.Tokens() != 1000 || day.All.Calls != 3 {
		t.Errorf("today: %+v, %v", day, err)
	}
	c.Time = c.Add(24 * time.Hour)
	mustReserve(t, l, "a", 50)
	if sum, err := l.Between("a", c.Add(-24*time.Hour), c.Time); err != nil || sum.Tokens() != 650 || sum.Calls != 2 {
		t.Errorf("two days of a: %+v, %v", sum, err)
	}
}
