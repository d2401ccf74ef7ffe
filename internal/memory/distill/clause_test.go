package distill

import (
	"slices"
	"testing"
)

// TestRulesCorrectOnePart: a change replaces the part that it speaks of, quotes
// only that, and carries on what it leaves.
func TestRulesCorrectOnePart(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, want string }{
		"a date among others": {
			"We're leaving Brightline for Corvid. The Brightline lease ends on 30 June.", "Correction: the Brightline lease ends on 20 July, not 30 June.",
			"Correction: the Brightline lease ends on 20 July (2026-07-20), not 30 June (2026-06-30). (previously: The Brightline lease ends on 30 June (2026-06-30)) Unchanged: We're leaving Brightline for Corvid."},
		"one of a list": {
			"Our stock: seven kilns, one Rohde 12 wheel, and a Nabertherm", "We upgraded to a Rohde 18 wheel, the Rohde 12 is out.",
			"We upgraded to a Rohde 18 wheel, the Rohde 12 is out. (previously: one Rohde 12 wheel) Unchanged: Our stock: seven kilns; a Nabertherm."},
		"one of several people": {
			"My colleagues: Odile runs the bakery, Piet keeps the books, and Sana is our buyer, she speaks Farsi.", "Odile left in March, the new baker is Tomke.",
			"Odile left in March, the new baker is Tomke. (previously: User's colleagues: Odile runs the bakery) Unchanged: Piet keeps the books; Sana is our buyer, she speaks Farsi."},
		"somebody's age": {
			"My daughter Liv, she's six. Liv plays the cello at the Hansen school.", "Liv turned seven yesterday!",
			"Liv turned seven yesterday (2026-05-03)! (previously: she's six) Unchanged: User's daughter Liv; Liv plays the cello at the Hansen school."},
		"an age beside a habit": {
			"Liv now takes the bus to school, so I can start at seven. My son Arne, he's four.", "Arne turned five today!",
			"Arne turned five today! (previously: he's four) Unchanged: Liv now takes the bus to school, so User can start at seven; User's son Arne."},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, talk("u: "+tc.before, "a: Noted.", "u: hm ok", "a: Right.", "u: "+tc.after, "a: Noted."))
			last := r.NewItems[len(r.NewItems)-1]
			if last.Content != tc.want || last.Supersedes == nil {
				t.Errorf("kept  %q\nwant  %q\nsupersedes %v", last.Content, tc.want, last.Supersedes)
			}
		})
	}
}

// TestRulesKeepWhatIsNotCorrected: a word of correction replaces nothing that is
// about another subject or attribute.
func TestRulesKeepWhatIsNotCorrected(t *testing.T) {
	for _, p := range [][2]string{
		{"I'm coeliac, so for the retreat in Malmö find a place with a proper menu.", "i actually live in Lund now, moved from Ystad on 1 June"},
		{"My mother is left-handed, so she needs other scissors.", "Actually I take the bus to Malmö now, line 150."},
		{"We always rent the red van in August.", "I moved the piano lesson to Friday the 12th of June."},
		{"My wife works at the archive in Bergen.", "Actually the ferry to Bergen leaves at 7:40 now."},
	} {
		r := read(t, talk("u: "+p[0], "a: Noted.", "u: hm ok", "a: Right.", "u: "+p[1], "a: Noted."))
		if slices.ContainsFunc(r.NewItems, func(n NewItem) bool { return n.Supersedes != nil }) {
			t.Errorf("%q replaces %q", p[1], p[0])
		}
	}
}

func TestBodyOf(t *testing.T) {
	for in, want := range map[string]string{
		"Plain.":                "Plain.",
		"New (previously: old)": "New.",
		"New (previously: on 3 May (2026-05-03)) Unchanged: x": "New. x",
		"New (previously: cut":                                 "New",
	} {
		if got := bodyOf(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
