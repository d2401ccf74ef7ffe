// Package meaning keeps the vectors of an agent's passages and items up to date,
// and tells how near they are to a question. What it makes never stands in the way
// of anything: a text without a vector is found by its words.
package meaning

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/embed"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Source is what makes an agent's vectors.
type Source struct {
	Provider string         // as configured, auto resolved
	Embedder embed.Embedder // nil for the built-in model
	Host     string         // where texts are sent to; "" for nowhere
	Off      bool
}

// Options are what a Service works with. All are required.
type Options struct {
	Archives memory.Borrow[*archive.Store] // up to date with the log
	Items    memory.Borrow[*working.Store] // for reading
	// Read lends the vectors that there are; ErrNotFound for none. Write makes them.
	Read, Write memory.Borrow[*vectors.Store]
	// Source says what makes an agent's vectors; model, unless empty, stands in for
	// the configured one.
	Source func(agent memory.AgentID, model string) (Source, error)
	Dir    func(memory.AgentID) (string, error) // of the agent's memory files
	Now    func() time.Time
}

// Service answers for all agents. It is safe for concurrent use.
type Service struct{ Options }

// New returns the service.
func New(o Options) *Service { return &Service{o} }

// Asked says how far CatchUp goes.
type Asked struct {
	Model string // in place of the configured one
	Anew  bool   // throw away what there is of the model first
	// MostLearned bounds the training of the built-in model to so many passages;
	// 0 for any number. Without a model it cannot make vectors.
	MostLearned int
}

// Report says what CatchUp did.
type Report struct {
	Source
	Model    string // id; "" where the built-in one has not been trained yet
	Coverage vectors.Coverage
	Made     int
	Reused   int  // of them from the same text elsewhere
	Learns   bool // in a Look: the built-in model would be trained
	Trained  bool // it was
	Tokens   int  // about, of the texts that were sent, or of those that would be
	Ready    bool // it answers questions
}

// CatchUp brings the vectors of an agent up to date. Only one process at a time
// does so for one agent: the others get ErrConflict. What is made is kept text by
// text, so that it can be interrupted at any moment and goes on where it was; an
// error leaves in the Report what there is. A model that could not be asked is
// noted with the time since when.
func (s *Service) CatchUp(ctx context.Context, agent memory.AgentID, in Asked) (Report, error) {
	src, err := s.Source(agent, in.Model)
	r := Report{Source: src}
	if err != nil || src.Off {
		return r, err
	}
	dir, err := s.Dir(agent)
	if err != nil {
		return r, err
	}
	lock := flock.New(filepath.Join(dir, "vectors.lock"), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return r, errors.Join(memory.Errorf(memory.ErrUnavailable, "lock the vectors: %w", err), lock.Close())
	}
	if !got {
		return r, errors.Join(memory.WithHint(memory.Errorf(memory.ErrConflict, "another process makes vectors for agent %s", agent), "try again when it is done; memory status shows how far it is"), lock.Close())
	}
	err = s.catchUp(ctx, agent, in, &r)
	return r, errors.Join(err, lock.Close())
}

func (s *Service) catchUp(ctx context.Context, agent memory.AgentID, in Asked, r *Report) error {
	some, err := s.note(ctx, agent, false)
	if err != nil || !some {
		return err
	}
	v, release, err := s.Write(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	w := &work{Service: s, agent: agent, store: v, report: r}
	if r.Embedder == nil {
		err = w.learn(ctx, in)
	} else {
		err = w.ask(ctx, in)
	}
	if r.Model != "" {
		var countErr error
		if r.Coverage, countErr = v.Coverage(ctx, r.Model); countErr != nil {
			return errors.Join(err, countErr)
		}
		if m, modelErr := v.Model(ctx, r.Model); modelErr == nil {
			r.Ready = m.Ready
		}
	}
	return err
}

// pageOf is how many texts are read at a time.
const pageOf = 1000

// note brings what is known of the agent's texts up to date, and reports whether
// there are any. With again every one is looked at.
func (s *Service) note(ctx context.Context, agent memory.AgentID, again bool) (bool, error) {
	a, releaseArchive, err := s.Archives(ctx, agent)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return false, err
	}
	if err == nil {
		defer releaseArchive()
	}
	items, releaseItems, itemsErr := s.Items(ctx, agent)
	if itemsErr != nil && !errors.Is(itemsErr, memory.ErrNotFound) {
		return false, itemsErr
	}
	if itemsErr == nil {
		defer releaseItems()
	}
	v, release, readErr := s.Read(ctx, agent)
	if errors.Is(readErr, memory.ErrNotFound) {
		some, err := anything(ctx, a, items)
		if err != nil || !some {
			return false, err
		}
		v, release, readErr = s.Write(ctx, agent)
	}
	if readErr != nil {
		return false, readErr
	}
	defer release()
	for {
		err := noteAll(ctx, v, a, items, again)
		if !errors.Is(err, memory.ErrConflict) { // an erasure notes too
			return true, err
		}
	}
}

// anything reports whether an agent has a text.
func anything(ctx context.Context, a *archive.Store, items *working.Store) (bool, error) {
	if a != nil {
		x, err := a.Extent(ctx)
		if err != nil || x.Passages > 0 {
			return x.Passages > 0, err
		}
	}
	if items == nil {
		return false, nil
	}
	got, err := items.ChangedSince(ctx, working.Mark{}, 1)
	return len(got.Items) > 0, err
}

