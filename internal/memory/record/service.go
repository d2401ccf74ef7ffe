package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Object is a JSON object as an operation takes and gives it. Numbers keep their
// digits.
type Object map[string]any

// UnmarshalJSON reads a JSON object.
func (o *Object) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return &json.UnmarshalTypeError{Value: "another value", Type: reflect.TypeFor[map[string]any]()}
	}
	v, err := decodeAny(raw)
	if err != nil {
		return err
	}
	*o = v.(map[string]any)
	return nil
}

// object reads stored JSON; nil for none.
func objectOf(raw json.RawMessage) (*Object, error) {
	if raw == nil || isNull(raw) {
		return nil, nil
	}
	var o Object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, memory.Errorf(memory.ErrCorrupt, "stored JSON: %w", err)
	}
	return &o, nil
}

// raw writes an object; nil for none.
func (o *Object) raw() (json.RawMessage, error) {
	if o == nil {
		return nil, nil
	}
	return encode(map[string]any(*o))
}

// Service offers the records of agents as operations. An operation works on the
// calling agent's records only, and reads and writes no other file.
type Service struct{ rooms rooms }

// NewService returns a service that borrows stores: read answers ErrNotFound for
// an agent without records, write makes them. Both lend stores that can write.
// describe tells, for an agent, where its records are or would be, and their
// configuration.
func NewService(read, write memory.Borrow[*Store], describe func(memory.AgentID) (path string, c Config)) *Service {
	return &Service{rooms{read, write, describe}}
}

// Ops returns the operations record.*.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("record.put", "Store a record under its namespace, kind and id, replacing the one that is there.", op.Write, s.Put).
			WithExample(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1","payload":{"step":1},"ttl_seconds":3600}`),
		op.New("record.get", "Get a record by its namespace, kind and id.", op.Read, s.Get).
			WithExample(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1"}`),
		op.New("record.append", "Add an entry to a log record, which is made if need be.", op.Write, s.Append).
			WithExample(`{"namespace":"daily_log","record_kind":"daily_log.note","record_id":"2026-03-01","entry":{"ts":"09:00","text":"standup"}}`),
		op.New("record.list", "List the records of a namespace, without their payloads.", op.Read, s.List).
			WithExample(`{"namespace":"workflow","tags_any":["billing"]}`),
		op.New("record.delete", "Delete one record.", op.Destroy, s.Delete).
			WithExample(`{"namespace":"workflow","record_kind":"workflow.checkpoint","record_id":"cp-1"}`),
		op.New("record.prune", "Delete the records whose time to live is over.", op.Destroy, s.Prune).WithExample(`{"namespace":"workflow"}`).RunUnattended(),
		op.New("record.touch", "Note that a record was used: last_accessed and access_count of its metadata.", op.Write, s.Touch).
			WithExample(`{"namespace":"long_term","record_kind":"long_term.project_fact","record_id":"f1"}`),
		op.New("record.validate", "Check records, or the filters of a list, against the contract.", op.Read, s.Validate).
			WithExample(`{"records":[{"namespace":"ops","record_kind":"ops.disk","record_id":"d","payload":{}}],"profile":"v1.1"}`),
		op.New("record.export", "Get records as portable envelopes.", op.Read, s.Export).WithExample(`{"namespaces":["workflow"]}`),
		op.New("record.import", "Store records from portable envelopes, all or none.", op.Write, s.Import).
			WithExample(`{"records":[{"namespace":"ops","record_kind":"ops.disk","record_id":"d","payload":{"free":7}}]}`),
		op.New("record.export_markdown", "Get the daily logs as Markdown.", op.Read, s.ExportMarkdown).WithExample(`{"limit":7}`),
		op.New("record.import_markdown", "Store facts and preferences from Markdown with front matter.", op.Write, s.ImportMarkdown).
			WithExample(`{"files":[{"name":"sky.md","text":"---\nainl_namespace: long_term\nainl_record_kind: long_term.project_fact\nainl_record_id: sky\n---\nThe sky is blue."}]}`),
		op.New("record.migrate", "Store MEMORY.md and daily notes as records.", op.Write, s.Migrate).
			WithExample(`{"memory_md":{"name":"MEMORY.md","text":"## People\nAnn"}}`),
		op.New("record.report", "Report what is stored, what expires soon and what has expired.", op.Read, s.Report).WithExample(`{"namespace":"workflow"}`),
		op.New("record.profile", "Tell which version of the record contract is spoken here, and its limits.", op.Read, s.Profile),
		op.New("record.store_pattern", "Store a fragment of a program under a name.", op.Write, s.StorePattern).
			WithExample(`{"name":"retry","fragment":{"labels":{"1":{"nodes":[]}}}}`),
		op.New("record.recall_pattern", "Get the labels of a stored fragment.", op.Read, s.RecallPattern).WithExample(`{"name":"retry"}`),
	}
}

