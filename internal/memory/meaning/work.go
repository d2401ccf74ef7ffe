package meaning

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// work is one CatchUp.
type work struct {
	*Service
	agent  memory.AgentID
	store  *vectors.Store
	report *Report
	items  map[vectors.ID]string // texts of all items, once one was needed
}

// batchOf is how many texts are handed to an embedder at once. What one call has
// made is kept before the next.
const batchOf = 64

// each hands over the texts without a vector of a model, in batches. It goes over
// every text once, whatever do makes of it.
func (w *work) each(ctx context.Context, model string, size int, do func([]vectors.Noted, []string) error) error {
	have, err := w.store.Coverage(ctx, model)
	if err != nil {
		return err
	}
	total, done := have.Missing(), 0
	for after := vectors.ID(-1); ; {
		list, err := w.store.Missing(ctx, model, after, size)
		if err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].ID
		texts, err := w.texts(ctx, list)
		if err != nil {
			return err
		}
		var noted []vectors.Noted
		var whole []string
		for _, t := range list {
			// A text that has changed since it was noted is noted again next time.
			if s := texts[t.ID]; s != "" && vectors.HashOf(s) == t.Hash {
				noted, whole = append(noted, t), append(whole, s)
			}
		}
		if len(noted) > 0 {
			if err := do(noted, whole); err != nil {
				return err
			}
		}
		done += len(list)
		progress(ctx, done, total)
	}
}

// texts reads the texts of some ids.
func (w *work) texts(ctx context.Context, list []vectors.Noted) (map[vectors.ID]string, error) {
	out := make(map[vectors.ID]string, len(list))
	var passages []int64
	for _, t := range list {
		if n, is := t.ID.Passage(); is {
			passages = append(passages, n)
			continue
		}
		if err := w.loadItems(ctx); err != nil {
			return nil, err
		}
		out[t.ID] = w.items[t.ID]
	}
	if len(passages) == 0 {
		return out, nil
	}
	a, release, err := w.Archives(ctx, w.agent)
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := a.Episodes(ctx, passages)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		n, err := archive.ParseHandle(e.Handle)
		if err != nil {
			return nil, err
		}
		out[vectors.OfPassage(n)] = PassageText(e)
	}
	return out, nil
}

func (w *work) loadItems(ctx context.Context) error {
	if w.items != nil {
		return nil
	}
	items, release, err := w.Items(ctx, w.agent)
	if err != nil {
		return err
	}
	defer release()
	w.items = map[vectors.ID]string{}
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
			w.items[vectors.OfItem(n)] = ItemText(it.Item)
		}
		mark, more = got.Last, got.More
	}
	return nil
}

// learn trains the built-in model where that is due, and gives every text its
// vector. The model before goes on answering until the new one has them all.
func (w *work) learn(ctx context.Context, in Asked) error {
	if in.Anew {
		if _, err := w.store.DropBuiltIn(ctx); err != nil {
			return err
		}
	}
	model, err := w.builtIn(ctx, in)
	if err != nil || model == nil {
		return err
	}
	w.report.Model = model.ModelID()
	err = w.each(ctx, model.ModelID(), pageOf, func(list []vectors.Noted, texts []string) error {
		var made []vectors.Made
		var none []vectors.Noted
		for i, t := range list {
			if v := model.Vector(text.Content(texts[i])); v != nil {
				made = append(made, vectors.Made{Noted: t, Vector: v})
			} else {
				none = append(none, t)
			}
		}
		w.report.Made += len(made)
		return errors.Join(w.store.Put(ctx, model.ModelID(), made), w.store.Refuse(ctx, model.ModelID(), none, "it has no word that the model knows"))
	})
	if err != nil {
		return err
	}
	return w.store.SetReady(ctx, model.ModelID(), true)
}

// builtIn returns the model that texts get their vectors from: the newest, or a
// new one where that is due; nil where there is too little to learn from.
func (w *work) builtIn(ctx context.Context, in Asked) (*lsa.Model, error) {
	_, model, err := current(ctx, w.store, false)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return nil, err
	}
	now, err := w.store.Passages(ctx)
	if err != nil {
		return nil, err
	}
	trained := 0
	if model != nil {
		trained = model.Passages()
	}
	if !lsa.Due(trained, now) || in.MostLearned > 0 && now > in.MostLearned {
		return model, nil
	}
	removals, err := w.store.Removals(ctx)
	if err != nil {
		return nil, err
	}
	fresh, err := lsa.Train(ctx, w.corpus(ctx))
	if errors.Is(err, lsa.ErrTooSmall) {
		return model, nil
	}
	if err != nil {
		return nil, err
	}
	body, err := fresh.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	w.report.Trained = true
	return fresh, w.store.AddBuiltIn(ctx, vectors.Model{ID: fresh.ModelID(), Dims: fresh.Dimensions(), Learned: fresh.Passages()}, body, removals)
}

// current returns the newest built-in model and its id. One that this build
// cannot read counts as none.
func current(ctx context.Context, v *vectors.Store, ready bool) (string, *lsa.Model, error) {
	id, made, err := v.Built(ctx, ready, func(body []byte) (any, error) { return lsa.Read(body) })
	if errors.Is(err, memory.ErrCorrupt) || errors.Is(err, memory.ErrConflict) {
		return "", nil, memory.Errorf(memory.ErrNotFound, "the model is to be trained again: %w", err)
	}
	if err != nil {
		return "", nil, err
	}
	return id, made.(*lsa.Model), nil
}

