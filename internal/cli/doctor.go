package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/doctor"
)

// Doctor examines the home and every agent, or one where --agent names it.
func Doctor(examine func(context.Context, doctor.Request) (doctor.Report, error)) Command {
	return func(r *Runner) *cobra.Command {
		var req doctor.Request
		c := &cobra.Command{
			Use: "doctor", Short: "Examine every file of the home; --fix mends what is safe to mend; status 1 if something is wrong", Args: cobra.NoArgs,
			Annotations: map[string]string{anyConfig: "yes"},
			Long: "Examine the home and every agent: configuration, modes, redaction key, leftovers of killed commands, disk, event log, databases,\n" +
				"leases, index, graph, sessions, jobs, clock, spend, tokens, environment. Each finding says why it matters and what to type. Nothing is written, unless --fix, --acknowledge or --canary is given.\n" +
				"--acknowledge takes note of events that were lost: they stay counted, and no longer make status fail. It is kept in the audit log.\n" +
				"--fix mends what is safe: modes, leftovers, and files that are made anew from the event log; what was damaged is kept under another name.\n" +
				"It ends with status 1 if something needs you, or could not be looked at.",
			Example: "  openclawssy doctor\n  openclawssy doctor --fix --agent default\n  openclawssy doctor --network --json\n  openclawssy doctor --acknowledge --agent default",
			RunE: func(c *cobra.Command, _ []string) error {
				if c.Flags().Changed("agent") {
					req.Only = r.Agent()
				}
				ctx, done := r.withProgress(c.Context(), "doctor")
				out, err := examine(ctx, req)
				done()
				if err != nil {
					return err
				}
				return r.Print(out)
			},
		}
		c.Flags().BoolVar(&req.Fix, "fix", false, "mend what is safe to mend, and say what was done")
		c.Flags().BoolVar(&req.Acknowledge, "acknowledge", false, "take note of events that were lost, so that they are no longer wrong")
		c.Flags().BoolVar(&req.Canary, "canary", false, "also write an event of no meaning, see whether it is recalled, and remove it again")
		c.Flags().BoolVar(&req.Network, "network", false, "also ask the model's endpoint whether it is there")
		return c
	}
}
