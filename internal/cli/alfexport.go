package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// exportedLife is what export prints.
type exportedLife struct {
	written
	Secrets     int                `json:"secrets_detected"`
	Credentials int                `json:"credentials_count"`
	Notices     []workspace.Notice `json:"notices"`

	done life.Exported
}

func (e exportedLife) Text() string { return e.written.Text() + e.done.Text() }

func (a ALF) export(r *Runner) *cobra.Command {
	var o life.ExportOptions
	var split, from string
	c := &cobra.Command{
		Use: "alf/export [DIR]", Short: "Write a workspace, or an agent's memory, as an archive", Args: cobra.MaximumNArgs(1),
		Long: "Write an OpenClaw workspace as an Agent Life Format archive: identity, principals, what can be signed in to (never the secret),\n" +
			"memory records with the ids of the client alf, and the files verbatim. With --agent NAME and no workspace named, write that\n" +
			"agent's own memory. Files that cannot be read are listed and left out.",
		Example: "  openclawssy alf export --output ada.alf\n  openclawssy alf export ~/.openclaw/workspace --sessions -o ada.alf\n  openclawssy alf export --agent support -o support.alf",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.Split, err = workspace.ParseSplit(split); err != nil {
				return err
			}
			named := r.Options.Workspace
			if len(args) > 0 {
				if named != "" && named != args[0] {
					return &memory.FieldError{Field: "workspace", Reason: "must be one directory"}
				}
				named = args[0]
			}
			clean := o.Clean
			if o, err = a.Options(o); err != nil {
				return err
			}
			o.Clean = clean
			ctx, done := r.withProgress(c.Context(), "export")
			x, err := a.exportFrom(ctx, r, from, named, &o)
			done()
			if err != nil {
				return err
			}
			return r.Print(exportedLife{writtenOf(x.Manifest, o.Output, x.Size), x.Secrets, x.Credentials, x.Notices, x})
		},
	}
	outputFlag(c, &o.Output, "file to write the archive to; the workspace's or agent's name and .alf if absent")
	c.Flags().StringVar(&split, "split", string(workspace.SplitClient), "how files are cut: client, fence-aware or rows")
	c.Flags().StringVar(&from, "from", "openclaw", "what the workspace is of: openclaw or zeroclaw")
	c.Flags().BoolVar(&o.Parity, "parity", false, "just the records, files and members that the client alf writes")
	c.Flags().BoolVar(&o.Sessions, "sessions", false, "also the transcripts of sessions, a record for each message")
	c.Flags().BoolVar(&o.Clean, "redact", false, "take secrets out of records and files")
	return c
}

// exportFrom exports an agent's own memory or a workspace.
func (a ALF) exportFrom(ctx context.Context, r *Runner, from, named string, o *life.ExportOptions) (life.Exported, error) {
	if from != "openclaw" && from != "zeroclaw" {
		return life.Exported{}, &memory.FieldError{Field: "from", Reason: "must be openclaw or zeroclaw, not " + from}
	}
	if named == "" && r.Options.Named {
		if o.Output == "" {
			o.Output = r.Options.Agent + ".alf"
		}
		return a.Agent(ctx, r.Agent(), *o)
	}
	dir, err := a.Locate(named)
	if err != nil {
		return life.Exported{}, err
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return life.Exported{}, err
	}
	if o.Output == "" {
		o.Output = filepath.Base(w.Path()) + ".alf"
	}
	export := life.ExportWorkspace
	if from == "zeroclaw" {
		export = life.ExportZeroClaw
	}
	x, err := export(ctx, w, *o)
	return x, errors.Join(err, w.Close())
}
