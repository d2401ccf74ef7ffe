package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// DefaultSoon is the window of a report for what expires soon, in seconds.
const DefaultSoon = 24 * 60 * 60

// How many records a report names.
const (
	expiredSample = 100
	soonSample    = 200
)

// ReportQuery says what a retention report is about; empty names mean all.
type ReportQuery struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"only this namespace; all if absent"`
	Kind      string `json:"record_kind,omitempty" jsonschema:"only this kind; all if absent"`
	Soon      *int64 `json:"expire_soon_seconds,omitempty" jsonschema:"how far ahead to look for what expires, in seconds; 86400 if absent"`
}

// Report is a retention report: what is stored, what will expire, and what has
// expired and is still stored because Prune has not run. Times of age and expiry
// are in whole seconds.
type Report struct {
	DBPath          string  `json:"db_path"`
	NamespaceFilter *string `json:"namespace_filter"`
	KindFilter      *string `json:"record_kind_filter"`
	Soon            int64   `json:"expire_soon_seconds"`
	// Error is set where there was nothing to report on.
	Error           string           `json:"error,omitempty"`
	Summary         Summary          `json:"summary"`
	ByNamespace     []NamespaceCount `json:"by_namespace"`   // most records first
	ByKind          []KindCount      `json:"by_record_kind"` // most records first
	Coverage        TTLCoverage      `json:"ttl_coverage"`
	CoverageDetail  CoverageDetail   `json:"ttl_coverage_detail"`
	Ages            map[string]int64 `json:"age_distribution"` // by time of the last change; only buckets that hold something
	SoonCount       int64            `json:"expiring_soon_count"`
	ExpiringSoon    []Expiring       `json:"expiring_soon"` // the next 200
	ExpiredCount    int64            `json:"expired_count"`
	ExpiredSample   []Expired        `json:"expired_sample"`             // the oldest 100
	DuplicatesAside int64            `json:"duplicates_aside,omitempty"` // rows of a double key that the adoption of the database set aside
}

// Summary are the overall totals of a Report. Where there was nothing to report
// on, it has the first alone.
type Summary struct {
	Total    int64  `json:"total_records"`
	With     *int64 `json:"with_ttl,omitempty"`
	Without  *int64 `json:"without_ttl,omitempty"`
	Expired  *int64 `json:"expired_count,omitempty"`
	Expiring *int64 `json:"expiring_soon_count,omitempty"`
}

// TTLCoverage counts records with and without a ttl.
type TTLCoverage struct {
	With    int64 `json:"with_ttl"`
	Without int64 `json:"without_ttl"`
}

// CoverageDetail is the coverage of each namespace and of each kind.
type CoverageDetail struct {
	ByNamespace map[string]TTLCoverage `json:"by_namespace"`
	ByKind      map[string]TTLCoverage `json:"by_record_kind"`
}

// NamespaceCount is how many records a namespace has.
type NamespaceCount struct {
	Namespace string `json:"namespace"`
	Count     int64  `json:"count"`
}

// KindCount is how many records a kind has.
type KindCount struct {
	Kind  string `json:"record_kind"`
	Count int64  `json:"count"`
}

// Expired is a record that has expired.
type Expired struct {
	Key
	CreatedAt  string `json:"created_at"`
	TTLSeconds int64  `json:"ttl_seconds"`
}

// Expiring is a record that will expire; ExpiresAt is YYYY-MM-DD hh:mm:ss, UTC.
type Expiring struct {
	Expired
	ExpiresAt string `json:"expires_at"`
}

func (q ReportQuery) empty(path string) (Report, error) {
	r := Report{DBPath: path, Soon: DefaultSoon, ByNamespace: []NamespaceCount{}, ByKind: []KindCount{}, Ages: map[string]int64{},
		CoverageDetail: CoverageDetail{ByNamespace: map[string]TTLCoverage{}, ByKind: map[string]TTLCoverage{}},
		ExpiringSoon:   []Expiring{}, ExpiredSample: []Expired{}}
	if q.Namespace != "" {
		r.NamespaceFilter = &q.Namespace
	}
	if q.Kind != "" {
		r.KindFilter = &q.Kind
	}
	if q.Soon != nil {
		r.Soon = *q.Soon
	}
	if r.Soon < 0 {
		return Report{}, &memory.FieldError{Field: "expire_soon_seconds", Reason: "must not be negative"}
	}
	return r, nil
}

// Report inspects the store and changes nothing.
func (s *Store) Report(ctx context.Context, q ReportQuery) (Report, error) {
	if s.db == nil {
		r, err := q.empty(s.path)
		r.Error = "there is no database yet"
		return r, err
	}
	return report(ctx, s.db, q, s.now())
}

// ReportFile is Report for any database of records, one of the reference too. It
// opens it for reading only. A file that is missing, or has no table of records,
// gives an empty report with Error set.
func ReportFile(ctx context.Context, path string, q ReportQuery, now time.Time) (Report, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{ReadOnly: true, Readers: 1})
	if errors.Is(err, memory.ErrNotFound) {
		r, err := q.empty(path)
		r.Error = "there is no database " + path
		return r, err
	}
	if err != nil {
		return Report{}, fmt.Errorf("report on records: %w", err)
	}
	r, err := report(ctx, db, q, now)
	return r, errors.Join(err, db.Close())
}

func report(ctx context.Context, db *sqlite.DB, q ReportQuery, now time.Time) (Report, error) {
	r, err := q.empty(db.Path())
	if err != nil {
		return Report{}, err
	}
	err = db.View(ctx, func(tx *sql.Tx) error {
		var tables string
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(group_concat(name), '') FROM sqlite_schema
			WHERE type = 'table' AND name IN ('memory_records', 'memory_record_duplicates')`).Scan(&tables); err != nil {
			return err
		}
		if !strings.Contains(tables, "memory_records") {
			r.Error = "the database has no table of records"
			return nil
		}
		if strings.Contains(tables, "memory_record_duplicates") {
			if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM memory_record_duplicates").Scan(&r.DuplicatesAside); err != nil {
				return err
			}
		}
		if err := r.count(ctx, tx, now.Unix()); err != nil {
			return err
		}
		return r.sample(ctx, tx, now.Unix())
	})
	if err != nil {
		return Report{}, fmt.Errorf("report on records: %w", sqlite.Classify(err))
	}
	return r, nil
}

