package transcript

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// locomoEntry is one conversation of the LoCoMo form.
type locomoEntry struct {
	SampleID     string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
}

type locomoTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"` // of an image sent with it
}

const locomoTime = "3:04 pm on 2 January, 2006"

// locomo reads one conversation. Both people are users with a name, and the
// session of a turn is the conversation's and the session's name.
func (h *history) locomo(n int, entry locomoEntry) error {
	name := entry.SampleID
	if name == "" {
		name = "conversation-" + strconv.Itoa(n)
	}
	for _, number := range sessionNumbers(entry.Conversation) {
		if err := h.locomoSession(name, "session_"+strconv.Itoa(number), entry.Conversation); err != nil {
			return err
		}
	}
	return nil
}

// sessionNumbers returns the n of all members session_n, in order.
func sessionNumbers(conversation map[string]json.RawMessage) []int {
	var numbers []int
	for name := range conversation {
		digits, ok := strings.CutPrefix(name, "session_")
		if n, err := strconv.Atoi(digits); ok && err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (h *history) locomoSession(conversation, session string, members map[string]json.RawMessage) error {
	var turns []json.RawMessage
	if err := json.Unmarshal(members[session], &turns); err != nil {
		h.turns++
		h.refuse("conversation %s, %s is not a list of turns: %v", conversation, session, err)
		return nil
	}
	var date string
	err := json.Unmarshal(members[session+"_date_time"], &date)
	var at time.Time
	if err == nil {
		at, err = time.Parse(locomoTime, date)
	}
	if err != nil {
		h.turns += max(1, len(turns))
		h.refuse("conversation %s, %s_date_time must be a date such as %q; its turns are left out: %v", conversation, session, locomoTime, err)
		return nil
	}
	for i, raw := range turns {
		h.turns++
		var t locomoTurn
		if err := json.Unmarshal(raw, &t); err != nil || t.Speaker == "" || t.Text == "" && t.Caption == "" {
			h.refuse("conversation %s, %s, turn %d must have speaker and text", conversation, session, i+1)
			continue
		}
		if err := h.yield(Turn{Event: t.event(conversation, session, i, at), Line: h.turns}); err != nil {
			return err
		}
	}
	return nil
}

func (t *locomoTurn) event(conversation, session string, i int, at time.Time) memory.Event {
	if t.ID == "" {
		t.ID = session + ":" + strconv.Itoa(i+1)
	}
	e := speak(t.Speaker, t.Speaker, "")
	e.Text, e.SessionID, e.Timestamp = t.Text, sessionID(conversation, session), at
	e.Metadata[memory.MetaSourceID] = t.ID
	if t.Caption != "" {
		e.Metadata[memory.MetaCaption] = t.Caption
	}
	return e
}
