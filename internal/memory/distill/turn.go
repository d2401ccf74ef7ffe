package distill

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// turn is a message of a user in its place in the conversation.
type turn struct {
	event     memory.Event
	at        time.Time // in the session's zone
	subject   string    // "User", or the speaker's name where one is given
	sentences []sentence
	asked     string // the question that the turn before ended in, or ""
	said      string // what the user said in the turn before, in the same session
	heard     string // what the other side said just before
	reply     string // what the assistant says next, up to the user's next turn
	acted     bool   // the assistant's next step is a tool call
}

// turns picks the user's messages out of a batch. Context turns are only looked
// at for what came before.
func (b Batch) turns() []*turn {
	var out []*turn
	var open *turn // the last user turn, while replies to it are collected
	heard, said, session := "", "", ""
	see := func(e memory.Event, cite bool) {
		if e.SessionID != session {
			session, heard, said, open = e.SessionID, "", "", nil
		}
		switch e.Type {
		case memory.AssistantOutput:
			heard = e.Text
			if open != nil && open.reply == "" && !open.acted {
				open.reply = e.Text
			}
		case memory.ToolCall:
			if open != nil && open.reply == "" {
				open.acted = true
			}
		case memory.UserMessage:
			if cite && (e.Origin == memory.OriginUser || e.Origin == memory.OriginImport) {
				open = b.newTurn(e, heard)
				open.said = said
				out = append(out, open)
			}
			heard, said = e.Text, e.Text
			if e.Meta(memory.MetaSpeaker) == "" {
				heard = ""
			}
		}
	}
	for _, e := range b.Context {
		see(e, false)
	}
	for _, e := range b.Events {
		see(e, true)
	}
	return out
}

func (b Batch) newTurn(e memory.Event, heard string) *turn {
	t := &turn{event: e, at: b.localTime(e), subject: "User", sentences: sentences(e.Text), heard: heard, asked: lastQuestion(heard)}
	if name := oneLine(e.Meta(memory.MetaSpeaker)); name != "" && !strings.EqualFold(name, "user") {
		t.subject = name
	}
	return t
}

// lastQuestion returns the question that a text ends in, or "".
func lastQuestion(text string) string {
	all := sentences(text)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	if last.pasted || !strings.HasSuffix(last.text, "?") && !strings.HasSuffix(last.text, "？") {
		return ""
	}
	return last.text
}

// names returns the proper names among the words of a sentence, in lower case and
// without a possessive ending. What stands at the head of a sentence counts only
// if it is no common word and a verb or another name follows.
func names(s *sentence) []string {
	var out []string
	head := true
	for i, w := range s.words {
		if isName(s.words, i, head) {
			out = append(out, baseName(w.lower))
		}
		head = strings.ContainsAny(w.after, ".!?") || head && (leadIns[w.lower] || w.text == "«»") && w.after != ""
	}
	return out
}

func isName(words []word, i int, head bool) bool {
	w := words[i]
	first, n := utf8.DecodeRuneInString(w.text)
	base := baseName(w.lower)
	switch {
	case unicode.In(first, unicode.Han):
		return false
	case !unicode.IsUpper(first) || len(w.text) == n, functionWords[base], functionWords[w.lower], calendarWords[base], leadIns[base], firstPerson[w.lower]:
		return false
	case !head:
		return true
	case i+1 >= len(words):
		return false
	}
	next := words[i+1]
	if imperativeVerbs[base] || questionWords[w.lower] || auxiliaries[w.lower] || habitual[base] || commonHeads[base] {
		return false
	}
	return strings.HasSuffix(w.lower, "'s") || headVerbs[next.lower] || w.after == "" && next.lower == "and" || strings.HasPrefix(w.after, ",") ||
		strings.HasSuffix(next.lower, "s") && statives[next.lower] || isName(words, i+1, false)
}

// headVerbs after a capitalised first word make it a subject.
var headVerbs = wordSet(`is was has had will does did can wants says said told wrote goes went comes came joins joined starts started takes took leaves left moved got gets lives works
	called sends sent found changed made agrees agreed needs loves hates likes prefers runs`)

// commonHeads are common nouns and adjectives that often open a chat sentence.
var commonHeads = wordSet(`decision change update status rule rules news question reminder note plan everything nobody everybody people half most part kids mornings work home school
	code coverage tests test firmware messages data branches deploys alerting window dinner lunch breakfast flight tickets insurance rent dad mum mam mom mother father sister brother`)

func baseName(lower string) string {
	return strings.TrimSuffix(strings.TrimSuffix(lower, "'s"), "'")
}

// isNumber reports words with a digit that are not mere identifiers.
func isNumber(w word) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(w.text, "€$£~<>=+-#"))
	return unicode.IsDigit(first)
}

// content returns the stems-to-be of a sentence: words that carry a topic.
func contentWords(words []word) []string {
	var out []string
	for _, w := range words {
		base := baseName(w.lower)
		if w.text != "«»" && !functionWords[base] && !functionWords[w.lower] && !leadIns[base] && !firstPerson[w.lower] {
			out = append(out, base)
		}
	}
	return out
}
