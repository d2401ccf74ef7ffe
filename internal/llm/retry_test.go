package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// inFakeTime runs f with a client of a stub server, both on a clock that jumps.
func inFakeTime(t *testing.T, edit func(*llm.Config), jitter func() float64, f func(*testing.T, *llm.Client, *judge.Server)) {
	synctest.Test(t, func(t *testing.T) {
		pipe := judge.NewPipe()
		s := judge.Serve(pipe)
		out := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return pipe.Dial() }}}
		c := llm.Config{Provider: llm.Generic, BaseURL: s.URL, Model: "stub", Timeout: time.Minute, MaxRetries: 3}
		if edit != nil {
			edit(&c)
		}
		client, err := llm.New(c, out, time.Now, jitter)
		if err != nil {
			t.Fatal(err)
		}
		f(t, client, s)
		client.Close()
		if err := errors.Join(s.Close(), pipe.Close()); err != nil {
			t.Error(err)
		}
	})
}

// half is the middle of every range of waits.
func half() float64 { return .5 }

func TestWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		replies []string
		timeout time.Duration
		calls   int
		took    time.Duration
		fails   bool
	}{
		"at once":                     {[]string{"good"}, time.Minute, 1, 0, false},
		"a growing range":             {[]string{"500", "reset", "503", "good"}, time.Minute, 4, 250*time.Millisecond + 500*time.Millisecond + time.Second, false},
		"four are enough":             {[]string{"500", "500", "500", "500", "good"}, time.Minute, 4, 1750 * time.Millisecond, true},
		"5 s asked, on top":           {[]string{"429-5s", "good"}, time.Minute, 2, 5250 * time.Millisecond, false},
		"a date 5 s from now":         {[]string{"429-date", "good"}, time.Minute, 2, 5250 * time.Millisecond, false},
		"a negative wait is none":     {[]string{"429-negative", "good"}, time.Minute, 2, 250 * time.Millisecond, false},
		"garbage is none":             {[]string{"429-garbage", "good"}, time.Minute, 2, 250 * time.Millisecond, false},
		"a day is not waited for":     {[]string{"429-1d", "good"}, time.Minute, 1, 0, true},
		"nor 5 s in 3":                {[]string{"429-5s", "good"}, 3 * time.Second, 1, 0, true},
		"a hang takes its time":       {[]string{"hang", "good"}, 20 * time.Second, 1, 20 * time.Second, true},
		"a drip too":                  {[]string{"drip", "good"}, 20 * time.Second, 1, 20 * time.Second, true},
		"and a header alone":          {[]string{"headers-then-hang", "good"}, 20 * time.Second, 1, 20 * time.Second, true},
		"refusals are not repeated":   {[]string{"401", "good"}, time.Minute, 1, 0, true},
		"nor answers that are no use": {[]string{"html", "good"}, time.Minute, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(c *llm.Config) { c.Timeout = tc.timeout }, half, func(t *testing.T, client *llm.Client, s *judge.Server) {
				s.Next(tc.replies...)
				// The stub's date has whole seconds; fake time begins on one.
				start := time.Now()
				_, err := client.Chat(t.Context(), ask("x"))
				if took := time.Since(start); took != tc.took || len(s.Calls()) != tc.calls || (err != nil) != tc.fails {
					t.Errorf("%d calls in %s (%v), want %d in %s, failing %v", len(s.Calls()), took, err, tc.calls, tc.took, tc.fails)
				}
			})
		})
	}
}

func TestRetryAfterStandsInTheError(t *testing.T) {
	inFakeTime(t, nil, half, func(t *testing.T, client *llm.Client, s *judge.Server) {
		s.Next("429-1d")
		_, err := client.Chat(t.Context(), ask("x"))
		var status *llm.StatusError
		if !errors.As(err, &status) || status.RetryAfter != 24*time.Hour || memory.HintOf(err) != "it asks to be left alone for 24h0m0s" {
			t.Errorf("%v (%q)", err, memory.HintOf(err))
		}
	})
}

// TestJitterIsFull draws the waits of many clients that failed together: they
// must spread over the whole range, or they will meet again.
func TestJitterIsFull(t *testing.T) {
	var waits []time.Duration
	for i := range 10 {
		inFakeTime(t, nil, func() float64 { return float64(i) / 10 }, func(t *testing.T, client *llm.Client, s *judge.Server) {
			s.Next("500")
			start := time.Now()
			if _, err := client.Chat(t.Context(), ask("x")); err != nil {
				t.Fatal(err)
			}
			waits = append(waits, time.Since(start))
		})
	}
	if low, high := slices.Min(waits), slices.Max(waits); low != 0 || high != 450*time.Millisecond || len(slices.Compact(waits)) != 10 {
		t.Errorf("waits %v", waits)
	}
}

func TestEndpointThatIsDownIsLeftAlone(t *testing.T) {
	inFakeTime(t, func(c *llm.Config) { c.MaxRetries = 0 }, half, func(t *testing.T, client *llm.Client, s *judge.Server) {
		s.Always("500")
		for range 20 {
			if _, err := client.Chat(t.Context(), ask("x")); !errors.Is(err, memory.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if n := len(s.Calls()); n != 5 {
			t.Errorf("%d calls of 20 were made, want 5", n)
		}
		s.Always("")
		time.Sleep(30 * time.Second)
		for range 2 {
			if _, err := client.Chat(t.Context(), ask("x")); err != nil {
				t.Errorf("after the rest: %v", err)
			}
		}
	})
}

func TestRefusalsDoNotTripTheBreaker(t *testing.T) {
	inFakeTime(t, nil, half, func(t *testing.T, client *llm.Client, s *judge.Server) {
		for _, name := range []string{"401", "400", "html", "429-1d", "refusal"} {
			s.Always(name)
			for range 10 {
				if _, err := client.Chat(t.Context(), ask("x")); err == nil {
					t.Fatalf("%s: no error", name)
				}
			}
		}
		if n := len(s.Calls()); n != 50 {
			t.Errorf("%d calls of 50 were made", n)
		}
	})
}

func TestHangsOfManyCallersEndAtTheirDeadline(t *testing.T) {
	inFakeTime(t, nil, half, func(t *testing.T, client *llm.Client, s *judge.Server) {
		s.Always("hang")
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				start := time.Now()
				_, err := client.Chat(t.Context(), ask(fmt.Sprint(i)))
				if !errors.Is(err, memory.ErrUnavailable) || time.Since(start) != time.Minute || memory.HintOf(err) != "if the model is that slow, raise model.timeout" {
					t.Errorf("%v after %s", err, time.Since(start))
				}
			})
		}
		wg.Wait()
		if n := len(s.Calls()); n != 5 {
			t.Errorf("%d calls, want 5", n)
		}
	})
}
