package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// writer owns the files of an open journal. All methods are called by one
// goroutine.
type writer struct {
	now  func() time.Time
	sync func(*os.File) error // syncData, but in tests of failing disks
	log  zerolog.Logger
	dir  *directory
	head *os.File // the lock; nil where it has to be opened anew

	segment *os.File // newest segment; nil for none
	name    string   // of segment
	size    int64    // of its good lines
	seq     int64    // of the last good line
	fresh   bool     // segment was created and its name is not durable yet
	trusted bool     // the fields above hold if the head still says so
	torn    int64    // tails moved aside
	buf     []byte
}

// newWriter opens the directory and brings the newest segment in order.
func newWriter(ctx context.Context, path string, now func() time.Time, log zerolog.Logger) (*writer, error) {
	if err := makeDirectory(path); err != nil {
		return nil, unavailable(err)
	}
	dir, err := openDirectory(path)
	if err != nil {
		return nil, unavailable(err)
	}
	w := &writer{now: now, sync: syncData, log: log, dir: dir}
	err = w.openHead()
	if err == nil {
		err = lockContext(ctx, w.head)
	}
	if err == nil {
		err = w.recover()
		w.unlock()
	}
	if err != nil {
		return nil, errors.Join(unavailable(err), w.close())
	}
	return w, nil
}

// unavailable gives err the kind Unavailable, unless it has one, and a hint
// where the system's reason is well known.
func unavailable(err error) error {
	if !memory.HasKind(err) {
		err = memory.Errorf(memory.ErrUnavailable, "%w", err)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return memory.WithHint(err, "free some space; writing goes on by itself then, and reading works meanwhile")
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return memory.WithHint(err, "make the directory writable; reading works meanwhile")
	}
	return err
}

// unlock ends the lock. Should that fail, closing the file ends it.
func (w *writer) unlock() {
	if err := unlock(w.head); err != nil {
		err = errors.Join(err, w.head.Close())
		w.head = nil
		w.log.Error().Err(err).Str("dir", w.dir.path).Msg("lock of the log not released in the usual way")
	}
}

