package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Report is what came of an import.
type Report struct {
	Workspace string             `json:"workspace"`
	Files     int                `json:"files" jsonschema:"that hold records"`
	Unchanged int                `json:"unchanged_files" jsonschema:"the same as at the import before"`
	Created   int                `json:"created" jsonschema:"items that are new or taken up again"`
	Replaced  int                `json:"replaced" jsonschema:"sections that say something else now"`
	Moved     int                `json:"moved" jsonschema:"sections found elsewhere, with the same text"`
	Events    int                `json:"events" jsonschema:"sections of daily logs that are new in the event log"`
	Removed   int                `json:"removed" jsonschema:"sections that are gone; their items are archived, their events no longer recalled"`
	Expired   int                `json:"expired" jsonschema:"items whose retention is over: archived, or not made"`
	Withheld  int                `json:"withheld" jsonschema:"sections left out because what they said was forgotten"`
	Overfull  int                `json:"overfull" jsonschema:"items archived or not made, to keep under the cap of active items"`
	Refused   []memory.Refusal   `json:"refused" jsonschema:"sections that can be no item"`
	Notices   []workspace.Notice `json:"notices" jsonschema:"files left out, and what is odd"`
}

// News reports whether the import changed or left out anything.
func (r Report) News() bool {
	return r.Created+r.Replaced+r.Moved+r.Events+r.Removed+r.Expired+r.Withheld+r.Overfull+len(r.Refused)+len(r.Notices) > 0
}

