package alf

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Finding is one thing that is wrong with an archive, and where.
type Finding struct {
	Path    string `json:"path"` // an entry, a member in it, or a line of it
	Message string `json:"message"`
}

func (f Finding) String() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// mostFindings bounds how many findings of one kind a report lists.
const mostFindings = 200

// findings gathers what is wrong. Errors make an archive invalid, warnings do not.
type findings struct {
	errors, warnings List[Finding]
	errorCount       int
	warningCount     int
}

func (f *findings) errorf(path, format string, args ...any) {
	if f.errorCount++; len(f.errors) < mostFindings {
		f.errors = append(f.errors, Finding{path, fmt.Sprintf(format, args...)})
	}
}

func (f *findings) warnf(path, format string, args ...any) {
	if f.warningCount++; len(f.warnings) < mostFindings {
		f.warnings = append(f.warnings, Finding{path, fmt.Sprintf(format, args...)})
	}
}

func (f *findings) must(holds bool, path, message string) {
	if !holds {
		f.errorf(path, "%s", message)
	}
}

func (f *findings) should(holds bool, path, message string) {
	if !holds {
		f.warnf(path, "%s", message)
	}
}

// unknown warns of the members of an object that the format does not know.
func (f *findings) unknown(members jsontext.Value, at string) {
	if len(members) == 0 {
		return
	}
	var named map[string]jsontext.Value
	if err := decode(members, &named); err != nil {
		f.errorf(at, "%v", err)
		return
	}
	for name := range named {
		f.warnf(at+name, "is not a member that the format knows; it is kept")
	}
}

// first returns the first error as an error, nil for none.
func (f *findings) first() error {
	if len(f.errors) == 0 {
		return nil
	}
	more := ""
	if f.errorCount > 1 {
		more = fmt.Sprintf(" (and %d more)", f.errorCount-1)
	}
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s%s", f.errors[0], more), "openclawssy alf validate lists everything that is wrong")
}

// required adds a finding for each member of the document that must be there
// and is not. See manifestRequired for the form of the names.
func (f *findings) required(entry string, raw []byte, names []string) {
	var doc any
	if err := decode(raw, &doc); err != nil {
		f.errorf(entry, "%v", err)
		return
	}
	for _, name := range names {
		f.requireMember(entry, "", doc, name)
	}
}

func (f *findings) requireMember(entry, at string, doc any, name string) {
	first, rest := cutMember(name)
	if first == "*" {
		list, isList := doc.([]any)
		if !isList {
			return // a wrong type is found when it is decoded
		}
		for i, element := range list {
			f.requireMember(entry, fmt.Sprintf("%s[%d]", at, i), element, rest)
		}
		return
	}
	object, isObject := doc.(map[string]any)
	if !isObject {
		return
	}
	if at != "" {
		at += "."
	}
	value, there := object[first]
	switch {
	case rest == "":
		f.must(there && value != nil, entry+"#"+at+first, "is missing")
	case there && value != nil:
		f.requireMember(entry, at+first, value, rest)
	}
}

func cutMember(name string) (first, rest string) {
	for i := range len(name) {
		if name[i] == '.' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

// identityRequired are the members that must be there in what an identity has.
var identityRequired = []string{
	"structured.names.primary", "structured.psychology.personality_traits.framework", "structured.psychology.personality_traits.scores",
	"structured.capabilities.*.name", "structured.sub_agents.*.name", "structured.sub_agents.*.capabilities", "structured.sub_agents.*.status",
	"structured.sub_agents.*.capabilities.*.name",
}

func (id *Identity) check(f *findings, entry string, agent uuid.UUID) {
	f.must(id.ID != uuid.Nil, entry+"#id", "is missing")
	f.must(id.AgentID == agent, entry+"#agent_id", "is not the manifest's agent")
	f.must(id.Version >= 1, entry+"#version", "must be 1 or more")
	f.must(!id.UpdatedAt.IsZero(), entry+"#updated_at", "is missing")
	f.unknown(id.Unknown, entry+"#")
	s := id.Structured
	if s == nil {
		return
	}
	if s.Names != nil {
		f.must(s.Names.Primary != "", entry+"#structured.names.primary", "is missing or empty")
	}
	checkCapabilities(f, entry+"#structured.capabilities", s.Capabilities)
	for i, sub := range s.SubAgents {
		at := fmt.Sprintf("%s#structured.sub_agents[%d]", entry, i)
		f.must(sub.Name != "", at+".name", "is missing or empty")
		f.must(sub.Status != "", at+".status", "is missing or empty")
		checkCapabilities(f, at+".capabilities", sub.Capabilities)
	}
}

func checkCapabilities(f *findings, at string, list List[Capability]) {
	for i, c := range list {
		f.must(c.Name != "", fmt.Sprintf("%s[%d].name", at, i), "is missing or empty")
	}
}

func (p *Principal) check(f *findings, at string) {
	f.must(p.ID != uuid.Nil, at+".id", "is missing")
	f.must(p.PrincipalType != "", at+".principal_type", "is missing or empty")
	f.should(p.PrincipalType == "" || p.PrincipalType == "human" || p.PrincipalType == "agent", at+".principal_type", "is not known: "+p.PrincipalType)
	f.must(p.Profile.ID != uuid.Nil, at+".profile.id", "is missing")
	f.must(p.Profile.AgentID != uuid.Nil, at+".profile.agent_id", "is missing")
	f.must(p.Profile.PrincipalID == p.ID, at+".profile.principal_id", "is not the principal's id")
	f.must(p.Profile.Version >= 1, at+".profile.version", "must be 1 or more")
	f.must(!p.Profile.UpdatedAt.IsZero(), at+".profile.updated_at", "is missing")
}

var credentialTypes = map[string]bool{"api_key": true, "oauth_token": true, "webhook_secret": true, "session_token": true, "ssh_key": true, "certificate": true, "custom": true}

func (c *Credential) check(f *findings, at string) {
	f.must(c.ID != uuid.Nil, at+".id", "is missing")
	f.must(c.AgentID != uuid.Nil, at+".agent_id", "is missing")
	f.must(c.Service != "", at+".service", "is missing or empty")
	f.must(c.CredentialType != "", at+".credential_type", "is missing or empty")
	f.should(c.CredentialType == "" || credentialTypes[c.CredentialType], at+".credential_type", "is not known: "+c.CredentialType)
	f.must(c.EncryptedPayload != "", at+".encrypted_payload", "is missing or empty")
	f.must(c.Encryption.Algorithm != "", at+".encryption.algorithm", "is missing or empty")
	f.must(c.Encryption.Nonce != "", at+".encryption.nonce", "is missing or empty")
	f.must(!c.CreatedAt.IsZero(), at+".created_at", "is missing")
}

func (a *Attachment) check(f *findings, at string) {
	f.must(a.ID != uuid.Nil, at+".id", "is missing")
	f.must(a.Filename != "", at+".filename", "is missing or empty")
	f.must(a.MediaType != "", at+".media_type", "is missing or empty")
	f.must(a.SizeBytes >= 0, at+".size_bytes", "must not be negative")
	f.must(a.Hash.Algorithm != "" && a.Hash.Value != "", at+".hash", "is missing")
	if err := CheckPath(a.SourcePath); err != nil {
		f.errorf(at+".source_path", "%v", err)
	}
}
