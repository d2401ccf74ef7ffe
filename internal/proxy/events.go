package proxy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Names of metadata, as the agent loop writes them.
const (
	metaCall      = "call_id"
	metaArguments = "arguments"
	metaPartial   = "partial"
)

// maxText is the most bytes of one event that is told.
const maxText = 1 << 20

// eventsOf returns the events of a message: none for one that is not kept, and
// several for an answer that calls tools. tools has the names of calls by their id.
func (p placed) eventsOf(tools map[string]string, run string, partial bool) []intake.Event {
	var out []intake.Event
	add := func(kind memory.EventType, text, tool string, metadata map[string]any) {
		if text = clean(text); strings.TrimSpace(text) == "" {
			return
		}
		e := intake.Event{ID: p.sourceID(), Type: kind, Text: text, Tool: tool, RunID: run, Metadata: metadata}
		if len(out) > 0 {
			e.ID += fmt.Sprintf("/%d", len(out))
		}
		if partial {
			e.Metadata = map[string]any{metaPartial: true}
		}
		out = append(out, e)
	}
	said := p.text
	if p.kinds != "" {
		said = strings.TrimSpace(p.text + "\n" + p.kinds)
	}
	switch p.role {
	case "user":
		if isOurs(p.text) {
			return nil
		}
		add(memory.UserMessage, said, "", nil)
		if len(out) > 0 {
			out[0].Speaker = speaker(p.name)
		}
	case "assistant":
		add(memory.AssistantOutput, said, "", nil)
		for _, c := range p.calls {
			add(memory.ToolCall, c.name+" "+c.arguments, c.name, map[string]any{metaCall: c.id, metaArguments: clean(c.arguments)})
		}
	case "tool", "function":
		tool := p.name
		if known := tools[p.callID]; known != "" {
			tool = known
		}
		add(memory.ToolResult, said, tool, map[string]any{metaCall: p.callID})
	}
	return out
}

// isOurs reports whether a text is a block of memory: what memory said is no news.
func isOurs(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), blockHead) }

// blockHead is how every block of memory begins.
const blockHead = "--- RELEVANT MEMORY ---"

// clean is a text as an event holds it: valid, and not too long.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// speaker is a name as it is kept.
func speaker(name string) string {
	name = strings.Join(strings.Fields(strings.ToValidUTF8(name, "")), " ")
	if len(name) > maxName {
		return ""
	}
	return name
}

const maxName = 64

// toolNames returns the names of the tools that are called in a conversation, by
// the calls' ids.
func toolNames(list []message) map[string]string {
	names := map[string]string{}
	for _, m := range list {
		for _, c := range m.calls {
			if c.id != "" {
				names[c.id] = c.name
			}
		}
	}
	return names
}
