package weave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// Limits of a Recorder.
const (
	mostQueued  = 4096            // entries; more are lost, and counted
	entryWithin = 5 * time.Second // for writing one down
	mostText    = 2 << 10         // bytes of one text in a node
)

// errOff says that an agent's graph takes no record.
var errOff = errors.New("nothing is recorded")

// Recorder writes into the graph what happens while agents work. Its methods
// return at once, but for RunStarts; what they are told is written down in that
// order behind the caller's back, and what cannot be is logged and counted. It is
// safe for concurrent use.
type Recorder struct {
	// Hooks are those of an agent's graph; nil where nothing is to be recorded.
	Hooks func(agent memory.AgentID) (*graph.Hooks, error)
	// Host tells what is around an agent's graph.
	Host func(agent memory.AgentID) graph.Host
	// SaveBundle writes an agent's bundle into a file.
	SaveBundle func(ctx context.Context, agent memory.AgentID, path string) error
	Log        zerolog.Logger
	// Dropped is told of each thing that is not written down. It must return at once,
	// and may be nil.
	Dropped func(agent memory.AgentID)

	mu      sync.Mutex
	queue   []entry
	running bool
	work    sync.WaitGroup
	booted  map[memory.AgentID]bool
	counts  Recorded
}

// Recorded counts what became of what a Recorder was told.
type Recorded struct {
	Written int64 `json:"written"`
	Failed  int64 `json:"failed"` // could not be written
	Lost    int64 `json:"lost"`   // too much at once
}

// entry is something to write down.
type entry struct {
	agent memory.AgentID
	what  string
	write func(context.Context, *graph.Hooks) error
	done  chan struct{} // closed when it was written, or lost; may be nil
	then  func()        // called in place of all this; may be nil
}

func (e entry) end() {
	if e.done != nil {
		close(e.done)
	}
}

// Counts returns the counters.
func (r *Recorder) Counts() Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Wait returns when everything that was told has been written down. Nothing may
// be told meanwhile.
func (r *Recorder) Wait() { r.work.Wait() }

// After calls then once everything that was told up to now has been written down.
func (r *Recorder) After(then func()) {
	r.mu.Lock()
	if !r.running {
		r.mu.Unlock()
		then()
		return
	}
	r.queue = append(r.queue, entry{then: then}) // whatever the queue's length: who waits must not wait for ever
	r.mu.Unlock()
}

// add queues an entry and sees that somebody writes it.
func (r *Recorder) add(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= mostQueued {
		r.counts.Lost++
		r.dropped(e)
		e.end()
		return
	}
	r.queue = append(r.queue, e)
	if !r.running {
		r.running = true
		r.work.Go(r.drain)
	}
}

func (r *Recorder) dropped(e entry) {
	if r.Dropped != nil {
		r.Dropped(e.agent)
	}
}

// drain writes down what is queued, until nothing is.
func (r *Recorder) drain() {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.running = false
			r.mu.Unlock()
			return
		}
		e := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		if e.then != nil {
			e.then()
			continue
		}
		err := r.write(e)
		e.end()
		r.mu.Lock()
		switch {
		case err == nil:
			r.counts.Written++
		case !errors.Is(err, errOff):
			r.counts.Failed++
			r.dropped(e)
			r.Log.Warn().Err(err).Str("agent", string(e.agent)).Str("hook", e.what).Msg("not written into the graph")
		}
		r.mu.Unlock()
	}
}

