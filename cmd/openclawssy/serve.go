package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/adminpage"
	"github.com/openclawssy/openclawssy/internal/care"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/graphview"
	"github.com/openclawssy/openclawssy/internal/httpapi"
	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/checkpoint"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
	"github.com/openclawssy/openclawssy/internal/memory/record"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
	"github.com/openclawssy/openclawssy/internal/runtime"
	"github.com/openclawssy/openclawssy/internal/scheduler"
)

// tokens are what lets programs ask the server.
func (h *house) tokens() (*access.Store, error) {
	return access.Open(h.home.File("tokens.json"), h.now), h.home.Create()
}

// serving is what the command serve works with.
func (h *house) serving(c *op.Catalog, s *scheduler.Scheduler) cli.Serving {
	return cli.Serving{
		Schedule: h.serve(s),
		Listen: func(ctx context.Context, listen string) (*cli.Face, error) {
			if err := h.forMany(); err != nil {
				return nil, err
			}
			if !h.cfg.HTTP.Enabled {
				return nil, nil
			}
			return h.listen(ctx, listen, c)
		},
	}
}

// forMany refuses what cannot be served to several agents.
func (h *house) forMany() error {
	if _, err := record.DatabasePath("", h.getenv(record.PathVariable), record.ManyAgents); err != nil {
		return err
	}
	if path, named := graph.PathFrom(h.getenv); named {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "AINL_GRAPH_MEMORY_PATH is set to %q, but several agents cannot share one graph", path),
			"unset it, or name one agent with --agent")
	}
	return nil
}

// listen opens the HTTP server of all agents.
func (h *house) listen(ctx context.Context, address string, c *op.Catalog) (*cli.Face, error) {
	if address == "" {
		address = h.cfg.HTTP.Listen
	}
	tokens, err := h.tokens()
	if err != nil {
		return nil, err
	}
	face := &cli.Face{}
	first := h.home.File("first.token")
	made, err := tokens.First(ctx, first)
	if err != nil {
		return nil, err
	}
	if made {
		face.FirstToken = first
	}
	certificate, err := h.certificate()
	if err != nil {
		return nil, err
	}
	l, err := listenTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	server, err := h.httpServer(c, tokens)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	scheme := "http"
	if certificate != nil {
		scheme = "https"
	}
	face.URL = scheme + "://" + l.Addr().String()
	face.Admin = face.URL + "/admin/"
	face.Serve = func(ctx context.Context) error { return server.Serve(ctx, l, certificate) }
	return face, nil
}

// certificate reads the configured certificate; nil for none.
func (h *house) certificate() (*tls.Certificate, error) {
	cfg := h.cfg.HTTP
	if cfg.TLSCertificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCertificate, cfg.TLSKey)
	if err != nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "read the certificate: %w", err), "http.tls_certificate and http.tls_key are paths of PEM files")
	}
	return &pair, nil
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, memory.WithHint(memory.Errorf(memory.ErrConflict, "%s is in use", address), "another server may run already; --listen 127.0.0.1:0 takes a free port, --no-http runs the schedule only")
	case errors.Is(err, syscall.EACCES):
		return nil, memory.WithHint(memory.Errorf(memory.ErrDenied, "%s is not yours to use", address), "take a port above 1023")
	case err != nil:
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "listen on %s: %w", address, err), "such as --listen 127.0.0.1:8377")
	}
	return l, nil
}

// httpServer makes the server of all agents.
func (h *house) httpServer(c *op.Catalog, tokens *access.Store) (*httpapi.Server, error) {
	cfg := h.cfg.HTTP
	tools, err := h.mcpMount(c)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.countTurns(registry)
	face := h.makeProxy()
	h.proxy.Store(face)
	countProxied(registry, face)
	registry.MustRegister(agentFigures{h})
	form, err := jsonschema.For[adminDocument](nil)
	if err != nil {
		return nil, memory.Errorf(memory.ErrInternal, "describe the admin's document: %w", err)
	}
	return httpapi.New(httpapi.Options{
		Catalog: c, Tokens: tokens, Version: version, Run: h.warmRun, Ingest: h.intake().Take,
		Admin:     func(ctx context.Context, agent memory.AgentID) (any, error) { return h.sources.document(ctx, agent) },
		AdminForm: form, Agents: func() ([]memory.AgentID, error) { return h.home.List() },
		Audit: h.audit, Hosts: cfg.Hosts, Origins: cfg.Origins,
		Pages: map[string]http.Handler{"/admin/": adminpage.Handler("/admin/"), "/admin": http.RedirectHandler("/admin/", http.StatusFound), "/": http.RedirectHandler("/admin/", http.StatusFound),
			"/graph/": http.StripPrefix("/graph", graphview.Page())},
		Mounts:   append(proxyMounts(face), tools, h.graphMount()),
		Limits:   httpapi.Limits{Rate: float64(cfg.RatePerSecond), Connections: cfg.MaxConnections},
		Registry: registry, Now: h.now, Log: h.log,
	}), nil
}

