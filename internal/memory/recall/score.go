package recall

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// BM25's usual constants: saturation of repeated words, and how much the length
// of a text counts.
const (
	k1 = 1.2
	b  = .75
)

// weight of each part of a passage's score. They were fitted by a listwise
// softmax over five LoCoMo conversations and one LongMemEval haystack, each
// left out in turn, and rounded; see docs/BENCHMARKS.md.
const (
	wWords      = 3    // BM25 of the passage
	wWindow     = 3.75 // share of the question that the passage and its neighbours hold
	wPrefix     = 3.75 // BM25 of first letters
	wSession    = 2.5  // BM25 of the whole session
	wAnswer     = 5.5  // BM25 of a question just before it
	wTurnBefore = 1.25 // BM25 of the passage two before: the same speaker's last turn
	wSpeaker    = 1.25 // the one speaker named in the question says it
	wSpeakerBM  = .5   // … times BM25
	wDay        = 6.25 // its day is the one asked about
	wSaid       = 1.75 // it names the day asked about
	wWhen       = 1.75 // a when-question, and it says when
	wWhere      = 2.75 // a where-question, and it names a place
	wHowMany    = 1.75 // a how-many-question, and it has a number
	wAsks       = -.6  // it is a question itself
	wOpens      = .75  // it opens its session
	wFirst      = .75  // it speaks of I or we
	wMeaning    = .35  // standard deviations by which its vector is nearer to the question than the mean
	wSpread     = .25  // times ln(1+n), taken off a passage behind n of its session
)

// scores are the parts of a candidate's score, 0 where they do not apply.
type scores struct {
	words, window, prefix, session, answer, before float64
	speaker, day, said, kind, form, near           float64
	meaning                                        float64
	total                                          float64
}

// lexical is the part of the score that rests on the question's own words.
func (s scores) lexical() float64 {
	return wWords*s.words + wWindow*s.window + wPrefix*s.prefix
}

// relevance says whether anything is known about the question at all, not what
// is best: its words, asked before or not, and whether who it names is known.
func (s scores) relevance() float64 { return s.lexical() + s.answer + s.speaker }

// ranked is a passage and its score.
type ranked struct {
	n      uint32
	scores scores
}

// idf is the weight of a term that rows of total hold, after Lucene: never
// negative, so that in a history of three turns a word of two of them still
// counts.
func idf(total, rows int) float64 {
	return math.Log(1 + (float64(total-rows)+.5)/(float64(rows)+.5))
}

// highest is the highest BM25 that a query can reach: the sum of idf·(k1+1) over
// its terms.
func highest(postings []archive.Postings, total int) float64 {
	var sum float64
	for _, p := range postings {
		sum += (k1 + 1) * weight(p, total)
	}
	return max(sum, 1e-9)
}

// weight is what a term counts in the sum of a question's: its idf. A term that
// is nowhere counts too, though less than a rare one: a question mostly of such
// terms has few good answers. One that was too common to read does not count.
func weight(p archive.Postings, total int) float64 {
	switch {
	case p.Rows == 0:
		return .27 * math.Log(1+2*float64(total))
	case p.Skipped:
		return 0
	}
	return idf(total, p.Rows)
}

// saturated is BM25's part for a term that stands count times in a text of that
// length, relative to the mean.
func saturated(count, length float64) float64 {
	return count * (k1 + 1) / (count + k1*(1-b+b*length))
}

// scratch is the memory of a scorer, used again for the next question: a history of
// 100,000 passages needs two and a half megabytes. Lists by a passage's n and by session are 0
// between questions.
type scratch struct {
	held     []uint64  // which main terms a passage holds, as bits
	after    []uint64  // … and which the passage behind it
	words    []float32 // BM25 over the main terms, 0 to 1
	prefix   []float32 // BM25 over first letters, likewise
	sessions []float32 // BM25 of sessions by index, the best of them 1
	touched  []bool    // sessions that hold a main term

	counts []uint32 // of a term in each session; 0 between terms
	marks  []uint64
	shares [1 << sharesBits]keptShare // of one question
}

