package graph

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// rig is an adapter on a store in a directory of its own.
type rig struct {
	*fixture
	*Adapter
	dir string
	env map[string]string
}

func newRig(t *testing.T, env map[string]string, files map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{dir: dir, env: map[string]string{"HOME": dir, "AINL_GRAPH_MEMORY_PATH": filepath.Join(dir, FileName)}}
	for name, value := range env {
		r.env[name] = strings.ReplaceAll(value, "DIR", dir)
	}
	r.start(t)
	return r
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	getenv := func(name string) string { return r.env[name] }
	host := HostFrom(getenv)
	path, _ := PathFrom(getenv)
	ids := 0
	if r.fixture != nil {
		ids = r.ids
	}
	r.fixture = openTest(t, path, func(o *Options) { o.Limits, o.Snapshot = host.Limits, host.Snapshot })
	r.ids = ids
	lend := func(context.Context, memory.AgentID) (*Store, func(), error) { return r.Store, func() {}, nil }
	r.Adapter = NewAdapter(memory.DefaultAgent, lend, lend, host, r.opts.Now, zerolog.Nop())
}

func (r *rig) reopen() {
	r.Helper()
	if err := r.Close(); err != nil {
		r.Fatal(err)
	}
	r.start(r.T)
}

// call runs a verb and returns its answer as JSON.
func (r *rig) call(verb, args, callContext string) string {
	r.Helper()
	answer, err := r.Call(context.Background(), verb, json.RawMessage(args), json.RawMessage(callContext))
	if err != nil {
		return err.Error()
	}
	raw, err := encodeValue(answer)
	if err != nil {
		r.Fatal(err)
	}
	return string(raw)
}

// expect runs a verb; its answer must hold all parts.
func (r *rig) expect(verb, args, callContext string, parts ...string) {
	r.Helper()
	got := r.call(verb, args, callContext)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			r.Errorf("%s %s answers\n%s\nwithout %s", verb, args, got, part)
		}
	}
}

