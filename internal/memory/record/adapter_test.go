package record

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// lend returns the two ways to borrow a store at path, which opens when it is
// first written to.
func lend(t *testing.T, path string, config Config) (read, write memory.Borrow[*Store]) {
	t.Helper()
	var s *Store
	write = func(ctx context.Context, _ memory.AgentID) (*Store, func(), error) {
		if s == nil {
			opened, err := Open(ctx, path, Options{Config: config, Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }})
			if err != nil {
				return nil, nil, err
			}
			s = opened
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		return s, func() {}, nil
	}
	read = func(ctx context.Context, agent memory.AgentID) (*Store, func(), error) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, memory.ErrNotFound
		}
		return write(ctx, agent)
	}
	return read, write
}

func newAdapter(t *testing.T, config Config) (*Adapter, string) {
	path := filepath.Join(t.TempDir(), "a", FileName)
	read, write := lend(t, path, config)
	return NewAdapter(memory.DefaultAgent, read, write, path, config), path
}

// call runs a verb with a JSON list of arguments and returns the answer as JSON.
func call(t *testing.T, a *Adapter, verb, args string) (string, error) {
	t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(args), &list); err != nil {
		t.Fatal(err)
	}
	answer, err := a.Call(context.Background(), verb, list)
	if err != nil {
		return "", err
	}
	raw, err := encode(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}

func TestAdapterAnswers(t *testing.T) {
	a, path := newAdapter(t, Config{})
	for _, step := range []struct{ verb, args, want string }{
		{"get", `["workflow","k","i"]`, `{"found":false,"record":null,"stats":{"operations":1,"reads":1,"writes":0,"pruned":0}}`},
		{"list", `["workflow"]`, `{"items":[],"stats":{"operations":2,"reads":1,"writes":0,"pruned":0}}`},
		{"delete", `["workflow","k","i"]`, `{"ok":true,"deleted":false,"stats":{"operations":3,"reads":1,"writes":0,"pruned":0}}`},
		{"prune", `[]`, `{"ok":true,"pruned":0,"stats":{"operations":4,"reads":1,"writes":0,"pruned":0}}`},
		{"recall_pattern", `["p"]`, `null`},
		{" Put\t", `["workflow","k","i",{"a":1.0},null,{},"surplus"]`, `{"ok":true,"created":true,"updated_at":"2026-03-01T00:00:00+00:00","stats":{"operations":5,"reads":1,"writes":1,"pruned":0}}`},
		{"get", `["workflow","k","i"]`, `{"found":true,"record":{"namespace":"workflow","record_kind":"k","record_id":"i","created_at":"2026-03-01T00:00:00+00:00","updated_at":"2026-03-01T00:00:00+00:00","ttl_seconds":null,"payload":{"a":1.0},"metadata":{}},"stats":{"operations":6,"reads":2,"writes":1,"pruned":0}}`},
		{"append", `["workflow","log","i",{},-1]`, `{"ok":true,"updated_at":"2026-03-01T00:00:00+00:00","stats":{"operations":7,"reads":2,"writes":2,"pruned":0}}`},
		{"LIST", `["workflow",null,"i",null,{"limit":1}]`, `{"items":[{"record_kind":"k","record_id":"i","created_at":"2026-03-01T00:00:00+00:00","updated_at":"2026-03-01T00:00:00+00:00","ttl_seconds":null}],"more":true,"stats":{"operations":8,"reads":3,"writes":2,"pruned":0}}`},
		{"prune", `["workflow"]`, `{"ok":true,"pruned":1,"stats":{"operations":9,"reads":3,"writes":3,"pruned":1}}`},
		{"store_pattern", `[7,{"labels":{"1":{}}}]`, `{"ok":true,"name":"7","content_hash":"6aea7bad883b7c362f845944e62a11b2e872e9ecf4bb5bcb5d5c7307eb225b71","updated_at":"2026-03-01T00:00:00+00:00","stats":{"operations":10,"reads":3,"writes":4,"pruned":1}}`},
		{"recall_pattern", `[" 7 "]`, `{"labels":{"1":{"nodes":[],"edges":[],"legacy":{"steps":[]}}}}`},
		{"recall_pattern", `[null]`, `null`},
		{"delete", `["workflow","k","i"]`, `{"ok":true,"deleted":true,"stats":{"operations":11,"reads":3,"writes":5,"pruned":1}}`},
	} {
		got, err := call(t, a, step.verb, step.args)
		if err != nil || got != step.want {
			t.Errorf("%s %s = %s, %v, want %s", step.verb, step.args, got, err, step.want)
		}
		if step.verb == "recall_pattern" && step.args == `["p"]` {
			if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
				t.Error("reading made the database")
			}
		}
	}
}

