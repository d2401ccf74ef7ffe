package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// Message is the body of runs and chat: one message to an agent.
type Message struct {
	Text    string `json:"text" jsonschema:"what is said"`
	Session string `json:"session,omitempty" jsonschema:"session to go on with; a new one if absent"`
	Channel string `json:"channel,omitempty" jsonschema:"where the conversation takes place; http if absent"`
	UserID  string `json:"user_id,omitempty" jsonschema:"id of the user"`
	Zone    string `json:"zone,omitempty" jsonschema:"the user's time zone, such as Europe/Lisbon"`
	Kind    string `json:"kind,omitempty" jsonschema:"main (private) or group"`
	Speaker string `json:"speaker,omitempty" jsonschema:"name of who speaks, where several do"`
	Origin  string `json:"origin,omitempty" jsonschema:"user if absent; agent for a message of another agent, which is data and no command"`
}

// keepAlive is how often a stream says that it is still there.
const keepAlive = 15 * time.Second

// turn reads a message for the agent of the path.
func (s *Server) turn(r *http.Request) (runtime.Turn, error) {
	agent, err := s.agent(r, access.Write)
	if err != nil {
		return runtime.Turn{}, err
	}
	var m Message
	if err := body(r, &m); err != nil {
		return runtime.Turn{}, err
	}
	if m.Channel == "" {
		m.Channel = Channel
	}
	switch origin := memory.Origin(m.Origin); origin {
	case "", memory.OriginUser, memory.OriginAgent:
	default:
		return runtime.Turn{}, &memory.FieldError{Field: "origin", Reason: "must be user or agent"}
	}
	return runtime.Turn{Agent: agent, Text: m.Text, Speaker: m.Speaker, Origin: memory.Origin(m.Origin),
		Session: memory.Session{ID: m.Session, Channel: m.Channel, UserID: m.UserID, Zone: m.Zone, Kind: m.Kind}}, nil
}

// run answers with the whole answer; as it comes where the caller asks for
// server-sent events.
func (s *Server) run(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return s.chat(w, r)
	}
	t, err := s.turn(r)
	if err != nil {
		return err
	}
	res, err := s.Run(r.Context(), t)
	if err != nil {
		return err
	}
	return s.reply(w, r, res.Answer(t.Agent))
}

// chat answers with the events delta ({"text"}), and answer (as of run) or error
// (problem details) as the last one. A caller that leaves ends the turn; what was
// said so far is kept.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	t, err := s.turn(r)
	if err != nil {
		return err
	}
	out := s.stream(w, r)
	var mu sync.Mutex // deltas come from the turn, signs of life from beside it
	send := func(event string, doc any) {
		mu.Lock()
		defer mu.Unlock()
		out.send(event, doc)
	}
	t.Stream = func(delta string) { send("delta", map[string]string{"text": delta}) }
	alive, stop := context.WithCancel(r.Context())
	var beside sync.WaitGroup
	beside.Go(func() {
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-alive.Done():
				return
			case <-tick.C:
				mu.Lock()
				if out.err == nil {
					out.raw(": still here\n\n")
				}
				mu.Unlock()
			}
		}
	})
	res, err := s.Run(r.Context(), t)
	stop()
	beside.Wait()
	if err != nil {
		send("error", problemOf(statusOf[memory.KindOf(err)], err))
		return nil
	}
	send("answer", res.Answer(t.Agent))
	return nil
}