func (w *writer) openHead() error {
	head, err := w.dir.open(headName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	w.head = head
	return nil
}

func (w *writer) close() error {
	var errs []error
	if w.segment != nil {
		errs = append(errs, w.segment.Close())
		w.segment = nil
	}
	if w.head != nil {
		errs = append(errs, w.head.Close())
	}
	return errors.Join(append(errs, w.dir.close())...)
}

// lock locks the directory against other processes. Where the head was deleted
// meanwhile, the lock is that of its successor.
func (w *writer) lock() error {
	for {
		if w.head == nil {
			w.trusted = false
			if err := w.openHead(); err != nil {
				return err
			}
		}
		if err := lock(w.head); err != nil {
			return err
		}
		gone, err := removed(w.head)
		if err != nil || !gone {
			return err
		}
		err = w.head.Close()
		w.head = nil
		if err != nil {
			return err
		}
	}
}

// commit writes a group and makes it durable. The lock is held. After an error
// nothing of the group is in the log, unless the error says otherwise.
func (w *writer) commit(group []*entry) error {
	if w.buf = w.buf[:0]; cap(w.buf) > 2*groupBytes {
		w.buf = nil
	}
	if err := w.ready(); err != nil {
		return err
	}
	seq := w.seq
	for _, e := range group {
		e.first = seq + 1
		for _, object := range e.objects {
			seq++
			w.buf = appendSealed(w.buf, object, seq)
		}
	}
	if err := w.write(); err != nil {
		return errors.Join(fmt.Errorf("append to %s: %w", filepath.Join(w.dir.path, w.name), err), w.undo())
	}
	w.fresh = false
	w.size += int64(len(w.buf))
	w.seq = seq
	if err := w.publish(); err != nil {
		// The lines are durable. A head that lags behind is found out by its
		// size, so all that this costs is a look at the segment's end.
		w.trusted = false
		w.log.Warn().Err(err).Str("dir", w.dir.path).Msg("head of the log not written")
	}
	return nil
}

func (w *writer) publish() error {
	return head{File: w.name, Size: w.size, Last: w.seq}.write(w.head)
}

func (w *writer) write() error {
	if _, err := w.segment.WriteAt(w.buf, w.size); err != nil {
		return err
	}
	if err := w.sync(w.segment); err != nil {
		return err
	}
	if w.fresh {
		return w.dir.sync()
	}
	return nil
}

// undo takes back what a failed write may have left. The file is closed: after
// a failed fsync the system may hold its pages as clean though they are not on
// the disk, so the next group opens it anew and looks at its end.
func (w *writer) undo() error {
	w.trusted = false
	var err error
	if w.fresh {
		err = w.dir.root.Remove(w.name)
	} else if err = w.segment.Truncate(w.size); err == nil {
		err = errors.Join(w.sync(w.segment), dropCache(w.segment))
	}
	err = errors.Join(err, w.segment.Close())
	w.segment = nil
	if err != nil {
		return fmt.Errorf("it is not known whether the lines are in the log: %w", err)
	}
	return nil
}

// ready makes sure that the fields of w hold and that segment is the one to
// append to: today's, or the newest where the clock has gone back.
func (w *writer) ready() error {
	current, err := w.current()
	if err == nil && !current {
		err = w.recover()
	}
	if err != nil {
		return err
	}
	if today := max(segmentName(w.now()), w.name); today != w.name {
		return w.rotate(today)
	}
	return nil
}

// current reports whether the segment is as the head says, and takes over what
// other processes have appended to it.
func (w *writer) current() (bool, error) {
	if !w.trusted || w.segment == nil {
		return false, nil
	}
	h, whole, err := readHead(w.head)
	if err != nil || !whole || h.File != w.name {
		return false, err
	}
	gone, err := removed(w.segment)
	if err != nil || gone {
		return false, err
	}
	info, err := w.segment.Stat()
	if err != nil || info.Size() != h.Size {
		return false, err
	}
	w.size, w.seq = h.Size, h.Last
	return true, nil
}

// recover reads from the disk where the log ends, and repairs a torn tail.
func (w *writer) recover() error {
	w.trusted = false
	if w.segment != nil {
		if err := w.segment.Close(); err != nil {
			return err
		}
		w.segment = nil
	}
	h, _, err := readHead(w.head)
	if err != nil {
		return err
	}
	names, err := w.dir.segments()
	if err != nil {
		return err
	}
	w.name, w.size, w.seq, w.fresh = "", 0, h.Last, false
	if len(names) > 0 {
		if err := w.openNewest(names); err != nil {
			return err
		}
	}
	if err := w.publish(); err != nil {
		return err
	}
	w.trusted = true
	return nil
}

// openNewest opens the last of the segments and finds its end. Where lines are
// missing that the head knows of, their seqs stay unused: a reader may have got
// past them, and the gap shows what is lost.
func (w *writer) openNewest(names []string) error {
	newest := names[len(names)-1]
	if err := w.unpack(newest); err != nil { // one is packed only while there is a newer
		return err
	}
	file, err := w.dir.open(newest, os.O_RDWR)
	if err != nil {
		return err
	}
	w.segment, w.name = file, newest
	info, err := file.Stat()
	if err != nil {
		return err
	}
	end, err := findTail(file, info.Size())
	if err != nil {
		return err
	}
	w.size, w.seq = end.end, max(w.seq, end.seq)
	if end.seq == 0 {
		before, err := (&view{dir: w.dir}).lastSeq(names[:len(names)-1])
		if err != nil {
			return err
		}
		w.seq = max(w.seq, before)
	}
	if end.end < info.Size() {
		if err := w.repair(end, info.Size()); err != nil {
			return fmt.Errorf("repair the torn tail of %s: %w", newest, err)
		}
	}
	return syncData(file)
}

// repair moves what stands behind the last good line aside and cuts it off.
func (w *writer) repair(end tail, size int64) error {
	name, err := w.dir.setAside(w.name, w.segment, end.end, size)
	if err != nil {
		return err
	}
	if end.bare {
		if _, err := w.segment.WriteAt([]byte("\n"), end.end); err != nil {
			return err
		}
		w.size++
	}
	if err := w.segment.Truncate(w.size); err != nil {
		return err
	}
	w.torn++
	w.log.Warn().Str("file", filepath.Join(w.dir.path, w.name)).Int64("offset", end.end).Int64("bytes", size-end.end).
		Str("kept_in", name).Msg("torn tail of the log moved aside")
	return nil
}

// rotate creates the next segment. The head names it first, durably.
func (w *writer) rotate(name string) error {
	w.trusted = false
	next := head{File: name, Last: w.seq}
	if err := next.write(w.head); err != nil {
		return err
	}
	if err := syncData(w.head); err != nil {
		return err
	}
	file, err := w.dir.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if w.segment != nil {
		err = w.segment.Close()
	}
	w.segment, w.name, w.size, w.fresh, w.trusted = file, name, 0, true, true
	return err
}
