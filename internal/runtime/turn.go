package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// turn is one turn under way. It belongs to one goroutine.
type turn struct {
	Turn
	rt      *Runtime
	cfg     config.Config
	session memory.Session
	window  *window
	log     *events.Log // nil where memory is off
	bundle  *runlog.Run
	policy  policy
	actor   memory.Origin // in whose name operations change memory
	tools   toolset
	quotes  bool      // what answers reads the recall block and no history
	now     time.Time // when the turn began, in the session's zone

	events  []memory.Event // of this turn, as they stand in the log
	calls   int
	made    map[string]int // calls by name and input
	results int            // tokens left for the results of calls
	hooked  []func(Hooks)  // what the hooks are told when the turn ends
	told    bool           // the log has it already if the turn fails
	given   []func()       // give back what the turn has borrowed
	res     Result
}

// endWithin bounds the writing at the end of a turn, which happens even where the
// turn was cancelled.
const endWithin = 10 * time.Second

// run runs a turn that is a message or a call that was typed.
func (r *Runtime) run(ctx context.Context, t Turn, cfg config.Config, command Command) (Result, error) {
	x := &turn{Turn: t, rt: r, cfg: cfg, made: map[string]int{}, results: roomOf(cfg).results}
	defer x.leave()
	if err := x.enter(ctx); err != nil {
		return x.res, err
	}
	var err error
	if command.Name == "tool" {
		err = x.typed(ctx, command)
	} else {
		err = x.talk(ctx)
	}
	return x.end(ctx, err)
}

// enter opens what the turn needs; leave gives back what was opened.
func (x *turn) enter(ctx context.Context) error {
	if err := x.enterWindow(ctx); err != nil {
		return err
	}
	runs, release, err := x.rt.Runs(ctx, x.Agent)
	if err != nil {
		return err
	}
	x.given = append(x.given, release)
	x.bundle, err = runs.Start(runlog.Input{Session: x.session.ID, Channel: x.session.Channel, Text: x.Text})
	if err != nil {
		return err
	}
	x.res.Run = x.bundle.ID()
	return nil
}

// enterWindow waits for the session's turn, and opens the log where memory is on.
func (x *turn) enterWindow(ctx context.Context) error {
	x.res.Session = x.Session.ID
	if err := x.enterSession(ctx); err != nil {
		return err
	}
	window, done, err := x.rt.windows.enter(ctx, x.Agent, x.session.ID)
	if err != nil {
		return err
	}
	x.window, x.given = window, append(x.given, done)
	if x.cfg.Memory.Enabled {
		log, release, err := x.rt.Logs(ctx, x.Agent)
		if err != nil {
			return err
		}
		x.log, x.given = log, append(x.given, release)
	}
	return nil
}

func (x *turn) leave() {
	for _, giveBack := range slices.Backward(x.given) {
		giveBack()
	}
}

// enterSession finds or starts the session, and sets what follows from it.
func (x *turn) enterSession(ctx context.Context) error {
	store, release, err := x.rt.Sessions(ctx, x.Agent)
	if err != nil {
		return err
	}
	defer release()
	want := x.Session
	if want.ID == "" {
		want.ID = x.rt.newSession()
	}
	if x.session, err = store.Ensure(ctx, want); err != nil {
		return err
	}
	x.res.Session = x.session.ID
	zone, err := time.LoadLocation(x.session.Zone)
	if err != nil {
		return fmt.Errorf("session %s: %w", x.session.ID, err)
	}
	x.now = x.rt.Now().In(zone)
	switch x.Origin {
	case memory.OriginAssistant, memory.OriginAgent:
		x.policy, x.actor = modelPolicy(x.cfg), memory.OriginAssistant
	case memory.OriginSystem:
		x.policy, x.actor = policy{caller: runlog.CallerCron}, memory.OriginSystem
	default:
		x.policy, x.actor = policy{caller: runlog.CallerUser}, memory.OriginUser
	}
	x.policy.group = x.inGroup()
	return nil
}

// inGroup reports whether others listen who must not hear what is private.
func (x *turn) inGroup() bool {
	return x.session.Kind == memory.SessionGroup && !x.cfg.Recall.PrivateInGroups
}

// typed carries out an operation that the message names. It is recorded as a call
// and its result; the result is the answer.
func (x *turn) typed(ctx context.Context, c Command) error {
	if err := x.follow(ctx); err != nil {
		return err
	}
	a := asked{ToolCall: llm.ToolCall{ID: "typed_0", Name: c.Tool, Arguments: string(c.Input)}, decision: runlog.Allow}
	o, err := x.rt.Catalog.Get(c.Tool)
	if err == nil {
		a.op = o
		err = x.policy.refuses(o)
	}
	if a.refused = err; err != nil {
		a.decision = runlog.Deny
	}
	if err := x.record(ctx, a.event(x.Origin)); err != nil {
		return err
	}
	text, callErr, err := x.carryOut(ctx, a)
	if err != nil {
		return err
	}
	x.res.ToolCalls, x.told = 1, true
	if callErr == nil {
		x.res.Text = text
	}
	return callErr
}

