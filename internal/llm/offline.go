package llm

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Offline answers a chat where no model is configured. It says nothing of its
// own: a question is answered with the lines of the recall block that fit it
// best, handles and all, or with not knowing; a statement is acknowledged; a
// tool's result is read back. The same messages always get the same answer. The
// zero value is ready to use.
type Offline struct {
	// Forgets says that nothing is being captured, so that no statement is
	// acknowledged as if it were.
	Forgets bool
}

// OfflineName is what the answerer calls itself in a Reply.
const OfflineName = "offline"

const (
	maxQuoted = 300 // characters of a quotation
	maxLines  = 3   // of memory in an answer
	maxResult = 4000
)

const (
	// about is what the answerer says of itself where it cannot answer.
	about = itself + " For a model, set model.provider, model.base_url, model.name and model.key in the configuration."
	// itself and nothingKnown never change: they tell such answers in old logs.
	itself       = "This is the offline answerer: it quotes memory and does nothing else."
	nothingKnown = "I don't know: I have no memory of that."
)

// SaysNothing reports whether an answer is one of the offline answerer's that hold
// nothing: that it does not know, or cannot do what was asked. Nothing is to be
// remembered of it.
func SaysNothing(answer string) bool {
	return strings.HasPrefix(answer, nothingKnown) || strings.Contains(answer, itself)
}

// Chat answers the last message. It costs nothing, and fails only where there is
// nothing to answer.
func (o Offline) Chat(ctx context.Context, req Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	if len(req.Messages) == 0 {
		return Reply{}, &memory.FieldError{Field: "messages", Reason: "must not be empty"}
	}
	answer := o.answer(req.Messages)
	if req.Stream != nil {
		for line := range strings.Lines(answer) {
			req.Stream(line)
		}
	}
	return Reply{Text: answer, Model: OfflineName, FinishReason: "stop"}, nil
}

func (o Offline) answer(messages []Message) string {
	if last := messages[len(messages)-1]; last.Role == Tool {
		return resultOf(messages, last)
	}
	said, block := "", []line(nil)
	for _, m := range messages {
		rest, found := readBlock(m.Content)
		if found != nil {
			block = found
		}
		if m.Role == User && rest != "" {
			said = rest
		}
	}
	switch asked := questions(said); {
	case asked != "":
		return fromMemory(asked, block)
	case greeting.MatchString(said):
		return "Hello. Ask me about what we have talked about, or tell me something to remember."
	case thanks.MatchString(said):
		return "You are welcome."
	case said == "" || demand.MatchString(said):
		return "I cannot do that.\n" + about
	}
	return o.acknowledge(said, block)
}

// resultOf reads back what a tool has answered.
func resultOf(messages []Message, result Message) string {
	name := "The tool"
	for _, m := range messages {
		for _, call := range m.ToolCalls {
			if call.ID == result.ToolCallID {
				name = call.Name
			}
		}
	}
	if strings.TrimSpace(result.Content) == "" {
		return name + " answers nothing."
	}
	return name + " answers:\n" + clip(result.Content, maxResult)
}

// line is one line of a recall block.
type line struct{ handle, source, text string }

var (
	blockLine  = regexp.MustCompile(`^\[((?:MEM|EVT|REC)-[0-9]+)\] \(([^()]*)\) (.*)$`)
	blockStart = "--- RELEVANT MEMORY ---"
	blockEnd   = "------------------------"
)

// readBlock takes the recall block out of a message: what is left, and the
// block's lines; nil where there is none.
func readBlock(content string) (rest string, block []line) {
	var left []string
	inside := false
	for _, l := range strings.Split(content, "\n") {
		switch {
		case l == blockStart:
			inside, block = true, []line{}
		case inside && l == blockEnd:
			inside = false
		case !inside:
			left = append(left, l)
		default:
			if m := blockLine.FindStringSubmatch(l); m != nil {
				block = append(block, line{m[1], m[2], m[3]})
			}
		}
	}
	return strings.TrimSpace(strings.Join(left, "\n")), block
}

// What a message wants, by its form. English only, but for the question mark;
// anything else is taken for a statement.
var (
	sentence     = regexp.MustCompile(`(?s).+?(?:[.!?؟]+(?:\s|$)|[。？！\n]+|$)`)
	questionMark = regexp.MustCompile(`[?？؟]\s*$`)
	// A question word asks, unless a clause follows: "when I was young".
	questionWord = regexp.MustCompile(`(?i)^\s*(?:(?:and|so|but|ok|okay|well|hey|please)[, ]+)*(?:who|whom|whose|what|which|when|where|why|how)(?:'?s)?\b`)
	clauseWord   = regexp.MustCompile(`(?i)^\s*(?:(?:and|so|but|ok|okay|well|hey|please)[, ]+)*(?:who|what|which|when|where|why|how)\s+(?:i|you|we|he|she|it|they|my|your|our|his|her|their)\b`)
	inversion    = regexp.MustCompile(`(?i)^\s*(?:is|are|am|was|were|do|does|did|can|could|will|would|should|has|have|had)\s+(?:i|you|we|he|she|it|they|my|your|our|his|her|their|the|there|this|that|any(?:one|body|thing)?)\b`)
	request      = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:tell me|remind me (?:what|when|where|who|which|how|why|of)|show me|list|recall|search|find)\b`)
	toKeep       = regexp.MustCompile(`(?i)^\s*(?:(?:please|(?:can|could|will) you)\s+)*(?:remember|note|keep in mind|don'?t forget)(?: that| this| i| my|:)`)
	greeting     = regexp.MustCompile(`(?i)^\s*(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings)\b[\s\w,]{0,20}[.!]*\s*$`)
	thanks       = regexp.MustCompile(`(?i)^\s*(?:thanks|thank you|thx|cheers|great|ok|okay|perfect)\b[\s\w,]{0,20}[.!]*\s*$`)
	demand       = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:write|translate|summari[sz]e|explain|calculate|compute|generate|draft|create|make|compose|book|order|buy|send|open|play|run|code|fix|help|draw|convert|sing|give me|let's)\b`)
)

