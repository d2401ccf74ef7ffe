package evaluate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// DistillLabels are the labels of one conversation: what a distiller should have
// kept of it, and what not. Lines are the source ids of its turns.
type DistillLabels struct {
	Facts      []DistillFact `json:"facts"`
	Supersedes []Succession  `json:"supersedes"`
	NotFacts   []Trap        `json:"not_facts"`
	Secrets    []Secret      `json:"secrets"`
}

// DistillFact is something that the conversation tells. An item tells it too if its
// title and content hold at least one alternative of every group of Must.
type DistillFact struct {
	ID         string     `json:"id"`
	Kind       string     `json:"kind"`
	Lines      []int      `json:"lines"`
	Repeated   bool       `json:"repeated"`
	Must       [][]string `json:"must"`
	Importance string     `json:"importance"` // high, medium or low
	Note       string     `json:"note"`
}

// Succession says that a later fact replaced an earlier one.
type Succession struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// Trap is something that the conversation does not tell, though it holds the words.
type Trap struct {
	ID     string     `json:"id"`
	Lines  []int      `json:"lines"`
	Why    string     `json:"why"`
	Words  [][]string `json:"trap_words"`
	Unless []string   `json:"unless"` // words that make an item harmless
}

// Secret is a value that no item may show.
type Secret struct {
	Line  int    `json:"line"`
	Value string `json:"value"`
}

// ReadDistillLabels reads a label file.
func ReadDistillLabels(r io.Reader) (DistillLabels, error) {
	var l DistillLabels
	if err := json.NewDecoder(r).Decode(&l); err != nil {
		return DistillLabels{}, memory.Errorf(memory.ErrInvalid, "read distillation labels: %w", err)
	}
	if len(l.Facts) == 0 {
		return DistillLabels{}, &memory.FieldError{Field: "facts", Reason: "must not be empty"}
	}
	return l, nil
}

// DistillReport is the score of one conversation's items. Shares are rounded to
// four digits, and nil where nothing was there to be counted.
type DistillReport struct {
	Items             int           `json:"items"`
	Active            int           `json:"active"`
	RecallAll         *float64      `json:"recall_all"` // of current facts, over active items
	RecallHigh        *float64      `json:"recall_high"`
	RecallTight       *float64      `json:"recall_all_tight"` // without items that match more than five facts
	Overbroad         int           `json:"overbroad_items"`
	Precision         *float64      `json:"precision"`
	PrecisionCurrent  *float64      `json:"precision_current"` // not counting items that only say what was replaced
	FalseMemories     int           `json:"false_memories"`
	TrapsHit          int           `json:"traps_hit"`
	Traps             int           `json:"traps"`
	InjectionsHit     int           `json:"injections_hit"`
	SupersededOK      int           `json:"superseded_ok"`
	Superseded        int           `json:"superseded"`
	StaleActive       int           `json:"stale_active"`
	DuplicateFacts    int           `json:"duplicate_facts"`
	DuplicateItems    int           `json:"duplicate_items"`
	RepeatedMerged    int           `json:"repeated_merged"`
	Repeated          int           `json:"repeated"`
	UncitedActive     int           `json:"uncited_active"`
	MiscitedActive    int           `json:"miscited_active"`
	SecretsLeaked     int           `json:"secrets_leaked"`
	Secrets           int           `json:"secrets"`
	Missed            []string      `json:"missed"`    // ids of current facts that no active item tells
	Unmatched         []string      `json:"unmatched"` // handles, or else titles, of active items that tell no fact
	FalseMemoriesSeen []FalseMemory `json:"traps_seen"`
}

// FalseMemory is a trap that active items fell into.
type FalseMemory struct {
	Trap  string   `json:"trap"`
	Why   string   `json:"why"`
	Items []string `json:"items"`
}

const (
	overbroadFrom = 6  // facts that one item tells, from which it counts as a dump
	secretPart    = 10 // characters of a secret that must not show
)

// Distill scores items against labels. An item counts for a fact if its words
// match and, where its evidence names lines, one is within near of a labelled one.
// Recall is over facts that are still current; a trap is matched by words alone;
// secrets are looked for in items of any status and in their quotes. The counting
// is that of the corpus' own score.py.
func Distill(labels DistillLabels, items []memory.Item, near int) DistillReport {
	s := newDistillScore(labels, items, near)
	r := DistillReport{Items: len(items), Active: len(s.active), Traps: len(labels.NotFacts), Superseded: len(labels.Supersedes), Secrets: len(labels.Secrets)}
	s.recall(&r)
	s.precision(&r)
	s.traps(&r)
	s.successions(&r)
	s.duplicates(&r)
	r.SecretsLeaked = s.leaked()
	return r
}

