package working

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/distill"
)

// WriteRequest is the input of memory.write.
type WriteRequest struct {
	Title      string            `json:"title" jsonschema:"short name of the memory, at most 200 bytes"`
	Content    string            `json:"content" jsonschema:"what to remember, in a sentence that stands alone"`
	Kind       string            `json:"kind,omitempty" jsonschema:"preference, fact, decision, commitment, person, project, event, reminder, issue, lesson, or a word of your own; note if absent"`
	Importance *int              `json:"importance,omitempty" jsonschema:"1 to 5; 4 and 5 must not be forgotten; 3 if absent"`
	Confidence *float64          `json:"confidence,omitempty" jsonschema:"0 to 1; 0.9 if absent"`
	Evidence   []CitationInput   `json:"evidence,omitempty" jsonschema:"events that the memory rests on"`
	proven     []memory.Evidence // Evidence, looked up
	trust      memory.Trust      // the least of its origins
}

// CitationInput names an event and the words in it that a memory rests on.
type CitationInput struct {
	EventID string `json:"event_id" jsonschema:"id of an event, such as evt_01H…"`
	Quote   string `json:"quote,omitempty" jsonschema:"the words of the event that say so"`
}

// WriteResult is the output of memory.write and decision.log.
type WriteResult struct {
	Item       memory.Item `json:"item"`
	Merged     bool        `json:"merged" jsonschema:"true: this item already said the same, and now has the evidence of both if they are of the same trust"`
	Superseded string      `json:"superseded,omitempty" jsonschema:"handle of the item, less trusted, whose place this one took"`
	Archived   []string    `json:"archived,omitempty" jsonschema:"handles of items archived because there were too many"`
}

// newItem makes the item that in asks for, with secrets taken out.
func (s *Store) newItem(ctx context.Context, in WriteRequest, metadata map[string]any) (memory.Item, error) {
	trust := memory.TrustOf(memory.Actor(ctx))
	if in.trust != "" {
		trust = memory.LowestTrust(trust, in.trust)
	}
	it := memory.Item{ID: "mem_" + s.opts.NewID(), Kind: cmp.Or(in.Kind, memory.KindNote), Title: in.Title, Content: in.Content,
		Importance: 3, Confidence: .9, Status: memory.Active, Trust: trust, Evidence: in.proven}
	set(&it.Importance, in.Importance)
	set(&it.Confidence, in.Confidence)
	if len(metadata) > 0 {
		it.Metadata = metadata
	}
	if err := checkItem(it); err != nil {
		return memory.Item{}, err
	}
	s.redactItem(&it)
	setAside(&it)
	return it, nil
}

// setAside puts an active item that is not the user's own into quarantine where its
// text tries to steer whoever reads it.
func setAside(it *memory.Item) {
	if it.Status != memory.Active || it.Trust == memory.TrustUser {
		return
	}
	if why := distill.Suspect(it.Title + "\n" + it.Content); why != "" {
		it.Status, it.Reason = memory.Quarantined, why
	}
}

// write stores what in asks for, or merges it into an item that says the same.
func (s *Store) write(ctx context.Context, in WriteRequest, action, why string, metadata map[string]any) (WriteResult, error) {
	it, err := s.newItem(ctx, in, metadata)
	if err != nil {
		return WriteResult{}, fmt.Errorf("write a memory: %w", err)
	}
	var res WriteResult
	var id string
	alike := s.alike(ctx, it)
	err = s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		p.alike = alike
		placed, outcome, err := p.place(ctx, it)
		if err != nil {
			return nil, err
		}
		id = placed.ID
		res.Merged = outcome != placedNew
		switch {
		case outcome == placedRejected && placed.Reason != rejected:
			return nil, nil // a more trusted source has said it
		case outcome == placedRejected:
			return nil, memory.WithHint(memory.Errorf(memory.ErrConflict, "%s says the same, and was rejected", placed.Handle),
				"openclawssy memory explain "+placed.Handle+" shows it; memory revert brings it back")
		}
		if placed.Supersedes != "" && outcome == placedNew {
			res.Superseded = p.items[placed.Supersedes].Handle
		}
		res.Archived, err = p.trim(ctx, s.opts.MaxItems)
		return &memory.Change{Action: action, By: string(memory.Actor(ctx)), Why: why}, err
	})
	if err != nil {
		return WriteResult{}, fmt.Errorf("write a memory: %w", err)
	}
	now, err := s.Get(ctx, GetRequest{Handle: id})
	res.Item = now.Item
	return res, err
}

