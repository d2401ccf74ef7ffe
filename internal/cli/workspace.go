package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Workspaces is what the commands on OpenClaw workspaces work with.
type Workspaces struct {
	// Locate returns the directory of a workspace: the one named, else as
	// configured.
	Locate func(named string) (string, error)
}

// place gives a workspace command its two ways to name the directory: a word and
// --workspace.
type place struct{ flag string }

func (p *place) add(c *cobra.Command) {
	c.Flags().StringVar(&p.flag, "workspace", "", "the workspace's directory (else workspace.path, else as ~/.openclaw/openclaw.json says)")
}

// dir returns the directory that the command line names, "" for none.
func (p *place) dir(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return p.flag, nil
	case p.flag != "" && p.flag != args[0]:
		return "", &memory.FieldError{Field: "workspace", Reason: "must not be given twice"}
	case args[0] == "":
		return "", &memory.FieldError{Field: "workspace", Reason: "must not be empty"}
	}
	return args[0], nil
}

// WorkspaceRecords lists the records of a workspace.
func WorkspaceRecords(ws Workspaces) Command {
	return func(r *Runner) *cobra.Command {
		var p place
		var split string
		c := &cobra.Command{
			Use: "workspace/records [DIR]", Short: "List the memory records of an OpenClaw workspace", Args: cobra.MaximumNArgs(1),
			Long: "List the memory records of an OpenClaw workspace: how its Markdown is cut, classified, tagged, dated and identified.\n" +
				"With --split client, the default, they are those of the reference client, with the same ids. fence-aware does not cut\n" +
				"inside fenced code, rows makes each row of a gating table a record; both have ids of their own.\n" +
				"Files that cannot be read are named on stderr and left out. Nothing is written.",
			Example: "  openclawssy workspace records\n  openclawssy workspace records ~/.openclaw/workspace --json",
			RunE: func(c *cobra.Command, args []string) error {
				mode, err := workspace.ParseSplit(split)
				if err != nil {
					return err
				}
				return r.withWorkspace(ws, &p, args, func(w *workspace.Workspace) error {
					records := w.Records(c.Context(), workspace.Options{Split: mode, Notice: func(n workspace.Notice) { r.note("%s", clean(n.String())) }})
					return r.showRecords(records)
				})
			},
		}
		p.add(c)
		c.Flags().StringVar(&split, "split", string(workspace.SplitClient), "how files are cut: client, fence-aware or rows")
		return c
	}
}

// withWorkspace opens the workspace that the command line names for fn.
func (r *Runner) withWorkspace(ws Workspaces, p *place, args []string, fn func(*workspace.Workspace) error) error {
	named, err := p.dir(args)
	if err != nil {
		return err
	}
	dir, err := ws.Locate(named)
	if err != nil {
		return err
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(fn(w), w.Close())
}

// showRecords prints records as they come.
func (r *Runner) showRecords(records iter.Seq2[workspace.Record, error]) error {
	out := bufio.NewWriterSize(r.Out, 1<<16)
	var err error
	if r.Options.JSON {
		err = writeArray(out, records)
	} else {
		err = listRecords(out, records)
	}
	return errors.Join(err, out.Flush())
}

// writeArray writes one JSON array, an element at a time.
func writeArray(w io.Writer, records iter.Seq2[workspace.Record, error]) error {
	between := "[\n  "
	for record, err := range records {
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(record.View(), "  ", "  ")
		if err != nil {
			return fmt.Errorf("write %s: %w", record.IDName, err)
		}
		if _, err := fmt.Fprintf(w, "%s%s", between, text); err != nil {
			return memory.Errorf(memory.ErrUnavailable, "print: %w", err)
		}
		between = ",\n  "
	}
	end := "\n]\n"
	if between == "[\n  " {
		end = "[]\n"
	}
	if _, err := io.WriteString(w, end); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "print: %w", err)
	}
	return nil
}

func listRecords(w io.Writer, records iter.Seq2[workspace.Record, error]) error {
	n := 0
	for record, err := range records {
		if err != nil {
			return err
		}
		n++
		heading := "–"
		if record.Heading != nil {
			heading = *record.Heading
		}
		_, err = fmt.Fprintf(w, "%s  %s:%d-%d  %s %s  %s\n", record.ID, clean(record.OriginFile), record.LineStart, record.LineEnd,
			record.Namespace, record.MemoryType, clean(heading))
		if err != nil {
			return memory.Errorf(memory.ErrUnavailable, "print: %w", err)
		}
	}
	if _, err := fmt.Fprintf(w, "%d records\n", n); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "print: %w", err)
	}
	return nil
}
