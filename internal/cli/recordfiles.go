package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/record"
)

// RecordFiles lends agents' records to the commands that read and write files.
type RecordFiles struct {
	Read   memory.Borrow[*record.Store] // where there are none, a store of nothing
	Write  memory.Borrow[*record.Store]
	Config func(memory.AgentID) record.Config
	// Report is record.ReportFile with a clock.
	Report func(ctx context.Context, path string, q record.ReportQuery) (record.Report, error)
}

// Commands are the commands of those record operations whose input or output a
// person has in files.
func (f RecordFiles) Commands() []Command {
	return []Command{f.validate, f.exportRecords, f.importRecords, f.exportMarkdown, f.importMarkdown, f.migrate, f.report}
}

// onFiles completes a command that stands in the place of an operation's own:
// the operation with its input inline stays behind --params. attach gives it the
// operation's summary.
func (r *Runner) onFiles(operation string, c *cobra.Command) *cobra.Command {
	var input string
	c.Flags().StringVar(&input, wholeInputFlag, "", "no files, but the input of the operation as JSON, or @FILE, or @- for standard input")
	words, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed(wholeInputFlag) {
			return cobra.NoArgs(c, args)
		}
		return words(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed(wholeInputFlag) {
			return run(c, args)
		}
		raw, err := r.wholeInput(input)
		if err != nil {
			return err
		}
		return r.callNamed(c.Context(), operation, raw)
	}
	return c
}

func (r *Runner) callNamed(ctx context.Context, operation string, raw json.RawMessage) error {
	o, err := r.App.Catalog.Get(operation)
	if err != nil {
		return err
	}
	return r.Call(ctx, o, raw)
}

func (f RecordFiles) validate(r *Runner) *cobra.Command {
	var in struct {
		profile, filters string
		lines            bool
	}
	c := &cobra.Command{
		Use: "record/validate FILE", Args: cobra.MaximumNArgs(1),
		Long: "Check a file of records, however long: one record, an array of them, or with --jsonl one a line. Each finding is a line,\n" +
			"ERROR [path]: … or WARN [path]: …; the status is 1 if there is an error, and 2 if the file is not JSON.",
		Example: "  openclawssy record validate records.json\n  openclawssy record export --jsonl | openclawssy record validate - --jsonl --profile v1.1\n" +
			`  openclawssy record validate --filters '{"tags_any": ["billing"], "limit": 20}'`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return f.checkFilters(r, c.Context(), in.profile, in.filters)
			}
			if in.filters != "" {
				return &memory.FieldError{Field: "filters", Reason: "must not be given beside a file", Hint: "check one, then the other"}
			}
			v, err := record.NewValidator(in.profile, f.Config(r.Agent()))
			if err != nil {
				return err
			}
			file, closeFile, err := r.Open(args[0])
			if err != nil {
				return err
			}
			ctx, done := r.withProgress(c.Context(), "validate")
			verdict, err := v.CheckFile(ctx, file, in.lines)
			done()
			if err := errors.Join(err, closeFile()); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return r.Print(verdict)
		},
	}
	c.Flags().StringVar(&in.profile, "profile", record.ProfileV1, "v1 or v1.1")
	c.Flags().BoolVar(&in.lines, "jsonl", false, "the file has one record a line")
	c.Flags().StringVar(&in.filters, "filters", "", "in place of a file, the filters of a list as JSON")
	return r.onFiles("record.validate", c)
}

func (f RecordFiles) checkFilters(r *Runner, ctx context.Context, profile, filters string) error {
	if filters == "" {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "there is nothing to validate"), "give a file, or - for standard input, or --filters")
	}
	if !json.Valid([]byte(filters)) {
		return &memory.FieldError{Field: "filters", Reason: "must be JSON"}
	}
	raw, err := json.Marshal(map[string]any{"profile": profile, "filters": json.RawMessage(filters)})
	if err != nil {
		return err
	}
	return r.callNamed(ctx, "record.validate", raw)
}

// exported is what export prints beside a file.
type exported struct {
	Output  string `json:"output"`
	Records int64  `json:"records"`
}

