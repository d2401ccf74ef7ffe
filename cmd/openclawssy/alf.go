package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/cli"
	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/life"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/working"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// alf is what the commands on archives work with.
func (h *house) alf() cli.ALF {
	return cli.ALF{Workspaces: h.workspaces(), Now: h.now, Keep: h.keep, Options: h.exportOptions, Agent: h.exportAgent}
}

// keep is where the last archive of each agent is kept.
func (h *house) keep() life.Keep { return life.Keep{Dir: h.home.File("alf")} }

// exportOptions fills in what an export needs of this machine.
func (h *house) exportOptions(o life.ExportOptions) (life.ExportOptions, error) {
	red, err := h.redactor()
	if err != nil {
		return o, err
	}
	o.Redact, o.Keep, o.Now = red.Text, h.keep(), h.now
	user, err := os.UserHomeDir()
	if err != nil {
		return o, nil // no home directory, no OpenClaw in it
	}
	o.Installation, err = workspace.FindInstallation(user, h.getenv)
	return o, err
}

// exportAgent exports an agent's own memory.
func (h *house) exportAgent(ctx context.Context, agent memory.AgentID, o life.ExportOptions) (life.Exported, error) {
	dir, err := h.home.Find(agent)
	if err != nil {
		return life.Exported{}, err
	}
	ctx, done, err := h.hold(erasure.Copy)(ctx, agent)
	if err != nil {
		return life.Exported{}, err
	}
	defer done()
	id, err := archiveID(dir)
	if err != nil {
		return life.Exported{}, err
	}
	items, releaseItems, err := h.items.read(ctx, agent)
	if err != nil {
		return life.Exported{}, err
	}
	defer releaseItems()
	all := 0
	list, err := items.List(ctx, working.ListRequest{Status: "all", Limit: &all})
	if err != nil {
		return life.Exported{}, err
	}
	episodes, releaseEpisodes, err := h.followed(ctx, agent)
	if err != nil {
		return life.Exported{}, err
	}
	defer releaseEpisodes()
	return life.ExportAgent(ctx, life.AgentMemory{ID: id, Name: agent, Items: list.Items, Episodes: allEpisodes(ctx, episodes)}, o)
}

// archiveID returns the id that an agent has in its archives. It is made of the
// directory's path once, and kept in a file, so that it lasts.
func archiveID(dir agents.Dir) (uuid.UUID, error) {
	name := dir.Path("alf-agent-id")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("openclawssy:"+dir.Path()))
		if err := os.WriteFile(name, []byte(id.String()), 0o600); err != nil {
			return id, memory.Errorf(memory.ErrUnavailable, "keep the agent's archive id: %w", err)
		}
		return id, nil
	}
	if err != nil {
		return uuid.Nil, memory.Errorf(memory.ErrUnavailable, "read the agent's archive id: %w", err)
	}
	id, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return uuid.Nil, memory.Errorf(memory.ErrCorrupt, "%s is not a UUID", name)
	}
	return id, nil
}

// allEpisodes yields the passages of an archive in the order of the log.
func allEpisodes(ctx context.Context, s *archive.Store) iter.Seq2[memory.Episode, error] {
	const page = 500
	return func(yield func(memory.Episode, error) bool) {
		for after := int64(0); ; {
			list, err := s.After(ctx, after, page)
			if err != nil {
				yield(memory.Episode{}, err)
				return
			}
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
				if after, err = archive.ParseHandle(e.Handle); err != nil {
					yield(memory.Episode{}, err)
					return
				}
			}
			if len(list) == 0 {
				return
			}
		}
	}
}
