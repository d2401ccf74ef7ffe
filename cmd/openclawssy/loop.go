package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/runtime"
	"github.com/openclawssy/openclawssy/internal/scheduler"
	"github.com/openclawssy/openclawssy/internal/session"
)

// inlineLag is how many events a recall with a deadline waits for until they are
// indexed; for more it does not wait.
const inlineLag = 256

// recallable lends an agent's archive for recall, brought up to date with its
// log as far as the deadline of ctx leaves time for.
func (h *house) recallable(ctx context.Context, agent memory.AgentID) (*archive.Store, func(), error) {
	deadline, hurried := ctx.Deadline()
	if !hurried {
		return h.followed(ctx, agent)
	}
	log, releaseLog, err := h.readLog(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	defer releaseLog()
	a, release, err := h.archives.read(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	last, err := log.LastSeq()
	if err != nil {
		// What is indexed can be recalled all the same; status says more.
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("read the event log")
		return a, release, nil
	}
	lag, err := a.Lag(ctx, last)
	switch {
	case err != nil:
		release()
		return nil, nil, err
	case lag == 0:
	case lag > inlineLag:
		h.index(agent)
	default:
		h.await(ctx, a, agent, last, time.Until(deadline)/2)
	}
	return a, release, nil
}

// archiveAndRest lends an agent's archive, and tells the few events behind those that
// are in it: whoever only asks what was told need not wait until they are indexed.
// Where they are many the archive is brought up to date.
func (h *house) archiveAndRest(ctx context.Context, agent memory.AgentID) (*archive.Store, []memory.Event, func(), error) {
	log, releaseLog, err := h.readLog(ctx, agent)
	if err != nil {
		return nil, nil, nil, err
	}
	defer releaseLog()
	a, release, err := h.archives.read(ctx, agent)
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := a.Cursor(ctx)
	if err == nil {
		rest, _, err := log.Read(ctx, at, inlineLag)
		if err == nil && len(rest) < inlineLag {
			return a, rest, release, nil
		}
	}
	release()
	a, release, err = h.followed(ctx, agent)
	return a, nil, release, err
}

// await waits until an agent's archive holds all events up to last, but no longer
// than so long: somebody else may be writing, and what is indexed already is not to
// be missed for the sake of the little that is not.
func (h *house) await(ctx context.Context, a *archive.Store, agent memory.AgentID, last int64, patience time.Duration) {
	over := time.NewTimer(patience)
	defer over.Stop()
	for range 2 { // the run under way may have begun before the last event came
		select {
		case <-h.index(agent):
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
		if lag, err := a.Lag(ctx, last); err != nil || lag == 0 {
			return
		}
	}
}

// index brings an agent's archive up to date in the background, one run at a
// time. What it returns is closed when the run has ended.
func (h *house) index(agent memory.AgentID) <-chan struct{} {
	ended := make(chan struct{})
	if other, running := h.indexing.LoadOrStore(agent, ended); running {
		return other.(chan struct{})
	}
	h.background.Go(func() {
		defer close(ended)
		defer h.indexing.Delete(agent)
		_, release, err := h.followed(h.life, agent)
		if err != nil {
			if h.life.Err() == nil { // else it is done when the program runs again
				h.log.Warn().Err(err).Str("agent", string(agent)).Msg("index new events")
			}
			return
		}
		release()
	})
	return ended
}

// makeRecall returns the recall of all agents.
func (h *house) makeRecall(more ...recall.Source) *recall.Service {
	return recall.New(recall.Options{
		Archive: h.recallable, Items: h.items.read, Sources: more, Near: (&weave.Walker{Read: h.walkable}).Near, Meaning: h.meant, Warm: h.warmRecall, Redact: lateRedactor{h}, Now: h.now,
		Settings:    h.recallSettings,
		SessionKind: h.sessionKind,
		Health:      h.degraded,
		Rerank:      h.reranker,
	})
}

// todayOf asks recall what it would inject now, leaving out what stood in the run's
// prompt, as the run itself did, and what was said behind that.
func (h *house) todayOf(rec *recall.Service) runlog.Today {
	return func(ctx context.Context, agent memory.AgentID, asked runlog.Asked) ([]string, error) {
		first := asked.InPrompt
		if first == 0 {
			var err error
			if first, err = h.firstOf(ctx, agent, asked.Run); err != nil {
				return nil, err
			}
		}
		return rec.Block(ctx, agent, recall.Request{Text: asked.Query, Session: asked.Session, Now: asked.At, InPrompt: first}).Lines, nil
	}
}

// firstOf returns the seq of a run's first event, which runs of earlier versions did
// not keep, by looking through the whole log; 0 where it has none.
func (h *house) firstOf(ctx context.Context, agent memory.AgentID, run string) (int64, error) {
	log, release, err := h.readLog(ctx, agent)
	if err != nil {
		return 0, err
	}
	defer release()
	first, found := int64(0), errors.New("found")
	err = log.Scan(ctx, func(e *events.Head) error {
		if string(e.Run) != run {
			return nil
		}
		first = e.Seq
		return found
	})
	if errors.Is(err, found) {
		err = nil
	}
	return first, err
}

func (h *house) recallSettings(agent memory.AgentID) recall.Settings {
	cfg, err := h.cfg.For(agent)
	if err != nil { // checked when it was loaded
		cfg = h.cfg
	}
	return recall.Settings{
		Tokens: cfg.Memory.MaxPromptTokens, MaxLines: cfg.Recall.MaxItems, MinImportance: cfg.Recall.MinImportance, Threshold: cfg.Recall.Threshold,
		Deadline: time.Duration(cfg.Recall.DeadlineMS) * time.Millisecond, PrivateInGroups: cfg.Recall.PrivateInGroups, Hops: cfg.Recall.GraphHops,
	}
}

// sessionKind answers "" where it is not known: such a session is private.
func (h *house) sessionKind(agent memory.AgentID, id string) string {
	dir, err := h.home.Find(agent)
	if err != nil {
		return ""
	}
	s, err := h.sessions(agent, dir)
	if err != nil {
		return ""
	}
	kind, err := s.Kind(h.life, id)
	if err != nil {
		return ""
	}
	return kind
}

// knownSessions, writeSessions and writeRuns lend what needs no closing.
func (h *house) knownSessions(_ context.Context, agent memory.AgentID) (*session.Store, func(), error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.sessions(agent, dir)
	return s, func() {}, err
}

func (h *house) writeSessions(_ context.Context, agent memory.AgentID) (*session.Store, func(), error) {
	dir, err := h.home.Make(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.sessions(agent, dir)
	return s, func() {}, err
}

func (h *house) writeRuns(_ context.Context, agent memory.AgentID) (*runlog.Store, func(), error) {
	dir, err := h.home.Make(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.runs(agent, dir)
	return s, func() {}, err
}

// makeRuntime returns the agent loop. It looks up the Catalog when a turn runs.
func (h *house) makeRuntime(c *op.Catalog, rec *recall.Service) *runtime.Runtime {
	return runtime.New(runtime.Options{
		Config: func(agent memory.AgentID) (config.Config, error) { return h.cfg.For(agent) },
		Model: func(agent memory.AgentID) (llm.Chatter, error) {
			client, err := h.model()
			if err != nil {
				return nil, err
			}
			if client == nil {
				cfg, err := h.cfg.For(agent)
				return llm.Offline{Forgets: !cfg.Memory.Enabled}, err
			}
			return client, nil
		},
		Catalog: c, Logs: h.logs.write, Sessions: h.writeSessions, Known: h.knownSessions, Runs: h.writeRuns, Recall: rec, Flush: h.flushes, Lives: livesIn{h},
		Hooks: h.recorder, Persona: h.persona, Hold: h.hold(erasure.Turn),
		Redact: lateRedactor{h}, Now: h.now, NewID: h.newID, Log: h.log,
	})
}

// makeScheduler returns the scheduler of the home.
func (h *house) makeScheduler(c *op.Catalog, rt *runtime.Runtime) *scheduler.Scheduler {
	began := h.now()
	return scheduler.New(scheduler.Options{
		Dir: func() string { return h.home.File("scheduler") }, Now: h.now, Elapsed: func() time.Duration { return h.now().Sub(began) },
		Catalog: c, Talker: rt, Hooks: h.recorder, Redact: lateRedactor{h}, Deadline: h.jobDeadline,
		Agents: func() ([]memory.AgentID, error) { return h.home.List() },
		Auto: func(agent memory.AgentID) (scheduler.Auto, error) {
			cfg, err := h.cfg.For(agent)
			return scheduler.Auto{Checkpoint: cfg.Memory.Enabled && cfg.Memory.AutoCheckpoint, Maintenance: cfg.Memory.Enabled && cfg.Memory.AutoMaintenance,
				Began: func() time.Time { return h.began(agent) }, MessagesSince: h.messagesSince(agent)}, err
		},
		Reads: h.readLog, Writes: h.logs.write, Audit: h.writeRuns, Queued: h.drain, Hold: h.hold(erasure.Job), Log: h.log,
	})
}

// began is the end of the day on which an agent's first event was written; the zero
// time where there is none.
func (h *house) began(agent memory.AgentID) time.Time {
	log, release, err := h.readLog(context.Background(), agent)
	if err != nil {
		return time.Time{} // there is none, or it cannot be read, which status says
	}
	defer release()
	day, err := log.FirstDay()
	if err != nil || day.IsZero() {
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}

func (h *house) jobDeadline() time.Duration { return time.Duration(h.cfg.Scheduler.JobDeadline) }

// planned tells where an agent's jobs stand.
func planned(s *scheduler.Scheduler) func(context.Context, memory.AgentID) (care.Schedule, error) {
	return func(ctx context.Context, agent memory.AgentID) (care.Schedule, error) {
		var plan care.Schedule
		list, err := s.List(ctx, agent, struct{}{})
		if err != nil {
			return plan, err
		}
		for _, j := range list.Jobs {
			if j.Overdue && !list.Serving {
				plan.Overdue = append(plan.Overdue, j.Name)
			}
			if j.Next != nil {
				plan.Next = append(plan.Next, care.NextJob{Name: j.Name, At: *j.Next})
			}
		}
		slices.SortStableFunc(plan.Next, func(a, b care.NextJob) int { return a.At.Compare(b.At) })
		return plan, nil
	}
}

// overdue names an agent's jobs that should have run while nothing ran them.
func overdue(s *scheduler.Scheduler) func(context.Context, memory.AgentID) ([]string, error) {
	return func(ctx context.Context, agent memory.AgentID) ([]string, error) {
		plan, err := planned(s)(ctx, agent)
		return plan.Overdue, err
	}
}

// talk is what the chat commands work with.
func (h *house) talk(rt *runtime.Runtime, s *scheduler.Scheduler) cli.Talk {
	return cli.Talk{
		Run: rt.Run, Sleep: rt.Sleep, Schedule: h.longLived(s), Overdue: overdue(s),
		Warm: h.warm, News: h.news,
	}
}

// serve runs the schedule of all agents.
func (h *house) serve(s *scheduler.Scheduler) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := h.forMany(); err != nil {
			return err
		}
		err := h.longLived(s)(ctx)
		if left := h.flushes.Leave(context.WithoutCancel(ctx)); left != nil {
			h.log.Warn().Err(left).Msg("what was said lately is not queued to be distilled; it is found when a process runs again")
		}
		return err
	}
}

// warm opens an agent's stores and brings its index up to date, so that no
// turn's deadline has to cover it. A new agent is made, where it may have memory.
func (h *house) warm(ctx context.Context, agent memory.AgentID) error {
	cfg, err := h.cfg.For(agent)
	if err != nil || !cfg.Memory.Enabled {
		return err
	}
	if _, err := h.home.Make(agent); err != nil {
		return err
	}
	_, releaseArchive, err := h.followed(ctx, agent)
	if err != nil {
		return err
	}
	err = h.warmRanking(ctx, agent)
	releaseArchive()
	if err != nil {
		return err
	}
	_, releaseItems, err := h.items.read(ctx, agent)
	if err != nil {
		return err
	}
	releaseItems()
	return errors.Join(h.meaning.Warm(ctx, agent), h.warmGraph(ctx, agent))
}

// warmRanking loads what ranking knows of each passage, where that is not in memory.
func (h *house) warmRanking(ctx context.Context, agent memory.AgentID) error {
	a, release, err := h.archives.read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	_, err = a.Search(ctx, nil, nil)
	return err
}

// warmRecall loads, before the deadline of a block begins, what the block asks once its
// stores are open. What goes wrong there the block says again.
func (h *house) warmRecall(ctx context.Context, agent memory.AgentID) {
	for what, warm := range map[string]func(context.Context, memory.AgentID) error{"read what ranking knows of passages": h.warmRanking, "load vectors": h.meaning.Warm, "open the graph": h.warmGraph} {
		if err := warm(ctx, agent); err != nil && ctx.Err() == nil {
			h.log.Warn().Err(err).Str("agent", string(agent)).Msg(what)
		}
	}
}

// warmGraph opens the graph that recall walks, where it does, and lets it follow
// what the process before this one has not come to.
func (h *house) warmGraph(ctx context.Context, agent memory.AgentID) error {
	if h.recallSettings(agent).Hops == 0 {
		return nil
	}
	_, release, err := h.walkable(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	release()
	return nil
}
