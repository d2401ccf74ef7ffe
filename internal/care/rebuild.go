package care

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

const (
	rebuildPrefix = ".rebuild-" // of the directory in an agent's memory directory in which a rebuild goes on
	rebuildLease  = 10 * time.Minute
	adoptedAtOnce = 500 // items in one change
)

// Rebuilding is what rebuilds work with. All are required.
type Rebuilding struct {
	Dir   func(memory.AgentID) (string, error)
	Logs  memory.Borrow[*events.Reader]
	Items memory.Borrow[*working.Store] // for writing
	// Open opens a store in another directory, over a log of its own.
	Open func(ctx context.Context, agent memory.AgentID, dir string, log *Shadow) (*working.Store, error)
	// Distil distils what the store's log has in backlog, with files in dir: by the
	// model of that name, or by the rules where it is empty.
	Distil func(ctx context.Context, agent memory.AgentID, model, dir string, store *working.Store, log *Shadow) (checkpoint.Result, error)
	NewID  func() string // a ULID
	Holder string        // names this process to others that wait
}

// Rebuild makes working memory anew from the event log.
type Rebuild struct{ Rebuilding }

// NewRebuild returns the service.
func NewRebuild(r Rebuilding) *Rebuild { return &Rebuild{r} }

// Ops returns the operation.
func (s *Rebuild) Ops() []op.Op {
	return []op.Op{op.New("memory.rebuild", "Make working memory anew from the event log, show how it differs, and switch to it where yes is given.", op.Write, s.Rebuild).
		WithExample(`{"rules": true}`)}
}

// RebuildRequest is the input of memory.rebuild.
type RebuildRequest struct {
	Model string `json:"model,omitempty" jsonschema:"distil everything anew by this model of the configured provider; absent: replay what was distilled, offline"`
	Rules bool   `json:"rules,omitempty" jsonschema:"distil everything anew by the rules, offline"`
	From  int64  `json:"from,omitempty" jsonschema:"with model or rules: distil only batches that hold events from this number on"`
	Into  string `json:"into,omitempty" jsonschema:"new directory that keeps the new memory.db"`
	Yes   bool   `json:"yes,omitempty" jsonschema:"switch to the new memory"`
}

// RebuildResult is the output of memory.rebuild.
type RebuildResult struct {
	Agent     memory.AgentID `json:"agent"`
	Mode      string         `json:"mode" jsonschema:"replay, model or rules"`
	Model     string         `json:"model,omitempty"`
	Identical bool           `json:"identical" jsonschema:"true: the new memory is the old one, row by row"`
	Now       int            `json:"now" jsonschema:"memories there are"`
	Rebuilt   int            `json:"rebuilt" jsonschema:"memories there would be"`
	Added     []string       `json:"added" jsonschema:"memories that only the new one has"`
	Removed   []string       `json:"removed" jsonschema:"memories that only the old one has"`
	Changed   []string       `json:"changed" jsonschema:"memories that are otherwise in the new one"`
	TokensIn  int            `json:"tokens_in"`
	TokensOut int            `json:"tokens_out"`
	Parked    int            `json:"parked" jsonschema:"ranges of events that could not be distilled anew"`
	Into      string         `json:"into,omitempty"`
	Switched  bool           `json:"switched"`
}

// Failed reports whether something could not be distilled.
func (r RebuildResult) Failed() bool { return r.Parked > 0 }

// Text shows the result to a person.
func (r RebuildResult) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s, rebuilt by %s: %d memories, now %d\n", r.Agent, strings.TrimSpace(r.Mode+" "+r.Model), r.Rebuilt, r.Now)
	for _, list := range []struct {
		mark  string
		lines []string
	}{{"- ", r.Removed}, {"+ ", r.Added}, {"~ ", r.Changed}} {
		for _, l := range list.lines {
			sb.WriteString(list.mark + l + "\n")
		}
	}
	if r.Parked > 0 {
		fmt.Fprintf(&sb, "%d ranges of events could not be distilled\n", r.Parked)
	}
	switch {
	case r.Identical && !r.Switched:
		sb.WriteString("it is the same, row by row\n")
	case r.Switched:
		sb.WriteString("switched to it\n")
	default:
		sb.WriteString("nothing has been changed. To switch to it: the same with --yes\n")
	}
	if r.Into != "" {
		fmt.Fprintf(&sb, "kept in %s\n", r.Into)
	}
	return sb.String()
}

