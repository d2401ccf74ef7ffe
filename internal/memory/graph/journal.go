package graph

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The journal is a file of lines. A line is one change as a whole:
//
//	<CRC-32C of the JSON, 8 hex digits> {"drop":[ids],"cut":[ids],"nodes":[rows],"edges":[rows]}
//
// To apply it, remove the nodes to drop and the edges at them, then the edges to
// cut, which may be left out; then put the nodes, then the edges. Applying a journal to a graph that holds its changes
// already, in whole or in part, changes nothing: a fold that was cut off between
// its two steps does no harm.

// leastFold is the size of the journal below which it is not folded for its
// size alone.
const leastFold = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// JournalSuffix is what the journal's name has behind that of the file.
const JournalSuffix = ".journal"

func (s *Store) journalPath() string { return s.path + JournalSuffix }

// save makes the pending changes durable. It is called under the lock.
func (s *Store) save() error {
	if !s.pending.any() {
		return nil
	}
	line := s.line()
	base := int64(0)
	if s.disk.info != nil {
		base = s.disk.info.Size()
	}
	whole := base + s.disk.applied + int64(len(line))
	if base == 0 || whole < s.limits.JournalFrom || int64(len(line)) > base/2 || whole > s.limits.FileBytes {
		return s.rewrite()
	}
	if err := s.appendLine(line); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write the graph's journal: %w", err)
	}
	s.pending = delta{}
	if s.disk.applied > max(leastFold, base/4) {
		// The change is durable: what hinders the fold now may be gone next time.
		if err := s.rewrite(); err != nil {
			s.opts.Log.Warn().Err(err).Str("path", s.path).Msg("fold the graph's journal")
		}
	}
	return nil
}

// line encodes the pending changes.
func (s *Store) line() []byte {
	b := append(make([]byte, 9, 1024), `{"drop":[`...)
	b = appendTexts(b[:len(b)-1], slices.Sorted(maps.Keys(s.pending.drops)))
	if len(s.pending.cuts) > 0 {
		b = appendTexts(append(b, `,"cut":`...), slices.Sorted(maps.Keys(s.pending.cuts)))
	}
	b = append(b, `,"nodes":[`...)
	for i, at := range s.pendingNodes() {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.state.nodes[at].appendJSON(b)
	}
	b = append(b, `],"edges":[`...)
	for i, at := range s.pendingEdges() {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.state.edges[at].appendJSON(b)
	}
	b = append(b, "]}"...)
	copy(b, fmt.Sprintf("%08x ", crc32.Checksum(b[9:], castagnoli)))
	return append(b, '\n')
}

// pendingNodes returns the positions of the nodes that are not on disk.
func (s *Store) pendingNodes() []int32 {
	var list []int32
	for id := range s.pending.nodes {
		if at, known := s.state.ends[id]; known && s.state.spots[at].node != none {
			list = append(list, s.state.spots[at].node)
		}
	}
	slices.Sort(list)
	return list
}

