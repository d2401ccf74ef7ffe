package postings

import (
	"container/list"
	"sync"
)

// listCost is what a list takes besides its term and bytes: an estimate.
const listCost = 200

// Keeper keeps the lists that were asked for, the latest used ones. They are of one
// state S of the store: they grow as texts come in, and are dropped where texts that
// were in already have changed. A term may stand in several columns. Make one with
// NewKeeper; it is safe for concurrent use.
type Keeper[S comparable] struct {
	most    int // bytes
	columns int

	mu    sync.Mutex
	of    S
	terms []map[string]*list.Element
	order list.List // of *kept, the latest used first
	bytes int
}

// kept is a list with its place in a keeper.
type kept struct {
	column int
	term   string
	List
}

func (k *kept) cost() int { return listCost + len(k.term) + cap(k.packed) }

// NewKeeper returns a keeper of so many columns, whose lists take at most so many bytes
// in all.
func NewKeeper[S comparable](columns, most int) *Keeper[S] {
	k := &Keeper[S]{most: most, columns: columns}
	var none S
	k.Reset(none)
	return k
}

// Bytes returns what the lists take.
func (k *Keeper[S]) Bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}

// IsEmpty reports whether nothing is kept.
func (k *Keeper[S]) IsEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.order.Len() == 0
}

// State returns the state that the lists are of.
func (k *Keeper[S]) State() S {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of
}

// Reset drops all lists. The keeper is of the state of from then on.
func (k *Keeper[S]) Reset(of S) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reset(of)
}

func (k *Keeper[S]) reset(of S) {
	k.of, k.bytes = of, 0
	k.order.Init()
	k.terms = make([]map[string]*list.Element, k.columns)
	for c := range k.terms {
		k.terms[c] = map[string]*list.Element{}
	}
}

// Get returns the lists of those terms of a column that are kept; nil for others. It
// reports false where the keeper is of another state.
func (k *Keeper[S]) Get(of S, column int, terms []string) (lists []*List, same bool) {
	lists = make([]*List, len(terms))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != of {
		return lists, false
	}
	for i, t := range terms {
		if e, there := k.terms[column][t]; there {
			k.order.MoveToFront(e)
			l := e.Value.(*kept).List // a copy: the kept one grows
			lists[i] = &l
		}
	}
	return lists, true
}

// Put keeps the list of a term that was read at a state, unless the keeper has moved
// on. A list of which only counts are known does not take the place of a whole one.
func (k *Keeper[S]) Put(of S, column int, term string, l List) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != of {
		return
	}
	if e, there := k.terms[column][term]; there {
		if !e.Value.(*kept).CountsOnly || l.CountsOnly {
			return
		}
		k.drop(e)
	}
	x := &kept{column, term, l}
	k.terms[column][term] = k.order.PushFront(x)
	k.bytes += x.cost()
	k.trim()
}

// Arrived is what a new text holds of each column: how often each term.
type Arrived struct {
	N     uint32
	Terms []map[string]int
}

// Follow extends the lists by texts that are behind all that they hold: the keeper is of
// the state next then. It does nothing, and reports false, where it is of another state
// than from.
func (k *Keeper[S]) Follow(from, next S, texts []Arrived) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != from {
		return false
	}
	k.of = next
	for _, t := range texts {
		for c, terms := range t.Terms {
			for term, count := range terms {
				e, there := k.terms[c][term]
				if !there {
					continue
				}
				l := e.Value.(*kept)
				k.bytes -= l.cost()
				l.Add(t.N, count)
				k.bytes += l.cost()
			}
		}
	}
	k.trim()
	return true
}

// trim drops the lists that were not used for longest until the rest has room.
func (k *Keeper[S]) trim() {
	for k.bytes > k.most {
		k.drop(k.order.Back())
	}
}

func (k *Keeper[S]) drop(e *list.Element) {
	l := k.order.Remove(e).(*kept)
	delete(k.terms[l.column], l.term)
	k.bytes -= l.cost()
}
