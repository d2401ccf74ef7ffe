package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/sqlite"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// ofAgent examines one agent.
func (x *examination) ofAgent(ctx context.Context) {
	x.check("event log", func() error { return x.log(ctx) })
	x.check("clock", func() error { return x.clock(ctx) })
	for _, db := range databases {
		x.check(db.name, func() error { return x.database(ctx, db) })
	}
	x.check("working memory", func() error { return x.items(ctx) })
	x.check("leases", func() error { return x.leases(ctx) })
	x.check("index", func() error { return x.lag(ctx) })
	x.check("graph.json", x.graph)
	x.check("graph's journal", x.journal)
	x.check("sessions", func() error { return x.sessions(ctx) })
	x.check("jobs", func() error { return x.jobs(ctx) })
	x.check("health", x.vitals)
}

func (x *examination) reader() *events.Reader {
	return events.OpenReader(x.dir.Path("memory", "events"), zerolog.Nop())
}

// log examines the event log, line by line.
func (x *examination) log(ctx context.Context) (err error) {
	r := x.reader()
	defer func() { err = errors.Join(err, r.Close()) }()
	rep, err := r.Verify(ctx)
	if errors.Is(err, memory.ErrNotFound) {
		return errNothing
	}
	if err != nil {
		return err
	}
	verify := fmt.Sprintf("openclawssy events verify --agent %s shows all of it; a backup from before may have it whole: openclawssy restore FILE --as recovered", x.agent)
	if n := len(rep.Damage); n > 0 {
		x.add(Finding{Severity: Error, Check: "event log", What: fmt.Sprintf("%d damaged places, first in %s at byte %d", n, rep.Damage[0].File, rep.Damage[0].Offset),
			Why: "what was said there is lost; everything else is read as before", Do: verify})
	}
	if n := len(rep.Gaps); n > 0 {
		x.add(Finding{Severity: Error, Check: "event log", What: fmt.Sprintf("%d ranges of events are missing, first %d to %d", n, rep.Gaps[0].First, rep.Gaps[0].Last),
			Why: "what was said there is lost", Do: verify})
	}
	for _, t := range rep.Torn {
		f := Finding{Severity: Info, Check: "event log", What: fmt.Sprintf("%s has %d bytes of a write that was interrupted, and never acknowledged", t.File, t.Bytes)}
		if strings.HasSuffix(t.File, ".jsonl") {
			f.Severity, f.Why, f.Do = Warning, "nothing is lost; the next write moves it aside", "openclawssy doctor --fix does it now"
			agent := x.agent
			f.mend = func(context.Context) (string, error) { return "moved aside, into a file of its own", nil }
			f.then = func(ctx context.Context) error { return x.Reopen(ctx, agent) }
		} else {
			f.Do = "nothing; it may be deleted"
		}
		x.add(f)
	}
	return nil
}

// How far clocks may be apart, and how many of the last events are looked at.
const (
	clockSlack = 2 * time.Minute
	clockTail  = 1000
)

// clock looks for events that were written in the future, or before those that
// stand before them, by the times in their ids.
func (x *examination) clock(ctx context.Context) (err error) {
	r := x.reader()
	defer func() { err = errors.Join(err, r.Close()) }()
	tail, err := r.Tail(ctx, clockTail)
	if errors.Is(err, memory.ErrNotFound) {
		return errNothing
	}
	if err != nil {
		return err
	}
	var latest time.Time
	var back time.Duration
	var at int64
	for _, e := range tail {
		id, err := ulid.ParseStrict(strings.TrimPrefix(e.ID, "evt_"))
		if err != nil {
			continue // made elsewhere
		}
		written := id.Timestamp()
		if d := latest.Sub(written); d > max(back, clockSlack) {
			back, at = d, e.Seq
		}
		if written.After(latest) {
			latest = written
		}
	}
	const why = "order is kept by number, not by time; but days, jobs and what recall says of when are off"
	if ahead := latest.Sub(x.Now()); ahead > clockSlack {
		x.add(Finding{Severity: Warning, Check: "clock", What: fmt.Sprintf("the newest event was written %s in the future", ahead.Round(time.Minute)), Why: why, Do: "set the machine's clock; the events stay as they are"})
	} else if back > 0 {
		x.add(Finding{Severity: Info, Check: "clock", What: fmt.Sprintf("it was set back by %s before event %d", back.Round(time.Minute), at), Why: why, Do: "nothing, if the clock is right now"})
	}
	return nil
}

