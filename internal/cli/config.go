package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// ConfigShow prints the configuration in force.
func ConfigShow(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "config/show", Short: "Print the configuration in force", Args: cobra.NoArgs,
		Long:    "Print the configuration in force: flags over environment over config.yaml over defaults.",
		Example: "  openclawssy config show\n  openclawssy config show --set recall.max_items=8 --json",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := r.App.Config()
			if err != nil {
				return err
			}
			return r.Print(cfg)
		},
	}
}

// ConfigValidate checks a configuration file.
func ConfigValidate(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "config/validate [FILE]", Short: "Check the configuration, or a file before it is put in place", Args: cobra.MaximumNArgs(1),
		Example: "  openclawssy config validate\n  openclawssy config validate new.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				if _, err := r.App.Config(); err != nil {
					return err
				}
				return r.Print(validated{OK: true})
			}
			if _, err := os.Stat(args[0]); err != nil {
				return memory.Errorf(memory.ErrNotFound, "check %s: %w", args[0], err)
			}
			if _, err := config.Load(config.Sources{File: args[0], Environ: r.App.Environ, Set: r.Options.Set}); err != nil {
				return err
			}
			return r.Print(validated{OK: true, File: args[0]})
		},
	}
}

type validated struct {
	OK   bool   `json:"ok"`
	File string `json:"file,omitempty"`
}

func (v validated) Text() string { return "the configuration is good\n" }

// ConfigSchema prints the JSON Schema of config.yaml.
func ConfigSchema(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "config/schema", Short: "Print the JSON Schema of config.yaml", Args: cobra.NoArgs,
		Example: "  openclawssy config schema > config.schema.json",
		RunE: func(*cobra.Command, []string) error {
			s, err := config.Schema()
			if err != nil {
				return err
			}
			return writeJSON(r.Out, s)
		},
	}
}

// Version prints the version.
func Version(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  openclawssy version --json",
		RunE: func(*cobra.Command, []string) error { return r.Print(versioned{r.App.Version}) },
	}
}

type versioned struct {
	Version string `json:"version"`
}

func (v versioned) Text() string { return "openclawssy " + v.Version + "\n" }

// Docs prints reference pages made from the code; `make docs` writes them.
func Docs(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "docs operations|config", Short: "Print a reference page in Markdown", ValidArgs: []string{"operations", "config"},
		Args:    cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		Example: "  openclawssy docs operations > OPERATIONS.md",
		RunE: func(_ *cobra.Command, args []string) error {
			page := operationsPage(r.App.Catalog)
			if args[0] == "config" {
				page = configPage()
			}
			_, err := io.WriteString(r.Out, page)
			return err
		},
	}
}

func configPage() string {
	return "# Configuration\n\nMade from the code by `make docs`. The file is `config.yaml` in the home; every key may be left out.\n" +
		"Each key is also an environment variable (`" + config.EnvName("recall.min_importance") + "`) and a flag (`--set recall.min_importance=2`).\n\n```yaml\n" +
		string(config.DefaultYAML()) + "```\n"
}

func operationsPage(c *op.Catalog) string {
	var sb strings.Builder
	sb.WriteString("# Operations\n\nMade from the code by `make docs`. Each one is a command (dots become spaces), a tool of the agent loop and, in a message, `/tool name {json}`.\n")
	for _, o := range c.All() {
		fmt.Fprintf(&sb, "\n## %s\n\n%s Effect: %s.\n", o.Name, o.Summary, o.Effect)
		if len(o.Fields) > 0 {
			sb.WriteString("\n| input | type | meaning |\n|---|---|---|\n")
		}
		for _, f := range o.Fields {
			usage := f.Usage
			if f.Required {
				usage += " (required)"
			}
			fmt.Fprintf(&sb, "| `%s` | %s | %s |\n", f.Name, strings.TrimPrefix(f.Type.String(), "*"), strings.ReplaceAll(usage, "|", "\\|"))
		}
		if o.Example != "" {
			fmt.Fprintf(&sb, "\nExample: `%s`\n", o.Example)
		}
	}
	return sb.String()
}
