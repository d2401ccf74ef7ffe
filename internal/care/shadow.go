package care

import (
	"context"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/events"
)

// Shadow is an event log for a rebuild: the real one up to where it ended when the
// rebuild began, without the changes that are to be made anew, and behind it, in
// memory, what the rebuild writes. It is safe for concurrent use.
type Shadow struct {
	log   *events.Reader
	last  int64 // seq of the real log's last event
	skips func(memory.Change) bool
	newID func() string

	mu    sync.Mutex
	added []memory.Event
}

func newShadow(log *events.Reader, in RebuildRequest, newID func() string) (*Shadow, error) {
	last, err := log.LastSeq()
	if err != nil {
		return nil, err
	}
	s := &Shadow{log: log, last: last, newID: newID, skips: func(memory.Change) bool { return false }}
	if in.anew() {
		s.skips = func(ch memory.Change) bool { return isDistilled(ch, in.From) }
	}
	return s, nil
}

// isDistilled reports whether a change is what a distiller or the maintenance of
// its items made of events from a number on.
func isDistilled(ch memory.Change, from int64) bool {
	switch {
	case ch.Checkpoint != nil:
		return ch.Checkpoint.Range.Last >= from
	case ch.Action == "rebuild", ch.By == "maintenance":
		return true
	}
	return false
}

// Read returns up to limit events behind a cursor, and the cursor behind the last.
func (s *Shadow) Read(ctx context.Context, after memory.Cursor, limit int) ([]memory.Event, memory.Cursor, error) {
	if after.Seq < s.last {
		list, next, err := s.log.Read(ctx, after, limit)
		if err != nil {
			return nil, after, err
		}
		for i := range list {
			if list[i].Seq > s.last { // said since
				list = list[:i]
				if i > 0 {
					next = memory.Cursor{Seq: list[i-1].Seq}
				}
				break
			}
			if ch, has := changeIn(&list[i]); has && s.skips(ch) {
				list[i].Metadata = nil
			}
		}
		if len(list) > 0 {
			return list, next, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := int(max(0, after.Seq-s.last))
	list := append([]memory.Event(nil), s.added[min(from, len(s.added)):min(from+limit, len(s.added))]...)
	if len(list) > 0 {
		after = memory.Cursor{Seq: list[len(list)-1].Seq}
	}
	return list, after, nil
}

// Write adds events behind the real ones.
func (s *Shadow) Write(_ context.Context, list ...memory.Event) ([]memory.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]memory.Event, len(list))
	for i, e := range list {
		if e.ID == "" {
			e.ID = "evt_" + s.newID()
		}
		e.Seq = s.last + int64(len(s.added)) + 1
		s.added = append(s.added, e)
		out[i] = e
	}
	return out, nil
}
