package graph

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// PatternInput is the input of graph.store_pattern.
type PatternInput struct {
	PatternName string   `json:"pattern_name" cli:"arg"`
	Steps       []Object `json:"steps" jsonschema:"in their order"`
	Tags        []string `json:"tags,omitempty"`
	Owner
	Dry
}

// StoredPattern is the answer of graph.store_pattern.
type StoredPattern struct {
	NodeID    string `json:"node_id" jsonschema:"of the node that has all steps"`
	StepCount int    `json:"step_count"`
}

// StorePattern is Tx.StorePattern.
func (s *Service) StorePattern(ctx context.Context, agent memory.AgentID, in PatternInput) (StoredPattern, error) {
	p := Pattern{Name: strings.TrimSpace(in.PatternName), AgentID: in.label(agent), Tags: in.Tags}
	for _, step := range in.Steps {
		raw, err := step.raw()
		if err != nil {
			return StoredPattern{}, err
		}
		p.Steps = append(p.Steps, raw)
	}
	answer := StoredPattern{StepCount: len(p.Steps)}
	err := s.update(ctx, agent, in.DryRun, func(tx *Tx) error {
		var err error
		answer.NodeID, err = tx.StorePattern(p)
		return err
	})
	return answer, err
}

// PatternName is the input of graph.recall_pattern.
type PatternName struct {
	PatternName string `json:"pattern_name" cli:"arg"`
	Owner
}

// RecallPattern is View.Pattern; ErrNotFound where there is none.
func (s *Service) RecallPattern(ctx context.Context, agent memory.AgentID, in PatternName) (NodeRow, error) {
	var row NodeRow
	err := s.view(ctx, agent, func(v *View, _ Limits) error {
		if strings.TrimSpace(in.PatternName) == "" {
			return &memory.FieldError{Field: "pattern_name", Reason: "must not be empty"}
		}
		n := v.Pattern(in.label(agent), in.PatternName)
		if n == nil {
			return memory.Errorf(memory.ErrNotFound, "there is no pattern %s", quoted(in.PatternName))
		}
		var err error
		row, err = n.Row()
		return err
	})
	return row, err
}

// Source is a pattern: one that is stored, by its name, or one that is given.
type Source struct {
	PatternName string   `json:"pattern_name,omitempty" jsonschema:"of a stored pattern, or of the steps that are given" cli:"arg"`
	Steps       []Object `json:"steps,omitempty" jsonschema:"in place of a stored pattern's"`
	Owner
}

// pattern is the source as the adapter takes it.
func (s Source) pattern() (json.RawMessage, error) {
	if s.Steps == nil {
		return appendText(nil, s.PatternName), nil
	}
	return encodeValue(map[string]any{"pattern_name": s.PatternName, "steps": s.Steps})
}

// Resolved is the answer of graph.execute.
type Resolved struct {
	PatternName string   `json:"pattern_name"`
	Steps       []Object `json:"steps"`
	StepCount   int      `json:"step_count"`
}

// Execute resolves a pattern; ErrInvalid where it cannot be.
func (s *Service) Execute(ctx context.Context, agent memory.AgentID, in Source) (Resolved, error) {
	pattern, err := in.pattern()
	if err != nil {
		return Resolved{}, err
	}
	var got resolved
	err = s.view(ctx, agent, func(v *View, _ Limits) error {
		var err error
		got, err = v.resolve(in.label(agent), gjson.ParseBytes(pattern))
		return err
	})
	if err != nil {
		return Resolved{}, err
	}
	steps, err := stepRows(got.steps)
	return Resolved{got.name, steps, len(steps)}, err
}

// stepRows reads steps; one that is no object becomes {"value": …}.
func stepRows(given []json.RawMessage) ([]Object, error) {
	steps, _ := stepObjects(given)
	rows := make([]Object, len(steps))
	for i, raw := range steps {
		if err := json.Unmarshal(raw, &rows[i]); err != nil {
			return nil, memory.Errorf(memory.ErrCorrupt, "a step: %w", err)
		}
	}
	return rows, nil
}

// PatchInput is the input of graph.patch.
type PatchInput struct {
	Source
	LabelName        string   `json:"label_name" jsonschema:"where the pattern stands from now on"`
	SourceEpisodeIDs []string `json:"source_episode_ids,omitempty" jsonschema:"the episodes that gave the reason"`
	Dry
}

// PatchAnswer is the answer of graph.patch.
type PatchAnswer struct {
	PatchRecord
	Steps []Object `json:"steps"`
}