// Import brings the workspace's state into memory: what is new is added, what has
// changed replaces what it was, what is gone is archived. What could not be read
// stays as it was. Importing an unchanged workspace changes nothing.
func (im *Importer) Import(ctx context.Context, w *workspace.Workspace) (report Report, err error) {
	report = Report{Workspace: w.Path(), Refused: []memory.Refusal{}, Notices: []workspace.Notice{}}
	unlock, err := im.lock(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m, err := im.load(w)
	if err != nil {
		return report, err
	}
	x := &pass{Importer: im, w: w, manifest: m, report: &report, now: im.Now(), known: map[string]int64{}}
	if err := x.read(ctx); err != nil {
		return report, err
	}
	x.match()
	x.expire()
	if len(x.changed)+len(x.withdrawn)+len(x.removed) == 0 && !m.Unfinished {
		return report, nil
	}
	if err := x.apply(ctx); err != nil {
		return report, memory.WithHint(err, "import it again: it goes on where it ended")
	}
	m.Unfinished = false
	return report, im.save(w, m)
}

// pass is one import under way.
type pass struct {
	*Importer
	*manifest
	w      *workspace.Workspace
	report *Report
	now    time.Time

	changed   []*changedFile
	removed   []string             // files
	known     map[string]int64     // seqs of events that are in the log, by id; filled after an import that was broken off
	gone      []*oldSection        // sections that are nowhere any more
	withdrawn []working.Withdrawal // items to archive
}

// changedFile is a file that is new or different.
type changedFile struct {
	name    string
	sum     string
	created time.Time
	pieces  []*newSection
}

// newSection is a section of a changed file, and what it was before.
type newSection struct {
	piece
	was      *oldSection
	same     bool // was says the same
	state    sectionState
	events   []memory.Event // of a daily section: one, or its parts
	expected []memory.Item
}

type oldSection struct {
	file  string
	index int
	state sectionState
	taken bool
}

// read finds the files that differ from the manifest.
func (x *pass) read(ctx context.Context) error {
	skipped := map[string]bool{}
	notice := func(n workspace.Notice) {
		if n.Skipped {
			skipped[n.File] = true
		}
		x.report.Notices = append(x.report.Notices, n)
	}
	files, err := x.w.Files(ctx, workspace.Memory, notice)
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !f.HasRecords() {
			continue
		}
		here[f.Origin()] = true
		x.report.Files++
		if err := x.readFile(f, notice); err != nil {
			notice(workspace.Notice{File: f.Origin(), Skipped: true, Reason: err.Error()})
		}
		op.Report(ctx, op.Progress{Done: int64(i + 1), Total: int64(len(files)), Unit: "files"})
	}
	for name := range x.Files {
		if !here[name] && !within(name, skipped) {
			x.removed = append(x.removed, name)
		}
	}
	slices.Sort(x.removed)
	slices.SortFunc(x.changed, func(a, b *changedFile) int {
		if c := a.created.Compare(b.created); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return nil
}

// within reports whether a file, or a directory that it is in, is in set.
func within(name string, set map[string]bool) bool {
	for ; name != ""; name = name[:max(0, strings.LastIndexByte(name, '/'))] {
		if set[name] {
			return true
		}
	}
	return false
}

func (x *pass) readFile(f workspace.File, notice func(workspace.Notice)) error {
	text, now, err := x.w.Read(f)
	if err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		return memory.Errorf(memory.ErrInvalid, "it is not UTF-8")
	}
	sum := sumOf(text)
	if have := x.Files[f.Origin()]; have != nil && have.SHA256 == sum {
		x.report.Unchanged++
		return nil
	}
	c := &changedFile{name: f.Origin(), sum: sum, created: now.ModTime}
	for _, p := range piecesOf(now, text, x.Redact, notice) {
		c.created = p.record.CreatedAt
		c.pieces = append(c.pieces, &newSection{piece: p, state: sectionState{SHA256: p.sum, Heading: p.heading, Daily: p.isDaily()}})
	}
	x.changed = append(x.changed, c)
	return nil
}

// match finds for each section of a changed file what it was: the same text in the
// same file, or elsewhere; else the same heading or place in the same file.
func (x *pass) match() {
	old := map[string][]*oldSection{} // by file
	bySum := map[string][]*oldSection{}
	names := slices.Clone(x.removed)
	for _, c := range x.changed {
		names = append(names, c.name)
	}
	for _, name := range names {
		if x.Files[name] == nil {
			continue
		}
		for i, s := range x.Files[name].Sections {
			o := &oldSection{file: name, index: i, state: s}
			old[name] = append(old[name], o)
			bySum[s.SHA256] = append(bySum[s.SHA256], o)
		}
	}
	x.pair(func(c *changedFile, i int, p *newSection) *oldSection {
		return firstFree(bySum[p.sum], func(o *oldSection) bool { return o.file == c.name })
	}, true)
	x.pair(func(_ *changedFile, _ int, p *newSection) *oldSection {
		return firstFree(bySum[p.sum], func(*oldSection) bool { return true })
	}, true)
	x.pair(func(c *changedFile, _ int, p *newSection) *oldSection {
		return firstFree(old[c.name], func(o *oldSection) bool { return p.heading != "" && o.state.Heading == p.heading })
	}, false)
	x.pair(func(c *changedFile, i int, p *newSection) *oldSection {
		return firstFree(old[c.name], func(o *oldSection) bool { return o.index == i && (o.state.Heading == "") == (p.heading == "") })
	}, false)
	for _, name := range names {
		for _, o := range old[name] {
			if !o.taken {
				x.gone = append(x.gone, o)
			}
		}
	}
	x.report.Removed = len(x.gone)
}

func firstFree(list []*oldSection, fits func(*oldSection) bool) *oldSection {
	for _, o := range list {
		if !o.taken && fits(o) {
			return o
		}
	}
	return nil
}

// pair gives sections that have no past yet the one that find finds.
func (x *pass) pair(find func(c *changedFile, i int, p *newSection) *oldSection, same bool) {
	for _, c := range x.changed {
		for i, p := range c.pieces {
			if p.was != nil {
				continue
			}
			o := find(c, i, p)
			if o == nil || o.state.Daily != p.isDaily() {
				continue
			}
			o.taken, p.was, p.same = true, o, same
			if same {
				p.state = o.state
				if o.file != c.name || o.index != i {
					x.report.Moved++
				}
			} else {
				x.report.Replaced++
			}
		}
	}
}

// expire archives the items of unchanged files whose retention is over.
func (x *pass) expire() {
	for _, name := range slices.Sorted(maps.Keys(x.Files)) {
		for i := range x.Files[name].Sections {
			s := &x.Files[name].Sections[i]
			s.Items = slices.DeleteFunc(slices.Clone(s.Items), func(it itemState) bool {
				if it.Until == nil || it.Until.After(x.now) {
					return false
				}
				x.withdrawn = append(x.withdrawn, working.Withdrawal{ID: it.ID, Reason: "its retention is over"})
				x.report.Expired++
				return true
			})
		}
	}
}

// apply writes down what is to be done, does it, and brings the manifest up to
// date.
func (x *pass) apply(ctx context.Context) error {
	if x.Unfinished {
		if err := x.lookUp(ctx); err != nil {
			return err
		}
	}
	if err := x.withhold(ctx); err != nil {
		return err
	}
	retired := x.retire()
	x.Unfinished = true
	if err := x.save(x.w, x.manifest); err != nil {
		return err
	}
	x.compose()
	x.fit()
	if err := x.writeEvents(ctx); err != nil {
		return err
	}
	if err := x.writeItems(ctx, retired); err != nil {
		return err
	}
	for _, name := range x.removed {
		delete(x.Files, name)
	}
	for _, c := range x.changed {
		f := &fileState{SHA256: c.sum, Sections: make([]sectionState, len(c.pieces))}
		for i, p := range c.pieces {
			f.Sections[i] = p.state
		}
		x.Files[c.name] = f
	}
	return nil
}

// sourcePrefix begins the source ids of events that come of a workspace.
const sourcePrefix = "workspace:"

// lookUp reads from the log which events of workspaces it has.
func (x *pass) lookUp(ctx context.Context) error {
	for at := (memory.Cursor{}); ; {
		list, next, err := x.Log.Read(ctx, at, 1000)
		if err != nil {
			return fmt.Errorf("look for what was imported before: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		for _, e := range list {
			if strings.HasPrefix(e.Meta(memory.MetaSourceID), sourcePrefix) {
				x.known[e.ID] = e.Seq
			}
		}
		at = next
	}
}

// withhold marks the sections whose past a person has forgotten: what they say now
// would bring it back.
func (x *pass) withhold(ctx context.Context) error {
	var replaced []memory.Event
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was == nil || p.same {
				continue
			}
			for _, id := range p.was.state.Events {
				if !x.Retired[id] {
					replaced = append(replaced, memory.Event{ID: id})
				}
			}
		}
	}
	suppressed, err := x.Items.Suppressed(ctx, replaced)
	if err != nil {
		return err
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was == nil || p.same {
				continue
			}
			forgotten := p.was.state.Withheld || slices.ContainsFunc(p.was.state.Events, func(id string) bool { return suppressed[id] })
			for _, it := range p.was.state.Items {
				got, err := x.Items.Get(ctx, working.GetRequest{Handle: it.ID})
				if err != nil && !errors.Is(err, memory.ErrNotFound) {
					return err
				}
				forgotten = forgotten || !p.isDaily() && err == nil && got.Item.Status == memory.Forgotten
			}
			if p.state.Withheld = forgotten; forgotten {
				x.report.Withheld++
			}
		}
	}
	return nil
}

