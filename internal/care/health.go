package care

import (
	"context"
	"errors"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Health says how an agent's working memory is, and the vectors that search by
// meaning goes by.
type Health struct {
	working.Health
	Embeddings *Embeddings `json:"embeddings" jsonschema:"the vectors of passages and memories; null where they cannot be read"`
}

// Text shows the counts to a person.
func (h Health) Text() string {
	out := h.Health.Text()
	if h.Embeddings != nil && h.Embeddings.Texts > 0 {
		out += h.Embeddings.line(h.Agent)
	}
	return out
}

// Health counts what an agent's working memory holds and what of it has a vector.
// That of an unknown agent is empty and well. Vectors that cannot be read are among
// what is wrong, and no error.
func (s *Service) Health(ctx context.Context, agent memory.AgentID) (Health, error) {
	out := Health{Health: working.Health{Agent: agent, Items: map[memory.Status]int{}, Kinds: map[string]int{}, Parked: []memory.ParkedNote{}, Degraded: []string{}}}
	st, release, err := s.Items(ctx, agent)
	switch {
	case err == nil:
		out.Health, err = st.Health(ctx)
		release()
	case errors.Is(err, memory.ErrNotFound):
		err = nil
	}
	if err != nil {
		return Health{}, err
	}
	e, err := s.Embeddings(ctx, agent)
	switch {
	case ctx.Err() != nil:
		return Health{}, ctx.Err()
	case err != nil:
		out.Degraded = append(out.Degraded, "the store of vectors cannot be read: "+err.Error())
		return out, nil
	}
	out.Embeddings = &e
	for _, p := range e.problems() {
		out.Degraded = append(out.Degraded, p.Text)
	}
	return out, nil
}
