package distill

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// known is an item that a new one may repeat or replace: one offered, or an
// earlier entry of the same reply.
type known struct {
	ref      string // id, or new:n
	title    string
	content  string
	kind     string
	stems    map[string]bool
	slots    map[string]string // attribute to the words that name it or its value
	weekdays string
	kin      string // whose it is, where that is said by kinship
	hasDay   bool
	clock    string // a time of day
	ours     bool   // speaks of the user or of "us"
	renews   bool   // replaced another item itself
	age      string // of somebody, as said
	numbers  map[string]bool
	words    []string          // in order
	amounts  map[string]string // unit, or the name before it, to a number
	turn     int               // position of its turn; -1 for an offered one
}

// notebook is what is known while a batch is read.
type notebook struct {
	items []*known
	count map[string]int // known items that hold a stem
}

func newNotebook(related []memory.Item) *notebook {
	n := &notebook{count: map[string]int{}}
	for _, it := range related {
		n.add(newKnown(it.ID, it.Title, it.Content, it.Kind, it.CreatedAt, -1))
	}
	return n
}

func newKnown(ref, title, content, kind string, at time.Time, turn int) *known {
	body := bodyOf(content)
	body = thousands.ReplaceAllString(resolvedDate.ReplaceAllString(body, ""), "$1$2")
	k := &known{ref: ref, title: title, content: content, kind: kind, turn: turn, stems: stemsOf(body), slots: slotsOf(body), kin: kinOf(body), weekdays: weekdaysOf(body), numbers: map[string]bool{}}
	k.hasDay = len(daysOf(body, at)) > 0
	k.clock = clockOf(body)
	k.ours = ownWords.MatchString(body)
	if m := ageForm.FindStringSubmatch(strings.ToLower(body)); m != nil {
		k.age = m[1] + m[2] + m[3]
	}
	k.renews = strings.Contains(content, previously)
	k.words = text.Words(body)
	for _, w := range k.words {
		if w[0] >= '0' && w[0] <= '9' {
			k.numbers[w] = true
		}
	}
	k.amounts = amountsOf(body)
	return k
}

// ageForm are the ways to say how old somebody is.
var ageForm = match(`\b(?:turn(?:ed|s|ing)|(?:s?he|they)(?:['’]s| is|['’]re| are)|aged?) (?:now |already )?(` + countWords + `)(?:[,.!;)]|$| (?:yesterday|today|tomorrow|now|on|last|next|in|this|years? old)\b)|\bis (?:now |already )?(` + countWords + `) years? old\b|\b(` + countWords + `)[- ]years?[- ]old\b`)

const countWords = `\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety`

// clockTime is a time of day.
var clockTime = match(`(?i)\b(?:[01]?\d|2[0-3])(?:[:.][0-5]\d(?: ?[ap]m)?| ?[ap]m)\b`)

// resolvedDate is what dated adds.
var resolvedDate = match(` \(\d{4}-\d{2}-\d{2}\)`)

// thousands is the comma within a number.
var thousands = match(`(\d),(\d{3})\b`)

var ownWords = match(`(?i)\b(?:user|we|we're|we've|our|us|ours)\b`)

func (n *notebook) add(k *known) {
	n.items = append(n.items, k)
	for s := range k.stems {
		n.count[s]++
	}
}

func (n *notebook) remove(k *known) {
	for i, other := range n.items {
		if other == k {
			n.items = append(n.items[:i], n.items[i+1:]...)
			break
		}
	}
	for s := range k.stems {
		n.count[s]--
	}
}

// stemsOf returns the stems of the words that carry a topic.
func stemsOf(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range text.Words(s) {
		if len(w) < 2 && w[0] < '0' || text.IsStopword(w) || functionWords[w] || w == "user" || commonTopics[w] {
			continue
		}
		if stem := text.Stem(w); !commonTopics[stem] {
			set[stem] = true
		}
	}
	return set
}

// commonTopics are words of statements of all kinds, which show no kinship.
var commonTopics = wordSet(`new old now day days week weeks month months year years time today tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday
	january february march april may june july august september october november december morning evening afternoon first second last next one
	good big small long short standing instruction asked reminder really use used using run runs start starts started back place
	work works working actually anyway euro hours minutes number full whole every since until around little set`)

