//go:build fault && linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/judge/fault"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

const (
	// modelTimeout is how long one call may take; each is tried twice.
	modelTimeout = 2 * time.Second
	// modelLimit is how long something that asks a model may take in all on a busy
	// machine: a turn and a checkpoint each ask it a few times at most.
	modelLimit = time.Minute
	// later is when a process comes that finds no breaker open and no lease held.
	later = time.Hour
	// modelsAtOnce are the memories that wait for their models at the same time.
	modelsAtOnce = 8
)

// modelFaults counts what is wrong, over memories that live at the same time.
type modelFaults struct {
	t       *testing.T
	strayed string // where redirects to another host lead

	mu      sync.Mutex
	wrong   map[string]int
	slowest time.Duration
	calls   int
	bytes   int
}

// note counts one more of a kind.
func (f *modelFaults) note(kind, format string, args ...any) {
	f.t.Errorf("%s: %s", kind, fmt.Sprintf(format, args...))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong[kind]++
}

// timed runs something that asks a model.
func (f *modelFaults) timed(where string, do func() error) error {
	began := time.Now()
	err := do()
	took := time.Since(began)
	f.mu.Lock()
	f.slowest = max(f.slowest, took)
	f.mu.Unlock()
	if took > modelLimit {
		f.note(overran, "%s took %s", where, took)
	}
	return err
}

const (
	lost      = "lost, distilled twice or never"
	moved     = "cursor moved wrongly"
	unfit     = "items that break a rule"
	overran   = "calls over their deadline"
	untyped   = "errors without a kind"
	leaked    = "secrets of replies on disk"
	unmended  = "not mended by a model that answers again"
	blinded   = "searches that failed"
	misplaced = "vectors of another text"
)

// TestFaultF6 has the model answer a checkpoint, a turn and a request for vectors
// in every way of the stub's tables, and then all of them at random. P5, P13.
func TestFaultF6(t *testing.T) {
	r := fault.Begin(t, "F6")
	var strays atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strays.Add(1) }))
	f := &modelFaults{t: t, strayed: other.URL, wrong: map[string]int{}}
	f.quietly("good", func(name string, s *judge.Server, home string) {
		f.atTurn(judge.Behaviour{Name: name, Class: judge.Conforming}, s, home)
	}) // what is opened once per process is open now
	files, routines := openFiles(t), goruntime.NumGoroutine()

	chats, embeds := judge.Behaviours(), judge.EmbedBehaviours()
	var jobs []func()
	for _, b := range chats[:r.N(len(chats))] {
		jobs = append(jobs,
			func() { f.quietly(b.Name, func(_ string, s *judge.Server, home string) { f.atCheckpoint(b, s, home) }) },
			func() { f.quietly(b.Name, func(_ string, s *judge.Server, home string) { f.atTurn(b, s, home) }) })
	}
	for _, b := range embeds[:r.N(len(embeds))] {
		jobs = append(jobs, func() { f.quietly(b.Name, f.atVectors) })
	}
	var all sync.WaitGroup
	places := make(chan struct{}, modelsAtOnce)
	for _, job := range jobs {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			job()
		})
	}
	all.Wait()
	mixed := r.N(1000)
	f.quietly("mix", func(_ string, s *judge.Server, home string) { f.atRandom(mixed, s, home) })

	other.Close()
	left, filesLeft := goruntime.NumGoroutine(), openFiles(t)
	for wait := time.Millisecond; (left > routines || filesLeft > files) && wait < 5*time.Second; wait *= 2 { // connections end a moment after their server
		time.Sleep(wait)
		left, filesLeft = goruntime.NumGoroutine(), openFiles(t)
	}
	r.Count("reply types at a checkpoint and at a turn", len(chats[:r.N(len(chats))]))
	r.Count("at vectors", len(embeds[:r.N(len(embeds))]))
	r.Count("at random", mixed)
	for _, kind := range []string{lost, moved, unfit, overran, untyped, leaked, unmended, blinded, misplaced} {
		r.Zero(kind, f.wrong[kind])
	}
	r.Zero("requests to another host", int(strays.Load()))
	r.Zero("goroutines left", max(0, left-routines))
	r.Zero("files left open", max(0, filesLeft-files))
	r.Count("calls", f.calls)
	r.Count("KB sent", f.bytes>>10)
	r.Count("slowest", f.slowest.Round(10*time.Millisecond))
}

