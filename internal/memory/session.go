package memory

import "time"

// Session is what is known of one conversation besides its turns, which live
// once, in the event log.
type Session struct {
	ID      string     `json:"id"`
	Agent   AgentID    `json:"agent"`
	Channel string     `json:"channel"` // cli, http, proxy, mcp, cron, webhook, import, …
	UserID  string     `json:"user_id"`
	Zone    string     `json:"zone"` // IANA name; "" for UTC
	Kind    string     `json:"kind"` // main (private) or group
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended"`
}

// The kinds of session.
const (
	SessionMain  = "main"
	SessionGroup = "group"
)

// Episode is a passage of a turn: what is indexed, scored, injected and cited.
type Episode struct {
	Handle    string    `json:"handle"` // "EVT-n", unique per agent; n counts passages in the order of the log
	EventID   string    `json:"event_id"`
	SourceID  string    `json:"source_id"`
	SessionID string    `json:"session_id"`
	Seq       int64     `json:"seq"`  // of its event
	Part      int       `json:"part"` // 0 for the first passage of the turn
	Turn      int       `json:"turn"` // position of the turn in its session, from 0
	Type      EventType `json:"type"`
	Origin    Origin    `json:"origin"`
	Speaker   string    `json:"speaker"`
	Text      string    `json:"text"`
	Caption   string    `json:"caption,omitempty"`
	Time      time.Time `json:"time"` // in the zone the turn was given in
}
