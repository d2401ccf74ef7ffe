package memory

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// Trust is how far an item or episode may be believed, by where it came from.
type Trust string

// The trust tiers. Rank orders them.
const (
	TrustUser      Trust = "user"
	TrustAssistant Trust = "assistant"
	TrustImport    Trust = "import"
	TrustAgent     Trust = "agent"
	TrustTool      Trust = "tool"
	TrustWeb       Trust = "web"
)

var trustRank = map[Trust]int{TrustUser: 5, TrustAssistant: 4, TrustImport: 3, TrustAgent: 2, TrustTool: 1, TrustWeb: 1}

// Rank returns 1 (tool, web) to 5 (user); 0 for an unknown tier.
func (t Trust) Rank() int { return trustRank[t] }

// TrustOf returns the tier of what an origin says. What the system itself
// records is believed as an import is.
func TrustOf(o Origin) Trust {
	switch o {
	case OriginUser:
		return TrustUser
	case OriginAssistant:
		return TrustAssistant
	case OriginTool:
		return TrustTool
	case OriginWeb:
		return TrustWeb
	case OriginAgent:
		return TrustAgent
	}
	return TrustImport
}

// LowestTrust returns the tier of lowest rank, the first one on a tie; "" for
// none.
func LowestTrust(tiers ...Trust) Trust {
	var low Trust
	for _, t := range tiers {
		if low == "" || t.Rank() < low.Rank() {
			low = t
		}
	}
	return low
}

// Status says where an item stands in its life.
type Status string

// The statuses. The set is closed.
const (
	Active      Status = "active"
	Superseded  Status = "superseded"
	Archived    Status = "archived"
	Quarantined Status = "quarantined"
	Forgotten   Status = "forgotten" // a tombstone without text
)

// ParseStatus checks s.
func ParseStatus(s string) (Status, error) {
	switch st := Status(s); st {
	case Active, Superseded, Archived, Quarantined, Forgotten:
		return st, nil
	}
	return "", &FieldError{Field: "status", Reason: "must be active, superseded, archived, quarantined or forgotten, not " + quote(s)}
}

// The kinds that the system itself uses. The set is open: any name of lower-case
// letters, digits and underscores that starts with a letter is a kind.
const (
	KindPreference = "preference"
	KindFact       = "fact"
	KindDecision   = "decision"
	KindCommitment = "commitment"
	KindPerson     = "person"
	KindProject    = "project"
	KindEvent      = "event"
	KindReminder   = "reminder"
	KindIssue      = "issue"
	KindLesson     = "lesson"
	KindNote       = "note"
	KindPolicy     = "policy"
	KindIdentity   = "identity"
)

// ItemKinds are the kinds that a distiller may choose from.
var ItemKinds = []string{KindPreference, KindFact, KindDecision, KindCommitment, KindPerson, KindProject, KindEvent, KindReminder, KindIssue, KindLesson, KindNote}

// Evidence ties an item to an event that it rests on.
type Evidence struct {
	EventID  string `json:"event_id"`
	SourceID string `json:"source_id"` // the importer's own id of that event; may be empty
	Seq      int64  `json:"seq"`
	Quote    string `json:"quote"` // a span of the event's text
}

// Item is one distilled memory. Times are UTC with millisecond precision;
// ValidFrom and ValidTo bound when the content holds in the world, nil for open.
type Item struct {
	ID           string     `json:"id"`     // "mem_" and a ULID or a hash of its batch position
	Handle       string     `json:"handle"` // "MEM-n", unique per agent
	Kind         string     `json:"kind"`
	Title        string     `json:"title"`
	Content      string     `json:"content"`
	Importance   int        `json:"importance"` // 1 to 5
	Confidence   float64    `json:"confidence"` // 0 to 1
	Status       Status     `json:"status"`
	Trust        Trust      `json:"trust"`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	ValidFrom    *time.Time `json:"valid_from"`
	ValidTo      *time.Time `json:"valid_to"`
	Supersedes   string     `json:"supersedes"`              // id of the item that this one replaced; "" for none
	SupersededBy string     `json:"superseded_by,omitempty"` // id of the item that replaced this one
	Version      int        `json:"version"`                 // 1 for the first
	Provisional  bool       `json:"provisional,omitempty"`   // made while the model was away; replaced when it returns
	Reason       string     `json:"reason,omitempty"`        // why it is quarantined or archived
	Verify       []string   `json:"verify,omitempty"`        // why a person should say whether it is right; it is recalled all the same
	VerifiedAt   *time.Time `json:"verified_at,omitempty"`   // when a person last said that it is
	Evidence     []Evidence `json:"evidence"`
	Metadata     any        `json:"metadata,omitempty"`
}

