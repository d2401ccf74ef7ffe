package graph

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// rest is what the file holds beside the graph that is in memory.
type rest struct {
	members []Member          // of the file, that are not known here
	unseen  []string          // rows of nodes beyond Limits.Nodes
	hidden  map[string]bool   // and their ids
	unread  map[string]string // rows that could not be read, and why; moved aside by the next rewrite
	read    int               // rows of nodes that were read
}

// disk is what the state was read from.
type disk struct {
	base    *os.File    // held open, so that its number is not given to another file
	info    fs.FileInfo // of base; nil where there is none
	journal *os.File    // nil until this process appends
	applied int64       // bytes of the journal that are in the state
	seen    int64       // bytes of the journal when it was last read
}

func (d *disk) close() error {
	var err error
	for _, f := range []*os.File{d.base, d.journal} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	*d = disk{}
	return err
}

// stale reports whether the files are others than were read.
func (d *disk) stale(path, journal string) bool {
	if d.baseChanged(path) {
		return true
	}
	st, err := os.Stat(journal)
	if err != nil {
		return d.seen != 0
	}
	return st.Size() != d.seen
}

func (d *disk) baseChanged(path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return d.info != nil
	}
	return d.info == nil || !os.SameFile(st, d.info) || st.Size() != d.info.Size() || !st.ModTime().Equal(d.info.ModTime())
}

// refresh takes in what other processes wrote. It is called under the lock.
func (s *Store) refresh() error {
	if s.disk.baseChanged(s.path) {
		return s.reload()
	}
	if !s.disk.stale(s.path, s.journalPath()) {
		return nil
	}
	st, err := os.Stat(s.journalPath())
	if err != nil || st.Size() < s.disk.applied {
		return s.reload() // it was taken away by hand
	}
	return s.readJournal(s.state)
}

// reload reads everything anew and puts the changes in memory over it.
func (s *Store) reload() error {
	fresh, rest, d, err := s.readBase()
	if err != nil {
		return err
	}
	old, pending := s.state, s.pending
	s.state, s.rest, s.pending = fresh, rest, delta{}
	if err := s.disk.close(); err != nil {
		return errors.Join(memory.Errorf(memory.ErrUnavailable, "%w", err), d.close())
	}
	s.disk = d
	if err := s.readJournal(fresh); err != nil {
		return err
	}
	s.notInFile()
	s.carryOver(old, pending)
	s.revision++
	s.prune()
	return nil
}

// notInFile notes which nodes and edges of the snapshot are not in the file.
func (s *Store) notInFile() {
	for _, n := range s.imported.nodes {
		if s.state.node(n.ID) == n {
			s.pending.node(n.ID, false)
		}
	}
	for _, e := range s.imported.edges {
		if s.state.edgeByID(e.ID) == e {
			s.pending.edge(e.ID, false)
		}
	}
}

// carryOver puts this process's own changes that are not on disk over the state.
func (s *Store) carryOver(old *state, pending delta) {
	for n := range old.allNodes() {
		if pending.nodes[n.ID] {
			s.state.putNode(n)
			s.pending.node(n.ID, true)
		}
	}
	for e := range old.allEdges() {
		if pending.edges[e.ID] {
			s.state.putEdge(e)
			s.pending.edge(e.ID, true)
		}
	}
}

// readBase reads the JSON file over the snapshot.
func (s *Store) readBase() (*state, rest, disk, error) {
	text, d, err := s.readText()
	if err != nil {
		return nil, rest{}, disk{}, err
	}
	// Rows have some 200 bytes, and there are more edges than nodes.
	st := sized(len(s.imported.nodes)+len(text)/600, len(s.imported.edges)+len(text)/250)
	for _, n := range s.imported.nodes {
		st.putNode(n)
	}
	for _, e := range s.imported.edges {
		st.putEdge(e)
	}
	if d.info == nil {
		return st, rest{}, d, nil
	}
	text, damage := readable(text)
	if damage != nil {
		if err := s.setAside(damage); err != nil {
			return nil, rest{}, disk{}, errors.Join(err, d.close())
		}
		return st, rest{}, disk{}, d.close()
	}
	return st, s.readRows(st, gjson.Parse(text)), d, nil
}

