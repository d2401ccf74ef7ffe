package message

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// DeliverOp is the operation that a schedule runs while something is due.
const DeliverOp = "agent.message.deliver"

// Ops returns the operations on messages.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("agent.message.send", "Send a message to a person, or to another agent of this home.", op.Write, s.Send).
			WithExample(`{"text":"The report is due today.","session_id":"s1"}`),
		op.New("agent.message.inbox", "List the messages that were sent, newest first.", op.Read, s.Inbox).WithExample(`{"limit":10}`),
		op.New("agent.message.held", "List the messages that are not sent: why, and until when; and what is muted.", op.Read, s.Held).WithExample(`{}`),
		op.New("agent.message.reminders", "List the reminders: what of, and when they come next.", op.Read, s.Reminders).WithExample(`{}`),
		op.New("agent.message.explain", "Explain a message: what made it, what it rests on, what holds it, how far it has come.", op.Read, s.Explain),
		op.New("agent.message.ack", "Put a message out of the way: it was seen.", op.Write, s.Ack),
		op.New("agent.message.snooze", "Have a message come again later.", op.Write, s.Snooze).WithExample(`{"id":"MSG-3","for":"2h"}`),
		op.New("agent.message.mute", "Hold all messages, those of a trigger, or those about a memory.", op.Write, s.Mute).WithExample(`{"what":"checkpoint","for":"48h"}`),
		op.New("agent.message.unmute", "End a mute; what it held is sent.", op.Write, s.Unmute).WithExample(`{"what":"checkpoint"}`),
		op.New("agent.message.retry", "Try the failed deliveries of a message again.", op.Write, s.Retry),
		op.New(DeliverOp, "Send what is due, and carry it on to the webhook and to other agents.", op.Write,
			func(ctx context.Context, agent memory.AgentID, _ struct{}) (Delivered, error) {
				return s.deliver(ctx, agent)
			}).WithExample(`{}`),
	}
}

// Delivered is the output of agent.message.deliver.
type Delivered struct {
	Sent   []string `json:"sent" jsonschema:"handles of messages that went into the inbox"`
	Done   []string `json:"done" jsonschema:"handles and routes of deliveries that arrived"`
	Failed []string `json:"failed" jsonschema:"handles, routes and reasons of those that did not, this time"`
}

// viewer is who asks: a session in which an operation is called sees what is its
// own; the command line sees all.
func viewer(ctx context.Context) *Viewer {
	sess, inSession := memory.SessionOf(ctx)
	if !inSession {
		return nil
	}
	return &Viewer{SessionID: sess.ID, Channel: sess.Channel, UserID: sess.UserID, Private: sess.Kind != memory.SessionGroup}
}

// current lends an agent's ledger for reading, brought up to date. Where that
// fails for want of space or a lock it is lent as it is.
func (s *Service) current(ctx context.Context, agent memory.AgentID) (*Store, func(), error) {
	if _, err := s.Update(ctx, agent); err != nil {
		if !errors.Is(err, memory.ErrUnavailable) && !errors.Is(err, memory.ErrDenied) {
			return nil, nil, err
		}
		s.Log.Warn().Err(err).Str("agent", string(agent)).Msg("bring messages up to date")
	}
	return s.Read(ctx, agent)
}

// InboxRequest is the input of agent.message.inbox.
type InboxRequest struct {
	All    bool   `json:"all,omitempty" jsonschema:"also those that were acknowledged"`
	UserID string `json:"user_id,omitempty" jsonschema:"only those to this user"`
	Limit  *int   `json:"limit,omitempty" jsonschema:"most to list; 0 for all; 20 if absent"`
}

// InboxResult is the output of agent.message.inbox.
type InboxResult struct {
	Agent    memory.AgentID `json:"agent"`
	Messages []Message      `json:"messages" jsonschema:"newest first"`
	Waiting  int            `json:"waiting" jsonschema:"messages that are not sent yet; agent.message.held lists them"`
}

