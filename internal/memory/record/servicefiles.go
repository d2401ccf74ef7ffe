package record

import (
	"cmp"
	"context"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// ValidateInput is the input of record.validate.
type ValidateInput struct {
	Records []Object `json:"records,omitempty" jsonschema:"the records to check"`
	Filters *Object  `json:"filters,omitempty" jsonschema:"the filters of a list to check"`
	Profile string   `json:"profile,omitempty" jsonschema:"v1 or v1.1; v1 if absent"`
}

// Validate checks records and filters against the contract.
func (s *Service) Validate(ctx context.Context, agent memory.AgentID, in ValidateInput) (Verdict, error) {
	_, config := s.rooms.describe(agent)
	v, err := NewValidator(in.Profile, config)
	if err != nil {
		return Verdict{}, err
	}
	verdict, err := v.checkAll(ctx, objects(in.Records), position)
	if err != nil || in.Filters == nil {
		return verdict, err
	}
	filters, err := in.Filters.raw()
	if err != nil {
		return Verdict{}, err
	}
	verdict.add(CheckFilters(filters).Issues)
	return verdict, nil
}

// ExportInput is the input of record.export.
type ExportInput struct {
	Selection
	Limit  *int64 `json:"limit,omitempty" jsonschema:"records at most; 100 if absent"`
	Offset *int64 `json:"offset,omitempty" jsonschema:"records to leave out first"`
}

// EnvelopeView is an envelope as an operation shows it.
type EnvelopeView struct {
	Key
	CreatedAt  string  `json:"created_at"`
	UpdatedAt  string  `json:"updated_at"`
	TTLSeconds *int64  `json:"ttl_seconds"`
	Payload    *Object `json:"payload"`
	Metadata   *Object `json:"metadata,omitempty"`
	Provenance any     `json:"provenance"`
	Flags      any     `json:"flags"`
}

// ExportAnswer is the answer of record.export. More is set where the limit left
// records out.
type ExportAnswer struct {
	Records []EnvelopeView `json:"records"`
	More    bool           `json:"more,omitempty"`
}

// Export returns records as envelopes, in the order of their keys.
func (s *Service) Export(ctx context.Context, agent memory.AgentID, in ExportInput) (ExportAnswer, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return ExportAnswer{}, err
	}
	defer release()
	limit, offset, err := store.page(in.Limit, in.Offset)
	if err := cmp.Or(err, in.Check(store.config)); err != nil {
		return ExportAnswer{}, err
	}
	out := ExportAnswer{Records: []EnvelopeView{}}
	err = store.each(ctx, in.Selection, limit+1, offset, func(r Record) error {
		if len(out.Records) == limit {
			out.More = true
			return nil
		}
		v, err := r.envelopeView()
		out.Records = append(out.Records, v)
		return err
	})
	return out, err
}

func (r Record) envelopeView() (EnvelopeView, error) {
	e, err := r.envelope()
	if err != nil {
		return EnvelopeView{}, err
	}
	v := EnvelopeView{Key: e.Key, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, TTLSeconds: e.TTLSeconds}
	if v.Payload, err = objectOf(e.Payload); err != nil {
		return EnvelopeView{}, err
	}
	if v.Metadata, err = objectOf(e.Metadata); err != nil {
		return EnvelopeView{}, err
	}
	if v.Provenance, err = decodeAny(e.Provenance); err != nil {
		return EnvelopeView{}, err
	}
	v.Flags, err = decodeAny(e.Flags)
	return v, err
}

// ImportInput is the input of record.import.
type ImportInput struct {
	Records []Object `json:"records" jsonschema:"envelopes, as record.export gives them"`
}

// Import is Store.Import.
func (s *Service) Import(ctx context.Context, agent memory.AgentID, in ImportInput) (Imported, error) {
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return Imported{}, err
	}
	defer release()
	return store.Import(ctx, objects(in.Records))
}

// PagesInput is the input of record.export_markdown.
type PagesInput struct {
	Limit  *int64 `json:"limit,omitempty" jsonschema:"daily logs at most; 100 if absent"`
	Offset *int64 `json:"offset,omitempty" jsonschema:"daily logs to leave out first"`
}

// Pages is the answer of record.export_markdown. More is set where the limit
// left daily logs out.
type Pages struct {
	Files   []Page    `json:"files"`
	Skipped []Skipped `json:"skipped,omitempty"`
	More    bool      `json:"more,omitempty"`
}

// ExportMarkdown returns the daily logs as Markdown, by day.
func (s *Service) ExportMarkdown(ctx context.Context, agent memory.AgentID, in PagesInput) (Pages, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return Pages{}, err
	}
	defer release()
	limit, offset, err := store.page(in.Limit, in.Offset)
	if err != nil {
		return Pages{}, err
	}
	out := Pages{Files: []Page{}}
	err = store.DailyPages(ctx, limit+1, offset, func(id string, p Page) error {
		switch {
		case len(out.Files)+len(out.Skipped) == limit:
			out.More = true
		case p.Path == "":
			out.Skipped = append(out.Skipped, Skipped{id, notADate})
		default:
			out.Files = append(out.Files, p)
		}
		return nil
	})
	return out, err
}

// DocumentsInput is the input of record.import_markdown.
type DocumentsInput struct {
	Files []Document `json:"files" jsonschema:"Markdown with front matter"`
}

// ImportMarkdown is Store.ImportDocuments.
func (s *Service) ImportMarkdown(ctx context.Context, agent memory.AgentID, in DocumentsInput) (Imported, error) {
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return Imported{}, err
	}
	defer release()
	return store.ImportDocuments(ctx, in.Files)
}

// MigrateInput is the input of record.migrate.
type MigrateInput struct {
	Notes *Document  `json:"memory_md,omitempty" jsonschema:"MEMORY.md; its sections become facts"`
	Days  []Document `json:"days,omitempty" jsonschema:"daily notes; their names end in YYYY-MM-DD.md"`
}

// Migrate is Store.MigrateDocuments.
func (s *Service) Migrate(ctx context.Context, agent memory.AgentID, in MigrateInput) (Imported, error) {
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return Imported{}, err
	}
	defer release()
	return store.MigrateDocuments(ctx, in.Notes, in.Days)
}
