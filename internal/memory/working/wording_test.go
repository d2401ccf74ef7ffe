package working

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func said(content string, edit ...func(*memory.Item)) Wording {
	it := memory.Item{Kind: memory.KindFact, Title: "note", Content: content, Status: memory.Active, Trust: memory.TrustUser}
	for _, e := range edit {
		e(&it)
	}
	return WordingOf(it)
}

func TestWhatSaysTheSameInMoreWords(t *testing.T) {
	for _, tc := range []struct{ long, short string }{
		{"Anna lives in Porto.", "Anna lives in Porto"},
		{"Anna currently lives in Porto.", "Anna lives in Porto!"},
		{"Anna lives in Porto, near the river.", "Anna lives in Porto."},
		{"Anna lives in Porto (with her parents).", "Anna lives in Porto."},
		{"The user does not eat the meat, especially pork.", "The user does not eat the meat."},
		{"The user works at the bakery on 5 days, together with a cousin.", "The user works at the bakery on 5 days."},
		{"The user moved the meeting to Friday, because the room is taken.", "The user moved the meeting to Friday."},
		{"The user's sister lives in Porto; her flat is near the river.", "The user's sister lives in Porto."},
	} {
		if !said(tc.long).Covers(said(tc.short)) {
			t.Errorf("%q does not cover %q", tc.long, tc.short)
		}
	}
}

func TestWhatSaysSomethingElse(t *testing.T) {
	for _, tc := range []struct{ a, b string }{
		// Names, numbers, units, dates.
		{"Anna lives in Porto, near the river.", "Bob lives in Porto."},
		{"Anna lives in Porto, near the river.", "Anna lives in Lisbon."},
		{"Anna lives in Porto, near Bob.", "Anna lives in Porto."},
		{"Anna lives in Porto, with 2 cats.", "Anna lives in Porto."},
		{"Anna lives in Porto, with two cats.", "Anna lives in Porto."},
		{"Anna lives in Porto, in summer.", "Anna lives in Porto."},
		{"Anna lives in Porto, on weekdays.", "Anna lives in Porto."},
		{"The user pays 500 euros for the flat.", "The user pays 500 dollars for the flat."},
		{"The user pays 500 euros for the flat.", "The user pays 500 for the flat."},
		{"The user pays 1.5 for the fare.", "The user pays 15 for the fare."},
		{"The room is kept at -5 degrees.", "The room is kept at 5 degrees."},
		{"The invoice number 41 of the plumber is paid.", "The invoice number 42 of the plumber is paid."},
		{"The meeting is on 4 May in the office.", "The meeting is on 5 May in the office."},
		{"The meeting is on Monday in the office.", "The meeting is on Tuesday in the office."},
		{"The user writes programs in C++.", "The user writes programs in C."},
		// Negation, doubt, tense, direction.
		{"Anna does not live in Porto.", "Anna does live in Porto."},
		{"Anna lives in Porto no more.", "Anna lives in Porto."},
		{"Anna lives in Porto, but not for long.", "Anna lives in Porto."},
		{"Anna lives in Porto, or so they say.", "Anna lives in Porto."},
		{"Anna lives in Porto, allegedly.", "Anna lives in Porto."},
		{"Anna lives in Porto, according to the neighbours.", "Anna lives in Porto."},
		{"Anna lives in Porto, which is a lie.", "Anna lives in Porto."},
		{"Anna lives in Porto, if the money lasts.", "Anna lives in Porto."},
		{"Anna lives in Porto?", "Anna lives in Porto."},
		{"Anna lived in Porto.", "Anna lives in Porto."},
		{"Anna may live in Porto.", "Anna does live in Porto."},
		{"The user moved the bakery to the harbour.", "The user moved the bakery from the harbour."},
		{"He likes tea with milk.", "She likes tea with milk."},
		{"The user has dogs and a garden.", "The user has a dog and a garden."},
		// Who does what to whom.
		{"Anna loves Bob and the sea.", "Bob loves Anna and the sea."},
		{"Anna's sister lives in Porto.", "Anna lives in Porto."},
		{"Bob says Anna lives in Porto.", "Anna lives in Porto."},
		{"The user wants to live in Porto.", "The user lives in Porto."},
		{"The user hates going to the gym.", "The user is going to the gym."},
		{"The user forgot to go to the gym.", "The user has to go to the gym."},
		// What follows without a pause narrows down.
		{"The user likes tea cups.", "The user likes tea."},
		{"The user has a dog allergy.", "The user has a dog."},
		{"The user hates coffee with sugar.", "The user hates coffee."},
		{"The user likes fish and chips.", "The user likes fish."},
		{"The user likes apples, pears and milk.", "The user likes apples and milk."},
		// Too little in common, or in a language whose words are not known.
		{"User: tea, with milk and with honey", "User: tea"},
		{"The user likes green tea, with honey from the garden behind our old house near the river, where bees live", "The user likes green tea."},
		{"Anna wohnt in Porto, in der Altstadt, nicht mehr lange.", "Anna wohnt in Porto."},
		{"安娜住在波尔图，靠近河边。", "安娜住在波尔图。"},
	} {
		for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
			if said(pair[0]).Covers(said(pair[1])) {
				t.Errorf("%q covers %q", pair[0], pair[1])
			}
		}
	}
}

