package maintenance

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Retention policies.
const (
	Stale = "stale" // importance 1 and 2, after Settings.StaleDays without use
	Tiers = "tiers" // by memory.Tier
)

// Settings are what can be configured of maintenance, per agent.
type Settings struct {
	StaleDays  int    // 0 for never
	VerifyDays int    // 0 for never
	Retention  string // Stale or Tiers
	MaxItems   int    // cap of active items; 0 for none
	PackAfter  int    // days after which a day of the event log is packed; 0 for never
	KeepEvents int    // days after which events are proposed for erasure; 0 for never
}

const day = 24 * time.Hour

// Thresholds of the marks.
const (
	minVerified   = 3  // importance below which nothing is marked
	lowConfidence = .6 // below it an item is marked
	important     = 4  // and above: that it has grown old is news
	mostStale     = 2  // importance above which nothing is stale
	// MostOld is how many memories are marked as old at a time: nobody looks at more.
	MostOld = 1000
)

// timeless are the kinds of what happened once: it does not grow old.
var timeless = map[string]bool{memory.KindEvent: true, memory.KindDecision: true, memory.KindLesson: true}

// Pair is two items whose vectors are close: that is no proof that they say the
// same, but worth a look.
type Pair struct{ A, B string } // handles

// Change is one thing that maintenance does.
type Change struct {
	Action     string   `json:"action" jsonschema:"merge, archive or verify"`
	Handle     string   `json:"handle"`
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Importance int      `json:"importance"`
	Merged     []string `json:"merged,omitempty" jsonschema:"of merge: handles of the memories that say the same; this one takes their place"`
	Reason     string   `json:"reason,omitempty" jsonschema:"of archive: why"`
	Verify     []string `json:"verify,omitempty" jsonschema:"of verify: why a person should look at it; none says that the mark is taken away"`
	steps      []working.Step
}

// entry is what the survey keeps of an item.
type entry struct {
	number              int64
	id, title, kind     string
	version, importance int
	confidence          float64
	trust               int
	evidence            []uint64 // hashes of what it rests on
	active, owned, kept bool
	provisional         bool
	updated             time.Time
	verified            *time.Time
	marks               []string // as they are
	like                working.Likeness
	against             string  // handle that it, in quarantine, would replace
	onParked, onGone    bool    // its evidence
	old                 bool    // to be marked as such
	into                int32   // entry that it is merged into; -1 for none
	archived            string  // why; "" for not
	contrary            []int32 // entries that it contradicts
}

func (e *entry) handle() string { return "MEM-" + strconv.FormatInt(e.number, 10) }

// stays reports whether the entry is active once the plan is carried out.
func (e *entry) stays() bool { return e.active && e.into < 0 && e.archived == "" }

// Survey gathers what a plan needs to know of each item. It holds the content only
// of those that vectors say may be like another one.
type Survey struct {
	set     Settings
	at      time.Time
	ground  working.Ground
	seed    maphash.Seed
	entries []entry
	bands   []membership
	likes   working.Likener
	near    []Pair
	named   map[string]named // the items of near, by handle
	waiting int              // memories that are old and not marked as such, since enough are
}

// named is an item of a Pair.
type named struct {
	at      int32 // its entry; -1 where it has none
	wording working.Wording
}

// membership is one item in one band.
type membership struct {
	band int64
	at   int32
}

// NewSurvey returns an empty survey as of a moment. near are items whose vectors
// are close.
func NewSurvey(set Settings, at time.Time, ground working.Ground, near []Pair) *Survey {
	s := &Survey{set: set, at: at, ground: ground, seed: maphash.MakeSeed(), near: near, named: map[string]named{},
		entries: make([]entry, 0, ground.Items), bands: make([]membership, 0, ground.Items*working.BandCount)}
	for _, p := range near {
		s.named[p.A], s.named[p.B] = named{at: -1}, named{at: -1}
	}
	return s
}

