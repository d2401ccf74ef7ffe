package journal

import (
	"errors"
	"math"
	"time"
)

const (
	groupBytes = 1 << 20 // most bytes written with one fdatasync, unless one entry is larger
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// run writes what is queued until the queue is closed and empty, or closed and
// not to be written.
func (j *Journal) run(w *writer) {
	defer close(j.stopped)
	retry := firstRetry
	var again <-chan time.Time
	for {
		select {
		case <-j.queue.work:
		case <-again:
		}
		again = nil
		kept, err := j.round(w)
		if err == nil {
			retry = firstRetry
		} else if kept > 0 {
			again = time.After(retry)
			retry = min(2*retry, lastRetry)
		}
		if closed, left := j.queue.state(); closed && (left == 0 || err != nil) {
			j.lost = errors.Join(j.giveUp(err), w.close())
			return
		}
	}
}

// round writes one group. It returns the error of a group that was not written
// and how many entries wait to be tried again.
func (j *Journal) round(w *writer) (kept int, err error) {
	if !j.queue.begin() {
		return 0, nil
	}
	if err := w.lock(); err != nil {
		return j.fail(w, nil, err)
	}
	torn := w.torn
	group := j.queue.take(groupBytes)
	if lines(group) > 0 {
		err = w.commit(group)
	}
	w.unlock()
	if err != nil {
		return j.fail(w, group, err)
	}
	j.count(func(s *Stats) {
		s.Torn += w.torn - torn
		if n := lines(group); n > 0 {
			s.Flushed += n
			s.Bytes += int64(len(w.buf))
			s.Groups++
		}
	})
	j.queue.finish(group)
	return 0, nil
}

func (j *Journal) fail(w *writer, group []*entry, err error) (int, error) {
	err = unavailable(err)
	kept := j.queue.restore(group, err)
	j.count(func(s *Stats) { s.Failures++ })
	w.log.Error().Err(err).Int("waiting", kept).Msg("lines not written to the log")
	return kept, err
}

// giveUp empties the queue of a journal that could not be written before it was
// closed.
func (j *Journal) giveUp(err error) error {
	var objects [][]byte
	for _, e := range j.queue.take(math.MaxInt) {
		if e.done != nil {
			e.done <- ErrClosed
			continue
		}
		objects = append(objects, e.objects...)
	}
	if len(objects) == 0 {
		return nil
	}
	j.count(func(s *Stats) { s.Lost += int64(len(objects)) })
	return &LostError{Objects: objects, Err: err}
}

func lines(group []*entry) int64 {
	var n int64
	for _, e := range group {
		n += int64(len(e.objects))
	}
	return n
}
