package working

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// The actions of maintenance, as they stand in an item's history.
const (
	ActionMerge   = "merge"
	ActionArchive = "archive"
	ActionVerify  = "verify"
)

// SaysTheSame begins the reason of an item that was merged into another, whose handle
// follows.
const SaysTheSame = "says the same as "

// ByMaintenance is who makes the changes of Maintain.
const ByMaintenance = "maintenance"

// Version names an item in the state that was looked at.
type Version struct {
	ID      string
	Version int
}

// Step is one thing that maintenance does to an item.
type Step struct {
	Action string // ActionMerge, ActionArchive or ActionVerify
	Item   Version
	// Merged are the items that say the same as Item, which takes their evidence
	// and their place. Of one that is less trusted it takes no evidence, which would
	// lower it.
	Merged []Version
	Reason string   // of ActionArchive: why
	Verify []string // of ActionVerify: the marks that the item has afterwards; none takes them away
}

// Maintain makes one change of steps of one action, under a lease. A step of
// which an item is no longer as it was looked at is left out; the answer says
// which were taken. What it does makes no item look newer: UpdatedAt stays.
// ErrConflict where the lease was lost. Options.Changed is not called: the caller
// calls Tell once after the last change, since whoever follows the items would
// otherwise follow each batch of them, and take the time that the changes need.
func (s *Store) Maintain(ctx context.Context, lease Lease, steps []Step) ([]bool, error) {
	taken := make([]bool, len(steps))
	_, err := s.commitQuietly(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		if err := holds(ctx, p.tx, lease); err != nil {
			return nil, err
		}
		if err := p.readAhead(ctx, namedIn(steps)); err != nil {
			return nil, err
		}
		for i, step := range steps {
			var err error
			if taken[i], err = p.maintain(ctx, step); err != nil {
				return nil, err
			}
		}
		if len(p.order) == 0 {
			return nil, nil
		}
		return &memory.Change{Action: steps[0].Action, By: ByMaintenance}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("maintain %d items: %w", len(steps), err)
	}
	return taken, nil
}

