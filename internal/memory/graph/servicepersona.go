package graph

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// BundleInput is the input of graph.bundle.
type BundleInput struct {
	Workflow Object `json:"workflow,omitempty" jsonschema:"the workflow that the bundle is of"`
	Previous Object `json:"previous,omitempty" jsonschema:"a bundle to build on: its workflow, tools and what else it has are kept"`
	Owner
}

// BundleAnswer is the answer of graph.bundle.
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

// LoadBundleInput is the input of graph.load_bundle.
type LoadBundleInput struct {
	Bundle Object `json:"bundle" jsonschema:"as graph.bundle makes it"`
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

// PersonaUpdate is Hooks.UpdateTrait.
func (s *Service) PersonaUpdate(ctx context.Context, agent memory.AgentID, in TraitInput) (TraitAnswer, error) {
	id, t, err := s.Hooks(agent).UpdateTrait(ctx, in.label(agent), TraitUpdate{in.TraitName, in.Strength, in.LearnedFrom, strings.TrimSpace(in.EdgeType)}, in.DryRun)
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
		answer = PersonaAnswer{v.Traits(in.label(agent), l.PersonaTraits), nil}
		answer.Context = contextOf(answer.Traits)
		return nil
	})
	return answer, err
}
