package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// graphs is a session of the suite "graph": the adapter, and the store under it.
type graphs struct {
	env     map[string]string // in place of the process's own
	now     func() time.Time
	store   *graph.Store
	adapter *graph.Adapter
	path    string
}

func openGraph(ctx context.Context, o opening, now func() time.Time) (session, error) {
	home := filepath.Join(o.Workspace, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	s := &graphs{now: now, env: map[string]string{"HOME": home, "AINL_GRAPH_MEMORY_PATH": filepath.Join(o.Workspace, "graph.json")}}
	s.setenv(o.Env)
	return s, s.start(ctx)
}

func (s *graphs) setenv(change map[string]*string) {
	for name, value := range change {
		if value == nil {
			delete(s.env, name)
		} else {
			s.env[name] = *value
		}
	}
}

func (s *graphs) getenv(name string) string { return s.env[name] }

// start opens the store as the environment says. Payloads stay as they are: the
// vectors' bytes are their own.
func (s *graphs) start(ctx context.Context) error {
	host := graph.HostFrom(s.getenv)
	s.path, _ = graph.PathFrom(s.getenv)
	log := zerolog.New(os.Stderr)
	store, err := graph.Open(ctx, s.path, graph.Options{Now: s.now, NewID: newHexID, Limits: host.Limits, Snapshot: host.Snapshot, Log: log})
	if err != nil {
		return err
	}
	s.store = store
	s.adapter = graph.NewAdapter(memory.DefaultAgent, s.lend, s.lend, host, s.now, log)
	return nil
}

// newHexID returns 128 bits by chance.
func newHexID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

func (s *graphs) lend(context.Context, memory.AgentID) (*graph.Store, func(), error) {
	return s.store, func() {}, nil
}

func (s *graphs) Close() error { return s.store.Close() }

func (s *graphs) Reopen(ctx context.Context) error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.start(ctx)
}

// graphTools are the operations beside the adapter's verbs.
var graphTools = map[string]func(s *graphs, ctx context.Context, args json.RawMessage) (any, error){
	"$setenv": (*graphs).changeEnv, "store.add_node": (*graphs).addNode, "store.add_edge": (*graphs).addEdge,
	"store.get_node": (*graphs).getNode, "store.all_nodes": (*graphs).allNodes, "store.all_edges": (*graphs).allEdges,
	"store.find_by_type": (*graphs).findByType, "store.flush": (*graphs).flush,
	"store.get_patch_registry": (*graphs).patches, "store.get_patch_record": (*graphs).patchRecord,
	"store.retire_patch": (*graphs).retire, "store.update_patch_fitness": (*graphs).setFitness, "store.finalize_patch": (*graphs).finalize,
	"boot":            (*graphs).boot,
	"inbox.available": (*graphs).inboxAvailable, "inbox.push_nodes": (*graphs).pushNodes, "inbox.push_patch": (*graphs).pushPatch,
	"snapshot_path": (*graphs).snapshotPath, "snapshot_recognised": (*graphs).recognised,
}

// graphHooks are the hooks that a call's context can make a dry run.
var graphHooks = map[string]func(s *graphs, ctx context.Context, args json.RawMessage, dry bool) (any, error){
	"on_delegation": (*graphs).onDelegation, "on_prompt_compress": (*graphs).onPromptCompress, "on_swarm_message": (*graphs).onSwarmMessage,
	"on_persona_update": (*graphs).onPersonaUpdate, "on_tool_execution": (*graphs).onToolExecution,
}

func (s *graphs) Do(ctx context.Context, op string, args, callContext json.RawMessage) (any, error) {
	if tool, known := graphTools[op]; known {
		return tool(s, ctx, args)
	}
	if hook, known := graphHooks[op]; known {
		dry, err := graph.DryRun(callContext)
		if err != nil {
			return nil, err
		}
		return hook(s, ctx, args, dry)
	}
	return s.adapter.Call(ctx, op, args, callContext)
}

func (s *graphs) changeEnv(_ context.Context, args json.RawMessage) (any, error) {
	var change map[string]*string
	if err := decode(args, &change); err != nil {
		return nil, err
	}
	s.setenv(change)
	return done, nil
}

