package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// How much a word counts by where it stands, and the two parameters of BM25
// (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
const (
	labelWeight   = 3
	tagWeight     = 2
	payloadWeight = 1
	prefixWeight  = 0.25 // of a word that only begins like one asked for

	saturation = 1.2  // k1
	lengthPart = 0.75 // b

	commonPart = 10 // one in so many nodes

	leastIDF = 1e-6 // what is in every node finds it all the same
)

// maxPayloadText is how many bytes of a payload's text are indexed.
const maxPayloadText = 64 << 10

// Ranked is a node with its score: BM25 over label, tags and the texts and
// numbers of the payload. Scores compare within one answer only.
type Ranked struct {
	Node  *Node
	Score float64
}

// RankedQuery asks for the nodes nearest to some words.
type RankedQuery struct {
	Words   string // in any script; no words find nothing
	Type    string // only nodes of this type; "" for all
	AgentID string // only nodes of this agent; "" for all
	Limit   int    // at most so many
}

// Ranked returns the nodes that have any of the words, the best first; among
// equals the newest. Words are compared as everywhere in memory: by their stems,
// without case and accents, scripts without spaces by pairs of characters. The
// index that it needs is made by the first call and follows the graph.
func (s *Store) Ranked(ctx context.Context, q RankedQuery) ([]Ranked, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	var found []Ranked
	err := s.View(ctx, func(v *View) error {
		s.ranks.mu.Lock()
		defer s.ranks.mu.Unlock()
		s.ranks.follow(v.state)
		found = s.ranks.search(q)
		return ctx.Err()
	})
	return found, err
}

// posting is one document that has a term, and how often, weighted.
type posting struct {
	doc   int32
	count float32
}

// ranks is an inverted index of the nodes of a state. A node that changes
// becomes a new document; the old one stays in the postings, dead, until most
// are. The zero value is empty.
type ranks struct {
	mu      sync.Mutex
	state   *state
	indexed []*Node // by position in the state
	docAt   []int32 // of each position, none where there is no node
	docs    []document
	dead    int
	length  float64 // of all live documents

	terms    map[string]int32   // numbers of terms
	words    map[string][]int32 // terms of each word seen
	postings [][]posting        // by term

	counts []float32 // of the document being added, by term; zero between documents
	scores []float32 // by document; zero between searches
}

type document struct {
	node   *Node // nil for a dead one
	length float32
}

// prefixMark sets prefixes apart from other terms.
const prefixMark = "\x00"

// follow brings the index up to date with a state. A node in a state never
// changes, so what is the same pointer is indexed already.
func (r *ranks) follow(st *state) {
	if r.state != st || r.dead > 1024+len(r.docs)/2 {
		r.state, r.indexed, r.docAt, r.docs, r.dead, r.length = st, nil, nil, nil, 0, 0
		r.terms, r.words, r.postings, r.counts, r.scores = map[string]int32{}, map[string][]int32{}, nil, nil, nil
	}
	for at, n := range st.nodes {
		if at == len(r.indexed) {
			r.indexed, r.docAt = append(r.indexed, nil), append(r.docAt, none)
		}
		if r.indexed[at] == n {
			continue
		}
		r.drop(at)
		r.indexed[at] = n
		if n != nil {
			r.docAt[at] = r.add(n)
		}
	}
	r.scores = slices.Grow(r.scores, len(r.docs)-len(r.scores))[:len(r.docs)]
}

// drop takes out what is indexed for a position.
func (r *ranks) drop(at int) {
	doc := r.docAt[at]
	if doc == none {
		return
	}
	r.length -= float64(r.docs[doc].length)
	r.docs[doc] = document{}
	r.docAt[at] = none
	r.dead++
}

// add indexes a node and returns its document.
func (r *ranks) add(n *Node) int32 {
	doc, length := int32(len(r.docs)), 0
	var found []int32
	count := func(s string, weight float32) {
		words := text.Words(s)
		length += len(words)
		for _, w := range words {
			for _, t := range r.termsOf(w) {
				if r.counts[t] == 0 {
					found = append(found, t)
				}
				r.counts[t] += weight
			}
		}
	}
	count(n.Label, labelWeight)
	for _, tag := range n.Tags {
		count(tag, tagWeight)
	}
	count(payloadText(n.Payload), payloadWeight)
	for _, t := range found {
		r.postings[t] = append(r.postings[t], posting{doc, r.counts[t]})
		r.counts[t] = 0
	}
	r.docs = append(r.docs, document{n, float32(length)})
	r.length += float64(length)
	return doc
}