// database is one SQLite file of an agent.
type database struct {
	name, path string
	derived    bool // it can be made anew
}

var databases = []database{
	{"memory.db", "memory/memory.db", true},
	{"archive.db", "memory/archive.db", true},
	{"records.db", "memory/records.db", false},
	{"messages.db", "memory/messages.db", false},
	{"workspace.db", "memory/workspace.db", true},
	{"vectors.db", "memory/vectors.db", true},
}

// database examines one database, page by page.
func (x *examination) database(ctx context.Context, db database) error {
	path := x.dir.Path(filepath.FromSlash(db.path))
	err := checkDatabase(ctx, path)
	if errors.Is(err, memory.ErrNotFound) {
		return errNothing
	}
	if !errors.Is(err, memory.ErrCorrupt) {
		return err
	}
	f := Finding{Severity: Error, Check: db.name, What: err.Error()}
	if !db.derived {
		f.Why = "it is the only place that holds what is in it"
		f.Do = fmt.Sprintf("openclawssy restore FILE --as recovered --agent %s brings a backup back beside it; keep %s", x.agent, path)
		x.add(f)
		return nil
	}
	f.Why, f.Do = "it can be made anew; until then recall answers with less", fmt.Sprintf("openclawssy doctor --fix --agent %s", x.agent)
	agent := x.agent
	f.mend = func(context.Context) (string, error) {
		aside, err := x.setAside(agent, path)
		if err != nil {
			return "", err
		}
		if db.name == "vectors.db" {
			return "set aside as " + aside + "; openclawssy memory reembed makes it anew", nil
		}
		if db.name == "workspace.db" {
			return "set aside as " + aside + "; the next workspace command makes it anew", nil
		}
		return "set aside as " + aside + ", and made anew from the event log", nil
	}
	if db.name != "workspace.db" && db.name != "vectors.db" {
		f.then = func(ctx context.Context) error { return x.Reopen(ctx, agent) }
	}
	x.add(f)
	return nil
}

func checkDatabase(ctx context.Context, path string) error {
	db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true, Traceless: true})
	if err != nil {
		return err
	}
	return errors.Join(db.Check(ctx, true), db.Close())
}

// setAside renames a damaged file of an agent that no process uses, with what
// belongs to it.
func (x *examination) setAside(agent memory.AgentID, path string) (name string, err error) {
	dir, err := x.Home.Find(agent)
	if err != nil {
		return "", err
	}
	open := flock.New(dir.Path("memory", working.OpenName), flock.SetPermissions(0o600))
	alone, err := open.TryLock()
	if err != nil {
		return "", errors.Join(memory.Errorf(memory.ErrUnavailable, "lock %s: %w", open.Path(), err), open.Close())
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	if !alone {
		return "", memory.WithHint(memory.Errorf(memory.ErrConflict, "another process uses agent %s", agent), "end openclawssy serve, chat and whatever else runs on this home, and try again")
	}
	mark := ".damaged-"
	if strings.HasSuffix(path, ".db") {
		mark = ".corrupt-" // by which backups leave it out, and status tells of it
	}
	aside := path + mark + x.Now().UTC().Format("20060102T150405.000Z")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !(suffix != "" && errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
	}
	return filepath.Base(aside), nil
}

// items examines how far working memory follows the log, and what waits in it.
func (x *examination) items(ctx context.Context) (err error) {
	r := x.reader()
	defer func() { err = errors.Join(err, r.Close()) }()
	h, err := working.Look(ctx, x.dir.Path("memory"), x.agent, r)
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrCorrupt) {
		return errNothing // yet; or memory.db is damaged, and that was said
	}
	if err != nil {
		return err
	}
	agent := x.agent
	for _, what := range h.Degraded {
		f := Finding{Severity: Warning, Check: "working memory", What: what, Why: "what is recalled may be behind what was said", Do: fmt.Sprintf("openclawssy doctor --fix --agent %s", agent)}
		if strings.Contains(what, "look at it, then delete it") {
			f.Severity, f.Why, f.Do = Info, "", "delete it when you have looked"
		} else {
			f.mend = func(ctx context.Context) (string, error) {
				return "brought up to date with the log", x.Reopen(ctx, agent)
			}
		}
		x.add(f)
	}
	if n := len(h.Parked); n > 0 {
		x.add(Finding{Severity: Warning, Check: "working memory", What: fmt.Sprintf("%d ranges of events could not be distilled: %s", n, h.Parked[0].Reason),
			Why: "they are recalled as they were said, but nothing is concluded from them", Do: fmt.Sprintf("openclawssy memory checkpoint --agent %s", agent)})
	}
	if n := h.Items[memory.Quarantined]; n > 0 {
		x.add(Finding{Severity: Info, Check: "working memory", What: fmt.Sprintf("%d memories wait for your approval", n), Do: fmt.Sprintf("openclawssy memory list --status quarantined --agent %s", agent)})
	}
	return nil
}

