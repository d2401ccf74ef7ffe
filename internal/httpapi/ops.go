package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// actorHeader says in whose name an operation changes memory: user if absent. A
// program that carries out a model's wishes says assistant, and what it writes is
// trusted as far.
const actorHeader = "X-Openclawssy-Actor"

func actorOf(r *http.Request) (memory.Origin, error) {
	switch o := memory.Origin(r.Header.Get(actorHeader)); o {
	case "":
		return memory.OriginUser, nil
	case memory.OriginUser, memory.OriginAssistant, memory.OriginAgent, memory.OriginImport:
		return o, nil
	}
	return "", &memory.FieldError{Field: actorHeader, Reason: "must be user, assistant, agent or import"}
}

// runOp runs an operation for the agent of the path, with the body as its input.
func (s *Server) runOp(w http.ResponseWriter, r *http.Request) error {
	o, err := s.Catalog.Get(r.PathValue("op"))
	if err != nil {
		if _, denied := s.agent(r, access.Read); denied != nil {
			return denied
		}
		return memory.WithHint(err, "GET /v1/ops lists the operations")
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "read the body: %w", err)
	}
	return s.call(w, r, o, raw)
}

// recall is memory.recall as an address.
func (s *Server) recall(w http.ResponseWriter, r *http.Request) error {
	o, err := s.Catalog.Get("memory.recall")
	if err != nil {
		return err
	}
	query := r.URL.Query()
	in := map[string]any{}
	for from, to := range map[string]string{"q": "text", "session": "session"} {
		if query.Has(from) {
			in[to] = query.Get(from)
		}
	}
	if text := query.Get("tokens"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return &memory.FieldError{Field: "tokens", Reason: "must be a whole number"}
		}
		in["tokens"] = n
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return s.call(w, r, o, raw)
}

// call runs an operation, keeps that it was asked for, and answers with what came
// of it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, o op.Op, raw json.RawMessage) error {
	agent, err := memory.ParseAgentID(r.PathValue("agent"))
	if err != nil {
		return err
	}
	caller := access.Caller(r.Context())
	entry := runlog.Entry{Op: o.Name, Effect: o.Effect, Caller: Channel + ":" + caller.ID, Decision: runlog.Allow}
	if err := caller.Allow(access.Needed(o.Effect), agent); err != nil {
		entry.Decision, entry.Error = runlog.Deny, err.Error()
		if caller.May(access.Read, agent) { // a stranger leaves nothing in an agent's directory
			s.audit(r.Context(), agent, entry)
		}
		return err
	}
	actor, err := actorOf(r)
	if err != nil {
		return err
	}
	release, err := s.admit(r.Context())
	if err != nil {
		return err
	}
	defer release()
	began := s.Now()
	out, err := o.Call(memory.WithActor(r.Context(), actor), agent, raw)
	entry.Outcome, entry.Millis = runlog.Outcome(err), s.Now().Sub(began).Milliseconds()
	if err != nil {
		entry.Error = err.Error()
	}
	s.audit(r.Context(), agent, entry)
	if err != nil {
		return err
	}
	return s.reply(w, r, out)
}

// audit keeps a line; one that cannot be kept is said in the log and does not
// take back what was done.
func (s *Server) audit(ctx context.Context, agent memory.AgentID, e runlog.Entry) {
	if err := s.Audit(context.WithoutCancel(ctx), agent, e); err != nil {
		s.Log.Error().Err(err).Str("agent", string(agent)).Str("op", e.Op).Msg("audit line not kept")
	}
}