// Inbox lists what was sent.
func (s *Service) Inbox(ctx context.Context, agent memory.AgentID, in InboxRequest) (InboxResult, error) {
	res := InboxResult{Agent: agent, Messages: []Message{}}
	limit := 20
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 0 {
		return res, &memory.FieldError{Field: "limit", Reason: "must not be negative; 0 lists all"}
	}
	store, release, err := s.current(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return res, nil
	}
	if err != nil {
		return res, err
	}
	defer release()
	where := "to_agent = '' AND state = 'sent'"
	if in.All {
		where = "to_agent = '' AND state IN ('sent', 'acked')"
	}
	v := viewer(ctx)
	all, err := store.list(ctx, v, where, 0)
	if err != nil {
		return res, err
	}
	for _, m := range all {
		if (in.UserID == "" || m.UserID == in.UserID) && (limit == 0 || len(res.Messages) < limit) {
			res.Messages = append(res.Messages, m)
		}
	}
	waiting, err := store.list(ctx, v, heldWhere, 0)
	res.Waiting = len(waiting)
	return res, err
}

const heldWhere = "(state IN ('waiting', 'held') OR n IN (SELECT n FROM deliveries WHERE state <> 'done'))"

// HeldMessage is a message that is not where it should be, and its deliveries.
type HeldMessage struct {
	Message
	Deliveries []Delivery `json:"deliveries"`
}

// HeldResult is the output of agent.message.held.
type HeldResult struct {
	Agent    memory.AgentID `json:"agent"`
	Messages []HeldMessage  `json:"messages" jsonschema:"newest first: not sent, or sent and not delivered everywhere"`
	Mutes    []Mute         `json:"mutes"`
}

// Held lists what is not sent, or not delivered.
func (s *Service) Held(ctx context.Context, agent memory.AgentID, _ struct{}) (HeldResult, error) {
	res := HeldResult{Agent: agent, Messages: []HeldMessage{}, Mutes: []Mute{}}
	store, release, err := s.current(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return res, nil
	}
	if err != nil {
		return res, err
	}
	defer release()
	list, err := store.list(ctx, viewer(ctx), heldWhere, 0)
	if err != nil {
		return res, err
	}
	for _, m := range list {
		h := HeldMessage{Message: m}
		if h.Deliveries, err = store.deliveries(ctx, m.number); err != nil {
			return res, err
		}
		res.Messages = append(res.Messages, h)
	}
	res.Mutes, err = store.mutes(ctx)
	return res, err
}

// RemindersResult is the output of agent.message.reminders.
type RemindersResult struct {
	Agent     memory.AgentID `json:"agent"`
	Reminders []Reminder     `json:"reminders" jsonschema:"the next one first; those that never come last"`
}

// Reminders lists the reminders that memories ask for.
func (s *Service) Reminders(ctx context.Context, agent memory.AgentID, _ struct{}) (RemindersResult, error) {
	res := RemindersResult{Agent: agent, Reminders: []Reminder{}}
	store, release, err := s.current(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return res, nil
	}
	if err != nil {
		return res, err
	}
	defer release()
	all, err := store.reminders(ctx)
	v := viewer(ctx)
	for _, r := range all {
		if v.sees(Message{Address: r.Address}) {
			res.Reminders = append(res.Reminders, r)
		}
	}
	return res, err
}

// IDRequest names a message.
type IDRequest struct {
	ID string `json:"id" cli:"arg" jsonschema:"MSG-n, or the id of a message"`
}

// Explanation is the output of agent.message.explain.
type Explanation struct {
	Message    Message       `json:"message"`
	Made       string        `json:"made" jsonschema:"what made it"`
	Memories   []memory.Item `json:"memories" jsonschema:"what it rests on, as it is now"`
	Deliveries []Delivery    `json:"deliveries"`
	Todo       string        `json:"todo" jsonschema:"what a person may do about it; empty for nothing"`
}

