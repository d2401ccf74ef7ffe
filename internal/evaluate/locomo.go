package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// LoCoMoReport is the outcome of LoCoMo: categories 1 to 4 are answerable,
// category 5 is made to mislead and has evidence all the same.
type LoCoMoReport struct {
	Control        bool                  `json:"control"`
	Overall        Metrics               `json:"overall"`
	Categories1To4 Metrics               `json:"categories_1_4"`
	ByCategory     map[string]Metrics    `json:"by_category"`
	Conversations  []ConversationMetrics `json:"conversations"` // categories 1 to 4
	AsShipped      *Shipped              `json:"as_shipped,omitempty"`
	Skipped        int                   `json:"questions_without_evidence"`
}

// LoCoMo measures retrieval on a file of the LoCoMo benchmark: each conversation
// goes into a fresh agent, and each question through the product's recall.
func LoCoMo(ctx context.Context, file io.Reader, opts RetrievalOptions) (LoCoMoReport, error) {
	if opts.Hops < 0 || opts.Hops > 2 {
		return LoCoMoReport{}, &memory.FieldError{Field: "hops", Reason: "must be between 0 and 2"}
	}
	all, skipped, err := readLoCoMo(file)
	if err != nil {
		return LoCoMoReport{}, err
	}
	answers, err := run(ctx, all, opts)
	if err != nil {
		return LoCoMoReport{}, err
	}
	report := LoCoMoReport{Control: opts.Control, ByCategory: map[string]Metrics{}, Skipped: skipped}
	if report.Overall, err = summarise(answers); err != nil {
		return report, err
	}
	answerable := slices.DeleteFunc(slices.Clone(answers), func(a asked) bool { return a.category == "5" })
	if report.Categories1To4, err = summarise(answerable); err != nil {
		return report, err
	}
	if report.ByCategory, err = byCategory(answers); err != nil {
		return report, err
	}
	if report.Conversations, err = byConversation(all, answerable); err != nil {
		return report, err
	}
	if !opts.Control {
		shipped := summariseShipped(answerable)
		report.AsShipped = &shipped
	}
	return report, nil
}

func byCategory(answers []asked) (map[string]Metrics, error) {
	groups, out := map[string][]asked{}, map[string]Metrics{}
	for _, a := range answers {
		groups[a.category] = append(groups[a.category], a)
	}
	for name, group := range groups {
		m, err := summarise(group)
		if err != nil {
			return nil, err
		}
		out[name] = m
	}
	return out, nil
}

func byConversation(all []conversation, answers []asked) ([]ConversationMetrics, error) {
	out := make([]ConversationMetrics, 0, len(all))
	for i, c := range all {
		m, err := summarise(slices.DeleteFunc(slices.Clone(answers), func(a asked) bool { return a.conversation != i }))
		if err != nil {
			return nil, err
		}
		sessions := map[string]bool{}
		for _, t := range c.turns {
			sessions[t.SessionID] = true
		}
		out = append(out, ConversationMetrics{ID: c.id, Turns: len(c.turns), Sessions: len(sessions), Metrics: m})
	}
	return out, nil
}

// locomoFile is the part of the benchmark's form that is read.
type locomoFile []struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// readLoCoMo reads conversations with the questions that name at least one turn
// of theirs, and counts the others.
func readLoCoMo(file io.Reader) (all []conversation, skipped int, err error) {
	var samples locomoFile
	if err := json.NewDecoder(file).Decode(&samples); err != nil {
		return nil, 0, memory.Errorf(memory.ErrInvalid, "LoCoMo file: %w", err)
	}
	for i, sample := range samples {
		c := conversation{id: sample.SampleID}
		if c.id == "" {
			c.id = strconv.Itoa(i)
		}
		if c.turns, err = locomoTurns(sample.Conversation); err != nil {
			return nil, 0, fmt.Errorf("conversation %s: %w", c.id, err)
		}
		sessions := map[string]string{}
		for _, t := range c.turns {
			sessions[t.Meta(memory.MetaSourceID)] = t.SessionID
		}
		for _, q := range sample.Questions {
			asks := question{text: q.Question, category: strconv.Itoa(q.Category), turns: map[string]bool{}, sessions: map[string]bool{}}
			for _, id := range evidenceIDs(q.Evidence) {
				if session, known := sessions[id]; known {
					asks.turns[id], asks.sessions[session] = true, true
				}
			}
			if len(asks.turns) == 0 {
				skipped++
				continue
			}
			c.questions = append(c.questions, asks)
		}
		all = append(all, c)
	}
	return all, skipped, nil
}

var evidenceID = regexp.MustCompile(`D:?(\d+):(\d+)`)

// evidenceIDs returns the turns that evidence strings name: one each, several
// ("D8:6; D9:17"), misspelled ("D:11:26"), or none.
func evidenceIDs(evidence []string) []string {
	var ids []string
	for _, e := range evidence {
		for _, m := range evidenceID.FindAllStringSubmatch(e, -1) {
			ids = append(ids, "D"+m[1]+":"+m[2])
		}
	}
	return ids
}

// locomoTurns returns the turns of all sessions in order. Both speakers are
// named users.
func locomoTurns(conversation map[string]json.RawMessage) ([]memory.Event, error) {
	var numbers []int
	for name := range conversation {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "session_")); err == nil && strings.HasPrefix(name, "session_") {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var out []memory.Event
	for _, n := range numbers {
		name := fmt.Sprintf("session_%d", n)
		var date string
		if err := json.Unmarshal(conversation[name+"_date_time"], &date); err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "%s_date_time: %w", name, err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "%s_date_time: %w", name, err)
		}
		var turns []locomoTurn
		if err := json.Unmarshal(conversation[name], &turns); err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "%s: %w", name, err)
		}
		for _, t := range turns {
			meta := map[string]any{memory.MetaSpeaker: t.Speaker, memory.MetaSourceID: t.ID}
			if t.Caption != "" {
				meta[memory.MetaCaption] = t.Caption
			}
			out = append(out, memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: t.Text, SessionID: name, Timestamp: at, Metadata: meta})
		}
	}
	return out, nil
}
