package alf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// spool keeps pieces of text in a temporary file until they are wanted in
// another order. The file has no name by the time that anything is in it, where
// the system allows that.
type spool struct {
	file *os.File
	size int64
	name string // still to be removed; "" for none
	buf  []byte
}

// piece is the place of a text in a spool.
type piece struct {
	at   int64
	size int
}

const spoolBuffer = 1 << 20

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "alf-*")
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "make a temporary file: %w", err)
	}
	s := &spool{file: f, buf: make([]byte, 0, spoolBuffer)}
	if err := os.Remove(f.Name()); err != nil {
		s.name = f.Name() // a system that does not remove open files
	}
	return s, nil
}

// add keeps text.
func (s *spool) add(text []byte) (piece, error) {
	p := piece{s.size, len(text)}
	s.size += int64(len(text))
	if len(s.buf)+len(text) > spoolBuffer {
		if err := s.flush(); err != nil {
			return piece{}, err
		}
	}
	if len(text) >= spoolBuffer {
		return p, s.write(text)
	}
	s.buf = append(s.buf, text...)
	return p, nil
}

func (s *spool) flush() error {
	text := s.buf
	s.buf = s.buf[:0]
	return s.write(text)
}

func (s *spool) write(text []byte) error {
	if _, err := s.file.Write(text); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "write a temporary file: %w", err)
	}
	return nil
}

// read returns a piece in a buffer of its own.
func (s *spool) read(p piece) ([]byte, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	text := make([]byte, p.size)
	if _, err := s.file.ReadAt(text, p.at); err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read a temporary file: %w", err)
	}
	return text, nil
}

// copyTo writes pieces in the given order. Neighbours are copied at once.
func (s *spool) copyTo(w io.Writer, pieces []piece) error {
	if err := s.flush(); err != nil {
		return err
	}
	for i := 0; i < len(pieces); {
		at, size := pieces[i].at, int64(0)
		for ; i < len(pieces) && pieces[i].at == at+size; i++ {
			size += int64(pieces[i].size)
		}
		if _, err := io.Copy(w, io.NewSectionReader(s.file, at, size)); err != nil {
			return fmt.Errorf("copy records: %w", err)
		}
	}
	return nil
}

func (s *spool) close() error {
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}