func TestAdapterRefusals(t *testing.T) {
	a, _ := newAdapter(t, Config{})
	for _, tc := range []struct{ verb, args, field string }{
		{"", `[]`, ""}, {"profile", `[]`, ""}, {"put.", `[]`, ""},
		{"put", `[]`, "namespace"}, {"put", `["ops"]`, "record_kind"}, {"put", `["ops","k"]`, "record_id"}, {"put", `["ops","k","i"]`, "payload"},
		{"put", `["ops ","k","i",{}]`, "namespace"}, {"put", `[null,"k","i",{}]`, "namespace"}, {"put", `["ops","","i",{}]`, "record_kind"}, {"put", `["ops","k",7,{}]`, "record_id"},
		{"put", `["ops","k","\ud800",{}]`, "record_id"}, {"put", `["ops","k","\udc00\ud800",{}]`, "record_id"},
		{"put", `["ops","k","i",[]]`, "payload"}, {"put", `["ops","k","i",{},60.0]`, "ttl_seconds"}, {"put", `["ops","k","i",{},1e2]`, "ttl_seconds"}, {"put", `["ops","k","i",{},true]`, "ttl_seconds"},
		{"put", `["ops","k","i",{},null,[]]`, "metadata"}, {"put", `["ops","k","i",{},null,{"access_count":2.0}]`, "metadata.access_count"}, {"put", `["ops","k","i",{"_metadata":5}]`, "payload._metadata"},
		{"append", `["ops","k","i",7]`, "entry"}, {"append", `["ops","k","i"]`, "entry"},
		{"get", `["ops","k",""]`, "record_id"}, {"delete", `["ops",null,"i"]`, "record_kind"},
		{"list", `["ops",""]`, "record_kind"}, {"list", `["ops",null,""]`, "record_id_prefix"}, {"list", `["ops",null,null,""]`, "updated_since"}, {"list", `["ops",null,null,"now"]`, "updated_since"},
		{"list", `["ops",null,null,null,[]]`, "filters"}, {"list", `["ops",null,null,null,{"limit":2.0}]`, "filters.limit"},
		{"prune", `[""]`, "namespace"}, {"prune", `[3]`, "namespace"}, {"prune", `["x"]`, "namespace"},
		{"store_pattern", `[null,{"labels":{"1":{}}}]`, "name"}, {"store_pattern", `["p"]`, "fragment"}, {"store_pattern", `["p",{"labels":{}}]`, "fragment.labels"}, {"recall_pattern", `[]`, "name"},
	} {
		_, err := call(t, a, tc.verb, tc.args)
		if !errors.Is(err, memory.ErrInvalid) || memory.FieldOf(err) != tc.field {
			t.Errorf("%q %s: %v, want field %q", tc.verb, tc.args, err, tc.field)
		}
	}
	if got, err := call(t, a, "list", `["ops"]`); err != nil || got != `{"items":[],"stats":{"operations":1,"reads":0,"writes":0,"pruned":0}}` {
		t.Errorf("after refusals: %s, %v", got, err)
	}
}

func TestExplicitMetadataBeatsThePayloads(t *testing.T) {
	a, _ := newAdapter(t, Config{})
	for args, want := range map[string]string{
		`["ops","k","a",{"_metadata":{"source":"p"}}]`:                      `"metadata":{"source":"p"}}`,
		`["ops","k","a",{"_metadata":{"source":"p"}},null,{"source":"x"}]`:  `"metadata":{"source":"x"}}`,
		`["ops","k","a",{"_metadata":{"source":"p"}},null,null]`:            `"metadata":null}`,
		`["ops","k","a",{"_metadata":null}]`:                                `"metadata":null}`,
		`["ops","k","a",{"_metadata":{"confidence":9}},null,{"tags":null}]`: `"metadata":{"tags":null}}`,
	} {
		if _, err := call(t, a, "put", args); err != nil {
			t.Fatal(err)
		}
		if got, err := call(t, a, "get", `["ops","k","a"]`); err != nil || !strings.Contains(got, want) {
			t.Errorf("put %s: %s, %v", args, got, err)
		}
	}
}

