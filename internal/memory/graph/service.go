package graph

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/rs/zerolog"
)

// Service offers the graphs of agents as operations. An operation works on the
// calling agent's graph only; agent_id is a label in it, by itself the calling
// agent's name.
type Service struct {
	read, write memory.Borrow[*Store]
	host        func(memory.AgentID) Host
	now         func() time.Time
	log         zerolog.Logger

	// OnPersona is told of traits that an operation has changed; it must return at
	// once. Set it before the first operation, or leave it nil.
	OnPersona func(agent memory.AgentID, change PersonaUpdate)
}

// NewService returns a service that borrows stores: read answers ErrNotFound for
// an agent without a graph, write makes it. host tells what is around an agent's
// graph.
func NewService(read, write memory.Borrow[*Store], host func(memory.AgentID) Host, now func() time.Time, log zerolog.Logger) *Service {
	return &Service{read: read, write: write, host: host, now: now, log: log}
}

// Hooks returns the hooks of an agent's graph.
func (s *Service) Hooks(agent memory.AgentID) *Hooks {
	return NewHooks(agent, s.write, s.host(agent), s.now, s.log)
}

// Ops returns the operations graph.* and persona.*.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("graph.add_node", "Add a node to the graph, or put it in the place of the one with its id.", op.Write, s.AddNode).
			WithExample(`{"node_type":"semantic","label":"Lisbon","payload":{"fact":"Ann lives in Lisbon"},"tags":["place"]}`),
		op.New("graph.add_edge", "Join two nodes by a typed edge, or put it in the place of the one with its id.", op.Write, s.AddEdge).
			WithExample(`{"src":"ann","dst":"lisbon","edge_type":"knows"}`),
		op.New("graph.recall", "Get a node by its id, with the edges at it.", op.Read, s.Recall).WithExample(`{"id":"ann"}`),
		op.New("graph.search", "Find nodes by a part of their text, in the order in which they were added; or ranked by words.", op.Read, s.Search).
			WithExample(`{"query":"lisbon","ranked":true}`),
		op.New("graph.neighbours", "Get what lies around a node, the nearest first.", op.Read, s.Neighbours).WithExample(`{"id":"ann","depth":2}`),
		op.New("graph.path", "Find a shortest way between two nodes.", op.Read, s.Path).WithExample(`{"from":"ann","to":"lisbon"}`),
		op.New("graph.export", "Get the whole graph: as JSON, or as a drawing in DOT or Mermaid.", op.Read, s.Export).WithExample(`{"format":"mermaid"}`),
		op.New("graph.status", "Tell where the graph is, how large, and what was set aside when it was read.", op.Read, s.Status),
		op.New("graph.fold", "Bring the graph's journal into its JSON file.", op.Write, s.Fold),
		op.New("graph.store_pattern", "Store a named pattern of steps.", op.Write, s.StorePattern).
			WithExample(`{"pattern_name":"greet","steps":[{"op":"Set","name":"x","ref":1},{"op":"J","var":"x"}]}`),
		op.New("graph.recall_pattern", "Get the newest pattern of a name.", op.Read, s.RecallPattern).WithExample(`{"pattern_name":"greet"}`),
		op.New("graph.execute", "Resolve a pattern into the steps that a runtime would run. Nothing is run.", op.Read, s.Execute).
			WithExample(`{"pattern_name":"greet"}`),
		op.New("graph.patch", "Record that a pattern stands under a label from now on; what stood there is retired.", op.Write, s.Patch).
			WithExample(`{"pattern_name":"greet","label_name":"L_greet","source_episode_ids":["ep1"]}`),
		op.New("graph.patches", "List the registry of patches, the newest version of each label first.", op.Read, s.Patches).
			WithExample(`{"include_retired":true}`),
		op.New("graph.retire_patch", "Take the live patch of a label out of use.", op.Write, s.RetirePatch).
			WithExample(`{"label_name":"L_greet","reason":"it failed twice"}`),
		op.New("graph.patch_fitness", "Set the fitness of a label's live patch, or move it by the outcome of a run.", op.Write, s.PatchFitness).
			WithExample(`{"label_name":"L_greet","success":true}`),
		op.New("graph.finalize_patch", "Note what the steps of a patch read.", op.Write, s.FinalizePatch).
			WithExample(`{"node_id":"patch_1","declared_reads":["x"]}`),
		op.New("graph.bundle.build", "Make a bundle of the graph's memory and the agent's persona.", op.Read, s.Bundle).
			WithExample(`{"workflow":{"name":"daily"}}`),
		op.New("graph.bundle.load", "Bring a bundle's memory and persona into the graph; what is there already stays.", op.Write, s.LoadBundle).
			WithExample(`{"bundle":{"workflow":{},"memory":[],"persona":[{"trait_name":"calm","strength":0.7}]}}`),
		op.New("graph.inbox_schema", "Get the JSON Schema of the inbox through which a host takes nodes over.", op.Read, s.InboxSchema),
		op.New("persona.update", "Add a trait to the persona, or set its strength.", op.Write, s.PersonaUpdate).
			WithExample(`{"trait_name":"curiosity","strength":0.8,"learned_from":["ep1"]}`),
		op.New("persona.get", "Get one trait of the persona.", op.Read, s.PersonaGet).WithExample(`{"trait_name":"curiosity"}`),
		op.New("persona.load", "Get all traits of the persona, the strongest first.", op.Read, s.PersonaLoad),
	}
}

