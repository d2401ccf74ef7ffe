package redact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// keySize is the size in bytes of the keys that LoadOrCreateKey makes.
const keySize = 32

// LoadOrCreateKey returns the key in the file at path, for New. If there is no such file it creates one with mode 0600
// and 32 random bytes, and its directory with mode 0700. Processes that do so at the same time all get the same key:
// the file appears whole and under its name once. A file of another size is an error and stays as it is.
func LoadOrCreateKey(path string) ([]byte, error) {
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create directory of redaction key: %w", err)
	}
	if err := createKey(path); err != nil {
		return nil, fmt.Errorf("create redaction key: %w", err)
	}
	return readKey(path)
}

// CheckKey reports what is wrong with the key in the file at path: ErrCorrupt where
// it is not whole, fs.ErrNotExist where there is none. It creates nothing.
func CheckKey(path string) error {
	_, err := readKey(path)
	return err
}

func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read redaction key: %w", err)
	}
	if len(key) != keySize {
		return nil, memory.WithHint(&memory.CorruptError{Path: path, Offset: -1, Reason: fmt.Sprintf("the redaction key has %d bytes, and should have %d", len(key), keySize)},
			"put it back from a copy; or remove it to get a new one: secrets then get other marks than before")
	}
	return key, nil
}

// createKey writes a new key beside path and links it there, unless another process was first.
func createKey(path string) (err error) {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".redact-key-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
