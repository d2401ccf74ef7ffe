package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/sqlite"
)

// source is the event log: events after a cursor, oldest first, and the cursor
// behind them; none at the log's end.
type source interface {
	Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error)
}

const followBatch = 256 // events of one transaction

// errMoved says that another process has indexed the batch meanwhile.
var errMoved = errors.New("the archive has moved on")

// Follow indexes every event that src has and the archive has not, and returns
// how many it read. A batch and its cursor commit together, so each event is in
// once, whoever follows at the same time. A file that turns out to be damaged,
// or was deleted, is replaced and filled again from the beginning.
func (s *Store) Follow(ctx context.Context, src source) (int, error) {
	if err := s.reopenDeleted(ctx); err != nil {
		return 0, fmt.Errorf("follow events: %w", err)
	}
	n, err := s.follow(ctx, src)
	if sqlite.Damage(err) && !errors.As(err, new(*sourceError)) && !s.opts.ReadOnly {
		if err := s.setAside(ctx); err != nil {
			return n, fmt.Errorf("follow events: %w", err)
		}
		n, err = s.follow(ctx, src)
	}
	if err != nil {
		return n, fmt.Errorf("follow events: %w", err)
	}
	return n, nil
}

// sourceError is what the log reports: not the archive's own damage.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func (s *Store) follow(ctx context.Context, src source) (int, error) {
	total := 0
	for {
		from, err := s.Cursor(ctx)
		if err != nil {
			return total, err
		}
		events, next, err := src.Read(ctx, from, followBatch)
		if err != nil {
			return total, &sourceError{err}
		}
		if len(events) == 0 {
			return total, nil
		}
		err = s.index(ctx, from, next, s.prepare(events))
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return total, err
		}
		total += len(events)
	}
}

// reopenDeleted starts a new file where the one that is open has been removed
// from its directory, or replaced, by somebody else.
func (s *Store) reopenDeleted(ctx context.Context) error {
	if s.opts.ReadOnly {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return memory.Errorf(memory.ErrUnavailable, "the archive is closed")
	}
	st, err := os.Lstat(s.path)
	switch {
	case err == nil && s.file != nil && os.SameFile(st, s.file):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return memory.Errorf(memory.ErrUnavailable, "look at the archive: %w", err)
	}
	if err := s.close(); err != nil {
		return err
	}
	s.forget()
	return s.open(ctx)
}

func (s *Store) setAside(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replace(ctx)
}

// turn is an event made ready to be indexed.
type turn struct {
	event    memory.Event
	passages []passage
	change   memory.Change
}

type passage struct {
	text, caption string
	columns       text.Columns
	features      Passage // all but what depends on the passages before it
}

// prepare does the work of indexing that needs no database.
func (s *Store) prepare(events []memory.Event) []turn {
	turns := make([]turn, len(events))
	for i, e := range events {
		turns[i] = turn{event: e, change: changeOf(e)}
		if n, gone := e.Erased(); gone {
			turns[i].passages = blanks(n)
		} else if e.Type.IsTurn() || e.Type == memory.Probe {
			turns[i].passages = s.cut(e)
		}
	}
	return turns
}

// blanks are the passages of an event that was erased: nothing stands in them, but
// their handles stay taken.
func blanks(n int) []passage {
	out := make([]passage, n)
	for i := range out {
		out[i].features.Flags = Suppressed | Aside
	}
	return out
}

// changeOf returns what an event of memory's own book-keeping suppresses and
// restores. An event whose change cannot be read changes nothing here; the
// working store, which owns changes, reports it.
func changeOf(e memory.Event) memory.Change {
	var c memory.Change
	raw, err := json.Marshal(e.Metadata[memory.MetaChange])
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return memory.Change{}
	}
	return c
}

// cut makes the passages of a turn. An image's caption goes with the last one.
func (s *Store) cut(e memory.Event) []passage {
	parts := text.Passages(s.opts.Redact.Text(e.Text))
	caption := strings.TrimSpace(s.opts.Redact.Text(strings.ToValidUTF8(e.Meta(memory.MetaCaption), "�")))
	if len(parts) == 0 && caption != "" {
		parts = []string{""}
	}
	out := make([]passage, len(parts))
	for i, part := range parts {
		p := passage{text: part}
		whole := part
		if i == len(parts)-1 {
			p.caption = caption
			whole = strings.TrimSpace(part + "\n" + caption)
		}
		p.columns = text.Index(whole)
		p.features = features(part, e, p.columns)
		out[i] = p
	}
	return out
}

func features(part string, e memory.Event, columns text.Columns) Passage {
	f := text.FeaturesOf(part)
	p := Passage{Day: text.DayOf(e.Timestamp), Words: clamp16(len(strings.Fields(columns.Prefix)))}
	copy(p.Said[:], text.Dates(part, e.Timestamp))
	for flag, set := range map[Flag]bool{
		HasNumber: f.HasNumber, HasTimeCue: f.HasTimeCue, HasWhereCue: f.HasWhereCue, Asks: f.Asks, FirstPerson: f.FirstPerson,
		Aside:     e.Type != memory.UserMessage && e.Type != memory.AssistantOutput,
		Untrusted: e.Origin == memory.OriginTool || e.Origin == memory.OriginWeb,
		Probe:     e.Type == memory.Probe,
		// It would be recalled at the next question that nothing is known of.
		Suppressed: e.Type == memory.AssistantOutput && llm.SaysNothing(e.Text),
	} {
		if set {
			p.Flags |= flag
		}
	}
	return p
}

// damaged is an error of what the file holds against itself.
func damaged(format string, args ...any) error {
	return memory.Errorf(memory.ErrCorrupt, "the archive is damaged: "+format, args...)
}
