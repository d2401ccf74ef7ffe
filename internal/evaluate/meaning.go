package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/embed/lsa"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// Embedder makes what turns texts into vectors, for an agent that was told a corpus.
// lsa.ErrTooSmall says that the corpus is too small for it: words alone decide then.
type Embedder func(ctx context.Context, corpus iter.Seq2[lsa.Passage, error]) (embed.Embedder, error)

// LSA is the built-in Embedder.
func LSA(ctx context.Context, corpus iter.Seq2[lsa.Passage, error]) (embed.Embedder, error) {
	m, err := lsa.Train(ctx, corpus)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// meanings are the vectors of an agent's memories, held against a question one by
// one: in the few thousand of an evaluation that needs no index.
type meanings struct {
	embed.Embedder
	refs    []recall.Ref
	vectors [][]float32 // of length 1
	place   map[recall.Ref]int
}

// passages returns those of the archive, in their order.
func passages(ctx context.Context, turns *archive.Store) iter.Seq2[memory.Episode, error] {
	return func(yield func(memory.Episode, error) bool) {
		const page = 500
		for n := int64(0); ; {
			found, err := turns.After(ctx, n, page)
			if err != nil {
				yield(memory.Episode{}, err)
				return
			}
			for _, e := range found {
				if !yield(e, nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			if n, err = archive.ParseHandle(found[len(found)-1].Handle); err != nil {
				yield(memory.Episode{}, err)
				return
			}
		}
	}
}

func passageText(e memory.Episode) string { return strings.TrimSpace(e.Text + "\n" + e.Caption) }

// corpus returns the passages as a model is trained on them.
func corpus(ctx context.Context, turns *archive.Store) iter.Seq2[lsa.Passage, error] {
	return func(yield func(lsa.Passage, error) bool) {
		sessions := map[string]uint32{}
		for e, err := range passages(ctx, turns) {
			n, known := sessions[e.SessionID]
			if !known {
				n = uint32(len(sessions))
				sessions[e.SessionID] = n
			}
			if !yield(lsa.Passage{Session: n, Terms: text.Content(passageText(e))}, err) || err != nil {
				return
			}
		}
	}
}

// understand makes the vectors of all that was told; none where that is too little.
func (h *home) understand(ctx context.Context, with Embedder) error {
	if with == nil {
		return nil
	}
	e, err := with(ctx, corpus(ctx, h.turns))
	if errors.Is(err, lsa.ErrTooSmall) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make an embedder: %w", err)
	}
	h.meanings = &meanings{Embedder: e, place: map[recall.Ref]int{}}
	var refs []recall.Ref
	var texts []string
	for e, err := range passages(ctx, h.turns) {
		if err != nil {
			return err
		}
		n, err := archive.ParseHandle(e.Handle)
		if err != nil {
			return err
		}
		if s := passageText(e); s != "" {
			refs, texts = append(refs, recall.Ref{N: n}), append(texts, s)
		}
	}
	return h.meanings.add(ctx, refs, texts)
}

// understandItems adds the vectors of what was distilled.
func (h *home) understandItems(ctx context.Context) error {
	if h.meanings == nil {
		return nil
	}
	var refs []recall.Ref
	var texts []string
	for since, more := (working.Mark{}), true; more; {
		got, err := h.items.ChangedSince(ctx, since, 500)
		if err != nil {
			return err
		}
		for _, it := range got.Items {
			var n int64
			if _, err := fmt.Sscanf(it.Handle, "MEM-%d", &n); err != nil {
				return memory.Errorf(memory.ErrInternal, "%q is no handle of an item", it.Handle)
			}
			refs, texts = append(refs, recall.Ref{Item: true, N: n}), append(texts, strings.TrimSpace(it.Title+"\n"+it.Content))
		}
		since, more = got.Last, got.More
	}
	return h.meanings.add(ctx, refs, texts)
}

func (m *meanings) add(ctx context.Context, refs []recall.Ref, texts []string) error {
	const batch = 200
	for at := 0; at < len(texts); at += batch {
		list, err := m.Embed(ctx, texts[at:min(at+batch, len(texts))])
		if err != nil {
			return fmt.Errorf("make vectors: %w", err)
		}
		for i, v := range list {
			if v = embed.Unit(v); v == nil {
				continue // it has no word that the model knows
			}
			ref := refs[at+i]
			if old, known := m.place[ref]; known {
				m.vectors[old] = v
				continue
			}
			m.place[ref] = len(m.refs)
			m.refs, m.vectors = append(m.refs, ref), append(m.vectors, v)
		}
	}
	return nil
}

// ask is recall's Meaning.
func (m *meanings) ask(ctx context.Context, _ memory.AgentID, question string) (recall.Nearness, error) {
	v, err := embed.Query(ctx, m.Embedder, question)
	if err != nil {
		return nil, err
	}
	if v = embed.Unit(v); v == nil {
		return nil, memory.Errorf(memory.ErrNotFound, "the question has no word that %s knows", m.ModelID())
	}
	return &nearness{meanings: m, question: v}, nil
}

// nearness holds the memories against one question.
type nearness struct {
	*meanings
	question []float32
}

func (n *nearness) Model() string { return n.ModelID() }

func (n *nearness) cosine(i int) float64 {
	var sum float64
	for j, x := range n.vectors[i] {
		sum += float64(x) * float64(n.question[j])
	}
	return sum
}

// Nearest is that of recall.Nearness.
func (n *nearness) Nearest(k int, keep func(recall.Ref) bool) (hits []recall.Hit, mean, std float64, err error) {
	var sum, squares float64
	for i, ref := range n.refs {
		c := n.cosine(i)
		sum, squares = sum+c, squares+c*c
		if keep(ref) {
			hits = append(hits, recall.Hit{Ref: ref, Cosine: c})
		}
	}
	slices.SortStableFunc(hits, func(a, b recall.Hit) int { return cmp.Compare(b.Cosine, a.Cosine) })
	count := float64(max(1, len(n.refs)))
	mean = sum / count
	return hits[:min(k, len(hits))], mean, math.Sqrt(max(0, squares/count-mean*mean)), nil
}

// Cosines is that of recall.Nearness.
func (n *nearness) Cosines(refs []recall.Ref) ([]recall.Hit, error) {
	out := make([]recall.Hit, 0, len(refs))
	for _, ref := range refs {
		if i, known := n.place[ref]; known {
			out = append(out, recall.Hit{Ref: ref, Cosine: n.cosine(i)})
		}
	}
	return out, nil
}
