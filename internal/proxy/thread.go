package proxy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
)

// mark is 64 bits of a keyed hash. Keyed, so that nobody who reads the log can try
// out what a message was whose text is no longer in it.
type mark uint64

// A message's id follows from its content and the id of the message before it, so
// that the same history gives the same ids, whoever sends it, how often, and at
// what time. A session is then a tree: a message that was edited, or an answer that
// was asked for again, is another branch.
//
// Clients do not always send a history from its beginning: they cut it, put a
// summary in place of its first part, or send the latest message only. thread
// finds where in the tree such a request goes on.
type thread struct {
	mu     sync.Mutex
	loaded bool
	nodes  map[mark]*node   // by id
	like   map[mark][]*node // by digest, in the order that they came
	tip    *node            // the latest answer

	unflushed int // tokens since the session's turns were queued to be distilled
	users     int // guarded by threads.mu, as is used
	used      int64
}

// node is a message that is known.
type node struct {
	id, digest, parent mark
	seq                int64 // of its event, or a little before it; 0 where it is not known
	answer             bool
}

// placed is a message of a request in its place.
type placed struct {
	message
	id, digest, parent mark
	known              bool
}

// keyed makes marks with a key.
type keyed []byte

func (k keyed) hash() hash.Hash { return hmac.New(sha256.New, k) }

func sum(h hash.Hash) mark {
	var out [sha256.Size]byte
	return mark(binary.BigEndian.Uint64(h.Sum(out[:0])))
}

// digest is of what a message says. White space around a text does not count, nor
// does how the arguments of a call are laid out: clients change both.
func (k keyed) digest(m message) mark {
	h := k.hash()
	role := m.role
	if role == "function" {
		role = "tool"
	}
	fmt.Fprintf(h, "%q %q %q %q", role, strings.TrimSpace(m.text), m.media, m.callID)
	for _, c := range m.calls {
		arguments := []byte(c.arguments)
		var plain bytes.Buffer
		if json.Compact(&plain, arguments) == nil {
			arguments = plain.Bytes()
		}
		fmt.Fprintf(h, " %q %q %q", c.id, c.name, arguments)
	}
	return sum(h)
}

// child is the id of a message behind another; 0 stands for the beginning.
func (k keyed) child(parent, digest mark) mark {
	h := k.hash()
	var raw [17]byte
	binary.BigEndian.PutUint64(raw[:], uint64(parent))
	binary.BigEndian.PutUint64(raw[8:], uint64(digest))
	h.Write(raw[:])
	return sum(h)
}

// sourceID is a message's id as the log keeps it: enough to bring the tree back.
// Its letters are none that a secret could be taken for.
func (p placed) sourceID() string {
	return fmt.Sprintf("p/%016x/%016x/%016x", uint64(p.id), uint64(p.digest), uint64(p.parent))
}

// parseSource reads what sourceID wrote, of a message's first event; ok is false for
// anything else.
func parseSource(s string) (n node, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 || parts[0] != "p" {
		return n, false
	}
	for i, to := range []*mark{&n.id, &n.digest, &n.parent} {
		v, err := strconv.ParseUint(parts[i+1], 16, 64)
		if err != nil {
			return n, false
		}
		*to = mark(v)
	}
	return n, true
}

// add makes a message known. mu is held.
func (t *thread) add(n node) *node {
	if have := t.nodes[n.id]; have != nil {
		if have.seq == 0 {
			have.seq = n.seq
		}
		if n.answer {
			t.tip = have
		}
		return have
	}
	added := &n
	t.nodes[n.id] = added
	t.like[n.digest] = append(t.like[n.digest], added)
	if n.answer {
		t.tip = added
	}
	return added
}

// place finds where the messages of a request stand. follows says that a request
// which holds no answer goes on where the session's last one ended; without it such
// a request begins the conversation. mu is held.
func (t *thread) place(k keyed, list []message, follows bool) []placed {
	out := make([]placed, len(list))
	answer := -1 // the last one in the request
	for i, m := range list {
		out[i] = placed{message: m, digest: k.digest(m)}
		if m.role == "assistant" {
			answer = i
		}
	}
	if answer < 0 && follows && t.tip != nil {
		t.chain(k, out, 0, len(out), t.tip.id)
		return out
	}
	t.locate(k, out, answer, deepest)
	return out
}

// deepest is in how many pieces, at most, the parts of a history are looked for.
const deepest = 8

