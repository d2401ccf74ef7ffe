package alf

import (
	"archive/zip"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Report is what Validate found. Errors are what the client's validator or any
// safe reader would refuse; warnings are what is odd and read all the same.
type Report struct {
	OK       bool          `json:"ok"`
	Valid    bool          `json:"valid"`
	Kind     string        `json:"kind"` // archive or delta
	Records  int           `json:"memory_records"`
	Errors   List[Finding] `json:"errors"`
	Warnings List[Finding] `json:"warnings"`
	// ErrorCount and WarningCount count also those beyond the first 200 of each.
	ErrorCount   int `json:"error_count"`
	WarningCount int `json:"warning_count"`
}

// Failed reports whether the archive is not valid.
func (r Report) Failed() bool { return !r.Valid }

// Text is the report for a person.
func (r Report) Text() string {
	var sb strings.Builder
	if r.Valid {
		fmt.Fprintf(&sb, "Valid %s of %d records.\n", r.Kind, r.Records)
	} else {
		fmt.Fprintf(&sb, "Not valid: %d errors.\n", r.ErrorCount)
	}
	for _, f := range r.Errors {
		fmt.Fprintf(&sb, "  error: %s\n", f)
	}
	for _, f := range r.Warnings {
		fmt.Fprintf(&sb, "  warning: %s\n", f)
	}
	if more := r.ErrorCount + r.WarningCount - len(r.Errors) - len(r.Warnings); more > 0 {
		fmt.Fprintf(&sb, "  and %d more\n", more)
	}
	return sb.String()
}

// Validate checks the archive or delta in a file: everything the client's
// validator checks, and entry names, sizes, checksums, files and doubled ids,
// which it does not. It fails only where the file cannot be opened.
func Validate(path string, lim Limits) (Report, error) {
	f, size, err := openFile(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	return ValidateReader(f, size, lim), nil
}

// readerAt is what a ZIP file is read from.
type readerAt interface {
	ReadAt(p []byte, off int64) (int, error)
}

// ValidateReader is Validate for an archive of the given size in bytes.
func ValidateReader(in readerAt, size int64, lim Limits) Report {
	v := validator{lim: lim, ids: map[uuid.UUID]bool{}}
	kind := v.run(in, size)
	none := func(l List[Finding]) List[Finding] {
		if l == nil {
			return List[Finding]{}
		}
		return l
	}
	valid := v.errorCount == 0
	return Report{OK: valid, Valid: valid, Kind: kind, Records: v.records, Errors: none(v.errors), Warnings: none(v.warnings), ErrorCount: v.errorCount, WarningCount: v.warningCount}
}

type validator struct {
	findings
	lim     Limits
	entries map[string]*zip.File
	ids     map[uuid.UUID]bool
	records int
}

func (v *validator) run(in readerAt, size int64) (kind string) {
	var err error
	if v.entries, err = unzip(in, size, v.lim, &v.findings); err != nil {
		v.errorf("", "%v", err)
		return "file"
	}
	if v.entries == nil {
		return "file" // over a limit: nothing in it is believed
	}
	if isDelta(v.entries) {
		v.delta()
		return "delta"
	}
	v.archive()
	return "archive"
}

// document decodes an entry that a manifest names; false where it cannot.
func (v *validator) document(name string, to any, required ...string) bool {
	before := v.errorCount
	e := v.entries[name]
	if e == nil {
		v.errorf(name, "is missing")
		return false
	}
	text, err := readDocument(e, v.lim)
	if err != nil {
		v.errorf(name, "%v", err)
		return false
	}
	if err := decode(text, to); err != nil {
		v.errorf(name, "%v", err)
		return false
	}
	v.required(name, text, required)
	return v.errorCount == before
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// header checks what both manifests have.
func (v *validator) header(entry, version, checksum string) {
	v.must(semver.MatchString(version), entry+"#alf_version", "must be of the form 1.0.0")
	v.should(strings.HasPrefix(version, "1.") || !semver.MatchString(version), entry+"#alf_version", "is of another generation than 1")
	v.must(checksum == "" || validChecksum(checksum), entry+"#checksum", "must be of the form algorithm:hex")
}

const negative = "must not be negative"

func (v *validator) archive() {
	var m Manifest
	if !v.document(manifestName, &m, manifestRequired...) {
		return
	}
	v.header(manifestName, m.ALFVersion, m.Checksum)
	v.must(m.Agent.ID != uuid.Nil, manifestName+"#agent.id", "is missing")
	v.must(m.Agent.Name != "", manifestName+"#agent.name", "is empty")
	v.must(m.Agent.SourceRuntime != "", manifestName+"#agent.source_runtime", "is empty")
	v.unknown(m.Unknown, manifestName+"#")
	l := m.Layers
	if l.Identity != nil {
		var id Identity
		v.must(l.Identity.Version >= 0, manifestName+"#layers.identity.version", negative)
		if v.document(l.Identity.File, &id, identityRequired...) {
			id.check(&v.findings, l.Identity.File, m.Agent.ID)
		}
	}
	if l.Principals != nil {
		v.must(l.Principals.Count >= 0, manifestName+"#layers.principals.count", negative)
		v.principals(l.Principals.File, l.Principals.Count)
	}
	if l.Credentials != nil {
		v.must(l.Credentials.Count >= 0, manifestName+"#layers.credentials.count", negative)
		v.credentials(l.Credentials.File, l.Credentials.Count)
	}
	if l.Attachments != nil {
		v.attachments(l.Attachments.File, l.Attachments.Count)
	}
	if l.Memory != nil {
		v.memory(*l.Memory)
	}
	v.verify(manifestName, m.Checksum, m.Agent.Exporter)
}

// principals checks a list of principals; count is -1 where none is told.
func (v *validator) principals(file string, count int) {
	var list Principals
	if !v.document(file, &list, "principals") {
		return
	}
	v.should(count < 0 || count == len(list.Principals), file, fmt.Sprintf("has %d principals, and the manifest says %d", len(list.Principals), count))
	for i := range list.Principals {
		list.Principals[i].check(&v.findings, fmt.Sprintf("%s#principals[%d]", file, i))
	}
}

func (v *validator) credentials(file string, count int) {
	var list Credentials
	if !v.document(file, &list, "credentials") {
		return
	}
	v.should(count < 0 || count == len(list.Credentials), file, fmt.Sprintf("has %d credentials, and the manifest says %d", len(list.Credentials), count))
	for i := range list.Credentials {
		list.Credentials[i].check(&v.findings, fmt.Sprintf("%s#credentials[%d]", file, i))
	}
}

func (v *validator) attachments(file string, count int) {
	var list Attachments
	if !v.document(file, &list, "attachments", "attachments.*.size_bytes") {
		return
	}
	v.should(count < 0 || count == len(list.Attachments), file, fmt.Sprintf("has %d attachments, and the manifest says %d", len(list.Attachments), count))
	for i := range list.Attachments {
		at := fmt.Sprintf("%s#attachments[%d]", file, i)
		a := &list.Attachments[i]
		a.check(&v.findings, at)
		if a.ArchivePath != nil {
			v.must(v.entries[*a.ArchivePath] != nil, at+".archive_path", "names "+*a.ArchivePath+", which is not in the archive")
		}
	}
}

func (v *validator) memory(l MemoryLayer) {
	told, last := 0, time.Time{}
	for i, p := range l.Partitions {
		at := fmt.Sprintf("%s#layers.memory.partitions[%d]", manifestName, i)
		from, err := ParseTime(p.From + "T00:00:00Z")
		v.must(err == nil, at+".from", fmt.Sprintf("is no date: %.40q", p.From))
		v.must(i == 0 || !from.Before(last), at+".from", "goes backwards")
		v.must(!p.Sealed || p.To != "", at+".to", "is missing in a sealed partition")
		last = from.Time
		told += p.RecordCount
		before := v.records
		v.partition(p.File)
		v.must(v.records-before == p.RecordCount, at+".record_count", fmt.Sprintf("is %d, and there are %d", p.RecordCount, v.records-before))
	}
	v.must(told == l.RecordCount, manifestName+"#layers.memory.record_count", fmt.Sprintf("is %d, and its partitions have %d", l.RecordCount, told))
}

func (v *validator) partition(file string) {
	for at, text := range lines(v.entries[file], file, v.lim) {
		if at.err != nil {
			v.errorf(file, "%v", at.err)
			return
		}
		v.records++
		var r Record
		if err := decode(text, &r); err != nil {
			v.errorf(at.String(), "%v", err)
			continue
		}
		r.check(&v.findings, at.String()+"#")
		v.elements(at, text, &r)
		v.should(!v.ids[r.ID], at.String()+"#id", "stands twice: "+r.ID.String())
		v.ids[r.ID] = true
		if r.Source.OriginFile != "" {
			if err := CheckPath(r.Source.OriginFile); err != nil {
				v.warnf(at.String()+"#source.origin_file", "%v", err)
			}
		}
	}
}

// elements checks that what a record's lists hold has its members; text is the
// record's line.
func (v *validator) elements(at lineAt, text []byte, r *Record) {
	if len(r.Entities)+len(r.RelatedRecords) > 0 {
		v.required(at.String(), text, recordRequired)
	}
}

func (v *validator) delta() {
	name := deltaManifestName
	if v.entries[name] == nil {
		name = manifestName
	}
	var m DeltaManifest
	if !v.document(name, &m, deltaRequired...) {
		return
	}
	v.should(name == deltaManifestName, name, "is the specification's name: the client alf reads "+deltaManifestName+" only")
	v.header(name, m.ALFVersion, m.Checksum)
	v.must(m.Agent.ID != uuid.Nil, name+"#agent.id", "is missing")
	c := m.Changes
	if c.Identity != nil && c.Identity.File != "" {
		var id Identity
		if v.document(c.Identity.File, &id, identityRequired...) {
			id.check(&v.findings, c.Identity.File, m.Agent.ID)
		}
	}
	if c.Principals != nil && c.Principals.File != "" {
		v.principals(c.Principals.File, -1)
	}
	if c.Credentials != nil && c.Credentials.File != "" {
		v.credentials(c.Credentials.File, -1)
	}
	if c.Memory != nil && c.Memory.File != "" {
		v.changes(c.Memory.File, c.Memory.RecordCount)
	}
	if c.Raw != nil {
		for i, f := range c.Raw.Changed {
			v.must(v.entries[f.Path] != nil, fmt.Sprintf("%s#changes.raw.changed[%d]", name, i), "names "+f.Path+", which is not in the archive")
		}
	}
	v.verify(name, m.Checksum, m.Agent.Exporter)
}

func (v *validator) changes(file string, told int) {
	for at, text := range lines(v.entries[file], file, v.lim) {
		if at.err != nil {
			v.errorf(file, "%v", at.err)
			return
		}
		v.records++
		var c Change
		if err := decode(text, &c); err != nil {
			v.errorf(at.String(), "%v", err)
			continue
		}
		switch c.Operation {
		case Create, Update:
			c.check(&v.findings, at.String()+"#")
			v.elements(at, text, &c.Record)
		case Delete:
			v.must(c.ID != uuid.Nil, at.String()+"#id", "is missing")
			v.should(c.Content != "", at.String(), "deletes without the record: the client alf cannot read that")
		default:
			v.warnf(at.String()+"#operation", "is not known: %q", c.Operation)
		}
	}
	v.should(told == 0 || told == v.records, file, fmt.Sprintf("has %d changes, and the manifest says %d", v.records, told))
}

// verify reads every entry to its end and compares the checksum.
func (v *validator) verify(manifest, checksum, by string) {
	ours, err := verify(v.entries, manifest, checksum, by)
	var damage *memory.CorruptError
	switch {
	case errors.As(err, &damage):
		v.errorf(damage.Path, "%s", damage.Reason)
	case err != nil:
		v.errorf(manifest+"#checksum", "%v", err)
	case checksum != "" && !ours:
		v.warnf(manifest+"#checksum", "is of a form that is not known here, and was not compared")
	}
}
