package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/transcript"
)

// Importing brings one chat history into an agent's log.
type Importing func(ctx context.Context, agent memory.AgentID, file io.Reader, format transcript.Format) (transcript.Report, error)

// imported is what import chat prints.
type imported struct {
	Agent memory.AgentID `json:"agent"`
	transcript.Report
	Checkpoint any `json:"checkpoint,omitempty"`
}

func (i imported) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d turns imported, %d known already, %d sessions\n", i.Agent, i.Imported, i.Skipped, i.Sessions)
	for _, b := range i.Bad {
		fmt.Fprintf(&sb, "  line %d left out: %s\n", b.Line, b.Reason)
	}
	if more := i.BadCount - len(i.Bad); more > 0 {
		fmt.Fprintf(&sb, "  and %d more lines left out\n", more)
	}
	return sb.String()
}

// Failed reports whether lines were left out.
func (i imported) Failed() bool { return i.BadCount > 0 }

// ImportChat imports a chat history.
func ImportChat(importing Importing) Command {
	return func(r *Runner) *cobra.Command {
		var format string
		var distil bool
		c := &cobra.Command{
			Use: "import/chat FILE", Short: "Bring a chat history into memory", Args: cobra.ExactArgs(1),
			Long: "Bring a chat history into memory. Importing it again adds nothing; an import that was interrupted goes on where it ended.\n" +
				"A line that cannot be read is reported with its number while the rest goes in; the command then ends with status 1.\n" +
				"Forms: jsonl ({n, role or speaker, text, time, session, tool?, channel?, user_id?} a line), locomo, longmemeval.",
			Example: "  openclawssy import chat history.jsonl\n  openclawssy import chat export.json --format longmemeval --agent test --checkpoint",
			RunE: func(c *cobra.Command, args []string) error {
				f, err := transcript.ParseFormat(format)
				if err != nil {
					return err
				}
				in, closeIn, err := r.Open(args[0])
				if err != nil {
					return err
				}
				ctx, done := r.withProgress(c.Context(), "import")
				report, err := importing(ctx, r.Agent(), in, f)
				done()
				if err := errors.Join(err, closeIn()); err != nil {
					return err
				}
				out := imported{Agent: r.Agent(), Report: report}
				if distil {
					if out.Checkpoint, err = r.checkpoint(c.Context()); err != nil {
						return err
					}
				}
				return r.Print(out)
			},
		}
		c.Flags().StringVar(&format, "format", "", "jsonl, locomo or longmemeval; found out from the file if absent")
		c.Flags().BoolVar(&distil, "checkpoint", false, "distil what came in")
		return c
	}
}

// checkpoint runs memory.checkpoint for the command's agent.
func (r *Runner) checkpoint(ctx context.Context) (any, error) {
	o, err := r.App.Catalog.Get("memory.checkpoint")
	if err != nil {
		return nil, err
	}
	ctx, done := r.withProgress(ctx, "checkpoint")
	defer done()
	return o.Call(ctx, r.Agent(), nil)
}