// quietly gives a memory a model of its own and a home, and counts its calls.
func (f *modelFaults) quietly(name string, do func(name string, s *judge.Server, home string)) {
	s := judge.NewServer(f.t)
	s.RedirectTo(f.strayed)
	home := filepath.Join(fault.Dir(f.t), "home")
	do(name, s, home)
	if err := s.Close(); err != nil {
		f.t.Error(err)
	}
	if found := secretsIn(home); len(found) > 0 {
		f.note(leaked, "%s: %v", name, found)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range s.Calls() {
		f.calls++
		f.bytes += c.Bytes
	}
}

// live opens a memory whose clock is so much ahead, lets it act, and closes it.
func (f *modelFaults) live(home string, s *judge.Server, ahead time.Duration, o *told, do func(*lifetime) error, more ...string) error {
	more = append([]string{"model.timeout=" + modelTimeout.String(), "embeddings.provider=off"}, more...)
	l, err := newLifetime(home, s.URL, clockAhead(ahead), func(line string) error { o.take(line); return nil }, more...)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.house.close())
}

// judged looks at a home once the model answers well again.
func (f *modelFaults) judged(where string, class judge.Class, s *judge.Server, home string, o *told) {
	f.judgedAt(clockAhead(later), where, class, s, home, o)
}

func (f *modelFaults) judgedAt(now func() time.Time, where string, class judge.Class, s *judge.Server, home string, o *told) {
	s.Always("")
	s.Mix(1, "good")
	ctx := context.Background()
	found, err := examine(ctx, home, s.URL, now, o, class != judge.Entries)
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
	err = f.live(home, s, later, o, func(l *lifetime) error {
		h, err := l.held(ctx)
		for _, it := range h.Items {
			if why := unfitItem(it); why != "" {
				f.note(unfit, "%s: %s %s", where, it.Handle, why)
			}
		}
		if class != judge.Entries { // of broken entries some are refused: their events have no item
			f.lossOf(where, found.Findings, h)
		}
		return err
	})
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
}

// lossOf notes what was found that is no consequence of what a model does in a
// turn: it may write a memory by a tool, which rests on no event, and say what no
// item can be made of.
func (f *modelFaults) lossOf(where string, found judge.Findings, h judge.Held) {
	user := map[string]bool{}
	for _, e := range h.Events {
		user[e.ID] = e.Origin == memory.OriginUser
	}
	byTool := map[string]bool{}
	for _, it := range h.Items {
		byTool[it.Handle] = it.Title == "x" && it.Content == "y" // as the stub calls the tool
	}
	found[judge.NeverDistilled] = slices.DeleteFunc(found[judge.NeverDistilled], func(id string) bool { return !user[id] })
	found[judge.NoProvenance] = slices.DeleteFunc(found[judge.NoProvenance], func(handle string) bool { return byTool[handle] })
	for kind, at := range found {
		if len(at) > 0 {
			f.note(lost, "%s: %s: %v", where, kind, at)
		}
	}
}

// unfitItem says what of an item breaks a rule, or "".
func unfitItem(it memory.Item) string {
	if err := it.Validate(); err != nil {
		return err.Error()
	}
	for _, text := range []string{it.Title, it.Content} {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			return fmt.Sprintf("has control characters: %q", text)
		}
	}
	if strings.Contains(it.Content, "approved") && it.Status == memory.Active {
		return fmt.Sprintf("has taken a forged update: %q", it.Content)
	}
	return ""
}

