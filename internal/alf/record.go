package alf

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// The values of Record.MemoryType that the format knows. Others are kept and
// stand for Semantic.
const (
	Semantic   = "semantic"
	Episodic   = "episodic"
	Procedural = "procedural"
	Preference = "preference"
	Summary    = "summary"
)

// The values of Record.Status that the format knows. Others are kept and stand
// for Active.
const (
	Active     = "active"
	Superseded = "superseded"
	Archived   = "archived"
	Deleted    = "deleted"
)

// The values of Source.ExtractionMethod that the format knows.
const (
	AgentWritten = "agent_written"
	LLMExtracted = "llm_extracted"
	UserAuthored = "user_authored"
	Migrated     = "migrated"
)

// Record is one memory. Unknown holds the members that this package does not
// know; so it does in every type of this package.
type Record struct {
	ID              uuid.UUID      `json:"id"`
	AgentID         uuid.UUID      `json:"agent_id"`
	Content         string         `json:"content"`
	MemoryType      string         `json:"memory_type"`
	Source          Source         `json:"source"`
	Temporal        Temporal       `json:"temporal"`
	Status          string         `json:"status"`
	Namespace       string         `json:"namespace"`
	Category        string         `json:"category,omitzero"`
	Supersedes      uuid.UUID      `json:"supersedes,omitzero"`
	Confidence      *float64       `json:"confidence,omitzero"` // 0 to 1
	Entities        List[Entity]   `json:"entities,omitzero"`
	Tags            List[string]   `json:"tags,omitzero"`
	Embeddings      List[Embed]    `json:"embeddings,omitzero"`
	RelatedRecords  List[Related]  `json:"related_records,omitzero"`
	RawSourceFormat jsontext.Value `json:"raw_source_format,omitzero"` // the runtime's own form, any JSON
	Unknown         jsontext.Value `json:",embed"`
}

// Source says where and how a record was made.
type Source struct {
	Runtime          string         `json:"runtime"`
	RuntimeVersion   string         `json:"runtime_version,omitzero"`
	Origin           string         `json:"origin,omitzero"`
	OriginFile       string         `json:"origin_file,omitzero"` // workspace-relative, with slashes
	ExtractionMethod string         `json:"extraction_method,omitzero"`
	SessionID        string         `json:"session_id,omitzero"`
	InteractionID    string         `json:"interaction_id,omitzero"`
	IdentityVersion  int64          `json:"identity_version,omitzero"` // 1 or more; 0 for none
	Unknown          jsontext.Value `json:",embed"`
}

// Temporal is when a record was made, changed, observed, holds and was used.
type Temporal struct {
	CreatedAt      Time           `json:"created_at"`
	UpdatedAt      Time           `json:"updated_at,omitzero"`
	ObservedAt     Time           `json:"observed_at,omitzero"`
	ValidFrom      Time           `json:"valid_from,omitzero"`
	ValidUntil     Time           `json:"valid_until,omitzero"`
	LastAccessedAt Time           `json:"last_accessed_at,omitzero"`
	AccessCount    *uint64        `json:"access_count,omitzero"`
	Unknown        jsontext.Value `json:",embed"`
}

// Entity is somebody or something that a record names.
type Entity struct {
	Name    string         `json:"name"`
	Type    string         `json:"type"`
	Role    string         `json:"role,omitzero"`
	Unknown jsontext.Value `json:",embed"`
}

// Embed is a vector that was computed for a record's content.
type Embed struct {
	Model      string         `json:"model"` // provider/model
	Dimensions int            `json:"dimensions"`
	Vector     Vector         `json:"vector"`
	ComputedAt Time           `json:"computed_at"`
	Source     string         `json:"source"` // runtime, sync_service or import_adapter
	Unknown    jsontext.Value `json:",embed"`
}

// Related is a link to another record.
type Related struct {
	ID       uuid.UUID      `json:"id"`
	Relation string         `json:"relation"`
	Unknown  jsontext.Value `json:",embed"`
}

// Lines is the member raw_source_format of a record that was cut from a
// Markdown file: 1-based lines, both included.
type Lines struct {
	Heading *string        `json:"heading"`
	End     int            `json:"line_end"`
	Start   int            `json:"line_start"`
	Unknown jsontext.Value `json:",embed"`
}

// Lines returns the record's place in its file; false where it has none.
func (r *Record) Lines() (Lines, bool) {
	var l Lines
	if len(r.RawSourceFormat) == 0 || decode(r.RawSourceFormat, &l) != nil {
		return Lines{}, false
	}
	return l, l.Start > 0 && l.End >= l.Start
}