// alike asks what the store may hold already of new items, by their ids.
func (s *Store) alike(ctx context.Context, items ...memory.Item) map[string][]string {
	if s.opts.Alike == nil {
		return nil
	}
	proposed := map[string][]string{}
	for _, it := range items {
		proposed[it.ID] = s.opts.Alike(ctx, it)
	}
	return proposed
}

func checkItem(it memory.Item) error {
	if err := it.Validate(); err != nil {
		return err
	}
	if err := checkText("title", it.Title); err != nil {
		return err
	}
	if err := checkText("content", it.Content); err != nil {
		return err
	}
	return checkSource(it)
}

// UpdateRequest is the input of memory.update. What is absent stays as it is.
type UpdateRequest struct {
	Handle     string   `json:"handle" cli:"arg" jsonschema:"handle of the item, such as MEM-12"`
	Title      *string  `json:"title,omitempty" jsonschema:"new title"`
	Content    *string  `json:"content,omitempty" jsonschema:"new content"`
	Kind       *string  `json:"kind,omitempty" jsonschema:"new kind"`
	Importance *int     `json:"importance,omitempty" jsonschema:"new importance, 1 to 5"`
	Confidence *float64 `json:"confidence,omitempty" jsonschema:"new confidence, 0 to 1"`
	Why        string   `json:"why,omitempty" jsonschema:"reason for the change, kept in the history"`
	Version    *int     `json:"version,omitempty" jsonschema:"refuse unless this is the item's version now"`
}

// Changed is the output of an operation that changed one item.
type Changed struct {
	Item memory.Item `json:"item"`
}

// Update makes a new version of an item; the old one stays in its history.
func (s *Store) Update(ctx context.Context, in UpdateRequest) (Changed, error) {
	if in.Title == nil && in.Content == nil && in.Kind == nil && in.Importance == nil && in.Confidence == nil {
		return Changed{}, &memory.FieldError{Field: "content", Reason: "must be given, or title, kind, importance or confidence: there is nothing to change"}
	}
	return s.alter(ctx, in.Handle, "update", in.Why, func(ctx context.Context, p *plan, now memory.Item) error {
		if in.Version != nil && *in.Version != now.Version {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s is at version %d, not %d", now.Handle, now.Version, *in.Version),
				"read it again: somebody has changed it meanwhile")
		}
		if err := s.refuseGone(ctx, p, now); err != nil {
			return err
		}
		it, err := p.touch(ctx, now.ID)
		if err != nil {
			return err
		}
		set(&it.Title, in.Title)
		set(&it.Content, in.Content)
		set(&it.Kind, in.Kind)
		set(&it.Importance, in.Importance)
		set(&it.Confidence, in.Confidence)
		it.Verify = nil // it is looked at anew
		if it.Title != now.Title || it.Content != now.Content {
			it.Trust = vouched(memory.Actor(ctx), now.Trust)
			if why := distill.Suspect(it.Title + "\n" + it.Content); why != "" && it.Trust != memory.TrustUser {
				return memory.WithHint(memory.Errorf(memory.ErrDenied, "the new text %s", why), "only the user can write that")
			}
		}
		return checkItem(*it)
	})
}

