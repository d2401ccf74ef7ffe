package alf

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Version is the version of the format that is written.
const Version = "1.0.0"

// Names of entries that the format fixes or that the writer chooses.
const (
	manifestName      = "manifest.json"
	deltaManifestName = "delta-manifest.json"
	identityName      = "identity.json"
	principalsName    = "principals.json"
	credentialsName   = "credentials.json"
	attachmentsName   = "attachments.json"
	indexName         = "memory/index.json" // named in the manifest, never written
	deltaRecordsName  = "memory/delta.jsonl"
	rawPrefix         = "raw/"
	artifactPrefix    = "artifacts/"
)

// exporter marks the archives whose checksum this package made.
const exporter = "openclawssy"

// Manifest is manifest.json: whose archive it is and which layers it has.
type Manifest struct {
	ALFVersion   string         `json:"alf_version"`
	CreatedAt    Time           `json:"created_at"`
	Agent        Agent          `json:"agent"`
	RuntimeHints *RuntimeHints  `json:"runtime_hints,omitzero"`
	Sync         *Sync          `json:"sync,omitzero"`
	Layers       Layers         `json:"layers"`
	RawSources   List[string]   `json:"raw_sources,omitzero"`
	Checksum     string         `json:"checksum,omitzero"`
	Unknown      jsontext.Value `json:",embed"`
}

// Agent says whose life it is.
type Agent struct {
	ID                   uuid.UUID      `json:"id"`
	Name                 string         `json:"name"`
	SourceRuntime        string         `json:"source_runtime"`
	SourceRuntimeVersion string         `json:"source_runtime_version,omitzero"`
	Exporter             string         `json:"exporter,omitzero"` // "openclawssy" where the checksum is of our form
	Unknown              jsontext.Value `json:",embed"`
}

// RuntimeHints say what the agent ran on.
type RuntimeHints struct {
	PrimaryModel  string         `json:"primary_model"`
	LastModel     string         `json:"last_model"`
	Provider      string         `json:"provider,omitzero"`
	ContextWindow uint64         `json:"context_window,omitzero"` // tokens
	Notes         string         `json:"notes,omitzero"`
	Unknown       jsontext.Value `json:",embed"`
}

// Sync is the place of an archive in a chain of deltas.
type Sync struct {
	LastSequence uint64         `json:"last_sequence"`
	LastSyncAt   Time           `json:"last_sync_at,omitzero"`
	Unknown      jsontext.Value `json:",embed"`
}

// Layers are the layers that an archive has; nil for one that it has not.
type Layers struct {
	Identity    *IdentityLayer   `json:"identity,omitzero"`
	Principals  *CountedLayer    `json:"principals,omitzero"`
	Credentials *CountedLayer    `json:"credentials,omitzero"`
	Attachments *AttachmentLayer `json:"attachments,omitzero"`
	Memory      *MemoryLayer     `json:"memory,omitzero"`
	Unknown     jsontext.Value   `json:",embed"`
}

// IdentityLayer names the identity's entry.
type IdentityLayer struct {
	Version int64          `json:"version"`
	File    string         `json:"file"`
	Unknown jsontext.Value `json:",embed"`
}

// CountedLayer names the entry of a list.
type CountedLayer struct {
	Count   int            `json:"count"`
	File    string         `json:"file"`
	Unknown jsontext.Value `json:",embed"`
}

// AttachmentLayer names the attachments' entry, and how much of them is in the
// archive and how much is only listed.
type AttachmentLayer struct {
	Count               int            `json:"count"`
	IncludedCount       int            `json:"included_count"`
	IncludedSizeBytes   int64          `json:"included_size_bytes"`
	ReferencedCount     int            `json:"referenced_count"`
	ReferencedSizeBytes int64          `json:"referenced_size_bytes"`
	File                string         `json:"file"`
	Unknown             jsontext.Value `json:",embed"`
}

// MemoryLayer names the partitions of the records.
type MemoryLayer struct {
	RecordCount   int             `json:"record_count"`
	IndexFile     string          `json:"index_file"` // required, and read by nobody
	Partitions    List[Partition] `json:"partitions"`
	HasEmbeddings *bool           `json:"has_embeddings,omitzero"`
	HasRawSource  *bool           `json:"has_raw_source,omitzero"`
	Unknown       jsontext.Value  `json:",embed"`
}

// Partition is the records of one span of days.
type Partition struct {
	File        string         `json:"file"`
	From        string         `json:"from"` // YYYY-MM-DD
	To          string         `json:"to,omitzero"`
	RecordCount int            `json:"record_count"`
	Sealed      bool           `json:"sealed"` // nothing more will be added
	Unknown     jsontext.Value `json:",embed"`
}

// manifestRequired are the members without which no reader can go on. A * stands
// for each element of a list; a member that is absent above is not required
// below.
var manifestRequired = []string{
	"alf_version", "created_at", "agent", "agent.id", "agent.name", "agent.source_runtime", "layers",
	"layers.identity.version", "layers.identity.file", "layers.principals.count", "layers.principals.file",
	"layers.credentials.count", "layers.credentials.file", "layers.attachments.count", "layers.attachments.file",
	"layers.memory.record_count", "layers.memory.index_file", "layers.memory.partitions",
	"layers.memory.partitions.*.file", "layers.memory.partitions.*.from", "layers.memory.partitions.*.record_count", "layers.memory.partitions.*.sealed",
	"sync.last_sequence", "runtime_hints.primary_model", "runtime_hints.last_model",
}
