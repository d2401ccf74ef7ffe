package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// intake are the flags of the commands that bring an archive in.
type intake struct {
	mode, to, database string
	dryRun             bool
}

func (in *intake) flags(c *cobra.Command, mode life.Mode) {
	c.Flags().StringVar(&in.mode, "mode", string(mode), "merge, replace or keep: what to do with files that are there")
	c.Flags().StringVar(&in.to, "to", string(life.OpenClaw), "form of the memory: openclaw, zeroclaw, zeroclaw-markdown or zeroclaw-sqlite")
	c.Flags().StringVar(&in.database, "database", "", "ZeroClaw's database; memory.db beside the workspace if absent")
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
	form, err := life.ParseForm(in.to)
	if err != nil {
		return err
	}
	dir, err := a.Locate(r.Options.Workspace)
	if err != nil {
		return err
	}
	done, err := life.ImportWorkspace(ctx, archive, dir, life.ImportOptions{Mode: mode, Form: form, Database: in.database, DryRun: in.dryRun, Keep: a.Keep(), Now: a.Now})
	if err != nil {
		return err
	}
	return r.Print(done)
}

// mergedLife is what merge prints.
type mergedLife struct {
	written
	Files     []life.Step `json:"files"`
	Conflicts []string    `json:"conflicts"`
	Warnings  []string    `json:"warnings"`
}

func (m mergedLife) Text() string {
	var sb strings.Builder
	sb.WriteString(m.written.Text())
	for _, f := range m.Files {
		fmt.Fprintf(&sb, "  %-8s %s\n", f.Action, f.Path)
	}
	for _, w := range m.Warnings {
		fmt.Fprintf(&sb, "  warning: %s\n", w)
	}
	return sb.String()
}

func (a ALF) merge(r *Runner) *cobra.Command {
	var o life.MergeOptions
	c := &cobra.Command{
		Use: "alf/merge OURS THEIRS", Short: "Merge two archives into one", Args: cobra.ExactArgs(2),
		Long: "Write an archive with what is in ours and what theirs changed since --base; without a base, what they do not share is added and what\n" +
			"differs is a conflict. Where both changed, sections are merged; what does not go together stays as ours has it, and their form stands\n" +
			"beside the file in the archive.",
		Example: "  openclawssy alf merge laptop.alf server.alf --base monday.alf --output both.alf",
		RunE: func(c *cobra.Command, args []string) error {
			if o.Output == "" {
				return &memory.FieldError{Field: "output", Reason: "is required", Hint: "give --output FILE"}
			}
			o.Ours, o.Theirs, o.Now = args[0], args[1], a.Now
			x, in, err := life.MergeArchives(c.Context(), o)
			if err != nil {
				return err
			}
			return r.Print(mergedLife{writtenOf(x.Manifest, o.Output, x.Size), in.Files, in.Conflicts, append([]string{}, in.Warnings...)})
		},
	}
	outputFlag(c, &o.Output, "file to write the archive to")
	c.Flags().StringVar(&o.Base, "base", "", "the archive that both came from")
	return c
}