// Add takes an active or quarantined item into the survey. Items come in the order
// of their handles.
func (s *Survey) Add(it memory.Item) error {
	number, err := strconv.ParseInt(strings.TrimPrefix(it.Handle, "MEM-"), 10, 64)
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "survey: %q is no handle of an item", it.Handle)
	}
	like := s.likes.Of(it)
	at := int32(len(s.entries))
	for _, b := range like.Bands() {
		s.bands = append(s.bands, membership{b, at})
	}
	e := entry{number: number, id: it.ID, title: it.Title, kind: it.Kind, version: it.Version, importance: it.Importance, confidence: it.Confidence,
		trust: it.Trust.Rank(), active: it.Status == memory.Active, owned: isOwned(it), kept: s.ground.Kept[it.ID],
		updated: it.UpdatedAt, verified: it.VerifiedAt, marks: it.Verify, like: like.Brief(), against: working.Contradicts(it), provisional: it.Provisional, into: -1}
	for _, ev := range it.Evidence {
		e.evidence = append(e.evidence, maphash.Comparable(s.seed, ev))
		e.onGone = e.onGone || s.ground.Suppressed[ev.EventID]
		e.onParked = e.onParked || s.isParked(ev.Seq)
	}
	s.entries = append(s.entries, e)
	if _, is := s.named[it.Handle]; is {
		s.named[it.Handle] = named{at, working.WordingOf(it)}
	}
	return nil
}

// isOwned reports whether the item stands in a file of a workspace, which is
// where it is merged or taken out.
func isOwned(it memory.Item) bool {
	meta, is := it.Metadata.(map[string]any)
	return is && meta["workspace"] != nil
}

func (s *Survey) isParked(seq int64) bool {
	_, found := slices.BinarySearchFunc(s.ground.Parked, seq, func(p memory.ParkedNote, seq int64) int {
		switch {
		case p.Range.Last < seq:
			return -1
		case p.Range.First > seq:
			return 1
		}
		return 0
	})
	return found
}

// MayBeStale reports whether an item would be archived if it was not used since it
// was changed: whether it matters when items were used.
func (s *Survey) MayBeStale() bool {
	return slices.ContainsFunc(s.entries, func(e entry) bool { return e.active && s.stale(&e, time.Time{}) != "" })
}

// since is how far back a use of an item still counts.
func (s *Survey) since() time.Time {
	if s.set.Retention == Tiers {
		longest, _ := memory.Potential.Lasts()
		return s.at.Add(-longest)
	}
	return s.at.Add(-time.Duration(s.set.StaleDays) * day)
}

// Plan says what is to be done: merges, then archivals, then marks, each in the
// order of handles. used says when items were last recalled, by handle. The same
// survey gives the same plan.
func (s *Survey) Plan(used map[string]time.Time) []Change {
	s.compare()
	changes := s.merges()
	for i := range s.entries {
		if e := &s.entries[i]; e.stays() {
			e.archived = s.stale(e, used[e.handle()])
		}
	}
	s.trim(used)
	s.contradictions()
	s.chooseOld()
	for i := range s.entries {
		if e := &s.entries[i]; e.archived != "" {
			c := e.change(working.ActionArchive)
			c.Reason, c.steps[0].Reason = e.archived, e.archived
			changes = append(changes, c)
		}
	}
	for i := range s.entries {
		e := &s.entries[i]
		if marks := s.marks(e); e.stays() && !slices.Equal(marks, e.marks) {
			c := e.change(working.ActionVerify)
			c.Verify, c.steps[0].Verify = marks, marks
			changes = append(changes, c)
		}
	}
	return changes
}

func (e *entry) change(action string) Change {
	return Change{Action: action, Handle: e.handle(), ID: e.id, Title: e.title, Importance: e.importance,
		steps: []working.Step{{Action: action, Item: working.Version{ID: e.id, Version: e.version}}}}
}