// vouched is the trust of a text that by has rewritten: the user answers for all
// of it, anyone else for no more than before.
func vouched(by memory.Origin, before memory.Trust) memory.Trust {
	if by == memory.OriginUser {
		return memory.TrustUser
	}
	return memory.LowestTrust(before, memory.TrustOf(by))
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// refuseGone refuses to change an item that is forgotten or has been replaced.
func (s *Store) refuseGone(ctx context.Context, p *plan, it memory.Item) error {
	switch it.Status {
	case memory.Forgotten:
		return memory.Errorf(memory.ErrConflict, "%s is forgotten", it.Handle)
	case memory.Superseded:
		hint := "openclawssy memory revert " + it.Handle + " brings it back"
		if it.SupersededBy != "" {
			by, err := p.peek(ctx, it.SupersededBy)
			if err != nil {
				return err
			}
			hint = by.Handle + " has taken its place"
		}
		return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s is superseded", it.Handle), hint)
	}
	return nil
}

// alter makes one change of one item, named by handle or id.
func (s *Store) alter(ctx context.Context, name, action, why string, change func(context.Context, *plan, memory.Item) error) (Changed, error) {
	if err := checkText("why", why); err != nil {
		return Changed{}, err
	}
	var id string
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		now, err := find(ctx, p.tx, name)
		if err != nil {
			return nil, err
		}
		id = now.ID
		if err := change(ctx, p, now); err != nil {
			return nil, err
		}
		return &memory.Change{Action: action, By: string(memory.Actor(ctx)), Why: why}, nil
	})
	if err != nil {
		return Changed{}, fmt.Errorf("%s %s: %w", action, name, err)
	}
	now, err := s.Get(ctx, GetRequest{Handle: id})
	return Changed{Item: now.Item}, err
}

// ForgetRequest is the input of memory.forget.
type ForgetRequest struct {
	echoes []string              // ids of events that repeat what the item rests on
	begun  func(Forgotten) error // called before anything is changed; may be nil
	Handle string                `json:"handle" cli:"arg" jsonschema:"handle of the item, such as MEM-12"`
}

// ForgetResult is the output of memory.forget.
type ForgetResult struct {
	ID         string        `json:"id"`
	Handle     string        `json:"handle"`
	Status     memory.Status `json:"status"`
	Suppressed []string      `json:"suppressed" jsonschema:"ids of the events that are no longer recalled"`

	gone Forgotten
}

// Forgotten is what went with an item that was forgotten.
type Forgotten struct {
	// Items that went, as they were: the one that was named and those that had been
	// merged into it; without text where that had gone before.
	Items []memory.Item
	// Heirs are the ids of the items that stay, without their notes, since those may
	// have said what went.
	Heirs []string
	// Told are the numbers of the changes in the log that may say it, in ascending
	// order; nil where they are not known.
	Told []int64
}

