package proxy

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// captureTime bounds how long an answer waits until the request's messages are
// written down.
const captureTime = 5 * time.Second

// enterTime bounds how long a request waits for memory to be opened: that takes its
// time where much has to be indexed first, once in the life of a process.
const enterTime = 10 * time.Second

// nameSession says which conversation the request is of: the one that it names, else
// one that follows from its user and how it begins.
func (x *exchange) nameSession(named string) error {
	x.session = memory.Session{Channel: Channel, UserID: userID(x.talk.user)}
	if named != "" {
		x.session.ID, x.named = named, true
		return session.CheckID(named)
	}
	key, err := x.p.Key()
	if err != nil {
		return nil // remember reports it
	}
	h := keyed(key).hash()
	fmt.Fprintf(h, "%q", x.talk.user)
	for _, m := range x.talk.messages {
		fmt.Fprintf(h, " %q %q %q", m.role, strings.TrimSpace(m.text), m.media)
		if m.isUser() {
			break
		}
	}
	x.session.ID = "proxy-" + spell(h.Sum(nil)[:10])
	return nil
}

// spell writes bytes in letters that nobody takes for a secret.
func spell(b []byte) string { return hex.EncodeToString(b) }

// userID is a client's user as a session keeps it; "" for one that it cannot keep.
func userID(user string) string {
	if len(user) > 256 || strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return user
}

// remember finds out what memory has to say, and begins to write the request down.
// It does not fail: what goes wrong is noted.
func (x *exchange) remember() {
	if !x.mode.read && !x.mode.write || len(x.talk.messages) == 0 {
		return
	}
	on, err := x.p.Remembers(x.agent)
	if err == nil && !on {
		return
	}
	if err == nil {
		err = x.enter()
	}
	if err != nil {
		x.trouble("memory was not asked", err)
		return
	}
	inPrompt := x.place()
	if x.mode.read {
		x.recall(inPrompt)
	}
	if x.mode.write {
		x.capture()
	}
}

func (x *exchange) trouble(what string, err error) {
	x.p.stats.recallFailed.Add(1)
	x.p.Log.Warn().Err(err).Str("agent", string(x.agent)).Msg(what)
	x.wrong = append(x.wrong, what+": "+err.Error())
}

// enter opens what the exchange needs of memory.
func (x *exchange) enter() error {
	key, err := x.p.Key()
	if err != nil {
		return err
	}
	x.key = key
	// Neither stores that take long to open nor an erasure may hold up a chat.
	opening, stop := context.WithTimeout(x.r.Context(), enterTime)
	defer stop()
	if err := x.p.Open(opening, x.agent); err != nil {
		return err
	}
	ctx, end := context.WithCancel(x.r.Context())
	impatient := time.AfterFunc(enterTime, end)
	ctx, done, err := x.p.Hold.Begin(ctx, x.agent)
	if !impatient.Stop() && err == nil {
		done()
		err = memory.Errorf(memory.ErrUnavailable, "the memory is being worked on")
	}
	if err != nil {
		end()
		return err
	}
	x.r, x.given = x.r.WithContext(ctx), append(x.given, end, done)
	t, leave := x.p.threads.enter(string(x.agent) + "/" + x.session.ID)
	x.given = append(x.given, leave)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded {
		past, err := x.p.Past(ctx, x.agent, x.session.ID, nodesKept)
		if err != nil {
			return err
		}
		for _, s := range past {
			if n, ok := parseSource(s.Source); ok {
				n.seq, n.answer = s.Seq, s.Answer
				t.add(n)
			}
		}
		t.loaded = true
	}
	x.thread = t
	return nil
}

// place finds which messages are known, and returns the seq of the oldest of them.
func (x *exchange) place() (inPrompt int64) {
	var list []message
	for _, m := range x.talk.messages {
		if !m.isPrefix() {
			list = append(list, m)
		}
	}
	t := x.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	x.placed = t.place(x.key, list, x.named && !x.retry)
	return t.first(x.placed)
}

// lastTurn is the id of the message that begins the last user turn; 0 for none.
func (x *exchange) lastTurn() mark {
	if x.talk.last < 0 {
		return 0
	}
	behind := 0
	for _, m := range x.talk.messages[x.talk.last:] {
		if !m.isPrefix() {
			behind++
		}
	}
	return x.placed[len(x.placed)-behind].id
}

// recall asks memory about the last user turn, unless it did so for this very turn
// before: in a tool loop the block stays as it is.
func (x *exchange) recall(inPrompt int64) {
	question := x.talk.question()
	if question == "" {
		return
	}
	key := blockKey{x.agent, x.session.ID, x.lastTurn()}
	if have, known := x.p.blocks.get(key, x.p.Now()); known {
		x.block, x.run = have.block, have.run
		return
	}
	question = x.p.Redact.Text(clean(question))
	ctx := x.r.Context()
	runs, release, err := x.p.Runs(ctx, x.agent)
	if err != nil {
		x.trouble("memory was not asked", err)
		return
	}
	x.given = append(x.given, release)
	var bundle *runlog.Run
	var starting sync.WaitGroup
	starting.Go(func() {
		bundle, err = runs.Start(runlog.Input{Session: x.session.ID, Channel: Channel, Text: question})
	})
	began := x.p.blocks.began(x.agent)
	got := x.p.Recall.Block(ctx, x.agent, recall.Request{Text: question, Session: x.session.ID, Now: x.p.Now(), InPrompt: inPrompt})
	starting.Wait()
	x.block = got.Text
	if got.Degraded != "" {
		x.p.stats.recallFailed.Add(1)
		x.wrong = append(x.wrong, "memory was not fully asked: "+got.Degraded)
	}
	if err != nil { // nobody could say later where the block came from
		x.block = ""
		x.trouble("what memory said could not be explained later, so it was left out", err)
		return
	}
	x.keep(bundle, question, got, inPrompt)
	if got.Degraded == "" {
		x.p.blocks.put(key, keptBlock{block: x.block, run: x.run, at: x.p.Now()}, began)
	}
}

