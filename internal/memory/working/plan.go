package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// plan gathers a change before it is made: items as they will be, over the
// database as it is. It reads within the transaction that it was made with.
type plan struct {
	tx     *sql.Tx
	at     time.Time
	next   int64                   // number of the next new item
	items  map[string]*memory.Item // items touched, by id
	order  []string
	read   map[string]memory.Item // items read beforehand, by id
	before map[string]int         // version that a touched item had; 0 for a new one
	added  map[string][]string    // ids of the new items, by content
	bands  map[int64][]string     // ids of the first banded ones of order that are new, by band
	banded int
	alike  map[string][]string // handles that Options.Alike has proposed, by the id of a new item
}

func newPlan(ctx context.Context, tx *sql.Tx, at time.Time) (*plan, error) {
	p := &plan{tx: tx, at: at, items: map[string]*memory.Item{}, before: map[string]int{}, added: map[string][]string{}, bands: map[int64][]string{}}
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) + 1 FROM memory_items`).Scan(&p.next)
	return p, err
}

// touch returns an item to be changed. Its version has been raised.
func (p *plan) touch(ctx context.Context, id string) (*memory.Item, error) {
	if it, here := p.items[id]; here {
		return it, nil
	}
	it, err := p.peek(ctx, id)
	if err != nil {
		return nil, err
	}
	p.before[id] = it.Version
	it.Version++
	it.UpdatedAt = p.at
	p.items[id], p.order = &it, append(p.order, id)
	return &it, nil
}

// peek returns an item as the plan leaves it, without changing it.
func (p *plan) peek(ctx context.Context, id string) (memory.Item, error) {
	if it, here := p.items[id]; here {
		return *it, nil
	}
	if it, here := p.read[id]; here {
		return it, nil
	}
	return find(ctx, p.tx, id)
}

// readAhead reads items at once that will be asked for one by one. Ids that are
// none are left out.
func (p *plan) readAhead(ctx context.Context, ids []string) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	items, err := loadItems(ctx, p.tx, `WHERE id IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return err
	}
	p.read = make(map[string]memory.Item, len(items))
	for _, it := range items {
		p.read[it.ID] = it
	}
	return nil
}

// add adds a new item: it gets a handle, times and version 1.
func (p *plan) add(it memory.Item) *memory.Item {
	it.Handle = handleOf(p.next)
	p.next++
	it.Version, it.CreatedAt, it.UpdatedAt = 1, p.at, p.at
	if it.Evidence == nil {
		it.Evidence = []memory.Evidence{}
	}
	p.items[it.ID], p.order = &it, append(p.order, it.ID)
	p.added[it.Content] = append(p.added[it.Content], it.ID)
	return &it
}

// newIn returns the ids of the new items that are in a band. Bands are made when
// they are first asked for: an import, which compares whole contents, asks for none.
func (p *plan) newIn(band int64) []string {
	for ; p.banded < len(p.order); p.banded++ {
		id := p.order[p.banded]
		if p.before[id] > 0 {
			continue
		}
		for _, b := range LikenessOf(*p.items[id]).Bands() {
			p.bands[b] = append(p.bands[b], id)
		}
	}
	return p.bands[band]
}

// duplicate returns the item, neither superseded nor forgotten, that says the
// same as it; nil for none.
func (p *plan) duplicate(ctx context.Context, it memory.Item) (*memory.Item, error) {
	like := LikenessOf(it)
	bands := like.Bands()
	for _, b := range bands {
		for _, id := range p.newIn(b) {
			if other := p.items[id]; isLive(*other) && like.Same(LikenessOf(*other)) {
				return other, nil
			}
		}
	}
	list, err := json.Marshal(bands)
	if err != nil {
		return nil, err
	}
	candidates, err := loadItems(ctx, p.tx, `WHERE number IN
		(SELECT DISTINCT number FROM bands WHERE band IN (SELECT value FROM json_each(?)) ORDER BY number DESC LIMIT ?) ORDER BY number`,
		string(list), maxCandidates)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		if touched, here := p.items[c.ID]; here {
			c = *touched
		}
		if isLive(c) && like.Same(LikenessOf(c)) {
			return &c, nil
		}
	}
	return p.restated(ctx, it)
}

