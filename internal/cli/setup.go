package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/clients"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// SettingUp is what the commands that set up other programs work with.
type SettingUp struct {
	// Clients returns where the clients' files are.
	Clients func() (clients.Setup, error)
	// Server returns how a client starts this program for an agent, with these
	// operations as its tools; none for the default ones.
	Server func(agent memory.AgentID, tools []string) (clients.Server, error)
}

// clientSetUp is what setup prints.
type clientSetUp struct {
	clients.Change
	Undo string `json:"undo,omitempty" jsonschema:"the command that takes it back"`
	undo bool
}

func (s clientSetUp) Text() string {
	var sb strings.Builder
	title, file := s.Client.Title(), clean(s.File)
	switch {
	case s.undo && !s.Changed:
		fmt.Fprintf(&sb, "%s is not set up in %s; nothing was changed\n", title, file)
	case s.undo && s.Removed:
		fmt.Fprintf(&sb, "%s: %s is gone, as before the setup\n", title, file)
	case s.undo && s.Exact:
		fmt.Fprintf(&sb, "%s: %s is as before the setup\n", title, file)
	case s.undo:
		fmt.Fprintf(&sb, "%s: the entry is out of %s, which was changed since the setup; the rest stays as it is\n", title, file)
	case !s.Changed:
		fmt.Fprintf(&sb, "%s is set up already in %s; nothing was changed\n", title, file)
	default:
		verb := "wrote the entry into"
		if s.Created {
			verb = "made"
		}
		fmt.Fprintf(&sb, "%s: %s %s\n", title, verb, file)
		if s.Backup != "" {
			fmt.Fprintf(&sb, "  the file before: %s\n", clean(s.Backup))
		}
		fmt.Fprintf(&sb, "  start %s anew to see the tools; to take it back: %s\n", title, s.Undo)
	}
	return sb.String()
}

// snippet is what setup --print prints.
type snippet struct {
	File string `json:"file"`
	Part string `json:"text" jsonschema:"what belongs into the file"`
}

// Text is the part of the file alone on standard output.
func (s snippet) Text() string { return s.Part }

// Setup are the commands that make other programs start the memory server.
func Setup(with SettingUp) []Command {
	commands := make([]Command, len(clients.All))
	for i, client := range clients.All {
		commands[i] = func(r *Runner) *cobra.Command { return r.setupClient(with, client) }
	}
	return commands
}

func (r *Runner) setupClient(with SettingUp, client clients.Client) *cobra.Command {
	var show, undo bool
	var tools []string
	c := &cobra.Command{
		Use: "setup/" + string(client), Short: "Give " + client.Title() + " this memory", Args: cobra.NoArgs,
		Long: "Write the memory server (openclawssy mcp) into the configuration of " + client.Title() + ", for all projects. The rest of the file stays as it is,\n" +
			"comments too; a copy of it is kept, and --undo puts it back. Doing it again changes nothing, or what --agent or --tools change.\n" +
			"The memory is that of --agent in the home in force, whichever directory " + client.Title() + " is started in.",
		Example: "  openclawssy setup " + string(client) + "\n  openclawssy setup " + string(client) + " --agent work --tools all\n  openclawssy setup " + string(client) + " --undo",
		RunE: func(*cobra.Command, []string) error {
			s, err := with.Clients()
			if err != nil {
				return err
			}
			server, err := with.Server(r.Agent(), tools)
			if err != nil {
				return err
			}
			switch {
			case show && undo:
				return memory.Errorf(memory.ErrInvalid, "--print and --undo do not go together")
			case show:
				part, err := client.Snippet(s.Place, server)
				if err != nil {
					return err
				}
				file, err := client.File(s.Place)
				if err != nil {
					return err
				}
				r.note("# %s", clean(file))
				return r.Print(snippet{File: file, Part: part})
			case undo:
				change, err := s.Undo(client)
				if err != nil {
					return err
				}
				return r.Print(clientSetUp{Change: change, undo: true})
			}
			change, err := s.Apply(client, server)
			if err != nil {
				return err
			}
			return r.Print(clientSetUp{Change: change, Undo: "openclawssy setup " + string(client) + " --undo"})
		},
	}
	c.Flags().BoolVar(&show, "print", false, "show what belongs into which file, and change nothing")
	c.Flags().BoolVar(&undo, "undo", false, "take it out again")
	c.Flags().StringSliceVar(&tools, "tools", nil, "operations to offer, by name, or all; eight of memory's if absent")
	return c
}
