package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/flush"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/meaning"
	"github.com/openclawssy/openclawssy/internal/memory/recall"
	"github.com/openclawssy/openclawssy/internal/memory/record"
	"github.com/openclawssy/openclawssy/internal/memory/vectors"
	"github.com/openclawssy/openclawssy/internal/memory/weave"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/message"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/proxy"
	"github.com/openclawssy/openclawssy/internal/redact"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/runtime"
	"github.com/openclawssy/openclawssy/internal/scheduler"
	"github.com/openclawssy/openclawssy/internal/session"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// house holds what the rooms share, and wires them. Nothing is opened before a
// command needs it.
type house struct {
	now     func() time.Time
	getenv  func(string) string
	environ []string

	// Known once the flags are read.
	opts          cli.Options
	only          bool // one agent is worked on, and the contracts' own variables count for it
	home          agents.Home
	cfg           config.Config
	misconfigured error // with Options.AnyConfig: why cfg has the defaults only
	looking       bool  // nothing may be written, by the way either
	log           zerolog.Logger

	redactor func() (*redact.Redactor, error) // with the home's key, made on first use
	model    func() (*llm.Client, error)      // as configured, made on first use; nil for none
	upstream func() (*proxy.Upstream, error)  // likewise, for requests of other programs

	rerankers sync.Map // of config.Recall: func() recall.Reranker
	embedders sync.Map // of config.Embeddings: func() (*embed.Client, error)
	meaning   *meaning.Service
	embedding embedding
	lasting   atomic.Bool // this process serves for a while

	flushes    *flush.Queue
	life       context.Context // ends when the house is closed
	end        context.CancelFunc
	background sync.WaitGroup
	weaving    weaving
	recorder   *weave.Recorder
	desk       *message.Service
	canary     *care.Canary
	sources    adminSources
	turns      *runtime.Runtime
	recalls    *recall.Service
	proxy      atomic.Pointer[proxy.Proxy] // nil where none is served
	talks      sync.Map                    // of agents: their *session.Store
	losses     *vitals.Losses
	indexing   sync.Map // of agents whose archive is being brought up to date: chan struct{}, closed at the end
	schedule   *scheduler.Scheduler
	erasure    *care.Erasure
	warmed     sync.Map // of agents: the lock of opening their stores before a first turn
	isWarm     sync.Map // agents whose stores were opened so: true
	ending     sync.Map // agents whose interrupted erasure is being ended: true

	logs     *stores[*events.Log]
	items    *stores[*working.Store]
	archives *stores[*archive.Store]
	records  *stores[*record.Store]
	graphs   *stores[*graph.Store]
	ledgers  *stores[*message.Store]
	vectors  *stores[*vectors.Store]
}

// made returns what make returns, which is made once. What failed is tried again by
// the next who asks: a disk or a table of files that was full need not stay so.
func made[T any](make func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var done bool
	var it T
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if done {
			return it, nil
		}
		fresh, err := make()
		if err != nil {
			return fresh, err
		}
		it, done = fresh, true
		return it, nil
	}
}

func newHouse(now func() time.Time, getenv func(string) string, environ []string) *house {
	h := &house{now: now, getenv: getenv, environ: environ}
	h.redactor = made(h.makeRedactor)
	h.model = made(h.makeModel)
	h.upstream = made(h.makeUpstream)
	h.life, h.end = context.WithCancel(context.Background())
	h.log = zerolog.New(os.Stderr).With().Timestamp().Logger()
	h.losses = &vitals.Losses{Dir: h.agentDir, Now: now, Log: h.log}
	h.erasure = h.makeErasure()
	h.logs = newStores(h, h.openLog, nil)
	h.items = newStores(h, h.openItems, h.readItems)
	h.archives = newStores(h, h.openArchive, h.readArchive)
	h.records = newStores(h, h.openRecords, h.openRecordsReadOnly)
	h.graphs = newStores(h, h.openGraph, h.openGraphReadOnly)
	h.ledgers = newStores(h, h.openLedger, h.openLedgerReadOnly)
	h.vectors = newStores(h, h.openVectors, h.openVectorsReadOnly)
	h.embedding.wake = make(chan struct{}, 1)
	h.meaning = h.makeMeaning()
	return h
}

