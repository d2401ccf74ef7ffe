package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/runtime"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// Talk is what the commands that talk to an agent work with.
type Talk struct {
	// Run runs one turn.
	Run func(context.Context, runtime.Turn) (runtime.Result, error)
	// Sleep ends a session: what was said in it is queued to be distilled, and its
	// agent's workspace learns of it.
	Sleep func(ctx context.Context, agent memory.AgentID, session string, why vitals.Edge) (runtime.Slept, error)
	// Schedule runs the schedule until its context ends.
	Schedule func(context.Context) error
	// Overdue names the agent's jobs that should have run and nothing runs.
	Overdue func(context.Context, memory.AgentID) ([]string, error)
	// Warm brings the agent's index up to date, so that the first answer does not
	// have to.
	Warm func(context.Context, memory.AgentID) error
	// News returns the messages of the agent that no chat has shown to the session's
	// user yet, as text.
	News func(ctx context.Context, agent memory.AgentID, session memory.Session) ([]string, error)
}

// where are the flags that say which conversation a message belongs to.
type where struct{ session, channel, user, zone, kind string }

func (w *where) flags(c *cobra.Command, channel string) {
	c.Flags().StringVar(&w.session, "session", "", "session to go on with; a new one if absent")
	c.Flags().StringVar(&w.channel, "channel", channel, "where the conversation takes place")
	c.Flags().StringVar(&w.user, "user", "", "id of the user")
	c.Flags().StringVar(&w.zone, "zone", "", "the user's time zone, such as Europe/Lisbon")
	c.Flags().StringVar(&w.kind, "kind", "", "main (private) or group")
}

func (w *where) of(id string) memory.Session {
	return memory.Session{ID: id, Channel: w.channel, UserID: w.user, Zone: w.zone, Kind: w.kind}
}

// Ask answers one question.
func Ask(t Talk) Command {
	return func(r *Runner) *cobra.Command {
		var w where
		var why bool
		c := &cobra.Command{
			Use: "ask QUESTION…", Short: "Ask one thing and print the answer",
			Long:    "Ask one thing and print the answer. It is a turn like any other: it is remembered. - reads the question from standard input.",
			Example: "  openclawssy ask \"what did we decide about the car?\"\n  git log -5 | openclawssy ask --json -",
			Args:    cobra.MinimumNArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				text, err := r.message(strings.Join(args, " "))
				if err != nil {
					return err
				}
				res, err := r.turn(c.Context(), t, &w, text)
				if err != nil || !why || r.Options.JSON {
					return err
				}
				return r.provenance(c.Context(), res.Block)
			},
		}
		w.flags(c, "cli")
		c.Flags().BoolVar(&why, "why", false, "print the block of memory too, and where each of its lines comes from")
		return c
	}
}

// provenance prints a block, and what explains each of its lines.
func (r *Runner) provenance(ctx context.Context, block string) error {
	if block == "" {
		_, err := fmt.Fprintln(r.Out, "(no memory was relevant enough)")
		return err
	}
	fmt.Fprintf(r.Out, "\n%s\n", cleanLines(block))
	explain, err := r.App.Catalog.Get("memory.explain")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(block, "\n") {
		handle, _, found := strings.Cut(strings.TrimPrefix(line, "["), "]")
		if !found || !strings.HasPrefix(line, "[") {
			continue
		}
		raw, err := json.Marshal(map[string]string{"handle": handle})
		if err != nil {
			return err
		}
		out, err := explain.Call(ctx, r.Agent(), raw)
		if err != nil {
			return err
		}
		if err := r.show(out); err != nil {
			return err
		}
	}
	return nil
}

// Once runs one turn for a program.
func Once(t Talk) Command {
	return func(r *Runner) *cobra.Command {
		var w where
		var message string
		c := &cobra.Command{
			Use: "run", Short: "Run one turn for a program: message in, answer out", Args: cobra.NoArgs,
			Long:    "Run one turn for a program. With --json the answer comes with its run, session and the block of memory that was injected.",
			Example: "  openclawssy run --session s1 --message \"I moved to Lisbon\" --json\n  openclawssy run --message '/tool memory.checkpoint {}'",
			RunE: func(c *cobra.Command, _ []string) error {
				if !c.Flags().Changed("message") {
					message = "-"
				}
				text, err := r.message(message)
				if err != nil {
					return err
				}
				_, err = r.turn(c.Context(), t, &w, text)
				return err
			},
		}
		c.Flags().StringVar(&message, "message", "", "what is said; standard input if absent or -")
		w.flags(c, "cli")
		return c
	}
}