func (s *Service) view(ctx context.Context, agent memory.AgentID, fn func(*View, Limits) error) error {
	return viewOf(ctx, s.read, agent, s.host(agent), fn)
}

func (s *Service) update(ctx context.Context, agent memory.AgentID, dry bool, fn func(*Tx) error) error {
	return s.Hooks(agent).update(ctx, dry, fn)
}

// Owner is whose nodes an operation is about.
type Owner struct {
	AgentID string `json:"agent_id,omitempty" jsonschema:"a label within this graph; this agent's name if absent"`
}

func (o Owner) label(agent memory.AgentID) string { return cmp.Or(o.AgentID, string(agent)) }

// Dry is whether an operation only shows what it would do.
type Dry struct {
	DryRun bool `json:"dry_run,omitempty" jsonschema:"true: check and answer, and store nothing"`
}

// NodeInput is the input of graph.add_node.
type NodeInput struct {
	ID        string   `json:"id,omitempty" jsonschema:"a new one is made if absent"`
	NodeType  string   `json:"node_type" jsonschema:"episodic, semantic, procedural, persona or patch"`
	Label     string   `json:"label,omitempty"`
	Payload   Object   `json:"payload,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	TTL       *float64 `json:"ttl,omitempty" jsonschema:"seconds from created_at after which it is gone"`
	CreatedAt *float64 `json:"created_at,omitempty" jsonschema:"Unix seconds; now if absent"`
	Owner
	Dry
}

// AddNode is Tx.AddNode.
func (s *Service) AddNode(ctx context.Context, agent memory.AgentID, in NodeInput) (NodeRow, error) {
	payload, err := in.Payload.raw()
	if err != nil {
		return NodeRow{}, err
	}
	n := &Node{ID: in.ID, Type: in.NodeType, AgentID: in.label(agent), Label: in.Label, Payload: payload, Tags: in.Tags, TTL: in.TTL}
	err = s.update(ctx, agent, in.DryRun, func(tx *Tx) error {
		n.CreatedAt = tx.Now()
		if in.CreatedAt != nil {
			n.CreatedAt = *in.CreatedAt
		}
		n.ID = cmp.Or(n.ID, tx.NewID("node"))
		var err error
		n, err = tx.AddNode(n)
		return err
	})
	if err != nil {
		return NodeRow{}, err
	}
	return n.Row()
}

// EdgeInput is the input of graph.add_edge.
type EdgeInput struct {
	ID         string   `json:"id,omitempty" jsonschema:"a new one is made if absent"`
	Src        string   `json:"src" jsonschema:"id of the node that it leaves"`
	Dst        string   `json:"dst" jsonschema:"id of the node that it leads to"`
	EdgeType   string   `json:"edge_type" jsonschema:"caused_by, part_of, references, derived_from, inherited_by, knows, believes, learned_from, contradicts, follows, caused_patch or strengthens"`
	Label      string   `json:"label,omitempty"`
	Confidence *float64 `json:"confidence,omitempty" jsonschema:"0 to 1; 1 if absent"`
	Meta       Object   `json:"meta,omitempty"`
	Missing    string   `json:"missing,omitempty" jsonschema:"what becomes of an edge to a node that does not exist: refuse, or allow; refuse if absent"`
	Dry
}

// AddEdge is Tx.AddEdge, for nodes that exist unless it is said otherwise.
func (s *Service) AddEdge(ctx context.Context, agent memory.AgentID, in EdgeInput) (EdgeRow, error) {
	if !slices.Contains([]string{"", "refuse", "allow"}, in.Missing) {
		return EdgeRow{}, &memory.FieldError{Field: "missing", Reason: "must be refuse or allow"}
	}
	meta, err := in.Meta.raw()
	if err != nil {
		return EdgeRow{}, err
	}
	e := &Edge{ID: in.ID, Src: in.Src, Dst: in.Dst, Type: in.EdgeType, Label: in.Label, Confidence: 1, Meta: meta}
	if in.Confidence != nil {
		e.Confidence = *in.Confidence
	}
	err = s.update(ctx, agent, in.DryRun, func(tx *Tx) error {
		for _, end := range []struct{ field, id string }{{"src", e.Src}, {"dst", e.Dst}} {
			if in.Missing != "allow" && end.id != "" && tx.Node(end.id) == nil {
				return &memory.FieldError{Field: end.field, Reason: "is no node of the graph: " + quoted(end.id), Hint: "add the node first, or say missing: allow"}
			}
		}
		e.ID = cmp.Or(e.ID, tx.NewID("edge"))
		var err error
		e, err = tx.AddEdge(e)
		return err
	})
	if err != nil {
		return EdgeRow{}, err
	}
	return e.Row()
}

// IDInput names a node.
type IDInput struct {
	ID string `json:"id" jsonschema:"of the node" cli:"arg"`
}

// Recalled is a node with the edges at it.
type Recalled struct {
	Node NodeRow   `json:"node"`
	Out  []EdgeRow `json:"out"`
	In   []EdgeRow `json:"in"`
}

// Recall is the node with an id; ErrNotFound where there is none.
func (s *Service) Recall(ctx context.Context, agent memory.AgentID, in IDInput) (Recalled, error) {
	var r Recalled
	err := s.view(ctx, agent, func(v *View, _ Limits) error {
		n := v.Node(in.ID)
		if n == nil {
			return noNode(in.ID)
		}
		var err error
		if r.Node, err = n.Row(); err != nil {
			return err
		}
		if r.Out, err = EdgeRows(slices.Collect(v.Out(in.ID))); err != nil {
			return err
		}
		r.In, err = EdgeRows(slices.Collect(v.In(in.ID)))
		return err
	})
	return r, err
}

// None is the input of an operation that asks for nothing.
type None struct{}

// Status tells about a graph.
type Status struct {
	Path     string   `json:"path" jsonschema:"of its file; empty where there is none yet"`
	Nodes    int      `json:"nodes"`
	Edges    int      `json:"edges"`
	Notes    []string `json:"notes" jsonschema:"what was found damaged or left out when it was read"`
	SetAside []string `json:"set_aside" jsonschema:"files beside it that keep what could not be read, for you to look at and delete"`
}

// Status counts the graph.
func (s *Service) Status(ctx context.Context, agent memory.AgentID, _ None) (Status, error) {
	status := Status{Notes: []string{}, SetAside: []string{}}
	store, release, err := s.read(ctx, agent)
	switch {
	case memory.KindOf(err) == memory.ErrNotFound:
		return status, nil
	case err != nil:
		return Status{}, err
	}
	defer release()
	err = store.View(ctx, func(v *View) error {
		status.Nodes, status.Edges = v.Len()
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	status.Path, status.Notes = store.Path(), append(status.Notes, store.Notes()...)
	aside, err := store.SetAside()
	status.SetAside = append(status.SetAside, aside...)
	return status, err
}

// Fold is Store.Fold.
func (s *Service) Fold(ctx context.Context, agent memory.AgentID, _ None) (Status, error) {
	store, release, err := s.read(ctx, agent)
	switch {
	case memory.KindOf(err) == memory.ErrNotFound:
		return s.Status(ctx, agent, None{})
	case err != nil:
		return Status{}, err
	}
	err = store.Fold(ctx)
	release()
	if err != nil {
		return Status{}, err
	}
	return s.Status(ctx, agent, None{})
}
