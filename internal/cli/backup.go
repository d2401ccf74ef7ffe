package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/backup"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Backups is what the commands on backups work with.
type Backups struct {
	Write   func(ctx context.Context, agent memory.AgentID, file string, s backup.Secret, replace bool) (backup.Written, error)
	Verify  func(ctx context.Context, file string, s backup.Secret) (backup.Verified, error)
	Restore func(ctx context.Context, file string, s backup.Secret, as memory.AgentID, replace bool) (backup.Restored, error)
}

// Commands are backup, backup verify and restore.
func (b Backups) Commands() []Command { return []Command{b.write, b.verify, b.restore} }

func secretFlags(c *cobra.Command, s *backup.Secret, use string) {
	c.Flags().StringVar(&s.Passphrase, "passphrase", "", use+" with a passphrase: env:NAME, file:PATH or prompt")
	c.Flags().StringVar(&s.KeyFile, "key-file", "", use+" with the age keys in a file, as age-keygen makes them")
}

func (b Backups) write(r *Runner) *cobra.Command {
	var s backup.Secret
	var replace bool
	c := &cobra.Command{
		Use: "backup FILE", Short: "Write an agent's whole memory into one file, while it is in use", Args: cobra.ExactArgs(1),
		Long: "Write an agent's whole memory into one file (.tar.zst): databases, event log, graph, sessions, runs, audit, reports.\n" +
			"It is one moment of the agent, which may be in use meanwhile; every event that was acknowledged before the command began is in it.\n" +
			"A backup is verbatim: secrets that stand in the files are counted, not removed. Encrypt it with --passphrase or --key-file (age).\n" +
			"What lies outside the agent's directory is not in it: config.yaml, redact.key, scheduled jobs, workspaces, files that AINL_* variables name.",
		Example: "  openclawssy backup default.tar.zst\n  openclawssy backup --agent support support.tar.zst --passphrase env:BACKUP_PASSPHRASE",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, done := r.withProgress(c.Context(), "backup")
			out, err := b.Write(ctx, r.Agent(), args[0], s, replace)
			done()
			if err != nil {
				return err
			}
			return r.Print(out)
		},
	}
	secretFlags(c, &s, "encrypt")
	c.Flags().BoolVar(&replace, "replace", false, "write over a file of that name")
	return c
}

func (b Backups) verify(r *Runner) *cobra.Command {
	var s backup.Secret
	c := &cobra.Command{
		Use: "backup/verify FILE", Short: "Check a backup: every checksum, every database, the event log", Args: cobra.ExactArgs(1),
		Example: "  openclawssy backup verify default.tar.zst",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, done := r.withProgress(c.Context(), "verify")
			out, err := b.Verify(ctx, args[0], s)
			done()
			if err != nil {
				return err
			}
			return r.Print(out)
		},
	}
	secretFlags(c, &s, "decrypt")
	return c
}

func (b Backups) restore(r *Runner) *cobra.Command {
	var s backup.Secret
	var as string
	var replace bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Bring a backup back as an agent", Args: cobra.ExactArgs(1),
		Long: "Bring a backup back. It is unpacked and checked whole beside the agents first; then it takes its place in one step.\n" +
			"The agent has the name that it was backed up under, unless --as says otherwise. One that exists is left alone, unless --replace is given\n" +
			"and no process uses it: what it has is then gone.",
		Example: "  openclawssy restore default.tar.zst --as recovered\n  openclawssy restore support.tar.zst --replace --passphrase prompt",
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("as") {
				if _, err := memory.ParseAgentID(as); err != nil {
					return err
				}
			} else if r.Options.Named {
				as = r.Options.Agent
			}
			ctx, done := r.withProgress(c.Context(), "restore")
			out, err := b.Restore(ctx, args[0], s, memory.AgentID(as), replace)
			done()
			if err != nil {
				return err
			}
			return r.Print(out)
		},
	}
	secretFlags(c, &s, "decrypt")
	c.Flags().StringVar(&as, "as", "", "name of the agent (else --agent, else as in the backup)")
	c.Flags().BoolVar(&replace, "replace", false, "give up what an agent of that name has")
	return c
}
