package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
)

// cronChannel is the channel of sessions that a schedule talks in.
const cronChannel = "cron"

// hookTool notes a call that was carried out. What memory itself was asked and
// has answered is no news: the graph gets to know that it was called.
func (x *turn) hookTool(a asked, result string) {
	call := graph.ToolExecution{ToolName: a.tool(), AgentID: string(x.Agent)}
	if !reflects(a.tool()) {
		call.Args, call.Result = json.RawMessage(x.rt.Redact.Text(a.Arguments)), jsonText(result)
	}
	x.hooked = append(x.hooked, func(h Hooks) { h.ToolExecuted(x.Agent, call) })
}

// hookTrim notes that turns have left the window.
func (x *turn) hookTrim(before int, gone int64) {
	p := graph.PromptCompress{OriginalTokens: json.Number(strconv.Itoa(before)), CompressedTokens: json.Number(strconv.Itoa(x.window.size)), AgentID: string(x.Agent),
		Summary: fmt.Sprintf("session %s: turns up to event %d have left the window; they can be recalled", x.session.ID, gone)}
	x.hooked = append(x.hooked, func(h Hooks) { h.PromptCompressed(x.Agent, p) })
}

// hookMessage notes the message of another agent that the turn is about.
func (x *turn) hookMessage(text string) {
	m := graph.SwarmMessage{Sender: x.Speaker, Receiver: string(x.Agent), Message: text, Payload: jsonText(x.session.ID)}
	x.hooked = append(x.hooked, func(h Hooks) { h.MessagePassed(x.Agent, m) })
}

// tellHooks tells what has happened in the turn.
func (x *turn) tellHooks() {
	if x.rt.Hooks == nil {
		return
	}
	for _, tell := range x.hooked {
		tell(x.rt.Hooks)
	}
}

// jsonText is a text as JSON; null for one that cannot be written.
func jsonText(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return raw
}

// mostTraits is how many traits a prompt tells at most.
const mostTraits = 20

// persona is the part of a scheduled run's system prompt that tells the agent's
// active traits. It changes only with them, so that the prompt begins alike from
// run to run. Trouble is a note: the run goes on without.
func (x *turn) persona(ctx context.Context) string {
	if x.session.Channel != cronChannel || x.rt.Persona == nil {
		return ""
	}
	traits, err := x.rt.Persona(ctx, x.Agent)
	if err != nil {
		x.res.Notes = append(x.res.Notes, "the persona was not asked: "+err.Error())
		return ""
	}
	if len(traits) == 0 {
		return ""
	}
	told := make([]string, 0, mostTraits)
	for _, t := range traits[:min(mostTraits, len(traits))] {
		told = append(told, fmt.Sprintf("%s (%.2f)", recall.Label(x.rt.Redact.Text(t.TraitName)), t.Strength))
	}
	return "\n\n[Persona traits active: " + strings.Join(told, ", ") + "]"
}