// graph examines whether the graph's file can be read.
func (x *examination) graph() error {
	path := x.dir.Path("memory", "graph.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNothing
	}
	if err == nil && json.Valid(text) {
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "read %s: %w", path, err)
	}
	agent := x.agent
	x.add(Finding{Severity: Error, Check: "graph.json", What: path + " is no JSON", Why: "the graph cannot be read; what follows from memories can be made anew, what was put into it directly cannot",
		Do: fmt.Sprintf("bring it back from a backup: openclawssy restore FILE --as recovered; or: openclawssy doctor --fix --agent %s", agent),
		mend: func(context.Context) (string, error) {
			aside, err := x.setAside(agent, path)
			return "set aside as " + aside + "; openclawssy graph rebuild makes anew what follows from memories", err
		}})
	return nil
}

// sessions examines the file of each session.
func (x *examination) sessions(ctx context.Context) error {
	dir := x.dir.Path("sessions")
	bad, err := session.Damaged(dir, x.agent)
	if err != nil || len(bad) == 0 {
		return err
	}
	agent := x.agent
	for _, d := range bad {
		x.add(Finding{Severity: Error, Check: "sessions", What: fmt.Sprintf("%s cannot be read: %s", filepath.Join(dir, d.Name), d.Reason),
			Why: "turns of this session fail; what was said in it is in the event log", Do: fmt.Sprintf("openclawssy doctor --fix --agent %s", agent),
			mend: func(ctx context.Context) (string, error) { return x.rebuildSession(ctx, agent, dir, d.Name) }})
	}
	return nil
}

// rebuildSession sets a session's file aside, and writes it anew from what the log
// and the runs know of it.
func (x *examination) rebuildSession(ctx context.Context, agent memory.AgentID, dir, name string) (did string, err error) {
	home, err := x.Home.Find(agent)
	if err != nil {
		return "", err
	}
	r := events.OpenReader(home.Path("memory", "events"), zerolog.Nop())
	defer func() { err = errors.Join(err, r.Close()) }()
	var found memory.Session
	for at := (memory.Cursor{}); found.ID == ""; {
		batch, next, err := r.Read(ctx, at, 2000)
		if err != nil {
			return "", err
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			if e.SessionID != "" && session.FileName(e.SessionID) == name {
				found = memory.Session{ID: e.SessionID, Agent: agent, Kind: memory.SessionMain, Channel: channelOf(home.Path("runs", e.RunID)), Started: e.Timestamp}
				break
			}
		}
		at = next
	}
	aside := name + ".damaged-" + x.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, aside)); err != nil {
		return "", err
	}
	if found.ID == "" {
		return "set aside as " + aside + "; no event is of that session", nil
	}
	return "set aside as " + aside + ", and made anew from the event log, as a private session of no named user", x.Sessions(ctx, agent, found)
}

// channelOf reads the channel of a run; "cli" where it is not known.
func channelOf(run string) string {
	var in struct{ Channel string }
	text, err := os.ReadFile(filepath.Join(run, "input.json"))
	if err == nil && json.Unmarshal(text, &in) == nil && in.Channel != "" {
		return in.Channel
	}
	return "cli"
}

// leases examines who has the right to do one of the long jobs.
func (x *examination) leases(ctx context.Context) error {
	held, err := working.LookLeases(ctx, x.dir.Path("memory"))
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrCorrupt) {
		return errNothing // yet; or memory.db is damaged, and that was said
	}
	if err != nil {
		return err
	}
	for _, h := range held {
		switch {
		case !h.Alive:
			x.add(Finding{Severity: Info, Check: "leases", What: fmt.Sprintf("a %s did not come to its end: %s was killed", h.Name, h.Holder), Do: "nothing; the next one takes its place at once, and what was done is whole"})
		case h.Expires.Before(x.Now()):
			x.add(Finding{Severity: Warning, Check: "leases", What: fmt.Sprintf("a %s hangs since %s: %s", h.Name, h.Expires.Format(time.RFC3339), h.Holder),
				Why: "it holds nobody up, but what it was to do is not done", Do: "end that process, then: openclawssy cron run --due --agent " + string(x.agent)})
		}
	}
	return nil
}

