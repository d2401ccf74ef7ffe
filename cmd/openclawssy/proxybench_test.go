package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/proxy"
)

// BenchmarkProxy measures what memory adds to a chat completion at 100,000 passages
// and 10,000 items: the same request to the bare stub of a provider and through the
// proxy, one after the other. Times are of whole answers. cpu_ms is what both
// processes' work takes of a core, whoever else uses the machine; the stub answers at
// once, so nothing of what is done beside the provider is hidden. The operation
// memory.recall is measured the same way.
//
// No question is asked twice. The process has answered 100 others before the first
// one that counts, as that of any agent has: talk asks for natural questions, whose
// commoner words have been asked for then and whose rarer ones mostly have not. New
// asks for two words that nobody has asked for, hard for a common word beside two such.
func BenchmarkProxy(b *testing.B) {
	bin, home := program(b), b.TempDir()
	fillTurns(b, bin, home, "turns")
	fillItems(b, home, "turns", 10_000)
	runProgram(b, bin, home, "--agent", "turns", "memory", "recall", asked) // indexes what was written
	p := newProvider(b)
	h := newHouse(time.Now, func(string) string { return "" }, nil)
	app := h.app()
	if err := h.setup(cli.Options{Home: home, Set: []string{"model.provider=generic", "model.base_url=" + p.url, "model.name=stub-1", "recall.deadline_ms=1000"}}); err != nil {
		b.Fatal(err)
	}
	defer h.close() //nolint:errcheck // the benchmark is over
	tokens, err := h.tokens()
	if err != nil {
		b.Fatal(err)
	}
	_, token, err := tokens.Create(context.Background(), access.New{Name: "bench", Right: access.Write})
	if err != nil {
		b.Fatal(err)
	}
	face, err := h.httpServer(app.Catalog, tokens)
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(face)
	defer server.Close()
	ask := func(url, mode, body string) time.Duration {
		began := time.Now()
		req, err := http.NewRequestWithContext(context.Background(), "POST", url, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set(proxy.HeaderAgent, "turns")
		req.Header.Set(proxy.HeaderMemory, mode)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 || resp.Header.Get(proxy.HeaderError) != "" {
			b.Fatalf("%v %d %v", err, resp.StatusCode, resp.Header)
		}
		return time.Since(began)
	}
	natural, n := talkedOf(), uint64(0)
	words := map[string]func() string{
		"talk": natural,
		"new":  func() string { return word(900+n%700) + " " + word(4000+n*7%9000) },
		"hard": func() string { return word(900+n%700) + " " + word(4000+n*7%9000) + " " + word(17+n%20) },
	}
	recalled := func(asks string) time.Duration {
		return ask(server.URL+"/v1/agents/turns/ops/memory.recall", "off", fmt.Sprintf(`{"text":%q}`, asks))
	}
	for range 100 {
		recalled(natural())
	}
	for _, of := range []struct{ mode, question string }{{"off", "talk"}, {"write", "talk"}, {"read", "talk"}, {"both", "talk"}, {"recall", "talk"}, {"both", "new"}, {"recall", "new"}, {"both", "hard"}, {"recall", "hard"}} {
		b.Run(of.mode+"/"+of.question, func(b *testing.B) {
			const atOnce = 20 // pairs of a round
			var bare, through []time.Duration
			var cost used
			for b.Loop() {
				for range atOnce {
					n++
					asks := fmt.Sprint(n, " ", words[of.question]())
					body := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, asks)
					before := usedUp()
					bare = append(bare, ask(p.url+"/chat/completions", of.mode, body))
					between := usedUp()
					if of.mode == "recall" {
						through = append(through, recalled(asks))
					} else {
						through = append(through, ask(server.URL+"/v1/chat/completions", of.mode, body))
					}
					after := usedUp()
					cost.cpu += after.cpu - 2*between.cpu + before.cpu
					cost.bytes += after.bytes - 2*between.bytes + before.bytes
				}
			}
			slices.Sort(bare)
			slices.Sort(through)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			added := func(percent int) float64 {
				at := len(bare) * percent / 100
				return ms(through[at] - bare[at])
			}
			b.ReportMetric(ms(bare[len(bare)/2]), "bare_p50_ms")
			b.ReportMetric(added(50), "added_p50_ms")
			b.ReportMetric(added(95), "added_p95_ms")
			b.ReportMetric(added(99), "added_p99_ms")
			b.ReportMetric(ms(cost.cpu)/float64(len(bare)), "added_cpu_ms")
			b.ReportMetric(float64(cost.bytes)/1024/float64(len(bare)), "added_KiB_alloc")
		})
	}
}

// used is what this process has used up.
type used struct {
	cpu   time.Duration
	bytes int64 // allocated
}

func usedUp() used {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return used{}
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return used{time.Duration(u.Utime.Nano() + u.Stime.Nano()), int64(sample[0].Value.Uint64())}
}
