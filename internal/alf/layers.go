package alf

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Identity is who the agent is: identity.json.
type Identity struct {
	ID           uuid.UUID           `json:"id"`
	AgentID      uuid.UUID           `json:"agent_id"`
	Version      int64               `json:"version"` // 1 or more; grows with every change
	UpdatedAt    Time                `json:"updated_at"`
	Structured   *StructuredIdentity `json:"structured,omitzero"`
	Prose        *ProseIdentity      `json:"prose,omitzero"`
	SourceFormat string              `json:"source_format,omitzero"`
	RawSource    jsontext.Value      `json:"raw_source,omitzero"`
	Unknown      jsontext.Value      `json:",embed"`
}

// StructuredIdentity is the part of an identity that a program can read.
type StructuredIdentity struct {
	Names           *Names           `json:"names,omitzero"`
	Role            string           `json:"role,omitzero"`
	Goals           List[string]     `json:"goals,omitzero"`
	Psychology      *Psychology      `json:"psychology,omitzero"`
	Linguistics     *Linguistics     `json:"linguistics,omitzero"`
	Capabilities    List[Capability] `json:"capabilities,omitzero"`
	SubAgents       List[SubAgent]   `json:"sub_agents,omitzero"`
	AIEOSExtensions jsontext.Value   `json:"aieos_extensions,omitzero"`
	Unknown         jsontext.Value   `json:",embed"`
}

// Names are what the agent is called.
type Names struct {
	Primary  string         `json:"primary"`
	Nickname string         `json:"nickname,omitzero"`
	Full     string         `json:"full,omitzero"`
	Unknown  jsontext.Value `json:",embed"`
}

// Psychology is the agent's character in numbers and types.
type Psychology struct {
	NeuralMatrix      Map[float64]   `json:"neural_matrix,omitzero"`
	PersonalityTraits *Traits        `json:"personality_traits,omitzero"`
	MoralAlignment    string         `json:"moral_alignment,omitzero"`
	MBTI              string         `json:"mbti,omitzero"`
	Unknown           jsontext.Value `json:",embed"`
}

// Traits are scores in a named framework.
type Traits struct {
	Framework string         `json:"framework"`
	Scores    Map[float64]   `json:"scores"`
	Unknown   jsontext.Value `json:",embed"`
}

// Linguistics is how the agent talks.
type Linguistics struct {
	FormalityLevel    *float64       `json:"formality_level,omitzero"`
	Verbosity         *float64       `json:"verbosity,omitzero"`
	HumorLevel        *float64       `json:"humor_level,omitzero"`
	SlangUsage        *bool          `json:"slang_usage,omitzero"`
	PreferredLanguage string         `json:"preferred_language,omitzero"`
	Idiolect          *Idiolect      `json:"idiolect,omitzero"`
	Unknown           jsontext.Value `json:",embed"`
}

// Idiolect is the agent's own turns of phrase.
type Idiolect struct {
	Catchphrases List[string]   `json:"catchphrases,omitzero"`
	VerbalTics   List[string]   `json:"verbal_tics,omitzero"`
	AvoidedWords List[string]   `json:"avoided_words,omitzero"`
	Unknown      jsontext.Value `json:",embed"`
}

// Capability is something that an agent can do.
type Capability struct {
	Name             string          `json:"name"`
	Description      string          `json:"description,omitzero"`
	Priority         int64           `json:"priority,omitzero"`
	Portability      string          `json:"portability,omitzero"` // intrinsic or host_dependent
	HostRequirements string          `json:"host_requirements,omitzero"`
	CredentialIDs    List[uuid.UUID] `json:"credential_ids,omitzero"`
	Unknown          jsontext.Value  `json:",embed"`
}

// SubAgent is an agent that this one gives work to.
type SubAgent struct {
	AgentID          *uuid.UUID       `json:"agent_id"` // null where it is not known
	Name             string           `json:"name"`
	Description      string           `json:"description,omitzero"`
	Capabilities     List[Capability] `json:"capabilities"`
	ModelHints       jsontext.Value   `json:"model_hints,omitzero"`
	RoutingHints     string           `json:"routing_hints,omitzero"`
	Status           string           `json:"status"` // active, inactive or unavailable
	LastInvokedAt    Time             `json:"last_invoked_at,omitzero"`
	PerformanceNotes string           `json:"performance_notes,omitzero"`
	Unknown          jsontext.Value   `json:",embed"`
}

// ProseIdentity is the text that a model reads: whole files.
type ProseIdentity struct {
	Soul                  string         `json:"soul,omitzero"`
	OperatingInstructions string         `json:"operating_instructions,omitzero"`
	IdentityProfile       string         `json:"identity_profile,omitzero"`
	CustomBlocks          Map[string]    `json:"custom_blocks,omitzero"`
	Unknown               jsontext.Value `json:",embed"`
}

// Principals is principals.json: whom the agent takes direction from.
type Principals struct {
	Principals List[Principal] `json:"principals"`
	Unknown    jsontext.Value  `json:",embed"`
}

// Principal is one of them.
type Principal struct {
	ID            uuid.UUID      `json:"id"`
	PrincipalType string         `json:"principal_type"` // human or agent
	AgentID       *uuid.UUID     `json:"agent_id,omitzero"`
	Profile       Profile        `json:"profile"`
	Unknown       jsontext.Value `json:",embed"`
}