// locate places messages that may begin anywhere.
func (t *thread) locate(k keyed, out []placed, answer, depth int) {
	// From the beginning: a known message means that all before it are the same.
	t.chain(k, out, 0, len(out), 0)
	known := lastKnown(out) + 1
	settle(out, 0, known)
	if known == len(out) || depth == 0 {
		return
	}
	at, from, n := t.behind(out, answer)
	if n == 0 || at > 0 {
		if at2, from2, n2 := t.elsewhere(k, out); n2 > n && (n2 > 1 || known == 0) {
			at, from, n = at2, from2, n2
		}
	}
	if n == 0 || at < known && n <= known { // the beginning it is
		return
	}
	if at > 0 {
		t.locate(k, out[:at], -1, depth-1)
	}
	t.chain(k, out, at, len(out), from)
	settle(out, at, at+n)
}

// behind finds the run of messages that leads to the session's last answer, where
// the request's last answer is that one: n messages from index at on, behind the
// message from.
func (t *thread) behind(out []placed, answer int) (at int, from mark, n int) {
	if answer < 0 || t.tip == nil {
		return 0, 0, 0
	}
	for i, last := answer, t.tip; i >= 0 && last != nil && last.digest == out[i].digest; i-- {
		n, at, from = n+1, i, last.parent
		last = t.nodes[last.parent]
	}
	return at, from, n
}

// elsewhere finds the longest run of messages, from near the request's beginning
// on, that is known somewhere.
func (t *thread) elsewhere(k keyed, out []placed) (at int, from mark, n int) {
	for start := range min(len(out), leading) {
		same := t.like[out[start].digest]
		for i := len(same) - 1; i >= max(0, len(same)-candidates); i-- {
			if l := t.follow(k, out[start:], same[i]); l > n {
				at, from, n = start, same[i].parent, l
			}
		}
		if n >= len(out)-start-1 {
			break
		}
	}
	return at, from, n
}

const (
	leading    = 4  // messages that may stand before what is known: a summary, and what goes with it
	candidates = 16 // of the same content that are tried
)

// follow counts how many messages follow each other from a node on as they do in
// the request.
func (t *thread) follow(k keyed, list []placed, from *node) int {
	n := 1
	for id := from.id; n < len(list); n++ {
		if id = k.child(id, list[n].digest); t.nodes[id] == nil {
			break
		}
	}
	return n
}

// chain gives the messages from index start up to end their ids, behind another.
func (t *thread) chain(k keyed, out []placed, start, end int, behind mark) {
	for i := start; i < end; i++ {
		out[i].parent, out[i].id = behind, k.child(behind, out[i].digest)
		out[i].known = t.nodes[out[i].id] != nil
		behind = out[i].id
	}
}

func lastKnown(out []placed) int {
	for i := len(out) - 1; i >= 0; i-- {
		if out[i].known {
			return i
		}
	}
	return -1
}

// settle marks messages as known.
func settle(out []placed, start, end int) {
	for i := start; i < end; i++ {
		out[i].known = true
	}
}

// first returns the seq of the oldest of the messages that is known; 0 for none. mu
// is held.
func (t *thread) first(list []placed) int64 {
	var first int64
	for _, p := range list {
		if n := t.nodes[p.id]; n != nil && n.seq > 0 && (first == 0 || n.seq < first) {
			first = n.seq
		}
	}
	return first
}

// threads are the sessions in use, and as many of the others as there is room for.
// It is safe for concurrent use.
type threads struct {
	mu    sync.Mutex
	all   map[string]*thread
	clock int64
}

const (
	threadsKept = 256
	nodesKept   = 4096 // messages that are loaded of a session
)

// enter returns a session's thread, and what gives it back.
func (ts *threads) enter(key string) (*thread, func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.all == nil {
		ts.all = map[string]*thread{}
	}
	t := ts.all[key]
	if t == nil {
		t = &thread{nodes: map[mark]*node{}, like: map[mark][]*node{}}
		ts.all[key] = t
	}
	ts.clock++
	t.used = ts.clock
	t.users++
	return t, func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		t.users--
		ts.evict()
	}
}

// evict forgets what was used longest ago where there is too much; mu is held. It is
// loaded again when it is needed. A thread that has grown too long is loaded
// anew, with its latest messages only.
func (ts *threads) evict() {
	oldest := ""
	for key, t := range ts.all {
		switch {
		case t.users > 0:
		case len(t.nodes) > 2*nodesKept:
			delete(ts.all, key)
		case oldest == "" || t.used < ts.all[oldest].used:
			oldest = key
		}
	}
	if len(ts.all) > threadsKept && oldest != "" {
		delete(ts.all, oldest)
	}
}
