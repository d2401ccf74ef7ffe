package archive

import (
	"context"
	"database/sql"
	"encoding/binary"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory/postings"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// Flag is a property of a passage; the flags add up as bits.
type Flag uint16

// The flags.
const (
	HasNumber   Flag = 1 << iota // see text.Features
	HasTimeCue                   // likewise
	HasWhereCue                  // likewise
	Asks                         // ends with a question mark
	FirstPerson                  // I, me, my, we, us, our
	Opens                        // is of the first turn of its session
	Aside                        // a tool's call or result, or an error: no neighbour of anything
	Untrusted                    // came from a tool or the web
	Suppressed                   // must not be recalled
	Probe                        // of a memory.Probe: found only by the search that it was made for
)

// Passage is what a ranker knows of a passage besides its words.
type Passage struct {
	Session uint32    // index in Hits.Sessions
	Before  uint32    // n of the passage before it in the conversation; 0 for none
	Day     text.Date // of its turn, in the zone the turn was given in
	Speaker uint16    // index in Hits.Speakers
	Words   uint16    // words that are no stopwords
	Flags   Flag
	Said    [2]text.Date // the first dates that it names; Day 0, Month 0 and Year 0 for none
}

// Is reports whether p has all of the flags.
func (p Passage) Is(f Flag) bool { return p.Flags&f == f }

// packed is a Passage as it is kept on disk.
type packed struct {
	session, before uint32
	day             uint32
	said            [2]uint32
	speaker         uint16
	words           uint16
	flags           Flag
}

const (
	packedSize = 26
	blockSize  = 512 // records of one row of features
)

func pack(p Passage) packed {
	return packed{session: p.Session, before: p.Before, day: packDate(p.Day), said: [2]uint32{packDate(p.Said[0]), packDate(p.Said[1])},
		speaker: p.Speaker, words: p.Words, flags: p.Flags}
}

// packDate keeps years 0 to 8,000,000.
func packDate(d text.Date) uint32 {
	return uint32(max(d.Year, 0))<<9 | uint32(d.Month)<<5 | uint32(d.Day)
}

func unpackDate(v uint32) text.Date {
	return text.Date{Year: int(v >> 9), Month: time.Month(v >> 5 & 15), Day: int(v & 31)}
}

func (r packed) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, r.session)
	b = binary.LittleEndian.AppendUint32(b, r.before)
	b = binary.LittleEndian.AppendUint32(b, r.day)
	b = binary.LittleEndian.AppendUint32(b, r.said[0])
	b = binary.LittleEndian.AppendUint32(b, r.said[1])
	b = binary.LittleEndian.AppendUint16(b, r.speaker)
	b = binary.LittleEndian.AppendUint16(b, r.words)
	return binary.LittleEndian.AppendUint16(b, uint16(r.flags))
}

func readPacked(b []byte) packed {
	u32, u16 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint16
	return packed{session: u32(b), before: u32(b[4:]), day: u32(b[8:]), said: [2]uint32{u32(b[12:]), u32(b[16:])},
		speaker: u16(b[20:]), words: u16(b[22:]), flags: Flag(u16(b[24:]))}
}

// Columns are what is known of all passages, one list for each property, so that a
// ranker that looks at many of them reads little: that of passage n stands at n-1.
// They are read-only.
type Columns struct {
	Session, Before []uint32
	Speaker, Words  []uint16
	Flags           []Flag
	dates           [][3]uint32 // Day and Said
}

func (c *Columns) len() int { return len(c.Session) }

func (c *Columns) add(r packed) {
	c.Session, c.Before = append(c.Session, r.session), append(c.Before, r.before)
	c.Speaker, c.Words = append(c.Speaker, r.speaker), append(c.Words, r.words)
	c.Flags = append(c.Flags, r.flags)
	c.dates = append(c.dates, [3]uint32{r.day, r.said[0], r.said[1]})
}

func (c *Columns) passage(n uint32) Passage {
	i := n - 1
	dates := c.dates[i]
	return Passage{Session: c.Session[i], Before: c.Before[i], Day: unpackDate(dates[0]), Said: [2]text.Date{unpackDate(dates[1]), unpackDate(dates[2])},
		Speaker: c.Speaker[i], Words: c.Words[i], Flags: c.Flags[i]}
}

// snapshot is what is known of all passages at one state of the database. It is
// never changed once published; later ones share its memory.
type snapshot struct {
	epoch    int64
	passages Columns
	sessions []string
	words    []uint32 // of each session
	spans    []Span   // likewise
	speakers []string
}

// Span is where the passages of a session lie: the numbers of the first and the last.
// Others may lie between them.
type Span struct{ First, Last uint32 }

