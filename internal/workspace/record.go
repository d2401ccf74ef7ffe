package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// idSpace is the namespace of the record ids: the bytes openclaw-alf-ns1.
var idSpace = uuid.UUID([]byte("openclaw-alf-ns1"))

// RecordID returns the id of the record of a name, such as MEMORY.md:0.
func RecordID(name string) uuid.UUID { return uuid.NewSHA1(idSpace, []byte(name)) }

// Record is one piece of a workspace's memory. Content shares its memory with
// the other records of the file.
type Record struct {
	ID               uuid.UUID // version 5, of IDName
	IDName           string    // origin file, a colon and the index in the file
	OriginFile       string    // relative to the workspace, with slashes
	Namespace        string
	MemoryType       string
	ExtractionMethod string
	Category         string   // word of the first importance tag; "" for none
	Confidence       *float64 // greatest importance within 0 and 1; nil for none
	Tags             []string // the namespace first
	CreatedAt        time.Time
	UpdatedAt        time.Time
	ObservedAt       *time.Time // of dated files: their day at midnight UTC
	Heading          *string    // without its marks; nil for none
	LineStart        int        // 1 for the first line
	LineEnd          int        // included
	Content          string
}

// Sum returns the SHA-256 of the content in hex.
func (r Record) Sum() string {
	sum := sha256.Sum256([]byte(r.Content))
	return hex.EncodeToString(sum[:])
}

// Partition returns the archive entry that the record belongs in: the quarter
// of the day it was observed, else created.
func (r Record) Partition() string {
	t := r.CreatedAt
	if r.ObservedAt != nil {
		t = *r.ObservedAt
	}
	t = t.UTC()
	return fmt.Sprintf("memory/%d-Q%d.jsonl", t.Year(), (int(t.Month())+2)/3)
}

// View is a record as it is shown: everything but the content.
type View struct {
	ID               string   `json:"id"`
	IDName           string   `json:"id_name"`
	OriginFile       string   `json:"origin_file"`
	Namespace        string   `json:"namespace"`
	MemoryType       string   `json:"memory_type"`
	ExtractionMethod string   `json:"extraction_method"`
	Category         *string  `json:"category"`
	Confidence       *float64 `json:"confidence"`
	Tags             []string `json:"tags"`
	CreatedAt        string   `json:"created_at"`
	UpdatedAt        string   `json:"updated_at"`
	ObservedAt       *string  `json:"observed_at"`
	Heading          *string  `json:"heading"`
	LineStart        int      `json:"line_start"`
	LineEnd          int      `json:"line_end"`
	ContentSHA256    string   `json:"content_sha256"`
	ContentBytes     int      `json:"content_bytes"`
	Partition        string   `json:"partition"`
}

// View returns the record as it is shown.
func (r Record) View() View {
	v := View{ID: r.ID.String(), IDName: r.IDName, OriginFile: r.OriginFile, Namespace: r.Namespace, MemoryType: r.MemoryType,
		ExtractionMethod: r.ExtractionMethod, Confidence: r.Confidence, Tags: r.Tags, CreatedAt: FormatTime(r.CreatedAt),
		UpdatedAt: FormatTime(r.UpdatedAt), Heading: r.Heading, LineStart: r.LineStart, LineEnd: r.LineEnd,
		ContentSHA256: r.Sum(), ContentBytes: len(r.Content), Partition: r.Partition()}
	if r.Category != "" {
		v.Category = &r.Category
	}
	if r.ObservedAt != nil {
		text := FormatTime(*r.ObservedAt)
		v.ObservedAt = &text
	}
	return v
}

// FormatTime writes a time as the reference client does: UTC, with no, 3, 6 or 9
// digits of a second's fraction, and years of other than four digits signed.
func FormatTime(t time.Time) string {
	t = t.UTC()
	form := "T15:04:05"
	switch ns := t.Nanosecond(); {
	case ns == 0:
	case ns%1e6 == 0:
		form += ".000"
	case ns%1e3 == 0:
		form += ".000000"
	default:
		form += ".000000000"
	}
	return FormatDay(t) + t.Format(form) + "Z"
}

// FormatDay writes the UTC day of a time as FormatTime does.
func FormatDay(t time.Time) string {
	t = t.UTC()
	year := fmt.Sprintf("%04d", t.Year())
	if t.Year() < 0 || t.Year() > 9999 {
		year = fmt.Sprintf("%+05d", t.Year())
	}
	return year + t.Format("-01-02")
}

// RecordsOf cuts the text of one file into its records, in the order of their
// lines. The text is UTF-8. What is odd in it is reported through notice.
func RecordsOf(f File, text string, split Split, notice func(Notice)) iter.Seq[Record] {
	origin := f.Origin()
	c := classify(origin)
	if c.dated && !c.exact {
		notice(Notice{File: origin, Reason: "it counts as the daily log of " + FormatDay(c.day) + "; name it YYYY-MM-DD.md"})
	}
	base := Record{OriginFile: origin, Namespace: c.namespace, MemoryType: c.memoryType, ExtractionMethod: c.method, CreatedAt: f.ModTime, UpdatedAt: f.ModTime}
	if c.dated {
		base.CreatedAt, base.ObservedAt = c.day, &c.day
	}
	return func(yield func(Record) bool) {
		index := 0
		for s := range cut(c, text, split) {
			if !yield(base.with(s, origin+idNames[split]+strconv.Itoa(index), notice)) {
				return
			}
			index++
		}
	}
}

// cut chooses how a file is cut.
func cut(c class, text string, split Split) iter.Seq[section] {
	switch {
	case c.namespace == ActiveContext:
		return whole(text)
	case split == SplitRows && c.memoryType == Procedure:
		return rows(text)
	}
	return sections(text, split == SplitFenceAware)
}

// with returns the record of one section of the file that r is of.
func (r Record) with(s section, idName string, notice func(Notice)) Record {
	m := readMarks(s.text, r.Namespace)
	for _, n := range m.outside {
		notice(Notice{File: r.OriginFile, Line: s.start + n, Reason: "an importance outside of 0 to 1 gives no confidence"})
	}
	r.ID, r.IDName = RecordID(idName), idName
	r.Category, r.Confidence, r.Tags = m.category, m.confidence, m.tags
	if s.headed {
		r.Heading = &s.heading
	}
	r.LineStart, r.LineEnd, r.Content = s.start, s.end, s.text
	return r
}
