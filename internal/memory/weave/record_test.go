package weave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// office is a recorder over a graph of its own.
type office struct {
	*Recorder
	t     *testing.T
	graph *graph.Store
	host  graph.Host
	clock time.Time
	ttl   time.Duration
	saved []string
	fail  error // of opening the hooks
	off   bool
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, clock: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	var mu sync.Mutex
	ids := 0
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return o.clock }
	var err error
	o.graph, err = graph.Open(context.Background(), filepath.Join(t.TempDir(), graph.FileName), graph.Options{Now: now, Log: zerolog.Nop(),
		NewID: func() string { mu.Lock(); defer mu.Unlock(); ids++; return fmt.Sprintf("%032x", ids) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.graph.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Recorder = &Recorder{Host: func(memory.AgentID) graph.Host { return o.host }, Log: zerolog.Nop(),
		Hooks: func(a memory.AgentID) (*graph.Hooks, error) {
			if o.off || o.fail != nil {
				return nil, o.fail
			}
			h := graph.NewHooks(a, lend(o.graph), o.host, now, zerolog.Nop())
			if o.ttl > 0 {
				h = h.Expiring(o.ttl)
			}
			return h, nil
		},
		SaveBundle: func(_ context.Context, a memory.AgentID, path string) error {
			o.saved = append(o.saved, string(a)+" "+path)
			return nil
		}}
	return o
}

// nodes returns the nodes that there are, after everything was written.
func (o *office) nodes() []*graph.Node {
	o.t.Helper()
	o.Wait()
	var list []*graph.Node
	if err := o.graph.View(context.Background(), func(v *graph.View) error {
		for n := range v.Nodes() {
			list = append(list, n)
		}
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	return list
}

func (o *office) labels() string {
	o.t.Helper()
	var out []string
	for _, n := range o.nodes() {
		out = append(out, n.Label)
	}
	return strings.Join(out, " ")
}

func TestWhatHappensIsWrittenDownInOrder(t *testing.T) {
	o := newOffice(t)
	o.ToolExecuted(agent, graph.ToolExecution{ToolName: "web.get", AgentID: "ann", Args: json.RawMessage(`{"n":1}`), Result: json.RawMessage(`"fine"`)})
	o.PromptCompressed(agent, graph.PromptCompress{OriginalTokens: "900", CompressedTokens: "600", AgentID: "ann"})
	o.MessagePassed(agent, graph.SwarmMessage{Sender: "bob", Receiver: "ann", Message: "hello"})
	o.PersonaUpdated(agent, graph.PersonaUpdate{AgentID: "ann", PersonaKey: "calm", NewValue: json.RawMessage(".5")})
	o.RunEnded(agent, Run{Delegator: "ann", Name: "nightly", Does: "message", Outcome: "ok", Output: strings.Repeat("ä", 5000), OK: true})
	if got := o.labels(); got != "tool:web.get prompt_compress swarm:ann persona:calm delegation:nightly" {
		t.Errorf("nodes: %s", got)
	}
	detail := gjson.GetBytes(o.nodes()[4].Payload, "detail")
	if detail.Get("name").String() != "nightly" || detail.Get("dry_run").Raw != "false" || len(detail.Get("output").String()) > mostText+3 {
		t.Errorf("detail: %s", detail)
	}
	if got := o.Counts(); got != (Recorded{Written: 5}) {
		t.Errorf("counts: %+v", got)
	}
}

func TestLongArgumentsAreCutAndStayJSON(t *testing.T) {
	o := newOffice(t)
	o.ToolExecuted(agent, graph.ToolExecution{ToolName: "x", Args: json.RawMessage(`{"a":"` + strings.Repeat("b", 9000) + `"}`), Result: json.RawMessage(`no JSON`)})
	p := gjson.ParseBytes(o.nodes()[0].Payload)
	if n := len(p.Get("args").String()); n == 0 || n > mostText+3 || p.Get("result").String() != "no JSON" {
		t.Errorf("payload: %.200s", p)
	}
}

func TestRecordsExpire(t *testing.T) {
	o := newOffice(t)
	o.ttl = time.Hour
	o.ToolExecuted(agent, graph.ToolExecution{ToolName: "x"})
	if got := o.labels(); got != "tool:x" {
		t.Fatalf("nodes: %s", got)
	}
	o.clock = o.clock.Add(time.Hour + time.Second)
	if got := o.labels(); got != "" {
		t.Errorf("after an hour: %s", got)
	}
}

func TestAnIdleRunLeavesNothing(t *testing.T) {
	o := newOffice(t)
	o.RunEnded(agent, Run{Name: "memory.checkpoint", OK: true, Idle: true})
	o.RunStarts(agent)
	o.off = true
	o.ToolExecuted(agent, graph.ToolExecution{ToolName: "x"})
	o.Wait()
	if _, err := os.Stat(o.graph.Path()); !os.IsNotExist(err) {
		t.Errorf("there is a graph: %v", err)
	}
	if got := o.Counts(); got.Failed != 0 {
		t.Errorf("counts: %+v", got)
	}
	o.off = false
	o.RunEnded(agent, Run{Name: "memory.checkpoint", Idle: true, Outcome: "failed"})
	if got := o.labels(); got != "delegation:memory.checkpoint" {
		t.Errorf("a run that failed: %s", got)
	}
}

func TestTheBundleIsSavedAfterARunThatWasOK(t *testing.T) {
	o := newOffice(t)
	o.host.Bundle = "daily.ainlbundle"
	o.RunEnded(agent, Run{Name: "a", Outcome: "failed"})
	o.RunEnded(agent, Run{Name: "b", OK: true})
	o.Wait()
	o.host.DryRun = true
	o.RunEnded(agent, Run{Name: "c", OK: true})
	if got := o.labels(); got != "delegation:a delegation:b" {
		t.Errorf("nodes: %s", got)
	}
	if got := strings.Join(o.saved, ", "); got != "ann daily.ainlbundle" {
		t.Errorf("saved: %s", got)
	}
}

func TestAHostSeesOneStart(t *testing.T) {
	o := newOffice(t)
	o.host.AgentID = "host-7"
	for range 3 {
		o.RunStarts(agent)
	}
	if got := o.labels(); got != "bridge_boot" {
		t.Errorf("nodes: %s", got)
	}
}

func TestTroubleIsCountedAndNothingWaits(t *testing.T) {
	o := newOffice(t)
	o.fail = errors.New("the disk is full")
	dropped := 0
	o.Dropped = func(who memory.AgentID) {
		if who == agent {
			dropped++
		}
	}
	for range 3 {
		o.ToolExecuted(agent, graph.ToolExecution{ToolName: "x"})
	}
	o.Wait()
	if got := o.Counts(); got != (Recorded{Failed: 3}) || dropped != 3 {
		t.Errorf("counts: %+v, told of %d", got, dropped)
	}
}

func TestTooMuchAtOnceIsLostAndCounted(t *testing.T) {
	o := newOffice(t)
	held := make(chan struct{})
	o.Recorder.Hooks = func(memory.AgentID) (*graph.Hooks, error) { <-held; return nil, nil }
	for range mostQueued + 10 {
		o.ToolExecuted(agent, graph.ToolExecution{ToolName: "x"})
	}
	lost := o.Counts().Lost
	close(held)
	o.Wait()
	if lost < 9 || lost > 10 { // one may be in the writer's hands
		t.Errorf("lost: %d", lost)
	}
}