func TestOperations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", FileName)
	config := Config{DefaultTTL: map[string]*int64{session: ref(int64(30))}}
	read, write := lend(t, path, config)
	var catalog op.Catalog
	catalog.Add(NewService(read, write, func(memory.AgentID) (string, Config) { return path, config }).Ops()...)
	catalog.Freeze()
	for _, o := range catalog.All() {
		if o.Example != "" {
			if err := o.Check(json.RawMessage(o.Example)); err != nil {
				t.Errorf("example of %s: %v", o.Name, err)
			}
		}
	}
	for _, step := range []struct{ name, in, want string }{
		{"get", `{"namespace":"ops","record_kind":"k","record_id":"i"}`, `{"found":false,"record":null}`},
		{"report", `{}`, `"error":"there is no database yet"`},
		{"profile", ``, `{"memory_profile":"v1.1-deterministic-metadata","verbs":["put","get","append","list","delete","prune","store_pattern","recall_pattern"],"namespaces":["session","long_term","daily_log","workflow","ops"],"list_limit":1000,"default_ttl_by_namespace":{"session":30},"prune_strategy_by_namespace":{}}`},
		{"export", `{}`, `{"records":[]}`},
		{"put", `{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"n":9007199254740993,"f":1.0},"metadata":{"tags":["t"]}}`, `{"ok":true,"created":true,"updated_at":"2026-03-01T00:00:00+00:00"}`},
		{"get", `{"namespace":"ops","record_kind":"k","record_id":"i"}`, `{"found":true,"record":{"handle":"REC-1","namespace":"ops","record_kind":"k","record_id":"i","created_at":"2026-03-01T00:00:00+00:00","updated_at":"2026-03-01T00:00:00+00:00","ttl_seconds":null,"payload":{"f":1.0,"n":9007199254740993},"metadata":{"tags":["t"]}}}`},
		{"touch", `{"namespace":"ops","record_kind":"k","record_id":"i"}`, `"access_count":1`},
		{"append", `{"namespace":"daily_log","record_kind":"daily_log.note","record_id":"2026-03-01","entry":{"text":"x"}}`, `"ok":true`},
		{"list", `{"namespace":"ops","tags_any":["t"],"limit":5}`, `{"items":[{"record_kind":"k","record_id":"i",`},
		{"export", `{"namespaces":["ops","daily_log"],"limit":1}`, `"more":true}`},
		{"export", `{"offset":1}`, `{"records":[{"namespace":"ops","record_kind":"k","record_id":"i",`},
		{"export_markdown", `{}`, `{"files":[{"path":"2026/2026-03-01.md","text":"---\nainl_namespace: daily_log\n`},
		{"import", `{"records":[{"namespace":"ops","record_kind":"k","record_id":"j","payload":{"n":9007199254740993}}]}`, `{"ok":true,"inserted":1,"updated":0,"errors":[]}`},
		{"import", `{"records":[{"namespace":"ops"}]}`, `{"ok":false,"inserted":0,"updated":0,"errors":[{"kind":"error","path":"[0].record_kind","message":"is missing"},`},
		{"import_markdown", `{"files":[{"name":"n.md","text":"` + strings.ReplaceAll(fact("f", "", "body"), "\n", `\n`) + `"}]}`, `{"ok":true,"inserted":1`},
		{"migrate", `{"memory_md":{"name":"MEMORY.md","text":"## A\nx"},"days":[{"name":"memory/2026-02-01.md","text":"y"}]}`, `{"ok":true,"inserted":2`},
		{"validate", `{"records":[{"namespace":"ops","record_kind":"","record_id":"x","payload":{}}],"profile":"v1.1","filters":{"limit":1}}`, `{"ok":false,"issues":[{"kind":"error","path":"[0].record_kind","message":"must not be empty"}]}`},
		{"validate", `{"filters":{"limits":1}}`, `"path":"filters.limits"`},
		{"store_pattern", `{"name":"p","fragment":{"labels":{"1":{}}}}`, `"name":"p"`},
		{"recall_pattern", `{"name":"p"}`, `{"found":true,"pattern":{"labels":{"1":{`},
		{"recall_pattern", `{"name":"q"}`, `{"found":false,"pattern":null}`},
		{"prune", `{}`, `{"ok":true,"pruned":0}`},
		{"delete", `{"namespace":"ops","record_kind":"k","record_id":"i"}`, `{"ok":true,"deleted":true}`},
	} {
		o, err := catalog.Get("record." + step.name)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := o.Call(context.Background(), memory.DefaultAgent, json.RawMessage(step.in))
		if err != nil {
			t.Errorf("%s %s: %v", step.name, step.in, err)
			continue
		}
		got, err := encode(answer)
		if err != nil || !strings.Contains(string(got), step.want) {
			t.Errorf("%s %s = %s, %v, want %s", step.name, step.in, got, err, step.want)
		}
	}
	for _, tc := range []struct{ name, in, field string }{
		{"put", `{"namespace":"ops","record_kind":"k","record_id":"i","payload":[]}`, "payload"},
		{"put", `{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"ttl_seconds":1.5}`, "ttl_seconds"},
		{"put", `{"namespace":"ops","record_kind":"k","record_id":"i","payload":{},"metadata":"x"}`, "metadata"},
		{"get", `{"namespace":"nowhere","record_kind":"k","record_id":"i"}`, "namespace"},
		{"list", `{"namespace":"ops","limit":-1}`, "filters.limit"},
		{"export", `{"limit":-1}`, "limit"},
		{"validate", `{"profile":"v9"}`, "profile"},
		{"migrate", `{"days":[{"name":"diary.md","text":""}]}`, "days[0].name"},
		{"put", `{"agent":"other"}`, "agent"},
	} {
		o, err := catalog.Get("record." + tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Call(context.Background(), memory.DefaultAgent, json.RawMessage(tc.in)); memory.FieldOf(err) != tc.field {
			t.Errorf("%s %s: %v, want field %q", tc.name, tc.in, err, tc.field)
		}
	}
	o, err := catalog.Get("record.touch")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Call(context.Background(), memory.DefaultAgent, json.RawMessage(`{"namespace":"ops","record_kind":"k","record_id":"none"}`)); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("touching nothing: %v", err)
	}
}
