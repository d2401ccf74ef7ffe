package recall

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// near has the world's service find items near every question, as a graph would.
func (w *world) near(items map[string]float64, err error) {
	w.service.opts.Near = func(_ context.Context, _ memory.AgentID, _ text.Query, hops, _ int) (map[string]float64, error) {
		if hops != 2 {
			w.t.Errorf("asked for %d hops", hops)
		}
		return items, err
	}
}

// idOf returns the id of an item; "" for the handle of a passage.
func (w *world) idOf(handle string) string {
	w.t.Helper()
	if !strings.HasPrefix(handle, "MEM-") {
		return ""
	}
	got, err := w.items.Get(context.Background(), working.GetRequest{Handle: handle})
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Item.ID
}

func TestNearItemsAreRecalledUnderTheSameConditions(t *testing.T) {
	w := newWorld(t)
	w.groups["g1"], w.groups["g2"] = true, true
	private := w.say("p1", memory.OriginUser, "Lighthouse ships after the harbour runs, in April, with a red logo.")
	public := w.say("g1", memory.OriginUser, "Marit is our boss.")
	w.say("p3", memory.OriginUser, "Bread is baked on Fridays here.")
	boss := w.remember("Marit is our boss.", 4, public)
	tests := w.remember("Lighthouse ships after the harbour runs.", 4, private)
	trifle := w.remember("Lighthouse has a red logo.", 1, private)
	gone := w.remember("Lighthouse ships in April.", 4, private)
	ids := map[string]float64{w.idOf(boss): 1, w.idOf(tests): .5, w.idOf(trifle): .5, w.idOf(gone): .5, "mem_unknown": 1}
	if _, err := w.items.Forget(context.Background(), working.ForgetRequest{Handle: gone}); err != nil {
		t.Fatal(err)
	}
	w.near(ids, nil)
	question := "What should I tell Marit?"
	if got := handles(w.block("p2", question)); slices.Contains(got, tests) {
		t.Errorf("without hops: %v", got)
	}
	w.settings.Hops = 2
	block := w.block("p2", question)
	got := handles(block)
	if !slices.Contains(got, boss) || !slices.Contains(got, tests) || slices.Contains(got, trifle) || slices.Contains(got, gone) {
		t.Errorf("with hops: %v", got)
	}
	for _, c := range block.Trace.Candidates {
		if want := ids[w.idOf(c.Handle)]; c.Scores["near"] != want*wNear {
			t.Errorf("%s: near is %v, want %v", c.Handle, c.Scores["near"], want*wNear)
		}
	}
	if got := handles(w.block("g2", question)); slices.Contains(got, tests) {
		t.Errorf("in a group: %v", got)
	}
}

func TestABrokenGraphLeavesTheRest(t *testing.T) {
	w := newWorld(t)
	said := w.say("p1", memory.OriginUser, "Marit is our boss.")
	boss := w.remember("Marit is our boss.", 4, said)
	w.near(nil, errors.New("no graph today"))
	w.settings.Hops = 2
	block := w.block("p2", "Who is Marit?")
	if !slices.Contains(handles(block), boss) || !strings.Contains(block.Degraded, "no graph today") {
		t.Errorf("%v, degraded %q", handles(block), block.Degraded)
	}
}
