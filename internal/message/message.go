package message

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Trigger says what made a message.
type Trigger string

// The triggers.
const (
	Learned       Trigger = "checkpoint"    // a checkpoint made a memory of importance 4 or 5
	Contradiction Trigger = "contradiction" // a memory took the place of one that said something else
	Verify        Trigger = "verify"        // maintenance wants a memory looked at
	Stale         Trigger = "stale"         // an important memory has not been used for long
	ReminderDue   Trigger = "reminder"      // the time of a reminder has come
	Sent          Trigger = "send"          // agent.message.send
)

// Triggers lists them all.
var Triggers = []Trigger{Learned, Contradiction, Verify, Stale, ReminderDue, Sent}

// State says where a message stands.
type State string

// The states.
const (
	Waiting   State = "waiting"   // sent at a known time, unless something holds it then
	Held      State = "held"      // something is missing or muted; a person can change that
	InInbox   State = "sent"      // in the inbox
	Acked     State = "acked"     // seen, and out of the way
	Withdrawn State = "withdrawn" // what it rests on is gone, or a newer one stands for it
)

// Why a message is held.
const (
	holdAddress = "address" // channel, user_id or session_id is not known
	holdPeople  = "people"  // its memories rest on what several people said in private
	holdMuted   = "muted"
)

// Ref is a memory that a message rests on.
type Ref struct {
	ID     string `json:"id"`
	Handle string `json:"handle"`
	// Text is what the message says of it; empty where its own words are enough, and
	// once the memory is forgotten.
	Text string `json:"text,omitempty"`

	reasons []string // of a question: why it is asked
}

// Address says whom a message is for: the session that it belongs to, and what is
// known of that.
type Address struct {
	SessionID string `json:"session_id"`
	Channel   string `json:"channel"`
	UserID    string `json:"user_id"`
	Zone      string `json:"zone"` // IANA name; "" for UTC
	Private   bool   `json:"private"`
}

// missing names the parts that a message cannot be sent without.
func (a Address) missing() []string {
	var names []string
	for _, part := range []struct{ name, value string }{{"session_id", a.SessionID}, {"channel", a.Channel}, {"user_id", a.UserID}} {
		if part.value == "" {
			names = append(names, part.name)
		}
	}
	return names
}

// location returns the addressee's time zone.
func (a Address) location() *time.Location {
	loc, err := time.LoadLocation(a.Zone)
	if err != nil { // a session's zone is checked when it is written
		return time.UTC
	}
	return loc
}

// Message is one message, and where it stands.
type Message struct {
	ID      string         `json:"id" jsonschema:"the same for every delivery of it"`
	Handle  string         `json:"handle" jsonschema:"MSG-n"`
	Agent   memory.AgentID `json:"agent"`
	Trigger Trigger        `json:"trigger"`
	Text    string         `json:"text"`
	// Memories are what it rests on.
	Memories []Ref `json:"memories"`
	Address
	From      memory.AgentID `json:"from,omitempty" jsonschema:"the agent that sent it here"`
	To        memory.AgentID `json:"to,omitempty" jsonschema:"the agent that it goes to"`
	State     State          `json:"state"`
	Reason    string         `json:"reason,omitempty" jsonschema:"why it is not sent"`
	CreatedAt time.Time      `json:"created_at"`
	DueAt     time.Time      `json:"due_at"`
	Until     *time.Time     `json:"until,omitempty" jsonschema:"when a waiting one is looked at again"`
	SentAt    *time.Time     `json:"sent_at"`
	ShownAt   *time.Time     `json:"shown_at" jsonschema:"when a chat showed it"`
	AckedAt   *time.Time     `json:"acked_at"`

	number  int64
	hold    string
	lead    string
	ownHour bool // the user named the hour: quiet hours do not hold it
}

// Draft is a message that is not in the ledger yet.
type Draft struct {
	Trigger  Trigger
	Lead     string
	Memories []Ref
	Address
	Hold, Reason string // of one that cannot be addressed
	From, To     memory.AgentID
	Due          time.Time
	OwnHour      bool
	// Mark tells apart messages of one trigger about the same memories: the time of
	// a reminder, the words of a message that was told to be sent.
	Mark string
}

// id returns the idempotency key of a draft of an agent: the same for the same
// agent, trigger, memories and mark.
func (d Draft) id(agent memory.AgentID) string {
	items := make([]string, len(d.Memories))
	for i, m := range d.Memories {
		items[i] = m.ID
	}
	slices.Sort(items)
	key := strings.Join(append([]string{string(agent), string(d.Trigger), string(d.To), d.Mark}, items...), "\x00")
	sum := sha256.Sum256([]byte(key))
	return "msg_" + hex.EncodeToString(sum[:13])
}

// render returns the text of a message: its lead, and a line for each memory with
// its handle.
func render(lead string, memories []Ref) string {
	var b strings.Builder
	b.WriteString(lead)
	var bare []string
	for _, m := range memories {
		if m.Text == "" {
			bare = append(bare, m.Handle)
			continue
		}
		fmt.Fprintf(&b, "\n- %s [%s]", m.Text, m.Handle)
	}
	if len(bare) > 0 {
		fmt.Fprintf(&b, " [%s]", strings.Join(bare, ", "))
	}
	return b.String()
}

func encodeRefs(refs []Ref) (string, error) {
	if refs == nil {
		refs = []Ref{}
	}
	raw, err := json.Marshal(refs)
	return string(raw), err
}