func (in RebuildRequest) check() error {
	switch {
	case in.Model != "" && in.Rules:
		return &memory.FieldError{Field: "rules", Reason: "must not be given together with model"}
	case in.From < 0:
		return &memory.FieldError{Field: "from", Reason: "must not be negative"}
	case in.From > 0 && in.Model == "" && !in.Rules:
		return memory.WithHint(&memory.FieldError{Field: "from", Reason: "must come with model or rules: a replay always begins at the first event"}, "add --rules or --model NAME")
	}
	return nil
}

func (in RebuildRequest) anew() bool { return in.Model != "" || in.Rules }

// Rebuild makes a second store from the log, compares the two, and switches where
// that is asked for. Without model and rules it replays every change, also what
// was approved, forgotten, reverted and erased, which needs no model. With one of
// them it distils what was said anew; what people wrote, changed and forgot stays.
func (s *Rebuild) Rebuild(ctx context.Context, agent memory.AgentID, in RebuildRequest) (res RebuildResult, err error) {
	if err := in.check(); err != nil {
		return RebuildResult{}, err
	}
	home, err := s.Dir(agent)
	if err != nil {
		return RebuildResult{}, err
	}
	ctx = working.Patiently(ctx)
	live, release, err := s.Items(ctx, agent)
	if err != nil {
		return RebuildResult{}, err
	}
	defer release()
	lease, err := live.Acquire(ctx, "rebuild", s.Holder, rebuildLease)
	if err != nil {
		return RebuildResult{}, err
	}
	defer func() { err = errors.Join(err, live.Release(context.WithoutCancel(ctx), lease)) }()
	dir, clean, err := workIn(home, in.Into, s.NewID())
	if err != nil {
		return RebuildResult{}, err
	}
	defer func() { err = errors.Join(err, clean(err)) }()
	log, releaseLog, err := s.Logs(ctx, agent)
	if err != nil {
		return RebuildResult{}, err
	}
	defer releaseLog()
	shadow, err := newShadow(log, in, s.NewID)
	if err != nil {
		return RebuildResult{}, err
	}
	made, err := s.Open(ctx, agent, dir, shadow)
	if err != nil {
		return RebuildResult{}, fmt.Errorf("rebuild in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	return s.rebuild(ctx, agent, in, job{live, made, shadow, dir, lease})
}

// job is one rebuild under way.
type job struct {
	live, made *working.Store
	log        *Shadow
	dir        string
	lease      working.Lease
}

func (s *Rebuild) rebuild(ctx context.Context, agent memory.AgentID, in RebuildRequest, j job) (RebuildResult, error) {
	res := RebuildResult{Agent: agent, Mode: "replay", Model: in.Model, Added: []string{}, Removed: []string{}, Changed: []string{}, Into: in.Into}
	if in.anew() {
		res.Mode = map[bool]string{true: working.ModeRules, false: working.ModeModel}[in.Rules]
		got, err := s.Distil(ctx, agent, in.Model, filepath.Join(j.dir, "checkpoints"), j.made, j.log)
		if err != nil {
			return res, err
		}
		res.TokensIn, res.TokensOut, res.Parked = got.TokensIn, got.TokensOut, len(got.Parked)
	}
	d, err := compare(ctx, j.live, j.made)
	if err != nil {
		return res, err
	}
	d.into(&res)
	if !in.anew() {
		if res.Identical, err = sameRows(ctx, j.live, j.made); err != nil {
			return res, err
		}
	}
	if !in.Yes {
		return res, nil
	}
	if err := j.live.Fenced(ctx, j.lease); err != nil {
		return res, err
	}
	if in.anew() {
		err = adopt(ctx, j.live, d, res.Mode+" "+in.Model, s.NewID)
	} else {
		err = j.live.Replace(ctx, j.made, j.lease)
	}
	res.Switched = err == nil
	return res, err
}

// workIn makes the directory for a rebuild. clean removes it, unless it is to be
// kept and nothing failed.
func workIn(home, into, id string) (dir string, clean func(error) error, err error) {
	dir = into
	if into == "" {
		dir = filepath.Join(home, "memory", rebuildPrefix+id)
		stale, err := filepath.Glob(filepath.Join(home, "memory", rebuildPrefix+"*"))
		if err != nil {
			return "", nil, err
		}
		for _, old := range stale { // of rebuilds that were interrupted: the lease is ours
			if err := os.RemoveAll(old); err != nil {
				return "", nil, memory.Errorf(memory.ErrUnavailable, "clear an interrupted rebuild away: %w", err)
			}
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return "", nil, &memory.FieldError{Field: "into", Reason: "must not exist yet: " + dir}
		}
		return "", nil, memory.Errorf(memory.ErrUnavailable, "make a directory for the rebuild: %w", err)
	}
	return dir, func(failed error) error {
		if into != "" && failed == nil {
			return nil
		}
		return os.RemoveAll(dir)
	}, nil
}

// diff is how two stores differ.
type diff struct {
	now, rebuilt   int
	added, removed []memory.Item // in use, of the new and of the old store
	changed        []string
}

func (d diff) into(res *RebuildResult) {
	res.Now, res.Rebuilt = d.now, d.rebuilt
	for _, it := range d.added {
		res.Added = append(res.Added, it.Line())
	}
	for _, it := range d.removed {
		res.Removed = append(res.Removed, it.Line())
	}
	res.Changed = append(res.Changed, d.changed...)
}

func isInUse(it memory.Item) bool {
	return it.Status == memory.Active || it.Status == memory.Quarantined
}

// compare compares the items in use: by id, and those of other ids by what they say.
func compare(ctx context.Context, old, made *working.Store) (d diff, err error) {
	all := 0
	was, err := old.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		return d, err
	}
	is, err := made.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		return d, err
	}
	before, says := map[string]memory.Item{}, map[string]int{}
	for _, it := range was.Items {
		if isInUse(it) {
			before[it.ID] = it
			says[saying(it)]++
			d.now++
		}
	}
	matched := map[string]bool{}
	var others []memory.Item
	for _, it := range is.Items {
		if !isInUse(it) {
			continue
		}
		d.rebuilt++
		old, has := before[it.ID]
		if !has {
			others = append(others, it)
			continue
		}
		matched[it.ID] = true
		says[saying(old)]--
		if saying(old) != saying(it) || old.Status != it.Status || old.Importance != it.Importance || old.Confidence != it.Confidence {
			d.changed = append(d.changed, old.Line()+" → "+it.Line())
		}
	}
	for _, it := range others {
		if says[saying(it)] > 0 {
			says[saying(it)]--
			matchSaying(was.Items, matched, it)
			continue
		}
		d.added = append(d.added, it)
	}
	for _, it := range was.Items {
		if isInUse(it) && !matched[it.ID] {
			d.removed = append(d.removed, it)
		}
	}
	slices.Reverse(d.added) // lists are newest first
	slices.Reverse(d.removed)
	return d, nil
}

