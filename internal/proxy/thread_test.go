package proxy

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ledger stands for the log: what was written, once each.
type ledger struct {
	k      keyed
	thread *thread
	source []string // in order, of every message written
	answer map[string]bool
	texts  []string
}

func newLedger() *ledger {
	return &ledger{k: keyed("key"), thread: fresh(), answer: map[string]bool{}}
}

func fresh() *thread { return &thread{nodes: map[mark]*node{}, like: map[mark][]*node{}} }

// restart brings the thread back from what is written.
func (l *ledger) restart() {
	l.thread = fresh()
	for i, s := range l.source {
		n, ok := parseSource(s)
		if !ok {
			panic(s)
		}
		n.seq, n.answer = int64(i+1), l.answer[s]
		l.thread.add(n)
	}
}

// request is a request with its answer, "" for one that gets none.
func (l *ledger) request(named bool, answer string, list ...message) {
	placed := l.thread.place(l.k, list, named)
	for _, p := range placed {
		l.take(p)
	}
	if answer == "" {
		return
	}
	x := exchange{key: l.k, placed: placed, thread: l.thread}
	l.take(x.placeReply(&reply{message: message{role: "assistant", text: answer}}))
}

func (l *ledger) take(p placed) {
	if p.known || slices.Contains(l.source, p.sourceID()) {
		if p.role == "assistant" { // an answer that was given again is the latest
			l.thread.add(node{id: p.id, digest: p.digest, parent: p.parent, answer: true})
		}
		return
	}
	l.source, l.texts = append(l.source, p.sourceID()), append(l.texts, p.text)
	l.answer[p.sourceID()] = p.role == "assistant"
	l.thread.add(node{id: p.id, digest: p.digest, parent: p.parent, answer: p.role == "assistant", seq: int64(len(l.source))})
}

func user(text string) message      { return message{role: "user", text: text} }
func assistant(text string) message { return message{role: "assistant", text: text} }

// A client that sends the whole history every time, in words that repeat: each
// message is written once, through resends, retries and restarts.
func TestWholeHistoriesAreWrittenOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger()
		var history []message
		var want []string
		word := rapid.SampledFrom([]string{"yes", "no", "go on"})
		named := rapid.Bool().Draw(rt, "named")
		for range rapid.IntRange(1, 12).Draw(rt, "turns") {
			said := word.Draw(rt, "said")
			history, want = append(history, user(said)), append(want, said)
			for range rapid.IntRange(0, 2).Draw(rt, "failures") {
				l.request(named, "", history...)
			}
			answer := word.Draw(rt, "answer")
			l.request(named, answer, history...)
			if len(history) > 1 && rapid.Bool().Draw(rt, "retried") {
				l.request(named, answer, history...)
			}
			history, want = append(history, assistant(answer)), append(want, answer)
			if rapid.Bool().Draw(rt, "restarts") {
				l.restart()
			}
		}
		if !slices.Equal(l.texts, want) {
			rt.Fatalf("written %q, want %q", l.texts, want)
		}
	})
}

// A client that cuts its history, or puts a summary in place of its beginning, at
// each request anew.
func TestCutHistoriesAreWrittenOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger()
		var history []message
		want := map[string]int{}
		for turn := range rapid.IntRange(1, 12).Draw(rt, "turns") {
			said, answer := fmt.Sprint("said ", turn), fmt.Sprint("answer ", turn)
			history = append(history, user(said))
			want[said], want[answer] = 1, 1
			cut := 0
			if len(history) > 2 { // at least the last answer stays, or the client is another one
				cut = rapid.IntRange(0, len(history)-2).Draw(rt, "cut")
			}
			sent := slices.Clone(history[cut:])
			switch kind := rapid.IntRange(0, 3).Draw(rt, "kind"); {
			case cut == 0:
			case kind == 0:
				summary := fmt.Sprint("summary ", turn)
				want[summary] = 1
				sent = append([]message{user(summary)}, sent...)
			case kind == 1:
				sent = append([]message{history[0]}, sent...)
			}
			for range rapid.IntRange(1, 2).Draw(rt, "times") {
				l.request(true, "", sent...)
			}
			l.request(true, answer, sent...)
			history = append(history, assistant(answer))
			if rapid.Bool().Draw(rt, "restarts") {
				l.restart()
			}
		}
		got := map[string]int{}
		for _, text := range l.texts {
			got[text]++
		}
		for text, n := range want {
			if got[text] != n {
				rt.Fatalf("%q is written %d times: %q", text, got[text], l.texts)
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("written %q", l.texts)
		}
	})
}

// A client that sends only what is new: the same word said twice is two messages,
// and one that got no answer is sent again.
func TestLatestMessagesOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLedger()
		var want []string
		word := rapid.SampledFrom([]string{"yes", "no"})
		for range rapid.IntRange(1, 12).Draw(rt, "turns") {
			said, answer := word.Draw(rt, "said"), word.Draw(rt, "answer")
			for range rapid.IntRange(0, 2).Draw(rt, "failures") {
				l.request(true, "", user(said))
			}
			l.request(true, answer, user(said))
			want = append(want, said, answer)
			if rapid.Bool().Draw(rt, "restarts") {
				l.restart()
			}
		}
		if !slices.Equal(l.texts, want) {
			rt.Fatalf("written %q, want %q", l.texts, want)
		}
	})
}

// A tool loop whose first request held the latest message only stands where that
// message stands.
func TestToolLoopStaysInItsPlace(t *testing.T) {
	l := newLedger()
	l.request(true, "hello", user("yes"))
	calls := message{role: "assistant", calls: []call{{"c1", "look", `{"a": 1}`}}}
	first := l.thread.place(l.k, []message{user("yes")}, true)
	l.take(first[0])
	l.take((&exchange{key: l.k, placed: first}).placeReply(&reply{message: calls}))
	calls.calls[0].arguments = `{"a":1}` // laid out anew by the client
	second := l.thread.place(l.k, []message{user("yes"), calls, {role: "tool", callID: "c1", text: "42"}}, true)
	if second[0].id != first[0].id || !second[1].known || second[2].known {
		t.Errorf("the loop moved: %+v and %+v", first, second)
	}
}

// Another branch of a conversation shares its beginning only.
func TestBranches(t *testing.T) {
	l := newLedger()
	l.request(false, "a1", user("u1"))
	l.request(false, "a2", user("u1"), assistant("a1"), user("u2"))
	l.request(false, "b2", user("u1"), assistant("a1"), user("u2 in other words"))
	l.request(false, "b3", user("u1"), assistant("a1"), user("u2 in other words"), assistant("b2"), user("u3"))
	if want := []string{"u1", "a1", "u2", "a2", "u2 in other words", "b2", "u3", "b3"}; !slices.Equal(l.texts, want) {
		t.Errorf("written %q", l.texts)
	}
}