// namedIn returns the ids of the items of steps.
func namedIn(steps []Step) []string {
	var ids []string
	for _, step := range steps {
		ids = append(ids, step.Item.ID)
		for _, v := range step.Merged {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// maintain takes one step, if its items are as they were.
func (p *plan) maintain(ctx context.Context, step Step) (bool, error) {
	for _, v := range append([]Version{step.Item}, step.Merged...) {
		now, err := p.peek(ctx, v.ID)
		if isNone(err) || err == nil && now.Version != v.Version {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	it, err := p.keep(ctx, step.Item.ID)
	if err != nil {
		return false, err
	}
	switch step.Action {
	case ActionArchive:
		it.Status, it.Reason, it.Verify = memory.Archived, step.Reason, nil
	case ActionVerify:
		it.Verify = slices.Clone(step.Verify)
	case ActionMerge:
		for _, v := range step.Merged {
			if err := p.mergeInto(ctx, it, v.ID); err != nil {
				return false, err
			}
		}
	default:
		return false, memory.Errorf(memory.ErrInternal, "maintenance has no action %q", step.Action)
	}
	return true, nil
}

// keep is touch, but for the time of the last update.
func (p *plan) keep(ctx context.Context, id string) (*memory.Item, error) {
	before, err := p.peek(ctx, id)
	if err != nil {
		return nil, err
	}
	it, err := p.touch(ctx, id)
	if err != nil {
		return nil, err
	}
	it.UpdatedAt = before.UpdatedAt
	return it, nil
}

// mergeInto lets an item take the place of one that says the same. What that one
// holds until when is not touched: it is as true as ever.
func (p *plan) mergeInto(ctx context.Context, into *memory.Item, id string) error {
	old, err := p.keep(ctx, id)
	if err != nil {
		return err
	}
	if old.Trust.Rank() == into.Trust.Rank() {
		merge(into, *old)
		if old.UpdatedAt.After(into.UpdatedAt) {
			into.UpdatedAt = old.UpdatedAt
		}
		if old.VerifiedAt != nil && (into.VerifiedAt == nil || old.VerifiedAt.After(*into.VerifiedAt)) {
			into.VerifiedAt = old.VerifiedAt
		}
	}
	old.Status, old.SupersededBy, old.Verify = memory.Superseded, into.ID, nil
	old.Reason = SaysTheSame + into.Handle
	if into.Supersedes == "" {
		into.Supersedes = old.ID
	}
	return nil
}

const surveyPage = 500 // items read at a time

// Survey hands to visit every active and quarantined item, in the order of their
// handles, a page at a time: no reading transaction lasts longer than a page, so
// items that change meanwhile may be seen before or after. It first brings the
// store up to date with the log.
func (s *Store) Survey(ctx context.Context, visit func(memory.Item) error) error {
	if s.opts.Log != nil {
		if err := s.locked(ctx, func() error { return s.catchUp(ctx) }); err != nil {
			return err
		}
	}
	for last := int64(0); ; {
		var page []memory.Item
		err := s.view(ctx, func(tx *sql.Tx) (err error) {
			// The plus keeps SQLite from the index of statuses: it would sort all that is left for every page.
			page, err = loadItems(ctx, tx, `WHERE number > ? AND +status IN ('active', 'quarantined') ORDER BY number LIMIT ?`, last, surveyPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, it := range page {
			if err := visit(it); err != nil {
				return err
			}
		}
		if last, err = numberOf(page[len(page)-1].Handle); err != nil {
			return err
		}
	}
}

// Ground is what the evidence of items stands on.
type Ground struct {
	Parked     []memory.ParkedNote // oldest first
	Suppressed map[string]bool     // ids of events that are no longer recalled
	Kept       map[string]bool     // ids of items that a person brought back last: they stay as they are
	LastChange time.Time           // of the last change that maintenance did not make; zero for none
	Items      int                 // active and quarantined, about
}

// Ground returns what the evidence of items stands on.
func (s *Store) Ground(ctx context.Context) (Ground, error) {
	g := Ground{Suppressed: map[string]bool{}, Kept: map[string]bool{}}
	err := s.view(ctx, func(tx *sql.Tx) error {
		var err error
		if g.Parked, err = parkedRanges(ctx, tx); err != nil {
			return err
		}
		if err := addNames(ctx, tx, g.Suppressed, `SELECT event_id FROM suppressed`); err != nil {
			return err
		}
		if err := addNames(ctx, tx, g.Kept, `SELECT i.id FROM revisions r JOIN memory_items i ON i.number = r.number AND i.version = r.version
			WHERE r.action = 'revert' AND i.status IN ('active', 'quarantined')`); err != nil {
			return err
		}
		if err = tx.QueryRowContext(ctx, `SELECT count(*) FROM memory_items WHERE status IN ('active', 'quarantined')`).Scan(&g.Items); err != nil {
			return err
		}
		var at int64
		err = tx.QueryRowContext(ctx, `SELECT at FROM revisions WHERE by <> ? ORDER BY seq DESC LIMIT 1`, ByMaintenance).Scan(&at)
		if isNone(err) {
			return nil
		}
		g.LastChange = time.UnixMilli(at).UTC()
		return err
	})
	return g, err
}

func addNames(ctx context.Context, tx *sql.Tx, to map[string]bool, query string) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		to[name] = true
	}
	return rows.Err()
}

// Compact tidies up the database in small steps that lock no reader out. With
// nothing to do it writes nothing.
func (s *Store) Compact(ctx context.Context) (sqlite.Compacted, error) {
	done, err := s.db.Compact(ctx, "memory_fts", "memory_prefix")
	return done, s.noticed(err)
}

// wouldReplace is the reason of an item in quarantine that contradicts a more
// trusted one.
const (
	wouldReplace = "would replace "
	moreTrusted  = ", which is from a more trusted source"
)

var replaces = regexp.MustCompile(`^` + wouldReplace + `(MEM-[0-9]+)` + moreTrusted)

// Contradicts returns the handle of the item that it, in quarantine, would
// replace; "" for none.
func Contradicts(it memory.Item) string {
	if m := replaces.FindStringSubmatch(it.Reason); it.Status == memory.Quarantined && m != nil {
		return m[1]
	}
	return ""
}
