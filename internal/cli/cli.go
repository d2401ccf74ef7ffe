// Package cli is the command line: a command for every operation of the
// Catalog, and those that start the other faces or work on files.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/config"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Options are the flags that every command has.
type Options struct {
	Home  string   // empty: the default place
	Agent string   // checked; never empty after Run has called Setup
	Named bool     // the agent was named by --agent
	JSON  bool     // one JSON document on stdout
	Quiet bool     // no progress, no notes
	Set   []string // configuration, key=value
	// AnyConfig lets the command run where the configuration is wrong, with the
	// defaults in its place.
	AnyConfig bool
	// Workspace is the directory named by --workspace, which the workspace commands
	// have; empty for none.
	Workspace string
}

// Streams are the standard streams, and whether a person sits there.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // Err is a terminal: progress bars make sense
	InTTY    bool // In is a terminal
}

// App is what the command line shows. The wiring fills it.
type App struct {
	Version string
	Catalog *op.Catalog
	// Environ is the environment, NAME=value; LookupEnv tells an empty variable from
	// one that is not set.
	Environ   []string
	LookupEnv func(string) (string, bool)
	// Setup is called once, with the flags, before a command runs.
	Setup func(Options) error
	// Config returns the configuration in force, after Setup.
	Config func() (config.Config, error)
	// Commands makes the commands that are more than one operation.
	Commands []Command
}

// Command makes a command.
type Command func(*Runner) *cobra.Command

// Runner is what a command works with.
type Runner struct {
	App     App
	Options Options
	Streams
}

// exit statuses by the kind of error.
var exitStatus = map[memory.Kind]int{
	memory.ErrInvalid: 2, memory.ErrNotFound: 3, memory.ErrConflict: 4, memory.ErrUnavailable: 5, memory.ErrCorrupt: 6, memory.ErrDenied: 7, memory.ErrInternal: 1,
}

// errFailed ends the program with status 1 after a result was printed.
var errFailed = errors.New("the check found something wrong")

// Run runs one command line (without the program's name) and returns the exit
// status: 0; 1 internal, or a check that found something; 2 invalid input; 3 not
// found; 4 conflict; 5 unavailable; 6 damaged data; 7 denied.
func Run(ctx context.Context, app App, args []string, streams Streams) int {
	r := &Runner{App: app, Streams: streams}
	root := r.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	// A wrong flag ends the reading of flags: --json may stand after it.
	r.Options.JSON = r.Options.JSON || err != nil && slices.Contains(args, "--json")
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1
	}
	return r.fail(err)
}

// fail shows err and returns its exit status.
func (r *Runner) fail(err error) int {
	kind := memory.KindOf(err)
	if errors.Is(err, context.Canceled) {
		kind = memory.ErrUnavailable
		err = memory.WithHint(fmt.Errorf("interrupted: %w", err), "nothing was half-written; run it again to go on")
	}
	if r.Options.JSON {
		r.printError(kind, err)
		return exitStatus[kind]
	}
	fmt.Fprintf(r.Err, "openclawssy: %s\n", clean(err.Error()))
	if hint := memory.HintOf(err); hint != "" {
		fmt.Fprintf(r.Err, "  %s\n", clean(hint))
	}
	return exitStatus[kind]
}

func (r *Runner) printError(kind memory.Kind, err error) {
	doc := struct {
		Error op.Failure `json:"error"`
	}{op.FailureOf(err)}
	doc.Error.Kind = kind // an interrupted call has one of its own
	if err := writeJSON(r.Out, doc); err != nil {
		fmt.Fprintln(r.Err, "openclawssy:", err)
	}
}

func writeJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