// keptShare is what is known of a set of terms.
type keptShare struct {
	held  uint64
	share float64 // of the question's weight
}

// sharesBits leaves each set of up to so many terms a place of its own.
const sharesBits = 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// sized returns a slice of n elements in the memory of list, if that is enough.
func sized[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n, n+n/8)
	}
	return list[:n]
}

// scorer holds the parts of the scores of one question over all passages.
type scorer struct {
	*scratch
	archive.Columns
	hits     *archive.Hits
	query    text.Query
	idf      []float64 // of each main term
	idfSum   float64
	days     map[text.Date]float64
	named    int                // the one speaker that the question names, as an index; -1 for none
	asked    archive.Flag       // what the question's kind asks for
	only     archive.Flag       // archive.Probe for probes alone; 0 for all else
	near     map[int64]float64  // closeness in meaning, by n; nil where it does not count
	rest     float64            // the most that a passage gets for other things than its words and session
	ownWords float64            // what words counts, in that bound
	itself   [formFlags]float64 // kind and form of the flags
}

// newScorer reads the postings of one question into scores per passage. With
// mainOnly the prefixes and sessions are left out. The caller calls release.
func newScorer(h *archive.Hits, q text.Query, mainOnly bool) *scorer {
	m := scratches.Get().(*scratch)
	passages, sessions := h.Len()+1, len(h.Sessions)
	m.held, m.after = sized(m.held, passages), sized(m.after, passages)
	m.words, m.prefix = sized(m.words, passages), sized(m.prefix, passages)
	m.sessions, m.touched, m.counts = sized(m.sessions, sessions), sized(m.touched, sessions), sized(m.counts, sessions)
	clear(m.shares[:])
	s := &scorer{scratch: m, Columns: h.Columns(), hits: h, query: q, days: map[text.Date]float64{}, named: -1}
	if len(q.Speakers) == 1 {
		s.named = slices.Index(h.Speakers, q.Speakers[0])
	}
	for kind, flag := range map[text.Kind]archive.Flag{text.AsksWhen: archive.HasTimeCue, text.AsksWhere: archive.HasWhereCue, text.AsksHowMany: archive.HasNumber} {
		if q.Asks(kind) {
			s.asked |= flag
		}
	}
	for flags := range formFlags {
		s.itself[flags] = s.kind(flags) + form(flags)
	}
	var total uint64
	for _, w := range h.SessionWords {
		total += uint64(w)
	}
	mean, sessionMean := max(1, float64(total)/float64(max(1, h.Len()))), max(1, float64(total)/float64(max(1, sessions)))
	s.idf = make([]float64, len(h.Main))
	for i, p := range h.Main {
		s.idf[i] = weight(p, h.Len())
		s.idfSum += s.idf[i]
	}
	wait := func() {}
	if !mainOnly {
		wait = beside(func() { s.addPrefixes(mean) })
	}
	s.addWords(mean, sessionMean)
	wait()
	if mainOnly {
		clear(s.sessions)
	}
	s.rest, s.ownWords = s.mostRest(), wWords
	if s.named >= 0 {
		s.ownWords += wSpeakerBM
	}
	return s
}

// formFlags is above all flags that form and kind look at.
const formFlags = archive.Opens << 1

// release gives the scorer's memory back. The scorer must not be used any more.
func (s *scorer) release() {
	read := 0
	for _, p := range slices.Concat(s.hits.Main, s.hits.Prefix) {
		read += p.Rows
	}
	if read > s.hits.Len()/4 {
		clear(s.held)
		clear(s.after)
		clear(s.words)
		clear(s.prefix)
	} else {
		for _, p := range s.hits.Main {
			p.Each(func(n uint32, _ int) { s.held[n], s.words[n], s.after[s.Before[n-1]] = 0, 0, 0 })
		}
		for _, p := range s.hits.Prefix {
			p.Each(func(n uint32, _ int) { s.prefix[n] = 0 })
		}
	}
	clear(s.sessions)
	clear(s.touched)
	scratches.Put(s.scratch)
	*s = scorer{}
}