// restated returns one of the items proposed for it that says the same, as far as
// every word tells; nil for none.
func (p *plan) restated(ctx context.Context, it memory.Item) (*memory.Item, error) {
	if len(p.alike[it.ID]) == 0 {
		return nil, nil
	}
	wording := WordingOf(it)
	for _, handle := range p.alike[it.ID] {
		other, err := find(ctx, p.tx, handle)
		if isNone(err) {
			continue // proposals may be old
		}
		if err != nil {
			return nil, err
		}
		if touched, here := p.items[other.ID]; here {
			other = *touched
		}
		if w := WordingOf(other); w.Covers(wording) || wording.Covers(w) {
			return &other, nil
		}
	}
	return nil, nil
}

func isLive(it memory.Item) bool {
	return it.Status == memory.Active || it.Status == memory.Quarantined || it.Status == memory.Archived
}

// Outcomes of placing an item.
const (
	placedNew      = "created"
	placedMerged   = "merged"   // with an item that says the same
	placedRejected = "rejected" // says what a more trusted item says, or what a person has rejected
)

// place adds it, or merges it into an item that says the same. The item returned
// is the new or the merged one.
func (p *plan) place(ctx context.Context, it memory.Item) (*memory.Item, string, error) {
	same, err := p.duplicate(ctx, it)
	if err != nil {
		return nil, "", err
	}
	switch {
	case same == nil:
		return p.add(it), placedNew, nil
	case same.Reason == rejected, it.Trust.Rank() < same.Trust.Rank(), it.Status == memory.Quarantined && same.Status == memory.Active:
		return same, placedRejected, nil
	case it.Trust.Rank() > same.Trust.Rank() || it.Status == memory.Active && same.Status == memory.Quarantined:
		// Said now by someone who is believed more: a new item takes the place of
		// the old one, whose evidence would lower it.
		added := p.add(it)
		return added, placedNew, p.supersede(ctx, same.ID, added)
	}
	into, err := p.touch(ctx, same.ID)
	if err != nil {
		return nil, "", err
	}
	merge(into, it)
	return into, placedMerged, nil
}

// merge takes the evidence of it, which says the same, into item.
func merge(into *memory.Item, it memory.Item) {
	fresh := 0
	for _, ev := range it.Evidence {
		if !slices.Contains(into.Evidence, ev) {
			into.Evidence = append(into.Evidence, ev)
			fresh++
		}
	}
	if fresh > 0 || len(it.Evidence) == 0 {
		into.Confidence = Agreed(into.Confidence, it.Confidence)
	}
	into.Importance = max(into.Importance, it.Importance)
	if wordCount(it.Content) > wordCount(into.Content) {
		into.Content = it.Content
	}
	if into.Status == memory.Archived {
		into.Status, into.Reason = memory.Active, ""
	}
	into.Provisional = into.Provisional && it.Provisional
	if from, to := firstSet(into.ValidFrom, it.ValidFrom), firstSet(into.ValidTo, it.ValidTo); from == nil || to == nil || !to.Before(*from) {
		into.ValidFrom, into.ValidTo = from, to
	}
}

func firstSet(a, b *time.Time) *time.Time {
	if a != nil {
		return a
	}
	return b
}

// Agreed is the confidence in what two sources say: half of the second one's
// belief counts against the doubt that the surer one leaves. Rounded to
// thousandths, so that it reads well.
func Agreed(a, b float64) float64 {
	high, low := max(a, b), min(a, b)
	return math.Round((high+(1-high)*low/2)*1000) / 1000
}