// window is how many items of a band one is compared with: those that are most
// like it stand next to it.
const window = 64

// compare finds what says the same, and what says the contrary. Pairs that share a
// band are compared, so the work grows with the items and not with their pairs.
func (s *Survey) compare() {
	same := map[int32][]int32{}
	link := func(a, b int32) {
		if !slices.Contains(same[a], b) {
			same[a], same[b] = append(same[a], b), append(same[b], a)
		}
	}
	s.eachBand(func(members []membership) {
		slices.SortFunc(members, func(a, b membership) int {
			return cmp.Or(cmp.Compare(s.entries[a.at].like.Sum(), s.entries[b.at].like.Sum()), cmp.Compare(a.at, b.at))
		})
		for i := 1; i < len(members); i++ {
			for j := max(0, i-window); j < i; j++ {
				a, b := members[j].at, members[i].at
				x, y := &s.entries[a], &s.entries[b]
				switch {
				case x.like.Same(y.like):
					link(a, b)
				case x.active && y.active && !slices.Contains(x.contrary, b) && isContrary(x, y):
					x.contrary, y.contrary = append(x.contrary, b), append(y.contrary, a)
				}
			}
		}
	})
	for _, p := range s.near {
		a, b := s.named[p.A], s.named[p.B]
		if a.at >= 0 && b.at >= 0 && a.at != b.at && (a.wording.Covers(b.wording) || b.wording.Covers(a.wording)) {
			link(a.at, b.at)
		}
	}
	s.settle(same)
}

// eachBand hands over the members of every band that has several. Bands are hashes,
// so they are first parted by their lowest bits, which spread them evenly: what is
// left to sort is short.
func (s *Survey) eachBand(visit func([]membership)) {
	parts := 1
	for parts < len(s.bands)/16 {
		parts *= 2
	}
	ends := make([]int32, parts+1)
	for _, m := range s.bands {
		ends[m.band&int64(parts-1)+1]++
	}
	for i := range parts {
		ends[i+1] += ends[i]
	}
	parted, next := make([]membership, len(s.bands)), slices.Clone(ends)
	for _, m := range s.bands {
		part := m.band & int64(parts-1)
		parted[next[part]] = m
		next[part]++
	}
	for i := range parts {
		part := parted[ends[i]:ends[i+1]]
		slices.SortFunc(part, func(a, b membership) int { return cmp.Compare(a.band, b.band) })
		for start := 0; start < len(part); {
			end := start + 1
			for end < len(part) && part[end].band == part[start].band {
				end++
			}
			if end > start+1 {
				visit(part[start:end])
			}
			start = end
		}
	}
}

func isContrary(x, y *entry) bool {
	return x.like.Contrary(y.like) && !(working.Settled(x.kind) || working.Settled(y.kind))
}

// settle lets the best of items that say the same take the place of the others
// that say the same as it.
func (s *Survey) settle(same map[int32][]int32) {
	order := make([]int32, 0, len(same))
	for at := range same {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b int32) int { return s.entries[a].better(&s.entries[b]) })
	for _, at := range order {
		winner := &s.entries[at]
		if winner.into >= 0 || winner.kept {
			continue
		}
		for _, other := range same[at] {
			loser := &s.entries[other]
			if loser.into < 0 && !loser.kept && !loser.owned && winner.better(loser) < 0 && loser.trust <= winner.trust &&
				(!winner.owned || loser.like.Words() <= winner.like.Words()) { // a file's words stay its own
				loser.into = at
			}
		}
	}
}

