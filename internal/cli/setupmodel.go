package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// ModelSetUp is what the command setup model works with.
type ModelSetUp struct {
	File func() string // the path of config.yaml
	// Try asks a model for a word, as an agent, and returns what it says.
	Try func(ctx context.Context, agent memory.AgentID, m config.Model) (string, error)
}

// modelDone is what setup model prints.
type modelDone struct {
	File     string `json:"file"`
	Provider string `json:"provider"`
	BaseURL  string `json:"base_url"`
	Model    string `json:"model"`
	Tested   bool   `json:"tested" jsonschema:"the model answered a call"`
	Changed  bool   `json:"changed"`
	Undo     string `json:"undo,omitempty" jsonschema:"a command that takes it back"`
}

func (d modelDone) Text() string {
	var sb strings.Builder
	if d.Tested {
		fmt.Fprintf(&sb, "%s at %s answers\n", clean(d.Model), clean(d.BaseURL))
	}
	if !d.Changed {
		fmt.Fprintf(&sb, "%s says so already; nothing was changed\n", clean(d.File))
		return sb.String()
	}
	fmt.Fprintf(&sb, "wrote %s; to take it back: %s\n", clean(d.File), clean(d.Undo))
	return sb.String()
}

// SetupModel chooses the model.
func SetupModel(with ModelSetUp) Command {
	return func(r *Runner) *cobra.Command {
		var m config.Model
		var noTest, show bool
		var names []string
		for _, p := range llm.Presets {
			names = append(names, string(p.Name))
		}
		c := &cobra.Command{
			Use: "setup/model", Short: "Choose the model that is asked", Args: cobra.NoArgs,
			Long: "Choose the model that distils and answers, and write it into config.yaml; the rest of the file stays as it is. Without flags it asks,\n" +
				"on a terminal. One small call tests it first; where that fails nothing is written. A key is never written: name the variable\n" +
				"or the file that holds it. Providers: " + strings.Join(names, ", ") + " (any other OpenAI-compatible server, with --base-url).",
			Example: "  openclawssy setup model\n  openclawssy setup model --provider openrouter --model openai/gpt-4o-mini --key env:OPENROUTER_API_KEY\n" +
				"  openclawssy setup model --provider ollama --model llama3.2\n  openclawssy setup model --provider generic --base-url http://localhost:8080/v1 --model local --print",
			RunE: func(c *cobra.Command, _ []string) error {
				if err := r.askModel(&m, names, c.Flags().Changed("key")); err != nil {
					return err
				}
				file := with.File()
				before, err := os.ReadFile(file)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return memory.Errorf(memory.ErrUnavailable, "%w", err)
				}
				existed := err == nil
				after, err := config.Edit(before, "model", config.Setting{Key: "provider", Value: m.Provider}, config.Setting{Key: "base_url", Value: m.BaseURL},
					config.Setting{Key: "name", Value: m.Name}, config.Setting{Key: "key", Value: m.Key})
				if err != nil {
					return memory.WithHint(fmt.Errorf("%s: %w", file, err), memory.HintOf(err))
				}
				// What is in force otherwise, such as the timeout, holds here too.
				now, err := r.App.Config()
				if err != nil {
					return err
				}
				now.Model.Provider, now.Model.BaseURL, now.Model.Name, now.Model.Key = m.Provider, m.BaseURL, m.Name, m.Key
				if err := now.Validate(); err != nil {
					return err
				}
				if show {
					part, err := config.Edit(nil, "model", config.Setting{Key: "provider", Value: m.Provider}, config.Setting{Key: "base_url", Value: m.BaseURL},
						config.Setting{Key: "name", Value: m.Name}, config.Setting{Key: "key", Value: m.Key})
					if err != nil {
						return err
					}
					r.note("# %s", clean(file))
					return r.Print(snippet{File: file, Part: string(part)})
				}
				done := modelDone{File: file, Provider: m.Provider, BaseURL: llm.BaseURL(llm.Provider(m.Provider), m.BaseURL), Model: m.Name}
				if !noTest {
					if _, err := with.Try(c.Context(), r.Agent(), now.Model); err != nil {
						return memory.WithHint(fmt.Errorf("the model does not answer, and nothing was written: %w", err), strings.TrimPrefix(memory.HintOf(err)+"; --no-test writes it all the same", "; "))
					}
					done.Tested = true
				}
				if existed && bytes.Equal(before, after) {
					return r.Print(done)
				}
				done.Changed = true
				if done.Undo, err = writeConfig(file, before, after, existed); err != nil {
					return err
				}
				return r.Print(done)
			},
		}
		c.Flags().StringVar(&m.Provider, "provider", "", strings.Join(names, ", "))
		c.Flags().StringVar(&m.Name, "model", "", "the model's id at the provider")
		c.Flags().StringVar(&m.Key, "key", "", "env:NAME or file:PATH of the key; the provider's usual variable if absent")
		c.Flags().StringVar(&m.BaseURL, "base-url", "", "where the API is, with /v1; the provider's own if absent")
		c.Flags().BoolVar(&noTest, "no-test", false, "do not ask the model first")
		c.Flags().BoolVar(&show, "print", false, "show what belongs into config.yaml, and change nothing")
		return c
	}
}

