package distill

import (
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// oldValue are the shapes in which a sentence names what no longer holds.
var oldValue = []*pattern{
	match(`\bno (?:more )?([\pL\d][\pL\d'’./_-]*(?: [\pL\d][\pL\d'’./_-]*){0,1}) any ?more`),
	match(`\b(?:not|isn't|aren't|wasn't) (?:the |a |an |on |in |at |to |with |just |for )*([\pL\d][\pL\d'’./_-]*(?: [\pL\d][\pL\d'’./_-]*){0,2})`),
	match(`\b(?:no longer|instead of|rather than|forget|drop(?:ped|ping|s)?|scrap(?:ped|ping)?|ditch(?:ed|ing)?|dump(?:ed|ing)?|sold|cancel(?:led|ed)?|replac(?:ed|ing|es)|away from|off|from|out of|quit|left|stopp(?:ed|ing)|used to|goodbye to|swap(?:ped|ping)?|bye to) (?:the |our |my |a |an |using |known |at |in )*([\pL\d][\pL\d'’./_-]*(?: [\pL\d][\pL\d'’./_-]*){0,2})`),
	match(`([\pL\d][\pL\d'’./_-]*(?: [\pL\d][\pL\d'’./_-]*){0,1}) (?:is|are|was|were|'s|has|have|got|can|isn't|aren't|goes|went)(?: been)? (?:now )?(?:off|gone|out|dead|history|cancell?ed|over|pushed|moved|postponed|rescheduled|delayed|changed|fixed|resolved|solved|closed|done|sold|go\b|to recycling|not)`),
	match(`([\pL\d][\pL\d'’./_-]*) (?:wasn't|isn't|weren't|aren't|was not|is not) enough\b`),
	match(`([\pL\d][\pL\d'’./_-]*) (?:left|quit|resigned|retired|leaves (?:us|the|our)|is leaving|has left|stepped down)\b`),
	match(`([\pL\d][\pL\d'’./_-]*(?: [\pL\d][\pL\d'’./_-]*){0,1}) (?:goes|moved|moves|changed|changes|pulled out|fell through|shifts|shifted|drowned|died|broke|has to move)\b`),
}

// replaceFrom is the sum of bonds from which a change replaces an item.
const replaceFrom = 3.0

// replaced returns the item that a draft makes obsolete, with what of it is
// corrected and what stays true, or nil. A sign of change is needed, and bonds: the
// old value named, the same attribute, another amount.
func (n *notebook) replaced(d *draft, content string, turn int) (item *known, old, kept []string) {
	lower := d.lower()
	switch subject := d.parts[0].core[0].lower; {
	case d.mood == reminding && !strings.Contains(lower, "instead"):
		return nil, nil, nil
	case !changeCue.MatchString(lower) && !d.any(func(v *view) bool { return has(v.core, changes) && decision.MatchString(v.lower) }):
		return nil, nil, nil
	case subject == "you", subject == "you've": // what the assistant did is no change of the user's affairs
		return nil, nil, nil
	}
	if d.context != "" && redone.MatchString(d.parts[0].lower) { // what was tried stands
		_, content, _ = strings.Cut(content, " — ")
	}
	fresh := newKnown("", "", content, d.kind, d.turn.at, turn)
	gone := goneValues(lower)
	most := 0.0
	for _, candidate := range n.items {
		c := n.compare(candidate, fresh, d, lower, gone)
		if sum := c.sum(); sum >= replaceFrom && sum >= most {
			if was, rest := c.corrected(gone); was != nil {
				item, old, kept, most = candidate, was, rest, sum
			}
		}
	}
	return item, old, kept
}

// goneValues returns the stems of what a sentence says to hold no more.
func goneValues(lower string) map[string]bool {
	gone := map[string]bool{}
	for _, shape := range oldValue {
		for _, m := range shape.FindAllStringSubmatch(lower, -1) {
			for s := range stemsOf(m[1]) {
				gone[s] = true
			}
		}
	}
	return gone
}

// comparison is what a new statement and a known item have in common.
type comparison struct {
	old, fresh *known
	draft      *draft
	lower      string
	gone       bool    // the statement names an old value
	shared     float64 // stems in common, rare ones counting more
	apart      float64 // those besides the old value
	named      float64 // stems of the old value that the item has
	byName     bool    // one of them is a proper name
	slots      int     // attributes that both give different values for
	corrects   bool    // it corrects what was said just before
}

func (n *notebook) compare(old, fresh *known, d *draft, lower string, gone map[string]bool) *comparison {
	c := &comparison{old: old, fresh: fresh, draft: d, lower: lower, gone: len(gone) > 0, corrects: correctsLast.MatchString(lower)}
	shared, apart, named := 0, 0, 0 // in tenths: sums of integers do not depend on the order of a map
	for s := range fresh.stems {
		if old.stems[s] && !isFigure(s) && !unitStems[s] && !changeStems[s] {
			shared += n.rarity(s)
			if !gone[s] {
				apart += n.rarity(s)
			}
		}
	}
	for s := range gone {
		switch {
		case old.stems[s]:
			named += n.rarity(s)
			c.byName = c.byName || d.any(func(v *view) bool { return namesStem(v, s) })
		case len(s) >= 5 && hasPrefix(old.stems, s): // Rabbit for RabbitMQ
			named += n.rarity(s)
			shared += n.rarity("")
		}
	}
	for s, words := range fresh.slots {
		if old.slots[s] != "" && old.slots[s] != words && old.kin == fresh.kin {
			c.slots++
		}
	}
	c.shared, c.apart, c.named = float64(shared)/10, float64(apart)/10, float64(named)/10
	if c.slots > 0 && !(fresh.ours && old.ours) && c.shared == 0 && c.named == 0 {
		c.slots = 0
	}
	return c
}

// changeStems are those of words that tell of a change, of whatever it is: two
// things that moved have nothing in common for that.
var changeStems = stemmed(`moved moving switched switching changed changing pushed postponed rescheduled delayed cancelled stopped quit replaced dropped sold`)

func stemmed(words string) map[string]bool {
	stems := map[string]bool{}
	for _, w := range strings.Fields(words) {
		stems[text.Stem(w)] = true
	}
	return stems
}

// sum adds up the bonds of a comparison.
func (c *comparison) sum() float64 {
	sum := min(c.shared, 3) + 1.5*min(c.named, 2)
	for _, b := range bonds {
		if b.holds(c) {
			sum += b.weight
		}
	}
	return sum
}

// bonds are reasons to take a change for one of this item, or against it.
var bonds = []struct {
	name   string
	weight float64
	holds  func(c *comparison) bool
}{
	{"another value of the same attribute", 1.5, func(c *comparison) bool { return c.slots > 0 }},
	{"said with a word of renewal", 1.5, func(c *comparison) bool { return c.slots > 0 && renews.MatchString(c.lower) }},
	{"another day", 1, func(c *comparison) bool {
		return c.days() && (c.slots > 0 || c.shared > 0) && c.old.kind != memory.KindIssue
	}},
	{"another day of the week", 1.5, func(c *comparison) bool {
		return c.shared >= 1 && c.fresh.weekdays != "" && c.old.weekdays != "" && c.fresh.weekdays != c.old.weekdays
	}},
	{"another amount of the same", 2, func(c *comparison) bool { return (c.shared >= 1 || c.slots > 0) && otherAmount(c.fresh, c.old) }},
	{"is set to another figure", 2, func(c *comparison) bool {
		return c.apart >= 1 && !otherAmount(c.fresh, c.old) && setsFigure.MatchString(c.lower) && len(c.fresh.numbers) > 0 && len(c.old.numbers) > 0 && disjoint(c.fresh.numbers, c.old.numbers)
	}},
	{"an amount of something else", -3, func(c *comparison) bool {
		return c.shared >= 1 && otherAmount(c.fresh, c.old) && otherThing(c.fresh, c.old)
	}},
	{"another time of day", 2, func(c *comparison) bool {
		return c.shared >= 1 && c.fresh.clock != "" && c.old.clock != "" && c.fresh.clock != c.old.clock
	}},
	{"allows what was not allowed", 1.5, func(c *comparison) bool {
		return c.shared >= 1 && allows.MatchString(c.lower) && forbids.MatchString(strings.ToLower(c.old.content))
	}},
	{"is of another age", 3, func(c *comparison) bool {
		return c.shared >= 1 && c.fresh.age != "" && c.old.age != "" && c.fresh.age != c.old.age
	}},
	{"speaks of another place or maker", -2, func(c *comparison) bool { return c.gone && c.named == 0 && c.shared == 0 && !c.corrects }},
	{"says by itself that something held before", 1, func(c *comparison) bool { return strongCue.MatchString(c.lower) }},
	{"goes over to something with a name", 2, func(c *comparison) bool {
		return c.shared >= 1 && c.old.kind != memory.KindPerson && switchesTo.MatchString(c.draft.text())
	}},
	{"names as the new what the item says already", -3, func(c *comparison) bool {
		m := switchesTo.FindStringSubmatch(c.draft.text())
		return m != nil && c.named == 0 && c.old.stems[text.Stem(strings.ToLower(m[1]))]
	}},
	{"names the old value, and more", .5, func(c *comparison) bool { return c.named >= 1 && (c.apart >= 1 || c.byName) }},
	{"names another old value", -1, func(c *comparison) bool { return c.gone && c.named == 0 }},
	{"corrects what was said just before", 3, func(c *comparison) bool {
		near := c.fresh.turn - c.old.turn
		figures := c.shared >= 1 && len(c.fresh.numbers) > 0 && len(c.old.numbers) > 0 || otherAmount(c.fresh, c.old)
		return c.corrects && c.old.turn >= 0 && 0 < near && near <= 2 && (c.days() || figures)
	}},
	{"decides the other way in the next breath", 3, (*comparison).reverses},
	{"ends a fault", 1.5, func(c *comparison) bool {
		return endsFault.MatchString(c.lower) && (c.old.kind == memory.KindIssue && c.shared >= 1 || c.old.kind == memory.KindFact && c.shared >= 2)
	}},
	{"speaks of somebody else", -9, func(c *comparison) bool {
		return c.shared == 0 && c.named == 0 && somebodyElse(c.old.content) && !somebodyElse(c.fresh.content)
	}},
	{"speaks of another ticket", -9, func(c *comparison) bool { return ticketsApart(c.old.content, c.fresh.content) }},
	{"the item is a fault that goes on", -3, func(c *comparison) bool {
		return c.old.kind == memory.KindIssue && !endsFault.MatchString(c.lower) && (c.named < 1 && c.slots == 0 || c.fresh.kind == memory.KindDecision)
	}},
	{"an illness outlives what is used against it", -3, func(c *comparison) bool {
		return dangerous.MatchString(strings.ToLower(c.old.content)) && !dangerous.MatchString(c.lower)
	}},
	{"a reminder stands until it is spoken of", -3, func(c *comparison) bool {
		return c.old.kind == memory.KindReminder && !endsReminder.MatchString(c.lower)
	}},
	{"who somebody is seldom changes", -1.5, func(c *comparison) bool {
		return c.old.kind == memory.KindPerson && c.named < 1 && (c.old.age == "" || c.fresh.age == "")
	}},
	{"a preference changes by another", -1.5, func(c *comparison) bool {
		return c.old.kind == memory.KindPreference && c.named < 1 && c.draft.mood != ruling
	}},
	{"what was just decided is not undone in the next breath", -2, func(c *comparison) bool {
		near := c.fresh.turn - c.old.turn
		return c.old.turn >= 0 && near <= 1 && (c.old.renews || near == 0) && !c.corrects
	}},
}

// reverses reports a decision in place of one made just before: no wait, we take the
// other after all. The two need not have a word in common.
func (c *comparison) reverses() bool {
	near := c.fresh.turn - c.old.turn
	decisions := c.old.kind == memory.KindDecision && c.fresh.kind == memory.KindDecision
	return decisions && c.old.turn >= 0 && 0 < near && near <= 2 && (c.corrects || strings.Contains(c.lower, "after all"))
}

// days reports that both name a day.
func (c *comparison) days() bool { return c.fresh.hasDay && c.old.hasDay }

// namesStem reports a stem that stands in a sentence as a proper name.
func namesStem(v *view, stem string) bool {
	return slices.ContainsFunc(v.names, func(n string) bool { return text.Stem(n) == stem })
}

// ticket is a number of an issue tracker.
var ticket = match(`\b[A-Z][A-Z0-9]+-\d+\b`)

// ticketsApart reports that both texts name tickets, and none in common.
func ticketsApart(a, b string) bool {
	in, of := ticket.FindAllString(a, -1), ticket.FindAllString(b, -1)
	for _, t := range in {
		if slices.Contains(of, t) {
			return false
		}
	}
	return len(in) > 0 && len(of) > 0
}

// setsFigure changes a thing to another number.
var setsFigure = match(`\b(?:rais|increas|reduc|lower|bump|extend|shorten|doubl|cut|put|tak|bring|brought|took|set)\w* (?:\w+ )?(?:the|our|my|it|its|his|her|their) (?:[\w'-]+ ){0,3}?(?:up |down )?to \D?\d`)

func disjoint(a, b map[string]bool) bool {
	for n := range a {
		if b[n] {
			return false
		}
	}
	return true
}

var (
	// renews marks a new holder of a slot: "the new place", "we bought a car".
	renews = match(`\b(?:new|bought|sold|moved|moving|switch(?:ed|ing)?|swapp?(?:ed|ing)?|upgraded|now on|got|no longer|finally|replac(?:ed|ing|es)|instead|take|taking|second-hand|over to|is off|run on|we're in)\b`)
	// endsReminder speaks of a reminder, or dismisses something.
	endsReminder = match(`\b(?:remind\w*|ping|nudge|can go|no need|not needed|instead of)\b`)
	// endsFault tells that a problem is over.
	endsFault = match(`\b(?:fix is in|fixed|resolved|solved|repaired|patched|closed|sorted|done|works (?:again|now|fine)|no more|gone|behoben|went from|passes|green again)\b`)
)

var (
	allows  = match(`\b(?:is|are|'s|'re) (?:fine|ok|okay|allowed|safe|possible) (?:again|now|too)\b|\b(?:can|may) .{1,30} again\b`)
	forbids = match(`\b(?:no|not|never|avoid|without|can't|cannot|mustn't|shouldn't|banned|forbidden|until)\b`)
)

// strongCue says by itself that something held before.
var strongCue = match(`\b(?:from now on|no longer|any ?more|instead|is off|moved|changed|pushed|cancell?ed|quit|gave up|given up|stopped|now\b.{1,40}\bnot|not\b.{1,40}\bnow|take .{1,20} back|after all|change of plans?|scratch|put (?:back|off|forward)|called off|rescheduled|postponed|fell through|new date)\b`)

// switchesTo changes over to something with a name of its own.
var switchesTo = match(`\b(?:going|moving|switching|migrating|changing|moved|switched|migrated|went) (?:over )?(?:(?:off|away from|from) \S+ )?to (?:the )?(\p{Lu}[\pL\d]*)`)

// correctsLast opens a correction of what was said just before.
var correctsLast = match(`\bactually,? (?:no\b|it|that|they|he|she|make)|\b(?:correction|scratch that|no,? wait|wait,? no|hmm,? no|sorry,? it's|i mean|make (?:it|that)|i was wrong|my mistake|take .{1,20} back)\b|\b(?:it's|it is) .{1,30} now\b|\bnow (?:it|that|this)(?:'s| is| takes| needs| runs)\b|^(?:tried|tested|measured|timed|repeated|redid|reran) (?:it|that|this)\b`)