// readText reads the file.
func (s *Store) readText() (string, disk, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", disk{}, nil
	}
	if err != nil {
		return "", disk{}, memory.Errorf(memory.ErrUnavailable, "read the graph: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", s.path)
	}
	if err != nil {
		return "", disk{}, errors.Join(memory.Errorf(memory.ErrUnavailable, "read the graph: %w", err), f.Close())
	}
	if err := s.limits.tooLarge(s.path, info.Size()); err != nil {
		return "", disk{}, errors.Join(err, f.Close())
	}
	var text strings.Builder
	text.Grow(int(info.Size()))
	if _, err := io.Copy(&text, io.LimitReader(f, s.limits.FileBytes)); err != nil {
		return "", disk{}, errors.Join(memory.Errorf(memory.ErrUnavailable, "read the graph: %w", err), f.Close())
	}
	return text.String(), disk{base: f, info: info}, nil
}

// readable returns the text of a graph's file, or why it cannot be one.
func readable(text string) (string, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	err := checkJSON(text)
	if err != nil {
		if finite := withoutNaN(text); checkJSON(finite) == nil {
			text, err = finite, nil
		}
	}
	if err == nil && !gjson.Parse(text).IsObject() {
		err = unreadable("is no JSON object")
	}
	return text, err
}

// setAside gives a damaged file another name, so that nothing overwrites it.
func (s *Store) setAside(damage error) error {
	if s.opts.ReadOnly {
		return &memory.CorruptError{Path: s.path, Offset: -1, Reason: damage.Error()}
	}
	aside, err := freeName(s.path + ".damaged-" + s.opts.Now().UTC().Format(stamp))
	if err == nil {
		err = os.Rename(s.path, aside)
	}
	if err != nil {
		return errors.Join(&memory.CorruptError{Path: s.path, Offset: -1, Reason: damage.Error()},
			memory.Errorf(memory.ErrUnavailable, "set it aside: %w", err))
	}
	s.note(fmt.Sprintf("the graph %s; it was set aside as %s", damage, filepath.Base(aside)))
	return nil
}

// freeName returns a path that is not taken.
func freeName(path string) (string, error) {
	for i := 1; ; i++ {
		name := path
		if i > 1 {
			name = fmt.Sprintf("%s-%d", path, i)
		}
		_, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// readRows reads the rows of a file into a state. A later row takes the place
// of an earlier one with its id.
func (s *Store) readRows(st *state, file gjson.Result) rest {
	r := rest{hidden: map[string]bool{}, unread: map[string]string{}}
	file.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "nodes":
			r.rows(v, func(row gjson.Result) error { return s.readNode(st, &r, row) })
		case "edges":
			r.rows(v, func(row gjson.Result) error {
				e, err := edgeOf(row)
				if err == nil {
					st.putEdge(e)
				}
				return err
			})
		default:
			r.members = setMember(r.members, key.String(), []byte(v.Raw))
		}
		return true
	})
	if n := len(r.unread); n > 0 {
		s.note(fmt.Sprintf("%d rows of the file cannot be read; they are kept, and moved aside before it is written again", n))
	}
	if n := len(r.unseen); n > 0 {
		s.note(fmt.Sprintf("%d nodes beyond AINL_GRAPH_MEMORY_MAX_NODES stay in the file unseen", n))
	}
	return r
}

func (s *Store) readNode(st *state, r *rest, row gjson.Result) error {
	n, err := nodeOf(row)
	switch {
	case err != nil:
		return err
	case !fits(r.read+1, s.limits.Nodes):
		r.unseen = append(r.unseen, row.Raw)
		r.hidden[n.ID] = true
	default:
		st.putNode(n)
		r.read++
	}
	return nil
}

// rows reads a list of rows; those that read refuses are kept.
func (r *rest) rows(list gjson.Result, read func(gjson.Result) error) {
	if list.Type == gjson.Null {
		return
	}
	if !list.IsArray() {
		r.unread[list.Raw] = "must be a list"
		return
	}
	list.ForEach(func(_, row gjson.Result) bool {
		if err := read(row); err != nil {
			r.unread[row.Raw] = err.Error()
		}
		return true
	})
}

