package judge_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/session"
)

const agent = memory.AgentID("default")

// Variables that tell a child where the model is, and by how much its clock is
// ahead: a process that was killed leaves a lease behind, and nobody waits here
// until that has passed.
const (
	modelURL = "JUDGE_MODEL_URL"
	ahead    = "JUDGE_AHEAD"
)

// patience is how long a model may take for an answer, the longest of the stub's
// included.
const patience = 2 * time.Second

// generation is how far each process's clock is ahead of the one before.
const generation = time.Minute

// clock is the time, so much ahead.
func clock(ahead time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(ahead) }
}

func TestMain(m *testing.M) {
	judge.MaybeChild(map[string]judge.Part{"ingest": ingest, "live": live})
	goleak.VerifyTestMain(m)
}

// brain is one agent's memory, wired as the program wires it, with a model at
// the other end of real HTTP.
type brain struct {
	log         *events.Log
	store       *working.Store
	checkpoints *checkpoint.Service
	client      *llm.Client
}

// openBrain opens the memory in dir; with no url of a model, its log alone.
func openBrain(ctx context.Context, dir, url string, now func() time.Time) (b *brain, err error) {
	b = &brain{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	newID := func() string { return ulid.Make().String() }
	secrets, err := redact.New([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		return b, err
	}
	if b.log, err = events.Open(ctx, filepath.Join(dir, "events"), events.Options{Now: now, NewID: newID, Redact: secrets, Log: zerolog.Nop()}); err != nil {
		return b, err
	}
	if url == "" {
		return b, nil
	}
	if b.store, err = working.Open(ctx, dir, working.Options{Agent: agent, Log: b.log, Redact: secrets, Now: now, NewID: newID}); err != nil {
		return b, err
	}
	out, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url}}})
	if err != nil {
		return b, err
	}
	if b.client, err = llm.New(llm.Config{Provider: llm.Generic, BaseURL: url, Model: "stub", Timeout: patience, MaxRetries: 1}, out, time.Now, func() float64 { return 0 }); err != nil {
		return b, err
	}
	a := checkpoint.Agent{
		Store: b.store, Log: b.log, Dir: filepath.Join(dir, "checkpoints"),
		Sessions: session.Open(filepath.Join(dir, "sessions"), session.Options{Agent: agent, Now: now, Redact: secrets}),
		Model:    distill.NewModel(asDistiller{b.client.For(agent)}), BatchTokens: 120, OnFailure: checkpoint.Park,
	}
	b.checkpoints = checkpoint.NewService(checkpoint.Options{
		Write:  func(context.Context, memory.AgentID) (checkpoint.Agent, func(), error) { return a, func() {}, nil },
		Read:   func(context.Context, memory.AgentID) (*working.Store, func(), error) { return b.store, func() {}, nil },
		Redact: secrets, Now: now, NewID: newID, Holder: fmt.Sprintf("pid %d", os.Getpid()),
	})
	return b, nil
}

func (b *brain) close() error {
	var errs []error
	if b.client != nil {
		b.client.Close()
	}
	if b.store != nil {
		errs = append(errs, b.store.Close())
	}
	if b.log != nil {
		errs = append(errs, b.log.Close())
	}
	return errors.Join(errs...)
}

// asDistiller gives a Completer the form that distill asks for.
type asDistiller struct{ llm.Completer }

func (d asDistiller) Complete(ctx context.Context, system, user string, schema json.Marshaler) (string, distill.Usage, error) {
	text, u, err := d.Completer.Complete(ctx, system, user, schema)
	return text, distill.Usage{Model: "stub", Calls: u.Calls, TokensIn: u.TokensIn, TokensOut: u.TokensOut}, err
}

// turn is a turn unlike any other, so that no two are taken for one.
func turn() memory.Event {
	words := make([]string, 8)
	for i := range words {
		word := make([]byte, 7)
		for j := range word {
			word[j] = byte('a' + rand.IntN(26))
		}
		words[i] = string(word)
	}
	return memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, SessionID: "s1", Text: fmt.Sprintf("I keep the %s.", strings.Join(words, " "))}
}

// say makes a few turns durable, and acknowledges them.
func say(ctx context.Context, log *events.Log, ack func(string) error) error {
	var ids []string
	for range 1 + rand.IntN(4) {
		queued, err := log.Append(ctx, turn())
		if err != nil {
			return err
		}
		for _, e := range queued {
			ids = append(ids, e.ID)
		}
	}
	if err := log.Flush(ctx); err != nil {
		return err
	}
	return ack(strings.Join(ids, " "))
}

// ingest appends turns until it is killed.
func ingest(dir string, ack func(string) error) error {
	ctx := context.Background()
	b, err := openBrain(ctx, dir, "", time.Now)
	if err != nil {
		return err
	}
	for {
		if err := say(ctx, b.log, ack); err != nil {
			return errors.Join(err, b.close())
		}
	}
}

