package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// Limits of tool calls.
const (
	maxCalls     = 24               // in one turn
	maxSame      = 2                // times that one call, with the same input, is carried out
	callDeadline = 30 * time.Second // of one call
	obeyWithin   = time.Second      // a call that was cancelled should return within this
	maxArguments = 32 << 10         // bytes
	maxResult    = 16 << 10         // bytes of a result that a model is given
	maxCallID    = 128              // bytes
)

// asked is one call and what came of it.
type asked struct {
	llm.ToolCall
	round    int
	op       op.Op // zero where there is none of that name
	refused  error // why it is not carried out
	decision string
}

// decide looks up what a model asked for and says whether it is carried out.
func (x *turn) decide(c llm.ToolCall, round, place int) asked {
	a := asked{ToolCall: c, round: round, decision: runlog.Allow}
	if a.ID == "" || len(a.ID) > maxCallID {
		a.ID = fmt.Sprintf("call_%d_%d", round, place)
	}
	o, offered := x.tools.byName[toolName(c.Name)]
	x.calls++
	switch {
	case !offered:
		a.refused, a.decision = x.notOffered(c.Name), runlog.Deny
		return a
	case len(c.Arguments) > maxArguments:
		a.refused = memory.Errorf(memory.ErrInvalid, "the arguments are longer than %d bytes", maxArguments)
		a.Arguments = "{}"
	case x.calls > maxCalls:
		a.refused = memory.Errorf(memory.ErrDenied, "there were %d calls in this turn already: answer with what you have", maxCalls)
	case x.again(a):
		a.refused = memory.Errorf(memory.ErrDenied, "this very call was made %d times already and its results stand above: answer with them", maxSame)
	}
	a.op = o
	if a.refused != nil {
		a.decision = runlog.Deny
	}
	return a
}

// notOffered says why a tool is not to be had: it is denied, or there is none.
func (x *turn) notOffered(name string) error {
	for _, o := range x.rt.Catalog.All() {
		if toolName(o.Name) == toolName(name) {
			return x.policy.refuses(o)
		}
	}
	names := make([]string, len(x.tools.specs))
	for i, s := range x.tools.specs {
		names[i] = s.Name
	}
	hint := "the tools are: " + strings.Join(names, ", ")
	if near := memory.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no tool %q", name), hint)
}

// again counts a call and reports whether it was made too often.
func (x *turn) again(a asked) bool {
	var input any
	key := a.Name + " " + a.Arguments
	if json.Unmarshal([]byte(a.Arguments), &input) == nil {
		if same, err := json.Marshal(input); err == nil { // members in one order, without white space
			key = a.Name + " " + string(same)
		}
	}
	x.made[key]++
	return x.made[key] > maxSame
}

// carryOut runs a call, or says why not, and notes it everywhere: as an event, in
// the run's bundle and in the audit log. The text is what the model is given; err
// is trouble with noting it.
func (x *turn) carryOut(ctx context.Context, a asked) (text string, callErr, err error) {
	began := x.rt.Now()
	var out any
	callErr = a.refused
	if callErr == nil {
		out, callErr = x.rt.attempt(memory.WithSession(memory.WithActor(ctx, x.actor), x.session), x.Agent, a)
	}
	text, callErr = resultText(out, callErr)
	text = x.fit(x.rt.Redact.Text(text))
	ms := x.rt.Now().Sub(began).Milliseconds()
	outcome := runlog.Outcome(callErr)
	e := memory.Event{Type: memory.ToolResult, Origin: originOf(a.op.Name), Text: text,
		Metadata: map[string]any{memory.MetaTool: a.tool(), metaCall: a.ID, metaRound: strconv.Itoa(a.round), "outcome": outcome}}
	if reflects(a.tool()) {
		e.Text, e.Metadata[metaContent] = "", text
	}
	if err := x.record(ctx, e); err != nil {
		return text, callErr, err
	}
	if a.refused == nil {
		x.hookTool(a, text)
	}
	if err := x.bundle.Tool(runlog.ToolCall{At: began.UTC(), Round: a.round, ID: a.ID, Tool: a.tool(), Input: json.RawMessage(a.Arguments),
		Decision: a.decision, Outcome: outcome, Result: text, Millis: ms}); err != nil {
		return text, callErr, err
	}
	return text, callErr, x.rt.audit(ctx, x.Agent, runlog.Entry{Op: a.tool(), Effect: a.op.Effect, Caller: x.policy.caller, Session: x.session.ID, Run: x.bundle.ID(),
		Decision: a.decision, Outcome: outcome, Error: message(callErr), Millis: ms})
}

// fit cuts a result to the room that is left for results in the turn's prompt.
func (x *turn) fit(text string) string {
	const noted = 40 // tokens of what stands in place of a result
	text = clip(text, max(x.results, noted)*charsPerToken)
	x.results -= min(tokens(text), x.results)
	return text
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// tool is the operation's name; of one that does not exist, what it was called.
func (a asked) tool() string {
	if a.op.Name != "" {
		return a.op.Name
	}
	return a.Name
}

// event is the record of a call that by asked for.
func (a asked) event(by memory.Origin) memory.Event {
	e := memory.Event{Type: memory.ToolCall, Origin: by, Text: a.tool() + " " + a.Arguments,
		Metadata: map[string]any{memory.MetaTool: a.tool(), metaCall: a.ID, metaRound: strconv.Itoa(a.round), metaArguments: a.Arguments}}
	if reflects(a.tool()) {
		e.Text = ""
	}
	return e
}

// attempt carries an operation out within its deadline. One that does not return is
// left behind, counted, and a panic is an error: neither ends the turn.
func (r *Runtime) attempt(ctx context.Context, agent memory.AgentID, a asked) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	type result struct {
		out any
		err error
	}
	returned := make(chan result, 1)
	go func() {
		defer cancel()
		defer func() {
			if v := recover(); v != nil {
				r.Log.Error().Str("op", a.op.Name).Bytes("stack", debug.Stack()).Msg("operation panicked")
				returned <- result{err: memory.Errorf(memory.ErrInternal, "%s failed: panic: %v", a.op.Name, v)}
			}
		}()
		out, err := a.op.Call(ctx, agent, json.RawMessage(a.Arguments))
		returned <- result{out, err}
	}()
	select {
	case got := <-returned:
		return got.out, got.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(obeyWithin)
	defer timer.Stop()
	select {
	case got := <-returned:
		return got.out, got.err
	case <-timer.C:
		r.stats.abandoned.Add(1)
		return nil, memory.Errorf(memory.ErrUnavailable, "%s did not answer: %w", a.op.Name, ctx.Err())
	}
}

// resultText is what a model is given of a call: the output as JSON, or the error
// with its kind and hint; cut to a length.
func resultText(out any, err error) (string, error) {
	if err == nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err = enc.Encode(out); err == nil {
			return clip(strings.TrimSuffix(buf.String(), "\n"), maxResult), nil
		}
	}
	text := fmt.Sprintf("error (%s): %s", memory.KindOf(err), err)
	if hint := memory.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return clip(text, maxResult), err
}

// clip cuts s to at most limit bytes, between characters, and says so.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n… %d more bytes are left out; ask for less", s[:cut], len(s)-cut)
}