func (s *Store) pendingEdges() []int32 {
	var list []int32
	for id := range s.pending.edges {
		if at, known := s.state.edge[id]; known {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// appendLine writes a line behind what is known of the journal and waits until
// it is on the disk.
func (s *Store) appendLine(line []byte) error {
	made := false
	if s.disk.journal == nil {
		_, err := os.Stat(s.journalPath())
		made = errors.Is(err, fs.ErrNotExist)
		s.disk.journal, err = os.OpenFile(s.journalPath(), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
	}
	f := s.disk.journal
	if s.disk.seen > s.disk.applied { // the torn line of a process that was killed
		if err := f.Truncate(s.disk.applied); err != nil {
			return err
		}
	}
	_, err := f.WriteAt(line, s.disk.applied)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && made {
		err = syncDir(filepath.Dir(s.path))
	}
	if err != nil {
		s.disk.seen = s.disk.applied + int64(len(line))
		return errors.Join(err, f.Truncate(s.disk.applied))
	}
	s.disk.applied += int64(len(line))
	s.disk.seen = s.disk.applied
	return nil
}

// JournalReport is what stands in a journal.
type JournalReport struct {
	Lines   int   // whole ones
	Damaged int   // of them, before a good one: changes that are lost
	Torn    int64 // bytes behind the last good line: of a write that was never acknowledged
}

// CheckJournal reads the journal of the graph at path, and changes nothing.
// fs.ErrNotExist where there is none.
func CheckJournal(path string) (rep JournalReport, err error) {
	f, err := os.Open(path + JournalSuffix)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	bad := 0 // since the last good line
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			rep.Torn += int64(len(line))
			return rep, nil
		}
		if err != nil {
			return rep, memory.Errorf(memory.ErrUnavailable, "read the graph's journal: %w", err)
		}
		rep.Lines++
		rep.Torn += int64(len(line))
		if bad++; isWhole(line[:len(line)-1]) {
			rep.Damaged, rep.Torn, bad = rep.Damaged+bad-1, 0, 0
		}
	}
}

// isWhole reports whether a line is as it was written.
func isWhole(line []byte) bool {
	if len(line) < 10 || line[8] != ' ' {
		return false
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	return err == nil && uint32(sum) == crc32.Checksum(line[9:], castagnoli)
}

// readJournal applies what was added to the journal since it was last read.
func (s *Store) readJournal(st *state) error {
	f, err := os.Open(s.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "read the graph's journal: %w", err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, s.disk.applied, s.limits.FileBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "read the graph's journal: %w", err)
	}
	s.disk.seen = s.disk.applied + int64(len(text))
	good, damaged := 0, 0
	for at := 0; at < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			break
		}
		if s.applyLine(st, text[at:at+end]) {
			good = at + end + 1
		} else {
			damaged++
		}
		at += end + 1
	}
	return s.judgeJournal(text, good, damaged)
}

// judgeJournal takes note of how far the journal can be read. What cannot be
// read behind the last good line was being written when a process was killed,
// and was never acknowledged; what cannot be read before it is damage.
func (s *Store) judgeJournal(text []byte, good, damaged int) error {
	s.disk.applied += int64(good)
	s.revision++
	damaged -= bytes.Count(text[good:], []byte("\n"))
	if damaged == 0 || s.opts.ReadOnly {
		return nil
	}
	aside, err := freeName(s.journalPath() + ".damaged-" + s.opts.Now().UTC().Format(stamp))
	if err == nil {
		err = os.WriteFile(aside, text, 0o600)
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep the graph's damaged journal: %w", err)
	}
	s.note(fmt.Sprintf("%d lines of the graph's journal are damaged and were left out; the journal was copied to %s", damaged, filepath.Base(aside)))
	return s.rewrite()
}

// applyLine applies one line; it reports false for one that is damaged.
func (s *Store) applyLine(st *state, line []byte) bool {
	if !isWhole(line) {
		return false
	}
	row, err := parseRow("journal", line[9:])
	if err != nil {
		return false
	}
	row.Get("drop").ForEach(func(_, id gjson.Result) bool {
		st.removeNode(id.String())
		return true
	})
	row.Get("cut").ForEach(func(_, id gjson.Result) bool {
		st.removeEdge(id.String())
		return true
	})
	row.Get("nodes").ForEach(func(_, v gjson.Result) bool {
		if n, err := nodeOf(v); err == nil {
			st.putNode(n)
			s.forget(n.ID)
			delete(s.pending.drops, n.ID) // another process has put it again
		}
		return true
	})
	row.Get("edges").ForEach(func(_, v gjson.Result) bool {
		if e, err := edgeOf(v); err == nil {
			st.putEdge(e)
		}
		return true
	})
	return true
}

// forget drops the unseen rows of a node that there is a newer one of.
func (s *Store) forget(id string) {
	if !s.rest.hidden[id] {
		return
	}
	s.rest.unseen = slices.DeleteFunc(s.rest.unseen, func(raw string) bool { return gjson.Get(raw, "id").String() == id })
	delete(s.rest.hidden, id)
}