// live appends turns and distils them at the same time, until it is killed.
func live(dir string, ack func(string) error) error {
	ctx := context.Background()
	skew, err := time.ParseDuration(os.Getenv(ahead))
	if err != nil {
		return err
	}
	b, err := openBrain(ctx, dir, os.Getenv(modelURL), clock(skew))
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() {
		for {
			if err := say(ctx, b.log, ack); err != nil {
				failed <- err
				return
			}
			time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
		}
	}()
	go func() {
		for {
			// Another process may be at it: waiting is not failing.
			_, err := b.checkpoints.Checkpoint(ctx, agent, checkpoint.Request{})
			if err != nil && !errors.Is(err, memory.ErrConflict) {
				failed <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return errors.Join(<-failed, b.close())
}

// hold reads back what the memory in dir holds.
func hold(t *testing.T, b *brain) judge.Held {
	t.Helper()
	var h judge.Held
	for at := (memory.Cursor{}); ; {
		list, next, err := b.log.Read(t.Context(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		h.Events, at = append(h.Events, list...), next
	}
	if damage := b.log.Damage(); len(damage) > 0 {
		t.Errorf("damage in the log: %+v", damage)
	}
	if b.store == nil {
		return h
	}
	progress, err := b.store.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.Cursor = progress.Cursor.Seq
	for _, p := range progress.Parked {
		h.Parked = append(h.Parked, p.Range)
	}
	all := 0
	list, err := b.store.List(t.Context(), working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		t.Fatal(err)
	}
	h.Items = list.Items
	return h
}

// kills is how often a child is killed; "go test ./internal/judge -run Kill
// -kills 500" is the long form.
var kills = flag.Int("kills", 12, "how often each part is killed")

func ackAll(truth *judge.Truth, lines ...string) {
	for _, l := range lines {
		truth.Ack(strings.Fields(l)...)
	}
}

// killedOften starts a part again and again, kills it at a random moment, holds
// what is left against the truth, and calls look with it.
func killedOften(t *testing.T, part, dir, url string, n int, truth *judge.Truth, look func(judge.Held)) {
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		now := time.Duration(2*i) * generation
		child := judge.StartChild(t, part, dir, modelURL+"="+url, ahead+"="+now.String())
		for range 5 + chance.IntN(25) {
			line, more := child.Ack()
			if !more {
				break
			}
			ackAll(truth, line)
		}
		time.Sleep(time.Duration(chance.IntN(3000)) * time.Microsecond) // into the middle of something
		ackAll(truth, child.Kill()...)
		b, err := openBrain(t.Context(), dir, url, clock(now+generation))
		if err != nil {
			t.Fatal(err)
		}
		h := hold(t, b)
		if f := truth.Check(h); len(f) != 0 {
			t.Errorf("after kill %d:\n%s", i+1, f)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
		look(h)
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestKillWhileIngesting holds promise P1 and P2: what was acknowledged is in the
// log, once, in order, whenever the process dies.
func TestKillWhileIngesting(t *testing.T) {
	dir, truth := t.TempDir(), &judge.Truth{}
	n := *kills
	killedOften(t, "ingest", dir, "", n, truth, func(judge.Held) {})
	t.Logf("%d kills, %d acknowledged, 0 lost", n, truth.Acked())
	if truth.Acked() < n {
		t.Errorf("only %d events were acknowledged", truth.Acked())
	}
}

// TestKillWhileDistilling holds promises P3 to P5 against a process that dies at
// any moment and a model that mostly fails: each acknowledged
// event is distilled once, parked, or pending, and in the end distilled.
func TestKillWhileDistilling(t *testing.T) {
	s := judge.NewServer(t)
	s.RedirectTo("http://192.0.2.1/")
	s.Mix(3, "good", "good", "500", "reset", "fenced", "cut", "empty-object", "429")
	dir, truth := t.TempDir(), &judge.Truth{}
	n := *kills
	killedOften(t, "live", dir, s.URL, n, truth, func(judge.Held) {})
	calls := len(s.Calls())
	s.Mix(3, "good")
	modes := drain(t, dir, s.URL, clock(time.Duration(2*n)*generation), truth)
	t.Logf("%d kills, %d acknowledged, %d model calls before the last run, checkpoints %v", n, truth.Acked(), calls, modes)
	if modes[working.ModeModel] == 0 || modes[working.ModeParked] == 0 {
		t.Errorf("checkpoints %v: this has tested nothing", modes)
	}
}

// drain runs a checkpoint with the model back, and checks that everything is
// distilled then. It returns how many checkpoints of each mode there ever were.
func drain(t *testing.T, dir, url string, now func() time.Time, truth *judge.Truth) (modes map[string]int) {
	t.Helper()
	b, err := openBrain(t.Context(), dir, url, now)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.checkpoints.Checkpoint(t.Context(), agent, checkpoint.Request{})
	if err != nil || len(res.Parked) != 0 || res.BacklogLeft != 0 {
		t.Fatalf("the last checkpoint: %+v, %v", res, err)
	}
	h := hold(t, b)
	if f := truth.Check(h); len(f) != 0 {
		t.Errorf("in the end:\n%s", f)
	}
	for _, e := range h.Events {
		if e.Type.IsTurn() && e.Seq > h.Cursor {
			t.Errorf("%s is still pending", e.ID)
		}
	}
	records, err := b.store.Checkpoints(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	modes = map[string]int{}
	for _, r := range records {
		modes[r.Mode]++
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	return modes
}

// TestTwoProcessesAtOnce has two children live on one agent, and kills one: the
// other goes on, and nothing is distilled twice.
func TestTwoProcessesAtOnce(t *testing.T) {
	s := judge.NewServer(t)
	s.Think(20 * time.Millisecond) // so that their calls overlap
	dir, truth := t.TempDir(), &judge.Truth{}
	children := []*judge.Child{judge.StartChild(t, "live", dir, modelURL+"="+s.URL, ahead+"=0s"), judge.StartChild(t, "live", dir, modelURL+"="+s.URL, ahead+"=0s")}
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() {
			for range 30 {
				line, more := c.Ack()
				if !more {
					t.Error("a child has ended")
					return
				}
				ackAll(truth, line)
			}
		})
	}
	wg.Wait()
	ackAll(truth, children[0].Kill()...)
	for range 30 {
		line, more := children[1].Ack()
		if !more {
			break
		}
		ackAll(truth, line)
	}
	ackAll(truth, children[1].Kill()...)
	s.Think(0)
	drain(t, dir, s.URL, clock(generation), truth)
	t.Logf("%d acknowledged by two processes", truth.Acked())
}