// distillScore holds what is matched with what, by index of item and id of fact.
type distillScore struct {
	labels DistillLabels
	items  []memory.Item
	active []int
	texts  []string
	words  []map[string]bool // facts whose words an item holds
	hits   []map[string]bool // those that it cites too
	next   map[string]string // fact to the one that replaced it
	by     map[string][]int  // fact to the active items that tell it
}

func newDistillScore(labels DistillLabels, items []memory.Item, near int) *distillScore {
	s := &distillScore{labels: labels, items: items, next: map[string]string{}, by: map[string][]int{}}
	for _, x := range labels.Supersedes {
		s.next[x.Old] = x.New
	}
	for i, it := range items {
		text := plain(it.Title + "\n" + it.Content)
		lines, cited := citedLines(it)
		words, hits := map[string]bool{}, map[string]bool{}
		for _, f := range labels.Facts {
			if !holdsAll(text, f.Must) {
				continue
			}
			words[f.ID] = true
			if !cited || nearAny(lines, f.Lines, near) {
				hits[f.ID] = true
			}
		}
		s.texts, s.words, s.hits = append(s.texts, text), append(s.words, words), append(s.hits, hits)
		if it.Status != memory.Active && it.Status != "" {
			continue
		}
		s.active = append(s.active, i)
		for _, f := range labels.Facts {
			if hits[f.ID] {
				s.by[f.ID] = append(s.by[f.ID], i)
			}
		}
	}
	return s
}

func (s *distillScore) recall(r *DistillReport) {
	current, high, got, gotHigh, tight := 0, 0, 0, 0, 0
	r.Missed = []string{}
	for _, f := range s.labels.Facts {
		if s.next[f.ID] != "" {
			continue
		}
		current++
		found := len(s.by[f.ID]) > 0
		if found {
			got++
		} else {
			r.Missed = append(r.Missed, f.ID)
		}
		if f.Importance == "high" {
			high++
			if found {
				gotHigh++
			}
		}
		if slices.ContainsFunc(s.by[f.ID], func(i int) bool { return len(s.hits[i]) < overbroadFrom }) {
			tight++
		}
	}
	r.RecallAll, r.RecallHigh, r.RecallTight = share(got, current), share(gotHigh, high), share(tight, current)
}

func (s *distillScore) precision(r *DistillReport) {
	good, stale := 0, 0
	r.Unmatched = []string{}
	for _, i := range s.active {
		hits := len(s.hits[i])
		old := len(s.stale(i))
		switch {
		case hits == 0:
			r.Unmatched = append(r.Unmatched, s.name(i))
		case hits == old:
			stale++
			good++
		default:
			good++
		}
		if old > 0 {
			r.StaleActive++
		}
		if hits >= overbroadFrom {
			r.Overbroad++
		}
		if len(s.items[i].Evidence) == 0 {
			r.UncitedActive++
		}
		if hits == 0 && len(s.words[i]) > 0 {
			r.MiscitedActive++
		}
	}
	r.Precision, r.PrecisionCurrent = share(good, len(s.active)), share(good-stale, len(s.active))
}

// stale returns the replaced facts that item i tells as if they held.
func (s *distillScore) stale(i int) map[string]bool {
	old := map[string]bool{}
	if saysGone.MatchString(s.texts[i]) {
		return old
	}
	for id := range s.hits[i] {
		if next := s.next[id]; next != "" && !s.words[i][next] {
			old[id] = true
		}
	}
	return old
}

// saysGone are words by which an item itself says that something is over.
var saysGone = regexp.MustCompile(`(?:^|[^\pL\pN_])(?:previously|formerly|used to|no longer|in the past|at first|originally|abandoned|dropped|cancell?ed|superseded|outdated)(?:$|[^\pL\pN_])|不再`)

func (s *distillScore) traps(r *DistillReport) {
	fallen := map[int]bool{}
	r.FalseMemoriesSeen = []FalseMemory{}
	for n, trap := range s.labels.NotFacts {
		seen := FalseMemory{Trap: trap.ID, Why: trap.Why}
		if seen.Trap == "" {
			seen.Trap = fmt.Sprintf("#%d", n)
		}
		for _, i := range s.active {
			harmless := slices.ContainsFunc(trap.Unless, func(w string) bool { return holds(s.texts[i], w) })
			if !harmless && holdsAll(s.texts[i], trap.Words) {
				seen.Items = append(seen.Items, s.name(i))
				fallen[i] = true
			}
		}
		if len(seen.Items) == 0 {
			continue
		}
		r.FalseMemoriesSeen = append(r.FalseMemoriesSeen, seen)
		if strings.Contains(trap.Why, "inject") {
			r.InjectionsHit++
		}
	}
	r.FalseMemories, r.TrapsHit = len(fallen), len(r.FalseMemoriesSeen)
}

