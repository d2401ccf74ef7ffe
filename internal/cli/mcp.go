package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Tooling is what the command mcp works with.
type Tooling struct {
	// Serve answers a client on in and out, with the named operations as tools, until
	// in or the context ends. No names: the default ones.
	Serve func(ctx context.Context, agent memory.AgentID, tools []string, in io.Reader, out io.Writer) error
	// Schedule runs the schedule until its context ends.
	Schedule func(context.Context) error
}

// MCP serves a client of the Model Context Protocol on the standard streams.
func MCP(t Tooling) Command {
	return func(r *Runner) *cobra.Command {
		var tools []string
		c := &cobra.Command{
			Use: "mcp", Short: "Answer a client of the Model Context Protocol on the standard streams", Args: cobra.NoArgs,
			Long: "Answer a client of the Model Context Protocol on the standard streams, until the input ends: a coding agent or a chat program starts it. " +
				"The agent is the one of --agent, whatever the client asks. While it runs it also runs the schedule, unless another process does.",
			Example: "  openclawssy mcp\n  openclawssy mcp --agent studio --tools memory.search,memory.recall\n  openclawssy mcp --tools all",
			RunE: func(c *cobra.Command, _ []string) error {
				ctx := c.Context()
				err := r.besideSchedule(ctx, t.Schedule, func(ctx context.Context) error { return t.Serve(ctx, r.Agent(), tools, r.In, r.Out) })
				if ctx.Err() != nil {
					return nil // it was asked to end
				}
				return err
			},
		}
		c.Flags().StringSliceVar(&tools, "tools", nil, "operations to offer, by name, or all; eight of memory's if absent")
		return c
	}
}
