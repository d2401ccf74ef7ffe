package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
	"github.com/openclawssy/openclawssy/internal/workspace/mirror"
)

// Workspaces is what the commands on OpenClaw workspaces work with.
type Workspaces struct {
	// Locate returns the directory of a workspace: the one named, else as --workspace
	// or the configuration says.
	Locate func(named string) (string, error)
	// Import brings a workspace into an agent's memory.
	Import func(ctx context.Context, agent memory.AgentID, w *workspace.Workspace) (mirror.Report, error)
	// Write writes what an agent remembers into a workspace.
	Write func(ctx context.Context, agent memory.AgentID, w *workspace.Workspace) (mirror.Written, error)
	// Watch calls follow once, and then whenever the workspace has changed, until ctx
	// ends.
	Watch func(ctx context.Context, w *workspace.Workspace, follow func(context.Context) error) error
}

// WorkspaceRecords lists the records of a workspace.
func WorkspaceRecords(ws Workspaces) Command {
	return func(r *Runner) *cobra.Command {
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
				return r.withWorkspace(ws, args, func(w *workspace.Workspace) error {
					records := w.Records(c.Context(), workspace.Options{Split: mode, Notice: func(n workspace.Notice) { r.note("%s", clean(n.String())) }})
					return r.showRecords(records)
				})
			},
		}
		c.Flags().StringVar(&split, "split", string(workspace.SplitClient), "how files are cut: client, fence-aware or rows")
		return c
	}
}

// withWorkspace opens the workspace that the command line names, by its word or by
// --workspace, for fn.
func (r *Runner) withWorkspace(ws Workspaces, args []string, fn func(*workspace.Workspace) error) error {
	named := r.Options.Workspace
	if len(args) > 0 {
		if args[0] == "" || named != "" && named != args[0] {
			return &memory.FieldError{Field: "workspace", Reason: "must be one directory"}
		}
		named = args[0]
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

// importedWorkspace is what workspace import prints.
type importedWorkspace struct {
	Agent memory.AgentID `json:"agent"`
	mirror.Report
}

func (i importedWorkspace) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d files, %d unchanged. %d items new, %d sections replaced, %d moved, %d removed; %d events new.\n",
		i.Agent, i.Files, i.Unchanged, i.Created, i.Replaced, i.Moved, i.Removed, i.Events)
	for _, more := range []struct {
		n    int
		what string
	}{
		{i.Expired, "items left out or archived: their retention is over"}, {i.Withheld, "sections left out: what they said was forgotten"},
		{i.Overfull, "items archived or not made, to keep under the cap"},
	} {
		if more.n > 0 {
			fmt.Fprintf(&sb, "  %d %s\n", more.n, more.what)
		}
	}
	for _, r := range i.Refused {
		fmt.Fprintf(&sb, "  refused: %s: %s\n", r.Entry, r.Reason)
	}
	for _, n := range i.Notices {
		fmt.Fprintf(&sb, "  %s\n", n)
	}
	return sb.String()
}

// WorkspaceImport brings a workspace into memory.
func WorkspaceImport(ws Workspaces) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "workspace/import [DIR]", Short: "Bring an OpenClaw workspace into memory, or follow its edits", Args: cobra.MaximumNArgs(1),
			Long: "Bring an OpenClaw workspace into memory: sections become items, daily logs become events, their tagged lines items too.\n" +
				"Importing it again follows the edits: changed sections replace their items, removed ones are archived. Tags decide how\n" +
				"long an item is kept: importance 0.8 and above for good, 0.4 and above for 30 days, below for 7. The workspace is only read.",
			Example: "  openclawssy workspace import ~/.openclaw/workspace\n  openclawssy workspace import --agent mara --json",
			RunE: func(c *cobra.Command, args []string) error {
				return r.withWorkspace(ws, args, func(w *workspace.Workspace) error {
					ctx, done := r.withProgress(c.Context(), "import")
					report, err := ws.Import(ctx, r.Agent(), w)
					done()
					if err != nil {
						return err
					}
					return r.Print(importedWorkspace{r.Agent(), report})
				})
			},
		}
	}
}

// WorkspaceWatch follows the edits of a workspace.
func WorkspaceWatch(ws Workspaces) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "workspace/watch [DIR]", Short: "Import an OpenClaw workspace, and follow its edits until a signal", Args: cobra.MaximumNArgs(1),
			Long:    "Import an OpenClaw workspace, and import it again a moment after each edit, until a signal. What changed is printed;\nwith --json one document for each import that changed something.",
			Example: "  openclawssy workspace watch\n  openclawssy workspace watch ~/.openclaw/workspace --agent mara",
			RunE: func(c *cobra.Command, args []string) error {
				return r.withWorkspace(ws, args, func(w *workspace.Workspace) error {
					r.note("Watching %s; Ctrl-C ends it.", w.Path())
					return ws.Watch(c.Context(), w, func(ctx context.Context) error {
						report, err := ws.Import(ctx, r.Agent(), w)
						if err != nil || !report.News() {
							return err
						}
						return r.Print(importedWorkspace{r.Agent(), report})
					})
				})
			},
		}
	}
}

// writtenWorkspace is what workspace write prints.
type writtenWorkspace struct {
	Agent memory.AgentID `json:"agent"`
	mirror.Written
}

func (w writtenWorkspace) Text() string {
	return fmt.Sprintf("%s: %d sections in MEMORY.md, %d notes added today; changed: %s\n", w.Agent, w.Sections, w.Notes, cmp.Or(strings.Join(w.Changed, ", "), "nothing"))
}

// WorkspaceWrite gives what is remembered back to a workspace.
func WorkspaceWrite(ws Workspaces) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "workspace/write [DIR]", Short: "Write what is remembered into an OpenClaw workspace", Args: cobra.MaximumNArgs(1),
			Long: "Write active memories as sections of MEMORY.md, between two marks, and those of today as tagged notes of the day.\n" +
				"No line outside of the marks is touched. What came from the workspace stands there already and is left out.",
			Example: "  openclawssy workspace write ~/.openclaw/workspace",
			RunE: func(c *cobra.Command, args []string) error {
				return r.withWorkspace(ws, args, func(w *workspace.Workspace) error {
					out, err := ws.Write(c.Context(), r.Agent(), w)
					if err != nil {
						return err
					}
					return r.Print(writtenWorkspace{r.Agent(), out})
				})
			},
		}
	}
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