// Forget takes an item's text away for good: from the item, its history, its
// evidence and the full-text rows, with the items that say the same and were merged
// into it, and out of the notes of what took its place. A tombstone keeps id and
// handle. The episodes that it rests on are recalled no more. Forgetting twice
// changes nothing.
func (s *Store) Forget(ctx context.Context, in ForgetRequest) (ForgetResult, error) {
	var res ForgetResult
	err := s.commit(ctx, func(ctx context.Context, p *plan) (*memory.Change, error) {
		now, err := find(ctx, p.tx, in.Handle)
		if err != nil {
			return nil, err
		}
		res = ForgetResult{ID: now.ID, Handle: now.Handle, Status: memory.Forgotten, Suppressed: []string{}}
		if res.gone, err = forgotten(ctx, p.tx, now); err != nil { // the change takes away what it reads
			return nil, err
		}
		if now.Status == memory.Forgotten {
			return nil, nil
		}
		if in.begun != nil {
			if err := in.begun(res.gone); err != nil {
				return nil, err
			}
		}
		for _, was := range res.gone.Items {
			for _, ev := range was.Evidence {
				if !slices.Contains(res.Suppressed, ev.EventID) {
					res.Suppressed = append(res.Suppressed, ev.EventID)
				}
			}
			it, err := p.touch(ctx, was.ID)
			if err != nil {
				return nil, err
			}
			*it = tombstone(*it)
		}
		for _, id := range in.echoes {
			if !slices.Contains(res.Suppressed, id) {
				res.Suppressed = append(res.Suppressed, id)
			}
		}
		for _, id := range res.gone.Heirs {
			it, err := p.touch(ctx, id)
			if err != nil {
				return nil, err
			}
			clean(it)
		}
		return &memory.Change{Action: ActionForget, By: string(memory.Actor(ctx)), Suppress: res.Suppressed}, nil
	})
	if err != nil {
		return ForgetResult{}, fmt.Errorf("forget %s: %w", in.Handle, err)
	}
	// Old pages lie in the write-ahead log until it is folded into the file.
	if err := s.noticed(s.db.Exec(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")); err != nil {
		return res, fmt.Errorf("%s is forgotten, but its text may still lie in the write-ahead log: %w", res.Handle, err)
	}
	return res, nil
}

// ActionForget is the action of a change that forgets an item.
const ActionForget = "forget"

// forgotten finds out what goes with an item that is forgotten.
func forgotten(ctx context.Context, tx *sql.Tx, it memory.Item) (Forgotten, error) {
	gone, lineage := Forgotten{Items: []memory.Item{it}}, NewLineage()
	seen := map[string]bool{it.ID: true}
	for queue := []memory.Item{it}; len(queue) > 0; queue = queue[1:] {
		goes := slices.ContainsFunc(gone.Items, func(it memory.Item) bool { return it.ID == queue[0].ID })
		number, err := numberOf(queue[0].Handle)
		if err != nil {
			return gone, err
		}
		versions, err := versionsOf(ctx, tx, number)
		if err != nil {
			return gone, err
		}
		lineage.Add(queue[0])
		for _, v := range versions {
			lineage.Add(v.Item)
		}
		next, err := kin(ctx, tx, queue[0].ID, versions)
		if err != nil {
			return gone, err
		}
		for _, k := range next {
			merged := k.SupersededBy == queue[0].ID
			switch {
			case seen[k.ID], k.Status == memory.Forgotten, merged && !(goes && strings.HasPrefix(k.Reason, SaysTheSame)):
				continue
			case merged:
				gone.Items = append(gone.Items, k)
			}
			seen[k.ID], queue = true, append(queue, k)
		}
	}
	ids := make([]string, len(gone.Items))
	for i, it := range gone.Items {
		ids[i] = it.ID
	}
	gone.Heirs = lineage.Heirs(ids)
	var err error
	gone.Told, err = told(ctx, tx, gone)
	return gone, err
}

// kin returns the items that took the place of one in any version, and those whose
// place it took.
func kin(ctx context.Context, tx *sql.Tx, id string, versions []Revision) ([]memory.Item, error) {
	var ids []string
	err := eachRow(ctx, tx, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM memory_items WHERE supersedes = ?1 AND supersedes <> '' UNION SELECT id FROM memory_items WHERE superseded_by = ?1 AND superseded_by <> ''`, id)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if by := v.Item.SupersededBy; by != "" && !slices.Contains(ids, by) {
			ids = append(ids, by)
		}
	}
	var out []memory.Item
	for _, id := range ids {
		it, err := find(ctx, tx, id)
		if errors.Is(err, memory.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, nil
}

// told returns the numbers of the events whose changes may say what goes: the
// versions of the items and of their heirs, and what quotes them in a reason or was
// refused. They are in ascending order, and nil where the history does not tell,
// since a part of it was forgotten before.
func told(ctx context.Context, tx *sql.Tx, gone Forgotten) ([]int64, error) {
	seqs, ids, words := []int64{}, slices.Clone(gone.Heirs), []string(nil)
	for _, it := range gone.Items {
		ids = append(ids, it.ID)
		words = append(words, WordsOf(it)...)
	}
	for _, id := range ids {
		first := int64(0)
		err := eachRow(ctx, tx, func(scan func(...any) error) error {
			var version, seq int64
			err := scan(&version, &seq)
			if first == 0 {
				first = version
			}
			seqs = append(seqs, seq)
			return err
		}, `SELECT version, seq FROM revisions WHERE number = (SELECT number FROM memory_items WHERE id = ?) ORDER BY version`, id)
		if err != nil || first > 1 {
			return nil, err
		}
	}
	finder := erasure.NewFinder(words, "")
	err := eachRow(ctx, tx, func(scan func(...any) error) error {
		var seq int64
		var text sql.RawBytes
		err := scan(&seq, &text)
		if err == nil && finder.In(text) {
			seqs = append(seqs, seq)
		}
		return err
	}, `SELECT seq, why FROM revisions WHERE why <> '' UNION ALL SELECT seq, body FROM checkpoints`)
	slices.Sort(seqs)
	return slices.Compact(seqs), err
}

// WordsOf returns the needles of what an item says itself: not of its note, which
// says what another said.
func WordsOf(it memory.Item) []string {
	var out []string
	for _, text := range []string{it.Title, it.Content} {
		own, _ := memory.CutNote(text)
		out = append(out, erasure.Needles(own)...)
	}
	return out
}

// RevertRequest is the input of memory.revert.
type RevertRequest struct {
	Handle string `json:"handle" cli:"arg" jsonschema:"handle of the item, such as MEM-12"`
	To     int    `json:"to,omitempty" jsonschema:"version to go back to; the one before the last if absent"`
	Why    string `json:"why,omitempty" jsonschema:"reason, kept in the history"`
}

// Revert makes an earlier version of an item its newest one: text, status,
// evidence and all. The versions between stay in the history.
func (s *Store) Revert(ctx context.Context, in RevertRequest) (Changed, error) {
	return s.alter(ctx, in.Handle, "revert", in.Why, func(ctx context.Context, p *plan, now memory.Item) error {
		if now.Status == memory.Forgotten {
			return memory.Errorf(memory.ErrConflict, "%s is forgotten: its text is gone", now.Handle)
		}
		wanted := in.To
		if wanted == 0 {
			wanted = now.Version - 1
		}
		number, err := numberOf(now.Handle)
		if err != nil {
			return err
		}
		versions, err := versionsOf(ctx, p.tx, number)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(versions, func(v Revision) bool { return v.Item.Version == wanted })
		if at < 0 || wanted == now.Version {
			return &memory.FieldError{Field: "to", Reason: "must be an earlier version of " + now.Handle + ", which is at " + strconv.Itoa(now.Version),
				Hint: "openclawssy memory history " + now.Handle + " lists them"}
		}
		it, err := p.touch(ctx, now.ID)
		if err != nil {
			return err
		}
		version, updated := it.Version, it.UpdatedAt
		*it = versions[at].Item
		it.Version, it.UpdatedAt = version, updated
		return nil
	})
}

// ReviewRequest is the input of memory.approve and memory.reject.
type ReviewRequest struct {
	Handle string `json:"handle" cli:"arg" jsonschema:"handle of an item in quarantine, or of one that is marked to be verified, such as MEM-12"`
	Why    string `json:"why,omitempty" jsonschema:"reason, kept in the history"`
}

// approved is the least confidence in what somebody has said to be right: that
// of a memory that is written.
const approved = .9

// Approve says that an item is right: one in quarantine is recalled from now on,
// and the marks of one to be verified are gone.
func (s *Store) Approve(ctx context.Context, in ReviewRequest) (Changed, error) {
	return s.review(ctx, in, "approve", func(it *memory.Item, at time.Time) {
		if it.Status == memory.Active {
			it.Confidence = max(it.Confidence, approved)
		}
		it.Status, it.Reason, it.Verify, it.VerifiedAt = memory.Active, "", nil, &at
	})
}

// Reject archives an item in quarantine, or one to be verified. What says the
// same is not taken again.
func (s *Store) Reject(ctx context.Context, in ReviewRequest) (Changed, error) {
	return s.review(ctx, in, "reject", func(it *memory.Item, _ time.Time) {
		it.Status, it.Reason, it.Verify = memory.Archived, rejected, nil
	})
}

func (s *Store) review(ctx context.Context, in ReviewRequest, action string, judge func(it *memory.Item, at time.Time)) (Changed, error) {
	return s.alter(ctx, in.Handle, action, in.Why, func(ctx context.Context, p *plan, now memory.Item) error {
		if now.Status != memory.Quarantined && (now.Status != memory.Active || len(now.Verify) == 0) {
			return memory.WithHint(memory.Errorf(memory.ErrConflict, "%s is %s, not in quarantine, and not marked to be verified", now.Handle, now.Status),
				"openclawssy memory list --status quarantined shows what waits for review, and --verify what is marked")
		}
		it, err := p.touch(ctx, now.ID)
		if err != nil {
			return err
		}
		judge(it, p.at)
		return nil
	})
}