func (r *Recorder) write(e entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = memory.Errorf(memory.ErrInternal, "panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), entryWithin)
	defer cancel()
	hooks, err := r.Hooks(e.agent)
	if err != nil {
		return err
	}
	if hooks == nil {
		return errOff
	}
	return e.write(ctx, hooks)
}

// ToolExecuted records the call of a tool, and pushes it to the host's inbox.
// Long arguments and results are cut.
func (r *Recorder) ToolExecuted(agent memory.AgentID, x graph.ToolExecution) {
	x.Args, x.Result = short(x.Args), short(x.Result)
	r.add(entry{agent: agent, what: "on_tool_execution", write: func(ctx context.Context, h *graph.Hooks) error {
		_, err := h.RecordTool(ctx, x, false)
		return err
	}})
}

// PromptCompressed records that turns have left a prompt.
func (r *Recorder) PromptCompressed(agent memory.AgentID, p graph.PromptCompress) {
	r.add(entry{agent: agent, what: "on_prompt_compress", write: func(ctx context.Context, h *graph.Hooks) error {
		_, err := h.OnPromptCompress(ctx, p, false)
		return err
	}})
}

// MessagePassed records a message between agents, in the graph of one of them.
func (r *Recorder) MessagePassed(agent memory.AgentID, m graph.SwarmMessage) {
	m.Message = clip(m.Message)
	r.add(entry{agent: agent, what: "on_swarm_message", write: func(ctx context.Context, h *graph.Hooks) error {
		_, err := h.OnSwarmMessage(ctx, m, false)
		return err
	}})
}

// PersonaUpdated records a change of a persona.
func (r *Recorder) PersonaUpdated(agent memory.AgentID, p graph.PersonaUpdate) {
	r.add(entry{agent: agent, what: "on_persona_update", write: func(ctx context.Context, h *graph.Hooks) error {
		_, err := h.OnPersonaUpdate(ctx, p, false)
		return err
	}})
}

// Run is a scheduled or delegated run that has ended.
type Run struct {
	Delegator string // the agent itself for a schedule
	Name      string // of the job
	Does      string // the operation, or message
	Trigger   string
	Outcome   string
	Output    string
	OK        bool // it did what it was for
	Idle      bool // and found nothing to do: no node, or an idle agent's graph would grow for ever
}

// RunEnded records a run, and after one that was OK saves the host's bundle
// again.
func (r *Recorder) RunEnded(agent memory.AgentID, run Run) {
	host := r.Host(agent)
	if !run.OK || !run.Idle {
		r.add(entry{agent: agent, what: "on_delegation", write: func(ctx context.Context, h *graph.Hooks) error { return delegated(ctx, h, agent, host, run) }})
	}
	if run.OK && host.Bundle != "" && !host.DryRun {
		r.add(entry{agent: agent, what: "bundle", write: func(ctx context.Context, _ *graph.Hooks) error { return r.SaveBundle(ctx, agent, host.Bundle) }})
	}
}

func delegated(ctx context.Context, h *graph.Hooks, agent memory.AgentID, host graph.Host, run Run) error {
	detail, err := json.Marshal(map[string]any{"name": run.Name, "does": run.Does, "trigger": run.Trigger, "outcome": run.Outcome,
		"dry_run": host.DryRun, "output": clip(run.Output)})
	if err != nil {
		return fmt.Errorf("detail of %s: %w", run.Name, err)
	}
	_, err = h.OnDelegation(ctx, graph.Delegation{Delegator: run.Delegator, Delegatee: string(agent), Task: run.Name, Payload: detail}, host.DryRun)
	return err
}

// RunStarts prepares an agent's graph for a run: in a host's environment it loads
// the host's bundle and notes the start, once in a process.
func (r *Recorder) RunStarts(agent memory.AgentID) {
	host := r.Host(agent)
	if host.AgentID == "" && host.Bundle == "" {
		return
	}
	r.mu.Lock()
	again := r.booted[agent]
	if r.booted == nil {
		r.booted = map[memory.AgentID]bool{}
	}
	r.booted[agent] = true
	r.mu.Unlock()
	if again {
		return
	}
	boot := entry{agent: agent, what: "boot", done: make(chan struct{}), write: func(ctx context.Context, h *graph.Hooks) error {
		_, err := h.Boot(ctx, string(agent))
		return err
	}}
	r.add(boot)
	<-boot.done
}

// short cuts JSON that is too long: to a text with its beginning.
func short(raw json.RawMessage) json.RawMessage {
	if len(raw) <= mostText && json.Valid(raw) {
		return raw
	}
	if len(raw) == 0 {
		return nil
	}
	cut, err := json.Marshal(clip(string(raw)))
	if err != nil {
		return nil
	}
	return cut
}

// clip cuts a text between characters.
func clip(s string) string {
	if len(s) <= mostText {
		return s
	}
	cut := mostText
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
