package embed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/spend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-0123456789abcdef"

func never() float64 { return 0 }

// providers are the three shapes of request, and where the stub answers each.
var providers = map[embed.Provider]func(string) string{
	embed.Generic: func(url string) string { return url },
	embed.Voyage:  func(url string) string { return url },
	embed.Gemini:  func(url string) string { return strings.TrimSuffix(url, "/v1") + "/v1beta" },
}

// connect returns an embedder of the stub, by way of egress.
func connect(t *testing.T, p embed.Provider, s *judge.Server, edit func(*embed.Config)) embed.Embedder {
	t.Helper()
	url := providers[p](s.URL)
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url}}})
	if err != nil {
		t.Fatal(err)
	}
	c := embed.Config{Provider: p, BaseURL: url, Model: "stub", Key: key, Timeout: 20 * time.Second, MaxRetries: 2, Dimensions: 64}
	if edit != nil {
		edit(&c)
	}
	client, err := embed.New(c, out, time.Now, never)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client.For("default")
}

var texts = []string{"I like green tea", "the car is red", "we moved to Lisbon"}

func wanted(model string) [][]float32 {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = judge.Embed(model, text, 64)
	}
	return out
}

func TestEveryProviderSpeaksItsOwnForm(t *testing.T) {
	for p := range providers {
		t.Run(string(p), func(t *testing.T) {
			s := judge.NewServer(t)
			e := connect(t, p, s, nil)
			got, err := e.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wanted("stub"), got); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			if _, err := embed.Query(t.Context(), e, "which tea?"); err != nil {
				t.Fatal(err)
			}
			calls := s.Calls()
			if len(calls) != 2 || calls[0].Embed.Dimensions != 64 || calls[0].Embed.Model != "stub" || !strings.HasSuffix(calls[0].Auth, key) {
				t.Fatalf("%+v", calls)
			}
			tasks := map[embed.Provider][2]string{embed.Voyage: {"document", "query"}, embed.Gemini: {"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"}}
			if got := [2]string{calls[0].Embed.Task, calls[1].Embed.Task}; got != tasks[p] {
				t.Errorf("tasks %v", got)
			}
			if e.Dimensions() != 64 {
				t.Errorf("dimensions %d", e.Dimensions())
			}
		})
	}
}

// outcome is what becomes of one behaviour of the endpoint.
type outcome struct {
	class  llm.ReplyClass
	status int
	kind   memory.Kind // "" for vectors
	calls  int
}

func outcomeOf(err error, calls int) outcome {
	o := outcome{kind: memory.KindOf(err), calls: calls}
	var reply *llm.ReplyError
	if errors.As(err, &reply) {
		o.class = reply.Class
	}
	var status *llm.StatusError
	if errors.As(err, &status) {
		o.status = status.Status
	}
	return o
}

func expected(p embed.Provider, name string) outcome {
	useless := func(c llm.ReplyClass) outcome { return outcome{class: c, kind: memory.ErrUnavailable, calls: 1} }
	broken := outcome{kind: memory.ErrUnavailable, calls: 3}
	slow := outcome{kind: memory.ErrUnavailable, calls: 1}
	busy := outcome{kind: memory.ErrUnavailable, status: 429, calls: 3}
	away := outcome{kind: memory.ErrUnavailable, status: 429, calls: 1} // a longer wait than there is time
	elsewhere := outcome{kind: memory.ErrDenied, calls: 1}
	good := outcome{calls: 1}
	if p == embed.Gemini && (name == "reordered" || name == "no-index" || name == "same-index" || name == "index-beyond") {
		return good // its form has no index; the order is the texts'
	}
	return map[string]outcome{
		"good": good, "reordered": good, "no-index": good,
		"fewer": useless(embed.WrongCount), "more": useless(embed.WrongCount), "none": useless(embed.WrongCount), "empty-object": useless(embed.WrongCount),
		"same-index": useless(embed.WrongIndex), "index-beyond": useless(embed.WrongIndex),
		"nan": useless(embed.NotFinite), "infinite": useless(embed.NotFinite), "null-number": useless(embed.NotFinite), "text-number": useless(llm.NotJSON),
		"empty-vector": useless(embed.EmptyVector), "zero-vector": useless(embed.EmptyVector),
		"other-dimension": useless(embed.WrongDimension), "mixed-dimensions": useless(embed.WrongDimension),
		"truncated-json": broken, "empty-body": useless(llm.NotJSON), "html": useless(llm.NotJSON), "endless": useless(llm.TooLarge), "gzip-bomb": useless(llm.TooLarge),
		"400": {status: 400, kind: memory.ErrUnavailable, calls: 1}, "400-long": {status: 400, kind: memory.ErrUnavailable, calls: 1},
		"404": {status: 404, kind: memory.ErrUnavailable, calls: 1}, "401": {status: 401, kind: memory.ErrDenied, calls: 1},
		"429": busy, "429-negative": busy, "429-garbage": busy, "429-5s": away, "429-1d": away, "429-date": away,
		"500": {status: 500, kind: memory.ErrUnavailable, calls: 3}, "503": {status: 503, kind: memory.ErrUnavailable, calls: 3},
		"hang": slow, "drip": slow, "headers-then-hang": slow, "continue-forever": slow,
		"reset": broken, "length-too-long": broken, "chunked-garbage": broken,
		"301": elsewhere, "307": elsewhere, "308": elsewhere, "307-metadata": elsewhere, "307-file": elsewhere,
	}[name]
}

