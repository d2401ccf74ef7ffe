package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Bridging is what the command bridge works with.
type Bridging struct {
	// Serve answers requests on in, a line each, until in or the context ends.
	Serve func(ctx context.Context, agent memory.AgentID, in io.Reader, out io.Writer) error
	// Schedule runs the schedule until its context ends.
	Schedule func(context.Context) error
}

// Bridge serves a program in another language on the standard streams.
func Bridge(b Bridging) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "bridge", Short: "Answer JSON requests on standard input, for programs in other languages", Args: cobra.NoArgs,
			Long: "Answer JSON requests on standard input, one a line, with one line each on standard output, until the input ends. " +
				"An error is an answer too and ends nothing. AINL_MEMORY_DB names the database of records in place of the agent's own. " +
				"While it runs it also runs the schedule, unless another process does.",
			Example: `  echo '{"id":1,"adapter":"memory","verb":"put","args":["ops","ops.disk","d1",{"free":7}]}' | openclawssy bridge` + "\n" +
				`  echo '{"id":2,"adapter":"memory","verb":"list","args":["ops"]}' | openclawssy bridge --agent demo`,
			RunE: func(c *cobra.Command, _ []string) error {
				ctx := c.Context()
				err := r.besideSchedule(ctx, b.Schedule, func(ctx context.Context) error { return b.Serve(ctx, r.Agent(), r.In, r.Out) })
				if ctx.Err() != nil {
					return nil // it was asked to end
				}
				return err
			},
		}
	}
}