// close gives back everything that was opened. Stores that work on others go
// first.
func (h *house) close() error {
	h.end()
	h.background.Wait()
	h.weaving.work.Wait()
	if h.recorder != nil {
		h.recorder.Wait()
	}
	h.embedRest()
	err := errors.Join(h.vectors.close(), h.ledgers.close(), h.items.close(), h.archives.close(), h.records.close(), h.graphs.close(), h.logs.close())
	h.losses.Close() // what the logs could not write at their end is among it
	return err
}

// newID returns a fresh ULID. It is safe for concurrent use.
func (h *house) newID() string {
	return ulid.MustNew(ulid.Timestamp(h.now()), ulid.DefaultEntropy()).String()
}

// setup takes the flags, finds the home and reads the configuration.
func (h *house) setup(o cli.Options) error {
	h.opts, h.only = o, o.Named
	path, err := h.homePath(o.Home)
	if err != nil {
		return err
	}
	if h.home, err = agents.NewHome(path); err != nil {
		return err
	}
	h.cfg, err = config.Load(config.Sources{File: h.home.File("config.yaml"), Environ: h.environ, Set: o.Set})
	if err != nil && o.AnyConfig {
		h.misconfigured = err
		h.cfg, err = config.Default()
	}
	if err != nil {
		return err
	}
	level, err := zerolog.ParseLevel(h.cfg.Log.Level)
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "log.level: %w", err)
	}
	zerolog.SetGlobalLevel(level) // rooms made before the flags were read hold a copy of the logger
	return nil
}

// homePath is the flag, else the environment, else .openclawssy here if it is
// there, else ~/.openclawssy.
func (h *house) homePath(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if path := h.getenv("OPENCLAWSSY_HOME"); path != "" {
		return path, nil
	}
	st, err := os.Stat(".openclawssy")
	switch {
	case err == nil && st.IsDir():
		return ".openclawssy", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", memory.Errorf(memory.ErrUnavailable, "look for .openclawssy: %w", err)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "find a home: %w", err), "give one with --home")
	}
	return filepath.Join(user, ".openclawssy"), nil
}

func (h *house) makeRedactor() (*redact.Redactor, error) {
	if err := h.home.Create(); err != nil {
		return nil, err
	}
	key, err := redact.LoadOrCreateKey(h.home.File("redact.key"))
	if err != nil {
		return nil, err
	}
	return redact.New(key)
}

// filter is the redactor of the command redact: with the home's key if there
// is one, so that tags are the same as in memory, else with a key of this run.
func (h *house) filter() (cli.Redactor, error) {
	if _, err := os.Stat(h.home.File("redact.key")); err == nil {
		return h.redactor()
	}
	return redact.New([]byte(h.newID() + h.newID()))
}

// capturing is nil where an agent's memory may be written.
func (h *house) capturing(agent memory.AgentID) error {
	cfg, err := h.cfg.For(agent)
	if err != nil || cfg.Memory.Enabled {
		return err
	}
	return memory.WithHint(memory.Errorf(memory.ErrDenied, "the memory of agent %s is switched off", agent), "set memory.enabled to true")
}

func (h *house) openLog(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*events.Log, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	red, err := h.redactor()
	if err != nil {
		return nil, nil, err
	}
	l, err := events.Open(ctx, dir.Path("memory", "events"), events.Options{Now: h.now, NewID: h.newID, Redact: red, Log: h.log,
		Dropped: func(n int64) { h.losses.Add(agent, vitals.LostEvents, n) }})
	if err != nil {
		return nil, nil, err
	}
	return l, nil, nil
}

// readLog lends a reader of an agent's log.
func (h *house) readLog(ctx context.Context, agent memory.AgentID) (*events.Reader, func(), error) {
	h.endErasure(ctx, agent)
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	r := events.OpenReader(dir.Path("memory", "events"), h.log)
	return r, func() { h.closed(agent, r) }, nil
}

