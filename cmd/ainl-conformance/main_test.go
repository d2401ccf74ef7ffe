package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// talk sends requests, in which WS stands for a new workspace with the given
// files, and returns the answers.
func talk(t *testing.T, files map[string]string, requests ...string) []string {
	t.Helper()
	ws := t.TempDir()
	t.Chdir(ws) // so that the driver's own change of directory ends with the test
	for name, text := range files {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	in := strings.ReplaceAll(strings.Join(requests, "\n"), "WS", ws)
	if err := serve(context.Background(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(answers) != len(requests) {
		t.Fatalf("%d answers to %d requests:\n%s", len(answers), len(requests), out.String())
	}
	return answers
}

const open = `{"op":"$open","suite":"records","workspace":"WS","now":"2026-03-01T00:00:00Z","config":{},"env":{}}`

func TestSession(t *testing.T) {
	md := "---\nainl_namespace: long_term\nainl_record_kind: long_term.project_fact\nainl_record_id: f1\n---\nbody\n"
	files := map[string]string{"n.md": md, "MEMORY.md": "## A\nx\n", "memory/2026-03-01.md": "- y\n", "in.jsonl": `{"namespace":"ops","record_kind":"k","record_id":"i","payload":{"n":9007199254740993}}` + "\n"}
	steps := [][2]string{
		{`{"op":"get","args":["ops","k","i"]}`, `"error"`},
		{`{"op":"$reopen"}`, `"error"`},
		{`{"op":"$open","suite":"poetry","workspace":"WS"}`, `{"error":{"class":"invalid","message":"suite is not known: \"poetry\""}}`},
		{`not json`, `"error"`},
		{open, `{"result":{"ok":true}}`},
		{`{"op":"put","args":["workflow","k","a",{"v":1},60]}`, `{"result":{"ok":true,"created":true,"updated_at":"2026-03-01T00:00:00+00:00","stats":`},
		{`{"op":"put","args":["nope","k","a",{}]}`, `{"error":{"class":"invalid",`},
		{`{"op":"get","args":["workflow","k","a"],"now":"2026-03-01T00:01:01Z"}`, `{"result":{"found":false,"record":null,`},
		{`{"op":"profile","args":[]}`, `"error"`}, // not a verb of the contract
		{`{"op":"$reopen"}`, `{"result":{"ok":true}}`},
		{`{"op":"list","args":["workflow"]}`, `"record_id":"a"`},
		{`{"op":"import_records","args":{"file":"in.jsonl","jsonl":true}}`, `{"result":{"ok":true,"inserted":1,"updated":0,"errors":[]}}`},
		{`{"op":"import_records","args":{"file":"none.json"}}`, `"error"`},
		{`{"op":"import_markdown","args":{"paths":["n.md"]}}`, `"inserted":1`},
		{`{"op":"migrate_legacy","args":{"memory_md":"MEMORY.md","daily_log_dir":"memory"}}`, `"inserted":2`},
		{`{"op":"export_daily_log_markdown","args":{"output_root":"out"}}`, `{"result":{"written":["out/2026/2026-03-01.md"]}}`},
		{`{"op":"export_records","args":{"namespaces":["ops"]}}`, `"payload":{"n":9007199254740993}`},
		{`{"op":"validate","args":{"records":7}}`, `{"result":{"ok":false,"issues":[{"kind":"error","path":"",`},
		{`{"op":"retention_report","args":{"namespace":"ops"}}`, `"total_records":1`},
		{open, `{"result":{"ok":true}}`},
		{`{"op":"list","args":["ops"]}`, `{"result":{"items":[],`},
	}
	var requests []string
	for _, s := range steps {
		requests = append(requests, s[0])
	}
	for i, answer := range talk(t, files, requests...) {
		if !strings.Contains(answer, steps[i][1]) || !json.Valid([]byte(answer)) {
			t.Errorf("%s\nanswers %s, want %s", steps[i][0], answer, steps[i][1])
		}
	}
}

func TestLazyOpen(t *testing.T) {
	answers := talk(t, nil,
		strings.Replace(open, `"config":{}`, `"config":{"lazy_open":true}`, 1),
		`{"op":"retention_report","args":{}}`,
		`{"op":"list","args":["ops"]}`,
		`{"op":"export_records","args":{}}`,
		`{"op":"put","args":["ops","k","a",{}]}`,
		`{"op":"retention_report","args":{}}`)
	for i, want := range []string{`"ok":true`, `"error":"there is no database`, `"items":[]`, `{"result":{"records":[]}}`, `"created":true`, `"total_records":1`} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d = %s, want %s", i, answers[i], want)
		}
	}
}

func TestBadConfigurationIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"prune_strategy_by_namespace":{"workflow":"lru"}}`: "prune_strategy_by_namespace.workflow",
		`{"default_ttl_by_namespace":{"session":1.5}}`:       "config",
		`{"default_ttl_by_namespace":{"session":true}}`:      "config",
	} {
		answers := talk(t, nil, strings.Replace(open, `"config":{}`, `"config":`+config, 1))
		if !strings.Contains(answers[0], `"error"`) || !strings.Contains(answers[0], want) {
			t.Errorf("%s: %s", config, answers[0])
		}
	}
}

func TestContextMakesAHookADryRun(t *testing.T) {
	answers := talk(t, nil,
		strings.Replace(open, `"records"`, `"graph"`, 1),
		`{"op":"on_delegation","args":{"delegator":"a","delegatee":"b","task":"t","payload":null},"context":{"dry_run":"on"}}`,
		`{"op":"on_swarm_message","args":{"sender":"a","receiver":"b","message":"m","payload":1},"context":{"dry_run":1}}`,
		`{"op":"store.all_nodes"}`,
		`{"op":"on_delegation","args":{"delegator":"a","delegatee":"b","task":"t","payload":null},"context":{"dry_run":"no"}}`,
		`{"op":"store.all_nodes"}`)
	for i, want := range []string{`"ok":true`, `"node_id":"episodic_`, `"node_id":"swarm_`, `{"result":{"nodes":[]}}`, `"node_id":"episodic_`, `"label":"delegation:t"`} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d = %s, want %s", i, answers[i], want)
		}
	}
}

