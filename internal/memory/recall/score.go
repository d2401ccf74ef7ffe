package recall

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory/archive"
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
	case len(p.Docs) == 0:
		return 0
	}
	return idf(total, p.Rows)
}

// saturated is BM25's part for a term that stands count times in a text of that
// length, relative to the mean.
func saturated(count, length float64) float64 {
	return count * (k1 + 1) / (count + k1*(1-b+b*length))
}

// scorer holds the parts of the scores of one question over all passages. Slices
// are indexed by a passage's n.
type scorer struct {
	hits     *archive.Hits
	query    text.Query
	words    []float32 // BM25 over main terms, 0 to 1
	prefix   []float32 // BM25 over first letters
	terms    []uint64  // which main terms the passage holds, as bits
	after    []uint64  // … and which the passages behind it
	idf      []float64 // of each main term
	idfSum   float64
	sessions []float32 // BM25 of sessions by index, the best of them 1
	days     map[text.Date]float64
	only     archive.Flag      // archive.Probe for probes alone; 0 for all else
	near     map[int64]float64 // closeness in meaning, by n; nil where it does not count
}

// newScorer reads the postings of one question into scores per passage. With
// mainOnly the prefixes and sessions are left out.
func newScorer(h *archive.Hits, q text.Query, mainOnly bool) *scorer {
	n := h.Len() + 1
	s := &scorer{hits: h, query: q, words: make([]float32, n), prefix: make([]float32, n), terms: make([]uint64, n), after: make([]uint64, n),
		sessions: make([]float32, len(h.Sessions)), days: map[text.Date]float64{}}
	var total uint64
	for _, w := range h.SessionWords {
		total += uint64(w)
	}
	mean := max(1, float64(total)/float64(max(1, h.Len())))
	s.idf = make([]float64, len(h.Main))
	for i, p := range h.Main {
		s.idf[i] = weight(p, h.Len())
		s.idfSum += s.idf[i]
	}
	s.add(h.Main, s.words, mean, s.terms)
	for n, held := range s.terms {
		if held == 0 {
			continue
		}
		if before := h.Before(uint32(n)); before > 0 {
			s.after[before] |= held
		}
	}
	if !mainOnly {
		s.add(h.Prefix, s.prefix, mean, nil)
		s.addSessions(float64(total) / float64(max(1, len(h.Sessions))))
	}
	return s
}

// add sums BM25 of the postings into by passage, and marks in terms who holds which.
func (s *scorer) add(postings []archive.Postings, into []float32, mean float64, terms []uint64) {
	most := highest(postings, s.hits.Len())
	for i, p := range postings {
		share := weight(p, s.hits.Len()) / most
		eachDoc(p.Docs, func(n uint32, count int) {
			into[n] += float32(share * saturated(float64(count), float64(s.hits.Words(n))/mean))
			if terms != nil {
				terms[n] |= 1 << i
			}
		})
	}
}

// eachDoc calls yield with each passage of a posting list and how often it stands there.
func eachDoc(docs []uint32, yield func(n uint32, count int)) {
	for i := 0; i < len(docs); {
		j := i
		for j < len(docs) && docs[j] == docs[i] {
			j++
		}
		yield(docs[i], j-i)
		i = j
	}
}

// addSessions scores each session as one text.
func (s *scorer) addSessions(mean float64) {
	counts := make([]uint32, len(s.sessions))
	var touched []uint32
	for _, p := range s.hits.Main {
		touched = touched[:0]
		for _, n := range p.Docs {
			session := s.hits.Session(n)
			if counts[session] == 0 {
				touched = append(touched, session)
			}
			counts[session]++
		}
		weight := idf(len(s.sessions), len(touched))
		for _, session := range touched {
			s.sessions[session] += float32(weight * saturated(float64(counts[session]), float64(s.hits.SessionWords[session])/max(1, mean)))
			counts[session] = 0
		}
	}
	if len(s.sessions) == 0 {
		return
	}
	if best := slices.Max(s.sessions); best > 0 {
		for i := range s.sessions {
			s.sessions[i] /= best
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
	var best []pick
	least := math.Inf(-1) // so many score more, or are newer
	for n := uint32(1); int(n) <= s.hits.Len(); n++ {
		if !s.isCandidate(n) || s.hits.Flags(n)&(archive.Suppressed|archive.Probe) != s.only || hidden(s.hits.Session(n)) {
			continue
		}
		total := s.score(n).total
		if total < least {
			continue
		}
		best = append(best, pick{n, total})
		if len(best)/4 >= wide {
			best = firstOf(best, wide)
			least = best[wide-1].score
		}
	}
	if near != nil {
		var err error
		if best, err = s.byMeaning(firstOf(best, wide), near); err != nil {
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
	slices.SortFunc(list, func(a, b pick) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n))
	})
	return list[:min(limit, len(list))]
}

func (s *scorer) isCandidate(n uint32) bool {
	if s.terms[n]|s.after[n] != 0 || s.prefix[n] > 0 || s.sessions[s.hits.Session(n)] >= goodSession {
		return true
	}
	before := s.hits.Before(n)
	if before > 0 && (s.terms[before] != 0 || s.terms[s.hits.Before(before)] != 0) {
		return true
	}
	return len(s.query.Dates) > 0 && s.day(n) > 0
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

// score sums up what speaks for passage n.
func (s *scorer) score(n uint32) scores {
	session, before, flags := s.hits.Session(n), s.hits.Before(n), s.hits.Flags(n)
	out := scores{words: float64(s.words[n]), prefix: float64(s.prefix[n]), session: float64(s.sessions[session])}
	held := s.terms[n] | s.after[n]
	if before > 0 {
		second := s.hits.Before(before)
		held |= s.terms[before] | s.terms[second]
		out.before = float64(s.words[second])
		if s.hits.Flags(before)&archive.Asks != 0 {
			out.answer = float64(s.words[before])
		}
	}
	out.window = s.share(held)
	if s.isNamed(n, flags) {
		out.speaker = wSpeaker + wSpeakerBM*out.words
	}
	if len(s.query.Dates) > 0 {
		out.day = s.day(n)
		for _, said := range s.hits.Passage(n).Said {
			if said != (text.Date{}) {
				out.said = max(out.said, s.fit(said))
			}
		}
	}
	out.kind = s.kind(flags)
	out.form = form(flags)
	out.total = out.lexical() + wSession*out.session + wAnswer*out.answer + wTurnBefore*out.before + out.speaker +
		wDay*out.day + wSaid*out.said + out.kind + out.form
	if s.near != nil {
		out.meaning = s.near[int64(n)]
		out.total += wMeaning * out.meaning
	}
	return out
}

// share returns how much of the question's weight the terms in held carry.
func (s *scorer) share(held uint64) float64 {
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
func (s *scorer) isNamed(n uint32, flags archive.Flag) bool {
	return len(s.query.Speakers) == 1 && flags&archive.Aside == 0 && s.hits.Speakers[s.hits.Speaker(n)] == s.query.Speakers[0]
}

// kind scores whether a passage holds what the question's kind asks for.
func (s *scorer) kind(flags archive.Flag) float64 {
	var sum float64
	if s.query.Asks(text.AsksWhen) && flags&archive.HasTimeCue != 0 {
		sum += wWhen
	}
	if s.query.Asks(text.AsksWhere) && flags&archive.HasWhereCue != 0 {
		sum += wWhere
	}
	if s.query.Asks(text.AsksHowMany) && flags&archive.HasNumber != 0 {
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