func (e exported) Text() string {
	return fmt.Sprintf("%d records written to %s\n", e.Records, e.Output)
}

func (f RecordFiles) exportRecords(r *Runner) *cobra.Command {
	var sel record.Selection
	var output string
	var lines bool
	c := &cobra.Command{
		Use: "record/export", Args: cobra.NoArgs,
		Long: "Write records as envelopes with provenance, flags and metadata: one JSON array with sorted keys, or with --jsonl one a line.\n" +
			"Expired records that were not pruned are among them. A file is there whole or not at all; one of that name is replaced.",
		Example: "  openclawssy record export --output records.json\n  openclawssy record export --namespace workflow --record-kind workflow.advisory_result --jsonl --output advice.jsonl",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := sel.Check(f.Config(r.Agent())); err != nil {
				return err
			}
			store, release, err := f.Read(c.Context(), r.Agent())
			if err != nil {
				return err
			}
			defer release()
			if output == "-" {
				_, err := store.WriteRecords(c.Context(), r.Out, sel, lines)
				return err
			}
			ctx, done := r.withProgress(c.Context(), "export")
			n, err := record.ExportFile(ctx, store, output, sel, lines)
			done()
			if err != nil {
				return err
			}
			return r.Print(exported{output, n})
		},
	}
	c.Flags().StringVar(&output, "output", "-", "file to write; - is standard output")
	c.Flags().BoolVar(&lines, "jsonl", false, "one record a line")
	c.Flags().StringArrayVar(&sel.Namespaces, "namespace", nil, "only this namespace; repeatable")
	c.Flags().StringArrayVar(&sel.Kinds, "record-kind", nil, "only this kind; repeatable")
	return r.onFiles("record.export", c)
}

func (f RecordFiles) importRecords(r *Runner) *cobra.Command {
	var lines bool
	c := &cobra.Command{
		Use: "record/import FILE", Args: cobra.ExactArgs(1),
		Long: "Store the envelopes of a file, however long: one, an array, or with --jsonl one a line. All are checked; if one has an error,\n" +
			"nothing is stored, each error is a line, and the status is 1. A record of a known key is replaced.",
		Example: "  openclawssy record import facts.json\n  openclawssy record import --agent copy backup.jsonl --jsonl",
		RunE: func(c *cobra.Command, args []string) error {
			file, closeFile, err := r.Open(args[0])
			if err != nil {
				return err
			}
			err = f.storing(c.Context(), r, "import", func(ctx context.Context, s *record.Store) (record.Imported, error) {
				result, err := s.Import(ctx, record.ReadRecords(file, lines))
				if err != nil {
					err = fmt.Errorf("%s: %w", args[0], err)
				}
				return result, err
			})
			return errors.Join(err, closeFile())
		},
	}
	c.Flags().BoolVar(&lines, "jsonl", false, "the file has one record a line")
	return r.onFiles("record.import", c)
}

// storing runs an import with progress and prints its result.
func (f RecordFiles) storing(ctx context.Context, r *Runner, what string, run func(context.Context, *record.Store) (record.Imported, error)) error {
	store, release, err := f.Write(ctx, r.Agent())
	if err != nil {
		return err
	}
	defer release()
	ctx, done := r.withProgress(ctx, what)
	result, err := run(ctx, store)
	done()
	if err != nil {
		return err
	}
	return r.Print(result)
}

func (f RecordFiles) exportMarkdown(r *Runner) *cobra.Command {
	var overwrite bool
	c := &cobra.Command{
		Use: "record/export_markdown [DIR]", Args: cobra.MaximumNArgs(1),
		Long: "Write each daily log to DIR/YYYY/YYYY-MM-DD.md; DIR is " + record.DailyLogDir + " if absent. Files that are there stay as they are.\n" +
			"A log whose id is no date is left out and named; nothing is written outside of DIR.",
		Example: "  openclawssy record export_markdown notes\n  openclawssy record export_markdown notes --overwrite --json",
		RunE: func(c *cobra.Command, args []string) error {
			root := record.DailyLogDir
			if len(args) > 0 {
				root = args[0]
			}
			store, release, err := f.Read(c.Context(), r.Agent())
			if err != nil {
				return err
			}
			defer release()
			ctx, done := r.withProgress(c.Context(), "export")
			result, err := store.ExportDailyLog(ctx, root, overwrite)
			done()
			if err != nil {
				return err
			}
			return r.Print(result)
		},
	}
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace files that are there")
	return r.onFiles("record.export_markdown", c)
}