// The marks of Item.Verify. Each reads on from "to verify: ".
const (
	MarkLowConfidence = "low confidence"
	MarkContradicts   = "contradicts " // and handles
	MarkOld           = "not confirmed for a long time"
	MarkParked        = "rests on events that could not be distilled yet"
	MarkGone          = "rests on events that were forgotten"
)

// Limits of an item's text, in bytes.
const (
	MaxTitle   = 200
	MaxContent = 8 << 10
)

var kindName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Validate reports the first rule that it breaks. A forgotten item has no text.
func (it Item) Validate() error {
	switch {
	case !kindName.MatchString(it.Kind):
		return &FieldError{Field: "kind", Reason: "must be 1 to 40 lower-case letters, digits and underscores, starting with a letter",
			Hint: "common kinds: preference, fact, decision, commitment, person, project, event, reminder, issue, lesson, note"}
	case it.Title == "" && it.Status != Forgotten:
		return &FieldError{Field: "title", Reason: "must not be empty"}
	case len(it.Title) > MaxTitle:
		return &FieldError{Field: "title", Reason: "must be at most " + strconv.Itoa(MaxTitle) + " bytes"}
	case it.Content == "" && it.Status != Forgotten:
		return &FieldError{Field: "content", Reason: "must not be empty"}
	case len(it.Content) > MaxContent:
		return &FieldError{Field: "content", Reason: "must be at most " + strconv.Itoa(MaxContent) + " bytes"}
	case it.Importance < 1 || it.Importance > 5:
		return &FieldError{Field: "importance", Reason: "must be between 1 and 5"}
	case math.IsNaN(it.Confidence) || it.Confidence < 0 || it.Confidence > 1:
		return &FieldError{Field: "confidence", Reason: "must be between 0 and 1"}
	case it.Trust.Rank() == 0:
		return &FieldError{Field: "trust", Reason: "must be user, assistant, import, agent, tool or web"}
	case it.ValidFrom != nil && it.ValidTo != nil && it.ValidTo.Before(*it.ValidFrom):
		return &FieldError{Field: "valid_to", Reason: "must not be before valid_from"}
	}
	_, err := ParseStatus(string(it.Status))
	return err
}

// Change is one change of an agent's memory: the whole state that it leaves,
// so that applying the changes of the log in order rebuilds the store. It is the
// metadata member "change" of a memory_change or checkpoint event.
type Change struct {
	Action string    `json:"action"` // write, update, forget, revert, approve, reject, merge, archive, import, checkpoint, …
	By     string    `json:"by"`     // user, agent, distiller, maintenance, import, …
	Why    string    `json:"why,omitempty"`
	At     time.Time `json:"at"`
	// Items are the new versions of every item touched, whole. A forgotten one
	// has its id, handle and status only.
	Items []Item `json:"items,omitempty"`
	// Suppress are the ids of events whose episodes must no longer be recalled,
	// Restore those whose episodes may be again.
	Suppress []string `json:"suppress,omitempty"`
	Restore  []string `json:"restore,omitempty"`
	// Checkpoint is set on checkpoint events.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// Range is a range of the event log by Seq, both ends included.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Checkpoint is the record of one distilled (or parked) batch of events.
type Checkpoint struct {
	ID          string      `json:"id"` // checkpoint-<timestamp>-<last seq>
	At          time.Time   `json:"at"`
	Range       Range       `json:"range"`  // events of the batch
	Events      int         `json:"events"` // turns among them
	Cursor      Cursor      `json:"cursor"` // where the next batch starts; unchanged when a parked range is retried
	Mode        string      `json:"mode"`   // model, rules, offline or parked
	Model       string      `json:"model,omitempty"`
	TokensIn    int         `json:"tokens_in,omitempty"`
	TokensOut   int         `json:"tokens_out,omitempty"`
	Created     []string    `json:"created"`     // handles
	Updated     []string    `json:"updated"`     // handles of items replaced
	Merged      []string    `json:"merged"`      // handles of items that were said again
	Quarantined []string    `json:"quarantined"` // handles
	Refused     []Refusal   `json:"refused"`
	Archived    []string    `json:"archived,omitempty"` // handles of items archived to keep under the cap
	Parked      *ParkedNote `json:"parked,omitempty"`   // set where the batch could not be distilled
	Unparked    []Range     `json:"unparked,omitempty"` // parked ranges that this batch settles
}

// Refusal is an entry of a distiller's answer that was not taken.
type Refusal struct {
	Entry  string `json:"entry"` // short and redacted
	Reason string `json:"reason"`
}

// ParkedNote says why a range of events waits to be distilled.
type ParkedNote struct {
	Range    Range  `json:"range"`
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`
}
