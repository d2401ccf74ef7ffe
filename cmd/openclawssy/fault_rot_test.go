//go:build fault && linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge/fault"
)

// rotAnswers is what a memory says when it is asked everything, each question's
// answer as text. A question that failed has no answer.
type rotAnswers map[string]string

// probed is one probe of a home.
type probed struct {
	rotAnswers
	reported []string // what it said is wrong, by itself
	took     time.Duration
}

var rotQuestions = []string{"the fuse box", "gloves for glazing", "when is the opening party", "what did the landlord say", "soup"}

// probe opens a home as a new process does, and asks it everything.
func probe(ctx context.Context, home string) (probed, error) {
	began := time.Now()
	p := probed{rotAnswers: rotAnswers{}}
	l, err := newLifetime(home, "", time.Now, func(string) error { return nil })
	if err != nil {
		return p, err
	}
	ask := func(name, op string, in any, keep func(json.RawMessage) string) {
		var raw json.RawMessage
		if err := l.call(ctx, op, in, &raw); err != nil {
			p.reported = append(p.reported, fmt.Sprintf("%s: %v", op, err))
			return
		}
		p.rotAnswers[name] = keep(raw)
	}
	whole := func(raw json.RawMessage) string { return string(raw) }
	ask("items", "memory.list", map[string]any{"status": "all", "limit": 0}, listed)
	for _, q := range rotQuestions {
		// An answer of words alone, because the machine was too busy to make the
		// question's vector, says so: it is asked again.
		hurried := true
		for try := 0; hurried && try < 10; try++ {
			hurried = false
			ask("search "+q, "memory.search", map[string]any{"text": q, "scope": "episodes"}, func(raw json.RawMessage) string {
				hurried = strings.Contains(string(raw), "not made in time")
				return listed(raw)
			})
		}
	}
	ask("graph", "graph.export", struct{}{}, whole)
	ask("jobs", "cron.list", struct{}{}, func(raw json.RawMessage) string {
		return strings.Join(regexp.MustCompile(`"(name|schedule|message)":"[^"]*"`).FindAllString(string(raw), -1), " ")
	})
	ask("checkpoints", "memory.checkpoint.list", struct{}{}, whole)
	ask("events", "events.tail", map[string]any{"limit": 1000}, whole)
	ask("verify", "events.verify", struct{}{}, func(raw json.RawMessage) string {
		var v struct{ Ok bool }
		if err := json.Unmarshal(raw, &v); err != nil || !v.Ok {
			p.reported = append(p.reported, "events.verify: "+string(raw))
		}
		return ""
	})
	ask("status", "memory.status", struct{}{}, func(raw json.RawMessage) string {
		var s struct {
			Gaps, Damage       int
			Problems, Degraded []json.RawMessage
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			p.reported = append(p.reported, err.Error())
		}
		if s.Gaps+s.Damage+len(s.Problems)+len(s.Degraded) > 0 {
			p.reported = append(p.reported, fmt.Sprintf("memory.status: %d gaps, %d damaged, %s, %s", s.Gaps, s.Damage, s.Problems, s.Degraded))
		}
		return ""
	})
	if err := l.house.close(); err != nil {
		p.reported = append(p.reported, "close: "+err.Error())
	}
	p.took = time.Since(began)
	aside := regexp.MustCompile(`\.(torn|corrupt-|damaged)`)
	return p, filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && aside.MatchString(d.Name()) {
			p.reported = append(p.reported, "set aside: "+d.Name())
		}
		return err
	})
}

// listed keeps of a list what does not change with use.
func listed(raw json.RawMessage) string {
	var list struct {
		Items    []struct{ Handle, Kind, Title, Content, Status string }
		Episodes []struct{ Handle, Origin, Speaker, Text string }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err.Error()
	}
	var sb strings.Builder
	for _, it := range list.Items {
		fmt.Fprintf(&sb, "%+v\n", it)
	}
	for _, e := range list.Episodes {
		fmt.Fprintf(&sb, "%+v\n", e)
	}
	return sb.String()
}