// warmRun runs a turn. The first one of an agent in this process waits until its
// stores are open, which no turn's deadline for recall has to cover then; where they
// cannot be opened the turn goes on without memory and says so.
func (h *house) warmRun(ctx context.Context, t runtime.Turn) (runtime.Result, error) {
	var note string
	if _, parsed := memory.ParseAgentID(string(t.Agent)); parsed == nil {
		if err := h.opened(ctx, t.Agent); err != nil {
			note = "memory could not be opened: " + err.Error()
		}
	}
	res, err := h.turns.Run(ctx, t)
	if note != "" {
		res.Notes = append(res.Notes, note)
	}
	return res, err
}

// opened opens an agent's stores, once in this process.
func (h *house) opened(ctx context.Context, agent memory.AgentID) error {
	if _, warm := h.isWarm.Load(agent); warm {
		return nil
	}
	once, _ := h.warmed.LoadOrStore(agent, &sync.Mutex{})
	opening := once.(*sync.Mutex)
	opening.Lock()
	defer opening.Unlock()
	if _, warm := h.isWarm.Load(agent); warm {
		return nil
	}
	if err := h.warm(ctx, agent); err != nil {
		return err
	}
	h.isWarm.Store(agent, true)
	return nil
}

// countTurns shows what the agent loop counts.
func (h *house) countTurns(registry *prometheus.Registry) {
	for _, c := range []struct {
		name, help string
		value      func() int64
	}{
		{"openclawssy_turns_total", "Turns of the agent loop.", func() int64 { return h.turns.Stats().Turns }},
		{"openclawssy_turns_failed_total", "Turns that ended with an error.", func() int64 { return h.turns.Stats().Failed }},
		{"openclawssy_recalls_total", "Blocks of memory that were asked for.", func() int64 { return h.recalls.Counts().Blocks }},
		{"openclawssy_recalls_empty_total", "Of them, those for which nothing relevant enough was known.", func() int64 { return h.recalls.Counts().Abstained }},
		{"openclawssy_recalls_main_only_total", "Of them, those with too little time for all channels.", func() int64 { return h.recalls.Counts().MainOnly }},
		{"openclawssy_recalls_failed_total", "Of them, those without memory, or a source of it, for want of time, a lock or damage.", func() int64 { return h.recalls.Counts().Failed }},
		{"openclawssy_flush_failed_total", "Edges of sessions that could not be queued to be distilled.", func() int64 { return h.turns.Stats().FlushFailed }},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.value()) }))
	}
}

// audit keeps a line in an agent's audit log; an agent that does not exist is not
// made for it.
func (h *house) audit(ctx context.Context, agent memory.AgentID, e runlog.Entry) error {
	dir, err := h.home.Find(agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := h.runs(agent, dir)
	if err != nil {
		return err
	}
	return s.Audit(e)
}

// intake writes down conversations that take place elsewhere.
func (h *house) intake() *intake.Service {
	return &intake.Service{
		Logs: h.logs.write, Sessions: h.writeSessions,
		Present: func(ctx context.Context, agent memory.AgentID, ids []string) (map[string]bool, error) {
			if len(ids) == 0 {
				return nil, nil
			}
			a, rest, release, err := h.archiveAndRest(ctx, agent)
			if errors.Is(err, memory.ErrNotFound) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			defer release()
			turns, err := a.Turns(ctx, ids)
			present := make(map[string]bool, len(turns))
			for id := range turns {
				present[id] = true
			}
			for _, e := range rest {
				if slices.Contains(ids, e.ID) {
					present[e.ID] = true
				}
			}
			return present, err
		},
		Lock: func(agent memory.AgentID) (string, error) {
			dir, err := h.home.Make(agent)
			return dir.Path("memory", "intake.lock"), err
		},
	}
}

// adminSources are what the admin's document is put together from.
type adminSources struct {
	look        *care.Service
	checkpoints *checkpoint.Service
	runs        *runlog.Service
}

// adminDocument tells how an agent's memory is.
type adminDocument struct {
	Agent       memory.AgentID      `json:"agent"`
	Status      care.Status         `json:"status"`
	Health      care.Health         `json:"health"`
	Checkpoints []memory.Checkpoint `json:"checkpoints"`
	Recalls     []runlog.Recalling  `json:"recalls"`
}

func (a adminSources) document(ctx context.Context, agent memory.AgentID) (adminDocument, error) {
	doc := adminDocument{Agent: agent}
	var err error
	if doc.Status, err = a.look.Status(ctx, agent); err != nil {
		return doc, err
	}
	if doc.Health, err = a.look.Health(ctx, agent); err != nil {
		return doc, err
	}
	checkpoints, err := a.checkpoints.List(ctx, agent, checkpoint.ListRequest{})
	if err != nil {
		return doc, err
	}
	recalls, err := a.runs.Recalls(ctx, agent, runlog.RecallsQuery{})
	doc.Checkpoints, doc.Recalls = checkpoints.Checkpoints, recalls.Runs
	return doc, err
}
