package graph

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// BundleInput is the input of graph.bundle.build.
type BundleInput struct {
	Workflow Object `json:"workflow,omitempty" jsonschema:"the workflow that the bundle is of"`
	Previous Object `json:"previous,omitempty" jsonschema:"a bundle to build on: its workflow, tools and what else it has are kept"`
	Owner
}

// BundleAnswer is the answer of graph.bundle.build.
type BundleAnswer struct {
	Bundle Object `json:"bundle"`
}

// Bundle is View.BuildBundle.
func (s *Service) Bundle(ctx context.Context, agent memory.AgentID, in BundleInput) (BundleAnswer, error) {
	previous, err := in.Previous.raw()
	if err != nil {
		return BundleAnswer{}, err
	}
	raw, err := s.BuildBundle(ctx, agent, in.label(agent), previous)
	if err != nil {
		return BundleAnswer{}, err
	}
	var answer BundleAnswer
	if err := json.Unmarshal(raw, &answer.Bundle); err != nil {
		return BundleAnswer{}, memory.Errorf(memory.ErrCorrupt, "the bundle: %w", err)
	}
	if in.Workflow != nil {
		answer.Bundle["workflow"] = map[string]any(in.Workflow)
	}
	return answer, nil
}

// BuildBundle is View.BuildBundle on an agent's graph.
func (s *Service) BuildBundle(ctx context.Context, agent memory.AgentID, label string, previous json.RawMessage) (json.RawMessage, error) {
	var raw json.RawMessage
	err := s.view(ctx, agent, func(v *View, l Limits) error {
		var err error
		raw, err = v.BuildBundle(label, previous, s.now(), l)
		return err
	})
	return raw, err
}

// Saved tells about a bundle that was written.
type Saved struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

// SaveBundle writes an agent's bundle to a file, which then is there whole, or as
// it was. The bundle builds on the one that is there; one that cannot be read is
// ErrCorrupt and stays. label is the agent_id of the persona.
func (s *Service) SaveBundle(ctx context.Context, agent memory.AgentID, label, path string) (Saved, error) {
	limit := s.host(agent).limits().BundleBytes
	var previous json.RawMessage
	text, err := readSmall(path, limit)
	switch {
	case err == nil:
		previous = json.RawMessage(text)
	case !errors.Is(err, fs.ErrNotExist):
		return Saved{}, memory.Errorf(memory.ErrUnavailable, "read the bundle %s: %w", path, err)
	}
	raw, err := s.BuildBundle(ctx, agent, label, previous)
	if err != nil {
		if previous != nil && errors.Is(err, memory.ErrInvalid) {
			err = &memory.CorruptError{Path: path, Offset: -1, Reason: err.Error()}
		}
		return Saved{}, err
	}
	if int64(len(raw)) > limit {
		return Saved{}, memory.WithHint(memory.Errorf(memory.ErrInvalid, "the bundle would have %d bytes, the most are %d", len(raw), limit),
			"set AINL_BUNDLE_MAX_FILE_BYTES to more, or AINL_GRAPH_EXPORT_MAX_NODES to less")
	}
	if err := renameio.WriteFile(path, raw, 0o600, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return Saved{}, memory.Errorf(memory.ErrUnavailable, "write the bundle %s: %w", path, err)
	}
	return Saved{path, len(raw)}, nil
}

// LoadBundleInput is the input of graph.bundle.load.
type LoadBundleInput struct {
	Bundle Object `json:"bundle" jsonschema:"as graph.bundle.build makes it"`
	Owner
	Dry
}

// LoadBundle is Hooks.LoadBundle.
func (s *Service) LoadBundle(ctx context.Context, agent memory.AgentID, in LoadBundleInput) (Loaded, error) {
	raw, err := in.Bundle.raw()
	if err != nil {
		return Loaded{}, err
	}
	return s.Hooks(agent).LoadBundle(ctx, in.label(agent), raw, in.DryRun)
}

// SchemaAnswer is the answer of graph.inbox_schema.
type SchemaAnswer struct {
	Version string `json:"version"`
	Schema  Object `json:"schema"`
}

// InboxSchema is the schema of the inbox.
func (s *Service) InboxSchema(context.Context, memory.AgentID, None) (SchemaAnswer, error) {
	answer := SchemaAnswer{Version: "1"}
	err := json.Unmarshal([]byte(InboxSchema), &answer.Schema)
	return answer, err
}

// TraitInput is the input of persona.update.
type TraitInput struct {
	TraitName   string   `json:"trait_name" cli:"arg"`
	Strength    float64  `json:"strength" jsonschema:"0 to 1; from 0.1 on the trait is active"`
	LearnedFrom []string `json:"learned_from,omitempty" jsonschema:"ids of episodes; joined with those that are known"`
	EdgeType    string   `json:"edge_type,omitempty" jsonschema:"how the trait relates to what it was learned from: a type of edge"`
	Owner
	Dry
}

// TraitAnswer is the answer of persona.update.
type TraitAnswer struct {
	OK     bool   `json:"ok"`
	NodeID string `json:"node_id"`
	Trait
}

// PersonaUpdate is Hooks.UpdateTrait. A trait that is another than before is told
// to OnPersona.
func (s *Service) PersonaUpdate(ctx context.Context, agent memory.AgentID, in TraitInput) (TraitAnswer, error) {
	before, err := s.PersonaGet(ctx, agent, TraitName{in.TraitName, in.Owner})
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return TraitAnswer{}, err
	}
	isNew := err != nil
	id, t, err := s.Hooks(agent).UpdateTrait(ctx, in.label(agent), TraitUpdate{in.TraitName, in.Strength, in.LearnedFrom, strings.TrimSpace(in.EdgeType)}, in.DryRun)
	if err == nil && !in.DryRun && s.OnPersona != nil && (isNew || before.Strength != t.Strength) {
		change := PersonaUpdate{AgentID: in.label(agent), PersonaKey: t.TraitName, NewValue: appendNumber(nil, t.Strength)}
		if !isNew {
			change.OldValue = appendNumber(nil, before.Strength)
		}
		s.OnPersona(agent, change)
	}
	return TraitAnswer{err == nil, id, t}, err
}

// TraitName is the input of persona.get.
type TraitName struct {
	TraitName string `json:"trait_name" cli:"arg"`
	Owner
}

// PersonaGet is View.Trait.
func (s *Service) PersonaGet(ctx context.Context, agent memory.AgentID, in TraitName) (Trait, error) {
	var t Trait
	err := s.view(ctx, agent, func(v *View, _ Limits) error {
		var err error
		t, err = v.Trait(in.label(agent), in.TraitName)
		return err
	})
	return t, err
}

// PersonaAnswer is the answer of persona.load.
type PersonaAnswer struct {
	Traits  []Trait            `json:"traits"`
	Context map[string]float64 `json:"persona_context" jsonschema:"strength of the active traits, by name"`
}

// PersonaLoad is View.Traits.
func (s *Service) PersonaLoad(ctx context.Context, agent memory.AgentID, in Owner) (PersonaAnswer, error) {
	var answer PersonaAnswer
	err := s.view(ctx, agent, func(v *View, l Limits) error {
		answer = PersonaAnswer{v.CurrentTraits(in.label(agent), l.PersonaTraits), nil}
		answer.Context = contextOf(answer.Traits)
		return nil
	})
	return answer, err
}
