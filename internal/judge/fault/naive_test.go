//go:build fault && linux

package fault

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/judge"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// naive is the smallest memory that keeps the promises of the judge: a log, and
// one file that holds the items and the cursor. It is here to be broken: each of
// its bugs is one that a real memory had, and the judge must find it from the
// outside.
type naive struct {
	dir string
	bug string
	now func() time.Time

	log   *os.File
	size  int // events in the log
	queue []memory.Event
	state naiveState
}

// naiveState is what a checkpoint commits.
type naiveState struct {
	Cursor int64     // Seq
	At     time.Time // of the event at the cursor; only a bug looks at it
	Items  []memory.Item
}

// The bugs.
const (
	ackBeforeSync   = "it acknowledges before fsync"
	separateCommits = "items and cursor are committed apart"
	skipsTornCheck  = "a torn tail is not looked for"
	cursorIsATime   = "the cursor is a time"
	newestBatch     = "a batch is the newest events"
	noDirectorySync = "a rename is not made durable"
	writesInPlace   = "a file is overwritten in place"
	dropsWhenFull   = "a full queue drops"
)

var naiveBugs = []string{ackBeforeSync, separateCommits, skipsTornCheck, cursorIsATime, newestBatch, noDirectorySync, writesInPlace, dropsWhenFull}

const (
	naiveBatch = 20
	naiveQueue = 32
)

func openNaive(dir, bug string, now func() time.Time) (*naive, error) {
	m := &naive{dir: dir, bug: bug, now: now}
	if err := m.readState(); err != nil {
		return nil, err
	}
	list, good, err := readNaiveLog(m.path("events.jsonl"))
	if err != nil {
		return nil, err
	}
	m.size = len(list)
	if m.log, err = os.OpenFile(m.path("events.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if bug != skipsTornCheck {
		if err := errors.Join(m.log.Truncate(good), m.log.Sync()); err != nil {
			return nil, err
		}
	}
	return m, syncDir(dir)
}

func (m *naive) path(name string) string { return filepath.Join(m.dir, name) }

// readNaiveLog returns the whole lines of a log, and where the last one ends.
func readNaiveLog(path string) (list []memory.Event, good int64, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	at := int64(0)
	for line := range bytes.Lines(text) {
		at += int64(len(line))
		sum, body, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		var e memory.Event
		if sum != checksum(body) || !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal([]byte(body), &e) != nil {
			continue
		}
		list, good = append(list, e), at
	}
	return list, good, nil
}

func checksum(body string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 16)
}

// say queues one event, and returns it.
func (m *naive) say(e memory.Event) (memory.Event, error) {
	if len(m.queue) == naiveQueue {
		if m.bug == dropsWhenFull {
			return e, nil
		}
		if err := m.flush(); err != nil {
			return e, err
		}
	}
	m.size++
	e.Seq = int64(m.size)
	m.queue = append(m.queue, e)
	return e, nil
}

// flush makes what is queued durable. Its buffer is small, so that a line takes
// several writes, as a long one does in any memory.
func (m *naive) flush() error {
	out := bufio.NewWriterSize(m.log, 64)
	for _, e := range m.queue {
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %s\n", checksum(string(body)), body)
		for piece := range slices.Chunk([]byte(line), 48) { // a whole line would pass the buffer by
			if _, err := out.Write(piece); err != nil {
				return err
			}
		}
	}
	m.queue = m.queue[:0]
	if err := out.Flush(); err != nil || m.bug == ackBeforeSync {
		return err
	}
	return m.log.Sync()
}

// checkpoint distils one batch, and reports up to which Seq; 0 where there is
// nothing to do.
func (m *naive) checkpoint() (int64, error) {
	list, _, err := readNaiveLog(m.path("events.jsonl"))
	if err != nil {
		return 0, err
	}
	var batch []memory.Event
	for _, e := range list {
		if m.bug == cursorIsATime && e.Timestamp.After(m.state.At) || m.bug != cursorIsATime && e.Seq > m.state.Cursor {
			batch = append(batch, e)
		}
	}
	if len(batch) == 0 {
		return 0, nil
	}
	if m.bug == newestBatch {
		batch = batch[max(0, len(batch)-naiveBatch):]
	}
	batch = batch[:min(len(batch), naiveBatch)]
	next := m.state
	for _, e := range batch {
		next.Items = append(next.Items, memory.Item{ID: fmt.Sprintf("mem_%d_%d", len(next.Items), rand.Int64()), Handle: fmt.Sprintf("MEM-%d", len(next.Items)+1),
			Status: memory.Active, Evidence: []memory.Evidence{{EventID: e.ID, Quote: e.Text}}})
		next.Cursor, next.At = max(next.Cursor, e.Seq), e.Timestamp
	}
	if m.bug == separateCommits {
		apart := next
		apart.Cursor, apart.At = m.state.Cursor, m.state.At
		if err := m.replace("state.json", apart); err != nil {
			return 0, err
		}
	}
	if err := m.replace("state.json", next); err != nil {
		return 0, err
	}
	m.state = next
	return next.Cursor, m.replace("latest.json", next.Cursor)
}

// replace puts a document in the place of a file's text, whole or not at all.
func (m *naive) replace(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if m.bug == writesInPlace && name == "latest.json" {
		return os.WriteFile(m.path(name), text, 0o600)
	}
	f, err := os.Create(m.path(name + ".new"))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(m.path(name+".new"), m.path(name)); err != nil || m.bug == noDirectorySync {
		return err
	}
	return syncDir(m.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (m *naive) readState() error {
	text, err := os.ReadFile(m.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &m.state)
}

// held is what the memory holds.
func (m *naive) held() (judge.Held, error) {
	list, _, err := readNaiveLog(m.path("events.jsonl"))
	h := judge.Held{Events: list, Items: m.state.Items, Cursor: m.state.Cursor}
	text, readErr := os.ReadFile(m.path("latest.json"))
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
	case readErr != nil:
		return h, readErr
	case json.Unmarshal(text, &h.Reached) != nil:
		h.Damaged = append(h.Damaged, "latest.json")
		h.Reached = h.Cursor
	}
	return h, err
}

func (m *naive) close() error { return m.log.Close() }

// naiveLife is what a child does with it: it talks, distils, and is silent for a
// moment, until it is killed.
func naiveLife(dir string, ack func(string) error) error {
	runtime.LockOSThread() // strace counts the calls of each thread
	skew, err := time.ParseDuration(os.Getenv(skewVar))
	if err != nil {
		return err
	}
	m, err := openNaive(dir, os.Getenv(bugVar), func() time.Time { return time.Now().Add(skew) })
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		var ids []string
		n := 1 + rand.IntN(4)
		if round%10 == 3 {
			n = 2 * naiveQueue
		}
		for range n {
			e, err := m.say(memory.Event{ID: fmt.Sprintf("evt_%d", rand.Int64()), Type: memory.UserMessage, Timestamp: m.now(), Text: fmt.Sprintf("I keep number %d.", rand.Int64())})
			if err != nil {
				return err
			}
			ids = append(ids, e.ID)
		}
		if err := m.flush(); err != nil {
			return err
		}
		if err := ack("said " + strings.Join(ids, " ")); err != nil {
			return err
		}
		if round%3 > 0 {
			seq, err := m.checkpoint()
			if err != nil {
				return err
			}
			if err := ack(fmt.Sprintf("reached %d", seq)); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
	}
}