// manyUnindexed is from how many events on it is not the next recall that indexes
// them in passing.
const manyUnindexed = 256

// lag examines how far the search index follows the log.
func (x *examination) lag(ctx context.Context) error {
	n, err := x.Lag(ctx, x.agent)
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrCorrupt) {
		return errNothing // yet; or archive.db is damaged, and that was said
	}
	if err != nil || n <= manyUnindexed {
		return err
	}
	agent := x.agent
	x.add(Finding{Severity: Warning, Check: "index", What: fmt.Sprintf("%d events are not searchable yet", n), Why: "a turn with a deadline is answered without them until they are indexed beside it",
		Do:   fmt.Sprintf("openclawssy doctor --fix --agent %s", agent),
		mend: func(ctx context.Context) (string, error) { return "indexed", x.Reopen(ctx, agent) }})
	return nil
}

// journal examines what was written beside the graph's file since it was written
// whole.
func (x *examination) journal() error {
	rep, err := graph.CheckJournal(x.dir.Path("memory", graph.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return errNothing
	}
	if err != nil {
		return err
	}
	if rep.Damaged > 0 {
		x.add(Finding{Severity: Error, Check: "graph's journal", What: fmt.Sprintf("%d of %d changes in %s are damaged", rep.Damaged, rep.Lines, graph.FileName+graph.JournalSuffix),
			Why: "what they put into the graph is lost; whoever opens it next copies the journal aside and goes on without them",
			Do:  fmt.Sprintf("openclawssy graph rebuild --agent %s makes anew what follows from memories; a backup has the rest: openclawssy restore FILE --as recovered", x.agent)})
	}
	if rep.Torn > 0 {
		x.add(Finding{Severity: Info, Check: "graph's journal", What: fmt.Sprintf("it ends with %d bytes of a write that was interrupted, and never acknowledged", rep.Torn), Do: "nothing; the next change takes their place"})
	}
	return nil
}

func (x *examination) jobs(ctx context.Context) error {
	plan, err := x.Schedule(ctx, x.agent)
	if err != nil {
		return err
	}
	for _, what := range plan.Trouble {
		x.add(Finding{Severity: Warning, Check: "jobs", What: what, Why: "jobs that were added or paused last may be missing", Do: "look at it, and at: openclawssy cron list --agent " + string(x.agent)})
	}
	var late []string
	for _, j := range plan.Jobs {
		again := fmt.Sprintf("openclawssy cron list --agent %s shows its runs; mend what it says, then: openclawssy cron run %s --agent %s", x.agent, j.Name, x.agent)
		if j.Failed > 0 {
			x.add(Finding{Severity: Warning, Check: "jobs", What: fmt.Sprintf("%s failed %s, last at %s: %s", j.Name, times(j.Failed), j.Last.UTC().Format(time.RFC3339), j.Detail), Why: "what it is for is not done", Do: again})
		}
		if j.Stuck {
			x.add(Finding{Severity: Warning, Check: "jobs", What: j.Name + " has passed its deadline and not returned", Why: "it is not started again before it does", Do: "end the process that runs it: openclawssy serve, or chat"})
		}
		if j.Overdue && !plan.Serving {
			late = append(late, j.Name)
		}
	}
	if len(late) > 0 {
		x.add(Finding{Severity: Warning, Check: "jobs", What: strings.Join(late, ", ") + ": overdue, and nothing runs the schedule", Why: "what was said is not distilled, and memory is not kept in order",
			Do: fmt.Sprintf("openclawssy serve, or: openclawssy cron run --due --agent %s", x.agent)})
	}
	return nil
}

// vitals examines what earlier processes have noted, and work that was broken off.
func (x *examination) vitals() error {
	if _, err := os.Stat(x.dir.Path("memory", "erase.pending")); err == nil {
		x.add(Finding{Severity: Warning, Check: "health", What: "an erasure was interrupted", Why: "what was to be erased may still be there", Do: fmt.Sprintf("openclawssy status --agent %s ends it", x.agent)})
	}
	v, err := vitals.Read(x.dir.Path())
	if errors.Is(err, memory.ErrCorrupt) {
		agent, path := x.agent, x.dir.Path(vitals.FileName)
		x.add(Finding{Severity: Warning, Check: "health", What: err.Error(), Why: "since when something is wrong, and whether events were lost, is not known", Do: fmt.Sprintf("openclawssy doctor --fix --agent %s", agent),
			mend: func(context.Context) (string, error) {
				aside, err := x.setAside(agent, path)
				return "set aside as " + aside, err
			}})
		return nil
	}
	if err != nil {
		return err
	}
	if v.Lost != nil {
		x.lost(*v.Lost)
	}
	if v.Hooks != nil {
		x.add(Finding{Severity: Info, Check: "health", What: fmt.Sprintf("%d things that happened are missing from the graph's record of them, last at %s", v.Hooks.Events, v.Hooks.Last.Format(time.RFC3339)), Do: "nothing; memory is whole without them"})
	}
	if f := v.Flush; f != nil && (f.State == vitals.FlushSkipped || f.State == vitals.FlushFailed) {
		x.add(Finding{Severity: Warning, Check: "health", What: fmt.Sprintf("what was said up to event %d could not be distilled, for %s: %s", f.UpTo, f.Reason, f.Detail),
			Why: "it is recalled as it was said, but nothing is concluded from it", Do: fmt.Sprintf("openclawssy memory checkpoint --agent %s", x.agent)})
	}
	if v.Backup != nil && x.BackupDays > 0 && x.Now().Sub(*v.Backup) > time.Duration(x.BackupDays)*24*time.Hour {
		x.add(Finding{Severity: Warning, Check: "health", What: "the last backup is of " + v.Backup.Format(time.RFC3339), Why: "what was said since then is in one place only", Do: fmt.Sprintf("openclawssy backup --agent %s FILE", x.agent)})
	}
	return nil
}

// lost tells of events that could not be taken, and takes note of them where that is
// asked for.
func (x *examination) lost(l vitals.Lost) {
	f := Finding{Severity: Info, Check: "health", What: fmt.Sprintf("%d events could not be taken, last at %s", l.Events, l.Last.Format(time.RFC3339))}
	if l.Open() == 0 {
		f.What += ", acknowledged at " + l.AcknowledgedAt.Format(time.RFC3339)
		x.add(f)
		return
	}
	f.Severity, f.Why = Error, "they are lost: the disk was too slow, or full"
	f.Do = fmt.Sprintf("find out what was wrong with the disk; then: openclawssy doctor --acknowledge --agent %s", x.agent)
	agent := x.agent
	f.acknowledge = func(ctx context.Context) (string, error) {
		n, err := x.Acknowledge(ctx, agent)
		return fmt.Sprintf("acknowledged: %d lost events stay counted, and are no longer wrong", n), err
	}
	x.add(f)
}

// times says how often.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// canary examines whether what is written is recalled: what the last probe said, or
// one that is made now.
func (x *examination) canary(ctx context.Context, now bool) error {
	v, err := vitals.Read(x.dir.Path())
	if errors.Is(err, memory.ErrCorrupt) {
		err = nil // it was said
	}
	if err != nil {
		return err
	}
	agent, last := x.agent, v.Canary
	if now {
		made, err := x.Canary(ctx, agent)
		if errors.Is(err, memory.ErrNotFound) {
			return errNothing
		}
		if err != nil {
			return err
		}
		last = &made
	}
	if last == nil {
		return errNothing
	}
	if !last.Ok && !last.At.IsZero() {
		x.add(Finding{Severity: Error, Check: "canary", What: fmt.Sprintf("what was written at %s could not be recalled: %s", last.At.Format(time.RFC3339), last.Error),
			Why: "what is said now may not be recalled either", Do: fmt.Sprintf("mend what else is found here, then: openclawssy memory canary --agent %s", agent)})
	}
	if last.Open {
		probing, err := x.locked(x.dir.Path("memory", "canary.lock"))
		if err != nil || probing {
			return err
		}
		x.add(Finding{Severity: Warning, Check: "canary", What: "a probe of the memory was interrupted", Why: "what it wrote is still in the log; nothing finds it", Do: fmt.Sprintf("openclawssy doctor --fix --agent %s", agent),
			mend: func(ctx context.Context) (string, error) {
				made, err := x.Canary(ctx, agent)
				if err == nil && !made.Ok {
					err = memory.Errorf(memory.ErrUnavailable, "%s", made.Error)
				}
				return "removed, and another probe was recalled", err
			}})
	}
	return nil
}

// locked reports whether another process holds the lock of a file. A file that is
// not there nobody holds.
func (x *examination) locked(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryLock()
	return !free, errors.Join(err, lock.Close())
}