// rewrite writes the whole graph to the file and ends the journal. It is called
// under the lock.
func (s *Store) rewrite() error {
	if err := s.moveUnread(); err != nil {
		return err
	}
	size, err := s.writeWhole(s.path + ".new")
	if err != nil {
		return errors.Join(memory.Errorf(memory.ErrUnavailable, "write the graph: %w", err), removeIfThere(s.path+".new"))
	}
	if err := s.limits.tooLarge(s.path, size); err != nil {
		return errors.Join(err, removeIfThere(s.path+".new"))
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		return errors.Join(memory.Errorf(memory.ErrUnavailable, "write the graph: %w", err), removeIfThere(s.path+".new"))
	}
	s.pending = delta{}
	return s.afterRewrite()
}

// afterRewrite makes the new file the one that was read.
func (s *Store) afterRewrite() error {
	err := errors.Join(syncDir(filepath.Dir(s.path)), s.disk.close())
	if err == nil {
		err = removeIfThere(s.journalPath())
	}
	if err == nil {
		s.disk.base, err = os.Open(s.path)
	}
	if err == nil {
		s.disk.info, err = s.disk.base.Stat()
	}
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write the graph: %w", err)
	}
	return nil
}

// writeWhole writes the graph to a new file and waits until it is on the disk.
func (s *Store) writeWhole(path string) (size int64, err error) {
	if err := removeIfThere(path); err != nil { // of a process that was killed
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	w := &counter{w: f}
	b := bufio.NewWriterSize(w, 1<<20)
	err = errors.Join(s.encode(b), b.Flush(), f.Sync(), f.Close())
	return w.n, err
}

// encode writes the graph, one row a line.
func (s *Store) encode(w *bufio.Writer) error {
	var line []byte
	first := true
	row := func(put func([]byte) []byte) error {
		line = line[:0]
		if !first {
			line = append(line, ',')
		}
		first = false
		line = put(append(line, '\n'))
		_, err := w.Write(line)
		return err
	}
	text := func(t string) error {
		first = true
		_, err := w.WriteString(t)
		return err
	}
	if err := text(`{"nodes":[`); err != nil {
		return err
	}
	for n := range s.state.allNodes() {
		if err := row(n.appendJSON); err != nil {
			return err
		}
	}
	for _, raw := range s.rest.unseen {
		if err := row(func(b []byte) []byte { return appendRaw(b, []byte(raw)) }); err != nil {
			return err
		}
	}
	if err := text("\n],\"edges\":["); err != nil {
		return err
	}
	for e := range s.state.allEdges() {
		if err := row(e.appendJSON); err != nil {
			return err
		}
	}
	tail := []byte("\n]")
	for _, m := range s.rest.members {
		tail = appendMember(tail, m)
	}
	_, err := w.Write(append(tail, '}', '\n'))
	return err
}

// moveUnread appends the rows that could not be read to a file beside the graph,
// since the graph's file is about to be written without them.
func (s *Store) moveUnread() (err error) {
	if len(s.rest.unread) == 0 {
		return nil
	}
	var text []byte
	for raw, why := range s.rest.unread {
		text = appendMembers(text, []Member{{"why", appendText(nil, why)}, {"row", []byte(raw)}})
		text = append(text, '\n')
	}
	path := s.path + ".unread.jsonl"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep rows that cannot be read: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "keep rows that cannot be read: %w", err)
	}
	s.note(fmt.Sprintf("%d rows that could not be read were moved to %s", len(s.rest.unread), filepath.Base(path)))
	s.rest.unread = nil
	return nil
}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func removeIfThere(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// withoutNaN replaces the numbers NaN, Infinity and -Infinity, which the
// reference writes though JSON has none, by null.
func withoutNaN(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for i := 0; i < len(text); {
		c := text[i]
		n := 1
		switch {
		case c == '"':
			for ; i+n < len(text) && text[i+n] != '"'; n++ {
				if text[i+n] == '\\' {
					n++
				}
			}
			n = min(n+1, len(text)-i)
		case c == 'N' || c == 'I' || c == '-':
			for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
				if strings.HasPrefix(text[i:], word) {
					out.WriteString("null")
					i += len(word)
					n = 0
					break
				}
			}
		}
		out.WriteString(text[i : i+n])
		i += n
	}
	return out.String()
}
