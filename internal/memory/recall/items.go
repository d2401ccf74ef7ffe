package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// weight of each part of an item's score besides its words, which are scored as
// a passage's are. An item has no neighbours and no session, which wItem makes
// up for: it says in one line what several turns said.
const (
	wItem       = 2.5
	wImportance = .4  // for each step above 3
	wConfidence = 1   // times confidence less one half
	wRecent     = .5  // for one changed today; halves every 60 days
	wTrust      = .15 // for each tier above import
	wPast       = -.5 // no longer valid
	wNear       = 1   // times how near it is to what the question names
)

// rankedItem is an item and its score.
type rankedItem struct {
	item   memory.Item
	scores scores
}

// findItems matches, filters and scores items into f. One source that does not
// work leaves the others.
func (s *Service) findItems(ctx context.Context, f *found, hits *archive.Hits) error {
	items, err := s.matched(ctx, f)
	more, moreErr := s.fromSources(ctx, f)
	now := s.opts.Now()
	for _, it := range append(items, more...) {
		sc := scoreItem(it, f.query, hits, now)
		sc.near = wNear * f.near[it.ID]
		sc.total += sc.near
		f.items = append(f.items, rankedItem{it, sc})
	}
	meaningErr := f.weighMeaning(f.items)
	slices.SortStableFunc(f.items, func(a, b rankedItem) int { return cmp.Compare(b.scores.total, a.scores.total) })
	return errors.Join(err, moreErr, meaningErr)
}