// secretsIn are the files of a home that hold the secret of a reply.
func secretsIn(home string) []string {
	var out []string
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(judge.PlantedSecret())) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// atCheckpoint has a checkpoint answered.
func (f *modelFaults) atCheckpoint(b judge.Behaviour, s *judge.Server, home string) {
	where, ctx, o := b.Name+" at a checkpoint", context.Background(), &told{}
	err := f.live(home, s, 0, o, func(l *lifetime) error {
		if err := l.jot(ctx, 4); err != nil {
			return err
		}
		s.Always(b.Name)
		err := f.timed(where, func() error { return l.call(ctx, "memory.checkpoint", checkpoint.Request{}, nil) })
		if err != nil && !memory.HasKind(err) {
			f.note(untyped, "%s: %v", where, err)
		}
		h, err := l.held(ctx)
		if err != nil {
			return err
		}
		switch {
		case b.Class == judge.Conforming && len(h.Items) != len(o.said):
			f.note(lost, "%s: %d items of %d turns", where, len(h.Items), len(o.said))
		case b.Class != judge.Conforming && b.Class != judge.Entries && (len(h.Items) > 0 || h.Cursor > 0 && len(h.Parked) == 0):
			f.note(moved, "%s: %d items, the cursor at %d, parked %v", where, len(h.Items), h.Cursor, h.Parked)
		}
		return nil
	})
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
	f.judged(where, b.Class, s, home, o)
}

// atTurn has a turn answered. What the user says is kept whatever becomes of the
// answer.
func (f *modelFaults) atTurn(b judge.Behaviour, s *judge.Server, home string) {
	where, ctx, o := b.Name+" at a turn", context.Background(), &told{}
	turn := func(l *lifetime) error {
		word := lifeWord()
		err := f.timed(where, func() error {
			_, err := l.house.turns.Run(ctx, runtime.Turn{Agent: l.agent, Session: memory.Session{ID: "s1", Channel: "cli"}, Text: sentence(word)})
			return err
		})
		o.said = append(o.said, word)
		return err
	}
	err := f.live(home, s, 0, o, func(l *lifetime) error {
		s.Always(b.Name)
		if err := turn(l); err != nil && !memory.HasKind(err) {
			f.note(untyped, "%s: %v", where, err)
		}
		return nil
	})
	s.Always("")
	if err == nil {
		err = f.live(home, s, later, o, turn)
	}
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
	f.judged(where, judge.Conforming, s, home, o)
}

// atVectors has requests for vectors answered.
func (f *modelFaults) atVectors(name string, s *judge.Server, home string) {
	where, ctx, o := name+" at vectors", context.Background(), &told{}
	endpoint := []string{"embeddings.provider=generic", "embeddings.base_url=" + s.URL, "embeddings.model=stub", "embeddings.timeout=" + modelTimeout.String(), "embeddings.max_retries=1", "embeddings.batch_texts=4"}
	const turns = 12
	s.NextEmbed("good")
	s.AlwaysEmbed(name)
	err := f.live(home, s, 0, o, func(l *lifetime) error {
		if err := l.jot(ctx, turns); err != nil {
			return err
		}
		err := f.timed(where, func() error { return l.call(ctx, "memory.reembed", meaning.ReembedRequest{}, nil) })
		if err != nil && !memory.HasKind(err) {
			f.note(untyped, "%s: %v", where, err)
		}
		var found struct{ Episodes []memory.Episode }
		if err := l.call(ctx, "memory.search", map[string]any{"text": "where do I keep the " + o.said[0], "scope": "episodes"}, &found); err != nil || len(found.Episodes) == 0 || !strings.Contains(found.Episodes[0].Text, o.said[0]) {
			f.note(blinded, "%s: %v, %+v", where, err, found)
		}
		return nil
	}, endpoint...)
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
	s.AlwaysEmbed("")
	err = f.live(home, s, later, o, func(l *lifetime) error {
		var res meaning.ReembedResult
		err := l.call(ctx, "memory.reembed", meaning.ReembedRequest{}, &res)
		if err == nil && res.Refused > 0 { // the endpoint's fault was taken for the texts'
			err = l.call(ctx, "memory.reembed", meaning.ReembedRequest{Anew: true}, &res)
		}
		if err != nil || res.Missing+res.Refused > 0 || res.Texts < turns {
			return errors.Join(err, fmt.Errorf("%+v", res))
		}
		store, release, err := l.house.vectors.read(ctx, l.agent)
		if err != nil {
			return err
		}
		defer release()
		index, err := store.Index(ctx, res.Model)
		if err != nil {
			return err
		}
		h, err := l.held(ctx)
		if err != nil {
			return err
		}
		for i, e := range h.Events {
			got, there := index.Vector(int64(vectors.OfPassage(int64(i + 1))))
			if want := judge.Embed("stub", e.Text, 0); !there || !alike(got, want) {
				f.note(misplaced, "%s: of %q", where, e.Text)
			}
		}
		return nil
	}, endpoint...)
	if err != nil {
		f.note(unmended, "%s: %v", where, err)
	}
}

