package message

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// maxText is the most bytes of a message's own words.
const maxText = 4 << 10

// SendRequest is the input of agent.message.send.
type SendRequest struct {
	Text      string   `json:"text" cli:"arg" jsonschema:"what to say"`
	SessionID string   `json:"session_id,omitempty" jsonschema:"the session that it belongs to; that of the memories, or the running one, if absent"`
	Channel   string   `json:"channel,omitempty" jsonschema:"of the session, where that is not known"`
	UserID    string   `json:"user_id,omitempty" jsonschema:"of the session, where that is not known"`
	Memories  []string `json:"memories,omitempty" jsonschema:"handles (MEM-n) of what it rests on"`
	To        string   `json:"to,omitempty" jsonschema:"another agent of this home, instead of a person"`
	Key       string   `json:"key,omitempty" jsonschema:"makes the message once for ever; without it, the same words are one message within the cooldown"`
}

// SendResult is the output of agent.message.send.
type SendResult struct {
	Message   Message `json:"message"`
	Duplicate bool    `json:"duplicate" jsonschema:"it was there already"`
}

// Send sends a message. It goes through the ledger as all others do: what cannot be
// sent now waits or is held, and says why.
func (s *Service) Send(ctx context.Context, agent memory.AgentID, in SendRequest) (SendResult, error) {
	set, err := s.Settings(agent)
	switch {
	case err != nil:
		return SendResult{}, err
	case !set.Enabled:
		return SendResult{}, memory.WithHint(memory.Errorf(memory.ErrDenied, "messages of agent %s are switched off", agent), "set proactive.enabled to true")
	case line(in.Text) == "":
		return SendResult{}, &memory.FieldError{Field: "text", Reason: "must say something"}
	case len(in.Text) > maxText:
		return SendResult{}, &memory.FieldError{Field: "text", Reason: fmt.Sprintf("must be at most %d bytes", maxText)}
	}
	if err := s.Has(agent); err != nil {
		return SendResult{}, err
	}
	ctx, done, err := s.Hold.Begin(ctx, agent)
	if err != nil {
		return SendResult{}, err
	}
	defer done()
	d := Draft{Trigger: Sent, Lead: visible(in.Text)}
	items, err := s.restsOn(ctx, agent, in.Memories)
	if err != nil {
		return SendResult{}, err
	}
	for _, it := range items {
		d.Memories = append(d.Memories, Ref{ID: it.ID, Handle: it.Handle})
	}
	if in.To != "" {
		err = s.toAgent(set, agent, in, &d)
	} else {
		err = s.toPerson(ctx, agent, set, in, items, &d)
	}
	if err != nil {
		return SendResult{}, err
	}
	if in.Key != "" {
		d.Mark = "key " + in.Key
	}
	return s.post(ctx, agent, set, d)
}

// post adds a draft to the ledger and sends what may be sent.
func (s *Service) post(ctx context.Context, agent memory.AgentID, set Settings, d Draft) (SendResult, error) {
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return SendResult{}, err
	}
	defer release()
	m, added, err := store.add(ctx, d, set.Cooldown)
	if err != nil {
		return SendResult{}, err
	}
	if _, err := s.send(ctx, agent, set); err != nil {
		return SendResult{}, err
	}
	if d.To != "" {
		if _, err := s.deliver(ctx, agent); err != nil {
			return SendResult{}, err
		}
	}
	m, err = store.one(ctx, nil, m.ID)
	return SendResult{Message: m, Duplicate: !added}, err
}

// restsOn looks up the memories that a message names; all must be there, and
// active.
func (s *Service) restsOn(ctx context.Context, agent memory.AgentID, names []string) ([]Sourced, error) {
	if len(names) == 0 {
		return nil, nil
	}
	items, err := s.Memory.Find(ctx, agent, names)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(items, func(it Sourced) bool { return it.Handle == name || it.ID == name })
		if i < 0 || items[i].Status == memory.Forgotten {
			return nil, memory.Errorf(memory.ErrNotFound, "there is no memory %q", name)
		}
	}
	return items, nil
}

// toAgent addresses a message to another agent, where that is configured.
func (s *Service) toAgent(set Settings, agent memory.AgentID, in SendRequest, d *Draft) error {
	to, err := memory.ParseAgentID(in.To)
	switch {
	case err != nil:
		return &memory.FieldError{Field: "to", Reason: "is no agent's name: " + err.Error()}
	case to == agent:
		return &memory.FieldError{Field: "to", Reason: "must be another agent"}
	case in.SessionID != "" || in.Channel != "" || in.UserID != "":
		return &memory.FieldError{Field: "to", Reason: "goes without session_id, channel and user_id"}
	case !slices.Contains(set.Agents, in.To) && !slices.Contains(set.Agents, "*"):
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "agent %s may not write to agent %s", agent, to), "name it in proactive.agents")
	}
	d.To = to
	return s.Has(to)
}

// toPerson addresses a message to the person of a session: the one that is named,
// else the one that it is sent from, else that of its memories. What was said to
// one person in private is not sent to another.
func (s *Service) toPerson(ctx context.Context, agent memory.AgentID, set Settings, in SendRequest, items []Sourced, d *Draft) error {
	w, err := s.look(ctx, agent, items)
	if err != nil {
		return err
	}
	var evidence []memory.Evidence
	for _, it := range items {
		evidence = append(evidence, it.Evidence...)
	}
	from, hold, reason := w.address(evidence)
	here, inSession := memory.SessionOf(ctx)
	id := in.SessionID
	if id == "" && inSession {
		id = here.ID
	}
	if id == "" && in.Channel == "" && in.UserID == "" {
		d.Address, d.Hold, d.Reason = from, hold, reason
		return nil
	}
	if id == "" {
		id = from.SessionID
	}
	sess, found, err := s.session(ctx, agent, id)
	if err != nil {
		return err
	}
	to := addressOf(id, sess, found)
	for _, f := range []struct {
		name  string
		given string
		have  *string
	}{{"channel", in.Channel, &to.Channel}, {"user_id", in.UserID, &to.UserID}} {
		switch {
		case f.given != "" && *f.have != "" && f.given != *f.have:
			return &memory.FieldError{Field: f.name, Reason: fmt.Sprintf("is not that of session %s", id)}
		case *f.have == "":
			*f.have = f.given
		}
	}
	if inSession && !viewer(ctx).sees(Message{Address: to}) {
		return memory.Errorf(memory.ErrDenied, "a message cannot be sent from session %s to another person's", here.ID)
	}
	if err := w.mayTell(evidence, to, set); err != nil {
		return err
	}
	d.Address = to
	d.Hold, d.Reason = to.held()
	return nil
}

// mayTell refuses to tell somebody what another person said in private.
func (w world) mayTell(evidence []memory.Evidence, to Address, set Settings) error {
	for _, e := range evidence {
		turn, known := w.turns[e.EventID]
		if !known {
			continue
		}
		sess, found := w.sessions[turn.Session]
		from := addressOf(turn.Session, sess, found)
		same := from.SessionID == to.SessionID || to.Private && from.Channel == to.Channel && from.UserID == to.UserID && to.UserID != ""
		if from.Private && !same && (to.Private || !set.PrivateInGroups) {
			return memory.WithHint(memory.Errorf(memory.ErrDenied, "the message rests on what was said in private in session %s", from.SessionID),
				"send it to that session, or leave the memory out")
		}
	}
	return nil
}