// PutInput is the input of record.put.
type PutInput struct {
	Key
	Payload    Object  `json:"payload" jsonschema:"what to store"`
	TTLSeconds *int64  `json:"ttl_seconds,omitempty" jsonschema:"seconds from its creation after which it is gone; the namespace's default if absent"`
	Metadata   *Object `json:"metadata,omitempty" jsonschema:"source, confidence, tags, valid_at, last_accessed, access_count, and what else you like"`
}

// Put is Store.Put.
func (s *Service) Put(ctx context.Context, agent memory.AgentID, in PutInput) (PutAnswer, error) {
	w, err := writeOf(in.Key, in.Payload, in.TTLSeconds, in.Metadata)
	if err != nil {
		return PutAnswer{}, err
	}
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return PutAnswer{}, err
	}
	defer release()
	created, at, err := store.Put(ctx, w)
	return PutAnswer{OK: err == nil, Created: created, UpdatedAt: at}, err
}

func writeOf(key Key, value Object, ttl *int64, metadata *Object) (Write, error) {
	raw, err := value.raw()
	if err != nil {
		return Write{}, err
	}
	given, err := metadata.raw()
	return Write{Key: key, Value: raw, TTL: ttl, Metadata: given}, err
}

// AppendInput is the input of record.append.
type AppendInput struct {
	Key
	Entry      Object  `json:"entry" jsonschema:"what to add at the end of the record's entries"`
	TTLSeconds *int64  `json:"ttl_seconds,omitempty" jsonschema:"seconds from its creation after which the record is gone; unchanged if absent"`
	Metadata   *Object `json:"metadata,omitempty" jsonschema:"replaces the record's metadata; unchanged if absent"`
}

// Append is Store.Append.
func (s *Service) Append(ctx context.Context, agent memory.AgentID, in AppendInput) (AppendAnswer, error) {
	w, err := writeOf(in.Key, in.Entry, in.TTLSeconds, in.Metadata)
	if err != nil {
		return AppendAnswer{}, err
	}
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return AppendAnswer{}, err
	}
	defer release()
	at, err := store.Append(ctx, w)
	return AppendAnswer{OK: err == nil, UpdatedAt: at}, err
}

// View is a record as an operation shows it.
type View struct {
	Handle string `json:"handle"`
	Key
	CreatedAt  string  `json:"created_at"`
	UpdatedAt  string  `json:"updated_at"`
	TTLSeconds *int64  `json:"ttl_seconds"`
	Payload    *Object `json:"payload"`
	Metadata   *Object `json:"metadata"`
}

// View returns r as operations show it.
func (r Record) View() (View, error) {
	payload, err := objectOf(r.Payload)
	if err != nil {
		return View{}, err
	}
	metadata, err := objectOf(r.Metadata)
	return View{r.Handle(), r.Key, r.CreatedAt, r.UpdatedAt, r.TTLSeconds, payload, metadata}, err
}

// GetAnswer is the answer of record.get.
type GetAnswer struct {
	Found  bool  `json:"found"`
	Record *View `json:"record"`
}

// Get is Store.Get.
func (s *Service) Get(ctx context.Context, agent memory.AgentID, key Key) (GetAnswer, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return GetAnswer{}, err
	}
	defer release()
	r, found, err := store.Get(ctx, key)
	if err != nil || !found {
		return GetAnswer{}, err
	}
	v, err := r.View()
	return GetAnswer{true, &v}, err
}

// defaultPage is how many records an operation lists where no limit is given.
const defaultPage = 100

// page returns the limit and offset of an operation, within the store's bound.
func (s *Store) page(limit, offset *int64) (int, int, error) {
	if err := cmp.Or(notNegative("limit", limit), notNegative("offset", offset)); err != nil {
		return 0, 0, err
	}
	size, skip := int64(defaultPage), int64(0)
	if limit != nil {
		size = *limit
	}
	if offset != nil {
		skip = *offset
	}
	return int(min(size, int64(s.config.ListLimit))), int(skip), nil
}

// List is Store.List, with a limit of 100 where none is given.
func (s *Service) List(ctx context.Context, agent memory.AgentID, q Query) (ListAnswer, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return ListAnswer{}, err
	}
	defer release()
	if q.Limit == nil {
		limit := int64(defaultPage)
		q.Limit = &limit
	}
	items, more, err := store.List(ctx, q)
	return ListAnswer{Items: items, More: more}, err
}

// Delete is Store.Delete.
func (s *Service) Delete(ctx context.Context, agent memory.AgentID, key Key) (DeleteAnswer, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return DeleteAnswer{}, err
	}
	defer release()
	deleted, err := store.Delete(ctx, key)
	return DeleteAnswer{OK: err == nil, Deleted: deleted}, err
}

