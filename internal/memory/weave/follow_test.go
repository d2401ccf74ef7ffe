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

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

func unmarshal(raw json.RawMessage, into any) error { return json.Unmarshal(raw, into) }

func TestItemsBecomeNodesAndEntities(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.learn("", "fact", "User's sister Anna lives in Lisbon.", "")
	w.learn("", "fact", "The keys of project Lighthouse are with Anna.", "")
	w.learn("Caroline", "decision", "We go with Postgres for Lighthouse.", "")
	if done := w.follow(); done.Items != 3 {
		t.Errorf("followed %+v", done)
	}
	want := strings.Join([]string{
		"decision:We go with Postgres for Lighthouse. derived_from MEM-3",
		"decision:We go with Postgres for Lighthouse. references person:Caroline",
		"decision:We go with Postgres for Lighthouse. references project:Lighthouse",
		"decision:We go with Postgres for Lighthouse. references tool:Postgres",
		"person:Anna derived_from MEM-1",
		"person:Anna derived_from MEM-2", // which does not tell who Anna is
		"person:Caroline derived_from MEM-3",
		"place:Lisbon derived_from MEM-1",
		"project:Lighthouse derived_from MEM-2",
		"project:Lighthouse derived_from MEM-3",
		"tool:Postgres derived_from MEM-3",
	}, "\n")
	if got := w.brief(); got != want {
		t.Errorf("the graph is\n%s\nwant\n%s", got, want)
	}
	w.ok(w.graph.View(context.Background(), func(v *graph.View) error {
		var p itemPayload
		w.ok(json.Unmarshal(v.Node(w.list()[0].ID).Payload, &p))
		if p.Handle != "MEM-3" || len(p.Provenance.EventIDs) != 1 || !strings.HasPrefix(p.Provenance.Checkpoint, "checkpoint-") {
			t.Errorf("provenance: %+v", p)
		}
		return nil
	}))
}

func TestNothingIsWrittenTwice(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.learn("", "fact", "User's sister Anna lives in Lisbon.", "")
	w.follow()
	before := w.bytes()
	if done := w.follow(); done != (Followed{}) {
		t.Errorf("followed again: %+v", done)
	}
	if w.bytes() != before {
		t.Error("the graph was written although nothing changed")
	}
}

func TestAnAgentWithoutItemsGetsNoGraph(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.follow()
	it := w.learn("", "fact", "User's sister Anna lives in Lisbon.", "")
	_, err := w.items.Forget(context.Background(), working.ForgetRequest{Handle: it.Handle})
	w.ok(err)
	w.follow()
	if _, err := w.follower.Rebuild(context.Background(), agent); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.path()); !os.IsNotExist(err) {
		t.Errorf("there is a graph: %v", err)
	}
}