// Explain says of one message why it is there and how far it has come.
func (s *Service) Explain(ctx context.Context, agent memory.AgentID, in IDRequest) (Explanation, error) {
	res := Explanation{Memories: []memory.Item{}, Deliveries: []Delivery{}}
	store, release, err := s.current(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return res, noMessage(in.ID)
	}
	if err != nil {
		return res, err
	}
	defer release()
	m, err := store.one(ctx, viewer(ctx), in.ID)
	if err != nil {
		return res, err
	}
	ids := make([]string, len(m.Memories))
	for i, r := range m.Memories {
		ids[i] = r.ID
	}
	items, err := s.Memory.Find(ctx, agent, ids)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return res, err
	}
	for _, it := range items {
		res.Memories = append(res.Memories, it.Item)
	}
	res.Message, res.Made, res.Todo = m, made[m.Trigger], todo(m)
	if m.From != "" {
		res.Made = "agent " + string(m.From) + " sent it"
	}
	res.Deliveries, err = store.deliveries(ctx, m.number)
	return res, err
}

var made = map[Trigger]string{
	Learned:       "a checkpoint made memories of importance 4 or 5",
	Contradiction: "a memory took the place of another, or two do not go together",
	Verify:        "maintenance found memories that need a look",
	Stale:         "maintenance found important memories that were not used for long",
	ReminderDue:   "the time of a reminder came",
	Sent:          "agent.message.send",
}

// todo is what a person may do about a message that is not sent.
func todo(m Message) string {
	switch {
	case m.State == Held && m.hold == holdAddress && m.SessionID != "":
		return "say who the session belongs to: openclawssy chat --session " + m.SessionID + " --user NAME; or put it out of the way: openclawssy agent message ack " + m.Handle
	case m.State == Held && m.hold == holdMuted:
		return "openclawssy agent message unmute " + strings.TrimSuffix(m.Reason, " is muted")
	case m.State == Held:
		return "look at it, and put it out of the way: openclawssy agent message ack " + m.Handle
	case m.State == Waiting:
		return "nothing: it is sent by itself"
	}
	return ""
}

// MessageResult is the output of operations on one message.
type MessageResult struct {
	Message Message `json:"message"`
}

// Ack puts a message out of the way.
func (s *Service) Ack(ctx context.Context, agent memory.AgentID, in IDRequest) (MessageResult, error) {
	return s.onOne(ctx, agent, in.ID, func(store *Store) (Message, error) { return store.ack(ctx, viewer(ctx), in.ID) })
}

// Retry has the failed deliveries of a message tried again.
func (s *Service) Retry(ctx context.Context, agent memory.AgentID, in IDRequest) (MessageResult, error) {
	return s.onOne(ctx, agent, in.ID, func(store *Store) (Message, error) { return store.retry(ctx, viewer(ctx), in.ID) })
}

// onOne runs fn on the ledger of an agent that has one.
func (s *Service) onOne(ctx context.Context, agent memory.AgentID, id string, fn func(*Store) (Message, error)) (MessageResult, error) {
	if _, release, err := s.Read(ctx, agent); errors.Is(err, memory.ErrNotFound) {
		return MessageResult{}, noMessage(id)
	} else if err != nil {
		return MessageResult{}, err
	} else {
		release()
	}
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return MessageResult{}, err
	}
	defer release()
	m, err := fn(store)
	return MessageResult{Message: m}, err
}

// SnoozeRequest is the input of agent.message.snooze.
type SnoozeRequest struct {
	ID    string `json:"id" cli:"arg" jsonschema:"MSG-n, or the id of a message"`
	For   string `json:"for,omitempty" jsonschema:"how long, such as 2h"`
	Until string `json:"until,omitempty" jsonschema:"or until when, as RFC 3339"`
}

// Snooze has a message come again later.
func (s *Service) Snooze(ctx context.Context, agent memory.AgentID, in SnoozeRequest) (MessageResult, error) {
	until, err := s.when(in.For, in.Until)
	if err != nil {
		return MessageResult{}, err
	}
	if until.IsZero() {
		return MessageResult{}, &memory.FieldError{Field: "for", Reason: "must be given, or until", Hint: "such as --for 2h"}
	}
	return s.onOne(ctx, agent, in.ID, func(store *Store) (Message, error) { return store.snooze(ctx, viewer(ctx), in.ID, until) })
}