// retire collects the events that the workspace says no more.
func (x *pass) retire() []string {
	var ids []string
	add := func(o *oldSection) {
		for _, id := range o.state.Events {
			ids = append(ids, id)
			x.Retired[id] = true
		}
	}
	for _, o := range x.gone {
		add(o)
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.was != nil && !p.same {
				add(p.was)
			}
		}
	}
	return ids
}

// compose makes the events and items of new and changed sections.
func (x *pass) compose() {
	ws := x.w.Path()
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if p.same || p.state.Withheld {
				continue
			}
			made := p.itemsOf
			if p.isDaily() {
				p.events = events.Split(x.eventOf(ws, p.piece))
				for _, e := range p.events {
					p.state.Events = append(p.state.Events, e.ID)
				}
				made = func(ws string) []memory.Item { return p.observations(ws, x.Redact) }
			}
			for _, it := range made(ws) {
				if it.ValidTo != nil && !it.ValidTo.After(x.now) {
					x.report.Expired++
					continue
				}
				p.expected = append(p.expected, it)
			}
		}
	}
}

// fit keeps what is new within the cap of active items: sections before tagged
// lines of daily logs, then by importance, then the latest.
func (x *pass) fit() {
	type candidate struct {
		of   *newSection
		item *memory.Item
	}
	var all []candidate
	for _, c := range x.changed {
		for _, p := range c.pieces {
			for i := range p.expected {
				all = append(all, candidate{p, &p.expected[i]})
			}
		}
	}
	if x.MaxItems == 0 || len(all) <= x.MaxItems {
		return
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.of.isDaily() != b.of.isDaily() {
			if b.of.isDaily() {
				return -1
			}
			return 1
		}
		return cmp.Or(b.item.Importance-a.item.Importance, b.of.record.CreatedAt.Compare(a.of.record.CreatedAt))
	})
	for _, c := range all[x.MaxItems:] {
		c.item.Status, c.item.Reason = memory.Archived, "over the cap of active items"
		x.report.Overfull++
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			p.expected = slices.DeleteFunc(p.expected, func(it memory.Item) bool { return p.isDaily() && it.Status == memory.Archived })
		}
	}
}

