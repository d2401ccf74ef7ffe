package runtime

import (
	"encoding/json"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Command is a message that is not for the model: its first word is one of
// Commands.
type Command struct {
	Name  string          // tool, new, help or quit
	Tool  string          // of tool: the operation
	Input json.RawMessage // of tool: its input; {} where none was given
}

// CommandHelp describes a command.
type CommandHelp struct{ Usage, Does string }

// Commands lists what ParseCommand knows.
var Commands = []CommandHelp{
	{"/tool NAME {…}", "call an operation, such as /tool memory.search {\"text\": \"tea\"}"},
	{"/new", "start a new session; what was said stays in memory"},
	{"/help", "show this"},
	{"/quit", "leave the chat"},
}

// Help returns the commands as text, a line each.
func Help() string {
	var sb strings.Builder
	for _, c := range Commands {
		sb.WriteString(c.Usage + "  " + c.Does + "\n")
	}
	return sb.String()
}

// ParseCommand reads a message as a command. It reports false where the message
// is none: one that only looks like it, such as a path, is for the model.
func ParseCommand(message string) (Command, bool, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(message), " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "/new", "/help", "/quit":
		if rest != "" {
			return Command{}, true, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s takes nothing after it", word), "/help lists the commands")
		}
		return Command{Name: word[1:]}, true, nil
	case "/tool":
		name, input, _ := strings.Cut(rest, " ")
		if brace := strings.IndexByte(name, '{'); brace >= 0 { // /tool memory.get{"handle": …}
			name, input = rest[:brace], rest[brace:]
		}
		c := Command{Name: "tool", Tool: name, Input: json.RawMessage(strings.TrimSpace(input))}
		if len(c.Input) == 0 {
			c.Input = json.RawMessage("{}")
		}
		if name == "" {
			return c, true, memory.WithHint(memory.Errorf(memory.ErrInvalid, "/tool names no operation"), `for example /tool memory.search {"text": "tea"}`)
		}
		return c, true, nil
	}
	return Command{}, false, nil
}
