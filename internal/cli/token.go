package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// tokenMade is what token create prints.
type tokenMade struct {
	access.Token
	Secret string `json:"token"`
}

// Text is the token alone on standard output, for other programs to take.
func (t tokenMade) Text() string { return t.Secret + "\n" }

// tokenList is what token list and token revoke print.
type tokenList struct {
	Tokens []access.Token `json:"tokens"`
}

// Text shows them to a person, one a line.
func (l tokenList) Text() string {
	var sb strings.Builder
	for _, t := range l.Tokens {
		until := ""
		if t.Expires != nil {
			until = ", until " + t.Expires.UTC().Format(time.DateOnly)
		}
		fmt.Fprintf(&sb, "%s  %-5s  %-20s  for %s, since %s%s\n", t.ID, t.Right, t.Name, strings.Join(t.Agents, " "), t.Created.UTC().Format(time.DateOnly), until)
	}
	if len(l.Tokens) == 0 {
		sb.WriteString("no tokens; openclawssy token create makes one\n")
	}
	return sb.String()
}

// Tokens are the commands that make and take back what lets programs in. store
// returns the tokens of the home, which is made for them.
func Tokens(now func() time.Time, store func() (*access.Store, error)) []Command {
	return []Command{tokenCreate(now, store), tokenRevoke(store), tokens(store)}
}

func tokenCreate(now func() time.Time, store func() (*access.Store, error)) Command {
	return func(r *Runner) *cobra.Command {
		var name, right string
		var agents []string
		var days int
		c := &cobra.Command{
			Use: "token/create", Short: "Make a token for a program that asks the server", Args: cobra.NoArgs,
			Long:    "Make a token and print it. It is shown this once: the home keeps only what is needed to know it again.",
			Example: "  openclawssy token create --name laptop\n  openclawssy token create --name bot --for studio --right write --days 90",
			RunE: func(c *cobra.Command, _ []string) error {
				if days < 0 || days > 36500 {
					return &memory.FieldError{Field: "days", Reason: "must be between 0 and 36500"}
				}
				s, err := store()
				if err != nil {
					return err
				}
				n := access.New{Name: name, Agents: agents, Right: access.Right(right)}
				if days > 0 {
					end := now().UTC().AddDate(0, 0, days).Truncate(time.Second)
					n.Expires = &end
				}
				t, text, err := s.Create(c.Context(), n)
				if err != nil {
					return err
				}
				return r.Print(tokenMade{t, text})
			},
		}
		c.Flags().StringVar(&name, "name", "", "whose it is, for the list (required)")
		c.Flags().StringArrayVar(&agents, "for", nil, "agent that it is for; repeatable; all if absent")
		c.Flags().StringVar(&right, "right", "write", "read, write (chat, add, change), or admin (erase, too)")
		c.Flags().IntVar(&days, "days", 0, "days that it is valid; 0 for ever")
		return c
	}
}

func tokens(store func() (*access.Store, error)) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "token/list", Short: "List the tokens that there are", Args: cobra.NoArgs,
			Long: "List the tokens that there are: whose, for which agents, and what they may. Their texts are not kept.", Example: "  openclawssy token list --json",
			RunE: func(*cobra.Command, []string) error {
				s, err := store()
				if err != nil {
					return err
				}
				list, err := s.List()
				if err != nil {
					return err
				}
				return r.Print(tokenList{list})
			},
		}
	}
}

func tokenRevoke(store func() (*access.Store, error)) Command {
	return func(r *Runner) *cobra.Command {
		return &cobra.Command{
			Use: "token/revoke ID", Short: "Take a token back", Args: cobra.ExactArgs(1),
			Long: "Take a token back. It holds for the next request, also of a server that runs.", Example: "  openclawssy token revoke k2j5q7x3ab",
			RunE: func(c *cobra.Command, args []string) error {
				s, err := store()
				if err != nil {
					return err
				}
				gone, err := s.Revoke(context.WithoutCancel(c.Context()), args[0])
				if err != nil {
					return err
				}
				return r.Print(tokenList{[]access.Token{gone}})
			},
		}
	}
}