// stored are the arguments of store.add_node and store.add_edge.
type stored struct {
	Node    json.RawMessage `json:"node"`
	Edge    json.RawMessage `json:"edge"`
	Persist *bool           `json:"persist"`
	DryRun  bool            `json:"dry_run"`
}

func (in stored) write() graph.Write {
	return graph.Write{DryRun: in.DryRun, Hold: in.Persist != nil && !*in.Persist}
}

func (s *graphs) addNode(ctx context.Context, args json.RawMessage) (any, error) {
	var in stored
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	n, err := graph.ParseNode(in.Node)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, in.write(), func(tx *graph.Tx) error {
		n, err = tx.AddNode(n)
		return err
	})
	return n, err
}

func (s *graphs) addEdge(ctx context.Context, args json.RawMessage) (any, error) {
	var in stored
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	e, err := graph.ParseEdge(in.Edge)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, in.write(), func(tx *graph.Tx) error {
		e, err = tx.AddEdge(e)
		return err
	})
	return e, err
}

func (s *graphs) getNode(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	var n *graph.Node
	err := s.store.View(ctx, func(v *graph.View) error {
		n = v.Node(in.ID)
		return nil
	})
	return map[string]any{"node": n}, err
}

func (s *graphs) allNodes(ctx context.Context, _ json.RawMessage) (any, error) {
	nodes := []*graph.Node{}
	err := s.store.View(ctx, func(v *graph.View) error {
		nodes = slices.AppendSeq(nodes, v.Nodes())
		return nil
	})
	return map[string]any{"nodes": nodes}, err
}

func (s *graphs) allEdges(ctx context.Context, _ json.RawMessage) (any, error) {
	edges := []*graph.Edge{}
	err := s.store.View(ctx, func(v *graph.View) error {
		edges = slices.AppendSeq(edges, v.Edges())
		return nil
	})
	return map[string]any{"edges": edges}, err
}

