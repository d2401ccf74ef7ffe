package record

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// Filters narrow a list. A nil member is no filter; all given ones must hold.
// Times compare as instants, both ends included.
type Filters struct {
	TagsAny           []string `json:"tags_any,omitempty" jsonschema:"records that have one of these tags"`
	TagsAll           []string `json:"tags_all,omitempty" jsonschema:"records that have all of these tags"`
	Source            *string  `json:"source,omitempty" jsonschema:"records whose metadata name this source"`
	CreatedAfter      *string  `json:"created_after,omitempty" jsonschema:"RFC 3339; created then or later"`
	CreatedBefore     *string  `json:"created_before,omitempty" jsonschema:"RFC 3339; created then or earlier"`
	UpdatedAfter      *string  `json:"updated_after,omitempty" jsonschema:"RFC 3339; changed then or later"`
	UpdatedBefore     *string  `json:"updated_before,omitempty" jsonschema:"RFC 3339; changed then or earlier"`
	ValidAtAfter      *string  `json:"valid_at_after,omitempty" jsonschema:"RFC 3339; metadata valid_at then or later"`
	ValidAtBefore     *string  `json:"valid_at_before,omitempty" jsonschema:"RFC 3339; metadata valid_at then or earlier"`
	SinceLastAccessed *string  `json:"since_last_accessed,omitempty" jsonschema:"RFC 3339; metadata last_accessed then or later"`
	Limit             *int64   `json:"limit,omitempty" jsonschema:"records at most"`
	Offset            *int64   `json:"offset,omitempty" jsonschema:"records to leave out first"`
}

// filterNames are the JSON names of Filters.
var filterNames = []string{"tags_any", "tags_all", "source", "created_after", "created_before", "updated_after", "updated_before",
	"valid_at_after", "valid_at_before", "since_last_accessed", "limit", "offset"}

// parseFilters reads filters as the contract writes them. A member that is null
// was not given; names count letter by letter.
func parseFilters(raw json.RawMessage) (Filters, error) {
	o, err := parseObject("filters", raw)
	if err != nil {
		return Filters{}, err
	}
	for _, m := range o {
		if !slices.Contains(filterNames, m.name) {
			err := &memory.FieldError{Field: "filters." + m.name, Reason: "is no filter", Hint: "the filters are " + strings.Join(filterNames, ", ")}
			if near := memory.Nearest(m.name, filterNames); near != "" {
				err.Hint = "did you mean " + near + "?"
			}
			return Filters{}, err
		}
	}
	var f Filters
	if err := json.Unmarshal(o.raw(), &f); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return Filters{}, &memory.FieldError{Field: "filters." + wrong.Field, Reason: "must not be " + wrong.Value}
		}
		return Filters{}, memory.Errorf(memory.ErrInvalid, "filters: %w", err)
	}
	return f, f.check()
}

// check reports the first rule that f breaks.
func (f Filters) check() error {
	for _, list := range []struct {
		name string
		tags []string
	}{{"tags_any", f.TagsAny}, {"tags_all", f.TagsAll}} {
		if i := slices.Index(list.tags, ""); i >= 0 {
			return &memory.FieldError{Field: fmt.Sprintf("filters.%s[%d]", list.name, i), Reason: "must not be empty"}
		}
	}
	if err := notEmpty("filters.source", f.Source); err != nil {
		return err
	}
	for _, w := range f.windows() {
		if _, err := w.micros(); err != nil {
			return err
		}
	}
	return cmp.Or(notNegative("filters.limit", f.Limit), notNegative("filters.offset", f.Offset))
}

func notEmpty(field string, s *string) error {
	if s != nil && *s == "" {
		return &memory.FieldError{Field: field, Reason: "must not be empty", Hint: "leave it out, or give null"}
	}
	return nil
}

func notNegative(field string, n *int64) error {
	if n != nil && *n < 0 {
		return &memory.FieldError{Field: field, Reason: "must not be negative"}
	}
	return nil
}

// window is one end of a span of time that a record must lie in.
type window struct {
	name  string // of the filter
	time  *string
	expr  string // SQL of the record's time, in microseconds
	bound string // SQL comparison
}

func (w window) micros() (int64, error) {
	if w.time == nil {
		return 0, nil
	}
	t, _, ok := parseTime(*w.time)
	if !ok {
		return 0, &memory.FieldError{Field: w.name, Reason: fmt.Sprintf("must be a time such as 2026-03-01T00:00:00Z, not %q", *w.time)}
	}
	return t.UnixMicro(), nil
}

