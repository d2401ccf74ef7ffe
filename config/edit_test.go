package config

import (
	"errors"
	"testing"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestEdit(t *testing.T) {
	for before, want := range map[string]string{
		"":                                      "model:\n  provider: ollama\n  key: \"\"\n",
		"# mine\nlog:\n  level: debug # loud\n": "# mine\nlog:\n  level: debug # loud\n\nmodel:\n  provider: ollama\n  key: \"\"\n",
		"model:\n    provider: \"a # b\" # here\n    name: x\n# end\nlog: {level: info}": "model:\n    provider: ollama # here\n    name: x\n    key: \"\"\n# end\nlog: {level: info}\n",
		"model: # the model\n  key: env:A\n":                                             "model: # the model\n  key: \"\"\n  provider: ollama\n",
		"model:\n":                                                                       "model:\n  provider: ollama\n  key: \"\"\n",
	} {
		got, err := Edit([]byte(before), "model", Setting{"provider", "ollama"}, Setting{"key", ""})
		if err != nil || string(got) != want {
			t.Errorf("from\n%s\ngot\n%s\nwant\n%s\n%v", before, got, want, err)
		}
		if again, err := Edit(got, "model", Setting{"provider", "ollama"}, Setting{"key", ""}); err != nil || string(again) != string(got) {
			t.Errorf("again: %s, %v", again, err)
		}
	}
	for _, bad := range []string{"model: {provider: openai}\n", "model: [\n", "model: 5\n", "model:\n  provider: |\n    openai\n"} {
		if _, err := Edit([]byte(bad), "model", Setting{"provider", "ollama"}); !errors.Is(err, memory.ErrInvalid) || memory.HintOf(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	whole, err := Edit(DefaultYAML(), "model", Setting{"provider", "openrouter"}, Setting{"name", "a/b:free"}, Setting{"key", "env:OPENROUTER_API_KEY"}, Setting{"base_url", ""})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Default()
	if err == nil {
		err = overlay(&cfg, "edited", whole)
	}
	if err != nil || cfg.Model.Name != "a/b:free" || cfg.Validate() != nil {
		t.Errorf("%+v, %v, %v", cfg.Model, err, cfg.Validate())
	}
}