// tabled is up to which number of words in a passage, and from how many passages that
// hold a term on, its share of their scores is looked up instead of being worked out.
const tabled = 128

// saturations tells what a term adds to the scores of passages, by their words.
type saturations struct {
	share, mean float64
	once        []float32 // for a term that stands there once; nil where that is not known
}

func (t *saturations) of(count uint32, words uint16) float32 {
	if count == 1 && int(words) < len(t.once) {
		return t.once[words]
	}
	return float32(t.share * saturated(float64(count), float64(words)/t.mean))
}

// saturationsOf makes the table for a term with such a share of the question's weight.
func saturationsOf(p archive.Postings, share, mean float64, table *[tabled]float32) saturations {
	t := saturations{share: share, mean: mean}
	if p.Rows >= tabled {
		for words := range table {
			table[words] = t.of(1, uint16(words))
		}
		t.once = table[:]
	}
	return t
}

// addWords sums BM25 of the main terms by passage, marks who holds which, and scores
// each session as one text.
func (s *scorer) addWords(mean, sessionMean float64) {
	most := highest(s.hits.Main, s.hits.Len())
	var table [tabled]float32
	var some [256]postings.Posting
	var sessions []uint32 // those that hold a term
	for i, p := range s.hits.Main {
		adds := saturationsOf(p, s.idf[i]/most, mean, &table)
		held, after, words, bit := s.held, s.after, s.words, uint64(1)<<i
		var in, count uint32 // the session of the passages just before, and how often the term stands in them
		sessions = sessions[:0]
		r := p.Reader()
		for list := r.Next(some[:]); len(list) > 0; list = r.Next(some[:]) {
			for _, x := range list {
				at := x.N - 1
				held[x.N] |= bit
				after[s.Before[at]] |= bit // place 0 is of those that have none before them
				words[x.N] += adds.of(x.Count, s.Words[at])
				if session := s.Session[at]; session != in {
					sessions = s.count(in, count, sessions)
					in, count = session, 0
				}
				count += x.Count
			}
		}
		sessions = s.count(in, count, sessions)
		weight := idf(len(s.sessions), len(sessions))
		for _, session := range sessions {
			s.sessions[session] += float32(weight * saturated(float64(s.counts[session]), float64(s.hits.SessionWords[session])/sessionMean))
			s.touched[session], s.counts[session] = true, 0
		}
	}
	s.after[0] = 0
	var best float32
	for _, score := range s.sessions {
		best = max(best, score)
	}
	if best > 0 {
		for i := range s.sessions {
			s.sessions[i] /= best
		}
	}
}

// count notes that a term stands so often in a session, which it adds to the list of
// those that hold it.
func (s *scorer) count(session, times uint32, holders []uint32) []uint32 {
	if times == 0 {
		return holders
	}
	if s.counts[session] == 0 {
		holders = append(holders, session)
	}
	s.counts[session] += times
	return holders
}

// addPrefixes sums BM25 of first letters by passage.
func (s *scorer) addPrefixes(mean float64) {
	most := highest(s.hits.Prefix, s.hits.Len())
	var table [tabled]float32
	var some [256]postings.Posting
	for _, p := range s.hits.Prefix {
		adds := saturationsOf(p, weight(p, s.hits.Len())/most, mean, &table)
		prefix, r := s.prefix, p.Reader()
		for list := r.Next(some[:]); len(list) > 0; list = r.Next(some[:]) {
			for _, x := range list {
				prefix[x.N] += adds.of(x.Count, s.Words[x.N-1])
			}
		}
	}
}

// goodSession is the session score, of the best one's, from which all passages
// of a session are candidates.
const goodSession = .7