// matched returns the items of the working store that the session may see.
func (s *Service) matched(ctx context.Context, f *found) ([]memory.Item, error) {
	if s.opts.Items == nil {
		return nil, nil
	}
	store, release, err := s.opts.Items(ctx, f.agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	all, nearErr, err := s.byWords(ctx, f, store)
	if err != nil {
		return nil, err
	}
	akin, akinErr := f.akin(ctx, store, all)
	all = append(all, akin...)
	if f.turns, err = f.turnsOf(ctx, all); err != nil {
		return nil, err
	}
	if s.isGuarded(f) {
		all = slices.DeleteFunc(all, func(it memory.Item) bool { return s.restsOnPrivate(f, it) })
	}
	return all, errors.Join(nearErr, akinErr)
}

// byWords returns the items that hold the question's words, and those near what it
// names; none where meaning alone decides. Trouble with the latter is nearErr.
func (s *Service) byWords(ctx context.Context, f *found, store *working.Store) (all []memory.Item, nearErr, err error) {
	if f.search.mode == vector {
		return nil, nil, nil
	}
	matches, err := store.Match(ctx, f.query, working.MatchOptions{Statuses: f.statuses(), MinImportance: f.search.settings.MinImportance, Limit: f.search.matches})
	if err != nil {
		return nil, nil, err
	}
	all = make([]memory.Item, len(matches))
	for i, m := range matches {
		all[i] = m.Item
	}
	nearby, nearErr := s.nearby(ctx, f, store, all)
	return append(all, nearby...), nearErr, nil
}

// nearby returns the items near what the question names that are not among
// those known already, under the same conditions. How near all are it keeps in
// f.near.
func (s *Service) nearby(ctx context.Context, f *found, store *working.Store, known []memory.Item) ([]memory.Item, error) {
	if s.opts.Near == nil || f.search.settings.Hops == 0 || f.search.mainOnly {
		return nil, nil
	}
	var err error
	if f.near, err = s.opts.Near(ctx, f.agent, f.query, f.search.settings.Hops, f.search.matches); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	missing := maps.Clone(f.near)
	for _, it := range known {
		delete(missing, it.ID)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	found, err := store.ByID(ctx, slices.Sorted(maps.Keys(missing)))
	if err != nil {
		return nil, err
	}
	var items []memory.Item
	for _, it := range found {
		if it.Importance >= f.search.settings.MinImportance && slices.Contains(f.statuses(), it.Status) {
			items = append(items, it.Item)
		}
	}
	return items, nil
}

// akin returns the items nearest to the question in meaning that are not among those
// known already, under the same conditions.
func (f *found) akin(ctx context.Context, store *working.Store, known []memory.Item) ([]memory.Item, error) {
	if f.close == nil {
		return nil, nil
	}
	numbers := f.close.nearItems(f.search.akin)
	if len(numbers) == 0 {
		return nil, nil
	}
	found, err := store.ByNumber(ctx, numbers)
	if err != nil {
		return nil, err
	}
	var items []memory.Item
	for _, it := range found {
		if it.Importance >= f.search.settings.MinImportance && slices.Contains(f.statuses(), it.Status) &&
			!slices.ContainsFunc(known, func(k memory.Item) bool { return k.ID == it.ID }) {
			items = append(items, it)
		}
	}
	return items, nil
}

// fromSources asks the other sources, where active items may answer.
func (s *Service) fromSources(ctx context.Context, f *found) ([]memory.Item, error) {
	if !slices.Contains(f.statuses(), memory.Active) || f.search.mode == vector {
		return nil, nil
	}
	var items []memory.Item
	var failed error
	for _, source := range s.opts.Sources {
		more, err := source(ctx, f.agent, f.query, f.search.matches)
		failed = errors.Join(failed, err)
		for _, it := range more {
			if it.Importance >= f.search.settings.MinImportance {
				items = append(items, it)
			}
		}
	}
	return items, failed
}

// findOutdated learns which passages say what was replaced since. Without it a
// correction and what it corrects would be recalled side by side. Trouble leaves
// them side by side, and is named.
func (s *Service) findOutdated(ctx context.Context, f *found, read []memory.Episode) {
	if s.opts.Items == nil || f.query.Asks(text.AsksPast) || f.search.scope != everything || len(read) == 0 {
		return
	}
	store, release, err := s.opts.Items(ctx, f.agent)
	if errors.Is(err, memory.ErrNotFound) {
		return
	}
	if err == nil {
		defer release()
		ids := make([]string, len(read))
		for i, e := range read {
			ids[i] = e.EventID
		}
		var outdated map[string][]string
		if outdated, err = store.Replaced(ctx, ids); err == nil {
			if f.outdated == nil {
				f.outdated = map[string][]string{}
			}
			maps.Copy(f.outdated, outdated)
		}
	}
	if err != nil && f.failure == nil {
		f.failure = err
	}
}

// statuses are those of the items that may answer: superseded ones only where
// the question asks about the past.
func (f *found) statuses() []memory.Status {
	switch {
	case f.search.statuses != nil:
		return f.search.statuses
	case f.query.Asks(text.AsksPast):
		return []memory.Status{memory.Active, memory.Superseded}
	}
	return []memory.Status{memory.Active}
}

// turnsOf looks up the turns that the items rest on.
func (f *found) turnsOf(ctx context.Context, items []memory.Item) (map[string]archive.Turn, error) {
	if f.store == nil {
		return nil, nil
	}
	var ids []string
	for _, it := range items {
		for _, ev := range it.Evidence {
			ids = append(ids, ev.EventID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return f.store.Turns(ctx, ids)
}

// restsOnPrivate reports whether nothing of what the item rests on was said where
// a group may hear it. An item without evidence, or with evidence that is not
// in the archive, counts as private.
func (s *Service) restsOnPrivate(f *found, it memory.Item) bool {
	for _, ev := range it.Evidence {
		if turn, known := f.turns[ev.EventID]; known && !s.isPrivate(f, turn.Session) {
			return false
		}
	}
	return true
}

// scoreItem scores an item in the frame of the passages: the same terms with the
// same weights, taken from the archive, which is the larger of the two.
func scoreItem(it memory.Item, q text.Query, hits *archive.Hits, now time.Time) scores {
	terms, prefixes := q.Counts(it.Title + "\n" + it.Content)
	var out scores
	out.words, out.window = overlap(terms, hits.Main, hits.Len())
	out.prefix, _ = overlap(prefixes, hits.Prefix, hits.Len())
	out.kind = wItem + wImportance*float64(it.Importance-3) + wConfidence*(it.Confidence-.5) + wTrust*float64(it.Trust.Rank()-memory.TrustImport.Rank())
	if age := now.Sub(it.UpdatedAt).Hours() / 24; age >= 0 {
		out.kind += wRecent * math.Exp2(-age/60)
	}
	if it.Status != memory.Active || it.ValidTo != nil && it.ValidTo.Before(now) {
		out.form = wPast
	}
	for _, asked := range q.Dates {
		if it.ValidFrom != nil {
			out.said = max(out.said, asked.Match(text.DayOf(*it.ValidFrom)))
		}
	}
	out.total = out.lexical() + wSaid*out.said + out.kind + out.form
	return out
}

// leastTotal is how many passages the archive counts as where it has fewer: a
// term's weight needs something to be rare in.
const leastTotal = 20

// overlap returns the BM25 of the terms that a text holds so often, 0 to 1, and
// the share of their weight that it holds. Its length counts as the mean.
func overlap(counts []int, postings []archive.Postings, total int) (bm, share float64) {
	total = max(total, leastTotal)
	var most, held float64
	for i, n := range counts {
		var p archive.Postings
		if i < len(postings) {
			p = postings[i]
		}
		if n == 0 {
			most += weight(p, total)
			continue
		}
		w := idf(total, min(p.Rows, total))
		most += w
		held += w
		bm += w * saturated(float64(n), 1)
	}
	if most == 0 {
		return 0, 0
	}
	return min(1, bm/(most*(k1+1))), held / most
}

// itemLine writes an item as a line of a block.
func (s *Service) itemLine(f *found, it memory.Item) string {
	labels := []string{it.Kind, string(it.Trust), dateOf(f.learnt(it))}
	if it.Status != memory.Active {
		labels = append(labels, string(it.Status))
	}
	return formatLine(it.Handle, labels, it.Content, s.opts.Redact.Text)
}

// learnt is when the last of what the item rests on was said; when it was made,
// where that is not known.
func (f *found) learnt(it memory.Item) time.Time {
	var last time.Time
	for _, ev := range it.Evidence {
		if turn := f.turns[ev.EventID]; turn.Time.After(last) {
			last = turn.Time
		}
	}
	if last.IsZero() {
		return it.CreatedAt
	}
	return last
}