// TestEveryReply holds each form against every behaviour of the stub over real
// HTTP: vectors, or one typed error and no vectors, and never a byte to another
// host.
func TestEveryReply(t *testing.T) {
	var strayed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(other.Close)
	for p := range providers {
		for _, b := range judge.EmbedBehaviours() {
			t.Run(fmt.Sprintf("%s/%s", p, b.Name), func(t *testing.T) {
				t.Parallel()
				s := judge.NewServer(t)
				s.RedirectTo(other.URL)
				s.AlwaysEmbed(b.Name)
				e, want := connect(t, p, s, nil), expected(p, b.Name)
				ctx := t.Context()
				if want.calls == 1 && want.kind == memory.ErrUnavailable && want.class == "" {
					short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					defer cancel()
					ctx = short
				}
				got, err := e.Embed(ctx, texts)
				if o := outcomeOf(err, len(s.Calls())); o != want {
					t.Errorf("%+v (%v), want %+v", o, err, want)
				}
				if err != nil && got != nil {
					t.Errorf("%d vectors beside an error", len(got))
				}
				if err != nil && strings.Contains(err.Error()+memory.HintOf(err), key) {
					t.Errorf("the error has the key: %v", err)
				}
				if err == nil && (p != embed.Gemini || b.Name == "good") {
					if diff := cmp.Diff(wanted("stub"), got); diff != "" {
						t.Errorf("vectors (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
	t.Cleanup(func() {
		if n := strayed.Load(); n > 0 {
			t.Errorf("%d requests to another host", n)
		}
	})
}

// inFakeTime runs f with a stub on a clock that jumps.
func inFakeTime(t *testing.T, edit func(*embed.Config), f func(*testing.T, embed.Embedder, *judge.Server)) {
	synctest.Test(t, func(t *testing.T) {
		pipe := judge.NewPipe()
		s := judge.Serve(pipe)
		out := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return pipe.Dial() }}}
		c := embed.Config{Provider: embed.Generic, BaseURL: s.URL, Model: "stub", Timeout: time.Minute, MaxRetries: 3}
		edit(&c)
		client, err := embed.New(c, out, time.Now, never)
		if err != nil {
			t.Fatal(err)
		}
		f(t, client.For("default"), s)
		client.Close()
		if err := errors.Join(s.Close(), pipe.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestRetryAfterIsHeeded(t *testing.T) {
	inFakeTime(t, func(*embed.Config) {}, func(t *testing.T, e embed.Embedder, s *judge.Server) {
		s.NextEmbed("429-5s", "503", "good")
		start := time.Now()
		if _, err := e.Embed(t.Context(), texts); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 5*time.Second || len(s.Calls()) != 3 {
			t.Errorf("%d calls in %s", len(s.Calls()), took)
		}
	})
}

func TestRequestsPerMinute(t *testing.T) {
	inFakeTime(t, func(c *embed.Config) { c.PerMinute, c.BatchTexts = 60, 1 }, func(t *testing.T, e embed.Embedder, s *judge.Server) {
		start := time.Now()
		if _, err := e.Embed(t.Context(), texts); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 2*time.Second || len(s.Calls()) != 3 {
			t.Errorf("%d calls in %s", len(s.Calls()), took)
		}
		hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start = time.Now()
		if _, err := embed.Query(hurried, e, "tea?"); !errors.Is(err, memory.ErrUnavailable) {
			t.Errorf("a question that has no time to wait: %v", err)
		}
		if took := time.Since(start); took != 0 || len(s.Calls()) != 3 {
			t.Errorf("%d calls in %s", len(s.Calls()), took)
		}
	})
}

func TestBatches(t *testing.T) {
	s := judge.NewServer(t)
	e := connect(t, embed.Generic, s, func(c *embed.Config) { c.BatchTexts, c.MaxInputTokens = 10, 8000 })
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("text number %d", i))
	}
	got, err := e.Embed(t.Context(), many)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range many {
		if !slices.Equal(got[i], judge.Embed("stub", text, 64)) {
			t.Fatalf("text %d has another's vector", i)
		}
	}
	if n := len(s.Calls()); n != 3 {
		t.Errorf("%d calls for 25 texts", n)
	}
	long := strings.Repeat("word ", 4000) // 20,000 bytes: two in one request would be too much
	if _, err := e.Embed(t.Context(), []string{long, long, long, "short"}); err != nil {
		t.Fatal(err)
	}
	if calls := s.Calls()[3:]; len(calls) != 2 || len(calls[0].Embed.Texts) != 2 || len(calls[1].Embed.Texts) != 2 {
		t.Errorf("%d calls for long texts", len(calls))
	}
	s.NextEmbed("good", "500", "500", "500")
	if got, err := e.Embed(t.Context(), many); err == nil || got != nil {
		t.Errorf("the second of three requests fails: %d vectors, %v", len(got), err)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	s := judge.NewServer(t)
	e := connect(t, embed.Generic, s, func(c *embed.Config) { c.MaxInputTokens = 10 })
	cutter := e.(embed.Cutter)
	if _, err := e.Embed(t.Context(), []string{strings.Repeat("word ", 100)}); err != nil {
		t.Fatal(err)
	}
	if sent := s.Calls()[0].Embed.Texts[0]; len(sent) > 30 || !strings.HasPrefix(sent, "word word") {
		t.Errorf("sent %q", sent)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		cut, less := cutter.Cut(text)
		if !strings.HasPrefix(text, cut) || len(cut) > 30 || less != (cut != text) || utf8.ValidString(text) != utf8.ValidString(cut) && utf8.ValidString(text) {
			t.Fatalf("%q is cut to %q, %v", text, cut, less)
		}
	})
}

func TestBlankTextsAreRefused(t *testing.T) {
	s := judge.NewServer(t)
	e := connect(t, embed.Generic, s, nil)
	_, err := e.Embed(t.Context(), []string{"tea", " \n"})
	_, err2 := embed.Query(t.Context(), e, "")
	if !errors.Is(err, memory.ErrInvalid) || !errors.Is(err2, memory.ErrInvalid) || len(s.Calls()) > 0 {
		t.Errorf("%v, %v, %d calls", err, err2, len(s.Calls()))
	}
}

func TestPrefixes(t *testing.T) {
	s := judge.NewServer(t)
	e := connect(t, embed.Generic, s, func(c *embed.Config) { c.QueryPrefix, c.TextPrefix = "query: ", "passage: " })
	if _, err := e.Embed(t.Context(), []string{"tea"}); err != nil {
		t.Fatal(err)
	}
	if _, err := embed.Query(t.Context(), e, "tea?"); err != nil {
		t.Fatal(err)
	}
	if c := s.Calls(); c[0].Embed.Texts[0] != "passage: tea" || c[1].Embed.Texts[0] != "query: tea?" {
		t.Errorf("%+v", c)
	}
}

func TestSpending(t *testing.T) {
	s := judge.NewServer(t)
	path := filepath.Join(t.TempDir(), "spend.json")
	ledger := spend.New(path, func(memory.AgentID) spend.Limits { return spend.Limits{DailyTokens: 40} }, time.Now).Section("embeddings")
	e := connect(t, embed.Generic, s, func(c *embed.Config) { c.Spend = ledger })
	if _, err := e.Embed(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	day, err := ledger.Today("default")
	if err != nil || day.Used.Calls != 1 || day.Used.TokensIn != 13 || day.Used.Reserved != 0 {
		t.Fatalf("%+v, %v", day.Used, err)
	}
	_, err = e.Embed(t.Context(), []string{strings.Repeat("word ", 30)})
	var over *spend.OverError
	if !errors.As(err, &over) || len(s.Calls()) != 1 || !strings.Contains(memory.HintOf(err), "embeddings.daily_tokens") {
		t.Errorf("%v (%s), %d calls", err, memory.HintOf(err), len(s.Calls()))
	}
}

// TestModelsAreToldApart: what changes the vectors changes the id.
func TestModelsAreToldApart(t *testing.T) {
	id := func(c embed.Config) string {
		t.Helper()
		client, err := embed.New(c, http.DefaultClient, time.Now, never)
		if err != nil {
			t.Fatal(err)
		}
		return client.ModelID()
	}
	if got := id(embed.Config{Provider: embed.OpenAI}); got != "openai:text-embedding-3-small" {
		t.Errorf("the usual id is %q", got)
	}
	if got := id(embed.Config{Provider: embed.Gemini}); got != "gemini:gemini-embedding-001:768" {
		t.Errorf("the usual id is %q", got)
	}
	if a, b := id(embed.Config{Provider: embed.OpenAI}), id(embed.Config{Provider: embed.OpenAI, BaseURL: "https://api.openai.com/v1/"}); a != b {
		t.Errorf("the usual endpoint by name: %q", b)
	}
	base := embed.Config{Provider: embed.Generic, BaseURL: "http://localhost:1/v1", Model: "m"}
	seen := map[string]bool{id(base): true}
	for _, edit := range []func(*embed.Config){
		func(c *embed.Config) { c.Model = "n" }, func(c *embed.Config) { c.BaseURL = "http://localhost:2/v1" },
		func(c *embed.Config) { c.Dimensions = 5 }, func(c *embed.Config) { c.QueryPrefix = "p" }, func(c *embed.Config) { c.TextPrefix = "p" },
		func(c *embed.Config) { c.Provider = embed.OpenRouter },
	} {
		c := base
		edit(&c)
		got := id(c)
		if seen[got] {
			t.Errorf("%+v has the id %q of another", c, got)
		}
		seen[got] = true
	}
	c := base
	c.Key, c.BatchTexts, c.Timeout = "other", 3, time.Hour
	if got := id(c); got != id(base) {
		t.Errorf("another key makes another model: %q", got)
	}
}

func TestDimensionsAreLearntOnce(t *testing.T) {
	s := judge.NewServer(t)
	e := connect(t, embed.Generic, s, func(c *embed.Config) { c.Dimensions = 0 })
	if e.Dimensions() != 0 {
		t.Errorf("known before: %d", e.Dimensions())
	}
	if _, err := e.Embed(t.Context(), texts); err != nil || e.Dimensions() != 64 {
		t.Fatalf("%d, %v", e.Dimensions(), err)
	}
	s.NextEmbed("other-dimension")
	_, err := e.Embed(t.Context(), texts)
	var reply *llm.ReplyError
	if !errors.As(err, &reply) || reply.Class != embed.WrongDimension {
		t.Errorf("%v", err)
	}
}

func TestGeminiSaysInItsBodyHowLongToWait(t *testing.T) {
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`)
	}))
	t.Cleanup(l.Close)
	client, err := embed.New(embed.Config{Provider: embed.Gemini, BaseURL: l.URL, Timeout: 10 * time.Second, MaxRetries: 3}, l.Client(), time.Now, never)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.For("default").Embed(t.Context(), texts)
	var status *llm.StatusError
	if !errors.As(err, &status) || status.RetryAfter != 34*time.Second || status.Message != "Quota exceeded" {
		t.Errorf("%#v", err)
	}
}

func TestFirst(t *testing.T) {
	for _, tc := range []struct {
		set  []string
		want embed.Provider
	}{
		{nil, ""}, {[]string{"MISTRAL_API_KEY"}, embed.Mistral}, {[]string{"MISTRAL_API_KEY", "VOYAGE_API_KEY"}, embed.Voyage},
		{[]string{"VOYAGE_API_KEY", "GOOGLE_API_KEY"}, embed.Gemini}, {[]string{"GEMINI_API_KEY", "OPENAI_API_KEY"}, embed.OpenAI},
		{[]string{"OPENROUTER_API_KEY"}, ""},
	} {
		got, found := embed.First(func(name string) string {
			if slices.Contains(tc.set, name) {
				return "x"
			}
			return ""
		})
		if got != tc.want || found != (tc.want != "") {
			t.Errorf("%v: %q, %v", tc.set, got, found)
		}
	}
}

func TestUnit(t *testing.T) {
	if v := embed.Unit([]float32{3, 4}); math.Abs(float64(v[0])-.6) > 1e-6 || math.Abs(float64(v[1])-.8) > 1e-6 {
		t.Errorf("%v", v)
	}
	inf := float32(math.Inf(1))
	for _, v := range [][]float32{nil, {0, 0}, {inf, 1}, {float32(math.NaN())}} {
		if embed.Unit(v) != nil {
			t.Errorf("%v has a length", v)
		}
	}
}