func (r *Runner) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "openclawssy",
		Short:         "Memory for chat agents",
		Long:          "Openclawssy remembers for chat agents: it captures what is said, distils it, and brings back what matters.",
		Example:       "  openclawssy chat\n  openclawssy import chat history.jsonl\n  openclawssy memory search \"green tea\"",
		Version:       r.App.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // group says which command was meant
		RunE:          func(c *cobra.Command, args []string) error { return group(c, args) },
	}
	root.SetIn(r.In)
	root.SetOut(r.Out)
	root.SetErr(r.Err)
	root.SetVersionTemplate("openclawssy {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&r.Options.Home, "home", "", "directory that holds everything (OPENCLAWSSY_HOME; else .openclawssy here if it exists, else ~/.openclawssy)")
	flags.StringVar(&r.Options.Agent, "agent", "", "whose memory (OPENCLAWSSY_AGENT; else default)")
	flags.BoolVar(&r.Options.JSON, "json", false, "print one JSON document")
	flags.BoolVar(&r.Options.Quiet, "quiet", false, "no progress and no notes on stderr")
	flags.StringArrayVar(&r.Options.Set, "set", nil, "configuration for this run, such as recall.min_importance=2; repeatable")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return r.setup(c) }
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s: %w", c.CommandPath(), err), c.CommandPath()+" --help shows the flags")
	})
	for _, o := range r.App.Catalog.All() {
		r.addOperation(root, o)
	}
	for _, make := range r.App.Commands {
		attach(root, make(r))
	}
	for _, group := range []string{"workspace", "alf"} {
		node(root, []string{group}).PersistentFlags().StringVar(&r.Options.Workspace, "workspace", "",
			"the workspace's directory (else workspace.path, else as ~/.openclaw/openclaw.json says)")
	}
	return root
}

// anyConfig is the annotation of commands with Options.AnyConfig.
const anyConfig = "any-config"

// setup fills the options that flags left out and hands them to the wiring.
func (r *Runner) setup(c *cobra.Command) error {
	r.Options.Named = c.Flags().Changed("agent")
	r.Options.AnyConfig = c.Annotations[anyConfig] != ""
	if !r.Options.Named {
		name, set := r.App.LookupEnv("OPENCLAWSSY_AGENT")
		if !set {
			name = string(memory.DefaultAgent)
		}
		r.Options.Agent = name
	}
	if _, err := memory.ParseAgentID(r.Options.Agent); err != nil {
		return err
	}
	if c.Flags().Changed("home") && r.Options.Home == "" {
		return &memory.FieldError{Field: "home", Reason: "must not be empty"}
	}
	return r.App.Setup(r.Options)
}

// Agent returns the agent that the command is about.
func (r *Runner) Agent() memory.AgentID { return memory.AgentID(r.Options.Agent) }

// group is what a command does that only holds others.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	hint := c.CommandPath() + " --help lists the commands"
	if near := memory.Nearest(args[0], names); near != "" {
		hint = "did you mean " + c.CommandPath() + " " + near + "?"
	}
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s has no command %q", c.CommandPath(), args[0]), hint)
}

// node returns the command at path below root, making empty groups on the way.
func node(root *cobra.Command, path []string) *cobra.Command {
	at := root
	for _, name := range path {
		next := child(at, name)
		if next == nil {
			next = &cobra.Command{Use: name, Short: groupSummary(name), RunE: group, Args: cobra.ArbitraryArgs}
			at.AddCommand(next)
		}
		at = next
	}
	return at
}

func child(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// checked makes a command's complaint about its words an invalid input.
func checked(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil || memory.KindOf(err) != memory.ErrInternal {
			return err
		}
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s: %w", c.CommandPath(), err), "usage: "+c.UseLine())
	}
}

// attach adds a command whose name may be of several words: its Use starts
// with all but the last as "a/b/name". It takes the place, and the summary, of an
// operation's own command of that name.
func attach(root, c *cobra.Command) {
	path, use, nested := strings.Cut(c.Use, "/")
	if !nested {
		checked(c)
		if own := child(root, c.Name()); own != nil {
			c.Short = own.Short
			root.RemoveCommand(own)
		}
		root.AddCommand(c)
		return
	}
	c.Use = use
	attach(node(root, []string{path}), c)
}

func groupSummary(name string) string {
	summaries := map[string]string{
		"memory": "Items: what is remembered", "events": "The event log", "cron": "Scheduled jobs", "decision": "Decisions",
		"import": "Bring in conversations", "evaluate": "Measure recall and distillation", "config": "The configuration",
		"record": "The record store", "graph": "The graph memory", "persona": "Persona traits", "docs": "Reference pages, made from the code",
		"token": "What lets programs ask the server", "workspace": "OpenClaw workspaces", "alf": "Archives in the Agent Life Format",
		"setup": "Give other programs this memory",
		"agent": "Messages: what an agent says by itself", "message": "Messages: inbox, reminders, what is held and why",
	}
	if s, known := summaries[name]; known {
		return s
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