// closed closes what was only read; it loses nothing.
func (h *house) closed(agent memory.AgentID, c io.Closer) {
	if err := c.Close(); err != nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("close after reading")
	}
}

func (h *house) openItems(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*working.Store, []func(), error) {
	if err := h.capturing(agent); err != nil {
		return nil, nil, err
	}
	red, err := h.redactor()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := h.cfg.For(agent)
	if err != nil {
		return nil, nil, err
	}
	log, release, err := h.logs.write(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := working.Open(ctx, dir.Path("memory"), working.Options{Agent: agent, Log: log, Redact: red, Now: h.now, NewID: h.newID, Logger: h.log, MaxItems: cfg.Memory.MaxWorkingItems,
		Changed: func() { h.itemsChanged(agent) }, Alike: func(ctx context.Context, it memory.Item) []string { return h.alikeTo(ctx, agent, it) }})
	return s, []func(){release}, err
}

func (h *house) readItems(ctx context.Context, agent memory.AgentID, dir agents.Dir) (*working.Store, []func(), error) {
	log, release, err := h.readLog(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := working.OpenReader(ctx, dir.Path("memory"), agent, log)
	return s, []func(){release}, err
}

func (h *house) openArchive(ctx context.Context, _ memory.AgentID, dir agents.Dir) (*archive.Store, []func(), error) {
	red, err := h.redactor()
	if err != nil {
		return nil, nil, err
	}
	s, err := archive.Open(ctx, dir.Path("memory", "archive.db"), archive.Options{Redact: red, Now: h.now})
	return s, nil, err
}

func (h *house) readArchive(ctx context.Context, _ memory.AgentID, dir agents.Dir) (*archive.Store, []func(), error) {
	red, err := h.redactor()
	if err != nil {
		return nil, nil, err
	}
	s, err := archive.Open(ctx, dir.Path("memory", "archive.db"), archive.Options{Redact: red, Now: h.now, ReadOnly: true})
	return s, nil, err
}

// sessions returns an agent's sessions; making it opens nothing. There is one of
// each agent, which remembers the kinds of sessions.
func (h *house) sessions(agent memory.AgentID, dir agents.Dir) (*session.Store, error) {
	if s, made := h.talks.Load(agent); made {
		return s.(*session.Store), nil
	}
	red, err := h.redactor()
	if err != nil {
		return nil, err
	}
	s, _ := h.talks.LoadOrStore(agent, session.Open(dir.Path("sessions"), session.Options{Agent: agent, Now: h.now, Redact: red}))
	return s.(*session.Store), nil
}

// readRuns lends an agent's run bundles.
func (h *house) readRuns(ctx context.Context, agent memory.AgentID) (*runlog.Store, func(), error) {
	h.endErasure(ctx, agent)
	dir, err := h.home.Find(agent)
	if err != nil {
		return nil, nil, err
	}
	s, err := h.runs(agent, dir)
	return s, func() {}, err
}

func (h *house) runs(agent memory.AgentID, dir agents.Dir) (*runlog.Store, error) {
	red, err := h.redactor()
	if err != nil {
		return nil, err
	}
	return runlog.Open(dir.Path(), runlog.Options{Agent: agent, Now: h.now, NewID: h.newID, Redact: red}), nil
}

// episodesOf answers the working store's question for the turns behind an item.
type episodesOf struct{ h *house }

func (e episodesOf) ByEvent(ctx context.Context, agent memory.AgentID, eventID string) ([]memory.Episode, error) {
	a, release, err := e.h.followed(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	return a.ByEvent(ctx, eventID)
}

func (e episodesOf) Echoes(ctx context.Context, agent memory.AgentID, texts []string) ([]string, error) {
	a, release, err := e.h.followed(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	return a.Echoes(ctx, texts)
}

// followed lends an agent's archive, brought up to date with its log.
func (h *house) followed(ctx context.Context, agent memory.AgentID) (*archive.Store, func(), error) {
	log, releaseLog, err := h.readLog(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	defer releaseLog()
	a, release, err := h.archives.read(ctx, agent)
	if err != nil {
		return nil, nil, err
	}
	n, err := a.Follow(ctx, log)
	if n > 0 && h.lasting.Load() {
		h.embedSoon(agent)
	}
	if errors.Is(err, memory.ErrUnavailable) {
		// What is indexed can be read all the same, from a disk that is full too.
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("index new events")
		err = nil
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return a, release, nil
}

// app makes the command line.
func (h *house) app() cli.App {
	c := &op.Catalog{}
	records := record.NewService(h.readRecords, h.records.write, h.describeRecords)
	rec := h.makeRecall(h.recallRecords(records))
	h.canary = h.makeCanary(rec)
	chk := h.checkpoints()
	h.flushes = h.makeFlushes(func() *checkpoint.Service { return chk })
	graphs := h.graphService()
	h.recorder = h.makeRecorder(graphs)
	graphs.OnPersona = h.recorder.PersonaUpdated
	h.desk = h.makeDesk()
	h.recalls = rec
	rt := h.makeRuntime(c, rec)
	h.turns = rt
	sched := h.makeScheduler(c, rt)
	h.schedule = sched
	look := h.looker(sched)
	reports := h.makeReports(look)

	c.Add(events.NewService(h.readLog).Ops()...)
	items := working.NewService(h.items.read, h.items.write, episodesOf{h})
	items.Forgetting = h.forgetting
	c.Add(items.Ops()...)
	c.Add(care.NewHandles(items, h.items.read, h.followed, h.readLog, h.recordByHandle).Ops()...)
	c.Add(records.Ops()...)
	c.Add(graphs.Ops()...)
	c.Add(h.follower().Ops()...)
	c.Add(chk.Ops()...)
	c.Add(h.maintenance(reports).Ops()...)
	c.Add(reports.Ops()...)
	c.Add(h.meaning.Ops()...)
	c.Add(rec.Ops()...)
	runs := runlog.NewService(h.readRuns, h.todayOf(rec))
	c.Add(runs.Ops()...)
	c.Add(rt.Ops()...)
	h.sources = adminSources{look, chk, runs}
	c.Add(sched.Ops()...)
	c.Add(h.desk.Ops()...)
	c.Add(look.Ops()...)
	c.Add(h.canary.Ops()...)
	c.Add(h.erasure.Ops()...)
	c.Add(h.rebuilds().Ops()...)
	c.Add(h.workspaceIndexes().Ops()...)
	c.Add(h.workspaceNotes().Ops()...)
	measure := h.evaluation()
	talk := h.talk(rt, sched)
	return cli.App{
		Version:   version,
		Catalog:   c.Freeze(),
		Environ:   h.environ,
		LookupEnv: os.LookupEnv,
		Setup:     h.setup,
		Config:    func() (config.Config, error) { return h.cfg, nil },
		Commands: append([]cli.Command{
			cli.Chat(talk), cli.Ask(talk), cli.Once(talk), cli.Serve(h.serving(c, sched)), cli.MCP(h.tooling(c, sched)), cli.Bridge(cli.Bridging{Serve: h.bridge, Schedule: h.longLived(sched)}),
			cli.Doctor(h.examine(sched)), cli.Status(func(ctx context.Context, only memory.AgentID) (any, error) { return look.All(ctx, h.home, only) }),
			cli.ImportChat(h.importing()), cli.SetupModel(cli.ModelSetUp{File: func() string { return h.home.File("config.yaml") }, Try: h.tryModel}), cli.EvaluateLoCoMo(measure), cli.EvaluateLongMemEval(measure), cli.EvaluateDistill(measure), cli.EvaluateTests(measure),
			cli.GraphView(h.graphPage(graphs), sessionToken), cli.GraphDemo(h.scratchGraph),
			cli.Version, cli.ConfigShow, cli.ConfigValidate, cli.ConfigSchema, cli.Docs, cli.Redact(h.filter),
		}, slices.Concat(h.backups().Commands(), cli.Tokens(h.now, h.tokens), cli.Setup(h.settingUp()), h.recordFiles(), cli.GraphBundles(graphs), h.alf().Commands(), h.workspaceCommands())...),
	}
}
