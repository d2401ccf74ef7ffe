package transcript

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
	"github.com/openclawssy/openclawssy/internal/op"
)

// log is the agent's event log.
type log interface {
	Write(ctx context.Context, events ...memory.Event) ([]memory.Event, error)
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

// sessions keeps what is known of a session besides its turns.
type sessions interface {
	Ensure(ctx context.Context, want memory.Session) (memory.Session, error)
}

// redactor takes secrets out of a text.
type redactor interface{ Text(string) string }

// Importer imports histories into one agent's log.
type Importer struct {
	Agent    memory.AgentID
	Log      log
	Sessions sessions
	Redact   redactor
	// Since, where it is set, leaves out the turns that are older. Those without a time
	// come in.
	Since time.Time
	// Lock is the path of a file, in a directory that exists, that keeps two
	// imports into one agent from running at once.
	Lock string
}

const (
	batchEvents = 500
	batchBytes  = 1 << 20
	maxBad      = 1000 // listed in a Report
	channel     = "import"
)

// Report is the outcome of an import.
type Report struct {
	Imported int   `json:"imported" jsonschema:"turns that are new in the log"`
	Skipped  int   `json:"skipped" jsonschema:"turns that were in the log already, or stood earlier in the file"`
	Sessions int   `json:"sessions" jsonschema:"sessions that turns were in"`
	Older    int   `json:"older" jsonschema:"turns left out because they are older than asked for"`
	Files    int   `json:"files" jsonschema:"files read"`
	BadCount int   `json:"bad_count" jsonschema:"lines or turns that could not be read"`
	Bad      []Bad `json:"bad" jsonschema:"the first 1000 of them"`
}

// Input is one history to import.
type Input struct {
	Source
	Name  string // for reports: a path
	Size  int64  // bytes; 0 if that is not known
	Open  func() (io.ReadCloser, error)
	begun time.Time // where a first look told
}

// Import appends the turns of a history to the log, in order. A turn that is
// there already is skipped, so that an import can be repeated, and one that was
// broken off, by kill -9 too, goes on where it ended: the id of an event follows
// from the turn's session, source id, speaker, time and text.
//
// A bad line is reported while the others go in. A history without a single good
// turn is ErrInvalid. The Report counts what was done before an error too.
func (im *Importer) Import(ctx context.Context, file io.Reader, format Format) (Report, error) {
	return im.ImportAll(ctx, []Input{{Source: Source{Format: format}, Open: func() (io.ReadCloser, error) { return io.NopCloser(file), nil }}})
}

// ImportAll is Import for several histories, one after the other. Where there are
// several, one that cannot be read, or is none, is bad in the report while the
// others go in, and one without a turn is no error: an agent's session may be of
// nothing else than its settings.
func (im *Importer) ImportAll(ctx context.Context, inputs []Input) (Report, error) {
	report := Report{Bad: []Bad{}}
	unlock, err := im.lock(ctx)
	if err != nil {
		return report, err
	}
	in := intake{Importer: im, report: &report, present: map[ulid.ULID]bool{}, seen: map[string]error{}}
	for _, input := range inputs {
		in.total += input.Size
	}
	err = in.known(ctx)
	for _, input := range inputs {
		if err != nil {
			break
		}
		in.file = ""
		if len(inputs) > 1 {
			in.file = input.Name
		}
		err = in.read(ctx, input)
		if err != nil && in.file != "" && in.failed == nil && ctx.Err() == nil {
			in.refuse(Bad{Reason: err.Error()})
			err = nil
		}
	}
	err = errors.Join(err, in.flush(ctx), unlock())
	if err == nil && report.Imported+report.Skipped+report.Older == 0 && (len(inputs) == 1 || report.BadCount > 0) {
		err = nothing(report)
	}
	return report, err
}

// watched counts what is read.
type watched struct {
	io.Reader
	count func(n int)
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.count(n)
	return n, err
}

// read imports one history.
func (in *intake) read(ctx context.Context, input Input) (err error) {
	file, err := input.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	in.report.Files++
	return input.Source.Read(watched{file, func(n int) {
		in.done += int64(n)
		op.Report(ctx, op.Progress{Done: in.done, Total: in.total, Unit: "bytes"})
	}}, func(t Turn) error {
		if err := in.take(ctx, t); err != nil {
			in.failed = err
			return err
		}
		return nil
	}, in.refuse)
}

func nothing(report Report) error {
	if len(report.Bad) == 0 {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "the file holds no turn"), formsHint)
	}
	b := report.Bad[0]
	if b.File != "" {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "no turn of %d files could be read; %s, line %d: %s", report.Files, b.File, b.Line, b.Reason), formsHint)
	}
	return memory.WithHint(memory.Errorf(memory.ErrInvalid, "no turn of the file could be read; line %d: %s", b.Line, b.Reason), formsHint)
}

func (im *Importer) lock(ctx context.Context) (unlock func() error, err error) {
	lock := flock.New(im.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, memory.WithHint(memory.Errorf(memory.ErrUnavailable, "wait for another import into the agent: %w", err), "try again when it is done")
	}
	return lock.Unlock, nil
}