// rank returns the best passages, at most limit of them, best first: those that
// hold a term or lie beside one that does, those of the days asked about, and
// those of the best sessions. Of equal ones the newer is first. Suppressed
// passages, and those that hidden reports of their session, are left out. Among
// the best, other sessions get a turn: many questions have answers in several.
//
// With near the best by words are ranked again by words and meaning, together with
// those that are nearest in meaning, whatever their words.
func (s *scorer) rank(limit int, hidden func(session uint32) bool, near *closeness) ([]ranked, error) {
	wide := limit
	if near != nil {
		wide = max(limit, reranked)
	}
	best := s.best(wide, hidden)
	if near != nil {
		var err error
		if best, err = s.byMeaning(best, near); err != nil {
			return nil, err
		}
	}
	best = s.spread(firstOf(best, limit))
	out := make([]ranked, len(best))
	for i, p := range best {
		out[i] = ranked{p.n, s.score(p.n)}
	}
	return out, nil
}

// pick is a passage and what it is sorted by.
type pick struct {
	n     uint32
	score float64
}

// picks is a heap of the best so far, the worst of them on top.
type picks []pick

func (p picks) Len() int           { return len(p) }
func (p picks) Less(i, j int) bool { return comparePicks(p[i], p[j]) > 0 }
func (p picks) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *picks) Push(x any)        { *p = append(*p, x.(pick)) }
func (p *picks) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// comparePicks orders the best first, and the newest among equals.
func comparePicks(a, b pick) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n))
}

// finder collects the best passages.
type finder struct {
	*scorer
	hidden func(session uint32) bool
	wide   int // so many
	found  picks
	least  float64 // less does not count any more
}

// best returns the best candidates, at most wide of them, best first.
//
// Those whose words, or whose neighbours', are those of the question are looked at
// first. Behind them others need only be looked at where a bound of their score,
// which takes less time than the score, is high enough.
func (s *scorer) best(wide int, hidden func(session uint32) bool) []pick {
	if wide < 1 {
		return nil
	}
	f := finder{scorer: s, hidden: hidden, wide: wide, least: math.Inf(-1)}
	if s.mark() {
		f.lookAt(s.marks)
		f.lookAtPrefixes()
	} else {
		f.lookAt(nil)
	}
	return firstOf(f.found, wide)
}

// mark marks the passages of the sessions that hold a main term: among them are all
// candidates but those that have first letters alone. It reports false where looking
// at every passage costs no more.
func (s *scorer) mark() bool {
	if len(s.query.Dates) > 0 {
		return false
	}
	within := 0
	for session, is := range s.touched {
		if span := s.hits.Spans[session]; is {
			within += int(span.Last - span.First)
		}
	}
	if within > s.hits.Len()/2 {
		return false
	}
	s.marks = sized(s.marks, s.hits.Len()>>6+1)
	marks := s.marks
	clear(marks)
	for session, is := range s.touched {
		if !is {
			continue
		}
		for n := s.hits.Spans[session].First; n <= s.hits.Spans[session].Last; n++ {
			marks[n>>6] |= 1 << (n & 63)
		}
	}
	return true
}

// lookAtPrefixes looks at the passages that have first letters of the question's words
// and are not marked. Their sessions count for nothing.
func (f *finder) lookAtPrefixes() {
	marks := f.marks
	for _, p := range f.hits.Prefix {
		p.Each(func(n uint32, _ int) {
			if f.prefix[n] == 0 || wPrefix*float64(f.prefix[n])+f.itself[f.Flags[n-1]&(formFlags-1)]+f.rest < f.least || marks[n>>6]&(1<<(n&63)) != 0 {
				return
			}
			marks[n>>6] |= 1 << (n & 63)
			f.look(n)
		})
	}
}

