package weave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Follower lets graphs follow the items of working memory. It is safe for
// concurrent use, by several processes too.
type Follower struct {
	Items memory.Borrow[*working.Store] // for reading
	Read  memory.Borrow[*graph.Store]
	Write memory.Borrow[*graph.Store]
	// Hold keeps erasures out between reading items and writing what follows from
	// them; it may be nil.
	Hold erasure.Hold
	// Speakers tells who said what, by event id; unknown events are left out. nil
	// where nobody knows.
	Speakers func(ctx context.Context, agent memory.AgentID, eventIDs []string) (map[string]string, error)
}

// pageOf is about how many items are read at a time.
const pageOf = 2000

// errMoved says that another process has brought the graph further meanwhile.
var errMoved = errors.New("the graph has moved on")

// Followed tells what a follower did.
type Followed struct {
	Items int  `json:"items" jsonschema:"memories that were new or had changed"`
	Anew  bool `json:"anew" jsonschema:"all that follows from memories was made again"`
}

// Follow brings an agent's graph up to date with its items. Each step is one
// change of the graph together with how far it has come: a process that dies
// between two loses nothing and adds nothing twice. Where nothing has changed
// nothing is written, and an agent without items gets no graph.
func (f *Follower) Follow(ctx context.Context, agent memory.AgentID) (Followed, error) {
	return f.follow(ctx, agent, false)
}

// Rebuild makes everything that follows from an agent's items anew, whatever the
// graph holds of it. Other nodes and edges stay, but for edges at a node that is
// no more.
func (f *Follower) Rebuild(ctx context.Context, agent memory.AgentID) (Followed, error) {
	return f.follow(ctx, agent, true)
}

// Ops returns the operation that makes what follows from memory anew.
func (f *Follower) Ops() []op.Op {
	return []op.Op{op.New("graph.rebuild", "Make the part of the graph that follows from memory anew; other nodes stay.", op.Write, f.rebuild).WithExample(`{}`)}
}

func (f *Follower) rebuild(ctx context.Context, agent memory.AgentID, _ struct{}) (Followed, error) {
	return f.Rebuild(ctx, agent)
}