// when reads a length or a time that must lie ahead; zero for neither.
func (s *Service) when(length, until string) (time.Time, error) {
	switch {
	case length != "" && until != "":
		return time.Time{}, &memory.FieldError{Field: "until", Reason: "goes without for"}
	case length != "":
		d, err := time.ParseDuration(length)
		if err != nil || d <= 0 || d > 10*365*24*time.Hour {
			return time.Time{}, &memory.FieldError{Field: "for", Reason: "must be a length ahead, not " + length, Hint: "such as 90m or 48h"}
		}
		return s.Now().Add(d), nil
	case until != "":
		at, err := time.Parse(time.RFC3339, until)
		if err != nil || !at.After(s.Now()) {
			return time.Time{}, &memory.FieldError{Field: "until", Reason: "must be a time ahead as RFC 3339, not " + until, Hint: "such as 2030-05-01T09:00:00+02:00"}
		}
		return at, nil
	}
	return time.Time{}, nil
}

// MuteRequest is the input of agent.message.mute.
type MuteRequest struct {
	What string `json:"what" cli:"arg" jsonschema:"all, a trigger (checkpoint, contradiction, verify, stale, reminder, send), or a memory (MEM-n)"`
	For  string `json:"for,omitempty" jsonschema:"how long, such as 48h; until it is unmuted if absent"`
}

// UnmuteRequest is the input of agent.message.unmute.
type UnmuteRequest struct {
	What string `json:"what" cli:"arg" jsonschema:"what was muted"`
}

// MuteResult is the output of agent.message.mute and unmute.
type MuteResult struct {
	Mutes []Mute `json:"mutes" jsonschema:"what is muted now"`
}

// subject checks what is to be muted.
func subject(what string) (string, error) {
	handle := strings.ToUpper(what)
	switch {
	case what == muteAll || slices.Contains(Triggers, Trigger(what)):
		return what, nil
	case strings.HasPrefix(handle, "MEM-") && len(handle) > 4 && strings.Trim(handle[4:], "0123456789") == "":
		return handle, nil
	}
	return "", &memory.FieldError{Field: "what", Reason: "must be all, a trigger or a memory, not " + what,
		Hint: "the triggers are checkpoint, contradiction, verify, stale, reminder and send"}
}

// Mute holds messages.
func (s *Service) Mute(ctx context.Context, agent memory.AgentID, in MuteRequest) (MuteResult, error) {
	until, err := s.when(in.For, "")
	if err != nil {
		return MuteResult{}, err
	}
	return s.muting(ctx, agent, in.What, func(store *Store, what string) error { return store.mute(ctx, what, until) })
}

// Unmute ends a mute, and sends what it held.
func (s *Service) Unmute(ctx context.Context, agent memory.AgentID, in UnmuteRequest) (MuteResult, error) {
	return s.muting(ctx, agent, in.What, func(store *Store, what string) error { return store.unmute(ctx, what) })
}

func (s *Service) muting(ctx context.Context, agent memory.AgentID, what string, fn func(*Store, string) error) (MuteResult, error) {
	what, err := subject(what)
	if err != nil {
		return MuteResult{}, err
	}
	if viewer(ctx) != nil && !viewer(ctx).Private {
		return MuteResult{}, memory.Errorf(memory.ErrDenied, "a group cannot mute an agent's messages")
	}
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return MuteResult{}, err
	}
	defer release()
	if err := fn(store, what); err != nil {
		return MuteResult{}, err
	}
	if _, err := s.Update(ctx, agent); err != nil {
		return MuteResult{}, err
	}
	mutes, err := store.mutes(ctx)
	return MuteResult{Mutes: mutes}, err
}

// Take brings an agent's ledger up to date and returns the messages that no chat
// has shown to a viewer yet, oldest first; each is returned once.
func (s *Service) Take(ctx context.Context, agent memory.AgentID, v Viewer) ([]Message, error) {
	store, release, err := s.current(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	return store.take(ctx, &v)
}
