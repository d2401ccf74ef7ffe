package httpapi

import (
	"net/http"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Batch is the body of events: what one session held.
type Batch struct {
	Session Where          `json:"session" jsonschema:"the conversation that the events are of"`
	Events  []intake.Event `json:"events" jsonschema:"1 to 1000 events, in their order"`
}

// Where says which conversation events are of.
type Where struct {
	ID      string `json:"id" jsonschema:"the session's id"`
	Channel string `json:"channel,omitempty" jsonschema:"where it takes place; http if absent"`
	UserID  string `json:"user_id,omitempty" jsonschema:"id of the user"`
	Zone    string `json:"zone,omitempty" jsonschema:"the user's time zone, such as Europe/Lisbon"`
	Kind    string `json:"kind,omitempty" jsonschema:"main (private) or group"`
}

// ingest writes down events that another program tells of.
func (s *Server) ingest(w http.ResponseWriter, r *http.Request) error {
	agent, err := s.agent(r, access.Write)
	if err != nil {
		return err
	}
	var b Batch
	if err := body(r, &b); err != nil {
		return err
	}
	if b.Session.ID == "" {
		return &memory.FieldError{Field: "session.id", Reason: "must name the conversation", Hint: "any text that is its own, such as a thread's id"}
	}
	if b.Session.Channel == "" {
		b.Session.Channel = Channel
	}
	release, err := s.admit(r.Context())
	if err != nil {
		return err
	}
	defer release()
	of := memory.Session{ID: b.Session.ID, Channel: b.Session.Channel, UserID: b.Session.UserID, Zone: b.Session.Zone, Kind: b.Session.Kind}
	report, err := s.Ingest(r.Context(), agent, of, b.Events)
	if err != nil {
		return err
	}
	s.counts.events.Add(float64(report.Written))
	return s.reply(w, r, report)
}