func (f *Follower) follow(ctx context.Context, agent memory.AgentID, anew bool) (Followed, error) {
	var done Followed
	ctx, end, err := f.Hold.Begin(ctx, agent)
	if err != nil {
		return done, err
	}
	defer end()
	items, release, err := f.Items(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return done, nil
	}
	if err != nil {
		return done, err
	}
	defer release()
	for tries := 0; ; {
		step, more, err := f.step(ctx, agent, items, anew)
		switch {
		case errors.Is(err, errMoved):
		case errors.Is(err, memory.ErrNotFound) && tries < mostTries:
			anew = true // the graph has followed another memory, or this one was made anew meanwhile
			tries++
		case err != nil:
			return done, fmt.Errorf("follow the memory of %s: %w", agent, err)
		default:
			done.Items, done.Anew = done.Items+step.Items, done.Anew || step.Anew
			anew = false
			if !more {
				return done, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return done, err
		}
	}
}

// mostTries bounds how often a graph is made anew in one go.
const mostTries = 3

// step brings the graph one step further.
func (f *Follower) step(ctx context.Context, agent memory.AgentID, items *working.Store, anew bool) (Followed, bool, error) {
	at, err := f.position(ctx, agent)
	if err != nil {
		return Followed{}, false, err
	}
	from := at.Mark
	if anew = anew || at.Rules != rules; anew {
		from = working.Mark{}
	}
	got, err := changes(ctx, items, from, anew)
	if err != nil || len(got.Items) == 0 && (!anew || at == (cursorPayload{})) {
		return Followed{}, false, err
	}
	if at == (cursorPayload{}) && !slices.ContainsFunc(got.Items, func(it working.Sourced) bool { return isKept(it.Item) }) {
		return Followed{}, false, nil // nothing to make a graph of
	}
	all, err := f.withPeers(ctx, agent, items, got.Items)
	if err != nil {
		return Followed{}, false, err
	}
	speakers, err := f.speakers(ctx, agent, all)
	if err != nil {
		return Followed{}, false, err
	}
	return Followed{Items: len(got.Items), Anew: anew}, got.More, f.write(ctx, agent, at, got.Last, all, speakers, anew)
}

// changes reads what has changed; all of it where the graph is made anew, since
// what is not read then is removed.
func changes(ctx context.Context, items *working.Store, from working.Mark, all bool) (working.Since, error) {
	got, err := items.ChangedSince(ctx, from, pageOf)
	for err == nil && all && got.More {
		var next working.Since
		if next, err = items.ChangedSince(ctx, got.Last, pageOf); err == nil {
			next.Items = merged(got.Items, next.Items)
			got = next
		}
	}
	return got, err
}

// merged joins two lists of items by id; of an item in both the later stays.
func merged(a, b []working.Sourced) []working.Sourced {
	at := map[string]int{}
	for i, it := range a {
		at[it.ID] = i
	}
	for _, it := range b {
		if i, known := at[it.ID]; known {
			a[i] = it
			continue
		}
		at[it.ID] = len(a)
		a = append(a, it)
	}
	return a
}

// position reads how far the graph is.
func (f *Follower) position(ctx context.Context, agent memory.AgentID) (at cursorPayload, err error) {
	err = f.view(ctx, agent, func(v *graph.View) error {
		at = cursorOf(v, agent)
		return nil
	})
	return at, err
}

// view shows the graph, where there is one.
func (f *Follower) view(ctx context.Context, agent memory.AgentID, fn func(*graph.View) error) error {
	store, release, err := f.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return store.View(ctx, fn)
}

// cursorOf reads how far a graph is; the zero value where it has not begun.
func cursorOf(v *graph.View, agent memory.AgentID) cursorPayload {
	var at cursorPayload
	n := v.Node(cursorID(agent))
	if !isOf(agent, n, kindCursor) || json.Unmarshal(n.Payload, &at) != nil {
		return cursorPayload{}
	}
	return at
}

// withPeers adds to items those that they contradict in the graph: a mark that
// has lost its reason goes with the node that is put again.
func (f *Follower) withPeers(ctx context.Context, agent memory.AgentID, items *working.Store, changed []working.Sourced) ([]working.Sourced, error) {
	var ids []string
	err := f.view(ctx, agent, func(v *graph.View) error {
		for _, it := range changed {
			for _, e := range slices.Concat(slices.Collect(v.Out(it.ID)), slices.Collect(v.In(it.ID))) {
				if e.Type == graph.Contradicts {
					ids = append(ids, e.Src, e.Dst)
				}
			}
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return changed, err
	}
	more, err := items.ByID(ctx, ids)
	return merged(slices.Clone(changed), more), err
}

func (f *Follower) speakers(ctx context.Context, agent memory.AgentID, items []working.Sourced) (map[string]string, error) {
	if f.Speakers == nil {
		return nil, nil
	}
	var ids []string
	for _, it := range items {
		for _, ev := range it.Evidence {
			ids = append(ids, ev.EventID)
		}
	}
	return f.Speakers(ctx, agent, ids)
}

// write makes the change of one step. Text that was removed leaves the file with
// it.
func (f *Follower) write(ctx context.Context, agent memory.AgentID, at cursorPayload, to working.Mark, items []working.Sourced, speakers map[string]string, anew bool) error {
	store, release, err := f.Write(ctx, agent)
	if err != nil {
		return err
	}
	defer release()
	t := &tying{agent: agent, speakers: speakers}
	err = store.Update(ctx, graph.Write{}, func(tx *graph.Tx) error {
		if cursorOf(&tx.View, agent) != at {
			return errMoved
		}
		t.tx, t.keys, t.removed = tx, map[string]bool{}, false
		if anew {
			t.clear(items)
		}
		if err := t.tie(items); err != nil {
			return err
		}
		return t.mark(to)
	})
	if err == nil && t.removed {
		err = store.Fold(ctx)
	}
	return err
}

// clear removes what follows from no item any more: items that are gone, and,
// since all names of what is left are looked at anyway, entities without items.
func (t *tying) clear(items []working.Sourced) {
	keep := map[string]bool{cursorID(t.agent): true}
	for _, it := range items {
		keep[it.ID], keep[decisionID(it.ID)] = true, true
	}
	for _, n := range slices.Collect(t.tx.NodesOf(graph.Semantic)) {
		switch {
		case !isDerived(t.agent, n), keep[n.ID]:
		case slices.Contains(named, n.Tags[1]):
			t.keys[keyOf(n.Label)] = true
		default:
			t.touch(n)
			t.remove(n.ID)
		}
	}
}

// mark writes down how far the graph is.
func (t *tying) mark(to working.Mark) error {
	n, err := derived(t.agent, cursorID(t.agent), "what "+string(t.agent)+" remembers", kindCursor, t.tx.Now(), cursorPayload{Kind: kindCursor, Rules: rules, Mark: to})
	if err != nil {
		return err
	}
	if old := t.tx.Node(n.ID); old != nil {
		n.CreatedAt = old.CreatedAt
	}
	return t.put(n)
}
