package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/openclawssy/openclawssy/internal/bridge"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

// records is a session of the suite "records": the contract's adapter and the
// tools around it.
type records struct {
	path    string
	config  record.Config
	now     func() time.Time
	store   *record.Store // nil until it is needed
	adapter *record.Adapter
}

func openRecords(ctx context.Context, o opening, now func() time.Time) (session, error) {
	var c struct {
		DefaultTTL map[string]*int64 `json:"default_ttl_by_namespace"`
		Prune      map[string]string `json:"prune_strategy_by_namespace"`
		Namespaces []string          `json:"valid_namespaces"`
		Lazy       bool              `json:"lazy_open"`
	}
	if len(o.Config) > 0 {
		if err := json.Unmarshal(o.Config, &c); err != nil {
			return nil, &memory.FieldError{Field: "config", Reason: err.Error()}
		}
	}
	s := &records{path: filepath.Join(o.Workspace, "memory.sqlite3"), now: now,
		config: record.Config{Namespaces: c.Namespaces, DefaultTTL: c.DefaultTTL, PruneStrategy: c.Prune}}
	if err := s.config.Validate(); err != nil {
		return nil, err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} { // a case starts with an empty store
		if err := os.Remove(s.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
	}
	s.start()
	if c.Lazy {
		return s, nil
	}
	_, _, err := s.write(ctx, memory.DefaultAgent)
	return s, err
}

func (s *records) start() {
	s.adapter = record.NewAdapter(memory.DefaultAgent, s.read, s.write, s.path, s.config)
}

// read lends the store if there is one on disk.
func (s *records) read(ctx context.Context, agent memory.AgentID) (*record.Store, func(), error) {
	if _, err := os.Stat(s.path); s.store == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, memory.Errorf(memory.ErrNotFound, "there is no database yet")
	}
	return s.write(ctx, agent)
}

// write lends the store. Payloads stay as they are: the vectors' bytes are their own.
func (s *records) write(ctx context.Context, _ memory.AgentID) (*record.Store, func(), error) {
	if s.store == nil {
		store, err := record.Open(ctx, s.path, record.Options{Config: s.config, Now: s.now})
		if err != nil {
			return nil, nil, err
		}
		s.store = store
	}
	return s.store, func() {}, nil
}

func (s *records) Close() error {
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}

func (s *records) Reopen(ctx context.Context) error {
	if err := s.Close(); err != nil {
		return err
	}
	s.start()
	_, _, err := s.read(ctx, memory.DefaultAgent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	return err
}

// tools are the operations beside the contract's verbs.
var tools = map[string]func(s *records, ctx context.Context, args json.RawMessage) (any, error){
	"validate": (*records).validate, "export_records": (*records).export, "import_records": (*records).importRecords,
	"export_daily_log_markdown": (*records).exportDaily, "import_markdown": (*records).importMarkdown,
	"migrate_legacy": (*records).migrate, "retention_report": (*records).report,
}

func (s *records) Do(ctx context.Context, op string, args, _ json.RawMessage) (any, error) {
	if tool, known := tools[op]; known {
		return tool(s, ctx, args)
	}
	list, err := bridge.List(args)
	if err != nil {
		return nil, err
	}
	return s.adapter.Call(ctx, op, list)
}

// decode reads the named arguments of a tool.
func decode(args json.RawMessage, into any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil
	}
	if err := json.Unmarshal(args, into); err != nil {
		return memory.Errorf(memory.ErrInvalid, "args: %w", err)
	}
	return nil
}

func (s *records) validate(_ context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Records json.RawMessage `json:"records"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	v, err := record.NewValidator(record.ProfileV1, s.config)
	if err != nil {
		return nil, err
	}
	return v.Check(in.Records)
}

func (s *records) export(ctx context.Context, args json.RawMessage) (any, error) {
	var sel record.Selection
	if err := decode(args, &sel); err != nil {
		return nil, err
	}
	store, release, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	list := []record.Envelope{}
	err = store.Export(ctx, sel, func(e record.Envelope) error {
		list = append(list, e)
		return nil
	})
	return map[string]any{"records": list}, err
}

// reading lends the store, or one of nothing.
func (s *records) reading(ctx context.Context) (*record.Store, func(), error) {
	store, release, err := s.read(ctx, memory.DefaultAgent)
	if !errors.Is(err, memory.ErrNotFound) {
		return store, release, err
	}
	store, err = record.Empty(s.path, s.config)
	return store, func() {}, err
}

func (s *records) importRecords(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Records json.RawMessage `json:"records"`
		File    string          `json:"file"`
		Lines   bool            `json:"jsonl"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	store, release, err := s.write(ctx, memory.DefaultAgent)
	if err != nil {
		return nil, err
	}
	defer release()
	if in.File != "" {
		return record.ImportFile(ctx, store, in.File, in.Lines)
	}
	return store.Import(ctx, record.ReadRecords(bytes.NewReader(in.Records), false))
}

func (s *records) exportDaily(ctx context.Context, args json.RawMessage) (any, error) {
	in := struct {
		Root      string `json:"output_root"`
		Overwrite bool   `json:"overwrite"`
	}{Root: record.DailyLogDir}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	store, release, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return store.ExportDailyLog(ctx, in.Root, in.Overwrite)
}

func (s *records) importMarkdown(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Paths []string `json:"paths"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	store, release, err := s.write(ctx, memory.DefaultAgent)
	if err != nil {
		return nil, err
	}
	defer release()
	return record.ImportMarkdown(ctx, store, in.Paths)
}

func (s *records) migrate(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		Notes string `json:"memory_md"`
		Days  string `json:"daily_log_dir"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	store, release, err := s.write(ctx, memory.DefaultAgent)
	if err != nil {
		return nil, err
	}
	defer release()
	return record.MigrateLegacy(ctx, store, in.Notes, in.Days)
}

func (s *records) report(ctx context.Context, args json.RawMessage) (any, error) {
	var in struct {
		record.ReportQuery
		Path string `json:"db_path"`
	}
	if err := decode(args, &in); err != nil {
		return nil, err
	}
	path := s.path
	if in.Path != "" {
		path = in.Path
	}
	return record.ReportFile(ctx, path, in.ReportQuery, s.now())
}
