package session

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

var (
	sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	channel   = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,31}$`)
)

// maxUserID is the most bytes of a session's user_id.
const maxUserID = 256

// CheckID reports what is wrong with a session id, as a FieldError.
func CheckID(id string) error {
	if !sessionID.MatchString(id) {
		return &memory.FieldError{Field: "session", Reason: "must be 1 to 128 of letters, digits, - _ . and :, and start with a letter or digit"}
	}
	return nil
}

// checked validates what a caller gives and redacts the free text in it.
func (s *Store) checked(want memory.Session) (memory.Session, error) {
	if err := CheckID(want.ID); err != nil {
		return want, err
	}
	// A secret may hide behind a joint: "s-AKIA…" reads as one word, and is two.
	if hidden := joints.Replace(want.ID); s.Redact.Text(want.ID) != want.ID || s.Redact.Text(hidden) != hidden {
		return want, &memory.FieldError{Field: "session", Reason: "must not hold a secret or personal data", Hint: "use a random id"}
	}
	switch want.Kind {
	case "", memory.SessionMain, memory.SessionGroup:
	default:
		return want, &memory.FieldError{Field: "kind", Reason: "must be main or group"}
	}
	if !channel.MatchString(want.Channel) {
		return want, &memory.FieldError{Field: "channel", Reason: "must be 1 to 32 of a-z, 0-9, - _ and ., such as cli or http"}
	}
	if want.Zone != "" {
		if _, err := time.LoadLocation(want.Zone); err != nil || want.Zone == "Local" {
			return want, &memory.FieldError{Field: "zone", Reason: "must be an IANA time zone", Hint: "such as Europe/Lisbon, or leave it out for UTC"}
		}
	}
	if len(want.UserID) > maxUserID || strings.ContainsFunc(want.UserID, isControl) {
		return want, &memory.FieldError{Field: "user_id", Reason: fmt.Sprintf("must be at most %d bytes without control characters", maxUserID)}
	}
	want.UserID = s.Redact.Text(want.UserID)
	return want, nil
}

// joints are the characters that join the parts of an id.
var joints = strings.NewReplacer("-", " ", "_", " ", ".", " ", ":", " ")

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// FileName returns the name of a session's file.
func FileName(id string) string { return fileName(id) }

// fileName maps an id to a file name. No two ids share one, on a file system
// that ignores case either: whatever is not a lower-case letter, digit, dash,
// underscore or dot is written as = and two lower-case hex digits, and a name
// that grows too long for a file system ends in the hash of its id instead.
func fileName(id string) string {
	var sb strings.Builder
	for _, c := range []byte(id) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			sb.WriteByte(c)
		} else {
			fmt.Fprintf(&sb, "=%02x", c)
		}
	}
	name := sb.String()
	if len(name) > 200 {
		name = fmt.Sprintf("%s~%x", name[:100], sha256.Sum256([]byte(id)))
	}
	return name + ".json"
}