// alike reports whether two vectors of length 1 are the same but for the rounding
// of a store that keeps numbers in a byte.
func alike(a, b []float32) bool {
	dot := 0.
	for i := range min(len(a), len(b)) {
		dot += float64(a[i]) * float64(b[i])
	}
	return len(a) == len(b) && dot > .999
}

// atRandom lets a memory live with models that answer at random in every way that
// does not take its whole deadline: of those, each had its turn.
func (f *modelFaults) atRandom(steps int, s *judge.Server, home string) {
	slow := map[string]bool{"hang": true, "drip": true, "headers-then-hang": true, "continue-forever": true}
	var chats, embeds []string
	for _, b := range judge.Behaviours() {
		if b.Class != judge.Entries && !slow[b.Name] {
			chats = append(chats, b.Name, "good")
		}
	}
	for _, b := range judge.EmbedBehaviours() {
		if !slow[b.Name] {
			embeds = append(embeds, b.Name, "good")
		}
	}
	s.Mix(11, chats...)
	ctx, o, chance := context.Background(), &told{}, rand.New(rand.NewPCG(6, 6))
	var ahead atomic.Int64 // the clock goes on, so that a breaker that opened lets the next request in
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	l, err := newLifetime(home, s.URL, now, func(line string) error { o.take(line); return nil }, "model.timeout="+modelTimeout.String(),
		"embeddings.provider=generic", "embeddings.base_url="+s.URL, "embeddings.model=stub", "embeddings.timeout="+modelTimeout.String(), "embeddings.max_retries=1", "embeddings.daily_tokens=0")
	if err != nil {
		f.t.Fatal(err)
	}
	for range steps {
		ahead.Add(int64(2 * time.Second))
		s.NextEmbed(embeds[chance.IntN(len(embeds))])
		word := lifeWord()
		err := f.timed("the mix", func() error {
			switch chance.IntN(4) {
			case 0:
				_, err := l.house.turns.Run(ctx, runtime.Turn{Agent: l.agent, Session: memory.Session{ID: "s1", Channel: "cli"}, Text: sentence(word)})
				o.said = append(o.said, word)
				return err
			case 1:
				return l.jot(ctx, 1+chance.IntN(3))
			case 2:
				return l.call(ctx, "memory.reembed", meaning.ReembedRequest{}, nil)
			default:
				return l.call(ctx, "memory.checkpoint", checkpoint.Request{}, nil)
			}
		})
		if err != nil && !memory.HasKind(err) {
			f.note(untyped, "in the mix: %v", err)
		}
	}
	if err := l.house.close(); err != nil {
		f.note(unmended, "the end of the mix: %v", err)
	}
	f.judgedAt(func() time.Time { return now().Add(later) }, "the mix", judge.Conforming, s, home, o)
}