func (s *graphs) findByType(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		NodeType string  `json:"node_type"`
		AgentID  *string `json:"agent_id"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	items := []any{}
	err := s.store.View(ctx, func(v *graph.View) error {
		for n := range v.NodesOf(in.NodeType) {
			switch {
			case in.AgentID != nil && n.AgentID != *in.AgentID:
			case in.NodeType == graph.Persona:
				items = append(items, graph.TraitOf(n))
			default:
				items = append(items, n)
			}
		}
		return nil
	})
	return map[string]any{"items": items}, err
}

func (s *graphs) flush(ctx context.Context, _ json.RawMessage) (any, error) {
	return done, s.store.Flush(ctx)
}

// ofPatch are the arguments of the operations on patches.
type ofPatch struct {
	LabelName      string   `json:"label_name"`
	AgentID        string   `json:"agent_id"`
	Reason         string   `json:"reason"`
	Fitness        float64  `json:"fitness"`
	NodeID         string   `json:"node_id"`
	DeclaredReads  []string `json:"declared_reads"`
	IncludeRetired bool     `json:"include_retired"`
}

func (s *graphs) patches(ctx context.Context, args json.RawMessage) (any, error) {
	var in ofPatch
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	var list []graph.PatchRecord
	err := s.store.View(ctx, func(v *graph.View) error {
		list = v.Patches(in.AgentID, in.IncludeRetired)
		return nil
	})
	return map[string]any{"patches": list}, err
}

func (s *graphs) patchRecord(ctx context.Context, args json.RawMessage) (any, error) {
	var in ofPatch
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	var answer struct {
		Patch *graph.PatchRecord `json:"patch"`
	}
	err := s.store.View(ctx, func(v *graph.View) error {
		if p, found := v.Patch(in.AgentID, in.LabelName); found {
			answer.Patch = &p
		}
		return nil
	})
	return answer, err
}

// changePatch runs a change of a patch and answers whether there was one.
func (s *graphs) changePatch(ctx context.Context, args json.RawMessage, change func(tx *graph.Tx, in ofPatch) (bool, error)) (any, error) {
	var in ofPatch
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	found := false
	err := s.store.Update(ctx, graph.Write{}, func(tx *graph.Tx) error {
		var err error
		found, err = change(tx, in)
		return err
	})
	return map[string]bool{"found": found}, err
}

func (s *graphs) retire(ctx context.Context, args json.RawMessage) (any, error) {
	return s.changePatch(ctx, args, func(tx *graph.Tx, in ofPatch) (bool, error) {
		_, found, err := tx.Retire(in.AgentID, in.LabelName, in.Reason)
		return found, err
	})
}

func (s *graphs) setFitness(ctx context.Context, args json.RawMessage) (any, error) {
	return s.changePatch(ctx, args, func(tx *graph.Tx, in ofPatch) (bool, error) {
		_, found, err := tx.SetFitness(in.AgentID, in.LabelName, in.Fitness)
		return found, err
	})
}

func (s *graphs) finalize(ctx context.Context, args json.RawMessage) (any, error) {
	return s.changePatch(ctx, args, func(tx *graph.Tx, in ofPatch) (bool, error) { return tx.Finalize(in.NodeID, in.DeclaredReads) })
}

// hook decodes a hook's arguments and answers the id of its node.
func hook[In any](args json.RawMessage, run func(In) (string, error)) (any, error) {
	var in In
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	id, err := run(in)
	return map[string]string{"node_id": id}, err
}

func (s *graphs) boot(ctx context.Context, args json.RawMessage) (any, error) {
	return hook(args, func(in struct {
		AgentID *string `json:"agent_id"`
	}) (string, error) {
		agent := graph.DefaultLabel
		if in.AgentID != nil {
			agent = *in.AgentID
		}
		return s.adapter.Boot(ctx, agent)
	})
}

func (s *graphs) onDelegation(ctx context.Context, args json.RawMessage, dry bool) (any, error) {
	return hook(args, func(in graph.Delegation) (string, error) { return s.adapter.OnDelegation(ctx, in, dry) })
}

func (s *graphs) onPromptCompress(ctx context.Context, args json.RawMessage, dry bool) (any, error) {
	return hook(args, func(in graph.PromptCompress) (string, error) { return s.adapter.OnPromptCompress(ctx, in, dry) })
}

func (s *graphs) onSwarmMessage(ctx context.Context, args json.RawMessage, dry bool) (any, error) {
	return hook(args, func(in graph.SwarmMessage) (string, error) { return s.adapter.OnSwarmMessage(ctx, in, dry) })
}

func (s *graphs) onPersonaUpdate(ctx context.Context, args json.RawMessage, dry bool) (any, error) {
	return hook(args, func(in graph.PersonaUpdate) (string, error) { return s.adapter.OnPersonaUpdate(ctx, in, dry) })
}

func (s *graphs) onToolExecution(ctx context.Context, args json.RawMessage, dry bool) (any, error) {
	return hook(args, func(in graph.ToolExecution) (string, error) { return s.adapter.OnToolExecution(ctx, in, dry) })
}

func (s *graphs) inboxAvailable(context.Context, json.RawMessage) (any, error) {
	return map[string]bool{"available": s.adapter.Inbox().Available()}, nil
}

func (s *graphs) pushNodes(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Nodes    []json.RawMessage `json:"nodes"`
		Features []string          `json:"source_features"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	return s.adapter.Inbox().PushRows(ctx, in.Nodes, in.Features...)
}

func (s *graphs) pushPatch(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Patch   json.RawMessage `json:"patch"`
		AgentID string          `json:"agent_id"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	patch, ok := graph.PatchOf(&graph.Node{Payload: in.Patch})
	if !ok {
		return nil, &memory.FieldError{Field: "patch", Reason: "is no record of a patch"}
	}
	return s.adapter.Inbox().PushPatch(ctx, patch, in.AgentID)
}

func (s *graphs) snapshotPath(context.Context, json.RawMessage) (any, error) {
	if path := graph.HostFrom(s.getenv).Snapshot; path != "" {
		return map[string]string{"path": path}, nil
	}
	return map[string]any{"path": nil}, nil
}

func (s *graphs) recognised(_ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Snapshot json.RawMessage `json:"snapshot"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	return map[string]bool{"recognised": graph.Recognised(strings.TrimSpace(string(in.Snapshot)))}, nil
}