// better orders the better of two items that say the same first: what is in use,
// is trusted more, stands in a file, says more, matters more, is surer, rests on more, is older.
func (e *entry) better(o *entry) int {
	return cmp.Or(compareBool(o.active, e.active), cmp.Compare(o.trust, e.trust), compareBool(o.owned, e.owned), cmp.Compare(o.like.Words(), e.like.Words()),
		cmp.Compare(o.importance, e.importance), cmp.Compare(o.confidence, e.confidence), cmp.Compare(len(o.evidence), len(e.evidence)), cmp.Compare(e.number, o.number))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// merges returns the merges, one for each item that takes the place of others.
func (s *Survey) merges() []Change {
	losers := map[int32][]int32{}
	for i := range s.entries {
		if into := s.entries[i].into; into >= 0 {
			losers[into] = append(losers[into], int32(i))
		}
	}
	var changes []Change
	for i := range s.entries {
		merged := losers[int32(i)]
		if len(merged) == 0 {
			continue
		}
		changes = append(changes, s.merge(&s.entries[i], merged))
	}
	return changes
}

// merge returns the merge of items into e, which is from then on as the store will
// have it.
func (s *Survey) merge(e *entry, merged []int32) Change {
	c := e.change(working.ActionMerge)
	for _, at := range merged {
		last := &c.steps[len(c.steps)-1]
		if len(last.Merged) == batchItems {
			e.version++
			c.steps = append(c.steps, working.Step{Action: working.ActionMerge, Item: working.Version{ID: e.id, Version: e.version}})
			last = &c.steps[len(c.steps)-1]
		}
		l := &s.entries[at]
		c.Merged = append(c.Merged, l.handle())
		last.Merged = append(last.Merged, working.Version{ID: l.id, Version: l.version})
		e.take(l)
	}
	e.version++
	c.Importance = e.importance
	return c
}

// take does to e what the store does when it merges l into it.
func (e *entry) take(l *entry) {
	if e.trust != l.trust {
		return
	}
	fresh := 0
	for _, ev := range l.evidence {
		if !slices.Contains(e.evidence, ev) {
			e.evidence = append(e.evidence, ev)
			fresh++
		}
	}
	if fresh > 0 || len(l.evidence) == 0 {
		e.confidence = working.Agreed(e.confidence, l.confidence)
	}
	e.importance = max(e.importance, l.importance)
	if l.updated.After(e.updated) {
		e.updated = l.updated
	}
	if l.verified != nil && (e.verified == nil || l.verified.After(*e.verified)) {
		e.verified = l.verified
	}
	e.provisional = e.provisional && l.provisional
	e.onParked, e.onGone = e.onParked || l.onParked, e.onGone || l.onGone
}

// lastUse is when the item was last changed, confirmed or recalled.
func (e *entry) lastUse(used time.Time) time.Time {
	last := e.updated
	if e.verified != nil && e.verified.After(last) {
		last = *e.verified
	}
	if used.After(last) {
		last = used
	}
	return last
}

// stale says why an item that was last recalled then is archived; "" where it is
// not.
func (s *Survey) stale(e *entry, used time.Time) string {
	length, ends := time.Duration(s.set.StaleDays)*day, e.importance <= mostStale && s.set.StaleDays > 0
	if s.set.Retention == Tiers {
		length, ends = memory.TierOfItem(e.importance).Lasts()
	}
	last := e.lastUse(used)
	if !ends || e.owned || !last.Before(s.at.Add(-length)) {
		return ""
	}
	return fmt.Sprintf("importance %d, and not used since %s", e.importance, last.UTC().Format(time.DateOnly))
}

// overCap is the reason of what the cap of active items archives.
const overCap = "over the cap of active items"

// trim archives the items of lowest value above the cap.
func (s *Survey) trim(used map[string]time.Time) {
	var active []*entry
	for i := range s.entries {
		if e := &s.entries[i]; e.stays() {
			active = append(active, e)
		}
	}
	if s.set.MaxItems == 0 || len(active) <= s.set.MaxItems {
		return
	}
	last := make(map[*entry]time.Time, len(active))
	for _, e := range active {
		last[e] = e.lastUse(used[e.handle()])
	}
	slices.SortFunc(active, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.importance, b.importance), cmp.Compare(a.confidence, b.confidence), last[a].Compare(last[b]), cmp.Compare(a.number, b.number))
	})
	for _, e := range active[:len(active)-s.set.MaxItems] {
		e.archived = overCap
	}
}