// lookAt looks at the passages that are marked, or at all where marks is nil. Most of
// them are ruled out by a bound of their scores, which takes the day and the speaker
// asked about for granted; the slices are kept at hand for them.
func (f *finder) lookAt(marks []uint64) {
	inSession, before, flags, sessions := f.Session, f.Before, f.Flags, f.sessions
	all := len(inSession) + 1
	prefix, words, held, after := f.prefix[:all], f.words[:all], f.held[:all], f.after[:all]
	before, flags = before[:len(inSession)], flags[:len(inSession)]
	rest, own, dated := f.rest, f.ownWords, len(f.query.Dates) > 0
	for at, session := range inSession {
		n := at + 1
		if marks != nil && marks[n>>6]&(1<<(n&63)) == 0 {
			continue
		}
		ofSession := sessions[session]
		bound := wPrefix*float64(prefix[n]) + wSession*float64(ofSession) + f.itself[flags[at]&(formFlags-1)] + rest
		around := held[n] | after[n]
		if first := before[at]; first > 0 {
			second := before[first-1]
			around |= held[first] | held[second]
			bound += wTurnBefore * float64(words[second])
			if flags[first-1]&archive.Asks != 0 {
				bound += wAnswer * float64(words[first])
			}
		}
		if around != 0 {
			bound += own*float64(words[n]) + wWindow*f.share(around)
		} else if prefix[n] == 0 && ofSession < goodSession && !(dated && f.day(uint32(n)) > 0) {
			continue // no candidate
		}
		if bound >= f.least {
			f.look(uint32(n))
		}
	}
}

// look takes passage n, a candidate, in if it is one of the best so far.
func (f *finder) look(n uint32) {
	if f.Flags[n-1]&(archive.Suppressed|archive.Probe) != f.only || f.hidden != nil && f.hidden(f.Session[n-1]) {
		return
	}
	p := pick{n, f.total(n)}
	switch {
	case p.score < f.least:
	case len(f.found) < f.wide:
		heap.Push(&f.found, p)
	case comparePicks(p, f.found[0]) < 0:
		f.found[0] = p
		heap.Fix(&f.found, 0)
	}
	if len(f.found) == f.wide {
		f.least = f.found[0].score
	}
}

// around returns which main terms stand in passage n, the one behind it and the two
// before.
func (s *scorer) around(n uint32) uint64 {
	held := s.held[n] | s.after[n]
	if before := s.Before[n-1]; before > 0 {
		held |= s.held[before] | s.held[s.Before[before-1]]
	}
	return held
}

// mostRest is the most that a passage can get for the day and the speaker asked about,
// and a little more than rounding can add.
func (s *scorer) mostRest() float64 {
	most := 1e-5
	if s.named >= 0 {
		most += wSpeaker // the rest of it comes of words
	}
	if len(s.query.Dates) > 0 {
		most += wDay + wSaid
	}
	return most
}

// spread reorders passages so that each counts less, the more of its session
// stand before it.
func (s *scorer) spread(list []pick) []pick {
	before := map[uint32]float64{}
	for i := range list {
		session := s.hits.Session(list[i].n)
		list[i].score -= wSpread * math.Log(1+before[session])
		before[session]++
	}
	return firstOf(list, len(list))
}

// firstOf sorts list, best first and newest first among equals, and cuts it.
func firstOf(list []pick, limit int) []pick {
	slices.SortFunc(list, comparePicks)
	return list[:min(limit, len(list))]
}

// day says how well the day of passage n fits the dates asked about.
func (s *scorer) day(n uint32) float64 {
	d := s.hits.Passage(n).Day
	fit, known := s.days[d]
	if !known {
		fit = s.fit(d)
		s.days[d] = fit
	}
	return fit
}

// fit returns how well a date fits the best of the dates asked about.
func (s *scorer) fit(d text.Date) float64 {
	var fit float64
	for _, asked := range s.query.Dates {
		fit = max(fit, asked.Match(d))
	}
	return fit
}

