package graph

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// DefaultLabel is the agent_id of nodes where no agent is named.
const DefaultLabel = "armaraos"

// Hooks write down what happens while an agent works. Each returns the id of the
// node that it added; in a dry run that node is not stored. They are safe for
// concurrent use.
//
// agent_id labels are texts within one graph: a hook takes them as they come.
type Hooks struct {
	agent memory.AgentID
	write memory.Borrow[*Store]
	host  Host
	inbox *Inbox
	log   zerolog.Logger
	ttl   *float64 // seconds, of what the hooks add; nil for ever
}

// NewHooks returns the hooks of an agent's graph. What the host should know of
// goes to its inbox as well; a push that fails is logged, since the graph has
// what happened.
func NewHooks(agent memory.AgentID, write memory.Borrow[*Store], host Host, now func() time.Time, log zerolog.Logger) *Hooks {
	return &Hooks{agent: agent, write: write, host: host, inbox: NewInbox(host, now, log), log: log}
}

// Expiring returns hooks like h whose nodes are gone after a time. Traits stay.
func (h *Hooks) Expiring(after time.Duration) *Hooks {
	c := *h
	seconds := after.Seconds()
	c.ttl = &seconds
	return &c
}

// Inbox returns the inbox of the hooks' host.
func (h *Hooks) Inbox() *Inbox { return h.inbox }

// update changes the graph. dry is the caller's own wish; the host may have one.
func (h *Hooks) update(ctx context.Context, dry bool, fn func(*Tx) error) error {
	s, release, err := h.write(ctx, h.agent)
	if err != nil {
		return err
	}
	defer release()
	return s.Update(ctx, Write{DryRun: dry || h.host.DryRun}, fn)
}

// add adds one node with a new id, and what more does.
func (h *Hooks) add(ctx context.Context, dry bool, prefix string, n Node, payload []Member, more func(*Tx, *Node) error) (*Node, error) {
	var stored *Node
	err := h.update(ctx, dry, func(tx *Tx) error {
		n.ID, n.CreatedAt, n.Payload, n.TTL = tx.NewID(prefix), tx.Now(), appendMembers(nil, payload), h.ttl
		var err error
		if stored, err = tx.AddNode(&n); err == nil && more != nil {
			err = more(tx, stored)
		}
		return err
	})
	return stored, err
}

// push sends nodes to the host's inbox, unless nothing was stored.
func (h *Hooks) push(ctx context.Context, dry bool, features []string, nodes ...*Node) {
	if dry || h.host.DryRun || !h.inbox.Available() {
		return
	}
	if _, err := h.inbox.Push(ctx, nodes, features...); err != nil {
		h.log.Warn().Err(err).Msg("push to the host's inbox")
	}
}

// idOf is the answer of a hook.
func idOf(n *Node, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return n.ID, nil
}

// Delegation is work that one agent gave to another, or a run that a schedule
// started.
type Delegation struct {
	Delegator string          `json:"delegator"`
	Delegatee string          `json:"delegatee"`
	Task      string          `json:"task"`
	Payload   json.RawMessage `json:"payload"` // any JSON: name, dry-run flag, shortened output; nil for null
}

// OnDelegation adds an episode of the delegator.
func (h *Hooks) OnDelegation(ctx context.Context, d Delegation, dry bool) (nodeID string, err error) {
	return idOf(h.add(ctx, dry, "episodic",
		Node{Type: Episodic, AgentID: d.Delegator, Label: "delegation:" + d.Task, Tags: []string{"delegation", "episodic"}},
		[]Member{{"delegator", appendText(nil, d.Delegator)}, {"delegatee", appendText(nil, d.Delegatee)}, {"task", appendText(nil, d.Task)}, {"detail", orNull(d.Payload)}}, nil))
}

// ToolExecution is one call of a tool.
type ToolExecution struct {
	ToolName     string          `json:"tool_name"`
	Args         json.RawMessage `json:"args"`   // any JSON; nil for null
	Result       json.RawMessage `json:"result"` // any JSON; nil for null
	AgentID      string          `json:"agent_id"`
	ParentNodeID string          `json:"parent_node_id"` // of the node that the call is part_of; may be empty
}

// OnToolExecution adds a procedural node, with an edge to its parent.
func (h *Hooks) OnToolExecution(ctx context.Context, x ToolExecution, dry bool) (nodeID string, err error) {
	return idOf(h.toolNode(ctx, x, dry))
}

// RecordTool is OnToolExecution, and pushes the node to the host's inbox: for
// whoever runs tools of its own. features are the caller's source features.
func (h *Hooks) RecordTool(ctx context.Context, x ToolExecution, dry bool, features ...string) (nodeID string, err error) {
	n, err := h.toolNode(ctx, x, dry)
	if err != nil {
		return "", err
	}
	h.push(ctx, dry, features, n)
	return n.ID, nil
}

