package recall

import (
	"regexp"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// quotesMemory finds a handle in brackets: the mark of a text that repeats a
// recall block.
var quotesMemory = regexp.MustCompile(`[\[(](?:MEM|EVT|REC)-[0-9]+\]`)

// echo says why a turn only repeats what memory holds, or what is asked; "" where
// it does not. Without this, an answer that quotes memory is recalled as a memory
// at the next question, and quoted again by its answer; and a question asked
// twice finds itself.
func (p *packer) echo(e memory.Episode) string {
	if e.Type == memory.UserMessage && strings.HasSuffix(strings.TrimSpace(e.Text), "?") {
		said, asked := contentWords(e.Text), contentWords(p.found.search.request.Text)
		if len(said) > 0 && len(asked) > 0 && shared(said, asked) == 1 && shared(asked, said) == 1 {
			return "asks the same"
		}
	}
	if e.Type != memory.AssistantOutput {
		return ""
	}
	if quotesMemory.MatchString(e.Text) {
		return "repeats a block of memory"
	}
	said := contentWords(e.Text)
	for i := range p.selected {
		if len(said) > 0 && shared(said, p.wordsOf(i)) >= maxShared {
			return "says nothing that a line before it does not say"
		}
	}
	return ""
}

// maxShared is the share of a turn's content words, from which on it says nothing
// new beside a line that has them.
const maxShared = 0.75

// shared is the part of the words that a line has too.
func shared(words, line map[string]bool) float64 {
	n := 0
	for w := range words {
		if line[w] {
			n++
		}
	}
	return float64(n) / float64(len(words))
}

// remember keeps a selected text.
func (p *packer) remember(content string) { p.selected = append(p.selected, content) }

// wordsOf returns the content words of the i-th selected text. They are made when
// they are first asked for: most blocks have no turn of the assistant to compare.
func (p *packer) wordsOf(i int) map[string]bool {
	for len(p.words) <= i {
		p.words = append(p.words, contentWords(p.selected[len(p.words)]))
	}
	return p.words[i]
}

// contentWords returns the words of s that are no stopwords.
func contentWords(s string) map[string]bool {
	words := map[string]bool{}
	for _, w := range text.Words(s) {
		if !text.IsStopword(w) {
			words[w] = true
		}
	}
	return words
}
