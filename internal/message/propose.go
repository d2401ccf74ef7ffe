package message

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Sourced is an item as it is now, the checkpoint that made it, and when it was
// changed last.
type Sourced struct {
	memory.Item
	Checkpoint string    // id; "" for none
	ChangedAt  time.Time // its marks count; UpdatedAt does not move with those
}

// Turn is what is known of an event that an item rests on.
type Turn struct {
	Session string
	Time    time.Time
}

// world is what proposing looks things up in.
type world struct {
	now      time.Time
	since    time.Time          // what was made before was there when the ledger began
	before   map[string]Sourced // items that others took the place of, by id
	turns    map[string]Turn    // by event id
	sessions map[string]memory.Session
}

const (
	highImportance = 4
	// What a correction replaces matters from here on: what is less is not recalled
	// either.
	someImportance = 3
	// newsFor is how long after it was made a memory is news. What is older was
	// there before anybody could be told, as when proactive.enabled was off.
	newsFor = 7 * 24 * time.Hour
	// firstNews is newsFor for a ledger that begins: memory is followed within
	// moments, so what is older came with a history that was imported, restored or
	// rebuilt, or was made while messages were off.
	firstNews = time.Hour
	// lateFor is how long after its time a reminder that nobody knew of is still
	// given: a checkpoint may come late, but an old history must not ring.
	lateFor = 7 * 24 * time.Hour
)

// propose returns what changed items come to: messages, reminders, and what to let
// go of. It is a pure function.
func propose(items []Sourced, w world) step {
	var st step
	for _, it := range items {
		if it.Status != memory.Active {
			st.gone = append(st.gone, it.ID)
			if it.Status == memory.Forgotten {
				st.forgotten = append(st.forgotten, it.ID)
			}
			continue
		}
		if isReminder(it.Item) {
			st.reminders = append(st.reminders, w.reminder(it.Item))
		} else {
			st.unasked = append(st.unasked, it.ID)
		}
		if d, ok := w.news(it); ok {
			st.drafts = join(st.drafts, d)
		}
		for _, d := range w.questions(it) {
			st.drafts = join(st.drafts, d)
		}
	}
	return st
}

// join adds a draft to those of the same trigger and session, so that one
// checkpoint makes one message to a person and not one for each memory.
func join(drafts []Draft, d Draft) []Draft {
	for i := range drafts {
		if drafts[i].Trigger == d.Trigger && drafts[i].Address == d.Address && drafts[i].Hold == d.Hold && drafts[i].Lead == d.Lead {
			drafts[i].Memories = append(drafts[i].Memories, d.Memories...)
			return drafts
		}
	}
	return append(drafts, d)
}

// news returns the message that a changed item is worth.
func (w world) news(it Sourced) (Draft, bool) {
	if it.Checkpoint == "" || it.Provisional || !w.isNew(it.CreatedAt) || !w.saidLately(it.Item) {
		return Draft{}, false
	}
	old, replaces := w.before[it.Supersedes]
	replaces = replaces && it.Supersedes != ""
	if replaces && old.Provisional {
		return Draft{}, false // the same thing, told by the model that was away
	}
	ref := Ref{ID: it.ID, Handle: it.Handle, Text: line(it.Content)}
	var d Draft
	switch {
	case replaces && max(it.Importance, old.Importance) >= someImportance:
		ref.Text = fmt.Sprintf("now: %s; before: %s (%s)", line(it.Content), line(old.Content), old.Handle)
		d = Draft{Trigger: Contradiction, Lead: "This says something else than what I knew. Tell me if it is wrong:"}
	case it.Importance >= highImportance:
		d = Draft{Trigger: Learned, Lead: "I will remember this:"}
	default:
		return Draft{}, false
	}
	d.Memories = []Ref{ref}
	d.Address, d.Hold, d.Reason = w.address(it.Evidence)
	return d, true
}

// isNew reports whether what happened at a time is news.
func (w world) isNew(at time.Time) bool { return w.now.Sub(at) <= newsFor && !at.Before(w.since) }

// saidLately reports whether somebody has said lately what an item says: not only
// an imported history, nor only turns of long ago that were distilled just now.
func (w world) saidLately(it memory.Item) bool {
	for _, e := range it.Evidence {
		turn, known := w.turns[e.EventID]
		if e.SourceID == "" && (!known || w.now.Sub(turn.Time) <= newsFor) {
			return true
		}
	}
	return len(it.Evidence) == 0
}

// leads is how a question begins.
var leads = map[Trigger]string{
	Verify:        "Is this still right?",
	Stale:         "This was important, and has not come up for long. Shall I keep it?",
	Contradiction: "These do not go together. Which one is right?",
}