// PruneInput is the input of record.prune.
type PruneInput struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"only this namespace; all if absent" cli:"arg"`
}

// Prune is Store.Prune.
func (s *Service) Prune(ctx context.Context, agent memory.AgentID, in PruneInput) (PruneAnswer, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return PruneAnswer{}, err
	}
	defer release()
	pruned, err := store.Prune(ctx, in.Namespace)
	return PruneAnswer{OK: err == nil, Pruned: pruned}, err
}

// TouchAnswer is the answer of record.touch.
type TouchAnswer struct {
	OK        bool    `json:"ok"`
	UpdatedAt string  `json:"updated_at"`
	Metadata  *Object `json:"metadata"`
}

// Touch is Store.Touch.
func (s *Service) Touch(ctx context.Context, agent memory.AgentID, key Key) (TouchAnswer, error) {
	store, release, err := s.rooms.read(ctx, agent)
	if err != nil {
		return TouchAnswer{}, err
	}
	defer release()
	metadata, at, err := store.Touch(ctx, key)
	if err != nil {
		return TouchAnswer{}, err
	}
	o, err := objectOf(metadata)
	return TouchAnswer{true, at, o}, err
}

// PatternInput is the input of record.store_pattern.
type PatternInput struct {
	Name     string `json:"name" jsonschema:"name of the fragment"`
	Fragment Object `json:"fragment" jsonschema:"the program's fragment: an object with labels"`
}

// StorePattern is Store.StorePattern.
func (s *Service) StorePattern(ctx context.Context, agent memory.AgentID, in PatternInput) (PatternAnswer, error) {
	fragment, err := in.Fragment.raw()
	if err != nil {
		return PatternAnswer{}, err
	}
	store, release, err := s.rooms.write(ctx, agent)
	if err != nil {
		return PatternAnswer{}, err
	}
	defer release()
	name, hash, at, err := store.StorePattern(ctx, in.Name, fragment)
	return PatternAnswer{OK: err == nil, Name: name, ContentHash: hash, UpdatedAt: at}, err
}

// PatternName is the input of record.recall_pattern.
type PatternName struct {
	Name string `json:"name" jsonschema:"name of the fragment" cli:"arg"`
}

// Pattern is the answer of record.recall_pattern.
type Pattern struct {
	Found   bool    `json:"found"`
	Pattern *Object `json:"pattern"` // has the member labels
}

// RecallPattern is Store.RecallPattern.
func (s *Service) RecallPattern(ctx context.Context, agent memory.AgentID, in PatternName) (Pattern, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return Pattern{}, err
	}
	defer release()
	labels, err := store.RecallPattern(ctx, in.Name)
	if err != nil {
		return Pattern{}, err
	}
	o, err := objectOf(labels)
	return Pattern{o != nil, o}, err
}

// NoInput is the input of an operation that takes none.
type NoInput struct{}

// Capabilities is the answer of record.profile.
type Capabilities struct {
	Profile       string            `json:"memory_profile"`
	Verbs         []string          `json:"verbs"`
	Namespaces    []string          `json:"namespaces"`
	ListLimit     int               `json:"list_limit"` // the largest limit of a list
	DefaultTTL    map[string]*int64 `json:"default_ttl_by_namespace"`
	PruneStrategy map[string]string `json:"prune_strategy_by_namespace"`
}

// Profile tells what an agent's records can do.
func (s *Service) Profile(_ context.Context, agent memory.AgentID, _ NoInput) (Capabilities, error) {
	return s.rooms.profile(agent)
}

// Profile tells what the records behind a can do.
func (a *Adapter) Profile() (Capabilities, error) { return a.rooms.profile(a.agent) }

func (r rooms) profile(agent memory.AgentID) (Capabilities, error) {
	_, config := r.describe(agent)
	c, err := config.complete()
	if err != nil {
		return Capabilities{}, err
	}
	out := Capabilities{Profile, Verbs, c.Namespaces, c.ListLimit, c.DefaultTTL, c.PruneStrategy}
	if out.DefaultTTL == nil {
		out.DefaultTTL = map[string]*int64{}
	}
	if out.PruneStrategy == nil {
		out.PruneStrategy = map[string]string{}
	}
	return out, nil
}

// Report is Store.Report.
func (s *Service) Report(ctx context.Context, agent memory.AgentID, q ReportQuery) (Report, error) {
	store, release, err := s.rooms.reading(ctx, agent)
	if err != nil {
		return Report{}, err
	}
	defer release()
	return store.Report(ctx, q)
}

// objects yields objects one by one as JSON.
func objects(list []Object) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for i := range list {
			raw, err := list[i].raw()
			if err != nil {
				err = fmt.Errorf("records[%d]: %w", i, err)
			}
			if !yield(raw, err) {
				return
			}
		}
	}
}