// message returns text, or standard input for "-".
func (r *Runner) message(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	in, err := io.ReadAll(io.LimitReader(r.In, 1<<20))
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "read standard input: %w", err)
	}
	return strings.TrimRight(string(in), "\r\n"), nil
}

// turn runs one message and prints the answer, as it comes where a person reads.
func (r *Runner) turn(ctx context.Context, t Talk, w *where, text string) (runtime.Result, error) {
	if err := r.warm(ctx, t); err != nil {
		return runtime.Result{}, err
	}
	return r.say(ctx, t, runtime.Turn{Agent: r.Agent(), Session: w.of(w.session), Text: text})
}

// warm prepares memory. Where memory is in trouble the talk goes on without, and
// says so.
func (r *Runner) warm(ctx context.Context, t Talk) error {
	if err := t.Warm(ctx, r.Agent()); err != nil {
		r.note("Memory cannot be asked: %s", clean(err.Error()))
	}
	return ctx.Err()
}

// say runs a turn and prints the answer: as it comes, or whole with --json.
func (r *Runner) say(ctx context.Context, t Talk, turn runtime.Turn) (runtime.Result, error) {
	out := &streamed{w: r.Out}
	if !r.Options.JSON {
		turn.Stream = out.write
	}
	res, err := t.Run(ctx, turn)
	if err != nil {
		return res, errors.Join(err, out.end(""))
	}
	if r.Options.JSON {
		return res, writeJSON(r.Out, res.Answer(r.Agent()))
	}
	if err := out.end(res.Text); err != nil {
		return res, memory.Errorf(memory.ErrUnavailable, "print: %w", err)
	}
	for _, n := range res.Notes {
		r.note("(%s)", clean(n))
	}
	return res, nil
}

// streamed prints an answer as it comes.
type streamed struct {
	w     io.Writer
	any   bool // something was printed
	ended bool // by a line break
	err   error
}

func (s *streamed) write(delta string) {
	if delta == "" || s.err != nil {
		return
	}
	s.any, s.ended = true, strings.HasSuffix(delta, "\n")
	_, s.err = io.WriteString(s.w, cleanLines(delta))
}

// end prints what did not stream, and the last line break.
func (s *streamed) end(whole string) error {
	if !s.any {
		s.write(whole)
	}
	if s.any && !s.ended {
		s.write("\n")
	}
	return s.err
}

// Chat talks until the end of the input.
func Chat(t Talk) Command {
	return func(r *Runner) *cobra.Command {
		var w where
		c := &cobra.Command{
			Use: "chat", Short: "Talk to the agent", Args: cobra.NoArgs,
			Long:    "Talk to the agent, one message a line. While it runs it also runs the schedule, unless another process does.\n" + runtime.Help(),
			Example: "  openclawssy chat\n  openclawssy chat --session s1 --user mara < messages.txt",
			RunE:    func(c *cobra.Command, _ []string) error { return r.chat(c.Context(), t, &w) },
		}
		w.flags(c, "cli")
		return c
	}
}

func (r *Runner) chat(ctx context.Context, t Talk, w *where) error {
	if err := r.warm(ctx, t); err != nil {
		return err
	}
	late, err := t.Overdue(ctx, r.Agent())
	if err != nil {
		r.note("The schedule cannot be read: %v", err)
	}
	if len(late) > 0 {
		r.note("Overdue, and caught up now: %s.", strings.Join(late, ", "))
	}
	return r.besideSchedule(ctx, t.Schedule, func(ctx context.Context) error { return r.talk(ctx, t, w) })
}

// besideSchedule runs work, and the schedule as long as it takes. Trouble of the
// schedule is told and ends nothing.
func (r *Runner) besideSchedule(ctx context.Context, schedule, work func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		if err := schedule(ctx); err != nil && ctx.Err() == nil {
			r.note("The schedule stopped: %v", err)
		}
	})
	err := work(ctx)
	end()
	beside.Wait()
	return err
}