// differs names the answers that are not as they were.
func (p probed) differs(from rotAnswers) []string {
	var out []string
	for name, want := range from {
		if got, there := p.rotAnswers[name]; there && got != want {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// rot is a way to damage a file.
type rot struct {
	name string
	do   func(text []byte) []byte
}

// rots returns n ways to damage a file of so many bytes.
func rots(chance *rand.Rand, n int, older []byte) []rot {
	var out []rot
	for i := range n {
		at := chance.Float64()
		switch {
		case i == 0 && older != nil:
			out = append(out, rot{"an older copy", func([]byte) []byte { return older }})
		case i%20 == 1:
			out = append(out, rot{"a page of zeros", func(text []byte) []byte {
				from := int(at*float64(len(text))) &^ 4095
				clear(text[from:min(len(text), from+4096)])
				return text
			}})
		case i%2 == 0:
			bit := byte(1) << chance.IntN(8)
			out = append(out, rot{fmt.Sprintf("a bit at %.3f", at), func(text []byte) []byte { text[int(at*float64(len(text)))] ^= bit; return text }})
		default:
			out = append(out, rot{fmt.Sprintf("cut at %.3f", at), func(text []byte) []byte { return text[:int(at*float64(len(text)))] }})
		}
	}
	return out
}

// TestFaultF4 damages each kind of file in every way, and asks the memory
// everything. P2 and P6: nobody gets a wrong answer without being told, and what
// follows from the log is as it was before.
func TestFaultF4(t *testing.T) {
	r := fault.Begin(t, "F4")
	ctx := context.Background()
	base, older, unclean := rotHomes(t)
	want, err := probe(ctx, rotClone(t, base))
	if err != nil || len(want.reported) > 0 {
		t.Fatalf("before any damage: %v, %v", err, want.reported)
	}
	for name, answer := range want.rotAnswers {
		if answer == "" && name != "verify" && name != "status" {
			t.Fatalf("the home has nothing to answer %q with", name)
		}
	}
	again, err := probe(ctx, rotClone(t, base))
	if err != nil || len(again.differs(want.rotAnswers)) > 0 {
		t.Fatalf("asked twice, it answers differently: %v, %v", again.differs(want.rotAnswers), err)
	}
	chance := rand.New(rand.NewPCG(4, 4))
	targets := []struct {
		name, glob string
		from       string
		derived    bool // from the log: as before in the end, whatever happens
		unchecked  bool // plain JSON for other programs, in which a letter may change unseen
	}{
		{"events", "agents/default/memory/events/*.jsonl", base, false, false},
		{"memory.db", "agents/default/memory/memory.db", base, true, false},
		{"its write-ahead log", "agents/default/memory/memory.db-wal", unclean, true, false},
		{"checkpoints", "agents/default/memory/checkpoints/checkpoint-*.json", base, true, false},
		{"graph.json", "agents/default/memory/graph.json", base, false, true},
		{"jobs.json", "scheduler/jobs.json", base, false, false},
	}
	each := max(10, r.N(1200)/len(targets))
	mutants, silent, notRebuilt, notServing, unseen := 0, 0, 0, 0, 0
	slowest, slowestAt := time.Duration(0), ""
	for _, target := range targets {
		found, err := filepath.Glob(filepath.Join(target.from, filepath.FromSlash(target.glob)))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", target.name, err)
		}
		name, err := filepath.Rel(target.from, found[0])
		if err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(filepath.Join(older, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		var mu sync.Mutex // of all that is counted
		var mutated sync.WaitGroup
		places := make(chan struct{}, runtime.NumCPU())
		for _, how := range rots(chance, each, old) {
			home := rotClone(t, target.from)
			text, err := os.ReadFile(filepath.Join(home, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(home, name), how.do(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			mutants++
			places <- struct{}{}
			mutated.Go(func() {
				defer func() { <-places }()
				first, err := probe(ctx, home)
				second, err2 := probe(ctx, home)
				if err := errors.Join(err, err2, os.RemoveAll(filepath.Dir(home))); err != nil {
					t.Errorf("%s, %s: %v", target.name, how.name, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if first.took > slowest {
					slowest, slowestAt = first.took, target.name+", "+how.name
				}
				if len(second.rotAnswers) < len(want.rotAnswers)/2 {
					notServing++
					t.Errorf("%s, %s: it does not serve: %v", target.name, how.name, second.reported)
				}
				wrong := append(first.differs(want.rotAnswers), second.differs(want.rotAnswers)...)
				switch told := len(first.reported)+len(second.reported) > 0; {
				case len(wrong) == 0 && told:
					kinds["told, and answered as before"]++
				case len(wrong) == 0:
					kinds["without effect, or mended"]++
				case told:
					kinds["told"]++
				case target.unchecked && !strings.HasPrefix(how.name, "cut") && how.name != "a page of zeros":
					kinds["a letter of a document, unseen"]++
					unseen++
				default:
					silent++
					t.Errorf("%s, %s: silently wrong in %v", target.name, how.name, wrong)
				}
				if d := second.differs(want.rotAnswers); target.derived && (len(d) > 0 || len(second.rotAnswers) < len(want.rotAnswers)) {
					notRebuilt++
					t.Errorf("%s, %s: not rebuilt: %v differ, %d of %d answered, %v", target.name, how.name, d, len(second.rotAnswers), len(want.rotAnswers), second.reported)
				}
			})
		}
		mutated.Wait()
		t.Logf("%s: %v", target.name, kinds)
	}
	r.Count("mutants", mutants)
	r.Count("panics", 0) // one would have ended this process, and the row with it
	r.Zero("silent wrong answers", silent)
	r.Zero("not rebuilt from the log", notRebuilt)
	r.Zero("not serving", notServing)
	r.Count("letters changed unseen in graph.json", unseen)
	r.Count("slowest first answers", fmt.Sprintf("%s (%s)", slowest.Round(time.Millisecond), slowestAt))
}

func rotClone(t *testing.T, from string) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(from), "mutant-")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "home")
	cloneHome(t, to, from)
	return to
}

// rotHomes makes a home with some of everything; as it was earlier; and as it is
// left by a process that is killed.
func rotHomes(t *testing.T) (base, older, unclean string) {
	t.Helper()
	dir, ctx := fault.Dir(t), context.Background()
	base, older, unclean = filepath.Join(dir, "base"), filepath.Join(dir, "older"), filepath.Join(dir, "unclean")
	live := func(do func(l *lifetime) error) {
		l, err := newLifetime(base, "", time.Now, func(string) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(do(l), l.house.close()); err != nil {
			t.Fatal(err)
		}
	}
	live(func(l *lifetime) error {
		f, err := os.Open("../../testdata/demo/conversation.jsonl")
		if err != nil {
			return err
		}
		_, err = l.house.importChat(ctx, l.agent, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := l.checkpoint(ctx); err != nil {
			return err
		}
		return l.call(ctx, "cron.add", map[string]any{"name": "greet", "schedule": "0 9 * * *", "message": "Good morning."}, nil)
	})
	cloneHome(t, older, base)
	live(func(l *lifetime) error {
		for range 5 {
			if err := l.note(ctx); err != nil {
				return err
			}
		}
		if err := l.jot(ctx, 5); err != nil {
			return err
		}
		if err := l.call(ctx, "graph.add_node", map[string]any{"id": "n-own", "node_type": "semantic", "label": "kiln", "payload": map[string]any{"fact": "the kiln is blue"}}, nil); err != nil {
			return err
		}
		if err := l.checkpoint(ctx); err != nil {
			return err
		}
		var whole json.RawMessage // what follows in the graph has followed
		if err := l.call(ctx, "graph.export", struct{}{}, &whole); err != nil {
			return err
		}
		cloneHome(t, unclean, base)
		return nil
	})
	return base, older, unclean
}
