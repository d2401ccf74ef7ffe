package maintenance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

func importance(n int) func(*memory.Item)        { return func(it *memory.Item) { it.Importance = n } }
func confidence(c float64) func(*memory.Item)    { return func(it *memory.Item) { it.Confidence = c } }
func kind(k string) func(*memory.Item)           { return func(it *memory.Item) { it.Kind = k } }
func title(s string) func(*memory.Item)          { return func(it *memory.Item) { it.Title = s } }
func trust(tier memory.Trust) func(*memory.Item) { return func(it *memory.Item) { it.Trust = tier } }
func quarantined(reason string) func(*memory.Item) {
	return func(it *memory.Item) { it.Status, it.Reason = memory.Quarantined, reason }
}
func rests(ids ...string) func(*memory.Item) {
	return func(it *memory.Item) {
		for i, id := range ids {
			it.Evidence = append(it.Evidence, memory.Evidence{EventID: id, Seq: int64(i + 1), Quote: "said in " + id})
		}
	}
}

// lines shows changes in short.
func lines(changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, strings.TrimSpace(c.Action+" "+c.Handle+" "+strings.Join(c.Merged, ",")+c.Reason+strings.Join(c.Verify, "; ")))
	}
	return strings.Join(out, "\n")
}

// TestPlan makes plans as of 60 days after the items were stored.
func TestPlan(t *testing.T) {
	const tea = "The user likes green tea in the morning, without sugar."
	const brief, river = "Anna lives in Lisbon.", "Anna lives in Lisbon, near the river and the sea."
	both := title("Anna")
	long := strings.Repeat("many words and yet again other ones ", 40)
	for name, tc := range map[string]struct {
		items []memory.Item
		days  int // since they were stored
		set   func(*Settings)
		used  map[string]time.Time
		near  []Pair
		want  string
	}{
		"nothing":                                   {},
		"what says the same becomes one":            {items: []memory.Item{item("1", tea), item("2", "user likes GREEN tea in the morning without sugar!")}, want: "merge MEM-1 MEM-2"},
		"the one that says more stays":              {items: []memory.Item{item("1", "The user likes green tea in the morning without sugar at home today."), item("2", "The user likes green tea in the morning without sugar at home today, warm.")}, want: "merge MEM-2 MEM-1"},
		"equal beginnings are not enough":           {items: []memory.Item{item("1", long+"apples"), item("2", long+"pears")}},
		"equal long contents":                       {items: []memory.Item{item("1", long+"apples"), item("2", long+"apples")}, want: "merge MEM-1 MEM-2"},
		"another number is another fact":            {items: []memory.Item{item("1", "The user has paid the invoice number 41 of the plumber."), item("2", "The user has paid the invoice number 42 of the plumber.")}},
		"the most trusted stays":                    {items: []memory.Item{item("1", tea, trust(memory.TrustTool)), item("2", tea)}, want: "merge MEM-2 MEM-1"},
		"in quarantine, and known":                  {items: []memory.Item{item("1", tea), item("2", tea, quarantined("x"))}, want: "merge MEM-1 MEM-2"},
		"in quarantine, from a more trusted source": {items: []memory.Item{item("1", tea, trust(memory.TrustTool)), item("2", tea, quarantined("x"))}},
		"what a file of the workspace says stays": {items: []memory.Item{item("1", tea, func(it *memory.Item) { it.Metadata = map[string]any{"workspace": map[string]any{"file": "MEMORY.md"}} }),
			item("2", tea, importance(5))}, want: "merge MEM-1 MEM-2"},
		"short contents need the same title": {items: []memory.Item{item("1", "green tea"), item("2", "green tea")}},
		"vectors, and the words agree":       {items: []memory.Item{item("1", brief, both), item("2", river, both)}, near: []Pair{{"MEM-1", "MEM-2"}}, want: "merge MEM-2 MEM-1"},
		"no vectors":                         {items: []memory.Item{item("1", brief, both), item("2", river, both)}},
		"vectors, and another person":        {items: []memory.Item{item("1", "Bob lives in Lisbon.", both), item("2", river, both)}, near: []Pair{{"MEM-1", "MEM-2"}}},
		"vectors, and another number": {items: []memory.Item{item("1", "Anna has 2 cats in the flat.", both), item("2", "Anna has 3 cats in the flat.", both)}, near: []Pair{{"MEM-1", "MEM-2"}},
			want: "verify MEM-1 contradicts MEM-2\nverify MEM-2 contradicts MEM-1"},
		"vectors, and other words":   {items: []memory.Item{item("1", "Anna lives in Lisbon.", both), item("2", "Lisbon is where Anna was born.", both)}, near: []Pair{{"MEM-1", "MEM-2"}}},
		"vectors, and another title": {items: []memory.Item{item("1", brief), item("2", river)}, near: []Pair{{"MEM-1", "MEM-2"}}},
		"vectors, and less trust":    {items: []memory.Item{item("1", brief, both), item("2", river, both, trust(memory.TrustTool))}, near: []Pair{{"MEM-1", "MEM-2"}}},
		"vectors of what is no more": {items: []memory.Item{item("1", brief, both)}, near: []Pair{{"MEM-1", "MEM-2"}}},
		"stale":                      {items: []memory.Item{item("1", tea, importance(2)), item("2", "Anna lives in Porto.", importance(3))}, days: 46, set: func(s *Settings) { s.VerifyDays = 0 }, want: "archive MEM-1 importance 2, and not used since 2026-05-04"},
		"not stale yet":              {items: []memory.Item{item("1", tea, importance(1))}, days: 44},
		"recalled since":             {items: []memory.Item{item("1", tea, importance(2))}, days: 60, used: map[string]time.Time{"MEM-1": monday.Add(30 * day)}},
		"never stale":                {items: []memory.Item{item("1", tea, importance(1))}, days: 400, set: func(s *Settings) { s.StaleDays = 0 }},
		"tiers": {items: []memory.Item{item("1", tea, importance(2)), item("2", "Anna lives in Porto.", importance(3)), item("3", "Bob lives in Rome.", importance(4))}, days: 8,
			set: func(s *Settings) { s.Retention = Tiers }, want: "archive MEM-1 importance 2, and not used since 2026-05-04"},
		"tiers, later": {items: []memory.Item{item("1", "Anna lives in Porto.", importance(3)), item("2", "Bob lives in Rome.", importance(4))}, days: 400,
			set: func(s *Settings) { s.Retention, s.VerifyDays = Tiers, 0 }, want: "archive MEM-1 importance 3, and not used since 2026-05-04"},
		"over the cap": {items: []memory.Item{item("1", "Anna lives in Porto.", importance(4)), item("2", "Bob lives in Rome.", confidence(.7)), item("3", "Cleo lives in Oslo.")},
			set: func(s *Settings) { s.MaxItems = 2 }, want: "archive MEM-2 over the cap of active items"},
		"low confidence":                  {items: []memory.Item{item("1", tea, confidence(.5)), item("2", "Anna lives in Porto.", confidence(.5), importance(2))}, want: "verify MEM-1 low confidence"},
		"old and important":               {items: []memory.Item{item("1", tea)}, days: 31, want: "verify MEM-1 not confirmed for a long time"},
		"what happened does not grow old": {items: []memory.Item{item("1", "The user moved to Lisbon in spring.", kind(memory.KindEvent))}, days: 31},
		"the contrary": {items: []memory.Item{item("1", "The user likes green tea with milk in the morning."), item("2", "The user does not like green tea with milk in the morning.")},
			want: "verify MEM-1 contradicts MEM-2\nverify MEM-2 contradicts MEM-1"},
		"another number under one title": {items: []memory.Item{item("1", "The door code of the office is 4711.", title("door code")), item("2", "The door code of the office is 4712.", title("door code"))},
			want: "verify MEM-1 contradicts MEM-2\nverify MEM-2 contradicts MEM-1"},
		"two events differ in a number": {items: []memory.Item{item("1", "The user ran 10 kilometres in the park.", title("run"), kind(memory.KindEvent)), item("2", "The user ran 12 kilometres in the park.", title("run"), kind(memory.KindEvent))}},
		"what waits in quarantine against it": {items: []memory.Item{item("1", tea), item("2", "The user hates tea.", trust(memory.TrustTool), quarantined("would replace MEM-1, which is from a more trusted source"))},
			want: "verify MEM-1 contradicts MEM-2"},
		"merged, and surer for it": {items: []memory.Item{item("1", tea, confidence(.5), rests("evt_1")), item("2", tea, confidence(.5), rests("evt_2"))}, want: "merge MEM-1 MEM-2"},
		"provisional":              {items: []memory.Item{item("1", tea, func(it *memory.Item) { it.Provisional = true })}, want: "verify MEM-1 rests on events that could not be distilled yet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, tc.items...)
			w.clock.forward(time.Duration(tc.days) * day)
			if tc.set != nil {
				tc.set(&w.agent.Settings)
			}
			w.used, w.near = tc.used, tc.near
			res := w.maintain(t, context.Background(), true)
			if diff := cmp.Diff(tc.want, lines(res.Changes)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestADryRunSaysWhatTheRealOneDoes runs both over items that vectors propose.
func TestADryRunSaysWhatTheRealOneDoes(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	both := title("Anna")
	w.put(t, item("1", "Anna lives in Lisbon.", both, rests("evt_1")), item("2", "Anna lives in Lisbon, near the river and the sea.", both, rests("evt_2")),
		item("3", "Anna lives in Lisbon, with her parents and friends.", both), item("4", "Bob lives in Lisbon, near the river.", both), item("5", "Anna currently lives in Lisbon.", both))
	for i := 1; i <= 5; i++ {
		for j := i + 1; j <= 5; j++ {
			w.near = append(w.near, Pair{fmt.Sprint("MEM-", i), fmt.Sprint("MEM-", j)})
		}
	}
	dry, again, real := w.maintain(t, ctx, true), w.maintain(t, ctx, true), w.maintain(t, ctx, false)
	if diff := cmp.Diff(lines(dry.Changes), lines(real.Changes)) + cmp.Diff(lines(dry.Changes), lines(again.Changes)); diff != "" || real.Skipped > 0 {
		t.Errorf("dry and real (-dry +real):\n%s", diff)
	}
	if want := "merge MEM-2 MEM-1,MEM-5"; lines(real.Changes) != want {
		t.Errorf("%s; want %s", lines(real.Changes), want)
	}
	if it := w.all(t)["mem_2"]; len(it.Evidence) != 2 || it.Content != "Anna lives in Lisbon, near the river and the sea." {
		t.Errorf("%+v", it)
	}
	if more := w.maintain(t, ctx, false); len(more.Changes) > 0 {
		t.Errorf("a second run: %s", lines(more.Changes))
	}
}

// TestOldMemoriesAreMarkedAFewAtATime has more old memories than are marked, and
// lets somebody look at one of the marked.
func TestOldMemoriesAreMarkedAFewAtATime(t *testing.T) {
	set := Settings{VerifyDays: 30}
	items := make([]memory.Item, MostOld+50)
	for i := range items {
		items[i] = item(fmt.Sprint(i+1), fmt.Sprintf("Person%d lives in city%d.", i, i))
		items[i].Handle, items[i].Version, items[i].UpdatedAt = fmt.Sprint("MEM-", i+1), 1, monday
	}
	last := &items[len(items)-1]
	last.Importance = 5
	run := func() (marked int, waiting int) {
		s := NewSurvey(set, monday.Add(31*day), working.Ground{}, nil)
		for _, it := range items {
			if err := s.Add(it); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range s.Plan(nil) {
			number, err := strconv.Atoi(strings.TrimPrefix(c.Handle, "MEM-"))
			if err != nil {
				t.Fatal(err)
			}
			items[number-1].Verify = c.Verify
			marked++
		}
		return marked, s.waiting
	}
	if marked, waiting := run(); marked != MostOld || waiting != 50 || last.Verify == nil || items[MostOld-1].Verify != nil || items[MostOld-2].Verify == nil {
		t.Errorf("%d marked and %d waiting; the most important: %q", marked, waiting, last.Verify)
	}
	if marked, waiting := run(); marked != 0 || waiting != 50 {
		t.Errorf("again: %d marked, %d waiting", marked, waiting)
	}
	at := monday.Add(30 * day)
	items[0].VerifiedAt, items[0].Verify = &at, nil
	if marked, waiting := run(); marked != 1 || waiting != 49 || items[MostOld-1].Verify == nil {
		t.Errorf("one was approved: %d marked, %d waiting", marked, waiting)
	}
}

func TestMergeKeepsBothProvenancesAndIsReversible(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	const tea = "The user likes green tea in the morning, without sugar."
	w.put(t, item("1", tea, rests("evt_1"), confidence(.8)), item("2", tea, rests("evt_2"), confidence(.8), importance(4)))
	w.clock.forward(day)
	res := w.maintain(t, ctx, false)
	if lines(res.Changes) != "merge MEM-2 MEM-1" {
		t.Fatal(lines(res.Changes))
	}
	now := w.all(t)
	kept, gone := now["mem_2"], now["mem_1"]
	if len(kept.Evidence) != 2 || kept.Importance != 4 || kept.Confidence != .88 || kept.Supersedes != "mem_1" || !kept.UpdatedAt.Equal(monday) {
		t.Errorf("kept: %+v", kept)
	}
	if gone.Status != memory.Superseded || gone.SupersededBy != "mem_2" || gone.Reason != "says the same as MEM-2" || gone.ValidTo != nil {
		t.Errorf("merged: %+v", gone)
	}
	if again := w.maintain(t, ctx, false); len(again.Changes) > 0 {
		t.Errorf("a second run: %s", lines(again.Changes))
	}
	if _, err := w.store.Revert(ctx, working.RevertRequest{Handle: "MEM-1"}); err != nil {
		t.Fatal(err)
	}
	if it := w.all(t)["mem_1"]; it.Status != memory.Active || len(it.Evidence) != 1 {
		t.Errorf("brought back: %+v", it)
	}
	if again := w.maintain(t, ctx, false); len(again.Changes) > 0 {
		t.Errorf("what a person brought back is merged again: %s", lines(again.Changes))
	}
}

func TestMarksComeAndGo(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	w.put(t, item("1", "The user likes green tea with milk in the morning."), item("2", "The user does not like green tea with milk in the morning.", importance(5)),
		item("3", "Anna lives in Porto.", confidence(.4)))
	res := w.maintain(t, ctx, false)
	if want := "verify MEM-1 contradicts MEM-2\nverify MEM-2 contradicts MEM-1\nverify MEM-3 low confidence"; lines(res.Changes) != want {
		t.Fatal(lines(res.Changes))
	}
	want := []Finding{{FoundContradiction, "MEM-1", "mem_1", "about 1", 3, []string{"contradicts MEM-2"}},
		{FoundContradiction, "MEM-2", "mem_2", "about 2", 5, []string{"contradicts MEM-1"}}, {FoundVerify, "MEM-3", "mem_3", "about 3", 3, []string{"low confidence"}}}
	if diff := cmp.Diff(want, res.Found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	marked, err := w.store.List(ctx, working.ListRequest{Verify: true})
	if err != nil || len(marked.Items) != 3 || !strings.Contains(marked.Items[0].Line(), "to verify: low confidence") {
		t.Errorf("marked: %+v, %v", marked.Items, err)
	}
	if again := w.maintain(t, ctx, false); len(again.Changes)+len(again.Found) > 0 {
		t.Errorf("a second run: %+v", again)
	}
	w.clock.forward(time.Hour)
	if _, err := w.store.Reject(ctx, working.ReviewRequest{Handle: "MEM-1"}); err != nil {
		t.Fatal(err)
	}
	got, err := w.store.Approve(ctx, working.ReviewRequest{Handle: "MEM-3"})
	if err != nil || got.Item.Confidence != .9 || len(got.Item.Verify) > 0 || got.Item.VerifiedAt == nil {
		t.Errorf("approved: %+v, %v", got, err)
	}
	// What it contradicted is out of use: nothing is in doubt any more.
	if again := w.maintain(t, ctx, false); lines(again.Changes) != "verify MEM-2" || len(again.Found) > 0 {
		t.Errorf("after the review: %+v", again)
	}
	if it := w.all(t)["mem_2"]; len(it.Verify) > 0 {
		t.Errorf("still marked: %+v", it)
	}
	// An item that was said to be right in spite of its contrary is not asked about again.
	w.put(t, item("4", "The user goes to the gym by tram on Mondays."), item("5", "The user does not go to the gym by tram on Mondays."))
	w.maintain(t, ctx, false)
	w.clock.forward(time.Hour)
	if _, err := w.store.Approve(ctx, working.ReviewRequest{Handle: "MEM-4"}); err != nil {
		t.Fatal(err)
	}
	if again := w.maintain(t, ctx, false); len(again.Changes) > 0 {
		t.Errorf("asked again: %s", lines(again.Changes))
	}
}

func TestSomebodyChangesAnItemMeanwhile(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	w.put(t, item("1", "Anna lives in Porto.", confidence(.4)), item("2", "Bob lives in Rome.", confidence(.4)))
	w.put(t, item("3", "Cleo lives in Oslo.", importance(1)))
	w.service.opts.Uses = func(context.Context, memory.AgentID, time.Time) (map[string]time.Time, error) { // the items have been read by then
		content := "Anna lives in Lisbon."
		_, err := w.store.Update(ctx, working.UpdateRequest{Handle: "MEM-1", Content: &content})
		return nil, err
	}
	w.clock.forward(46 * day)
	w.agent.Settings.VerifyDays = 0
	res := w.maintain(t, ctx, false)
	if lines(res.Changes) != "archive MEM-3 importance 1, and not used since 2026-05-04\nverify MEM-2 low confidence" || res.Skipped != 1 {
		t.Errorf("%+v", res)
	}
}

// TestIdleAgent lets 90 days go by in which nobody talks to an agent, with the
// weekly run of the schedule: nothing changes and nothing grows.
func TestIdleAgent(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.put(t, item(fmt.Sprint(i), fmt.Sprintf("Person%d lives in city%d.", i, i), importance(1+i%5), confidence(.4+.1*float64(i%5))))
	}
	ctx := memory.WithActor(context.Background(), memory.OriginSystem)
	w.maintain(t, ctx, false) // what there is to do is done once
	before, err := w.log.LastSeq()
	if err != nil {
		t.Fatal(err)
	}
	size := dirSize(t, w.dir)
	for range 13 {
		w.clock.forward(7 * day)
		if res := w.maintain(t, ctx, false); len(res.Changes)+len(res.Found) > 0 {
			t.Fatalf("an idle agent: %s", lines(res.Changes))
		}
	}
	after, err := w.log.LastSeq()
	if err != nil || after != before || dirSize(t, w.dir) != size {
		t.Errorf("seq %d, then %d; %d bytes, then %d; %v", before, after, size, dirSize(t, w.dir), err)
	}
	// Asked by a person, it says what is old by the clock.
	if res := w.maintain(t, context.Background(), true); len(res.Changes) == 0 {
		t.Error("by hand, nothing is old after 90 days")
	}
}