// intake is one import under way.
type intake struct {
	*Importer
	report  *Report
	present map[ulid.ULID]bool // imported events in the log or in batch
	seen    map[string]error   // sessions; with the error of one that cannot be kept
	batch   []memory.Event
	turns   int // whole turns in batch
	bytes   int
	file    string // that is read, where there are several
	failed  error  // of the log, not of a history
	done    int64  // bytes read
	total   int64  // of all histories; 0 if that is not known
}

const idPrefix = "evt_"

// known reads from the log which imported events are there.
func (in *intake) known(ctx context.Context) error {
	for at := (memory.Cursor{}); ; {
		list, next, err := in.Log.Read(ctx, at, 1000)
		if err != nil {
			return fmt.Errorf("look for what was imported before: %w", err)
		}
		if len(list) == 0 {
			return nil
		}
		for _, e := range list {
			if e.Meta(memory.MetaSourceID) == "" {
				continue
			}
			if id, err := ulid.ParseStrict(strings.TrimPrefix(e.ID, idPrefix)); err == nil {
				in.present[id] = true
			}
		}
		at = next
	}
}

// take adds one turn to the batch, in as many parts as the log has room for,
// without those that are there.
func (in *intake) take(ctx context.Context, t Turn) error {
	if at := t.Event.Timestamp; !at.IsZero() && at.Before(in.Since) {
		in.report.Older++
		return nil
	}
	if err := in.ensure(ctx, t); err != nil {
		if !errors.Is(err, memory.ErrInvalid) && !errors.Is(err, memory.ErrConflict) {
			return err
		}
		in.refuse(Bad{Line: t.Line, Reason: err.Error()})
		return nil
	}
	t.Event.Text = in.Redact.Text(t.Event.Text)
	t.Event.ID = idPrefix + turnID(t.Event, t.Unique).String()
	fresh := false
	for _, part := range events.Split(t.Event) {
		id := ulid.MustParse(strings.TrimPrefix(part.ID, idPrefix))
		if in.present[id] {
			continue
		}
		in.present[id], fresh = true, true
		in.batch = append(in.batch, part)
		in.bytes += len(part.Text)
	}
	if !fresh {
		in.report.Skipped++
		return nil
	}
	in.turns++
	if len(in.batch) >= batchEvents || in.bytes >= batchBytes {
		return in.flush(ctx)
	}
	return nil
}

// turnID derives the id of a turn's event from what the turn is: two turns that
// are the same to the letter in one place of one session are one, or of all
// sessions where the source's ids are unique. The text is
// hashed redacted, since an id must not help anybody to guess a secret.
func turnID(e memory.Event, unique bool) ulid.ULID {
	session := e.SessionID
	if unique {
		session = e.Meta(MetaClient)
	}
	var at uint64
	written := ""
	if !e.Timestamp.IsZero() {
		written = e.Timestamp.UTC().Format(time.RFC3339Nano)
		at = uint64(max(0, min(e.Timestamp.UnixMilli(), int64(ulid.MaxTime()))))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q", session, e.Meta(memory.MetaSourceID), e.Type, e.Speaker(),
		e.Meta(memory.MetaTool), written, e.Text, e.Meta(memory.MetaCaption)))
	var id ulid.ULID
	binary.BigEndian.PutUint64(id[:], at<<16) // 48 bits
	copy(id[6:], sum[:])
	return id
}

// ensure makes the turn's session known, once, and again when it becomes known
// whose it is.
func (in *intake) ensure(ctx context.Context, t Turn) error {
	id := t.Event.SessionID
	key := id + "\n" + t.UserID
	err, seen := in.seen[key]
	if seen {
		return err
	}
	_, before := in.seen[id]
	want := memory.Session{ID: id, Agent: in.Agent, Channel: t.Channel, UserID: t.UserID, Kind: memory.SessionMain, Started: t.Event.Timestamp}
	if t.Group {
		want.Kind, want.UserID = memory.SessionGroup, ""
	}
	if want.Channel == "" {
		want.Channel = channel
	}
	if _, err = in.Sessions.Ensure(ctx, want); err != nil {
		err = fmt.Errorf("session %s: %w", id, err)
	} else if !before {
		in.report.Sessions++
		in.seen[id] = nil
	}
	in.seen[key] = err
	return err
}

// flush makes the batch durable.
func (in *intake) flush(ctx context.Context) error {
	batch, turns := in.batch, in.turns
	in.batch, in.turns, in.bytes = nil, 0, 0
	if len(batch) == 0 {
		return nil
	}
	if _, err := in.Log.Write(ctx, batch...); err != nil {
		return memory.WithHint(fmt.Errorf("after %d turns: %w", in.report.Imported, err), "import the same file again: it goes on where it ended")
	}
	in.report.Imported += turns
	return nil
}

// refuse adds a bad line to the report.
func (in *intake) refuse(b Bad) {
	in.report.BadCount++
	b.File = in.file
	if len(in.report.Bad) < maxBad {
		in.report.Bad = append(in.report.Bad, b)
	}
}
