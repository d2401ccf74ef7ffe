package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
)

// BenchmarkRecallClients has 1,000 clients with a connection each, which they keep, ask
// for memory.recall at 100,000 passages, each anew as soon as it has its answer. The
// server is a process of its own. The cores bound how many answers there are a second;
// the latency follows from it, since every client waits for all others. An answer that
// is an error fails the benchmark; degraded counts those that ran out of time.
func BenchmarkRecallClients(b *testing.B) {
	const clients, each = 1000, 4
	bin, home := program(b), b.TempDir()
	fillTurns(b, bin, home, "turns")
	runProgram(b, bin, home, "--agent", "turns", "memory", "recall", asked) // indexes what fillTurns wrote
	_, token, err := access.Open(home+"/tokens.json", time.Now).Create(context.Background(), access.New{Name: "clients", Right: access.Read})
	if err != nil {
		b.Fatal(err)
	}
	server := exec.Command(bin, "serve", "--listen", "127.0.0.1:0", "--json", "--home", home, "--set", "http.rate_per_second=100000", "--set", "embeddings.provider=off")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		b.ReportMetric(resident(server.Process.Pid), "MiB_resident")
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			b.Error(err)
		}
		if err := server.Wait(); err != nil {
			b.Error(err)
		}
	}()
	var face struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&face); err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: clients, MaxIdleConnsPerHost: clients, MaxIdleConns: clients}}
	defer client.CloseIdleConnections()
	ask := func(n uint64) (took time.Duration, degraded bool, err error) {
		words := []string{word(900 + n%700), word(4000 + n*7%9000)}
		req, err := http.NewRequestWithContext(context.Background(), "POST", face.URL+"/v1/agents/turns/ops/memory.recall", bytes.NewBufferString(fmt.Sprintf(`{"text":%q}`, strings.Join(words, " "))))
		if err != nil {
			return 0, false, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return 0, false, err
		}
		defer resp.Body.Close()
		var block struct{ Text, Degraded string }
		if err := json.NewDecoder(resp.Body).Decode(&block); err != nil || resp.StatusCode != http.StatusOK {
			return 0, false, fmt.Errorf("status %d: %w", resp.StatusCode, err)
		}
		return time.Since(began), block.Degraded != "", nil
	}
	if _, _, err := ask(0); err != nil { // opens the agent's stores
		b.Fatal(err)
	}
	var mu sync.Mutex
	var took []time.Duration
	var degraded float64
	began := time.Now()
	for b.Loop() {
		var group sync.WaitGroup
		for c := range clients {
			group.Go(func() {
				for i := range each {
					d, late, err := ask(uint64(c*each + i))
					mu.Lock()
					if err != nil {
						b.Error(err)
					}
					took = append(took, d)
					if late {
						degraded++
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
	}
	ms := func(percent int) float64 {
		slices.Sort(took)
		return float64(took[len(took)*percent/100].Microseconds()) / 1000
	}
	b.ReportMetric(float64(len(took))/time.Since(began).Seconds(), "answers/s")
	b.ReportMetric(ms(50), "p50_ms")
	b.ReportMetric(ms(99), "p99_ms")
	b.ReportMetric(degraded/float64(len(took)), "degraded")
}
