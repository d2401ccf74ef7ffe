package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Status shows how the memory of all agents is, or of one where --agent names
// it.
func Status(look func(ctx context.Context, only memory.AgentID) (any, error)) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "status", Short: "Show how the memory of every agent is; status 1 if something is wrong", Args: cobra.NoArgs,
			Long:    "Show, for every agent: events, backlog, parked ranges, quarantine, gaps and damage of the log, index lag, last checkpoint, overdue jobs.\nIt ends with status 1 if something needs you.",
			Example: "  openclawssy status\n  openclawssy status --agent default --json",
			RunE: func(c *cobra.Command, _ []string) error {
				var only memory.AgentID
				if c.Flags().Changed("agent") {
					only = r.Agent()
				}
				ctx, done := r.withProgress(c.Context(), "status")
				out, err := look(ctx, only)
				done()
				if err != nil {
					return err
				}
				return r.Print(out)
			},
		}
	}
}
