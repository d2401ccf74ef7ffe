package cli

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/graph"
)

// GraphBundles are the commands that write an agent's bundle to a file and load
// one from a file.
func GraphBundles(graphs *graph.Service) []Command {
	build := func(r *Runner) *cobra.Command {
		return r.onFiles("graph.bundle.build", &cobra.Command{
			Use: "graph/bundle/build FILE", Args: cobra.ExactArgs(1),
			Long: "Write a bundle of the graph's memory and the agent's persona, for the next run to start from. A bundle that is there gives its\n" +
				"workflow and tools to the new one, and is replaced as a whole; one that cannot be read stays and is an error.",
			Example: "  openclawssy graph bundle build daily.ainlbundle",
			RunE: func(c *cobra.Command, args []string) error {
				saved, err := graphs.SaveBundle(c.Context(), r.Agent(), string(r.Agent()), args[0])
				if err != nil {
					return err
				}
				return r.Print(saved)
			},
		})
	}
	load := func(r *Runner) *cobra.Command {
		return r.onFiles("graph.bundle.load", &cobra.Command{
			Use: "graph/bundle/load FILE", Args: cobra.ExactArgs(1),
			Long:    "Bring a bundle's memory and persona into the graph. What the graph has already stays as it is.",
			Example: "  openclawssy graph bundle load daily.ainlbundle",
			RunE: func(c *cobra.Command, args []string) error {
				file, closeFile, err := r.Open(args[0])
				if err != nil {
					return err
				}
				raw, err := io.ReadAll(file)
				if err := errors.Join(err, closeFile()); err != nil {
					return memory.Errorf(memory.ErrUnavailable, "read %s: %w", args[0], err)
				}
				loaded, err := graphs.Hooks(r.Agent()).LoadBundle(c.Context(), string(r.Agent()), json.RawMessage(raw), false)
				if err != nil {
					return err
				}
				return r.Print(loaded)
			},
		})
	}
	return []Command{build, load}
}
