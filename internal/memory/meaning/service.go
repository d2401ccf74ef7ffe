package meaning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/embed/scan"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Ops returns the operations of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{op.New("memory.reembed", "Make the vectors that search by meaning misses, for the configured model or another; what there is stays, and it can be interrupted at any time.", op.Write, s.Reembed).
		WithExample(`{"dry_run": true}`)}
}

// ReembedRequest is the input of memory.reembed.
type ReembedRequest struct {
	Model  string `json:"model,omitempty" jsonschema:"a model of the configured provider in place of the configured one, to have its vectors ready before it is configured"`
	DryRun bool   `json:"dry_run,omitempty" jsonschema:"say what would be sent, and send and write nothing"`
	Anew   bool   `json:"anew,omitempty" jsonschema:"make also what there is again, after the model behind a name has changed"`
	Prune  bool   `json:"prune,omitempty" jsonschema:"afterwards throw away the vectors of all other models"`
}

// ReembedResult is the output of memory.reembed.
type ReembedResult struct {
	Agent    memory.AgentID `json:"agent"`
	Done     bool           `json:"done" jsonschema:"false: it was a dry run"`
	Provider string         `json:"provider"`
	Model    string         `json:"model" jsonschema:"id of the model; empty where the built-in one has too little to learn from yet"`
	SentTo   string         `json:"sent_to" jsonschema:"host that texts are sent to; empty: none leave this machine"`
	Texts    int            `json:"texts" jsonschema:"passages and memories that should have a vector"`
	Made     int            `json:"made" jsonschema:"vectors that were made now"`
	Reused   int            `json:"reused" jsonschema:"of them from the same text elsewhere"`
	Missing  int            `json:"missing" jsonschema:"that have none yet"`
	Refused  int            `json:"refused" jsonschema:"that the model does not take; they are found by their words"`
	Cut      int            `json:"cut" jsonschema:"longer than the model reads; their vector is of the beginning"`
	Tokens   int            `json:"tokens" jsonschema:"about how many were sent, or would be in a dry run; 0 for the built-in model"`
	Learns   bool           `json:"learns" jsonschema:"in a dry run: the built-in model would learn anew"`
	Trained  bool           `json:"trained" jsonschema:"the built-in model has learned anew"`
	Others   []string       `json:"others" jsonschema:"other models whose vectors are kept"`
}

// Text shows the result to a person.
func (r ReembedResult) Text() string {
	var sb strings.Builder
	if r.Learns {
		fmt.Fprintf(&sb, "%s: the built-in model would learn from %d texts (nothing leaves this machine)\n", r.Agent, r.Texts)
		return sb.String()
	}
	if r.Model == "" {
		fmt.Fprintf(&sb, "%s: %d texts, too few to learn meanings from yet; search goes by words\n", r.Agent, r.Texts)
		return sb.String()
	}
	where := "nothing leaves this machine"
	if r.SentTo != "" {
		where = "sent to " + r.SentTo
	}
	if !r.Done {
		fmt.Fprintf(&sb, "%s: %d of %d texts have no vector of %s", r.Agent, r.Missing, r.Texts, r.Model)
		if r.SentTo != "" {
			fmt.Fprintf(&sb, "; about %d tokens would be %s", r.Tokens, where)
		}
		sb.WriteString("\n")
	} else {
		fmt.Fprintf(&sb, "%s: %d vectors made by %s (%s), %d of %d texts have one\n", r.Agent, r.Made, r.Model, where, r.Texts-r.Missing-r.Refused, r.Texts)
	}
	if r.Refused > 0 {
		fmt.Fprintf(&sb, "  %d texts the model does not take; they are found by their words\n", r.Refused)
	}
	if r.Cut > 0 {
		fmt.Fprintf(&sb, "  %d texts are longer than the model reads; their vector is of the beginning\n", r.Cut)
	}
	if len(r.Others) > 0 {
		fmt.Fprintf(&sb, "  vectors of other models are kept: %s (--prune throws them away)\n", strings.Join(r.Others, ", "))
	}
	return sb.String()
}

