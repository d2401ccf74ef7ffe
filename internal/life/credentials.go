package life

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// maxProfiles bounds a file of auth profiles.
const maxProfiles = 4 << 20

// profile is what is read of a sign-in. Keys and tokens are never decoded.
type profile struct {
	Type     string  `json:"type"`
	Mode     string  `json:"mode"`
	Provider string  `json:"provider"`
	Expires  float64 `json:"expires"` // milliseconds since 1970
}

// credentialsOf lists what the agents of an OpenClaw installation can sign in
// to, by agent and profile. The secrets themselves are not read into anything.
func credentialsOf(dir string, agent uuid.UUID, notice func(workspace.Notice)) alf.List[alf.Credential] {
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "agents", "*", "agent", "auth-profiles.json"))
	if err != nil {
		return nil // only for a bad pattern
	}
	var out alf.List[alf.Credential]
	for _, file := range files {
		owner := filepath.Base(filepath.Dir(filepath.Dir(file)))
		profiles, changed, err := readProfiles(file)
		if err != nil {
			notice(workspace.Notice{File: "agents/" + owner + "/agent/auth-profiles.json", Skipped: true, Reason: err.Error()})
			continue
		}
		for _, name := range sortedPaths(profiles) {
			out = append(out, credential(agent, owner, name, profiles[name], changed))
		}
	}
	return out
}

// readProfiles reads a file of auth profiles: {"version", "profiles": {…}} as
// OpenClaw writes it, or the profiles alone.
func readProfiles(file string) (map[string]profile, time.Time, error) {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case !st.Mode().IsRegular() || st.Size() > maxProfiles:
		return nil, time.Time{}, errors.New("it is no file of auth profiles")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, time.Time{}, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, time.Time{}, errors.New("it is not JSON")
	}
	if nested, there := top["profiles"]; there {
		top = nil
		if err := json.Unmarshal(nested, &top); err != nil {
			return nil, time.Time{}, errors.New("its profiles are no object")
		}
	}
	out := map[string]profile{}
	for name, raw := range top {
		var p profile
		if json.Unmarshal(raw, &p) == nil && (p.Type != "" || p.Mode != "" || p.Provider != "") {
			out[name] = p
		}
	}
	return out, st.ModTime(), nil
}

func credential(agent uuid.UUID, owner, name string, p profile, changed time.Time) alf.Credential {
	c := alf.Credential{ID: ownID(agent, "credential:"+owner+":"+name), AgentID: agent, Service: p.Provider, Label: name, CreatedAt: alf.At(changed),
		CredentialType: "custom", Tags: alf.List[string]{openclaw, "metadata-only"}}
	if c.Service == "" {
		c.Service = "unknown"
	}
	if owner != "main" {
		c.Tags = append(c.Tags, "agent:"+owner)
	}
	kind := p.Type
	if kind == "" {
		kind = p.Mode
	}
	switch kind {
	case "oauth":
		c.CredentialType = "oauth_token"
	case "api_key":
		c.CredentialType = "api_key"
	}
	if p.Expires > 0 && p.Expires < 1e15 {
		c.ExpiresAt = alf.At(time.UnixMilli(int64(p.Expires)))
	}
	c.Withheld()
	return c
}