// keep has the bundle that explains the block filled beside what follows; end waits
// for it.
func (x *exchange) keep(bundle *runlog.Run, question string, got recall.Block, inPrompt int64) {
	x.bundle, x.run = bundle, bundle.ID()
	x.keeping.Go(func() {
		if err := bundle.Recall(runlog.Recall{Query: question, Block: got.Text, Trace: got.Trace, Degraded: got.Degraded, InPrompt: inPrompt}); err != nil {
			x.p.Log.Warn().Err(err).Str("run", x.run).Msg("what was recalled is not kept")
		}
	})
}

// capture begins to write down what of the request is new.
func (x *exchange) capture() {
	var told []intake.Event
	tools := toolNames(x.talk.messages)
	for _, p := range x.placed {
		if !p.known {
			told = append(told, p.eventsOf(tools, x.run, false)...)
		}
	}
	x.capturing.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), captureTime)
		defer cancel()
		if x.lost = x.write(ctx, told, x.placed); x.lost != nil {
			x.failed = told
		}
	})
}

// await waits until the request is written down, or could not be.
func (x *exchange) await() {
	x.capturing.Wait()
	if x.lost != nil {
		x.p.stats.captureFailed.Add(1)
		x.p.Log.Warn().Err(x.lost).Str("agent", string(x.agent)).Msg("a proxied conversation is not written down")
		x.wrong = append(x.wrong, "the conversation was not written down: "+x.lost.Error())
	}
}

// write writes events down and makes their messages known.
func (x *exchange) write(ctx context.Context, told []intake.Event, of []placed) error {
	var first int64
	for rest := told; len(rest) > 0; {
		n := min(len(rest), intake.MaxEvents)
		report, err := x.p.Take(ctx, x.agent, x.session, rest[:n])
		if err != nil {
			return err
		}
		if first == 0 {
			first = report.FirstSeq
		}
		x.last = max(x.last, report.LastSeq)
		rest = rest[n:]
	}
	if x.meta.FirstSeq == 0 {
		x.meta.FirstSeq = first
	}
	t, tokens := x.thread, 0
	t.mu.Lock()
	fresh := int64(0)
	for _, p := range of {
		if p.known || t.nodes[p.id] != nil {
			continue
		}
		n := node{id: p.id, digest: p.digest, parent: p.parent, answer: p.role == "assistant"}
		if first > 0 {
			n.seq = first + fresh
		}
		fresh++
		t.add(n)
		tokens += (utf8.RuneCountInString(p.text) + 3) / 4
	}
	t.unflushed += tokens
	full := x.p.Flush != nil && t.unflushed >= x.p.FlushAt(x.agent)
	if full {
		t.unflushed = 0
	}
	t.mu.Unlock()
	if len(told) == 0 {
		return nil
	}
	x.p.Written(x.agent)
	if full {
		if _, err := x.p.Flush.Ask(ctx, x.agent, vitals.EdgeWindow, x.last); err != nil {
			x.p.Log.Warn().Err(err).Str("agent", string(x.agent)).Msg("the session fills the model's window, and its turns could not be queued to be distilled")
		}
	}
	return nil
}

// answered makes the answer the place where the conversation goes on, before the
// client can know of it.
func (x *exchange) answered(r *reply) {
	if x.thread == nil || !x.mode.write || r == nil || r.isEmpty() {
		return
	}
	t := x.thread
	t.mu.Lock()
	defer t.mu.Unlock()
	p := x.placeReply(r)
	t.tip = &node{id: p.id, digest: p.digest, parent: p.parent, answer: true}
}

func (x *exchange) placeReply(r *reply) placed {
	p := placed{message: r.message, digest: x.key.digest(r.message)}
	if n := len(x.placed); n > 0 {
		p.parent = x.placed[n-1].id
	}
	p.id = x.key.child(p.parent, p.digest)
	return p
}

// end writes down how the exchange ended: the answer, and the run.
func (x *exchange) end(r *reply, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), captureTime)
	defer cancel()
	output := ""
	if r != nil {
		output = r.text
		x.meta.Model, x.meta.TokensIn, x.meta.TokensOut = r.model, r.tokensIn, r.tokensOut
		x.p.stats.tokensIn.Add(int64(r.tokensIn))
		x.p.stats.tokensOut.Add(int64(r.tokensOut))
	}
	if r != nil && !r.isEmpty() && x.thread != nil && x.mode.write {
		p := x.placeReply(r)
		told := append(x.failed, p.eventsOf(nil, x.run, r.partial)...)
		of := []placed{p}
		if x.lost != nil {
			of = append(append([]placed{}, x.placed...), p)
		}
		if err := x.write(ctx, told, of); err != nil {
			x.p.stats.captureFailed.Add(1)
			x.wrong = append(x.wrong, "the answer was not written down: "+err.Error())
			x.p.Log.Warn().Err(err).Str("agent", string(x.agent)).Msg("an answer is not written down")
		}
	}
	if x.bundle == nil {
		return
	}
	x.keeping.Wait()
	x.meta.Status, x.meta.Rounds, x.meta.Warnings = runlog.OK, 1, x.wrong
	if failure != nil {
		x.meta.Status, x.meta.Error = runlog.Failed, failure.Error()
	}
	if x.meta.Model == "" {
		x.meta.Model = x.model
	}
	if err := x.bundle.Finish(output, x.meta); err != nil {
		x.p.Log.Warn().Err(err).Str("run", x.run).Msg("a run is not kept")
	}
}
