package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// The profiles of a Validator.
const (
	ProfileV1  = "v1"
	ProfileV11 = "v1.1"
)

// The kinds of Issue.
const (
	IssueError   = "error"
	IssueWarning = "warning"
)

// Issue is one finding about a record. Path is the member at fault, such as
// payload or [2].metadata.tags[0]; empty for the record itself.
type Issue struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Verdict is what a Validator finds. OK is true where no issue is an error.
type Verdict struct {
	OK     bool    `json:"ok"`
	Issues []Issue `json:"issues"`
}

// Failed reports whether there was an error.
func (v Verdict) Failed() bool { return !v.OK }

// Text is one line for each issue, or one that all is well.
func (v Verdict) Text() string {
	if len(v.Issues) == 0 {
		return "The records keep the contract.\n"
	}
	var b strings.Builder
	for _, i := range v.Issues {
		word, path := "ERROR", i.Path
		if i.Kind == IssueWarning {
			word = "WARN"
		}
		if path == "" {
			path = "<root>"
		}
		fmt.Fprintf(&b, "%s [%s]: %s\n", word, path, i.Message)
	}
	return b.String()
}

// kindRule is what the contract recommends for one kind.
type kindRule struct {
	namespace string
	wants     []string // the payload should have one of these; none is no wish
}

// kindRules are the eight kinds of the contract.
var kindRules = map[string]kindRule{
	"session.context":                  {session, nil},
	"workflow.token_cost_state":        {workflow, []string{"total_cost_usd", "total_tokens"}},
	"workflow.checkpoint":              {workflow, nil},
	"workflow.monitor_status_snapshot": {workflow, []string{"status", "monitors"}},
	"workflow.advisory_result":         {workflow, []string{"summary"}},
	userPreference:                     {longTerm, []string{"key", "name", "preferences"}},
	projectFact:                        {longTerm, []string{"fact", "text"}},
	dailyNote:                          {dailyLog, []string{entriesMember, "ts", "text"}},
}

// Validator checks records against the contract.
type Validator struct {
	namespaces []string
	strict     bool // profile v1.1
}

// NewValidator returns a validator for ProfileV1 (the one for "") or ProfileV11,
// with the namespaces of c.
//
// v1 checks what the reference checks. v1.1 also refuses an empty kind or id,
// any workflow.* kind outside of the namespace workflow, and metadata that
// breaks the rules of the RFC.
func NewValidator(profile string, c Config) (Validator, error) {
	c, err := c.complete()
	if err != nil {
		return Validator{}, err
	}
	if profile != "" && profile != ProfileV1 && profile != ProfileV11 {
		return Validator{}, &memory.FieldError{Field: "profile", Reason: fmt.Sprintf("must be v1 or v1.1, not %q", profile)}
	}
	return Validator{namespaces: c.Namespaces, strict: profile == ProfileV11}, nil
}

// Check validates one record or a list of them, as JSON.
func (v Validator) Check(raw json.RawMessage) (Verdict, error) {
	verdict := Verdict{OK: true, Issues: []Issue{}}
	if !json.Valid(raw) {
		return Verdict{}, &memory.FieldError{Field: "records", Reason: "must be JSON"}
	}
	raw = bytes.TrimSpace(raw)
	if !isList(raw) {
		verdict.add(v.record("", raw))
		return verdict, nil
	}
	list, err := items(raw)
	if err != nil {
		return Verdict{}, memory.Errorf(memory.ErrInvalid, "records: %w", err)
	}
	for i, r := range list {
		verdict.add(v.record(position(i), r))
	}
	return verdict, nil
}

// CheckFile validates a file: JSONL with lines, else JSON, an array or a single
// record, one record at a time. It reports progress.
func (v Validator) CheckFile(ctx context.Context, r io.Reader, lines bool) (Verdict, error) {
	if lines {
		return v.checkAll(ctx, ReadRecords(r, true), position)
	}
	f := newJSONFile(r)
	isArray, err := f.isArray()
	if err != nil {
		return Verdict{}, fmt.Errorf("validate: %w", err)
	}
	if isArray {
		return v.checkAll(ctx, f.each, position)
	}
	return v.checkAll(ctx, f.each, func(int) string { return "" })
}

// checkAll validates records one by one; path names them in the issues. It stops
// at the first record that cannot be read.
func (v Validator) checkAll(ctx context.Context, records iter.Seq2[json.RawMessage, error], path func(int) string) (Verdict, error) {
	verdict, i := Verdict{OK: true, Issues: []Issue{}}, 0
	for raw, err := range records {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return Verdict{}, fmt.Errorf("validate: %w", err)
		}
		verdict.add(v.record(path(i), raw))
		i++
		if i%progressStep == 0 {
			op.Report(ctx, op.Progress{Done: int64(i), Unit: "records"})
		}
	}
	return verdict, nil
}

