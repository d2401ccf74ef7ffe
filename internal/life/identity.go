package life

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
)

// title returns the first heading of the first level in a text, as the client
// alf finds it: anywhere, also in fenced code; "" for none.
func title(text string) string {
	for l := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(l), "# ")
		if !found {
			continue
		}
		for found {
			rest, found = strings.CutPrefix(rest, "# ")
		}
		return strings.TrimSpace(rest)
	}
	return ""
}

// ownID returns the id that a thing of an agent has in all its archives.
func ownID(agent uuid.UUID, thing string) uuid.UUID { return uuid.NewSHA1(agent, []byte(thing)) }

// prose are the texts that tell who an agent is and whom it serves; "" for a
// file that is blank or not there.
type prose struct {
	soul, identity, agents, user string
	changed                      time.Time // newest of the first three
	userChanged                  time.Time
}

// name is the agent's name: the title of SOUL.md, else of IDENTITY.md.
func (p prose) name() string {
	if t := title(p.soul); t != "" {
		return t
	}
	return title(p.identity)
}

// identityOf returns the identity layer; nil where no file tells of it. Its id is
// the same in all exports, its version grows when it says something else than
// the last one.
func (p prose) identityOf(agent uuid.UUID, last *alf.Identity, parity bool) (*alf.Identity, error) {
	if p.soul == "" && p.identity == "" && p.agents == "" {
		return nil, nil
	}
	name := p.name()
	if name == "" {
		name = "Unknown"
	}
	id := &alf.Identity{ID: ownID(agent, "identity"), AgentID: agent, Version: 1, UpdatedAt: alf.At(p.changed), SourceFormat: openclaw,
		Structured: &alf.StructuredIdentity{Names: &alf.Names{Primary: name}},
		Prose:      &alf.ProseIdentity{Soul: p.soul, IdentityProfile: p.identity, OperatingInstructions: p.agents}}
	if parity {
		return id, nil
	}
	id.Structured.SubAgents = subAgents(p.agents)
	if last == nil {
		return id, nil
	}
	// What files cannot say is carried on from the last archive.
	id.Unknown, id.RawSource = last.Unknown, last.RawSource
	if s := last.Structured; s != nil {
		mine := id.Structured
		mine.Role, mine.Goals, mine.Psychology, mine.Linguistics = s.Role, s.Goals, s.Psychology, s.Linguistics
		mine.Capabilities, mine.AIEOSExtensions, mine.Unknown = s.Capabilities, s.AIEOSExtensions, s.Unknown
		if s.Names != nil {
			mine.Names.Nickname, mine.Names.Full, mine.Names.Unknown = s.Names.Nickname, s.Names.Full, s.Names.Unknown
		}
	}
	if last.Prose != nil {
		id.Prose.CustomBlocks, id.Prose.Unknown = last.Prose.CustomBlocks, last.Prose.Unknown
	}
	same, err := alf.SameIdentity(id, last)
	id.ID, id.Version = last.ID, last.Version
	if same {
		id.UpdatedAt = last.UpdatedAt
	} else {
		id.Version++
	}
	return id, err
}

// principalsOf returns the principals layer; nil where USER.md is blank. Ids and
// versions are as those of the identity. Principals beyond the first are carried
// on from the last archive.
func (p prose) principalsOf(agent uuid.UUID, last *alf.Principals, parity bool) (*alf.Principals, error) {
	if p.user == "" {
		return nil, nil
	}
	name := title(p.user)
	if name == "" {
		name = "User"
	}
	id := ownID(agent, "principal")
	first := alf.Principal{ID: id, PrincipalType: "human", Profile: alf.Profile{ID: ownID(agent, "profile"), AgentID: agent, PrincipalID: id, Version: 1,
		UpdatedAt: alf.At(p.userChanged), Structured: &alf.StructuredProfile{Name: name, Timezone: timezone(p.user)}, Prose: &alf.ProseProfile{UserProfile: p.user}, SourceFormat: openclaw}}
	out := &alf.Principals{Principals: alf.List[alf.Principal]{first}}
	if parity {
		return out, nil
	}
	profile := &out.Principals[0].Profile
	fillProfile(profile.Structured, p.user)
	if last == nil || len(last.Principals) == 0 {
		return out, nil
	}
	out.Unknown = last.Unknown
	out.Principals = append(out.Principals, last.Principals[1:]...)
	profile = &out.Principals[0].Profile
	was := last.Principals[0]
	out.Principals[0].PrincipalType, out.Principals[0].AgentID, out.Principals[0].Unknown = was.PrincipalType, was.AgentID, was.Unknown
	profile.RawSource, profile.Unknown = was.Profile.RawSource, was.Profile.Unknown
	if s := was.Profile.Structured; s != nil {
		profile.Structured.Relationships, profile.Structured.PrincipalType, profile.Structured.Unknown = s.Relationships, s.PrincipalType, s.Unknown
		if profile.Structured.Locale == "" {
			profile.Structured.Locale = s.Locale
		}
	}
	same, err := alf.SamePrincipal(out.Principals[0], was)
	out.Principals[0].ID, profile.ID, profile.PrincipalID, profile.Version = was.ID, was.Profile.ID, was.ID, was.Profile.Version
	if same {
		profile.UpdatedAt = was.Profile.UpdatedAt
	} else {
		profile.Version++
	}
	return out, err
}
