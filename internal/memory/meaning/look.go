package meaning

import (
	"context"
	"errors"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Look says what CatchUp would do, and changes nothing: no vector is made, no text
// noted, no file written.
func (s *Service) Look(ctx context.Context, agent memory.AgentID, in Asked) (Report, error) {
	src, err := s.Source(agent, in.Model)
	r := Report{Source: src}
	if err != nil || src.Off {
		return r, err
	}
	v, release, err := s.Read(ctx, agent)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return r, err
	}
	l := looking{report: &r, seen: map[vectors.Hash]bool{}}
	if err == nil {
		defer release()
		l.store = v
	}
	trained, err := l.model(ctx)
	if err != nil {
		return r, err
	}
	if in.Anew {
		l.store, trained = nil, 0
	}
	if err := s.eachText(ctx, agent, l.take); err != nil {
		return r, err
	}
	if src.Embedder == nil {
		r.Learns = lsa.Due(trained, l.passages)
	}
	return r, nil
}

// looking is one Look.
type looking struct {
	report   *Report
	store    *vectors.Store // nil where there is nothing
	passages int
	seen     map[vectors.Hash]bool // texts that would be sent
}

// model finds the model that would be asked, and how many passages a built-in one
// has learned from.
func (l *looking) model(ctx context.Context) (trained int, err error) {
	r := l.report
	if r.Embedder != nil {
		r.Model = r.Embedder.ModelID()
	}
	if l.store == nil {
		return 0, nil
	}
	if r.Embedder == nil {
		id, model, err := current(ctx, l.store, false)
		if errors.Is(err, memory.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		r.Model, trained = id, model.Passages()
	}
	m, err := l.store.Model(ctx, r.Model)
	if errors.Is(err, memory.ErrNotFound) {
		return trained, nil
	}
	r.Ready = m.Ready
	return trained, err
}

// take looks at some texts.
func (l *looking) take(ctx context.Context, list []vectors.Noted, texts []string) error {
	r := l.report
	whole := make(map[vectors.Hash]string, len(list))
	for i, t := range list {
		whole[t.Hash] = texts[i]
		if _, is := t.ID.Passage(); is {
			l.passages++
		}
	}
	lacking := list
	if l.store != nil {
		var err error
		if lacking, err = l.store.Lacking(ctx, r.Model, list); err != nil {
			return err
		}
	}
	r.Coverage.Texts += len(list)
	r.Coverage.Have += len(list) - len(lacking)
	if r.Embedder == nil {
		return nil
	}
	for _, t := range lacking { // a text is sent once, however often it was said
		if !l.seen[t.Hash] {
			l.seen[t.Hash] = true
			r.Tokens += embed.EstimateTokens(whole[t.Hash])
		}
	}
	return nil
}

// eachText hands over the texts of an agent's passages and items, some at a time.
func (s *Service) eachText(ctx context.Context, agent memory.AgentID, take func(context.Context, []vectors.Noted, []string) error) error {
	a, release, err := s.Archives(ctx, agent)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return err
	}
	if err == nil {
		defer release()
		if err := passageTexts(ctx, a, take); err != nil {
			return err
		}
	}
	items, releaseItems, err := s.Items(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer releaseItems()
	return itemTexts(ctx, items, take)
}

func passageTexts(ctx context.Context, a *archive.Store, take func(context.Context, []vectors.Noted, []string) error) error {
	for n := int64(0); ; {
		page, err := a.After(ctx, n, pageOf)
		if err != nil {
			return err
		}
		var list []vectors.Noted
		var texts []string
		for _, e := range page {
			if n, err = archive.ParseHandle(e.Handle); err != nil {
				return err
			}
			if whole := PassageText(e); whole != "" {
				list, texts = append(list, vectors.Noted{ID: vectors.OfPassage(n), Hash: vectors.HashOf(whole)}), append(texts, whole)
			}
		}
		if err := take(ctx, list, texts); err != nil || len(page) < pageOf {
			return err
		}
	}
}

func itemTexts(ctx context.Context, items *working.Store, take func(context.Context, []vectors.Noted, []string) error) error {
	latest := map[vectors.ID]string{} // an item may stand in several pages
	for mark, more := (working.Mark{}), true; more; {
		got, err := items.ChangedSince(ctx, mark, pageOf)
		if err != nil {
			return err
		}
		for _, it := range got.Items {
			n, err := itemNumber(it.Handle)
			if err != nil {
				return err
			}
			latest[vectors.OfItem(n)] = ItemText(it.Item)
		}
		mark, more = got.Last, got.More
	}
	var list []vectors.Noted
	var texts []string
	for id, whole := range latest {
		if whole != "" {
			list, texts = append(list, vectors.Noted{ID: id, Hash: vectors.HashOf(whole)}), append(texts, whole)
		}
	}
	return take(ctx, list, texts)
}