func TestGraphSession(t *testing.T) {
	const node = `{"id":"a","node_type":"semantic","agent_id":"x","label":"A","created_at":1772323200,"ttl":60}`
	steps := [][2]string{
		{`{"op":"$open","suite":"graph","workspace":"WS","now":"2026-03-01T00:00:00Z","env":{"ARMARAOS_HOME":"WS/host","ARMARAOS_AGENT_ID":"ag","AINL_BUNDLE_PATH":"WS/b.ainlbundle"}}`, `{"result":{"ok":true}}`},
		{`{"op":"store.add_node","args":{"node":` + node + `}}`, `"label":"A"`},
		{`{"op":"store.add_node","args":{"node":{"id":"b"}}}`, `{"error":{"class":"invalid","message":"node_type is missing"}}`},
		{`{"op":"store.add_edge","args":{"edge":{"id":"e","src":"a","dst":"b","edge_type":"knows"},"persist":false}}`, `"edge_type":"knows"`},
		{`{"op":"store.add_edge","args":{"edge":{"id":"f","src":"a","dst":"b","edge_type":"knows"},"dry_run":true}}`, `"id":"f"`},
		{`{"op":"store.all_edges"}`, `{"result":{"edges":[{"id":"e",`},
		{`{"op":"store.get_node","args":{"id":"a"}}`, `{"result":{"node":{"id":"a",`},
		{`{"op":"store.get_node","args":{"id":"z"}}`, `{"result":{"node":null}}`},
		{`{"op":"boot","args":{}}`, `{"result":{"node_id":"boot_`},
		{`{"op":"persona_load","args":[]}`, `"persona_context":{"calm":0.7}`},
		{`{"op":"store.find_by_type","args":{"node_type":"persona"}}`, `"trait_name":"calm"`},
		{`{"op":"on_tool_execution","args":{"tool_name":"sh","args":[1],"result":{"ok":true},"agent_id":"x","parent_node_id":"a"}}`, `{"result":{"node_id":"tool_`},
		{`{"op":"on_prompt_compress","args":{"original_tokens":10,"compressed_tokens":2,"summary":"s","agent_id":"x"}}`, `{"result":{"node_id":"sem_`},
		{`{"op":"inbox.push_patch","args":{"patch":{"node_id":"p","label_name":"L","patch_version":1},"agent_id":"x"}}`, `{"result":{"pushed":1,"skipped":0}}`},
		{`{"op":"store.finalize_patch","args":{"node_id":"p","declared_reads":[]}}`, `{"result":{"found":false}}`},
		{`{"op":"memory.nothing","args":[]}`, `{"error":{"class":"invalid"`},
		{`{"op":"$setenv","args":{"AINL_DRY_RUN":"1"}}`, `{"result":{"ok":true}}`},
		{`{"op":"$reopen","now":"2026-03-01T00:01:01Z"}`, `{"result":{"ok":true}}`},
		{`{"op":"memory_recall","args":["a"]}`, `{"result":{"error":"not found"}}`},
		{`{"op":"persona_update","args":[{"trait_name":"new","strength":1}]}`, `"ok":true`},
		{`{"op":"memory_search","args":["new"]}`, `{"result":{"results":[],"count":0}}`},
		{`{"op":"snapshot_path","args":{}}`, `/host/agents/ag/ainl_graph_memory_export.json"}}`},
	}
	var requests []string
	for _, s := range steps {
		requests = append(requests, s[0])
	}
	files := map[string]string{"host/agents/note": "", "b.ainlbundle": `{"workflow":{},"persona":[{"trait_name":"calm","strength":0.7}]}`}
	for i, answer := range talk(t, files, requests...) {
		if !strings.Contains(answer, steps[i][1]) || !json.Valid([]byte(answer)) {
			t.Errorf("%s\nanswers %s, want %s", steps[i][0], answer, steps[i][1])
		}
	}
}
