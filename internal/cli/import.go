package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/transcript"
)

// Importing is what the command import chat works with.
type Importing struct {
	// Import brings histories into an agent's log. Turns older than since, where that
	// is set, are left out.
	Import func(ctx context.Context, agent memory.AgentID, inputs []transcript.Input, since time.Time) (transcript.Report, error)
	// Discover looks for the histories that other programs keep for this person.
	Discover func(context.Context) ([]transcript.Found, error)
}

// imported is what import chat prints.
type imported struct {
	Agent memory.AgentID `json:"agent"`
	transcript.Report
	Checkpoint any `json:"checkpoint,omitempty"`
}

func (i imported) Text() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s: %d turns imported, %d known already, %d sessions\n", i.Agent, i.Imported, i.Skipped, i.Sessions)
	if i.Older > 0 {
		fmt.Fprintf(&sb, "  %d older turns left out\n", i.Older)
	}
	for _, b := range i.Bad {
		switch {
		case b.File == "":
			fmt.Fprintf(&sb, "  line %d left out: %s\n", b.Line, b.Reason)
		case b.Line == 0:
			fmt.Fprintf(&sb, "  %s left out: %s\n", clean(b.File), clean(b.Reason))
		default:
			fmt.Fprintf(&sb, "  %s line %d left out: %s\n", clean(b.File), b.Line, clean(b.Reason))
		}
	}
	if more := i.BadCount - len(i.Bad); more > 0 {
		fmt.Fprintf(&sb, "  and %d more lines left out\n", more)
	}
	return sb.String()
}

// Failed reports whether lines were left out.
func (i imported) Failed() bool { return i.BadCount > 0 }

// discovered is what import chat --discover prints where it imports nothing.
type discovered struct {
	Found []transcript.Found `json:"found"`
	Hint  string             `json:"hint,omitempty"`
}

// Text shows one program a line: what, how much, how old, where.
func (d discovered) Text() string {
	var sb strings.Builder
	for _, f := range d.Found {
		span := ""
		if f.From != nil && f.To != nil {
			span = f.From.Local().Format(time.DateOnly) + " to " + f.To.Local().Format(time.DateOnly)
		}
		fmt.Fprintf(&sb, "%-12s %5d files  %9s  %-24s  %s\n", f.Tool, f.Files, size(f.Bytes), span, clean(f.Where))
	}
	if len(d.Found) == 0 {
		sb.WriteString("no histories of OpenClaw, Claude Code, Codex, ChatGPT or Claude were found\n")
	}
	if d.Hint != "" {
		sb.WriteString(d.Hint + "\n")
	}
	return sb.String()
}

// size writes bytes for a person.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// importFlags are those of import chat.
type importFlags struct {
	format, since string
	discover, yes bool
	distil        bool
	parsed        transcript.Format
	sinceT        time.Time
}

func (f *importFlags) parse() (err error) {
	if f.parsed, err = transcript.ParseFormat(f.format); err != nil {
		return err
	}
	if f.since == "" {
		return nil
	}
	if f.sinceT, err = time.ParseInLocation(time.DateOnly, f.since, time.Local); err == nil {
		return nil
	}
	if f.sinceT, err = time.Parse(time.RFC3339, f.since); err != nil {
		return &memory.FieldError{Field: "since", Reason: fmt.Sprintf("must be a date, not %q", f.since), Hint: "such as 2026-01-31 or 2026-01-31T09:00:00Z"}
	}
	return nil
}