// slotsOf names the attributes that a text gives a value for, by the nouns and
// brands of everyday things of which a person has one at a time.
func slotsOf(s string) map[string]string {
	set := map[string]string{}
	for _, w := range text.Words(s) {
		if slot, found := slotOf[w]; found && !strings.Contains(set[slot], w) {
			set[slot] += w + " "
		}
	}
	if movedIn.MatchString(s) {
		set["home"] += "moved "
	}
	return set
}

var movedIn = match(`(?i)\bmov(?:ed|ing) (?:in|into|to)\b|\b(?:new|old|own) place\b`)

// amountsOf pairs each number with the word after it and the word before it: the
// unit of a measure, the thing that is counted, the product of a version.
func amountsOf(s string) map[string]string {
	amounts := map[string]string{}
	for _, phrase := range phraseEnd.Split(s, -1) {
		addAmounts(amounts, text.Words(phrase))
	}
	return amounts
}

// phraseEnd parts a number from a word that it has nothing to do with.
var phraseEnd = match(`[.,;:!?—]+(?:\s|$)`)

func addAmounts(amounts map[string]string, words []string) {
	for i, w := range words {
		if !(w[0] >= '0' && w[0] <= '9' || numberWords[w]) {
			continue
		}
		before := i - 1
		if before > 0 && (words[before] == "version" || words[before] == "release" || words[before] == "v") {
			before--
		}
		if before > 0 && words[before] == "to" { // EKS to 1.31
			before--
		}
		for _, j := range []int{before, i + 1} {
			if j < 0 || j >= len(words) || text.IsStopword(words[j]) || calendarWords[words[j]] || words[j][0] <= '9' || words[j] == "user" {
				continue
			}
			if unit := text.Stem(words[j]); amounts[unit] == "" {
				amounts[unit] = w
			}
		}
	}
}

// otherAmount reports that both texts give a number for the same thing, and not
// the same number.
func otherAmount(a, b *known) bool {
	for unit, n := range a.amounts {
		if m := b.amounts[unit]; m != "" && m != n {
			return true
		}
	}
	return false
}

// otherThing reports a word that both texts have, with another word of content
// before it in each: the staging cluster is not the production cluster.
func otherThing(a, b *known) bool {
	qualifiers := map[string]string{}
	for i, w := range a.words {
		if i > 0 && qualifies(a.words[i-1]) {
			qualifiers[w] = a.words[i-1]
		}
	}
	for i, w := range b.words {
		if i == 0 || functionWords[w] || !qualifies(b.words[i-1]) {
			continue
		}
		mine, here := qualifiers[w], b.words[i-1]
		if mine != "" && mine != here && !b.stems[text.Stem(mine)] && !a.stems[text.Stem(here)] {
			return true
		}
	}
	return false
}

// qualifies reports a word that can tell one thing from another of its kind.
func qualifies(w string) bool {
	return len(w) > 2 && w[0] > '9' && !text.IsStopword(w) && !functionWords[w] && !commonTopics[w] && !numberWords[w] && !statives[w] && !changes[w] && !calendarWords[w] && w != "user"
}

// kinOf returns the nouns of kinship in a text: a father's boat is not one's own.
func kinOf(s string) string {
	var b strings.Builder
	for _, w := range text.Words(s) {
		if kin[w] && w != "family" {
			b.WriteString(w + " ")
		}
	}
	return b.String()
}

var slotOf = slotTable(map[string]string{
	"home":  "flat apartment house home live lives living landlord tenant wohnung vivo",
	"phone": "phone mobile iphone pixel galaxy smartphone handset android fairphone oneplus xiaomi nokia",
	"car": "car van skoda vw volkswagen golf toyota volvo audi bmw ford fiat renault peugeot citroen opel seat kia hyundai honda mazda nissan tesla dacia polo corolla " +
		"yaris fiesta focus clio fabia octavia subaru suzuki jeep mini bike ebike",
	"laptop":   "laptop macbook thinkpad computer notebook pc desktop",
	"job":      "job employer company hired teach teaching position",
	"school":   "school kindergarten nursery creche",
	"doctor":   "dentist doctor gp physio vet appointment surgeon surgery operation",
	"race":     "marathon 10k 5k race",
	"ci":       "ci pipeline jenkins gitlab github actions circleci buildkite travis drone teamcity runner runners",
	"broker":   "broker rabbitmq rabbit kafka nats jetstream redis pulsar mqtt sqs queue",
	"database": "database db postgres postgresql mysql sqlite mongodb mariadb clickhouse duckdb cassandra dynamodb",
	"launch":   "launch release live deadline golive rollout ship submission due cutover",
	"cloud":    "hosting host hosted server aws azure gcp hetzner heroku netlify vercel digitalocean ovh",
	"keep":     "retention retain keep behalten speichern kept stored",
	"frontend": "frontend svelte sveltekit react vue angular htmx",
	"engine":   "engine unity godot unreal bevy",
	"medicine": "dose dosage tablet tablets pill pills mg medication medicine",
	"flight":   "flight fly flying train ferry",
	"hotel":    "hotel hostel airbnb apartment guesthouse staying",
})