// Reembed makes the vectors that are missing.
func (s *Service) Reembed(ctx context.Context, agent memory.AgentID, in ReembedRequest) (ReembedResult, error) {
	if _, err := s.Dir(agent); err != nil {
		return ReembedResult{}, err
	}
	do := s.CatchUp
	if in.DryRun {
		do = s.Look
	}
	r, err := do(ctx, agent, Asked{Model: in.Model, Anew: in.Anew})
	out := ReembedResult{Agent: agent, Done: !in.DryRun, Provider: r.Provider, Model: r.Model, SentTo: r.Host, Texts: r.Coverage.Texts, Made: r.Made, Reused: r.Reused,
		Missing: r.Coverage.Missing(), Refused: r.Coverage.Refused, Cut: r.Coverage.Cut, Tokens: r.Tokens, Trained: r.Trained, Learns: r.Learns, Others: []string{}}
	switch {
	case err != nil && r.Made > 0:
		return out, memory.WithHint(fmt.Errorf("%d vectors were made and are kept, %d are missing: %w", r.Made, out.Missing, err), memory.HintOf(err))
	case err != nil:
		return out, err
	case r.Off:
		return out, memory.WithHint(memory.Errorf(memory.ErrDenied, "embeddings are switched off"), "set embeddings.provider; lsa needs nothing else")
	}
	return out, s.others(ctx, agent, in, &out)
}

// others lists the models that are not the one asked for, or drops them.
func (s *Service) others(ctx context.Context, agent memory.AgentID, in ReembedRequest, out *ReembedResult) error {
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if out.Model == "" && !in.DryRun {
		if out.Texts, err = v.Texts(ctx); err != nil {
			return err
		}
	}
	all, err := v.Models(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		switch {
		case m.ID == out.Model:
		case in.Prune && !in.DryRun && out.Missing == 0:
			if err := v.Drop(ctx, m.ID); err != nil {
				return err
			}
		default:
			out.Others = append(out.Others, m.ID)
		}
	}
	return nil
}

// Health says how an agent's vectors are.
type Health struct {
	Provider string     `json:"provider" jsonschema:"what makes them; off for none"`
	SentTo   string     `json:"sent_to" jsonschema:"host that texts are sent to; empty: none leave this machine"`
	Model    string     `json:"model" jsonschema:"id of the model; empty where the built-in one has too little to learn from yet"`
	Ready    bool       `json:"ready" jsonschema:"false: search goes by words until every text has a vector"`
	Texts    int        `json:"texts" jsonschema:"passages and memories that should have a vector"`
	Have     int        `json:"have" jsonschema:"that have one"`
	Missing  int        `json:"missing" jsonschema:"that wait for one"`
	Refused  int        `json:"refused" jsonschema:"that the model does not take; they are found by their words"`
	Cut      int        `json:"cut" jsonschema:"longer than the model reads; their vector is of the beginning"`
	Failure  string     `json:"failure" jsonschema:"what went wrong when the model was asked last; empty if nothing did"`
	Since    *time.Time `json:"since" jsonschema:"when that began; null if nothing is wrong"`
	Memory   int64      `json:"memory_bytes" jsonschema:"that this process holds vectors in; 0 where it has not needed them"`
	Kernel   string     `json:"kernel" jsonschema:"code that looks through the vectors on this machine, such as c-avx2, or go where it has no faster one"`
	Slow     bool       `json:"slow" jsonschema:"there are more vectors than can be looked at in a turn's time"`
	Others   []string   `json:"others" jsonschema:"other models whose vectors are kept"`
}

// Health looks at what is stored, and asks no model.
func (s *Service) Health(ctx context.Context, agent memory.AgentID) (Health, error) {
	src, err := s.Source(agent, "")
	h := Health{Provider: src.Provider, SentTo: src.Host, Kernel: scan.Kernel(), Others: []string{}}
	if err != nil || src.Off {
		return h, err
	}
	if src.Embedder != nil {
		h.Model = src.Embedder.ModelID()
	}
	v, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	defer release()
	all, err := v.Models(ctx)
	if err != nil {
		return h, err
	}
	for _, m := range all {
		if src.Embedder == nil && m.BuiltIn && (m.Ready || h.Model == "") {
			h.Model = m.ID
		}
	}
	dims := 0
	for _, m := range all {
		if m.ID != h.Model {
			h.Others = append(h.Others, m.ID)
			continue
		}
		h.Ready, h.Failure, dims = m.Ready, m.Failure, m.Dims
		if m.Failure != "" {
			h.Since = &m.Since
		}
	}
	c, err := v.Coverage(ctx, h.Model)
	if err != nil {
		return h, err
	}
	h.Texts, h.Have, h.Missing, h.Refused, h.Cut = c.Texts, c.Have, c.Missing(), c.Refused, c.Cut
	_, h.Memory, h.Slow = v.Loaded()
	if dims > 0 && !h.Slow { // the vectors need not be loaded for that
		h.Slow, err = scan.Outgrown(dims, c.Have)
	}
	return h, err
}
