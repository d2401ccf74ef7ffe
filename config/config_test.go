package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func load(t *testing.T, text string, env map[string]string, set ...string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	return Load(Sources{File: file, Environ: environ, Set: set})
}

func TestLaterSourcesWin(t *testing.T) {
	text := "recall:\n  min_importance: 2\n  max_items: 7\nmodel:\n  timeout: 5s\n"
	cfg, err := load(t, text, map[string]string{"OPENCLAWSSY_RECALL_MAX_ITEMS": "9", "OPENCLAWSSY_RECALL_DEADLINE_MS": "10", "OPENCLAWSSY_SERVICE_HOST": "10.0.0.1"}, "recall.deadline_ms=20")
	if err != nil {
		t.Fatal(err)
	}
	if r := cfg.Recall; r.MinImportance != 2 || r.MaxItems != 9 || r.DeadlineMS != 20 {
		t.Errorf("recall = %+v, want the file's 2, the environment's 9, the flag's 20", r)
	}
	if cfg.Model.Timeout != Duration(5*time.Second) || cfg.Memory.MaxPromptTokens != 1200 {
		t.Errorf("timeout %v, prompt tokens %d", cfg.Model.Timeout, cfg.Memory.MaxPromptTokens)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		env   map[string]string
		set   []string
		field string
		want  []string // parts of the text and hint
	}{
		"unknown key":     {text: "recall:\n  min_importence: 2\n", field: "recall.min_importence", want: []string{"line 2", "recall.min_importance?"}},
		"unknown section": {text: "recal: {}\n", field: "recal", want: []string{"recall?"}},
		"wrong type":      {text: "recall:\n  max_items: many\n", field: "recall.max_items", want: []string{"whole number", "line 2"}},
		"out of range":    {text: "recall:\n  min_importance: 9\n", field: "recall.min_importance", want: []string{"between 1 and 5"}},
		"not yaml":        {text: "recall: [\n", want: []string{"not YAML"}},
		"env type":        {env: map[string]string{"OPENCLAWSSY_MEMORY_ENABLED": "perhaps"}, field: "memory.enabled", want: []string{"OPENCLAWSSY_MEMORY_ENABLED"}},
		"env unknown":     {env: map[string]string{"OPENCLAWSSY_RECALL_MAX_ITEM": "9"}, field: "OPENCLAWSSY_RECALL_MAX_ITEM", want: []string{"OPENCLAWSSY_RECALL_MAX_ITEMS?"}},
		"set unknown":     {set: []string{"recal.max_items=3"}, field: "recal.max_items", want: []string{"recall.max_items?"}},
		"set without =":   {set: []string{"x"}, field: "set", want: []string{"KEY=VALUE"}},
		"inline key":      {text: "model:\n  key: abc\n", field: "model.key", want: []string{"env:NAME"}},
		"url with user":   {text: "model:\n  base_url: http://a:b@c/v1\n", field: "model.base_url"},
		"generic, no url": {text: "model:\n  provider: generic\n  name: m\n", field: "model.base_url"},
		"openai, no name": {text: "model:\n  provider: openai\n", field: "model.name"},
		"bad agent":       {text: "agents:\n  Bad: {}\n", field: "agents.Bad"},
		"agent's bad key": {text: "agents:\n  bot:\n    recall:\n      maxitems: 3\n", field: "recall.maxitems", want: []string{"recall.max_items?"}},
		"short timeout":   {set: []string{"model.timeout=1ms"}, field: "model.timeout"},
		"no such failure": {set: []string{"checkpoint.on_failure=drop"}, field: "checkpoint.on_failure", want: []string{"park or offline"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tc.text, tc.env, tc.set...)
			if !errors.Is(err, memory.ErrInvalid) {
				t.Fatalf("Load = %v, want invalid", err)
			}
			if got := memory.FieldOf(err); got != tc.field {
				t.Errorf("field %q, want %q (%v)", got, tc.field, err)
			}
			for _, part := range tc.want {
				if all := err.Error() + " " + memory.HintOf(err); !strings.Contains(all, part) {
					t.Errorf("%q does not say %q", all, part)
				}
			}
		})
	}
}

func TestAgentsOwnSettings(t *testing.T) {
	cfg, err := load(t, "agents:\n  bot:\n    memory:\n      max_prompt_tokens: 300\n    runtime:\n      tools: [memory.get]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	bot, err := cfg.For("bot")
	if err != nil {
		t.Fatal(err)
	}
	if bot.Memory.MaxPromptTokens != 300 || !bot.Memory.Enabled || len(bot.Runtime.Tools) != 1 {
		t.Errorf("bot's settings: %+v %v", bot.Memory, bot.Runtime.Tools)
	}
	if len(cfg.Runtime.Tools) != 7 || cfg.Runtime.Tools[0] != "memory.search" {
		t.Errorf("the others' tools changed: %v", cfg.Runtime.Tools)
	}
	other, err := cfg.For("other")
	if err != nil || other.Memory.MaxPromptTokens != 1200 {
		t.Errorf("other's cap %d, %v", other.Memory.MaxPromptTokens, err)
	}
}

func TestEveryKeyIsInTheDefaultsAndTheSchema(t *testing.T) {
	s, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		section, name, _ := strings.Cut(key, ".")
		if !strings.Contains(string(defaults), "\n  "+name+":") {
			t.Errorf("default.yaml does not have %s", key)
		}
		p := s.Properties[section]
		if p == nil || p.Properties[name] == nil || p.Properties[name].Description == "" {
			t.Errorf("the schema does not describe %s", key)
		}
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
