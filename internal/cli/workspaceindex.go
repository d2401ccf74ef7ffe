package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/index"
)

// Indexing brings an agent's search index of a workspace up to date.
type Indexing func(ctx context.Context, agent memory.AgentID, w *workspace.Workspace, in index.IndexRequest) (index.Report, error)

// WorkspaceIndex is the command of workspace.index with the directory as a word,
// as the other commands on workspaces have it.
func WorkspaceIndex(ws Workspaces, indexing Indexing) Command {
	return func(r *Runner) *cobra.Command {
		o, err := r.App.Catalog.Get("workspace.index")
		if err != nil {
			panic("cli: " + err.Error()) // a defect of the wiring
		}
		c := &cobra.Command{}
		r.operation(c, o)
		c.Use, c.Args = "workspace/index [DIR]", cobra.MaximumNArgs(1)
		c.Long = "Bring the search index of an OpenClaw workspace up to date: MEMORY.md, memory.md and the Markdown under memory/.\n" +
			"Files whose text did not change are left alone, those that are gone are removed. With another chunking, other sources\n" +
			"or another embedding model the index is built anew beside the one in use. Links are not followed.\n" +
			"What a flag does not say stays as the index has it. A search brings the index up to date by itself, too."
		c.Example = "  openclawssy workspace index ~/.openclaw/workspace\n  openclawssy workspace index --tokens 200 --overlap 40 --chunking bounded\n  openclawssy workspace index --extra docs --sessions --json"
		c.RunE = func(c *cobra.Command, args []string) error {
			raw, err := r.input(c, o, nil)
			if err != nil {
				return err
			}
			if err := o.Check(raw); err != nil {
				return err
			}
			var in index.IndexRequest
			if err := json.Unmarshal(raw, &in); err != nil {
				return memory.Errorf(memory.ErrInvalid, "input of %s: %w", o.Name, err)
			}
			return r.withWorkspace(ws, args, func(w *workspace.Workspace) error {
				ctx, done := r.withProgress(c.Context(), "index")
				report, err := indexing(ctx, r.Agent(), w, in)
				done()
				if err != nil {
					return err
				}
				return r.Print(report)
			})
		}
		return c
	}
}
