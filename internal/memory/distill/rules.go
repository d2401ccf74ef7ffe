package distill

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Rules is the distiller that needs no model. It keeps the statements of users
// that read like lasting facts, rules or plans, in their own words. It is
// deterministic and knows nothing but the batch: English well, first-person
// statements in German, Spanish and Chinese a little.
type Rules struct{}

// Distill reads the batch turn by turn. Its reply cites exact spans only. A
// statement that an offered item or an earlier entry makes already is answered as
// an entry with the same title and content and the new evidence, so that the
// store keeps one item with both; a statement that changes one supersedes it.
func (Rules) Distill(ctx context.Context, b Batch) ([]byte, Usage, error) {
	r := &reading{notes: newNotebook(b.Related), related: map[string]memory.Item{}}
	for _, it := range b.Related {
		r.related[it.ID] = it
	}
	for i, t := range b.turns() {
		if err := ctx.Err(); err != nil {
			return nil, Usage{}, fmt.Errorf("distil by rules: %w", err)
		}
		for _, d := range drafts(t) {
			r.keep(d, i)
		}
	}
	r.keepMeasurements(b)
	raw, err := json.Marshal(r.reply)
	if err != nil {
		return nil, Usage{}, fmt.Errorf("write the reply: %w", err)
	}
	return raw, Usage{Model: "rules"}, nil
}

// reading is the state of one Distill call.
type reading struct {
	notes   *notebook
	related map[string]memory.Item
	reply   Reply
}

// keep adds a draft to the reply: as a repetition, as a replacement, or as new.
func (r *reading) keep(d *draft, turn int) {
	content := d.content()
	if len(stemsOf(content)) == 0 && weekdaysOf(content) == "" && !isUnspaced(content) {
		return
	}
	item := NewItem{Kind: d.kind, Importance: d.importance, Confidence: d.confidence, Evidence: d.evidence()}
	if old, gone, kept := r.notes.replaced(d, content, turn); old != nil {
		content = withOld(content, gone, kept)
		ref := old.ref
		item.Supersedes = &ref
		r.notes.remove(old)
	} else if same := r.notes.repeated(content, d.kind, d.turn.at); same != nil {
		r.repeat(same, item)
		return
	}
	item.Content, item.Title = content, clipBytes(title(content), memory.MaxTitle)
	r.notes.add(newKnown(newRef(len(r.reply.NewItems)), item.Title, content, d.kind, d.turn.at, turn))
	r.reply.NewItems = append(r.reply.NewItems, item)
}

// repeat answers a known item again with more evidence.
func (r *reading) repeat(same *known, item NewItem) {
	item.Title, item.Content, item.Kind = same.title, same.content, same.kind
	if old, offered := r.related[same.ref]; offered {
		item.Importance, item.Confidence = old.Importance, old.Confidence
	}
	r.reply.NewItems = append(r.reply.NewItems, item)
}

// keepMeasurements keeps what an assistant reports of a tool's figures, where it
// compares two of them: the result of a measurement that the user had asked for.
func (r *reading) keepMeasurements(b Batch) {
	result := ""
	for _, e := range b.Events {
		switch {
		case e.Type == memory.ToolResult:
			result = e.Text
		case e.Type == memory.AssistantOutput && result != "":
			for _, s := range sentences(e.Text) {
				if !s.pasted && comparesFigures.MatchString(s.text) && figuresFrom(s, result) >= 2 && !steers(s.text) {
					r.reply.NewItems = append(r.reply.NewItems, NewItem{Kind: memory.KindFact, Title: clipBytes(title(oneLine(s.text)), memory.MaxTitle), Content: oneLine(s.text),
						Importance: 3, Confidence: .6, Evidence: []Quote{{EventID: e.ID, Quote: s.text}}})
				}
			}
			result = ""
		case e.Type == memory.UserMessage:
			result = ""
		}
	}
}

var comparesFigures = match(`(?i)\bfrom \S*\d.{0,40}? to \S*\d|\d.{0,60}\b(?:before|after|faster|slower|instead of|against|versus|vs\.?|down from|up from|compared)\b`)

// figuresFrom counts the numbers of a sentence that stand in a tool's result,
// also rounded.
func figuresFrom(s sentence, result string) int {
	n := 0
	for _, w := range text.Words(s.text) {
		if w[0] >= '0' && w[0] <= '9' && len(w) > 1 && strings.Contains(result, w) {
			n++
		}
	}
	return n
}