// termsOf returns the numbers of the terms under which a word is found.
func (r *ranks) termsOf(word string) []int32 {
	terms, known := r.words[word]
	if known {
		return terms
	}
	number := func(term string) {
		n, known := r.terms[term]
		if !known {
			n = int32(len(r.postings))
			r.terms[term] = n
			r.postings, r.counts = append(r.postings, nil), append(r.counts, 0)
		}
		terms = append(terms, n)
	}
	c := text.Index(word)
	for _, t := range strings.Fields(c.Main) {
		number(t)
	}
	for _, p := range strings.Fields(c.Prefix) {
		number(prefixMark + p)
	}
	r.words[word] = terms
	return terms
}

// search scores the documents of each term, and keeps the best. It answers an
// empty list for no words.
func (r *ranks) search(q RankedQuery) []Ranked {
	parsed := text.ParseQuery(q.Words, text.Options{})
	var touched []int32
	for _, t := range parsed.Terms {
		touched = r.score(r.find(t), 1, touched)
	}
	for _, p := range parsed.Prefixes {
		list := r.find(prefixMark + p)
		if utf8.RuneCountInString(p) == 1 && len(p) > 1 { // a character that is a word
			touched = r.score(list, 1, touched)
		} else if len(touched) == 0 || len(list) < len(r.docs)/commonPart { // a start that many words have tells nothing more
			touched = r.score(list, prefixWeight, touched)
		}
	}
	best := make([]Ranked, 0, q.Limit)
	for _, doc := range touched {
		n, score := r.docs[doc].node, float64(r.scores[doc])
		r.scores[doc] = 0
		if n == nil || len(best) == q.Limit && score < best[len(best)-1].Score || q.Type != "" && n.Type != q.Type || q.AgentID != "" && n.AgentID != q.AgentID {
			continue
		}
		best = keep(best, Ranked{n, score}, q.Limit)
	}
	return best
}

// find returns the postings of a term, none for one that no node has.
func (r *ranks) find(term string) []posting {
	if number, known := r.terms[term]; known {
		return r.postings[number]
	}
	return nil
}

// score adds what a term is worth to the scores of its documents, and those that
// had none to touched.
func (r *ranks) score(list []posting, weight float32, touched []int32) []int32 {
	live := float64(len(r.docs) - r.dead)
	have := min(float64(len(list)), live) // some of the list may be dead
	idf := weight * float32(max(leastIDF, math.Log(1+(live-have+.5)/(have+.5))))
	mean := float32(r.length/max(1, live)) + 1e-6
	for _, p := range list {
		if r.scores[p.doc] == 0 {
			touched = append(touched, p.doc)
		}
		norm := saturation * (1 - lengthPart + lengthPart*r.docs[p.doc].length/mean)
		r.scores[p.doc] += idf * p.count * (saturation + 1) / (p.count + norm)
	}
	return touched
}

// keep puts one more into a sorted list of at most limit.
func keep(best []Ranked, one Ranked, limit int) []Ranked {
	if len(best) == limit {
		if better(one, best[len(best)-1]) > 0 {
			return best
		}
		best = best[:len(best)-1]
	}
	at, _ := slices.BinarySearchFunc(best, one, better)
	return slices.Insert(best, at, one)
}

// better orders what is found: by score, the newest first, then by id.
func better(a, b Ranked) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Node.CreatedAt, a.Node.CreatedAt), cmp.Compare(a.Node.ID, b.Node.ID))
}

// payloadText returns the texts and numbers of a payload, without the names of
// its members: they are the same in every node of a kind and say nothing.
func payloadText(raw []byte) string {
	var b strings.Builder
	var collect func(v gjson.Result) bool
	collect = func(v gjson.Result) bool {
		switch v.Type {
		case gjson.JSON:
			v.ForEach(func(_, item gjson.Result) bool { return collect(item) })
		case gjson.String, gjson.Number:
			b.WriteString(v.String())
			b.WriteByte('\n')
		}
		return b.Len() < maxPayloadText
	}
	collect(gjson.ParseBytes(raw))
	return b.String()
}
