package working

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// querier is a transaction or a pool, for statements that only read.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const itemColumns = `number, id, kind, title, content, importance, confidence, status, created_at, updated_at,
	trust, valid_from, valid_to, supersedes, superseded_by, version, provisional, reason, metadata, verify, verified_at`

// row is an item as it lies in memory_items.
type row struct {
	number             int64
	item               memory.Item
	created, updated   int64
	validFrom, validTo sql.NullInt64
	provisional        bool
	metadata           string
	verify             string // JSON list, or ""
	verifiedAt         sql.NullInt64
}

// values returns the columns in the order of itemColumns.
func (r *row) values() []any {
	it := &r.item
	return []any{r.number, it.ID, it.Kind, it.Title, it.Content, it.Importance, it.Confidence, string(it.Status), r.created, r.updated,
		string(it.Trust), r.validFrom, r.validTo, it.Supersedes, it.SupersededBy, it.Version, r.provisional, it.Reason, r.metadata, r.verify, r.verifiedAt}
}

// sinceSecond is the number of columns that the second migration added.
const sinceSecond = 2

// sum is the checksum of the item's columns and evidence. Where the columns of
// the second migration are empty they do not count, so that the sums of rows
// that are older than it hold.
func (r *row) sum() int64 {
	values := r.values()
	if r.verify == "" && !r.verifiedAt.Valid {
		values = values[:len(values)-sinceSecond]
	}
	for _, ev := range r.item.Evidence {
		values = append(values, ev.EventID, ev.SourceID, ev.Seq, ev.Quote)
	}
	return sumOf(values...)
}

// sumOf is the CRC-32C of values as text, as %v writes them. What rows mostly hold
// is written without fmt, which would take longer than to read the row.
func sumOf(values ...any) int64 {
	b := make([]byte, 0, 1024)
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b = append(b, v...)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case bool:
			b = strconv.AppendBool(b, v)
		case sql.NullInt64:
			b = append(strconv.AppendInt(append(b, '{'), v.Int64, 10), ' ')
			b = append(strconv.AppendBool(b, v.Valid), '}')
		default:
			b = fmt.Append(b, v)
		}
		b = append(b, 0)
	}
	return int64(crc32.Checksum(b, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damaged says that a row is not what was written.
func damaged(what string) error {
	return memory.Errorf(memory.ErrCorrupt, "%s in %s has changed by itself", what, fileName)
}

// newRow makes the row of an item.
func newRow(it memory.Item) (*row, error) {
	number, err := numberOf(it.Handle)
	if err != nil {
		return nil, err
	}
	r := &row{number: number, item: it, created: it.CreatedAt.UnixMilli(), updated: it.UpdatedAt.UnixMilli(),
		validFrom: milli(it.ValidFrom), validTo: milli(it.ValidTo), provisional: it.Provisional,
		verifiedAt: milli(it.VerifiedAt)}
	if it.Metadata != nil {
		text, err := json.Marshal(it.Metadata)
		if err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "metadata of %s: %w", it.Handle, err)
		}
		r.metadata = string(text)
	}
	if len(it.Verify) > 0 {
		text, err := json.Marshal(it.Verify)
		if err != nil {
			return nil, err
		}
		r.verify = string(text)
	}
	return r, nil
}

// scanRow reads itemColumns and sum. The item has no evidence yet.
func scanRow(scan func(...any) error) (r *row, sum int64, err error) {
	r = &row{}
	it := &r.item
	err = scan(&r.number, &it.ID, &it.Kind, &it.Title, &it.Content, &it.Importance, &it.Confidence, &it.Status, &r.created, &r.updated,
		&it.Trust, &r.validFrom, &r.validTo, &it.Supersedes, &it.SupersededBy, &it.Version, &r.provisional, &it.Reason, &r.metadata,
		&r.verify, &r.verifiedAt, &sum)
	if err != nil {
		return nil, 0, sqlite.RowError(err, fileName)
	}
	it.Handle, it.Provisional, it.Evidence = handleOf(r.number), r.provisional, []memory.Evidence{}
	it.CreatedAt, it.UpdatedAt = time.UnixMilli(r.created).UTC(), time.UnixMilli(r.updated).UTC()
	it.ValidFrom, it.ValidTo, it.VerifiedAt = instant(r.validFrom), instant(r.validTo), instant(r.verifiedAt)
	return r, sum, nil
}

// loadItems returns the items that the rest of a SELECT (WHERE, ORDER BY, LIMIT)
// asks for, with their evidence. What is not as it was written is ErrCorrupt.
func loadItems(ctx context.Context, q querier, rest string, args ...any) ([]memory.Item, error) {
	loaded, sums, err := loadRows(ctx, q, rest, args...)
	if err != nil {
		return nil, err
	}
	if err := attachEvidence(ctx, q, loaded); err != nil {
		return nil, err
	}
	items := make([]memory.Item, len(loaded))
	for i, r := range loaded {
		if r.sum() != sums[i] {
			return nil, damaged("the row of " + r.item.Handle)
		}
		if r.metadata != "" {
			if err := json.Unmarshal([]byte(r.metadata), &r.item.Metadata); err != nil {
				return nil, memory.Errorf(memory.ErrCorrupt, "metadata of %s: %w", r.item.Handle, err)
			}
		}
		if r.verify != "" {
			if err := json.Unmarshal([]byte(r.verify), &r.item.Verify); err != nil {
				return nil, memory.Errorf(memory.ErrCorrupt, "marks of %s: %w", r.item.Handle, err)
			}
		}
		items[i] = r.item
	}
	return items, nil
}

func loadRows(ctx context.Context, q querier, rest string, args ...any) (loaded []*row, sums []int64, err error) {
	rows, err := q.QueryContext(ctx, "SELECT "+itemColumns+", sum FROM memory_items "+rest, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, sum, err := scanRow(rows.Scan)
		if err != nil {
			return nil, nil, err
		}
		loaded, sums = append(loaded, r), append(sums, sum)
	}
	return loaded, sums, rows.Err()
}

// attachEvidence fills in the evidence of items, in one query.
func attachEvidence(ctx context.Context, q querier, loaded []*row) error {
	if len(loaded) == 0 {
		return nil
	}
	at := make(map[int64]*row, len(loaded))
	numbers := make([]int64, len(loaded))
	for i, r := range loaded {
		at[r.number], numbers[i] = r, r.number
	}
	list, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	rows, err := q.QueryContext(ctx, `SELECT number, event_id, source_id, seq, quote FROM evidence
		WHERE number IN (SELECT value FROM json_each(?)) ORDER BY number, ordinal`, string(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var ev memory.Evidence
		if err := rows.Scan(&n, &ev.EventID, &ev.SourceID, &ev.Seq, &ev.Quote); err != nil {
			return sqlite.RowError(err, fileName)
		}
		r := at[n]
		if r == nil {
			return damaged("an index of evidence")
		}
		r.item.Evidence = append(r.item.Evidence, ev)
	}
	return rows.Err()
}

// oneItem returns the only item that rest asks for; sql.ErrNoRows where there is
// none.
func oneItem(ctx context.Context, q querier, rest string, args ...any) (memory.Item, error) {
	items, err := loadItems(ctx, q, rest, args...)
	if err != nil {
		return memory.Item{}, err
	}
	if len(items) == 0 {
		return memory.Item{}, sql.ErrNoRows
	}
	return items[0], nil
}

// find returns the item that a handle (MEM-12) or an id (mem_…) names.
func find(ctx context.Context, q querier, name string) (memory.Item, error) {
	var it memory.Item
	var err error
	if strings.HasPrefix(name, "mem_") {
		it, err = oneItem(ctx, q, "WHERE id = ?", name)
	} else {
		number, bad := numberOf(name)
		if bad != nil {
			return memory.Item{}, bad
		}
		it, err = oneItem(ctx, q, "WHERE number = ?", number)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return memory.Item{}, memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no memory %s", name),
			"openclawssy memory list --status all shows every handle")
	}
	return it, err
}

const handlePrefix = "MEM-"

// numberOf returns the n of "MEM-n", in either case.
func numberOf(handle string) (int64, error) {
	digits, isItem := strings.CutPrefix(strings.ToUpper(handle), handlePrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !isItem || err != nil || n < 1 || digits[0] == '+' {
		return 0, &memory.FieldError{Field: "handle", Reason: "must be the handle of a memory item such as MEM-12",
			Hint: "openclawssy memory list shows them"}
	}
	return n, nil
}

func handleOf(number int64) string { return handlePrefix + strconv.FormatInt(number, 10) }

func milli(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: true}
}

func instant(ms sql.NullInt64) *time.Time {
	if !ms.Valid {
		return nil
	}
	t := time.UnixMilli(ms.Int64).UTC()
	return &t
}

// milliseconds returns t as memory.db keeps it.
func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