func TestWhatStandsBesideTheWordsMustAgree(t *testing.T) {
	const long, short = "Anna lives in Porto, near the river.", "Anna lives in Porto."
	day := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	later := day.AddDate(0, 0, 7)
	for name, tc := range map[string]struct {
		edit func(*memory.Item)
		want bool
	}{
		"nothing":              {func(*memory.Item) {}, true},
		"a title of its words": {func(it *memory.Item) { it.Title = "Note: Anna, Porto" }, true},
		"another title":        {func(it *memory.Item) { it.Title = "Bob's wife" }, false},
		"another kind":         {func(it *memory.Item) { it.Kind = memory.KindPerson }, false},
		"less trusted":         {func(it *memory.Item) { it.Trust = memory.TrustTool }, false},
		"in quarantine":        {func(it *memory.Item) { it.Status = memory.Quarantined }, false},
		"at another time":      {func(it *memory.Item) { it.ValidFrom = &later }, false},
		"at the same time":     {func(it *memory.Item) { it.ValidFrom = &day }, true},
	} {
		a := said(long, func(it *memory.Item) { it.ValidFrom = &day })
		if got := a.Covers(said(short, tc.edit)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	event := func(it *memory.Item) { it.Kind = memory.KindEvent }
	if said("The user ran in the park, with a dog.", event).Covers(said("The user ran in the park.", event)) {
		t.Error("two runs are one")
	}
}

// fact is what a sentence of the property's little language says.
type fact struct {
	who, verb, what, where, number, day string
	not                                 bool
}

func (f fact) String() string {
	not := ""
	if f.not {
		not = "not "
	}
	return fmt.Sprintf("%s does %s%s %s %s at the %s on %s", f.who, not, f.verb, f.number, f.what, f.where, f.day)
}

func drawFact(t *rapid.T) fact {
	one := func(label, list string) string { return rapid.SampledFrom(strings.Fields(list)).Draw(t, label) }
	return fact{one("who", "Anna Bob Cleo Dan anna she he"), one("verb", "buy sell want like hate keep"), one("what", "apples pears tickets euros dollars km miles cats"),
		one("where", "market harbour Porto Lisbon office"), one("number", "2 3 20 1.5 15 -5 two three some"), one("day", "Monday Tuesday 4 5 weekends"), rapid.Bool().Draw(t, "not")}
}

// afterthoughts add to a fact; not all of them are taken as such.
var afterthoughts = []string{"", ", near the river", " (with her parents)", ", together with friends of the family", ", because the price is low", ", mostly with cash",
	", but rarely", ", which is false", ", or so they hope", " with sugar", ", with Bob", ", with 3 friends", ", in May", ", until the end", "?", " no more"}

func TestTwoFactsAreNeverOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawFact(t), drawFact(t)
		more, other := rapid.SampledFrom(afterthoughts).Draw(t, "more"), rapid.SampledFrom(afterthoughts).Draw(t, "other")
		long, short := a.String()+more, b.String()+other
		if got := said(long).Covers(said(short)); got && a != b {
			t.Fatalf("%q covers %q", long, short)
		}
		// What is added without harm is covered, and in one direction alone.
		plain, added := a.String()+".", a.String()+rapid.SampledFrom(afterthoughts[:6]).Draw(t, "harmless")+"."
		if !said(added).Covers(said(plain)) {
			t.Fatalf("%q does not cover %q", added, plain)
		}
		if added != plain && said(plain).Covers(said(added)) {
			t.Fatalf("%q covers %q", plain, added)
		}
	})
}