// snapshotOf returns a snapshot that holds at least what tx sees, loading what is new.
func (s *Store) snapshotOf(ctx context.Context, tx *sql.Tx) (*snapshot, error) {
	st, err := readState(ctx, tx)
	if err != nil {
		return nil, err
	}
	if now := s.seen.Load(); now.holds(st) {
		return now, nil
	}
	s.load.Lock()
	defer s.load.Unlock()
	now := s.seen.Load()
	if now.holds(st) {
		return now, nil
	}
	next := &snapshot{epoch: st.epoch}
	if now.epoch == st.epoch {
		next.passages, next.sessions, next.speakers = now.passages, now.sessions, now.speakers
		next.words, next.spans = slices.Clone(now.words), slices.Clone(now.spans)
	}
	known := next.passages.len()
	if err = loadPassages(ctx, tx, &next.passages, st.passages); err != nil {
		return nil, err
	}
	if next.sessions, err = loadNames(ctx, tx, "SELECT id FROM sessions WHERE n > ? ORDER BY n", next.sessions); err != nil {
		return nil, err
	}
	if next.speakers, err = loadNames(ctx, tx, "SELECT name FROM speakers WHERE n > ? ORDER BY n", next.speakers); err != nil {
		return nil, err
	}
	next.words = append(next.words, make([]uint32, len(next.sessions)-len(next.words))...)
	next.spans = append(next.spans, make([]Span, len(next.sessions)-len(next.spans))...)
	for i := known; i < next.passages.len(); i++ {
		session, before := next.passages.Session[i], next.passages.Before[i]
		if int(session) >= len(next.words) {
			return nil, damaged("a passage is of session %d, of %d", session+1, len(next.words))
		}
		if int(before) > i {
			return nil, damaged("the passage before passage %d is passage %d", i+1, before)
		}
		next.words[session] += uint32(next.passages.Words[i])
		in := &next.spans[session]
		if in.Last = uint32(i + 1); in.First == 0 {
			in.First = in.Last
		}
	}
	if err := s.follows(ctx, tx, now, next); err != nil {
		return nil, err
	}
	return next, nil
}

// follows makes next the state that is known, and that of the lists that are kept.
func (s *Store) follows(ctx context.Context, tx *sql.Tx, now, next *snapshot) error {
	few := now.epoch == next.epoch && next.passages.len()-now.passages.len() <= followedAtOnce
	var fresh []postings.Arrived
	known := false
	if few && !s.kept.IsEmpty() {
		var err error
		if fresh, known, err = arrivals(ctx, tx, now.passages.len()); err != nil {
			return err
		}
	}
	if !known || !s.kept.Follow(now, next, fresh) {
		s.kept.Reset(next)
	}
	s.seen.Store(next)
	return nil
}

// arrivals returns the terms of the passages behind number n. It reports false where
// only the database can tell them.
func arrivals(ctx context.Context, tx *sql.Tx, n int) ([]postings.Arrived, bool, error) {
	rows, err := tx.QueryContext(ctx, "SELECT n, text, caption FROM episodes WHERE n > ? ORDER BY n", n)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var out []postings.Arrived
	for rows.Next() {
		var n uint32
		var said, caption string
		if err := rows.Scan(&n, &said, &caption); err != nil {
			return nil, false, err
		}
		a, known := arrivedOf(n, said, caption)
		if !known {
			return nil, false, nil
		}
		out = append(out, a)
	}
	return out, true, rows.Err()
}

// is reports whether the snapshot is of st.
func (n *snapshot) is(st state) bool {
	return n.epoch == st.epoch && int64(n.passages.len()) == st.passages
}

// holds reports whether a reader at st finds all it needs.
func (n *snapshot) holds(st state) bool {
	return n.epoch == st.epoch && int64(n.passages.len()) >= st.passages
}

// loadPassages makes c grow to at least so many passages.
func loadPassages(ctx context.Context, tx *sql.Tx, c *Columns, passages int64) error {
	rows, err := tx.QueryContext(ctx, "SELECT block, records FROM features WHERE block >= ? ORDER BY block", c.len()/blockSize)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var block int
		var raw sql.RawBytes
		if err := rows.Scan(&block, &raw); err != nil {
			return err
		}
		if block != c.len()/blockSize {
			return damaged("features miss block %d", c.len()/blockSize)
		}
		for at := c.len() % blockSize * packedSize; at+packedSize <= len(raw); at += packedSize {
			c.add(readPacked(raw[at:]))
		}
	}
	if int64(c.len()) < passages {
		return damaged("features of %d passages, want %d", c.len(), passages)
	}
	return rows.Err()
}

// loadNames appends the names that are new. Rows are numbered from 1 without a gap.
func loadNames(ctx context.Context, tx *sql.Tx, query string, names []string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, len(names))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// clamp16 returns n, or the highest value that a record holds.
func clamp16(n int) uint16 { return uint16(min(n, 1<<16-1)) }
