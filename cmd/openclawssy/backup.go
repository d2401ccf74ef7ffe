package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/openclawssy/openclawssy/internal/backup"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// backups is what the commands on backups work with.
func (h *house) backups() cli.Backups {
	return cli.Backups{Write: h.backUp, Verify: h.verifyBackup, Restore: h.restore}
}

func (h *house) backUp(ctx context.Context, agent memory.AgentID, file string, s backup.Secret, replace bool) (backup.Written, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return backup.Written{}, err
	}
	ctx, done, err := h.hold(erasure.Copy)(ctx, agent)
	if err != nil {
		return backup.Written{}, err
	}
	defer done()
	red, err := h.redactor()
	if err != nil {
		return backup.Written{}, err
	}
	written, err := backup.Write(ctx, file, backup.Options{Agent: agent, Dir: dir.Path(), Temp: h.home.Path(), Program: version, Now: h.now,
		Secret: s, Keeper: h.keeper(), Find: func(text string) int { return len(red.Find(text)) }, Replace: replace})
	if err != nil {
		return written, err
	}
	at := h.now().UTC().Truncate(time.Second)
	if err := vitals.Update(ctx, dir.Path(), func(s *vitals.State) { s.Backup = &at }); err != nil {
		h.log.Warn().Err(err).Str("agent", string(agent)).Msg("the time of the backup is not noted")
	}
	return written, nil
}

func (h *house) reading(s backup.Secret) backup.ReadOptions {
	return backup.ReadOptions{Temp: h.home.Path(), Secret: s, Keeper: h.keeper()}
}

func (h *house) verifyBackup(ctx context.Context, file string, s backup.Secret) (backup.Verified, error) {
	o := h.reading(s)
	if _, err := os.Stat(o.Temp); err != nil {
		o.Temp = os.TempDir() // no home here, and none is made for a look at a file
	}
	return backup.Verify(ctx, file, o)
}

func (h *house) restore(ctx context.Context, file string, s backup.Secret, as memory.AgentID, replace bool) (backup.Restored, error) {
	if _, err := os.Stat(file); err == nil { // a home is made only where there is something to put into it
		if err := h.home.Create(); err != nil {
			return backup.Restored{}, err
		}
	}
	return backup.Restore(ctx, file, backup.RestoreOptions{ReadOptions: h.reading(s), Agents: h.home.File("agents"), As: as, Replace: replace})
}

// keeper finds the passphrases and keys of backups.
func (h *house) keeper() backup.Keeper {
	return backup.Keeper{Getenv: h.getenv, Prompt: askHidden}
}

// askHidden asks the person at the terminal, and does not show the answer.
func askHidden(label string) (string, error) {
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "standard input is no terminal"), "use env:NAME or file:PATH")
	}
	fmt.Fprint(os.Stderr, label)
	word, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return string(word), err
}
