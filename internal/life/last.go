package life

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Keep is the directory in which the last archive of each agent is kept, and
// the backups of what imports replaced. The zero Keep keeps nothing.
type Keep struct{ Dir string }

const lastName = "last.alf"

// base is the last archive that one workspace of an agent gave or took: what it
// has in common with others. The same agent may live in several.
func (k Keep) base(agent uuid.UUID, workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return k.path(agent, "bases", hex.EncodeToString(sum[:8])+".alf")
}

func (k Keep) path(agent uuid.UUID, names ...string) string {
	return filepath.Join(append([]string{k.Dir, agent.String()}, names...)...)
}

// last opens the last archive of an agent, from whichever workspace; nil where
// there is none. One that cannot be read is reported through notice and counts as
// none.
func (k Keep) last(agent uuid.UUID, notice func(string)) *alf.Reader {
	return k.open(k.path(agent, lastName), notice)
}

// common opens the last archive that a workspace gave or took, as last does.
func (k Keep) common(agent uuid.UUID, workspace string, notice func(string)) *alf.Reader {
	return k.open(k.base(agent, workspace), notice)
}

func (k Keep) open(path string, notice func(string)) *alf.Reader {
	if k.Dir == "" {
		return nil
	}
	r, err := alf.Open(path, alf.DefaultLimits)
	switch {
	case errors.Is(err, memory.ErrNotFound):
		return nil
	case err != nil:
		notice("the last archive cannot be read, so versions and merges start anew: " + err.Error())
		return nil
	}
	return r
}

// keep makes a copy of an archive the last one of its agent and, where one is
// named, of the workspace.
func (k Keep) keep(agent uuid.UUID, workspace, archive string) error {
	if k.Dir == "" {
		return nil
	}
	places := []string{k.path(agent, lastName)}
	if workspace != "" {
		places = append(places, k.base(agent, workspace))
	}
	for _, place := range places {
		if err := copyFile(archive, place); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep the last archive: %w", err)
	}
	in, err := os.Open(from)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep the last archive: %w", err)
	}
	defer in.Close()
	_, err = alf.WriteFile(to, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	})
	return err
}

// past is what the last archive says that a workspace cannot say.
type past struct {
	identity   *alf.Identity
	principals *alf.Principals
	checksum   string
	createdAt  alf.Time
	known      map[place]*carried
}

// place finds a record again: by its file and its words.
type place [16]byte

func placeOf(r *alf.Record) place {
	sum := sha256.Sum256([]byte(r.FileOf() + "\x00" + strings.TrimRight(r.Content, "\r\n \t")))
	return place(sum[:16])
}

// carried is what a record keeps from the last archive.
type carried struct {
	identityVersion int64
	record          *alf.Record // nil where a workspace says all that there is to say
}

// remember reads the last archive; an empty past where there is none.
func remember(last *alf.Reader) (*past, error) {
	p := &past{known: map[place]*carried{}}
	if last == nil {
		return p, nil
	}
	m := last.Manifest()
	p.checksum, p.createdAt = m.Checksum, m.CreatedAt
	var err error
	if p.identity, err = last.Identity(); err != nil {
		return nil, err
	}
	if p.principals, err = last.Principals(); err != nil {
		return nil, err
	}
	return p, p.records(last)
}

// records remembers the records of an archive. What is known already stays.
func (p *past) records(from *alf.Reader) error {
	for r, err := range from.Records() {
		if err != nil {
			return err
		}
		at := placeOf(r)
		if p.known[at] != nil {
			continue
		}
		c := &carried{identityVersion: r.Source.IdentityVersion}
		if rich(r) {
			c.record = r
		}
		p.known[at] = c
	}
	return nil
}

// learn remembers also the records of the archive in a file.
func (p *past) learn(path string) error {
	r, err := alf.Open(path, alf.DefaultLimits)
	if err != nil {
		return err
	}
	return errors.Join(p.records(r), r.Close())
}

// rich reports whether a record says more than its workspace can.
func rich(r *alf.Record) bool {
	s, t := r.Source, r.Temporal
	return s.Runtime != openclaw || len(r.Entities) > 0 || len(r.RelatedRecords) > 0 || len(r.Unknown) > 0 || len(s.Unknown) > 0 || len(t.Unknown) > 0 ||
		r.Supersedes != uuid.Nil || s.SessionID != "" || s.InteractionID != "" || !t.ValidFrom.IsZero() || !t.ValidUntil.IsZero() ||
		!t.LastAccessedAt.IsZero() || t.AccessCount != nil
}

// carry fills in r what the last archive says of it. A record that another
// runtime made stays that runtime's record.
func (p *past) carry(r *alf.Record, identityVersion int64) {
	r.Source.IdentityVersion = identityVersion
	at := placeOf(r)
	was := p.known[at]
	if was == nil {
		return
	}
	r.Source.IdentityVersion = was.identityVersion
	old := was.record
	if old == nil {
		return
	}
	if old.Source.Runtime != openclaw {
		delete(p.known, at) // an id stands once
		lines, agent := r.RawSourceFormat, r.AgentID
		*r = *old
		r.AgentID = agent
		if len(r.RawSourceFormat) == 0 {
			r.RawSourceFormat = lines
		}
		return
	}
	r.Entities, r.RelatedRecords, r.Supersedes, r.Unknown = old.Entities, old.RelatedRecords, old.Supersedes, old.Unknown
	r.Source.SessionID, r.Source.InteractionID, r.Source.Unknown = old.Source.SessionID, old.Source.InteractionID, old.Source.Unknown
	r.Temporal.ValidFrom, r.Temporal.ValidUntil, r.Temporal.Unknown = old.Temporal.ValidFrom, old.Temporal.ValidUntil, old.Temporal.Unknown
	r.Temporal.LastAccessedAt, r.Temporal.AccessCount = old.Temporal.LastAccessedAt, old.Temporal.AccessCount
}