// Profile is what is known of a principal. It has versions of its own.
type Profile struct {
	ID           uuid.UUID          `json:"id"`
	AgentID      uuid.UUID          `json:"agent_id"`
	PrincipalID  uuid.UUID          `json:"principal_id"`
	Version      int64              `json:"version"`
	UpdatedAt    Time               `json:"updated_at"`
	Structured   *StructuredProfile `json:"structured,omitzero"`
	Prose        *ProseProfile      `json:"prose,omitzero"`
	SourceFormat string             `json:"source_format,omitzero"`
	RawSource    jsontext.Value     `json:"raw_source,omitzero"`
	Unknown      jsontext.Value     `json:",embed"`
}

// StructuredProfile is the part of a profile that a program can read.
type StructuredProfile struct {
	Name                     string               `json:"name,omitzero"`
	PrincipalType            string               `json:"principal_type,omitzero"`
	Timezone                 string               `json:"timezone,omitzero"`
	Locale                   string               `json:"locale,omitzero"`
	CommunicationPreferences *Communication       `json:"communication_preferences,omitzero"`
	WorkContext              *WorkContext         `json:"work_context,omitzero"`
	Relationships            List[jsontext.Value] `json:"relationships,omitzero"`
	CustomFields             Map[jsontext.Value]  `json:"custom_fields,omitzero"`
	Unknown                  jsontext.Value       `json:",embed"`
}

// Communication is how a principal wants to be talked to.
type Communication struct {
	Tone           string         `json:"tone,omitzero"`
	ResponseLength string         `json:"response_length,omitzero"`
	Formatting     string         `json:"formatting,omitzero"`
	Unknown        jsontext.Value `json:",embed"`
}

// WorkContext is what a principal works on.
type WorkContext struct {
	Role     string         `json:"role,omitzero"`
	Company  string         `json:"company,omitzero"`
	Projects List[string]   `json:"projects,omitzero"`
	Unknown  jsontext.Value `json:",embed"`
}

// ProseProfile is the text of a profile: a whole file.
type ProseProfile struct {
	UserProfile string         `json:"user_profile,omitzero"`
	Unknown     jsontext.Value `json:",embed"`
}

// Credentials is credentials.json: what the agent can sign in to.
type Credentials struct {
	Credentials List[Credential] `json:"credentials"`
	Unknown     jsontext.Value   `json:",embed"`
}

// Credential is one of them. Its payload is encrypted, or a placeholder.
type Credential struct {
	ID                  uuid.UUID      `json:"id"`
	AgentID             uuid.UUID      `json:"agent_id"`
	Service             string         `json:"service"`
	CredentialType      string         `json:"credential_type"`
	EncryptedPayload    string         `json:"encrypted_payload"`
	Encryption          Encryption     `json:"encryption"`
	CreatedAt           Time           `json:"created_at"`
	Label               string         `json:"label,omitzero"`
	CapabilitiesGranted List[string]   `json:"capabilities_granted,omitzero"`
	UpdatedAt           Time           `json:"updated_at,omitzero"`
	LastRotatedAt       Time           `json:"last_rotated_at,omitzero"`
	ExpiresAt           Time           `json:"expires_at,omitzero"`
	Tags                List[string]   `json:"tags,omitzero"`
	Unknown             jsontext.Value `json:",embed"`
}

// Encryption says how a payload was encrypted.
type Encryption struct {
	Algorithm string         `json:"algorithm"`
	Nonce     string         `json:"nonce"`
	KDF       string         `json:"kdf,omitzero"`
	KDFParams jsontext.Value `json:"kdf_params,omitzero"`
	Unknown   jsontext.Value `json:",embed"`
}

// Withheld fills in a credential the payload and encryption of a secret that
// was not exported: a fixed marker in base64, and a nonce that is not empty,
// which readers insist on.
func (c *Credential) Withheld() {
	c.EncryptedPayload = "bm90LWV4cG9ydGVk" // "not-exported"
	c.Encryption = Encryption{Algorithm: "none", Nonce: "AA=="}
}

// Attachments is attachments.json: the workspace's other files.
type Attachments struct {
	SizeThreshold int64            `json:"artifact_size_threshold,omitzero"` // bytes; larger files are only listed
	Attachments   List[Attachment] `json:"attachments"`
	Unknown       jsontext.Value   `json:",embed"`
}

// Attachment is one file. ArchivePath is nil where its bytes are not in the
// archive.
type Attachment struct {
	ID           uuid.UUID       `json:"id"`
	Filename     string          `json:"filename"`
	MediaType    string          `json:"media_type"`
	SizeBytes    int64           `json:"size_bytes"`
	Hash         Hash            `json:"hash"`
	SourcePath   string          `json:"source_path"` // workspace-relative, with slashes
	ArchivePath  *string         `json:"archive_path"`
	RemoteRef    *string         `json:"remote_ref"`
	ReferencedBy List[uuid.UUID] `json:"referenced_by,omitzero"` // records that name it
	Unknown      jsontext.Value  `json:",embed"`
}

// Hash is the digest of a file's bytes.
type Hash struct {
	Algorithm string         `json:"algorithm"`
	Value     string         `json:"value"`
	Unknown   jsontext.Value `json:",embed"`
}

// ArtifactPath returns the entry that holds an attachment's bytes.
func ArtifactPath(sourcePath string) string { return artifactPrefix + sourcePath }