// talk asks the model about the message, and carries out what it asks for, until
// it answers.
func (x *turn) talk(ctx context.Context) error {
	if err := x.follow(ctx); err != nil {
		return err
	}
	said := memory.Event{Type: memory.UserMessage, Origin: x.Origin, Text: x.rt.Redact.Text(x.Text)}
	if x.Speaker != "" {
		said.Metadata = map[string]any{memory.MetaSpeaker: x.Speaker}
	}
	if err := x.durable(ctx, said); err != nil {
		return err
	}
	if x.Origin == memory.OriginAgent {
		x.hookMessage(said.Text)
	}
	model, err := x.rt.Model(x.Agent)
	if err != nil {
		return err
	}
	_, x.quotes = model.(llm.Offline)
	// Whoever the turn comes from: what the model then asks for is the model's wish.
	x.policy, x.actor = modelPolicy(x.cfg), memory.OriginAssistant
	x.policy.group = x.inGroup()
	x.tools = tools(x.rt.Catalog, x.policy)
	prompt, err := x.prompt(ctx)
	if err != nil {
		return err
	}
	return x.rounds(ctx, model, prompt)
}

// follow brings the window up to date with the log.
func (x *turn) follow(ctx context.Context) error {
	if x.log == nil {
		return nil
	}
	back := contextWindow(x.cfg)
	if x.Session.ID == "" {
		back = 0 // the session has just begun: there is nothing to look for
	}
	return x.window.follow(ctx, x.log, back)
}

// prompt queues the distillation of turns that will soon leave the window, cuts the
// history to the room there is, and recalls. The function that it returns makes the prompt
// of each round: only what the round before has added is new in it.
func (x *turn) prompt(ctx context.Context) (func() []llm.Message, error) {
	room := roomOf(x.cfg)
	system := systemPrompt(x.cfg.Runtime.Instructions, x.wake(ctx), x.log != nil) + x.persona(ctx)
	// The block counts with its cap, so that its length moves nothing.
	fixed := tokens(system) + x.tools.tokens() + x.cfg.Memory.MaxPromptTokens + tokensOf(messagesOf(x.events))
	full := x.window.behind()
	before := x.window.size
	gone := x.window.trim(max(room.prompt-fixed, 0))
	if gone > 0 {
		x.hookTrim(before, gone)
	}
	x.flush(ctx, func() bool { return fixed+full(x.window.flushed) >= room.flush }, gone)
	block, err := x.recall(ctx)
	if err != nil {
		return nil, err
	}
	x.res.Block = block
	history, about := messagesOf(x.window.turns()), contextMessage(x.now, block)
	prompt := func() []llm.Message { return assemble(system, history, about, messagesOf(x.events)) }
	return prompt, x.bundle.Prompt(render(prompt(), x.tools.specs))
}

// flush queues the distillation of the turns in view where they, with the fixed
// part of the prompt, have come to the edge of the window, or some that nobody was
// asked to distil have left it. That is once for each time that the window fills,
// by whichever process.
func (x *turn) flush(ctx context.Context, crosses func() bool, gone int64) {
	if x.log == nil || x.rt.Flush == nil || !crosses() && gone <= x.window.flushed {
		return
	}
	last := x.events[len(x.events)-1].Seq
	if asked := x.rt.Flush.Asked(x.Agent); asked < last && asked > x.window.flushed {
		if x.window.flushed = asked; !crosses() && gone <= asked {
			return
		}
	}
	queued, err := x.rt.Flush.Ask(ctx, x.Agent, vitals.EdgeWindow, last)
	switch {
	case err != nil:
		x.rt.stats.flushFailed.Add(1)
		x.res.Notes = append(x.res.Notes, "the session fills the model's window, and its turns could not be queued to be distilled: "+err.Error())
	case queued:
		x.res.Notes = append(x.res.Notes, "the session fills the model's window; its turns are queued to be distilled")
	}
	x.window.flushed = last
}

// rounds asks the model until it answers without asking for a tool. In the last
// round it is offered none.
func (x *turn) rounds(ctx context.Context, model llm.Chatter, prompt func() []llm.Message) error {
	for round := 1; ; round++ {
		req := llm.Request{Agent: x.Agent, Messages: prompt(), Tools: x.tools.specs}
		if round >= x.cfg.Runtime.MaxToolRounds {
			req.Tools = nil
		}
		reply, err := x.ask(ctx, model, req)
		if err != nil {
			return err
		}
		x.res.Rounds = round
		if len(reply.ToolCalls) == 0 || req.Tools == nil {
			return x.answer(ctx, reply, round)
		}
		if err := x.useTools(ctx, reply, round); err != nil {
			return err
		}
	}
}