// Patch is Hooks.InstallPatch.
func (s *Service) Patch(ctx context.Context, agent memory.AgentID, in PatchInput) (PatchAnswer, error) {
	if strings.TrimSpace(in.LabelName) == "" {
		return PatchAnswer{}, &memory.FieldError{Field: "label_name", Reason: "must not be empty"}
	}
	pattern, err := in.pattern()
	if err != nil {
		return PatchAnswer{}, err
	}
	got, err := s.Hooks(agent).InstallPatch(ctx, in.label(agent), in.LabelName, pattern, in.SourceEpisodeIDs, in.DryRun)
	if err != nil {
		return PatchAnswer{}, err
	}
	steps, err := stepRows(got.Steps)
	return PatchAnswer{got.Record, steps}, err
}

// PatchesInput is the input of graph.patches.
type PatchesInput struct {
	IncludeRetired bool   `json:"include_retired,omitempty"`
	AgentID        string `json:"agent_id,omitempty" jsonschema:"a label within this graph; all if absent"`
}

// PatchList is the answer of graph.patches.
type PatchList struct {
	Patches []PatchRecord `json:"patches"`
}

// Patches is View.Patches.
func (s *Service) Patches(ctx context.Context, agent memory.AgentID, in PatchesInput) (PatchList, error) {
	var list PatchList
	err := s.view(ctx, agent, func(v *View, _ Limits) error {
		list.Patches = v.Patches(in.AgentID, in.IncludeRetired)
		return nil
	})
	return list, err
}

// Changed is the answer of a change of a patch.
type Changed struct {
	Found bool         `json:"found"`
	Patch *PatchRecord `json:"patch,omitempty" jsonschema:"as it is now"`
}

// change changes the live patch of a label.
func (s *Service) change(ctx context.Context, agent memory.AgentID, dry bool, fn func(*Tx) (PatchRecord, bool, error)) (Changed, error) {
	var got Changed
	err := s.update(ctx, agent, dry, func(tx *Tx) error {
		p, found, err := fn(tx)
		if got.Found = found; found {
			got.Patch = &p
		}
		return err
	})
	return got, err
}

// RetireInput is the input of graph.retire_patch.
type RetireInput struct {
	LabelName string `json:"label_name" cli:"arg"`
	Reason    string `json:"reason,omitempty"`
	Owner
	Dry
}

// RetirePatch is Tx.Retire.
func (s *Service) RetirePatch(ctx context.Context, agent memory.AgentID, in RetireInput) (Changed, error) {
	return s.change(ctx, agent, in.DryRun, func(tx *Tx) (PatchRecord, bool, error) { return tx.Retire(in.label(agent), in.LabelName, in.Reason) })
}

// FitnessInput is the input of graph.patch_fitness.
type FitnessInput struct {
	LabelName string   `json:"label_name" cli:"arg"`
	Fitness   *float64 `json:"fitness,omitempty" jsonschema:"0 to 1"`
	Success   *bool    `json:"success,omitempty" jsonschema:"in place of fitness: how a run ended; the new one is 0.8 of the old, and 0.2 more after a success"`
	Owner
	Dry
}

// PatchFitness is Tx.SetFitness or Tx.Observe.
func (s *Service) PatchFitness(ctx context.Context, agent memory.AgentID, in FitnessInput) (Changed, error) {
	switch {
	case (in.Fitness == nil) == (in.Success == nil):
		return Changed{}, &memory.FieldError{Field: "fitness", Reason: "must be given, or success, and not both"}
	case in.Fitness != nil && (*in.Fitness < 0 || *in.Fitness > 1):
		return Changed{}, &memory.FieldError{Field: "fitness", Reason: "must be from 0 to 1"}
	}
	return s.change(ctx, agent, in.DryRun, func(tx *Tx) (PatchRecord, bool, error) {
		if in.Success != nil {
			return tx.Observe(in.label(agent), in.LabelName, *in.Success)
		}
		return tx.SetFitness(in.label(agent), in.LabelName, *in.Fitness)
	})
}

// FinalizeInput is the input of graph.finalize_patch.
type FinalizeInput struct {
	NodeID        string   `json:"node_id" cli:"arg"`
	DeclaredReads []string `json:"declared_reads"`
	Dry
}

// FinalizePatch is Tx.Finalize.
func (s *Service) FinalizePatch(ctx context.Context, agent memory.AgentID, in FinalizeInput) (Changed, error) {
	return s.change(ctx, agent, in.DryRun, func(tx *Tx) (PatchRecord, bool, error) {
		found, err := tx.Finalize(in.NodeID, in.DeclaredReads)
		if err != nil || !found {
			return PatchRecord{}, false, err
		}
		p, _ := PatchOf(tx.Node(in.NodeID))
		return p, true, nil
	})
}