// score returns what speaks for passage n.
func (s *scorer) score(n uint32) scores {
	at := n - 1
	before, flags := s.Before[at], s.Flags[at]
	out := scores{words: float64(s.words[n]), prefix: float64(s.prefix[n]), session: float64(s.sessions[s.Session[at]]), total: s.total(n)}
	held := s.around(n)
	if before > 0 {
		second := s.Before[before-1]
		out.before = float64(s.words[second])
		if s.Flags[before-1]&archive.Asks != 0 {
			out.answer = float64(s.words[before])
		}
	}
	out.window = s.share(held)
	if s.isNamed(n) {
		out.speaker = wSpeaker + wSpeakerBM*out.words
	}
	if len(s.query.Dates) > 0 {
		out.day, out.said = s.day(n), s.said(n)
	}
	out.kind, out.form = s.kind(flags), form(flags)
	if s.near != nil {
		out.meaning = s.near[int64(n)]
	}
	return out
}

// total returns the total of score(n), in a fraction of its time.
func (s *scorer) total(n uint32) float64 {
	at := n - 1
	before, flags, words := s.Before[at], s.Flags[at]&(formFlags-1), float64(s.words[n])
	held := s.around(n)
	var answer, turnBefore, speaker, day, said float64
	if before > 0 {
		second := s.Before[before-1]
		turnBefore = float64(s.words[second])
		if s.Flags[before-1]&archive.Asks != 0 {
			answer = float64(s.words[before])
		}
	}
	if s.isNamed(n) {
		speaker = wSpeaker + wSpeakerBM*words
	}
	if len(s.query.Dates) > 0 {
		day, said = s.day(n), s.said(n)
	}
	sum := wWords*words + wWindow*s.share(held) + wPrefix*float64(s.prefix[n]) + wSession*float64(s.sessions[s.Session[at]]) + wAnswer*answer + wTurnBefore*turnBefore + speaker +
		wDay*day + wSaid*said + s.itself[flags]
	if s.near != nil {
		sum += wMeaning * s.near[int64(n)]
	}
	return sum
}

// said says how well the days that passage n names fit the dates asked about.
func (s *scorer) said(n uint32) float64 {
	var best float64
	for _, said := range s.hits.Passage(n).Said {
		if said != (text.Date{}) {
			best = max(best, s.fit(said))
		}
	}
	return best
}

// share returns how much of the question's weight the terms in held carry.
func (s *scorer) share(held uint64) float64 {
	kept := &s.shares[(held^held>>sharesBits)&(1<<sharesBits-1)]
	if kept.held != held {
		*kept = keptShare{held, s.shareOf(held)}
	}
	return kept.share
}

func (s *scorer) shareOf(held uint64) float64 {
	if s.idfSum == 0 {
		return 0
	}
	var sum float64
	for ; held != 0; held &= held - 1 {
		sum += s.idf[bits.TrailingZeros64(held)]
	}
	return sum / s.idfSum
}

// isNamed reports whether the one speaker that the question names says passage n.
func (s *scorer) isNamed(n uint32) bool {
	return s.named >= 0 && s.Flags[n-1]&archive.Aside == 0 && int(s.Speaker[n-1]) == s.named
}

// kind scores whether a passage holds what the question's kind asks for.
func (s *scorer) kind(flags archive.Flag) float64 {
	var sum float64
	if flags &= s.asked; flags == 0 {
		return 0
	}
	if flags&archive.HasTimeCue != 0 {
		sum += wWhen
	}
	if flags&archive.HasWhereCue != 0 {
		sum += wWhere
	}
	if flags&archive.HasNumber != 0 {
		sum += wHowMany
	}
	return sum
}

// form scores what a passage is, whatever the question.
func form(flags archive.Flag) float64 {
	var sum float64
	if flags&archive.Asks != 0 {
		sum += wAsks
	}
	if flags&archive.Opens != 0 {
		sum += wOpens
	}
	if flags&archive.FirstPerson != 0 {
		sum += wFirst
	}
	return sum
}