func (f RecordFiles) importMarkdown(r *Runner) *cobra.Command {
	c := &cobra.Command{
		Use: "record/import_markdown PATH…", Args: cobra.MinimumNArgs(1),
		Long: "Store curated facts and preferences: Markdown files, and all .md and .markdown files of folders, whose front matter has\n" +
			"ainl_namespace, ainl_record_kind and ainl_record_id. Other files are left out and named. Importing again updates.",
		Example: "  openclawssy record import_markdown facts/ preferences.md",
		RunE: func(c *cobra.Command, args []string) error {
			return f.storing(c.Context(), r, "import", func(ctx context.Context, s *record.Store) (record.Imported, error) {
				return record.ImportMarkdown(ctx, s, args)
			})
		},
	}
	return r.onFiles("record.import_markdown", c)
}

// skip is the name of a file that says that there is none.
const skip = "none"

func (f RecordFiles) migrate(r *Runner) *cobra.Command {
	var notes, days string
	c := &cobra.Command{
		Use: "record/migrate", Args: cobra.NoArgs,
		Long: "Store the ## sections of MEMORY.md as facts, and each file YYYY-MM-DD.md of a folder as a daily log. What does not exist\n" +
			"is left out and named. Migrating again updates.",
		Example: "  openclawssy record migrate\n  openclawssy record migrate --memory-md none --daily-log-dir ~/notes/daily",
		RunE: func(c *cobra.Command, _ []string) error {
			for _, name := range []*string{&notes, &days} {
				if *name == skip {
					*name = ""
				}
			}
			return f.storing(c.Context(), r, "migrate", func(ctx context.Context, s *record.Store) (record.Imported, error) {
				return record.MigrateLegacy(ctx, s, notes, days)
			})
		},
	}
	c.Flags().StringVar(&notes, "memory-md", "MEMORY.md", "file of sections; "+skip+" leaves it out")
	c.Flags().StringVar(&days, "daily-log-dir", "memory", "folder of daily notes; "+skip+" leaves it out")
	return r.onFiles("record.migrate", c)
}

func (f RecordFiles) report(r *Runner) *cobra.Command {
	var q record.ReportQuery
	var soon int64
	var file string
	c := &cobra.Command{
		Use: "record/report", Args: cobra.NoArgs,
		Long: "Report on records: totals, namespaces and kinds, which have a time to live, what has expired and was not pruned, and what\n" +
			"expires soon. Nothing is changed. --db reads any database of records, one that the contract's reference made too.",
		Example: "  openclawssy record report\n  openclawssy record report --namespace workflow --expire-soon-seconds 3600 --json\n  openclawssy record report --db /tmp/ainl_memory.sqlite3",
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("expire-soon-seconds") {
				q.Soon = &soon
			}
			if file == "" {
				store, release, err := f.Read(c.Context(), r.Agent())
				if err != nil {
					return err
				}
				defer release()
				out, err := store.Report(c.Context(), q)
				if err != nil {
					return err
				}
				return r.Print(out)
			}
			out, err := f.Report(c.Context(), file, q)
			if err != nil {
				return err
			}
			if out.Error != "" {
				return memory.Errorf(memory.ErrNotFound, "report on %s: %s", file, out.Error)
			}
			return r.Print(out)
		},
	}
	c.Flags().StringVar(&q.Namespace, "namespace", "", "only this namespace")
	c.Flags().StringVar(&q.Kind, "record-kind", "", "only this kind")
	c.Flags().Int64Var(&soon, "expire-soon-seconds", record.DefaultSoon, "how far ahead to look for what expires")
	c.Flags().StringVar(&file, "db", "", "a database file, in place of the agent's own")
	return r.onFiles("record.report", c)
}