// eventOf makes the event of a daily section. Its id follows from what the section
// says; a text that was retired and has come back gets another one.
func (x *pass) eventOf(ws string, p piece) memory.Event {
	at := p.moment()
	e := memory.Event{Type: memory.UserMessage, Origin: memory.OriginImport, Text: x.Redact.Text(p.text), Timestamp: at,
		SessionID: "workspace-" + at.UTC().Format(time.DateOnly),
		Metadata:  map[string]any{memory.MetaSourceID: sourceID(p), memory.MetaSpeaker: "daily log"}}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s %d %d", ws, p.record.OriginFile, p.sum, p.nth, n))
		var id ulid.ULID
		binary.BigEndian.PutUint64(id[:], uint64(max(0, min(at.UnixMilli(), int64(ulid.MaxTime()))))<<16)
		copy(id[6:], sum[:])
		if e.ID = "evt_" + id.String(); !x.Retired[e.ID] {
			return e
		}
	}
}

// sourceID is the id of an event's source: file and lines.
func sourceID(p piece) string {
	return fmt.Sprintf("%s%s:%d-%d", sourcePrefix, p.record.OriginFile, p.record.LineStart, p.record.LineEnd)
}

const eventBatch = 500

// writeEvents appends the events that the log does not have.
func (x *pass) writeEvents(ctx context.Context) error {
	var batch []memory.Event
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		written, err := x.Log.Write(ctx, batch...)
		if err != nil {
			return err
		}
		for _, e := range written {
			x.known[e.ID] = e.Seq
		}
		batch = nil
		return nil
	}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			fresh := slices.DeleteFunc(p.events, func(e memory.Event) bool { _, there := x.known[e.ID]; return there })
			if len(fresh) == 0 {
				continue
			}
			x.report.Events++
			batch = append(batch, fresh...)
			if len(batch) >= eventBatch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// Limits of one change of items.
const (
	itemBatch  = 200
	itemBytes  = 256 << 10
	otherBatch = 5000
)

// writeItems stores the new items, and takes out of use what is no more.
func (x *pass) writeItems(ctx context.Context, retired []string) error {
	b := batch{pass: x, in: x.change()}
	for _, c := range x.changed {
		for _, p := range c.pieces {
			if !p.same {
				if err := b.section(ctx, p); err != nil {
					return err
				}
			}
		}
	}
	for _, o := range x.gone {
		for _, it := range o.state.Items {
			b.in.Archive = append(b.in.Archive, working.Withdrawal{ID: it.ID, Reason: "no longer in the workspace"})
		}
	}
	b.in.Archive = append(b.in.Archive, x.withdrawn...)
	if err := b.flush(ctx); err != nil {
		return err
	}
	for part := range slices.Chunk(retired, otherBatch) {
		b.in.Suppress = part
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (x *pass) change() working.Imported { return working.Imported{Why: "workspace " + x.w.Path()} }

// batch gathers changes of items.
type batch struct {
	*pass
	in    working.Imported
	of    []*newSection // whose entries in.Put has, one for each
	bytes int
}

// section adds the items of a new or changed section, and the end of those that it
// has no more.
func (b *batch) section(ctx context.Context, p *newSection) error {
	p.state.Items = nil
	var before []itemState
	if p.was != nil {
		before = p.was.state.Items
	}
	for i, it := range p.expected {
		e := working.Entry{Item: it}
		if p.isDaily() {
			e.Item.Evidence[0].EventID, e.Item.Evidence[0].Seq, e.Item.Evidence[0].SourceID = p.state.Events[0], b.known[p.state.Events[0]], sourceID(p.piece)
		} else if i < len(before) {
			e.Replaces = before[i].ID
		}
		b.in.Put, b.of = append(b.in.Put, e), append(b.of, p)
		b.bytes += len(it.Content)
	}
	for i, old := range before {
		stays := slices.ContainsFunc(p.expected, func(it memory.Item) bool { return old.ID == it.ID || strings.HasPrefix(old.ID, it.ID+"_") })
		if !stays && (p.isDaily() || i >= len(p.expected)) {
			b.in.Archive = append(b.in.Archive, working.Withdrawal{ID: old.ID, Reason: "no longer in the workspace"})
		}
	}
	if len(b.in.Put) >= itemBatch || b.bytes >= itemBytes || len(b.in.Archive) >= otherBatch {
		return b.flush(ctx)
	}
	return nil
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.in.Put)+len(b.in.Archive)+len(b.in.Suppress) == 0 {
		return nil
	}
	res, err := b.Items.Import(ctx, b.in)
	if err != nil {
		return err
	}
	for i, p := range b.of {
		if res.IDs[i] != "" {
			p.state.Items = append(p.state.Items, itemState{ID: res.IDs[i], Until: b.in.Put[i].Item.ValidTo})
		}
	}
	b.report.Created += len(res.Created)
	b.report.Overfull += len(res.Overfull)
	b.report.Refused = append(b.report.Refused, res.Refused...)
	b.in, b.of, b.bytes = b.change(), nil, 0
	return nil
}