func slotTable(list map[string]string) map[string]string {
	table := map[string]string{}
	for slot, words := range list {
		for _, w := range strings.Fields(words) {
			table[w] = slot
		}
	}
	return table
}

// onceWeekday is a day of one week, not of every.
var onceWeekday = match(`(?i)\b(?:last|next|this|since|until|till) (?:last |next )?\w+day\b`)

// weekdaysOf returns the days of the week that a text names, in its order.
func weekdaysOf(s string) string {
	var b strings.Builder
	for _, w := range text.Words(onceWeekday.ReplaceAllString(s, "")) {
		if _, isDay := weekdayNames[strings.TrimSuffix(w, "s")]; isDay {
			b.WriteString(strings.TrimSuffix(w, "s") + " ")
		}
	}
	return b.String()
}

// rarity weighs a stem, in tenths, by how few of the known items hold it.
func (n *notebook) rarity(stem string) int {
	switch c := n.count[stem]; {
	case c <= 2:
		return 10
	case c <= 4:
		return 7
	}
	return 4
}

// isFigure reports number words and numbers of one or two digits: they turn up in
// statements of all kinds.
func isFigure(stem string) bool {
	return numberWords[stem] || len(stem) < 3 && stem[0] >= '0' && stem[0] <= '9'
}

// unitStems are the units as they are indexed: two sums in euro are no kin.
var unitStems = stemsOfSet(units)

func stemsOfSet(words map[string]bool) map[string]bool {
	set := map[string]bool{}
	for w := range words {
		set[text.Stem(w)] = true
	}
	return set
}

func hasPrefix(stems map[string]bool, prefix string) bool {
	for s := range stems {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// sameFrom is the share of a statement's stems that a known item must hold for the
// statement to be a repetition.
const sameFrom = .72

// repeated returns the item that says already what content says, or nil: nearly
// all its stems are there, and it brings no new number.
func (n *notebook) repeated(content string, kind string, at time.Time) *known {
	fresh := newKnown("", "", content, kind, at, 0)
	if len(fresh.stems) < 2 {
		return nil
	}
	topics := 0
	for s := range fresh.stems {
		if !isFigure(s) {
			topics++
		}
	}
	var best *known
	most := sameFrom
	for _, k := range n.items {
		shared := 0
		for s := range fresh.stems {
			if k.stems[s] {
				shared++
			}
		}
		news := false
		for num := range fresh.numbers {
			news = news || !k.numbers[num]
		}
		news = news || namesAnother(k, fresh)
		if topics == 1 && 2*shared <= len(k.stems) {
			continue // one word and a figure in common with a text of much else
		}
		if share := float64(shared) / float64(len(fresh.stems)); !news && share >= most {
			best, most = k, share
		}
	}
	return best
}

// namesAnother reports that a names somebody whom b does not, and b somebody whom a
// does not: what holds of both is two memories.
func namesAnother(a, b *known) bool { return namesBeyond(a, b) && namesBeyond(b, a) }

func namesBeyond(a, b *known) bool {
	s := sentence{words: plainWords(bodyOf(a.content))}
	return slices.ContainsFunc(names(&s), func(name string) bool { return !slices.Contains(b.words, name) })
}

// somebodyElse reports a statement whose subject is a person other than the user,
// by name or by kinship.
func somebodyElse(content string) bool {
	words := plainWords(content)
	if len(words) < 2 {
		return false
	}
	if words[0].lower == "user's" {
		return hasBase(words[1:min(4, len(words))], kin) || hasBase(words[1:min(4, len(words))], roles)
	}
	return isName(words, 0, true) && !strings.HasPrefix(words[0].lower, "user")
}

func newRef(i int) string { return "new:" + strconv.Itoa(i) }

// clockOf returns the first time of day that the text gives, or "".
func clockOf(s string) string {
	at := clockTime.FindStringIndex(s)
	if at == nil {
		return ""
	}
	return strings.ToLower(s[at[0]:at[1]])
}
