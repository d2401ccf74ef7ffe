package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// LongMemEvalReport is the outcome of LongMemEval. Its figures are those of
// sessions; the others are 0.
type LongMemEvalReport struct {
	Control        bool                      `json:"control"`
	Overall        SessionMetrics            `json:"overall"`
	ByQuestionType map[string]SessionMetrics `json:"by_question_type"`
	AsShipped      *Shipped                  `json:"as_shipped,omitempty"`
}

// SessionMetrics are the figures of Metrics that rank sessions.
type SessionMetrics struct {
	Questions      int                `json:"questions"`
	SessionHitAt1  float64            `json:"session_hit_at_1"`
	SessionHitAt5  float64            `json:"session_hit_at_5"`
	SessionHitAt10 float64            `json:"session_hit_at_10"`
	SessionMRR     float64            `json:"session_mrr"`
	StandardError  map[string]float64 `json:"standard_error,omitempty"`
	LatencyP50MS   float64            `json:"latency_p50_ms"`
	LatencyP95MS   float64            `json:"latency_p95_ms"`
}

func sessionsOf(m Metrics) SessionMetrics {
	return SessionMetrics{Questions: m.Questions, SessionHitAt1: m.SessionHitAt1, SessionHitAt5: m.SessionHitAt5, SessionHitAt10: m.SessionHitAt10,
		SessionMRR: m.SessionMRR, StandardError: m.StandardError, LatencyP50MS: m.LatencyP50MS, LatencyP95MS: m.LatencyP95MS}
}

// LongMemEval measures retrieval on a file of the LongMemEval benchmark: each
// haystack goes into a fresh agent, and each question through the product's
// recall.
func LongMemEval(ctx context.Context, file io.Reader, opts RetrievalOptions) (LongMemEvalReport, error) {
	all, err := readLongMemEval(file)
	if err != nil {
		return LongMemEvalReport{}, err
	}
	answers, err := run(ctx, all, opts)
	if err != nil {
		return LongMemEvalReport{}, err
	}
	report := LongMemEvalReport{Control: opts.Control, ByQuestionType: map[string]SessionMetrics{}}
	overall, err := summarise(answers)
	if err != nil {
		return report, err
	}
	report.Overall = sessionsOf(overall)
	groups, err := byCategory(answers)
	if err != nil {
		return report, err
	}
	for name, m := range groups {
		report.ByQuestionType[name] = sessionsOf(m)
	}
	if !opts.Control {
		shipped := summariseShipped(answers)
		report.AsShipped = &shipped
	}
	return report, nil
}

// longMemEvalEntry is one question with its haystack.
type longMemEvalEntry struct {
	ID         string   `json:"question_id"`
	Type       string   `json:"question_type"`
	Question   string   `json:"question"`
	Date       string   `json:"question_date"`
	Dates      []string `json:"haystack_dates"`
	SessionIDs []string `json:"haystack_session_ids"`
	Sessions   [][]struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"haystack_sessions"`
	Answers []string `json:"answer_session_ids"`
}

// readLongMemEval reads entries one by one. Neighbouring entries over the same
// haystack are questions of one conversation.
func readLongMemEval(file io.Reader) ([]conversation, error) {
	dec := json.NewDecoder(file)
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil, memory.Errorf(memory.ErrInvalid, "LongMemEval file: must be a list of questions")
	}
	var all []conversation
	var last []string
	for n := 1; dec.More(); n++ {
		var e longMemEvalEntry
		if err := dec.Decode(&e); err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "LongMemEval file: entry %d: %w", n, err)
		}
		if len(all) == 0 || !slices.Equal(e.SessionIDs, last) {
			turns, err := e.turns()
			if err != nil {
				return nil, fmt.Errorf("LongMemEval file: entry %d: %w", n, err)
			}
			all, last = append(all, conversation{id: e.ID, turns: turns}), e.SessionIDs
		}
		at, err := longMemEvalTime(e.Date)
		if err != nil {
			return nil, fmt.Errorf("LongMemEval file: entry %d: %w", n, err)
		}
		q := question{text: e.Question, category: e.Type, at: at, sessions: map[string]bool{}}
		for _, id := range e.Answers {
			q.sessions[id] = true
		}
		all[len(all)-1].questions = append(all[len(all)-1].questions, q)
	}
	return all, nil
}

func longMemEvalTime(s string) (time.Time, error) {
	at, err := time.Parse("2006/01/02 (Mon) 15:04", s)
	if err != nil {
		return at, memory.Errorf(memory.ErrInvalid, "date: %w", err)
	}
	return at, nil
}

func (e *longMemEvalEntry) turns() ([]memory.Event, error) {
	if len(e.Dates) != len(e.Sessions) || len(e.SessionIDs) != len(e.Sessions) {
		return nil, memory.Errorf(memory.ErrInvalid, "%d sessions, %d dates and %d ids", len(e.Sessions), len(e.Dates), len(e.SessionIDs))
	}
	var out []memory.Event
	for i, session := range e.Sessions {
		at, err := longMemEvalTime(e.Dates[i])
		if err != nil {
			return nil, err
		}
		for n, t := range session {
			turn := memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Text: t.Content, SessionID: e.SessionIDs[i], Timestamp: at,
				Metadata: map[string]any{memory.MetaSourceID: fmt.Sprintf("%s:%d", e.SessionIDs[i], n+1)}}
			if t.Role == "assistant" {
				turn.Type, turn.Origin = memory.AssistantOutput, memory.OriginAssistant
			}
			out = append(out, turn)
		}
	}
	return out, nil
}
