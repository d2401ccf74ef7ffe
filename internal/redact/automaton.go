package redact

// action says which reader looks at a place where a pattern ends.
type action uint8

const (
	actTag action = iota
	actVendor
	actName
	actWord
	actSeed
	actArmor
	actURL
	actJWT
	actHash
	actScheme
	actLogin
	actCommand
	actFlag
	actSetting
	actKnown
)

// pattern is a text to look for and what to do where it stands. arg is the row of the action's own table.
type pattern struct {
	text string
	act  action
	arg  int
}

const (
	classBits  = 8 // room for 256 classes of bytes
	acceptFlag = 0x8000
	stateMask  = 0x7fff
)

// automaton finds every pattern of a set in one pass over a text, as in Aho and Corasick,
// "Efficient string matching", 1975, with all transitions worked out beforehand.
type automaton struct {
	class    [256]uint8 // 0: a byte that no pattern has
	next     []uint16   // state<<classBits|class -> state, with acceptFlag where a pattern ends
	hits     [][]uint16 // patterns that end in a state, longest first
	patterns []pattern
}

// newAutomaton builds the automaton of patterns. With fold, ASCII letters match in either case.
// It answers false where the set is too large for its tables.
func newAutomaton(patterns []pattern, fold bool) (*automaton, bool) {
	a := &automaton{patterns: patterns}
	if !a.classify(fold) || !a.grow() {
		return nil, false
	}
	a.complete()
	return a, true
}

// frequent are the bytes that texts are mostly made of. Their classes come first, so that the transitions of a state on
// them lie in one line of the processor's cache.
const frequent = " etaoinshrdlucmfwypvbgkjqxz.,-"

// classify gives each byte that occurs in a pattern a class of its own.
func (a *automaton) classify(fold bool) bool {
	var used [256]bool
	for _, p := range a.patterns {
		for i := range len(p.text) {
			c := p.text[i]
			if fold {
				c = lower(c)
			}
			used[c] = true
		}
	}
	order := []byte(frequent)
	for c := range len(used) {
		order = append(order, byte(c))
	}
	classes := 1
	for _, c := range order {
		if !used[c] {
			continue
		}
		if classes == 1<<classBits {
			return false
		}
		used[c] = false
		a.class[c] = uint8(classes)
		if fold && isLower(c) {
			a.class[c-'a'+'A'] = uint8(classes)
		}
		classes++
	}
	return true
}

// grow builds the trie: every pattern as a path from state 0.
func (a *automaton) grow() bool {
	a.addState()
	for id, p := range a.patterns {
		state := 0
		for i := range len(p.text) {
			at := state<<classBits | int(a.class[p.text[i]])
			if a.next[at] == 0 {
				if len(a.hits) > stateMask {
					return false
				}
				a.next[at] = uint16(a.addState())
			}
			state = int(a.next[at])
		}
		a.hits[state] = append(a.hits[state], uint16(id))
	}
	return true
}

func (a *automaton) addState() int {
	a.next = append(a.next, make([]uint16, 1<<classBits)...)
	a.hits = append(a.hits, nil)
	return len(a.hits) - 1
}

// complete turns the trie into an automaton, breadth first: a missing transition is that of the longest proper suffix.
func (a *automaton) complete() {
	suffix := make([]int, len(a.hits))
	queue := []int{0}
	for head := 0; head < len(queue); head++ {
		state := queue[head]
		for class := range 1 << classBits {
			at := state<<classBits | class
			child := int(a.next[at])
			fallback := 0
			if state != 0 {
				fallback = int(a.next[suffix[state]<<classBits|class] & stateMask)
			}
			if child == 0 {
				a.next[at] = uint16(fallback)
				continue
			}
			suffix[child] = fallback
			a.hits[child] = append(a.hits[child], a.hits[fallback]...)
			queue = append(queue, child)
		}
	}
	for at, state := range a.next {
		if len(a.hits[state&stateMask]) > 0 {
			a.next[at] |= acceptFlag
		}
	}
}