// corpus reads every passage that is recalled.
func (w *work) corpus(ctx context.Context) iter.Seq2[lsa.Passage, error] {
	return func(yield func(lsa.Passage, error) bool) {
		a, release, err := w.Archives(ctx, w.agent)
		if err != nil {
			yield(lsa.Passage{}, err)
			return
		}
		defer release()
		sessions := map[string]uint32{}
		for n := int64(0); ; {
			page, err := a.After(ctx, n, pageOf)
			if err != nil {
				yield(lsa.Passage{}, err)
				return
			}
			for _, e := range page {
				if n, err = archive.ParseHandle(e.Handle); err != nil {
					yield(lsa.Passage{}, err)
					return
				}
				s, known := sessions[e.SessionID]
				if !known {
					s = uint32(len(sessions))
					sessions[e.SessionID] = s
				}
				if !yield(lsa.Passage{Session: s, Terms: text.Content(PassageText(e))}, nil) {
					return
				}
			}
			if len(page) < pageOf {
				return
			}
		}
	}
}

// ask has a model over the network make what is missing.
func (w *work) ask(ctx context.Context, in Asked) error {
	e := w.report.Embedder
	id := e.ModelID()
	w.report.Model = id
	if in.Anew {
		if err := w.store.Drop(ctx, id); err != nil {
			return err
		}
	}
	err := w.each(ctx, id, batchOf, func(list []vectors.Noted, texts []string) error {
		return w.embed(ctx, e, list, texts)
	})
	if err != nil {
		if ctx.Err() != nil { // whoever asked has gone: that says nothing about the model
			return err
		}
		return errors.Join(err, w.store.Fail(ctx, id, err))
	}
	if err := w.store.Fail(ctx, id, nil); err != nil {
		return err
	}
	have, err := w.store.Coverage(ctx, id)
	if err != nil || have.Have == 0 || have.Missing() > 0 {
		return err
	}
	return w.store.SetReady(ctx, id, false)
}

// embed makes the vectors of one batch. A text that stands in it twice, or was
// embedded before, is sent once.
func (w *work) embed(ctx context.Context, e embed.Embedder, list []vectors.Noted, texts []string) error {
	byHash := map[vectors.Hash]string{}
	for i, t := range list {
		byHash[t.Hash] = texts[i]
	}
	rest, err := w.reuse(ctx, e, list)
	if err != nil {
		return err
	}
	var first, again []vectors.Noted
	texts = nil
	for _, t := range rest {
		if s, fresh := byHash[t.Hash]; fresh {
			first, texts = append(first, t), append(texts, s)
			delete(byHash, t.Hash)
		} else {
			again = append(again, t)
		}
	}
	for len(first) > 0 {
		n := len(first)
		if b, batches := e.(embed.Batcher); batches {
			n = b.Batch(texts)
		}
		if err := w.send(ctx, e, first[:n], texts[:n]); err != nil {
			return err
		}
		first, texts = first[n:], texts[n:]
	}
	_, err = w.reuse(ctx, e, again) // what was refused is asked again, once, next time
	return err
}

func (w *work) reuse(ctx context.Context, e embed.Embedder, list []vectors.Noted) ([]vectors.Noted, error) {
	rest, err := w.store.Reuse(ctx, e.ModelID(), list)
	w.report.Reused += len(list) - len(rest)
	w.report.Made += len(list) - len(rest)
	return rest, err
}

// send has the vectors of one request made. Where the model does not take it, the
// texts are tried one by one, so that one of them does not hold up the others.
func (w *work) send(ctx context.Context, e embed.Embedder, list []vectors.Noted, texts []string) error {
	err := w.keep(ctx, e, list, texts)
	if !refuses(err) {
		return err
	}
	if len(list) > 1 {
		for i := range list {
			if err := w.send(ctx, e, list[i:i+1], texts[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	// A model that has taken nothing yet may be the wrong one: then it is no fault
	// of the text.
	have, countErr := w.store.Coverage(ctx, e.ModelID())
	if countErr != nil || have.Have == 0 {
		return errors.Join(err, countErr)
	}
	return w.store.Refuse(ctx, e.ModelID(), list, err.Error())
}

// keep asks for vectors and keeps them.
func (w *work) keep(ctx context.Context, e embed.Embedder, list []vectors.Noted, texts []string) error {
	got, err := e.Embed(ctx, texts)
	if err != nil {
		return err
	}
	if err := w.store.Add(ctx, vectors.Model{ID: e.ModelID(), Dims: len(got[0])}); err != nil {
		return err
	}
	made := make([]vectors.Made, len(list))
	for i, t := range list {
		made[i] = vectors.Made{Noted: t, Vector: got[i]}
		if c, cuts := e.(embed.Cutter); cuts {
			_, made[i].Cut = c.Cut(texts[i])
		}
		w.report.Tokens += embed.EstimateTokens(texts[i])
	}
	if err := w.store.Put(ctx, e.ModelID(), made); err != nil {
		return err
	}
	w.report.Made += len(list)
	return nil
}

// refuses reports whether an error is about the texts and not the endpoint.
func refuses(err error) bool {
	var status *llm.StatusError
	if errors.As(err, &status) {
		return status.Status == http.StatusBadRequest || status.Status == http.StatusRequestEntityTooLarge || status.Status == http.StatusUnprocessableEntity
	}
	var reply *llm.ReplyError
	return errors.As(err, &reply) && (reply.Class == embed.NotFinite || reply.Class == embed.EmptyVector)
}