// matchSaying marks an old item that says the same.
func matchSaying(was []memory.Item, matched map[string]bool, it memory.Item) {
	for _, old := range was {
		if isInUse(old) && !matched[old.ID] && saying(old) == saying(it) {
			matched[old.ID] = true
			return
		}
	}
}

func saying(it memory.Item) string { return it.Kind + "\x00" + it.Title + "\x00" + it.Content }

// sameRows reports whether two stores hold the same, row by row.
func sameRows(ctx context.Context, a, b *working.Store) (bool, error) {
	sums := [2]map[string]int{{}, {}}
	for i, store := range []*working.Store{a, b} {
		if err := store.Dump(ctx, func(table, line string) error { sums[i][hashOf(table+"\x00"+line)]++; return nil }); err != nil {
			return false, err
		}
	}
	if len(sums[0]) != len(sums[1]) {
		return false, nil
	}
	for line, n := range sums[0] {
		if sums[1][line] != n {
			return false, nil
		}
	}
	return true, nil
}

// adopt makes what was distilled anew part of the live store, as changes of the log
// like any other: what only the old one has is archived, and can be brought back.
func adopt(ctx context.Context, live *working.Store, d diff, by string, newID func() string) error {
	why := strings.TrimSpace("rebuilt by " + by)
	var archive []working.Withdrawal
	for _, it := range d.removed {
		archive = append(archive, working.Withdrawal{ID: it.ID, Reason: why})
	}
	put := d.added
	for len(put)+len(archive) > 0 {
		some, gone := put[:min(len(put), adoptedAtOnce)], archive[:min(len(archive), adoptedAtOnce)]
		put, archive = put[len(some):], archive[len(gone):]
		change := working.Imported{Action: "rebuild", Why: why, Archive: gone}
		for _, it := range some {
			it.ID = "mem_" + hex.EncodeToString([]byte(newID())[10:])[:26]
			it.Handle, it.Supersedes, it.SupersededBy, it.Version = "", "", "", 0
			change.Put = append(change.Put, working.Entry{Item: it})
		}
		if _, err := live.Import(ctx, change); err != nil {
			return err
		}
	}
	return nil
}