func noteAll(ctx context.Context, v *vectors.Store, a *archive.Store, items *working.Store, again bool) error {
	if a != nil {
		if err := notePassages(ctx, v, a, again); err != nil {
			return err
		}
	}
	if items == nil {
		return nil
	}
	return noteItems(ctx, v, items, again)
}

// lastPassage is behind every passage.
const lastPassage = 1 << 60

func notePassages(ctx context.Context, v *vectors.Store, a *archive.Store, again bool) error {
	at, err := v.Position(ctx)
	if err != nil {
		return err
	}
	now, err := a.Extent(ctx)
	if err != nil {
		return err
	}
	again = again || now.Epoch != at.Epoch || now.Passages < at.Passages
	n := at.Passages
	if again {
		n = 0
	}
	for {
		page, err := a.After(ctx, n, pageOf)
		if err != nil {
			return err
		}
		var texts []vectors.Noted
		last := n
		for _, e := range page {
			if last, err = archive.ParseHandle(e.Handle); err != nil {
				return err
			}
			if whole := PassageText(e); whole != "" {
				texts = append(texts, vectors.Noted{ID: vectors.OfPassage(last), Hash: vectors.HashOf(whole)})
			}
		}
		done := len(page) < pageOf
		to := at
		switch {
		case done: // suppressed passages at the end are not in the page
			to.Passages, to.Epoch = max(last, now.Passages), now.Epoch
		case !again:
			to.Passages = last
		}
		var within []vectors.Span
		if again {
			end := last
			if done {
				end = lastPassage
			}
			within = []vectors.Span{{First: vectors.OfPassage(n + 1), Last: vectors.OfPassage(end)}}
		}
		if to != at || len(within) > 0 {
			if err := v.Note(ctx, at, to, texts, nil, within); err != nil {
				return err
			}
		}
		if done {
			return nil
		}
		at, n = to, last
	}
}

// noteItems notes the items that have changed; all of them where the mark is no
// longer known.
func noteItems(ctx context.Context, v *vectors.Store, items *working.Store, again bool) error {
	at, err := v.Position(ctx)
	if err != nil {
		return err
	}
	mark := working.Mark{Seq: at.ItemSeq, Item: at.Item}
	if again {
		mark = working.Mark{}
	}
	var texts []vectors.Noted
	var gone []vectors.ID
	for more := true; more; {
		got, err := items.ChangedSince(ctx, mark, pageOf)
		if errors.Is(err, memory.ErrNotFound) && mark != (working.Mark{}) {
			mark, again, texts, gone = working.Mark{}, true, nil, nil
			continue
		}
		if err != nil {
			return err
		}
		for _, it := range got.Items {
			n, err := itemNumber(it.Handle)
			if err != nil {
				return err
			}
			if whole := ItemText(it.Item); whole != "" {
				texts = append(texts, vectors.Noted{ID: vectors.OfItem(n), Hash: vectors.HashOf(whole)})
			} else {
				gone = append(gone, vectors.OfItem(n))
			}
		}
		mark, more = got.Last, got.More
	}
	to := at
	to.ItemSeq, to.Item = mark.Seq, mark.Item
	var within []vectors.Span
	if again {
		within = []vectors.Span{{First: vectors.OfItem(0), Last: vectors.OfItem(lastPassage)}}
	}
	if to == at && within == nil {
		return nil
	}
	return v.Note(ctx, at, to, texts, gone, within)
}

// PassageText is the text of a passage that is embedded; "" for none.
func PassageText(e memory.Episode) string { return strings.TrimSpace(e.Text + "\n" + e.Caption) }

// ItemText is the text of an item that is embedded; "" where the item is neither
// active nor archived.
func ItemText(it memory.Item) string {
	if it.Status != memory.Active && it.Status != memory.Archived {
		return ""
	}
	return strings.TrimSpace(it.Title + "\n" + it.Content)
}

func itemNumber(handle string) (int64, error) {
	var n int64
	if _, err := fmt.Sscanf(handle, "MEM-%d", &n); err != nil {
		return 0, memory.Errorf(memory.ErrInternal, "%q is no handle of an item", handle)
	}
	return n, nil
}

// Follow takes the vectors of texts that are no more recalled, at once, where the
// agent has vectors. The built-in model stays.
func (s *Service) Follow(ctx context.Context, agent memory.AgentID) error {
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if _, err := s.note(ctx, agent, false); err != nil {
		return err
	}
	return v.Fold(ctx)
}

// Forget takes the vectors of texts that are no more, at once, and where there
// were any the built-in model too, since it knows the words of what it was
// trained on. It returns how many vectors and models went. Nothing is made where
// there is nothing.
func (s *Service) Forget(ctx context.Context, agent memory.AgentID) (int, error) {
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer release()
	before, err := v.Texts(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := s.note(ctx, agent, true); err != nil {
		return 0, err
	}
	after, err := v.Texts(ctx)
	if err != nil {
		return 0, err
	}
	n := max(0, before-after)
	models, err := v.DropBuiltIn(ctx)
	if err != nil {
		return n, err
	}
	return n + models, v.Fold(ctx)
}

// progress tells how far the work is.
func progress(ctx context.Context, done, total int) {
	op.Report(ctx, op.Progress{Done: int64(done), Total: int64(total), Unit: "texts"})
}