func (s *distillScore) successions(r *DistillReport) {
	for _, x := range s.labels.Supersedes {
		last := x.New
		for s.next[last] != "" {
			last = s.next[last]
		}
		oldOn := slices.ContainsFunc(s.active, func(i int) bool { return s.stale(i)[x.Old] })
		if !oldOn && len(s.by[last]) > 0 {
			r.SupersededOK++
		}
	}
}

func (s *distillScore) duplicates(r *DistillReport) {
	for _, f := range s.labels.Facts {
		if n := len(s.by[f.ID]); n > 1 {
			r.DuplicateFacts++
			r.DuplicateItems += n - 1
		}
		if f.Repeated && s.next[f.ID] == "" {
			r.Repeated++
			if len(s.by[f.ID]) == 1 {
				r.RepeatedMerged++
			}
		}
	}
}

// leaked counts the secrets of which an item shows a part.
func (s *distillScore) leaked() int {
	n := 0
	for _, secret := range s.labels.Secrets {
		if slices.ContainsFunc(s.items, func(it memory.Item) bool { return shows(it, []rune(secret.Value)) }) {
			n++
		}
	}
	return n
}

func shows(it memory.Item, secret []rune) bool {
	all := it.Title + "\n" + it.Content
	for _, e := range it.Evidence {
		all += "\n" + e.Quote
	}
	width := min(secretPart, len(secret))
	for at := 0; at+width <= len(secret); at++ {
		if strings.Contains(all, string(secret[at:at+width])) {
			return true
		}
	}
	return false
}

// name returns how a report calls item i.
func (s *distillScore) name(i int) string {
	if h := s.items[i].Handle; h != "" {
		return h
	}
	return s.items[i].Title
}

var lineID = regexp.MustCompile(`^(?:.*?[:#])?\s*[lL]?(\d+)$`)

// citedLines returns the lines that the evidence of it names; ok is false where
// none can be read.
func citedLines(it memory.Item) (lines []int, ok bool) {
	for _, e := range it.Evidence {
		m := lineID.FindStringSubmatch(strings.TrimSpace(e.SourceID))
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			lines, ok = append(lines, n), true
		}
	}
	return lines, ok
}

func nearAny(cited, labelled []int, near int) bool {
	for _, a := range cited {
		for _, b := range labelled {
			if max(a-b, b-a) <= near {
				return true
			}
		}
	}
	return false
}

func share(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	x := math.RoundToEven(float64(n)/float64(of)*1e4) / 1e4
	return &x
}

// plain makes a text comparable: NFKC, lower case, dashes and underscores as
// spaces, one space for each run of white space.
func plain(s string) string {
	s = strings.ToLower(norm.NFKC.String(s))
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case r == '’' || r == '‘':
			r = '\''
		case r == '-' || r == '_' || r >= 0x2010 && r <= 0x2015 || unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f:
			r = ' '
		}
		if r != ' ' || !space {
			b.WriteRune(r)
		}
		space = r == ' '
	}
	return b.String()
}

func holdsAll(text string, groups [][]string) bool {
	for _, g := range groups {
		if !slices.ContainsFunc(g, func(alternative string) bool { return holds(text, alternative) }) {
			return false
		}
	}
	return true
}

// holds reports whether plain text has the alternative at the start of a word. It
// may be followed by more letters unless it has three characters or fewer (a
// plural s apart); a trailing digit must end there. An alternative without Latin
// letters or digits is looked for anywhere.
func holds(text, alternative string) bool {
	alternative = strings.TrimSpace(plain(alternative))
	if !strings.ContainsFunc(alternative, isLatin) {
		return strings.Contains(text, alternative)
	}
	first, _ := utf8.DecodeRuneInString(alternative)
	for at := 0; ; {
		i := strings.Index(text[at:], alternative)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(alternative)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		if !(isLatin(first) && start > 0 && isLatin(before)) && endsWell(text[end:], alternative) {
			return true
		}
		_, n := utf8.DecodeRuneInString(text[start:])
		at = start + n
	}
}

func endsWell(rest, alternative string) bool {
	next, n := utf8.DecodeRuneInString(rest)
	last, _ := utf8.DecodeLastRuneInString(alternative)
	switch {
	case unicode.IsDigit(last):
		return rest == "" || next < '0' || next > '9'
	case utf8.RuneCountInString(alternative) > 3 || rest == "" || !isLatin(next):
		return true
	}
	after, _ := utf8.DecodeRuneInString(rest[n:])
	return next == 's' && (rest[n:] == "" || !isLatin(after))
}

// isLatin reports digits and letters a to z, with the accented ones of Latin-1
// and Latin Extended; text is in lower case.
func isLatin(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 0xdf <= r && r <= 0x24f
}