// ImportChat imports chat histories.
func ImportChat(importing Importing) Command {
	return func(r *Runner) *cobra.Command {
		var flags importFlags
		c := &cobra.Command{
			Use: "import/chat FILE|DIR…", Short: "Bring chat histories into memory",
			Long: "Bring chat histories into memory. Importing them again adds nothing; an import that was interrupted goes on where it ended.\n" +
				"A line that cannot be read is reported with its number while the rest goes in; the command then ends with status 1.\n" +
				"Forms, found out by content: sessions of OpenClaw, Claude Code and Codex, exports of ChatGPT and Claude (conversations.json, or\n" +
				"the zip archive as it came), jsonl ({n, role or speaker, text, time, session, tool?, channel?, user_id?} a line), locomo,\n" +
				"longmemeval. Of a directory all histories below it are read. Thinking, system prompts and what programs put into the user's\n" +
				"turn are left out; what agents say to each other is marked as theirs.\n" +
				"--discover looks where these programs keep their sessions under the home directory, and for exports among the downloads; it\n" +
				"lists what there is, and imports it after a yes.",
			Example: "  openclawssy import chat --discover\n  openclawssy import chat --discover --format claude-code --since 2026-01-01 --yes\n" +
				"  openclawssy import chat chatgpt-export.zip\n  openclawssy import chat ~/.codex/sessions --checkpoint\n  openclawssy import chat history.jsonl",
			RunE: func(c *cobra.Command, args []string) error {
				if err := flags.parse(); err != nil {
					return err
				}
				inputs, err := r.histories(c.Context(), importing, &flags, args)
				if err != nil || inputs == nil {
					return err
				}
				ctx, done := r.withProgress(c.Context(), "import")
				report, err := importing.Import(ctx, r.Agent(), inputs, flags.sinceT)
				done()
				if err != nil {
					return err
				}
				out := imported{Agent: r.Agent(), Report: report}
				if flags.distil {
					if out.Checkpoint, err = r.checkpoint(c.Context()); err != nil {
						return err
					}
				}
				return r.Print(out)
			},
		}
		c.Flags().StringVar(&flags.format, "format", "", transcript.FormatNames()+"; found out from the content if absent")
		c.Flags().StringVar(&flags.since, "since", "", "leave out turns before this date, such as 2026-01-31")
		c.Flags().BoolVar(&flags.discover, "discover", false, "look for the histories that other programs keep here")
		c.Flags().BoolVar(&flags.yes, "yes", false, "import what was discovered without asking")
		c.Flags().BoolVar(&flags.distil, "checkpoint", false, "distil what came in")
		return c
	}
}

// histories returns what is to be imported; nil for nothing, and then it was said
// why.
func (r *Runner) histories(ctx context.Context, importing Importing, flags *importFlags, args []string) ([]transcript.Input, error) {
	if flags.discover {
		if len(args) > 0 {
			return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "--discover looks by itself; it takes no file"), "leave out --discover to import "+args[0])
		}
		return r.discover(ctx, importing, flags)
	}
	if len(args) == 0 {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "import chat needs a file or a directory"), "or --discover to look for histories; - reads standard input")
	}
	var inputs []transcript.Input
	for _, name := range args {
		if name == "-" {
			inputs = append(inputs, transcript.Input{Name: "-", Source: transcript.Source{Format: flags.parsed}, Open: func() (io.ReadCloser, error) { return io.NopCloser(r.In), nil }})
			continue
		}
		if st, err := os.Stat(name); err == nil && !st.IsDir() && !st.Mode().IsRegular() { // what a shell hands over
			in, closeIn, err := r.Open(name)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, transcript.Input{Name: name, Source: transcript.Source{Format: flags.parsed}, Open: func() (io.ReadCloser, error) { return reader{in, closeIn}, nil }})
			continue
		}
		found, err := transcript.Inputs(name, flags.parsed)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	if len(args) > 1 {
		transcript.Order(inputs)
	}
	return inputs, nil
}

// reader is what Open returns as one thing.
type reader struct {
	io.Reader
	end func() error
}

func (r reader) Close() error { return r.end() }

func (r *Runner) discover(ctx context.Context, importing Importing, flags *importFlags) ([]transcript.Input, error) {
	found, err := importing.Discover(ctx)
	if err != nil {
		return nil, err
	}
	list := discovered{Found: []transcript.Found{}}
	var inputs []transcript.Input
	for _, f := range found {
		if flags.parsed == "" || f.Tool == flags.parsed {
			list.Found = append(list.Found, f)
			inputs = append(inputs, f.Inputs...)
		}
	}
	transcript.Order(inputs)
	asks := r.InTTY && !r.Options.JSON
	switch {
	case len(inputs) == 0:
		return nil, r.Print(list)
	case flags.yes:
		if !r.Options.JSON {
			r.note("%s", strings.TrimSuffix(list.Text(), "\n"))
		}
		return inputs, nil
	case !asks:
		list.Hint = "nothing was imported; add --yes to import it into the memory of agent " + string(r.Agent())
		return nil, r.Print(list)
	}
	if _, err := fmt.Fprintf(r.Out, "%sImport them into the memory of agent %s? [y/N] ", list.Text(), r.Agent()); err != nil {
		return nil, err
	}
	answer, err := bufio.NewReader(r.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		_, err := fmt.Fprintln(r.Out, "nothing was imported")
		return nil, err
	}
	return inputs, nil
}

// checkpoint runs memory.checkpoint for the command's agent.
func (r *Runner) checkpoint(ctx context.Context) (any, error) {
	o, err := r.App.Catalog.Get("memory.checkpoint")
	if err != nil {
		return nil, err
	}
	ctx, done := r.withProgress(ctx, "checkpoint")
	defer done()
	return o.Call(ctx, r.Agent(), nil)
}