func TestWhatIsForgottenLeavesTheGraphAndItsFiles(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	old := w.learn("", "fact", "User's sister Anna lives in Lisbon.", "")
	w.learn("", "fact", "User's sister Anna lives in Porto.", old.ID)
	w.follow()
	if !strings.Contains(w.brief(), "MEM-2 contradicts MEM-1") || !strings.Contains(w.bytes(), "has_contradiction") {
		t.Fatalf("no contradiction:\n%s", w.brief())
	}
	_, err := w.items.Forget(context.Background(), working.ForgetRequest{Handle: "MEM-1"})
	w.ok(err)
	w.follow()
	if got := w.brief(); got != "person:Anna derived_from MEM-2\nplace:Porto derived_from MEM-2" {
		t.Errorf("the graph is\n%s", got)
	}
	for _, left := range []string{"Lisbon", "has_contradiction"} {
		if strings.Contains(w.bytes(), left) {
			t.Errorf("%s is still in the file", left)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.learn("", "fact", "User's sister Anna has the password: hunter2secret99 in Lisbon.", "")
	w.follow()
	if strings.Contains(w.bytes(), "hunter2secret99") {
		t.Error("a secret is in the graph")
	}
}

func TestAGraphOfAnotherMemoryIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	other := newWorld(t, filepath.Join(dir, "other"))
	for range 3 {
		other.learn("", "fact", "User's brother Tom lives in Oslo "+other.newID()+".", "")
	}
	other.follow()
	text := other.bytes()
	other.close()
	w := newWorld(t, filepath.Join(dir, "mine"))
	w.learn("", "fact", "User's sister Anna lives in Lisbon.", "")
	w.ok(w.graph.Close())
	w.ok(os.WriteFile(w.path(), []byte(text), 0o600))
	w.graph = w.openGraph(w.path())
	w.follower = w.followerOf(w.graph)
	defer w.close()
	if done := w.follow(); !done.Anew {
		t.Errorf("followed %+v", done)
	}
	if got := w.brief(); got != "person:Anna derived_from MEM-1\nplace:Lisbon derived_from MEM-1" {
		t.Errorf("the graph is\n%s", got)
	}
}

// TestFollowingIsAFunctionOfTheItems changes memory at random, lets the graph
// follow now and then, or reopens everything as after a crash, and compares it
// with a graph that is made in one go.
func TestFollowingIsAFunctionOfTheItems(t *testing.T) {
	contents := rapid.SampledFrom([]string{
		"User's sister Anna lives in Lisbon.", "Anna leads project Lighthouse.", "Anna said hello.", "We go with Postgres for Lighthouse.",
		"User visited Lisbon with Tom.", "User's boss Tom uses Redis.", "Lisbon is a tool, we use Lisbon for it.", "Nothing to name here.",
	})
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, t.TempDir())
		defer w.close()
		ctx := context.Background()
		handle := func() memory.Item {
			list := w.list()
			if len(list) == 0 {
				rt.Skip("no item yet")
			}
			return rapid.SampledFrom(list).Draw(rt, "item")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"learn": func(rt *rapid.T) {
				replaces := ""
				for _, it := range w.list() {
					if it.Status == memory.Active && rapid.Bool().Draw(rt, "replaces") {
						replaces = it.ID
						break
					}
				}
				w.learn(rapid.SampledFrom([]string{"", "Caroline"}).Draw(rt, "speaker"), rapid.SampledFrom([]string{"fact", "decision", "person"}).Draw(rt, "kind"), contents.Draw(rt, "content"), replaces)
			},
			"update": func(rt *rapid.T) {
				content := contents.Draw(rt, "content")
				_, err := w.items.Update(ctx, working.UpdateRequest{Handle: handle().Handle, Content: &content})
				mayRefuse(rt, err)
			},
			"forget": func(rt *rapid.T) {
				_, err := w.items.Forget(ctx, working.ForgetRequest{Handle: handle().Handle})
				mayRefuse(rt, err)
			},
			"revert": func(rt *rapid.T) {
				_, err := w.items.Revert(ctx, working.RevertRequest{Handle: handle().Handle})
				mayRefuse(rt, err)
			},
			"undo": func(rt *rapid.T) {
				list, err := w.items.Checkpoints(ctx, 1)
				w.ok(err)
				if len(list) == 0 {
					rt.Skip("no checkpoint yet")
				}
				_, err = w.items.RevertCheckpoint(ctx, list[0].ID)
				mayRefuse(rt, err)
			},
			"follow": func(*rapid.T) { w.follow() },
			"reopen": func(*rapid.T) { w.close(); w.open() },
		})
		w.follow()
		whole := w.openGraph(filepath.Join(t.TempDir(), graph.FileName))
		_, err := w.followerOf(whole).Follow(ctx, agent)
		w.ok(err)
		want := w.shown(whole)
		if got := w.shown(w.graph); got != want {
			rt.Fatalf("step by step\n%s\n\nin one go\n%s", got, want)
		}
		_, err = w.follower.Rebuild(ctx, agent)
		w.ok(err)
		if got := w.shown(w.graph); got != want {
			rt.Fatalf("rebuilt\n%s\n\nin one go\n%s", got, want)
		}
		w.ok(whole.Close())
	})
}

// mayRefuse passes over what memory refuses: its own rules are tested elsewhere.
func mayRefuse(rt *rapid.T, err error) {
	switch memory.KindOf(err) {
	case "", memory.ErrConflict, memory.ErrInvalid, memory.ErrNotFound:
	default:
		rt.Fatal(err)
	}
}

// TestTwoProcessesFollowAtOnce: each has the graph open for itself, and both
// follow the same items while more are learnt.
func TestTwoProcessesFollowAtOnce(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	other := w.openGraph(w.path())
	followers := []*Follower{w.follower, w.followerOf(other)}
	for range 8 {
		w.learn("", "fact", "User's sister Anna lives in Lisbon "+w.newID()+".", "")
		var work sync.WaitGroup
		failed := make([]error, len(followers))
		for i, f := range followers {
			work.Go(func() { _, failed[i] = f.Follow(context.Background(), agent) })
		}
		work.Wait()
		w.ok(errors.Join(failed...))
	}
	whole := w.openGraph(filepath.Join(t.TempDir(), graph.FileName))
	_, err := w.followerOf(whole).Follow(context.Background(), agent)
	w.ok(err)
	for _, s := range []*graph.Store{w.graph, other} {
		if got, want := w.shown(s), w.shown(whole); got != want {
			t.Errorf("the graph is\n%s\nwant\n%s", got, want)
		}
	}
	w.ok(other.Close())
	w.ok(whole.Close())
}

// BenchmarkFollow brings 5,000 items into a graph in one go, and then one more
// at a time.
func BenchmarkFollow(b *testing.B) {
	w := newWorld(b, b.TempDir())
	defer w.close()
	const items = 5000
	for i := range items / 100 {
		w.learnMany(100, fmt.Sprintf("User's friend Person%d lives in Place%d and uses Redis, note ", i, i%7))
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			s := w.openGraph(filepath.Join(b.TempDir(), graph.FileName))
			done, err := w.followerOf(s).Follow(context.Background(), agent)
			w.ok(err)
			if done.Items != items {
				b.Fatalf("followed %+v", done)
			}
			w.ok(s.Close())
		}
	})
	b.Run("one", func(b *testing.B) {
		w.follow()
		for b.Loop() {
			b.StopTimer()
			w.learn("", "fact", "User's friend Person3 lives in Place4, note "+w.newID()+".", "")
			b.StartTimer()
			w.follow()
		}
	})
	b.Run("nothing", func(b *testing.B) {
		w.follow()
		for b.Loop() {
			w.follow()
		}
	})
}