// askModel fills what the flags left out, by asking where a person sits there.
func (r *Runner) askModel(m *config.Model, names []string, keyGiven bool) error {
	in := bufio.NewReader(r.In)
	ask := func(what, usual string) (string, error) {
		if !r.InTTY || r.Options.JSON {
			return usual, nil
		}
		fmt.Fprintf(r.Err, "%s", what)
		if usual != "" {
			fmt.Fprintf(r.Err, " [%s]", usual)
		}
		fmt.Fprint(r.Err, ": ")
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if line = strings.TrimSpace(line); line == "" {
			return usual, nil
		}
		return line, nil
	}
	var err error
	if m.Provider == "" {
		if m.Provider, err = ask("Provider ("+strings.Join(names, ", ")+")", ""); err != nil {
			return err
		}
	}
	preset, known := llm.PresetOf(llm.Provider(m.Provider))
	if !known {
		return &memory.FieldError{Field: "provider", Reason: fmt.Sprintf("must be %s, not %q", strings.Join(names, ", "), m.Provider), Hint: "such as --provider ollama --model llama3.2"}
	}
	if m.BaseURL == "" && preset.BaseURL == "" {
		if m.BaseURL, err = ask("Address of the API, with /v1", ""); err != nil {
			return err
		}
	}
	if m.Name == "" {
		example := preset.Model
		if !r.InTTY || r.Options.JSON {
			example = "" // never chosen for somebody
		}
		if m.Name, err = ask("Model", example); err != nil {
			return err
		}
		if m.Name == "" {
			return &memory.FieldError{Field: "model", Reason: "is required", Hint: "--model with the model's id at the provider"}
		}
	}
	if m.Key == "" && !keyGiven && m.BaseURL == "" && preset.KeyName != "" {
		if m.Key, err = ask("Where the key is (env:NAME or file:PATH)", "env:"+preset.KeyName); err != nil {
			return err
		}
	}
	if m.Key != "" && !strings.HasPrefix(m.Key, "env:") && !strings.HasPrefix(m.Key, "file:") {
		return &memory.FieldError{Field: "key", Reason: "must be env:NAME or file:PATH, never the key itself", Hint: "export the key as a variable and name that"}
	}
	return nil
}

// writeConfig replaces config.yaml, keeps what was there beside it, and returns
// the command that takes it back.
func writeConfig(file string, before, after []byte, existed bool) (undo string, err error) {
	fail := func(err error) (string, error) {
		return "", memory.Errorf(memory.ErrUnavailable, "write %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fail(err)
	}
	undo = "rm '" + file + "'"
	if existed {
		kept := file + ".before"
		if err := renameio.WriteFile(kept, before, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
			return fail(err)
		}
		undo = "mv '" + kept + "' '" + file + "'"
	}
	if err := renameio.WriteFile(file, after, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return fail(err)
	}
	return undo, nil
}