func (r *rig) read(name string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

func TestDefectDamagedFileIsTakenForAnEmptyGraph(t *testing.T) {
	for name, text := range map[string]string{"cut off": `{"nodes":[{"id":"a"`, "no object": "[1,2]", "empty": "", "no UTF-8": "{\"nodes\":[\"\xff\"]}",
		"too deep": `{"nodes":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + "}"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := openTest(t, path, nil)
			f.add(row("new"))
			aside, err := f.SetAside()
			if err != nil || len(aside) != 1 || len(f.Notes()) != 1 {
				t.Fatalf("set aside: %q, %v; notes: %q", aside, err, f.Notes())
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != text {
				t.Errorf("the damaged file is now %.100q, %v", kept, err)
			}
		})
	}
}

func TestDefectOversizedFileIsOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	text := `{"nodes":[` + row("a") + `],"edges":[]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	small := Options{Limits: defaultLimits}
	small.Limits.FileBytes = 50
	if _, err := Open(context.Background(), path, small); !errors.Is(err, memory.ErrInvalid) || !strings.Contains(memory.HintOf(err), "MAX_JSON_BYTES") {
		t.Errorf("Open = %v, hint %q", err, memory.HintOf(err))
	}
	f := openTest(t, path, func(o *Options) {
		o.Limits = defaultLimits
		o.Limits.FileBytes = int64(len(text)) + 200
	})
	if f.file("") != text {
		t.Errorf("the file is now %s", f.file(""))
	}
	// Nor does the store ever write what it would not read again.
	err := f.Update(context.Background(), Write{}, func(tx *Tx) error {
		return addRow(tx, strings.Replace(row("b"), `"label":"b"`, `"label":"`+strings.Repeat("b", 300)+`"`, 1))
	})
	if !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("Update = %v", err)
	}
	f.want("a:a")
	if f.file("") != text {
		t.Errorf("the file is now %s", f.file(""))
	}
}

func TestDefectNodesBeyondTheCapAreLost(t *testing.T) {
	for name, edit := range map[string]func(*Options){"file": func(*Options) {}, "journal": journaled} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			if err := os.WriteFile(path, []byte(`{"nodes":[`+row("a")+","+row("b")+","+row("c")+`],"edges":[]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			f := openTest(t, path, func(o *Options) {
				o.Limits = defaultLimits
				edit(o)
				o.Limits.Nodes = 2
			})
			f.add(strings.Replace(row("b"), `"label":"b"`, `"label":"B"`, 1))
			err := f.Update(context.Background(), Write{}, func(tx *Tx) error { return addRow(tx, row("d")) })
			if !errors.Is(err, memory.ErrDenied) {
				t.Errorf("a node too many = %v", err)
			}
			if err := f.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			f.want("a:a b:B")
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			openTest(t, path, nil).want("a:a b:B c:c")
		})
	}
}

func TestDefectUnreadableRowsAreLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(`{"nodes":[`+row("a")+`,{"id":"lost"},"text"],"edges":{"not":"a list"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openTest(t, path, nil)
	f.add(row("b"))
	f.want("a:a b:b")
	kept := f.file(".unread.jsonl")
	for _, part := range []string{`{"id":"lost"}`, `"text"`, `{"not":"a list"}`, "node_type is missing"} {
		if !strings.Contains(kept, part) {
			t.Errorf("%s is not in\n%s", part, kept)
		}
	}
}

func TestDefectContradictionDropsVitals(t *testing.T) {
	r := newRig(t, nil, nil)
	r.add(`{"id":"a","node_type":"episodic","agent_id":"x","created_at":1,"vitals_gate":"warn","vitals_trust":0.4,"payload":{"metadata":{"k":1}},"more":true}`, row("b"),
		link("e", "a", Contradicts, "b"))
	r.expect("memory_recall", `["a"]`, "", `"vitals_gate":"warn"`, `"vitals_trust":0.4`, `"metadata":{"k":1,"has_contradiction":true}`, `"contradicted_by":["b"]`, `"more":true`)
}

func TestDefectContradictionWithOddMetadataStoresHalf(t *testing.T) {
	r := newRig(t, nil, nil)
	r.add(row("a"), `{"id":"b","node_type":"semantic","agent_id":"x","created_at":1,"payload":{"metadata":"text"}}`)
	err := r.Update(context.Background(), Write{}, func(tx *Tx) error { return addRow(tx, link("e", "a", Contradicts, "b")) })
	if memory.FieldOf(err) != "payload.metadata" {
		t.Errorf("Update = %v", err)
	}
	r.want("a:a b:")
	if got := r.call("memory_recall", `["a"]`, ""); strings.Contains(got, "has_contradiction") {
		t.Errorf("a was marked: %s", got)
	}
}

func TestDefectEmptyEdgeTypeAndUncheckedDryRun(t *testing.T) {
	r := newRig(t, nil, nil)
	for _, w := range []Write{{}, {DryRun: true}} {
		for _, kind := range []string{"", "likes", "Knows"} {
			err := r.Update(context.Background(), w, func(tx *Tx) error { return addRow(tx, link("e", "a", kind, "b")) })
			if memory.FieldOf(err) != "edge_type" {
				t.Errorf("an edge of type %q, %+v = %v", kind, w, err)
			}
		}
	}
}

func TestDefectSearch(t *testing.T) {
	r := newRig(t, nil, nil)
	r.add(`{"id":"a","node_type":"semantic","agent_id":"x","created_at":1,"payload":{"t":["ŻÓŁW","say \"hi\""],"key":7}}`)
	for args, want := range map[string]string{
		`["żółw"]`: `"count":1`, `["say \"hi\""]`: `"count":1`, `["\\u017b"]`: `"count":0`, `[": 7"]`: `"count":0`, `["key"]`: `"count":1`, `["7"]`: `"count":1`,
		`["", null, null, 0]`: `"count":0`, `["", null, null, "0"]`: `"count":0`, `["", null, null, -1]`: "limit must be", `["", null, null, null]`: "limit must be",
		`[null]`: `"count":1`, `{"query":"nothing"}`: `"count":0`,
	} {
		r.expect("memory_search", args, "", want)
	}
}

func TestDefectPatterns(t *testing.T) {
	r := newRig(t, nil, nil)
	r.expect("memory_store_pattern", `["p",[{"v":1}],"a",[]]`, "", `"step_count":1`)
	r.expect("memory_store_pattern", `["p",[{"v":2}],"a",[]]`, "", `"step_count":1`)
	r.expect("memory_pattern_recall", `["p"]`, `{"agent_id":"a"}`, `{"v":2}`) // the newest wins
	r.expect("memory_store_pattern", `["",[],"a",[]]`, "", "pattern_name must not be empty")
	r.expect("memory_store_pattern", `[{"steps":[1]}]`, "", "pattern_name must not be empty")
	r.expect("memory_pattern_recall", `["p#step0"]`, `{"agent_id":"a"}`, `"ok":false`) // a step is no pattern
	if _, err := r.OnToolExecution(context.Background(), ToolExecution{ToolName: "shell", AgentID: "a"}, false); err != nil {
		t.Fatal(err)
	}
	r.expect("memory_pattern_recall", `["tool:shell"]`, `{"agent_id":"a"}`, `"ok":false`) // nor is a call of a tool
}

func TestDefectDryRunOfAPatchRetiresTheLiveOne(t *testing.T) {
	r := newRig(t, nil, nil)
	r.expect("memory_patch", `[{"steps":[{}]},"L"]`, "", `"patch_version":1`)
	r.expect("memory_patch", `[{"steps":[{}]},"L"]`, `{"dry_run":true}`, `"patch_version":2`)
	before := r.file("")
	r.expect("memory_patch", `[{"steps":[{}]},"L"]`, `{"dry_run":"on"}`, `"patch_version":2`)
	err := r.View(context.Background(), func(v *View) error {
		if p, found := v.Patch(DefaultLabel, "L"); !found || p.PatchVersion != 1 {
			t.Errorf("the live patch is %+v", p)
		}
		return nil
	})
	if err != nil || r.file("") != before {
		t.Errorf("%v; the file is now %s", err, r.file(""))
	}
}

func TestDefectPatchNumbersRestart(t *testing.T) {
	r := newRig(t, nil, nil)
	first := r.call("memory_patch", `[{"steps":[{}]},"L"]`, "")
	err := r.Update(context.Background(), Write{}, func(tx *Tx) error {
		_, found, err := tx.Retire(DefaultLabel, "L", "by hand")
		if !found {
			t.Error("nothing was retired")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var id struct {
		NodeID string `json:"node_id"`
	}
	if err := json.Unmarshal([]byte(first), &id); err != nil {
		t.Fatal(err)
	}
	r.expect("memory_patch", `[{"steps":[{}]},"L"]`, "", `"patch_version":2`, `"parent_patch_id":"`+id.NodeID+`"`)
	r.expect("memory_patch", `[{"steps":[{}]},""]`, "", `"ok":false`, "label_name required")
}

func TestDefectToolExecutionFails(t *testing.T) {
	r := newRig(t, nil, nil)
	id, err := r.OnToolExecution(context.Background(), ToolExecution{ToolName: "shell", Args: json.RawMessage(`["ls"]`), AgentID: "x", ParentNodeID: "parent"}, false)
	if err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.expect("memory_recall", `["`+id+`"]`, "", `"label":"tool:shell"`, `"payload":{"tool_name":"shell","args":["ls"],"result":null}`, `"tags":["tool_execution"]`)
	r.want(id + ":tool:shell " + id + "-part_of-parent")
}

const snapshotText = `{"schema_version":"1","agent_id":"x","nodes":[{"id":"r1","node_type":{"type":"semantic","fact":"f"}},{"id":"r2"}],
	"edges":[{"source_id":"r1","target_id":"r2","edge_type":"knows","weight":0},{"source_id":"r1","target_id":"r2","edge_type":"odd"}]}`

func TestDefectSnapshotEdgesMultiply(t *testing.T) {
	r := newRig(t, map[string]string{"AINL_GRAPH_MEMORY_ARMARAOS_EXPORT": "DIR/snap.json"}, map[string]string{"snap.json": snapshotText})
	for range 3 {
		r.want("r1:f r2:r2 r1-knows-r2 r1-references-r2")
		if err := r.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.reopen()
	}
	whole := r.file("")
	for _, part := range []string{`"confidence":0,`, `"meta":{"armaraos_edge_type":"odd"}`} { // a weight of 0 stays 0
		if strings.Count(whole, part) != 1 {
			t.Errorf("%s is not once in\n%s", part, whole)
		}
	}
}

func TestDefectBundle(t *testing.T) {
	bundle := `{"workflow":{},"persona":[{"trait_name":"calm","strength":0.1},{"trait_name":"bold","strength":0.3,"edge_type":"knows"}],"memory":[]}`
	r := newRig(t, map[string]string{"AINL_BUNDLE_PATH": "DIR/b.ainlbundle"}, map[string]string{"b.ainlbundle": bundle})
	r.expect("persona_update", `[{"trait_name":"calm","strength":0.9}]`, `{"agent_id":"x"}`, `"ok":true`)
	if _, err := r.Boot(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	// What was learned since the bundle was made wins; an edge type is not dropped.
	r.expect("persona_load", `[]`, "", `"calm":0.9`, `"strength":0.9`, `"trait_name":"bold","strength":0.3,"learned_from":[],"last_updated":1772323200,"edge_type":"knows"`)
}

const inboxFile = "home/agents/ag/ainl_graph_memory_inbox.json"

func TestDefectBrokenInboxIsReplaced(t *testing.T) {
	r := newRig(t, map[string]string{"ARMARAOS_HOME": "DIR/home", "ARMARAOS_AGENT_ID": "ag"}, map[string]string{inboxFile: "{oops"})
	if _, err := r.Boot(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := r.read(inboxFile + ".damaged-20260301T000000Z"); got != "{oops" {
		t.Errorf("the broken inbox is now %q", got)
	}
	if got := r.read(inboxFile); !strings.Contains(got, "bridge_boot") {
		t.Errorf("the inbox is %s", got)
	}
}

func TestInboxFollowsItsSchema(t *testing.T) {
	r := newRig(t, map[string]string{"ARMARAOS_HOME": "DIR/home", "ARMARAOS_AGENT_ID": "ag"},
		map[string]string{inboxFile: `{"nodes":[],"edges":[{"id":"e","src":"a","dst":"b","edge_type":"knows"}],"own":1}`})
	ctx := context.Background()
	if _, err := r.Boot(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	r.expect("persona_update", `[{"trait_name":"calm","strength":0.4}]`, "", `"ok":true`)
	r.expect("memory_patch", `[{"steps":[{}]},"L"]`, "", `"ok":true`)
	if _, err := r.RecordTool(ctx, ToolExecution{ToolName: "shell", AgentID: "x"}, false); err != nil {
		t.Fatal(err)
	}
	n, err := ParseNode([]byte(`{"id":"v","node_type":"episodic","agent_id":"x","created_at":1.5,"ttl":60,"vitals_gate":"pass","vitals_phase":"reasoning:0.69","vitals_trust":0.69}`))
	if err != nil {
		t.Fatal(err)
	}
	tagged := &Node{ID: "s", Type: Semantic, Tags: []string{"topic:sea"}}
	if got, err := r.Inbox().Push(ctx, []*Node{n, tagged}, RequiresTagger); err != nil || got.Pushed != 2 {
		t.Errorf("Push = %+v, %v", got, err)
	}
	r.expect("persona_update", `[{"trait_name":"dry","strength":0.4}]`, `{"dry_run":1}`, `"ok":true`)

	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(InboxSchema), &schema); err != nil {
		t.Fatal(err)
	}
	check, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var envelope map[string]any
	if err := json.Unmarshal([]byte(r.read(inboxFile)), &envelope); err != nil {
		t.Fatal(err)
	}
	if err := check.Validate(envelope); err != nil {
		t.Error(err)
	}
	if got := r.read(inboxFile); strings.Contains(got, "dry") || !strings.Contains(got, `"own":1`) ||
		!strings.Contains(got, `"source_features":["ainl_graph_memory","inbox_v1","requires_ainl_tagger"]`) || len(envelope["nodes"].([]any)) != 6 {
		t.Errorf("the inbox is %s", got)
	}
	for _, wrong := range []string{`{"nodes":[]}`, `{"nodes":[{"id":"a"}],"edges":[]}`, `{"schema_version":"2","nodes":[],"edges":[]}`} {
		var v any
		if err := json.Unmarshal([]byte(wrong), &v); err != nil {
			t.Fatal(err)
		}
		if check.Validate(v) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

func TestHostPathsNeverLeaveTheHost(t *testing.T) {
	for _, id := range []string{"../../etc", "a/b", "..", `a\b`, "a\x00"} {
		getenv := func(name string) string {
			return map[string]string{"ARMARAOS_AGENT_ID": id, "ARMARAOS_HOME": t.TempDir()}[name]
		}
		host := HostFrom(getenv)
		if host.Snapshot != "" || NewInbox(host, nil, zerolog.Nop()).Available() {
			t.Errorf("agent %q: snapshot %q", id, host.Snapshot)
		}
	}
}