func (h *Hooks) toolNode(ctx context.Context, x ToolExecution, dry bool) (*Node, error) {
	link := func(tx *Tx, n *Node) error {
		if x.ParentNodeID == "" {
			return nil
		}
		_, err := tx.AddEdge(&Edge{ID: tx.NewID("edge"), Src: n.ID, Dst: x.ParentNodeID, Type: PartOf, Label: "tool_to_parent", Confidence: 1})
		return err
	}
	return h.add(ctx, dry, "tool", Node{Type: Procedural, AgentID: x.AgentID, Label: "tool:" + x.ToolName, Tags: []string{toolTag}},
		[]Member{{"tool_name", appendText(nil, x.ToolName)}, {"args", orNull(x.Args)}, {"result", orNull(x.Result)}}, link)
}

// PromptCompress is a prompt that was made shorter.
type PromptCompress struct {
	OriginalTokens   json.Number `json:"original_tokens"`
	CompressedTokens json.Number `json:"compressed_tokens"`
	Summary          string      `json:"summary"`
	AgentID          string      `json:"agent_id"`
}

// OnPromptCompress adds a semantic node.
func (h *Hooks) OnPromptCompress(ctx context.Context, p PromptCompress, dry bool) (nodeID string, err error) {
	return idOf(h.add(ctx, dry, "sem", Node{Type: Semantic, AgentID: p.AgentID, Label: "prompt_compress", Tags: []string{"compression", "semantic"}},
		[]Member{{"original_tokens", orNull([]byte(p.OriginalTokens))}, {"compressed_tokens", orNull([]byte(p.CompressedTokens))}, {"summary", appendText(nil, p.Summary)}}, nil))
}

// SwarmMessage is a message between agents.
type SwarmMessage struct {
	Sender   string          `json:"sender"`
	Receiver string          `json:"receiver"`
	Message  string          `json:"message"`
	Payload  json.RawMessage `json:"payload"` // any JSON; nil for null
}

// OnSwarmMessage adds an episode of the sender.
func (h *Hooks) OnSwarmMessage(ctx context.Context, m SwarmMessage, dry bool) (nodeID string, err error) {
	return idOf(h.add(ctx, dry, "swarm", Node{Type: Episodic, AgentID: m.Sender, Label: "swarm:" + m.Receiver, Tags: []string{"swarm", "message"}},
		[]Member{{"sender", appendText(nil, m.Sender)}, {"receiver", appendText(nil, m.Receiver)}, {"message", appendText(nil, m.Message)}, {"extra", orNull(m.Payload)}}, nil))
}

// PersonaUpdate is a change of an agent's persona.
type PersonaUpdate struct {
	AgentID    string          `json:"agent_id"`
	PersonaKey string          `json:"persona_key"`
	OldValue   json.RawMessage `json:"old_value"` // any JSON; nil for null
	NewValue   json.RawMessage `json:"new_value"` // any JSON; nil for null
}

// OnPersonaUpdate adds a persona node that records the change. The trait itself
// is changed with Tx.UpdateTrait.
func (h *Hooks) OnPersonaUpdate(ctx context.Context, p PersonaUpdate, dry bool) (nodeID string, err error) {
	return idOf(h.add(ctx, dry, "persona", Node{Type: Persona, AgentID: p.AgentID, Label: "persona:" + p.PersonaKey, Tags: []string{"persona", "update"}},
		[]Member{{"persona_key", appendText(nil, p.PersonaKey)}, {"old_value", orNull(p.OldValue)}, {"new_value", orNull(p.NewValue)}}, nil))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// bootMessage is what the node of a boot says. Other programs know it.
const bootMessage = "ArmaraOS AINL graph memory bridge initialized"

// Boot loads the host's bundle, if there is one, and adds an episode of the
// start, which is also pushed to the inbox. Nothing about a bundle makes it
// fail: what cannot be used is logged.
func (h *Hooks) Boot(ctx context.Context, agent string) (nodeID string, err error) {
	if h.host.Bundle != "" {
		if err := h.loadHostBundle(ctx, agent); err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.log.Warn().Err(err).Str("path", h.host.Bundle).Msg("load the bundle")
		}
	}
	n, err := h.add(ctx, false, "boot", Node{Type: Episodic, AgentID: agent, Label: "bridge_boot", Tags: []string{"boot", "armaraos"}},
		[]Member{{"message", appendText(nil, bootMessage)}}, nil)
	if err != nil {
		return "", err
	}
	h.push(ctx, false, nil, n)
	return n.ID, nil
}

// UpdateTrait changes a trait of an agent's persona and pushes it to the inbox.
func (h *Hooks) UpdateTrait(ctx context.Context, agent string, u TraitUpdate, dry bool) (nodeID string, t Trait, err error) {
	var n *Node
	err = h.update(ctx, dry, func(tx *Tx) error {
		var err error
		n, t, err = tx.UpdateTrait(agent, u)
		return err
	})
	if err != nil {
		return "", Trait{}, err
	}
	h.push(ctx, dry, nil, n)
	return n.ID, t, nil
}