// questions returns the sentences of s that ask something, joined; "" for none.
func questions(s string) string {
	var asked []string
	for _, part := range sentence.FindAllString(s, -1) {
		if asks(part) {
			asked = append(asked, strings.TrimSpace(part))
		}
	}
	return strings.Join(asked, " ")
}

func asks(sentence string) bool {
	switch {
	case toKeep.MatchString(sentence):
		return false
	case questionMark.MatchString(sentence), inversion.MatchString(sentence), request.MatchString(sentence):
		return true
	}
	return questionWord.MatchString(sentence) && !clauseWord.MatchString(sentence)
}

// fromMemory answers a question with the lines of the block that share most of
// its words, in the block's order among equals.
func fromMemory(asked string, block []line) string {
	if len(block) == 0 {
		return nothingKnown + "\n" + about
	}
	best := bestLines(asked, block)
	if len(best) == 0 {
		return nearest(block)
	}
	if len(best) == 1 {
		return "From memory: " + best[0].String()
	}
	return "From memory:\n" + quoted(best)
}

// nearest is the answer where no line of the block shares a word with the
// question: recall has its own reasons for them, such as related words.
func nearest(block []line) string {
	telling := slices.DeleteFunc(slices.Clone(block), func(l line) bool { return asks(l.text) || ownWords.MatchString(l.text) })
	if len(telling) == 0 {
		return nothingKnown + "\n" + about
	}
	return "I don't know. The nearest that I remember:\n" + quoted(telling[:min(2, len(telling))]) + "\n" + about
}

func quoted(lines []line) string {
	var out []string
	for _, l := range lines {
		out = append(out, "- "+l.String())
	}
	return strings.Join(out, "\n")
}

func (l line) String() string {
	return fmt.Sprintf("%s [%s] (%s)", clip(l.text, maxQuoted), l.handle, l.source)
}

// bestLines returns the lines that tell something on s: those that share its
// words, most first, what the assistant said last. Questions tell nothing, nor
// do earlier answers of this answerer, nor a line that only repeats a better one;
// and a line with less than half of the best one's words is left out.
func bestLines(s string, block []line) []line {
	wanted := stems(s)
	shared := map[string]int{} // by handle
	for _, l := range block {
		has := stems(l.text + " " + l.source)
		for stem := range wanted {
			if has[stem] {
				shared[l.handle]++
			}
		}
	}
	telling := slices.DeleteFunc(slices.Clone(block), func(l line) bool {
		return shared[l.handle] == 0 || asks(l.text) || ownWords.MatchString(l.text)
	})
	slices.SortStableFunc(telling, func(a, b line) int {
		return cmp.Or(shared[b.handle]-shared[a.handle], a.rank()-b.rank())
	})
	var best []line
	for _, l := range telling {
		repeats := func(better line) bool { return strings.Contains(l.text, better.text) }
		if 2*shared[l.handle] >= shared[telling[0].handle] && len(best) < maxLines && !slices.ContainsFunc(best, repeats) {
			best = append(best, l)
		}
	}
	return best
}

// ownWords begin the answers of this answerer.
var ownWords = regexp.MustCompile(`^(?:From memory:|Noted, I will remember|I don't know|I cannot do that|I hear you, but|Hello\. Ask me|You are welcome\.)`)

// rank is 1 for what an assistant said, 0 for the rest.
func (l line) rank() int {
	if strings.Contains(l.source, string(Assistant)) {
		return 1
	}
	return 0
}

// stems returns the terms under which the words of s that mean something are
// indexed.
func stems(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range text.Words(s) {
		if text.IsStopword(w) {
			continue
		}
		for _, term := range strings.Fields(text.Index(w).Main) {
			out[term] = true
		}
	}
	return out
}

// acknowledge answers a statement, and shows what memory holds on it already.
func (o Offline) acknowledge(said string, block []line) string {
	if o.Forgets {
		return "I hear you, but memory is off, so I will not remember it.\n" + about
	}
	out := fmt.Sprintf("Noted, I will remember that: %q", clip(strings.Join(strings.Fields(said), " "), maxQuoted))
	if known := bestLines(said, block); len(known) > 0 {
		out += "\nUntil now I had: " + known[0].String()
	}
	return out
}

// clip cuts s after n characters.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