// questions returns what to ask about an item that is marked to be verified. They
// follow from the item, as all messages do, so neither a crash nor another look
// loses or repeats one.
func (w world) questions(it Sourced) []Draft {
	if !w.isNew(it.ChangedAt) {
		return nil
	}
	by := map[Trigger][]string{}
	for _, reason := range it.Verify {
		trigger := Verify
		switch {
		case strings.HasPrefix(reason, memory.MarkContradicts):
			trigger = Contradiction
		case reason == memory.MarkOld && it.Importance >= highImportance:
			trigger = Stale
		}
		by[trigger] = append(by[trigger], reason)
	}
	var out []Draft
	for _, trigger := range slices.Sorted(maps.Keys(by)) {
		d := Draft{Trigger: trigger, Lead: leads[trigger], Memories: []Ref{{ID: it.ID, Handle: it.Handle, Text: line(it.Content), reasons: by[trigger]}}}
		d.Address, d.Hold, d.Reason = w.address(it.Evidence)
		out = append(out, d)
	}
	return out
}

// mostAsked is how many memories one question names.
const mostAsked = 8

// ask completes a question whose memories have the reasons that are new: each is
// told with its own. The rest of a long list is found by a command.
func (d *Draft) ask() {
	reasons := map[string]bool{}
	for i, ref := range d.Memories {
		if why := strings.Join(ref.reasons, "; "); why != "" {
			d.Memories[i].Text += " (" + why + ")"
			reasons[why] = true
		}
	}
	if len(reasons) == 0 {
		return
	}
	d.Mark = strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
	if more := len(d.Memories) - mostAsked; more > 0 {
		d.Memories = d.Memories[:mostAsked]
		d.Lead += fmt.Sprintf(" (%d more: openclawssy memory list --verify)", more)
	}
}

// reminder derives from an item when to remind of it.
func (w world) reminder(it memory.Item) Reminder {
	r := Reminder{Item: it.ID, Handle: it.Handle, Text: line(it.Content), Ends: it.ValidTo}
	r.Address, r.Hold, r.Reason = w.address(it.Evidence)
	said := it.CreatedAt
	for _, e := range it.Evidence {
		if t, known := w.turns[e.EventID]; known {
			said = t.Time
		}
	}
	said = said.In(r.location())
	found, ok := parseWhen(it.Content, said)
	if !ok {
		r.Reason = "it names no time that is understood"
		return r
	}
	next := found.next(said, r.location())
	r.Rule = found
	switch {
	case next.IsZero():
		r.Reason = "its time had passed when it was said"
	case (found.Every == once || found.Every == instant) && w.now.Sub(next) > lateFor:
		r.Reason = "its time had passed long before it was noted"
	default:
		r.Next = &next
	}
	return r
}

// address returns whom evidence is for: the session of the last turn, and a
// private one where any of them is. Where that is not known, or several people
// said it in private, it says so.
func (w world) address(evidence []memory.Evidence) (a Address, hold, reason string) {
	var last Address
	var seq int64 = -1
	people := map[string]bool{}
	for _, e := range evidence {
		turn, known := w.turns[e.EventID]
		if !known || turn.Session == "" {
			continue
		}
		s, found := w.sessions[turn.Session]
		at := addressOf(turn.Session, s, found)
		if at.Private && at.UserID != "" {
			people[at.Channel+"\x00"+at.UserID] = true
		}
		if seq < 0 || at.Private && !last.Private || at.Private == last.Private && e.Seq > seq {
			last, seq = at, e.Seq
		}
	}
	if len(people) > 1 {
		return last, holdPeople, "the memory rests on what several people said in private"
	}
	if seq < 0 {
		return last, holdAddress, "session_id, channel and user_id are not known: the memory rests on no turn of a session"
	}
	hold, reason = last.held()
	return last, hold, reason
}

// addressOf returns a session's address. One that has no file, such as an imported
// conversation, is private and of nobody known.
func addressOf(id string, s memory.Session, found bool) Address {
	if !found {
		return Address{SessionID: id, Private: true}
	}
	return Address{SessionID: id, Channel: s.Channel, UserID: s.UserID, Zone: s.Zone, Private: s.Kind != memory.SessionGroup}
}

// held returns why nothing can be sent to an address; empty where it can.
func (a Address) held() (hold, reason string) {
	missing := a.missing()
	if len(missing) == 0 {
		return "", ""
	}
	if a.SessionID == "" {
		return holdAddress, strings.Join(missing, ", ") + " not known"
	}
	return holdAddress, fmt.Sprintf("session %s has no %s", a.SessionID, strings.Join(missing, ", no "))
}

const maxLine = 400 // bytes of what a message says of one memory

// visible takes out of a text what has no ink; line breaks and tabs stay.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && text.IsInvisible(r) && !text.IsJoiner(r) {
			return -1
		}
		return r
	}, s)
}

// line is a memory's content on one line, without what has no ink, and cut.
func line(content string) string {
	s := strings.Join(strings.Fields(visible(strings.ReplaceAll(content, "\r", " "))), " ")
	if _, asked, found := strings.Cut(s, " asked for a reminder: "); found {
		s = asked
	}
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// eventIDs names the turns that items rest on.
func eventIDs(items []Sourced) []string {
	ids := map[string]bool{}
	for _, it := range items {
		for _, e := range it.Evidence {
			ids[e.EventID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}
