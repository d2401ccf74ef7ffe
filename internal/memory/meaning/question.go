package meaning

import (
	"context"
	"errors"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
)

// Question is a question as a vector, and what it can be held against: the vectors
// of the same model. It is safe for concurrent use.
type Question struct {
	Model  string
	vector []float32
	index  *scan.Index
}

// Ask makes a vector of a question, within the time of ctx. ErrNotFound says that
// there is nothing to hold it against: no vectors, not all of them yet, or no word
// that the built-in model knows. ErrUnavailable says that the model was not
// reached, or that the vectors are still being loaded. Either way the search goes
// on by words.
func (s *Service) Ask(ctx context.Context, agent memory.AgentID, question string) (*Question, error) {
	if strings.TrimSpace(question) == "" {
		return nil, memory.Errorf(memory.ErrNotFound, "a blank question has no meaning")
	}
	src, err := s.Source(agent, "")
	if err != nil {
		return nil, err
	}
	if src.Off {
		return nil, memory.Errorf(memory.ErrNotFound, "embeddings.provider is off")
	}
	v, release, err := s.Read(ctx, agent)
	if err != nil {
		return nil, err
	}
	q, err := pose(ctx, v, src, question)
	if err != nil {
		release()
		return nil, err
	}
	if q.index, err = index(ctx, v, q.Model, release); err != nil {
		return nil, err
	}
	if src.Embedder != nil {
		if q.vector, err = embed.Query(ctx, src.Embedder, question); err != nil {
			return nil, err
		}
	}
	if err := scan.Check(q.vector, q.index.Dim()); err != nil {
		return nil, err
	}
	return q, nil
}

// pose names the model whose vectors answer questions, and has the built-in one make
// the vector of a text; any other has to be asked for it. ErrNotFound says that there
// is no built-in model yet, or that it knows no word of the text.
func pose(ctx context.Context, v *vectors.Store, src Source, said string) (*Question, error) {
	id, builtIn, err := modelOf(ctx, v, src)
	if err != nil {
		return nil, err
	}
	q := &Question{Model: id}
	if builtIn != nil {
		if q.vector = builtIn.Vector(text.Content(said)); q.vector == nil {
			return nil, memory.Errorf(memory.ErrNotFound, "the text has no word that %s knows", id)
		}
	}
	return q, nil
}

// index loads the vectors of a model. Where ctx ends before that is done it goes
// on for those who ask later. release is called once the store is not needed.
func index(ctx context.Context, v *vectors.Store, model string, release func()) (*scan.Index, error) {
	type result struct {
		index *scan.Index
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer release()
		x, err := v.Index(context.WithoutCancel(ctx), model)
		done <- result{x, err}
	}()
	select {
	case r := <-done:
		return r.index, r.err
	case <-ctx.Done():
		return nil, memory.Errorf(memory.ErrUnavailable, "the vectors of %s are being loaded: %w", model, ctx.Err())
	}
}

// Nearest returns the k nearest passages and items among those that keep takes
// (nil for all), and how the cosines of all are spread.
func (q *Question) Nearest(k int, keep func(vectors.ID) bool) (scan.Found, error) {
	if keep == nil {
		return q.index.Search(q.vector, k, nil)
	}
	return q.index.Search(q.vector, k, func(id int64) bool { return keep(vectors.ID(id)) })
}

// Cosines returns how near some passages and items are, -1 to 1. Those without a
// vector are left out.
func (q *Question) Cosines(ids []vectors.ID) (map[vectors.ID]float64, error) {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	hits, err := q.index.Scores(q.vector, list)
	if err != nil {
		return nil, err
	}
	out := make(map[vectors.ID]float64, len(hits))
	for _, h := range hits {
		out[vectors.ID(h.ID)] = h.Score
	}
	return out, nil
}

// Warm loads the vectors that an agent's questions are held against, so that no
// question's deadline has to cover it. Where there are none it does nothing.
func (s *Service) Warm(ctx context.Context, agent memory.AgentID) error {
	src, err := s.Source(agent, "")
	if err != nil || src.Off {
		return err
	}
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	id, _, err := modelOf(ctx, v, src)
	if err == nil {
		_, err = v.Index(ctx, id)
	}
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	return err
}
