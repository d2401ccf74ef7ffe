package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// intake are the flags of the commands that bring an archive in.
type intake struct {
	mode   string
	dryRun bool
}

func (in *intake) flags(c *cobra.Command, mode life.Mode) {
	c.Flags().StringVar(&in.mode, "mode", string(mode), "merge, replace or keep: what to do with files that are there")
	c.Flags().BoolVar(&in.dryRun, "dry-run", false, "show what would change, and change nothing")
}

const modesLong = "merge takes what changed in the archive since the last one of this agent and leaves what changed here; where both changed, sections are\n" +
	"merged, and what does not go together stays with the archive's form in a file beside it. replace makes memory and identity those of the\n" +
	"archive; keep adds what is missing only. Files are put in place together, what was there is kept as a backup, and nothing outside of the\n" +
	"workspace is written."

func (a ALF) importArchive(r *Runner) *cobra.Command {
	var in intake
	c := &cobra.Command{
		Use: "alf/import FILE", Short: "Bring an archive into a workspace", Args: cobra.ExactArgs(1),
		Long:    "Bring an Agent Life Format archive into an OpenClaw workspace. " + modesLong,
		Example: "  openclawssy alf import ada.alf --dry-run\n  openclawssy alf import ada.alf --workspace ~/.openclaw/workspace --mode merge",
		RunE: func(c *cobra.Command, args []string) error {
			return a.bringIn(c.Context(), r, &in, life.Merge, args[0])
		},
	}
	in.flags(c, life.Merge)
	return c
}

func (a ALF) restore(r *Runner) *cobra.Command {
	var in intake
	c := &cobra.Command{
		Use: "alf/restore BASE [DELTA…]", Short: "Make a workspace what an archive and its deltas say", Args: cobra.MinimumNArgs(1),
		Long:    "Apply deltas to an archive, in the order given, and bring the outcome into a workspace: it is then as it was at the last of them.\n" + modesLong,
		Example: "  openclawssy alf restore monday.alf tuesday.alf-delta --workspace ~/.openclaw/workspace",
		RunE: func(c *cobra.Command, args []string) (err error) {
			archive := args[0]
			if len(args) > 1 {
				dir, err := os.MkdirTemp("", "alf-restore-*")
				if err != nil {
					return memory.Errorf(memory.ErrUnavailable, "make a temporary directory: %w", err)
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
				archive = filepath.Join(dir, "restore.alf")
				if _, err := alf.WriteFile(archive, func(w io.Writer) error {
					_, _, err := alf.ApplyFiles(w, args[0], args[1:], alf.Form{CreatedAt: func(string) time.Time { return a.Now() }})
					return err
				}); err != nil {
					return err
				}
			}
			return a.bringIn(c.Context(), r, &in, life.Replace, archive)
		},
	}
	in.flags(c, life.Replace)
	return c
}

// bringIn imports an archive and prints the report.
func (a ALF) bringIn(ctx context.Context, r *Runner, in *intake, mode life.Mode, archive string) error {
	mode, err := life.ParseMode(in.mode, mode)
	if err != nil {
		return err
	}
	dir, err := a.Locate(r.Options.Workspace)
	if err != nil {
		return err
	}
	done, err := life.ImportWorkspace(ctx, archive, dir, life.ImportOptions{Mode: mode, DryRun: in.dryRun, Keep: a.Keep(), Now: a.Now})
	if err != nil {
		return err
	}
	return r.Print(done)
}