// Expressions of a report, in whole seconds; NULL where a time cannot be read.
// Integer division is exact here: times before 1970 do not occur with a ttl.
var (
	expirySeconds  = "((" + instantSQL("created_at") + ") / 1000000 + ttl_seconds)"
	updatedSeconds = "((" + instantSQL("updated_at") + ") / 1000000)"
)

const reportFilter = " FROM memory_records WHERE (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR record_kind = ?2) "

// count fills in all numbers with one pass over the table.
func (r *Report) count(ctx context.Context, tx *sql.Tx, now int64) error {
	rows, err := tx.QueryContext(ctx, `SELECT namespace, record_kind, count(*), count(ttl_seconds),
			coalesce(sum(expires < ?3), 0), coalesce(sum(expires BETWEEN ?3 AND ?3 + ?4), 0),
			sum(age <= 86400), sum(age > 86400 AND age <= 7 * 86400), sum(age > 7 * 86400 AND age <= 30 * 86400), sum(age > 30 * 86400)
		FROM (SELECT namespace, record_kind, ttl_seconds, CASE WHEN ttl_seconds IS NOT NULL THEN `+expirySeconds+` END AS expires,
			coalesce(?3 - `+updatedSeconds+`, 31 * 86400) AS age`+reportFilter+`)
		GROUP BY namespace, record_kind`, r.NamespaceFilter, r.KindFilter, now, r.Soon)
	if err != nil {
		return err
	}
	defer rows.Close()
	namespaces, kinds := map[string]int64{}, map[string]int64{}
	for rows.Next() {
		var ns, kind string
		var total, with, expired, soon int64
		var ages [4]int64
		if err := rows.Scan(&ns, &kind, &total, &with, &expired, &soon, &ages[0], &ages[1], &ages[2], &ages[3]); err != nil {
			return err
		}
		r.Summary.Total += total
		r.Coverage.With += with
		r.ExpiredCount += expired
		r.SoonCount += soon
		namespaces[ns] += total
		kinds[kind] += total
		cover(r.CoverageDetail.ByNamespace, ns, with, total-with)
		cover(r.CoverageDetail.ByKind, kind, with, total-with)
		for i, name := range ageNames {
			if ages[i] > 0 {
				r.Ages[name] += ages[i]
			}
		}
	}
	r.Coverage.Without = r.Summary.Total - r.Coverage.With
	all, expired, soon := r.Coverage, r.ExpiredCount, r.SoonCount
	r.Summary = Summary{r.Summary.Total, &all.With, &all.Without, &expired, &soon}
	for _, c := range mostFirst(namespaces) {
		r.ByNamespace = append(r.ByNamespace, NamespaceCount{c.name, c.n})
	}
	for _, c := range mostFirst(kinds) {
		r.ByKind = append(r.ByKind, KindCount{c.name, c.n})
	}
	return rows.Err()
}

var ageNames = []string{"last_24h", "24h_to_7d", "7d_to_30d", "older_than_30d"}

func cover(by map[string]TTLCoverage, name string, with, without int64) {
	c := by[name]
	by[name] = TTLCoverage{c.With + with, c.Without + without}
}

// sample fills in the lists of records.
func (r *Report) sample(ctx context.Context, tx *sql.Tx, now int64) error {
	rows, err := tx.QueryContext(ctx, `SELECT namespace, record_kind, record_id, created_at, ttl_seconds`+reportFilter+`
		AND ttl_seconds IS NOT NULL AND `+expirySeconds+` < ?3
		ORDER BY `+instantSQL("created_at")+`, id LIMIT ?4`, r.NamespaceFilter, r.KindFilter, now, expiredSample)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Expired
		if err := rows.Scan(&e.Namespace, &e.Kind, &e.ID, &e.CreatedAt, &e.TTLSeconds); err != nil {
			return err
		}
		r.ExpiredSample = append(r.ExpiredSample, e)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows, err = tx.QueryContext(ctx, `SELECT namespace, record_kind, record_id, created_at, ttl_seconds, datetime(`+expirySeconds+`, 'unixepoch')`+reportFilter+`
		AND ttl_seconds IS NOT NULL AND `+expirySeconds+` BETWEEN ?3 AND ?3 + ?4
		ORDER BY `+expirySeconds+`, id LIMIT ?5`, r.NamespaceFilter, r.KindFilter, now, r.Soon, soonSample)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Expiring
		if err := rows.Scan(&e.Namespace, &e.Kind, &e.ID, &e.CreatedAt, &e.TTLSeconds, &e.ExpiresAt); err != nil {
			return err
		}
		r.ExpiringSoon = append(r.ExpiringSoon, e)
	}
	return rows.Err()
}