func (v *Verdict) add(issues []Issue) {
	v.OK = v.OK && !hasError(issues)
	v.Issues = append(v.Issues, issues...)
}

func hasError(issues []Issue) bool {
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Kind == IssueError })
}

// checking is the state of checking one record.
type checking struct {
	Validator
	at     string // position in a list, "" for a single record
	issues []Issue
}

func (c *checking) add(kind, path, format string, args ...any) {
	if c.at != "" && path != "" {
		path = "." + path
	}
	c.issues = append(c.issues, Issue{kind, c.at + path, fmt.Sprintf(format, args...)})
}

// record lists the issues of one record.
func (v Validator) record(at string, raw json.RawMessage) []Issue {
	o, err := parseObject("record", raw)
	if err != nil {
		return v.notObject(at)
	}
	return v.members(at, o)
}

func (v Validator) notObject(at string) []Issue {
	return []Issue{{IssueError, at, "a record must be a JSON object"}}
}

// members lists the issues of one record that is an object.
func (v Validator) members(at string, o object) []Issue {
	c := &checking{Validator: v, at: at}
	namespace, hasNamespace := c.text(o, "namespace")
	kind, hasKind := c.text(o, "record_kind")
	id, hasID := c.text(o, "record_id")
	if hasNamespace && !slices.Contains(v.namespaces, namespace) {
		c.add(IssueError, "namespace", "%q is no namespace; they are %s", namespace, strings.Join(v.namespaces, ", "))
	}
	if v.strict && hasKind && kind == "" {
		c.add(IssueError, "record_kind", "must not be empty")
	}
	if v.strict && hasID && id == "" {
		c.add(IssueError, "record_id", "must not be empty")
	}
	if hasNamespace {
		c.kindBelongs(namespace, kind)
	}
	c.payload(o, kind)
	if ttl, given := o.get("ttl_seconds"); given && !isNull(ttl) {
		if _, err := decodeInteger(ttl); err != nil {
			c.add(IssueError, "ttl_seconds", "%v, or null", err)
		}
	}
	if metadata, given := o.get("metadata"); v.strict && given && !isNull(metadata) {
		c.metadata(metadata)
	}
	return c.issues
}

// text returns a member that must be a string.
func (c *checking) text(o object, name string) (string, bool) {
	raw, given := o.get(name)
	if !given {
		c.add(IssueError, name, "is missing")
		return "", false
	}
	s, err := decodeText(raw)
	if err != nil {
		c.add(IssueError, name, "%v", err)
		return "", false
	}
	return s, true
}

func (c *checking) kindBelongs(namespace, kind string) {
	home := kindRules[kind].namespace
	if home == "" && c.strict && strings.HasPrefix(kind, workflow+".") {
		home = workflow
	}
	if home != "" && home != namespace {
		c.add(IssueError, "namespace", "%s belongs into the namespace %s, not %q", kind, home, namespace)
	}
}

func (c *checking) payload(o object, kind string) {
	raw, given := o.get("payload")
	if !given {
		c.add(IssueError, "payload", "is missing")
		return
	}
	payload, err := parseObject("payload", raw)
	if err != nil {
		c.add(IssueError, "payload", "must be a JSON object")
		return
	}
	wants := kindRules[kind].wants
	if len(wants) > 0 && !slices.ContainsFunc(wants, func(name string) bool { _, has := payload.get(name); return has }) {
		c.add(IssueWarning, "payload", "%s usually has %s", kind, strings.Join(wants, " or "))
	}
}

func (c *checking) metadata(raw json.RawMessage) {
	o, err := parseObject("metadata", raw)
	if err != nil {
		c.add(IssueError, "metadata", "must be a JSON object or null")
		return
	}
	for _, f := range metadataFaults(o, true) {
		c.add(IssueError, "metadata."+f.path, "%s", f.reason)
	}
}

// CheckFilters validates the filters of a list (RFC 4.3); an unknown filter, a
// wrong type and a time that is none are errors.
func CheckFilters(raw json.RawMessage) Verdict {
	_, err := parseFilters(raw)
	if err == nil {
		return Verdict{OK: true, Issues: []Issue{}}
	}
	path := memory.FieldOf(err)
	return Verdict{Issues: []Issue{{IssueError, path, strings.TrimPrefix(err.Error(), path+" ")}}}
}