// Expressions of a record's times, in microseconds; NULL where it has none.
var (
	createdSQL  = instantSQL("r.created_at")
	updatedSQL  = instantSQL("r.updated_at")
	validSQL    = instantSQL(metadataSQL(metaValidAt))
	accessedSQL = instantSQL(metadataSQL(metaLastAccessed))
	sourceSQL   = metadataSQL(metaSource)
)

func metadataSQL(name string) string {
	return "CASE WHEN json_valid(r.metadata_json) THEN r.metadata_json ->> '$." + name + "' END"
}

func (f Filters) windows() []window {
	return []window{
		{"filters.created_after", f.CreatedAfter, createdSQL, ">="},
		{"filters.created_before", f.CreatedBefore, createdSQL, "<="},
		{"filters.updated_after", f.UpdatedAfter, updatedSQL, ">="},
		{"filters.updated_before", f.UpdatedBefore, updatedSQL, "<="},
		{"filters.valid_at_after", f.ValidAtAfter, validSQL, ">="},
		{"filters.valid_at_before", f.ValidAtBefore, validSQL, "<="},
		{"filters.since_last_accessed", f.SinceLastAccessed, accessedSQL, ">="},
	}
}

// Query asks for a list of records of one namespace.
type Query struct {
	Namespace string  `json:"namespace" jsonschema:"session, long_term, daily_log, workflow or ops" cli:"arg"`
	Kind      *string `json:"record_kind,omitempty" jsonschema:"only this kind"`
	Prefix    *string `json:"record_id_prefix,omitempty" jsonschema:"only ids that begin so, letter by letter"`
	Since     *string `json:"updated_since,omitempty" jsonschema:"RFC 3339; changed then or later"`
	Filters
}

func (q Query) check(c Config) error {
	if err := c.checkNamespace(q.Namespace); err != nil {
		return err
	}
	_, err := q.since().micros()
	return cmp.Or(notEmpty("record_kind", q.Kind), notEmpty("record_id_prefix", q.Prefix), err, q.Filters.check())
}

func (q Query) since() window { return window{"updated_since", q.Since, updatedSQL, ">="} }

// Entry is what a list tells of a record.
type Entry struct {
	Kind       string `json:"record_kind"`
	ID         string `json:"record_id"`
	CreatedAt  string `json:"created_at"`
	UpdatedAt  string `json:"updated_at"`
	TTLSeconds *int64 `json:"ttl_seconds"`
}

// List returns the records that q asks for, by kind, then id, in the order of
// their bytes; expired ones too, as long as they are stored. A limit above the
// configured one is brought down to it. more tells whether there were records
// beyond the limit.
func (s *Store) List(ctx context.Context, q Query) (entries []Entry, more bool, err error) {
	if err := q.check(s.config); err != nil {
		return nil, false, err
	}
	limit := int64(-1) // SQLite's word for no limit
	if q.Limit != nil {
		limit = min(*q.Limit, int64(s.config.ListLimit))
	}
	entries = []Entry{}
	if s.db == nil || limit == 0 {
		return entries, false, nil
	}
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		text, args, err := q.statement(ctx, tx)
		if err != nil {
			return err
		}
		offset := int64(0)
		if q.Offset != nil {
			offset = *q.Offset
		}
		ask := limit
		if limit > 0 {
			ask++ // one more tells whether there are more
		}
		rows, err := tx.QueryContext(ctx, text, append(args, ask, offset)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e Entry
			if err := rows.Scan(&e.Kind, &e.ID, &e.CreatedAt, &e.UpdatedAt, &e.TTLSeconds); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, false, fmt.Errorf("list records: %w", sqlite.Classify(err))
	}
	if limit > 0 && int64(len(entries)) > limit {
		return entries[:limit], true, nil
	}
	return entries, false, nil
}

const (
	fromRecords = "SELECT r.record_kind, r.record_id, r.created_at, r.updated_at, r.ttl_seconds FROM memory_records r WHERE "
	fromTags    = `SELECT t.record_kind, t.record_id, r.created_at, r.updated_at, r.ttl_seconds FROM memory_record_tags t CROSS JOIN memory_records r
		ON r.namespace = t.namespace AND r.record_kind = t.record_kind AND r.record_id = t.record_id WHERE t.namespace = ? AND t.tag = ? AND `
	inOrder = " ORDER BY 1, 2 LIMIT ? OFFSET ?"
)

// maxArms bounds the parts of a statement that merges the records of several
// tags; of more tags each record is asked.
const maxArms = 32