// Value encodes the lines as the member of a record.
func (l Lines) Value() jsontext.Value {
	text, err := line(l)
	if err != nil {
		return nil // only where Unknown is not JSON
	}
	return text
}

// Quarter is a quarter of a year in UTC: what one partition holds.
type Quarter struct{ Year, Number int }

// QuarterOf returns the quarter of an instant.
func QuarterOf(t Time) Quarter {
	u := t.UTC()
	return Quarter{u.Year(), (int(u.Month())-1)/3 + 1}
}

// Quarter returns the record's partition: that of its observation, else of its
// making.
func (r *Record) Quarter() Quarter {
	if !r.Temporal.ObservedAt.IsZero() {
		return QuarterOf(r.Temporal.ObservedAt)
	}
	return QuarterOf(r.Temporal.CreatedAt)
}

// File returns the name of the quarter's entry.
func (q Quarter) File() string { return fmt.Sprintf("memory/%d-Q%d.jsonl", q.Year, q.Number) }

// Days returns the quarter's first and last day as the format writes days.
func (q Quarter) Days() (first, last string) {
	start := time.Date(q.Year, time.Month(3*q.Number-2), 1, 0, 0, 0, 0, time.UTC)
	return day(start), day(start.AddDate(0, 3, -1))
}

// compare orders quarters by time.
func (q Quarter) compare(other Quarter) int {
	if q.Year != other.Year {
		return q.Year - other.Year
	}
	return q.Number - other.Number
}

var (
	memoryTypes       = []string{Semantic, Episodic, Procedural, Preference, Summary}
	statuses          = []string{Active, Superseded, Archived, Deleted}
	extractionMethods = []string{"", AgentWritten, LLMExtracted, UserAuthored, Migrated}
)

// recordRequired are the members that the elements of a record's lists must
// have, empty ones too.
var recordRequired = []string{"entities.*.name", "entities.*.type", "related_records.*.id", "related_records.*.relation"}

// check adds what is wrong with the record to the findings; at is its place.
func (r *Record) check(f *findings, at string) {
	f.must(r.ID != uuid.Nil, at+"id", "is missing")
	f.must(r.AgentID != uuid.Nil, at+"agent_id", "is missing")
	f.must(r.Content != "", at+"content", "is missing or empty")
	f.must(r.MemoryType != "", at+"memory_type", "is missing or empty")
	f.must(r.Source.Runtime != "", at+"source.runtime", "is missing or empty")
	f.must(!r.Temporal.CreatedAt.IsZero(), at+"temporal.created_at", "is missing")
	f.must(r.Status != "", at+"status", "is missing or empty")
	f.must(r.Namespace != "", at+"namespace", "is missing or empty")
	f.must(r.Source.IdentityVersion >= 0, at+"source.identity_version", "must be 1 or more")
	if c := r.Confidence; c != nil {
		f.must(!math.IsNaN(*c) && *c >= 0 && *c <= 1, at+"confidence", "must be between 0 and 1")
	}
	for i, e := range r.Embeddings {
		where := fmt.Sprintf("%sembeddings[%d].", at, i)
		f.must(e.Dimensions == len(e.Vector), where+"dimensions", fmt.Sprintf("is %d, but the vector has %d", e.Dimensions, len(e.Vector)))
		f.must(e.Model != "", where+"model", "is missing or empty")
		f.must(e.Vector != nil, where+"vector", "is missing")
		f.must(!e.ComputedAt.IsZero(), where+"computed_at", "is missing")
		f.must(e.Source != "", where+"source", "is missing or empty")
	}
	f.should(r.MemoryType == "" || slices.Contains(memoryTypes, r.MemoryType), at+"memory_type", "is not known: "+r.MemoryType)
	f.should(r.Status == "" || slices.Contains(statuses, r.Status), at+"status", "is not known: "+r.Status)
	f.should(slices.Contains(extractionMethods, r.Source.ExtractionMethod), at+"source.extraction_method", "is not known: "+r.Source.ExtractionMethod)
	f.unknown(r.Unknown, at)
}

// comparable is the record without what changes when its file is touched or
// grows above it.
func (r *Record) comparable() ([]byte, error) {
	c := *r
	c.Temporal.CreatedAt, c.Temporal.UpdatedAt = Time{}, Time{}
	if l, cut := r.Lines(); cut {
		l.Start, l.End = 0, 0
		c.RawSourceFormat = l.Value()
	}
	return line(&c)
}
