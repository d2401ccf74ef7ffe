package transcript

import (
	"strconv"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// longMemEvalEntry is one question of the LongMemEval form: only its haystack
// is history.
type longMemEvalEntry struct {
	ID         string              `json:"question_id"`
	Dates      []string            `json:"haystack_dates"`
	SessionIDs []string            `json:"haystack_session_ids"`
	Sessions   [][]longMemEvalTurn `json:"haystack_sessions"`
}

type longMemEvalTurn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

const longMemEvalTime = "2006/01/02 (Mon) 15:04"

// longMemEval reads the sessions of one question.
func (h *history) longMemEval(n int, entry longMemEvalEntry) error {
	if len(entry.Dates) != len(entry.Sessions) || len(entry.SessionIDs) != len(entry.Sessions) {
		h.turns++
		h.refuse("question %d (%s) has %d haystack_sessions, %d haystack_dates and %d haystack_session_ids", n, entry.ID, len(entry.Sessions), len(entry.Dates), len(entry.SessionIDs))
		return nil
	}
	for i, turns := range entry.Sessions {
		id := entry.SessionIDs[i]
		at, err := time.Parse(longMemEvalTime, entry.Dates[i])
		if err != nil {
			h.turns += max(1, len(turns))
			h.refuse("session %s: haystack_dates must be like %q; its turns are left out: %v", id, longMemEvalTime, err)
			continue
		}
		for k, t := range turns {
			h.turns++
			if t.Role == "" || t.Content == "" {
				h.refuse("session %s, turn %d must have role and content", id, k+1)
				continue
			}
			e := speak(t.Role, "", "")
			e.Text, e.SessionID, e.Timestamp = t.Content, sessionID(id), at
			e.Metadata[memory.MetaSourceID] = id + ":" + strconv.Itoa(k+1)
			if err := h.yield(Turn{Event: e, Line: h.turns}); err != nil {
				return err
			}
		}
	}
	return nil
}