// ask makes one call of the model. What it said before it failed is kept.
func (x *turn) ask(ctx context.Context, model llm.Chatter, req llm.Request) (llm.Reply, error) {
	var heard strings.Builder
	if x.Stream != nil {
		req.Stream = func(delta string) {
			heard.WriteString(delta)
			x.Stream(delta)
		}
	}
	reply, err := model.Chat(ctx, req)
	x.res.Usage.Calls += reply.Usage.Calls
	x.res.Usage.TokensIn += reply.Usage.TokensIn
	x.res.Usage.TokensOut += reply.Usage.TokensOut
	x.res.Usage.Estimated = x.res.Usage.Estimated || reply.Usage.Estimated
	if reply.Model != "" {
		x.res.Model = reply.Model
	}
	if err != nil {
		err = fmt.Errorf("ask the model: %w", err)
		if heard.Len() > 0 {
			x.res.Text = heard.String()
			return reply, errors.Join(err, x.record(ending(ctx), memory.Event{Type: memory.AssistantOutput, Origin: memory.OriginAssistant, Text: heard.String(),
				Metadata: map[string]any{metaPartial: true}}))
		}
	}
	return reply, err
}

// answer takes the model's text as the answer.
func (x *turn) answer(ctx context.Context, reply llm.Reply, round int) error {
	if strings.TrimSpace(reply.Text) == "" {
		return memory.Errorf(memory.ErrUnavailable, "the model answered nothing in round %d of %d", round, x.cfg.Runtime.MaxToolRounds)
	}
	x.res.Text = reply.Text
	return x.record(ctx, output(reply.Text, round))
}

func output(text string, round int) memory.Event {
	return memory.Event{Type: memory.AssistantOutput, Origin: memory.OriginAssistant, Text: text, Metadata: map[string]any{metaRound: fmt.Sprint(round)}}
}

// useTools carries out the calls of a round, one after the other.
func (x *turn) useTools(ctx context.Context, reply llm.Reply, round int) error {
	if strings.TrimSpace(reply.Text) != "" {
		if err := x.record(ctx, output(reply.Text, round)); err != nil {
			return err
		}
	}
	calls := make([]asked, len(reply.ToolCalls))
	for i, c := range reply.ToolCalls {
		calls[i] = x.decide(c, round, i)
		if err := x.record(ctx, calls[i].event(memory.OriginAssistant)); err != nil {
			return err
		}
	}
	for _, a := range calls {
		x.res.ToolCalls++
		if _, _, err := x.carryOut(ctx, a); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("turn interrupted: %w", err)
		}
	}
	return nil
}

// record queues an event of the turn; end makes it durable.
func (x *turn) record(ctx context.Context, e memory.Event) error {
	e = x.complete(e)
	if x.log == nil {
		x.keep(e)
		return nil
	}
	written, err := x.log.Append(ctx, e)
	if err != nil {
		return fmt.Errorf("write down the turn: %w", err)
	}
	x.events = append(x.events, written...)
	return nil
}

// durable writes an event of the turn and returns once it is on disk.
func (x *turn) durable(ctx context.Context, e memory.Event) error {
	e = x.complete(e)
	if x.log == nil {
		x.keep(e)
		return nil
	}
	written, err := x.log.Write(ctx, e)
	if err != nil {
		return fmt.Errorf("write down the message: %w", err)
	}
	x.events = append(x.events, written...)
	return nil
}

// keep holds an event where memory is off: in view as long as the program runs,
// and nowhere else.
func (x *turn) keep(e memory.Event) {
	e.ID, e.Text = "evt_"+x.rt.NewID(), x.rt.Redact.Text(e.Text)
	x.events = append(x.events, e)
}

func (x *turn) complete(e memory.Event) memory.Event {
	e.SessionID, e.RunID = x.session.ID, x.bundle.ID()
	e.Timestamp = x.rt.Now().In(x.now.Location())
	return e
}

// ending is ctx for what is written when a turn has ended, or was cancelled.
func ending(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// end writes down how the turn ended and makes all of it durable.
func (x *turn) end(ctx context.Context, failure error) (Result, error) {
	ctx, cancel := context.WithTimeout(ending(ctx), endWithin)
	defer cancel()
	meta := runlog.Meta{Status: runlog.OK, Model: x.res.Model, Rounds: x.res.Rounds, TokensIn: x.res.Usage.TokensIn, TokensOut: x.res.Usage.TokensOut, Warnings: x.res.Notes}
	if len(x.events) > 0 {
		meta.FirstSeq = x.events[0].Seq
	}
	var trouble []error
	if failure != nil {
		meta.Status, meta.Error = runlog.Failed, failure.Error()
		trouble = append(trouble, failure)
	}
	if failure != nil && !x.told {
		trouble = append(trouble, x.record(ctx, failed(failure)))
	}
	if x.log != nil {
		if err := x.log.Flush(ctx); err != nil {
			trouble = append(trouble, fmt.Errorf("write down the turn: %w", err))
		}
	} else {
		for _, e := range x.events {
			x.window.take(e)
		}
	}
	trouble = append(trouble, x.bundle.Finish(x.res.Text, meta))
	x.tellHooks()
	return x.res, errors.Join(trouble...)
}

// failed is the record of what a turn failed with.
func failed(err error) memory.Event {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "the turn was interrupted"
	}
	return memory.Event{Type: memory.ErrorEvent, Origin: memory.OriginSystem, Text: text, Metadata: map[string]any{"kind": string(memory.KindOf(err))}}
}
