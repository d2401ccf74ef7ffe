package message

import (
	"fmt"
	"strings"
	"time"
)

// Line shows a message to a person: its handle, its text, and to whom it is. It
// may be of several lines and ends without a line break.
func (m Message) Line() string {
	who := m.UserID
	switch {
	case m.To != "":
		who = "agent " + string(m.To)
	case m.From != "":
		who = "from agent " + string(m.From)
	case who == "":
		who = "nobody known"
	}
	return fmt.Sprintf("%s (%s, %s, %s) %s", m.Handle, m.Trigger, who, m.CreatedAt.In(m.location()).Format("2006-01-02 15:04"), strings.ReplaceAll(m.Text, "\n", "\n  "))
}

// standing says where a message stands, in a few words.
func (m Message) standing() string {
	switch {
	case m.Until != nil:
		return fmt.Sprintf("waits until %s: %s", m.Until.In(m.location()).Format("2006-01-02 15:04 MST"), m.Reason)
	case m.Reason != "":
		return string(m.State) + ": " + m.Reason
	}
	return string(m.State)
}

// Text shows the inbox to a person.
func (r InboxResult) Text() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Line() + "\n")
	}
	if len(r.Messages) == 0 {
		b.WriteString("no messages\n")
	}
	if r.Waiting > 0 {
		fmt.Fprintf(&b, "%d not sent or not delivered; openclawssy agent message held shows why\n", r.Waiting)
	}
	return b.String()
}

// Text shows what is held to a person.
func (r HeldResult) Text() string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s\n  %s\n", m.Line(), m.standing())
		b.WriteString(deliveryLines(m.Deliveries, m.location()))
	}
	for _, m := range r.Mutes {
		until := "until it is unmuted"
		if m.Until != nil {
			until = "until " + m.Until.Format("2006-01-02 15:04 UTC")
		}
		fmt.Fprintf(&b, "muted: %s, %s\n", m.What, until)
	}
	if b.Len() == 0 {
		return "nothing is held\n"
	}
	return b.String()
}

func deliveryLines(list []Delivery, loc *time.Location) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "  %s: %s after %d attempts", d.Route, d.State, d.Attempts)
		if d.NextAt != nil {
			b.WriteString(", tried at " + d.NextAt.In(loc).Format("2006-01-02 15:04:05 MST"))
		}
		if d.Error != "" {
			b.WriteString(": " + d.Error)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Text shows the reminders to a person, one a line.
func (r RemindersResult) Text() string {
	var b strings.Builder
	for _, x := range r.Reminders {
		when := "never: " + x.Reason
		if x.Next != nil {
			when = x.Next.In(x.location()).Format("Mon 2006-01-02 15:04 MST")
			if x.Reason != "" {
				when += " (will be held: " + x.Reason + ")"
			}
		}
		fmt.Fprintf(&b, "%s %s: %s\n", x.Handle, when, x.Text)
	}
	if b.Len() == 0 {
		return "no reminders\n"
	}
	return b.String()
}

// Text explains a message to a person.
func (e Explanation) Text() string {
	var b strings.Builder
	m := e.Message
	fmt.Fprintf(&b, "%s\n  made because %s\n  session %s, channel %s, user %s\n  %s\n", m.Line(), e.Made, orNone(m.SessionID), orNone(m.Channel), orNone(m.UserID), m.standing())
	for _, it := range e.Memories {
		b.WriteString("  rests on " + it.Line() + "\n")
	}
	b.WriteString(deliveryLines(e.Deliveries, m.location()))
	if e.Todo != "" {
		b.WriteString("  " + e.Todo + "\n")
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "(not known)"
	}
	return s
}

// Text shows the message and where it stands.
func (r SendResult) Text() string {
	out := fmt.Sprintf("%s\n  %s\n", r.Message.Line(), r.Message.standing())
	if r.Duplicate {
		out += "  it was there already\n"
	}
	return out
}

// Text shows the message and where it stands.
func (r MessageResult) Text() string { return SendResult{Message: r.Message}.Text() }

// Text says what went out.
func (d Delivered) Text() string {
	if len(d.Sent)+len(d.Done)+len(d.Failed) == 0 {
		return "nothing is due\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d sent, %d delivered, %d to be tried again or failed\n", len(d.Sent), len(d.Done), len(d.Failed))
	for _, f := range d.Failed {
		b.WriteString("  " + f + "\n")
	}
	return b.String()
}

// Text lists what is muted.
func (r MuteResult) Text() string { return HeldResult{Mutes: r.Mutes}.Text() }