// talk talks until the end of the input, and then lets the session sleep.
func (r *Runner) talk(ctx context.Context, t Talk, w *where) error {
	id, last := w.session, "" // last: the session of the last turn
	between := func() { r.news(ctx, t, w.of(id)) }
	between()
	err := r.turns(ctx, between, func(text string) (bool, error) {
		again, err := r.one(ctx, t, w, &id, text)
		if again {
			last = id
		}
		between()
		return again, err
	})
	if last == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sleepWithin)
	defer cancel()
	slept, sleepErr := t.Sleep(ctx, r.Agent(), last, vitals.EdgeShutdown)
	if sleepErr != nil {
		r.note("The session has ended, but %s", clean(sleepErr.Error()))
	}
	if slept.Queued && r.InTTY {
		r.note("(what was said is queued to be distilled; it can be recalled already)")
	}
	return err
}

// newsEvery is how often a chat that waits for its user looks for messages.
const newsEvery = 5 * time.Second

// news shows messages of the agent's own accord. They are no turn: neither the
// user nor the model has said them, and they are in no prompt.
func (r *Runner) news(ctx context.Context, t Talk, session memory.Session) {
	lines, err := t.News(ctx, r.Agent(), session)
	if err != nil && ctx.Err() == nil {
		r.note("Messages cannot be read: %s", clean(err.Error()))
	}
	out := r.Out
	if r.Options.JSON { // whose documents are the answers
		out = r.Err
	}
	for _, l := range lines {
		fmt.Fprintf(out, "[message] %s\n", cleanLines(l))
	}
}

// sleepWithin bounds what happens after a chat, which may have been interrupted.
const sleepWithin = 5 * time.Second

// turns reads messages and prints answers; between is called now and then while
// there is none. An error of one turn does not end the chat; it decides the exit
// status where it was the last.
func (r *Runner) turns(ctx context.Context, between func(), one func(text string) (again bool, err error)) error {
	lines := r.lines(ctx)
	idle := time.NewTicker(newsEvery)
	defer idle.Stop()
	if r.InTTY {
		r.note("Talking to %s. /help shows the commands.", r.Agent())
	}
	var last error
	for {
		if r.InTTY && !r.Options.JSON {
			fmt.Fprint(r.Out, "> ")
		}
		line, open := await(ctx, lines, idle.C, between)
		if !open {
			return nil
		}
		if line.err != nil {
			if errors.Is(line.err, io.EOF) {
				return last
			}
			return memory.Errorf(memory.ErrInvalid, "read message: %w", line.err)
		}
		if strings.TrimSpace(line.text) == "" {
			continue
		}
		again, err := one(line.text)
		last = nil
		if err != nil {
			r.fail(err)
			last = errFailed // it has been shown
		}
		if !again {
			return nil
		}
	}
}

// await returns the next line, and calls between at each tick until it comes; it
// reports false where ctx ended first.
func await(ctx context.Context, lines <-chan input, tick <-chan time.Time, between func()) (input, bool) {
	for {
		select {
		case <-ctx.Done():
			return input{}, false
		case line := <-lines:
			return line, true
		case <-tick:
			between()
		}
	}
}

type input struct {
	text string
	err  error // io.EOF at the end
}

// lines reads the input beside the chat, so that a signal ends it at once.
func (r *Runner) lines(ctx context.Context) <-chan input {
	out := make(chan input)
	go func() {
		send := func(in input) bool {
			select {
			case out <- in:
				return true
			case <-ctx.Done():
				return false
			}
		}
		s := bufio.NewScanner(r.In)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			if !send(input{text: s.Text()}) {
				return
			}
		}
		err := s.Err()
		if err == nil {
			err = io.EOF
		}
		send(input{err: err})
	}()
	return out
}

// one handles one line of a chat; it reports false where the chat is over. session
// becomes that of the line's turn, if it was one.
func (r *Runner) one(ctx context.Context, t Talk, w *where, session *string, text string) (bool, error) {
	cmd, isCommand, err := runtime.ParseCommand(text)
	switch {
	case err != nil:
		return true, err
	case isCommand && cmd.Name == "quit":
		return false, nil
	case isCommand && cmd.Name == "help":
		_, err := io.WriteString(r.Out, runtime.Help())
		return true, err
	}
	res, err := r.say(ctx, t, runtime.Turn{Agent: r.Agent(), Session: w.of(*session), Text: text})
	if res.Session != "" {
		*session = res.Session
	}
	return true, err
}