// supersede marks the item of that id, or the newest one that has replaced it,
// as replaced by the other.
func (p *plan) supersede(ctx context.Context, id string, by *memory.Item) error {
	for {
		cur, err := p.peek(ctx, id)
		if err != nil {
			return err
		}
		if cur.Status != memory.Superseded || cur.SupersededBy == "" || cur.SupersededBy == by.ID {
			break
		}
		id = cur.SupersededBy
	}
	cur, err := p.peek(ctx, id)
	if err != nil || id == by.ID || cur.Status == memory.Forgotten {
		return err
	}
	old, err := p.touch(ctx, id)
	if err != nil {
		return err
	}
	until := p.at
	if by.ValidFrom != nil {
		until = *by.ValidFrom
	}
	if old.ValidFrom != nil && until.Before(*old.ValidFrom) {
		until = *old.ValidFrom
	}
	if old.ValidTo == nil || until.Before(*old.ValidTo) {
		old.ValidTo = &until
	}
	old.Status, old.SupersededBy, old.Reason = memory.Superseded, by.ID, ""
	by.Supersedes = old.ID
	return nil
}

// withdraw takes an item out of use, and brings back what it had replaced.
func (p *plan) withdraw(ctx context.Context, id string, status memory.Status, reason string) error {
	it, err := p.touch(ctx, id)
	if err != nil {
		return err
	}
	it.Status, it.Reason = status, reason
	if it.Supersedes == "" {
		return nil
	}
	old, err := p.peek(ctx, it.Supersedes)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if old.Status != memory.Superseded || old.SupersededBy != id {
		return nil
	}
	return p.bringBack(ctx, old)
}

// bringBack gives a superseded item the state that it had before.
func (p *plan) bringBack(ctx context.Context, old memory.Item) error {
	number, err := numberOf(old.Handle)
	if err != nil {
		return err
	}
	versions, err := versionsOf(ctx, p.tx, number)
	if err != nil {
		return err
	}
	it, err := p.touch(ctx, old.ID)
	if err != nil {
		return err
	}
	it.Status, it.SupersededBy, it.ValidTo = memory.Active, "", nil
	for _, v := range slices.Backward(versions) {
		if v.Item.Status != memory.Superseded {
			it.Status, it.Reason, it.ValidTo = v.Item.Status, v.Item.Reason, v.Item.ValidTo
			break
		}
	}
	return nil
}

// trim archives the active items of lowest value above the cap, sparing those
// that the plan itself has touched, and returns their handles.
func (p *plan) trim(ctx context.Context, most int) ([]string, error) {
	if most == 0 {
		return nil, nil
	}
	active, err := p.activeCount(ctx)
	if err != nil || active <= most {
		return nil, err
	}
	touched, err := json.Marshal(p.order)
	if err != nil {
		return nil, err
	}
	lowest, err := loadItems(ctx, p.tx, `WHERE status = 'active' AND id NOT IN (SELECT value FROM json_each(?))
		ORDER BY importance, confidence, updated_at, number LIMIT ?`, string(touched), active-most)
	if err != nil {
		return nil, err
	}
	var handles []string
	for _, low := range lowest {
		it, err := p.touch(ctx, low.ID)
		if err != nil {
			return nil, err
		}
		it.Status, it.Reason = memory.Archived, "over the cap of active items"
		handles = append(handles, it.Handle)
	}
	return handles, nil
}

// activeCount returns how many items will be active after the plan.
func (p *plan) activeCount(ctx context.Context) (int, error) {
	var n int
	if err := p.tx.QueryRowContext(ctx, `SELECT count(*) FROM memory_items WHERE status = 'active'`).Scan(&n); err != nil {
		return 0, err
	}
	for id, it := range p.items {
		if it.Status == memory.Active {
			n++
		}
		if p.before[id] == 0 {
			continue
		}
		var was memory.Status
		if err := p.tx.QueryRowContext(ctx, `SELECT status FROM memory_items WHERE id = ?`, id).Scan(&was); err != nil {
			return 0, err
		}
		if was == memory.Active {
			n--
		}
	}
	return n, nil
}

// touched returns the items of the plan in the order in which they were touched.
func (p *plan) touched() []memory.Item {
	items := make([]memory.Item, len(p.order))
	for i, id := range p.order {
		items[i] = *p.items[id]
	}
	return items
}