// contradictions adds to what items contradict each other by their words what the
// evidence gate found: items in quarantine that would replace one.
func (s *Survey) contradictions() {
	for i := range s.entries {
		if s.entries[i].against == "" || s.entries[i].into >= 0 {
			continue
		}
		target, found := slices.BinarySearchFunc(s.entries, s.entries[i].against, func(e entry, handle string) int {
			number, err := strconv.ParseInt(strings.TrimPrefix(handle, "MEM-"), 10, 64)
			if err != nil {
				return -1
			}
			return cmp.Compare(e.number, number)
		})
		if found {
			s.entries[target].contrary = append(s.entries[target].contrary, int32(i))
		}
	}
}

const namedContrary = 3 // handles in one mark

// marks returns why a person should look at an item.
func (s *Survey) marks(e *entry) []string {
	if e.importance < minVerified {
		return nil
	}
	var marks []string
	if e.confidence < lowConfidence {
		marks = append(marks, memory.MarkLowConfidence)
	}
	if handles := s.contradicted(e); len(handles) > 0 {
		marks = append(marks, memory.MarkContradicts+strings.Join(handles[:min(namedContrary, len(handles))], ", "))
	}
	if e.old {
		marks = append(marks, memory.MarkOld)
	}
	if (e.onParked || e.provisional) && e.verified == nil {
		marks = append(marks, memory.MarkParked)
	}
	if e.onGone && e.verified == nil {
		marks = append(marks, memory.MarkGone)
	}
	return marks
}

// isOld reports whether nobody has confirmed a memory for a long time, and it is
// worth asking.
func (s *Survey) isOld(e *entry) bool {
	return s.set.VerifyDays > 0 && e.importance >= minVerified && !timeless[e.kind] && e.lastUse(time.Time{}).Before(s.at.Add(-time.Duration(s.set.VerifyDays)*day))
}

// chooseOld chooses what is marked as old: what is so already, then the most
// important, then the oldest. The rest waits until somebody has looked at some of
// them.
func (s *Survey) chooseOld() {
	var old []*entry
	for i := range s.entries {
		if e := &s.entries[i]; e.stays() && s.isOld(e) {
			old = append(old, e)
		}
	}
	if s.waiting = max(0, len(old)-MostOld); s.waiting > 0 {
		slices.SortFunc(old, func(a, b *entry) int {
			return cmp.Or(compareBool(slices.Contains(b.marks, memory.MarkOld), slices.Contains(a.marks, memory.MarkOld)), cmp.Compare(b.importance, a.importance),
				a.lastUse(time.Time{}).Compare(b.lastUse(time.Time{})), cmp.Compare(a.number, b.number))
		})
	}
	for _, e := range old[:len(old)-s.waiting] {
		e.old = true
	}
}

// contradicted returns the handles of what an item contradicts, those aside that
// were there when a person said that it is right.
func (s *Survey) contradicted(e *entry) []string {
	slices.Sort(e.contrary)
	var handles []string
	for _, at := range slices.Compact(e.contrary) {
		o := &s.entries[at]
		if waits := !o.active && o.into < 0; (o.stays() || waits) && (e.verified == nil || e.verified.Before(o.updated)) {
			handles = append(handles, o.handle())
		}
	}
	return handles
}

// isContradiction reports whether a mark says that the item contradicts another.
func isContradiction(mark string) bool { return strings.HasPrefix(mark, memory.MarkContradicts) }

// fresh returns the marks that were not there before.
func fresh(marks, before []string) []string {
	var out []string
	for _, m := range marks {
		if !slices.Contains(before, m) {
			out = append(out, m)
		}
	}
	return out
}
