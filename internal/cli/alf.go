package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// ALF is what the commands on Agent Life Format archives work with.
type ALF struct {
	Workspaces
	Now  func() time.Time
	Keep func() life.Keep
	// Options fills in what an export needs of the machine and the home.
	Options func(life.ExportOptions) (life.ExportOptions, error)
	// Agent exports an agent's own memory.
	Agent func(context.Context, memory.AgentID, life.ExportOptions) (life.Exported, error)
}

// Commands are the alf commands.
func (a ALF) Commands() []Command {
	return []Command{a.validate, a.show, a.diff, a.apply, a.export, a.importArchive, a.restore, a.merge}
}

// outputFlag is the flag for the archive that a command writes.
func outputFlag(c *cobra.Command, output *string, usage string) {
	c.Flags().StringVarP(output, "output", "o", "", usage)
}

func (a ALF) validate(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "alf/validate FILE", Short: "Check an archive or a delta", Args: cobra.ExactArgs(1),
		Long: "Check an Agent Life Format archive (.alf) or delta (.alf-delta): its names, sizes, layers, records, counts, files and checksum.\n" +
			"The status is 1 if it is not valid. Unknown members and values are warnings.",
		Example: "  openclawssy alf validate ada.alf\n  openclawssy alf validate changes.alf-delta --json",
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := alf.Validate(args[0], alf.DefaultLimits)
			if err != nil {
				return err
			}
			return r.Print(report)
		},
	}
}

func (a ALF) show(r *Runner) *cobra.Command {
	return &cobra.Command{
		Use: "alf/show FILE", Short: "Show what an archive holds", Args: cobra.ExactArgs(1),
		Example: "  openclawssy alf show ada.alf",
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := alf.Open(args[0], alf.DefaultLimits)
			if err != nil {
				return err
			}
			overview, err := alf.Show(in)
			if err := errors.Join(err, in.Close()); err != nil {
				return err
			}
			return r.Print(overview)
		},
	}
}

// compared is what diff prints.
type compared struct {
	OK       bool   `json:"ok"`
	Output   string `json:"output,omitempty"`
	FileSize int64  `json:"file_size,omitempty"`
	*alf.Difference
}

func (c compared) Text() string {
	text := c.Difference.Text()
	if c.Output != "" {
		text += fmt.Sprintf("Written to %s, %d bytes.\n", c.Output, c.FileSize)
	}
	return text
}

func (a ALF) diff(r *Runner) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "alf/diff OLD NEW", Short: "Show what changed between two archives, or write it as a delta", Args: cobra.ExactArgs(2),
		Long: "Show what changed from one archive to another. Sections that stand elsewhere are told as moves; a file that was only touched\n" +
			"is no change. With --output the changes are written as a delta: records, identity, principals, credentials, attachments and files,\n" +
			"so that the old archive and the delta are the new one.",
		Example: "  openclawssy alf diff monday.alf tuesday.alf\n  openclawssy alf diff monday.alf tuesday.alf --output tuesday.alf-delta",
		RunE: func(_ *cobra.Command, args []string) error {
			old, err := alf.Open(args[0], alf.DefaultLimits)
			if err != nil {
				return err
			}
			defer old.Close()
			new, err := alf.Open(args[1], alf.DefaultLimits)
			if err != nil {
				return err
			}
			defer new.Close()
			d, err := alf.Compare(old, new)
			if err != nil {
				return err
			}
			out := compared{OK: true, Output: output, Difference: d}
			if output != "" {
				out.FileSize, err = alf.WriteFile(output, func(w io.Writer) error {
					_, err := alf.WriteDelta(w, "", old, new, d, a.Now())
					return err
				})
			}
			if err != nil {
				return err
			}
			return r.Print(out)
		},
	}
	outputFlag(c, &output, "also write the changes to this file as a delta")
	return c
}

// written is what a command prints that writes an archive.
type written struct {
	OK            bool   `json:"ok"`
	Output        string `json:"output"`
	AgentName     string `json:"agent_name"`
	ALFVersion    string `json:"alf_version"`
	MemoryRecords int    `json:"memory_records"`
	FileSize      int64  `json:"file_size"`
}

func writtenOf(m alf.Manifest, output string, size int64) written {
	w := written{OK: true, Output: output, AgentName: m.Agent.Name, ALFVersion: m.ALFVersion, FileSize: size}
	if m.Layers.Memory != nil {
		w.MemoryRecords = m.Layers.Memory.RecordCount
	}
	return w
}

func (w written) Text() string {
	return fmt.Sprintf("%s: %d records written to %s, %d bytes.\n", w.AgentName, w.MemoryRecords, w.Output, w.FileSize)
}

type applied struct {
	written
	alf.Applied
}

func (a applied) Text() string {
	var sb strings.Builder
	sb.WriteString(a.written.Text())
	fmt.Fprintf(&sb, "  %d created, %d updated, %d deleted; %d files\n", a.Created, a.Updated, a.Deleted, a.Files)
	for _, f := range a.Rewrites {
		fmt.Fprintf(&sb, "  %s written anew from its records\n", f)
	}
	for _, w := range a.Warnings {
		fmt.Fprintf(&sb, "  warning: %s\n", w)
	}
	return sb.String()
}

func (a ALF) apply(r *Runner) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "alf/apply BASE DELTA…", Short: "Apply deltas to an archive", Args: cobra.MinimumNArgs(2),
		Long: "Apply deltas to an archive, in the order given, and write what it becomes. Deltas of other programs carry no files: the files\n" +
			"that their records came from are written anew from the records.",
		Example: "  openclawssy alf apply monday.alf tuesday.alf-delta wednesday.alf-delta --output wednesday.alf",
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return &memory.FieldError{Field: "output", Reason: "is required", Hint: "give --output FILE"}
			}
			var m alf.Manifest
			var done alf.Applied
			size, err := alf.WriteFile(output, func(w io.Writer) (err error) {
				m, done, err = alf.ApplyFiles(w, args[0], args[1:], alf.Form{CreatedAt: func(string) time.Time { return a.Now() }})
				return err
			})
			if err != nil {
				return err
			}
			return r.Print(applied{writtenOf(m, output, size), done})
		},
	}
	outputFlag(c, &output, "file to write the archive to")
	return c
}
