package weave

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// near shows what is near a question, by handle.
func (w *world) near(walker *Walker, question string, hops, limit int) string {
	w.Helper()
	got, err := walker.Near(context.Background(), agent, text.ParseQuery(question, text.Options{Speakers: []string{"Caroline"}}), hops, limit)
	w.ok(err)
	var out []string
	for _, it := range w.list() {
		if v, is := got[it.ID]; is {
			out = append(out, fmt.Sprintf("%s=%.2f", it.Handle, v))
			delete(got, it.ID)
		}
	}
	slices.Sort(out)
	for id := range maps.Keys(got) {
		w.Fatalf("%s is no item", id)
	}
	return strings.Join(out, " ")
}

func TestNear(t *testing.T) {
	w := newWorld(t, t.TempDir())
	defer w.close()
	w.learn("", "fact", "User's boss Marit leads the project Lighthouse.", "")
	w.learn("", "fact", "The tests of Lighthouse are on 4 May.", "")
	w.learn("", "fact", "User's brother Tom lives in Den Helder.", "")
	w.learn("Caroline", "fact", "The bread is baked on Fridays.", "")
	w.follow()
	walker := &Walker{Read: lend(w.graph)}
	for _, tc := range []struct {
		question    string
		hops, limit int
		want        string
	}{
		{"What does Marit want?", 0, 9, ""},
		{"What does Marit want?", 1, 9, "MEM-1=1.00"},
		{"What does Marit want?", 2, 9, "MEM-1=1.00 MEM-2=0.30"},
		{"What does Marit want?", 2, 1, "MEM-1=1.00"},
		{"who is in DEN HELDER?", 2, 9, "MEM-3=1.00"},
		{"who is in Den Haag?", 2, 9, ""},
		{"Marit and Tom?", 1, 9, "MEM-1=0.50 MEM-3=0.50"},
		{"What did Caro say?", 1, 9, "MEM-4=1.00"}, // a speaker, by the first letters of her name
		{"", 2, 9, ""},
	} {
		if got := w.near(walker, tc.question, tc.hops, tc.limit); got != tc.want {
			t.Errorf("%q, %d hops: %s, want %s", tc.question, tc.hops, got, tc.want)
		}
	}
	w.learn("", "fact", "User's sister Kim lives in Oslo.", "")
	w.follow()
	if got := w.near(walker, "Where is Kim?", 1, 9); got != "MEM-5=1.00" {
		t.Errorf("a name that came later: %s", got)
	}
}

// BenchmarkNear walks two hops in a graph of 10,000 items.
func BenchmarkNear(b *testing.B) {
	w := newWorld(b, b.TempDir())
	defer w.close()
	w.ok(w.graph.Update(context.Background(), graph.Write{}, func(tx *graph.Tx) error {
		for i := range 10_000 {
			person, project := fmt.Sprintf("Person%d", i%400), fmt.Sprintf("Project%d", i%700)
			item := fmt.Sprintf("mem_%026d", i)
			n, err := derived(agent, item, "item", kindItem, 1, itemPayload{Kind: kindItem, Handle: fmt.Sprintf("MEM-%d", i+1)})
			if err != nil {
				return err
			}
			if _, err := tx.AddNode(n); err != nil {
				return err
			}
			t := &tying{tx: tx, agent: agent}
			for kind, name := range map[string]string{"person": person, "project": project} {
				e, err := derived(agent, entityID(kind, name), name, kind, 1, entityPayload{Kind: kind, Name: name})
				if err != nil {
					return err
				}
				if err := t.put(e); err != nil {
					return err
				}
				if err := t.join(e.ID, item, graph.DerivedFrom, name, nil); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	walker := &Walker{Read: lend(w.graph)}
	q := text.ParseQuery("What does Person7 say of Project9?", text.Options{})
	for b.Loop() {
		if _, err := walker.Near(context.Background(), agent, q, 2, 30); err != nil {
			b.Fatal(err)
		}
	}
}