// statement makes the SQL of q, with parameters for limit and offset at its
// end. Whatever tags it drives by, an index delivers the rows in order, so a
// limit stops the reading early: a list of tags of which one suffices is the
// merged union of one statement per tag.
func (q Query) statement(ctx context.Context, tx *sql.Tx) (string, []any, error) {
	all, some := unique(q.TagsAll), unique(q.TagsAny)
	switch {
	case len(all) > 0:
		return q.byAllTags(ctx, tx, all, some)
	case 0 < len(some) && len(some) <= maxArms:
		return q.bySomeTags(some)
	}
	where, args, err := q.conditions("r")
	if err != nil {
		return "", nil, err
	}
	where, args, err = haveSome("r", where, args, some)
	return fromRecords + where + inOrder, args, err
}

func (q Query) bySomeTags(some []string) (string, []any, error) {
	where, each, err := q.conditions("t")
	if err != nil {
		return "", nil, err
	}
	var arms []string
	var args []any
	for _, tag := range some {
		arms = append(arms, fromTags+where)
		args = append(append(args, q.Namespace, tag), each...)
	}
	return strings.Join(arms, " UNION ") + inOrder, args, nil
}

func (q Query) byAllTags(ctx context.Context, tx *sql.Tx, all, some []string) (string, []any, error) {
	first, err := rarest(ctx, tx, q.Namespace, all)
	if err != nil {
		return "", nil, err
	}
	where, args, err := q.conditions("t")
	if err != nil {
		return "", nil, err
	}
	for _, tag := range all {
		if tag != first {
			where, args = where+" AND "+hasTag("t", "= ?"), append(args, tag)
		}
	}
	where, args, err = haveSome("t", where, args, some)
	return fromTags + where + inOrder, append([]any{q.Namespace, first}, args...), err
}

// hasTag is the condition that the record of a row of keys has a tag. Asked of
// the tags that a statement drives by, it comes before the record is read.
func hasTag(keys, tag string) string {
	return "EXISTS (SELECT 1 FROM memory_record_tags x WHERE x.namespace = " + keys + ".namespace AND x.record_kind = " + keys + ".record_kind AND x.record_id = " +
		keys + ".record_id AND x.tag " + tag + ")"
}

// haveSome adds the condition that a record has one of some tags, if any are given.
func haveSome(keys, where string, args []any, some []string) (string, []any, error) {
	if len(some) == 0 {
		return where, args, nil
	}
	list, err := encode(some)
	return where + " AND " + hasTag(keys, "IN (SELECT value FROM json_each(?))"), append(args, string(list)), err
}

// conditions makes the part of the statement that says which records are meant,
// tags apart. keys names the table whose index on kind and id is to be used.
func (q Query) conditions(keys string) (string, []any, error) {
	where, args := []string{"r.namespace = ?"}, []any{q.Namespace}
	if q.Kind != nil {
		where, args = append(where, keys+".record_kind = ?"), append(args, *q.Kind)
	}
	if q.Prefix != nil {
		where, args = append(where, keys+".record_id >= ? AND "+keys+".record_id < ?"), append(args, *q.Prefix, prefixEnd(*q.Prefix))
	}
	if q.Source != nil {
		where, args = append(where, sourceSQL+" = ?"), append(args, *q.Source)
	}
	for _, w := range append(q.windows(), q.since()) {
		if w.time == nil {
			continue
		}
		at, err := w.micros()
		if err != nil {
			return "", nil, err
		}
		where, args = append(where, "("+w.expr+") "+w.bound+" ?"), append(args, at)
	}
	return strings.Join(where, " AND "), args, nil
}

// prefixEnd returns the least text that is greater than all that begin with p.
// No byte of UTF-8 is 0xff, so the last one can be counted up.
func prefixEnd(p string) string {
	b := []byte(p)
	b[len(b)-1]++
	return string(b)
}

// maxCount bounds what counting a tag may cost: beyond, tags count as equally
// common.
const maxCount = 16 << 10

// rarest returns the tag that the fewest records have. It counts only as far as
// it takes to find one, so that a rare tag is found fast beside a common one.
func rarest(ctx context.Context, tx *sql.Tx, namespace string, tags []string) (string, error) {
	if len(tags) == 1 {
		return tags[0], nil
	}
	for bound := maxCount / 64; bound <= maxCount; bound *= 8 {
		for _, tag := range tags {
			var n int
			err := tx.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM memory_record_tags WHERE namespace = ? AND tag = ? LIMIT ?)", namespace, tag, bound).Scan(&n)
			if err != nil || n < bound {
				return tag, err
			}
		}
	}
	return tags[0], nil
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
