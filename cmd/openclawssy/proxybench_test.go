package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/proxy"
)

// BenchmarkProxy measures what memory adds to a chat completion at 100,000
// passages: the same request to the bare stub of a provider and through the proxy,
// one after the other, each with words of its own. Times are of whole answers.
func BenchmarkProxy(b *testing.B) {
	bin, home := program(b), b.TempDir()
	fillTurns(b, bin, home, "turns")
	runProgram(b, bin, home, "--agent", "turns", "memory", "recall", asked) // indexes what fillTurns wrote
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
	n := uint64(0)
	for _, of := range []struct{ mode, question string }{{"off", "rare"}, {"write", "rare"}, {"read", "rare"}, {"both", "rare"}, {"both", "hard"}} {
		b.Run(of.mode+"/"+of.question, func(b *testing.B) {
			var bare, through []time.Duration
			for i := 0; b.Loop() || i < 60; i++ {
				n++
				words := []string{word(900 + n%700), word(4000 + n*7%9000)}
				if of.question == "hard" {
					words = append(words, word(17+n%20))
				}
				body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%d %s"}]}`, n, strings.Join(words, " "))
				bare = append(bare, ask(p.url+"/chat/completions", of.mode, body))
				through = append(through, ask(server.URL+"/v1/chat/completions", of.mode, body))
			}
			slices.Sort(bare)
			slices.Sort(through)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(bare[len(bare)/2]), "bare_p50_ms")
			b.ReportMetric(ms(through[len(through)/2]), "p50_ms")
			b.ReportMetric(ms(through[len(through)/2]-bare[len(bare)/2]), "added_p50_ms")
			b.ReportMetric(ms(through[len(through)*95/100]-bare[len(bare)*95/100]), "added_p95_ms")
		})
	}
}
