package llm

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const maxSecret = 16 << 10 // bytes of a secret's file

// Secret resolves a reference to a secret: env:NAME is that variable by getenv,
// file:PATH the content of that file without the space around it; "" is no
// secret. A relative PATH lies under the directory root, and may not leave it.
// No error holds the secret.
func Secret(ref string, getenv func(string) string, root string) (string, error) {
	if ref == "" {
		return "", nil
	}
	where, name, found := strings.Cut(ref, ":")
	var secret string
	switch {
	case found && where == "env" && name != "":
		secret = strings.TrimSpace(getenv(name))
		if secret == "" {
			return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "the environment variable %s, which holds the secret, is not set", name), "export "+name+"=…")
		}
	case found && where == "file" && name != "":
		text, err := readSecret(name, root)
		if err != nil {
			return "", err
		}
		if secret = strings.TrimSpace(text); secret == "" {
			return "", memory.Errorf(memory.ErrInvalid, "%s, which should hold the secret, is empty", name)
		}
	default:
		return "", &memory.FieldError{Field: "model.key", Reason: "must be env:NAME or file:PATH", Hint: "put the key into an environment variable and name that"}
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", memory.Errorf(memory.ErrInvalid, "the secret in %s has characters that no key has", ref)
	}
	return secret, nil
}

// readSecret reads a small regular file.
func readSecret(path, root string) (string, error) {
	f, err := openSecret(path, root)
	if errors.Is(err, fs.ErrNotExist) {
		return "", memory.WithHint(memory.Errorf(memory.ErrInvalid, "the secret: there is no file %s", path), "a relative path lies under the home "+root)
	}
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "the secret: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", memory.Errorf(memory.ErrUnavailable, "the secret: %w", err)
	case len(text) > maxSecret:
		return "", memory.Errorf(memory.ErrInvalid, "%s is too long to be the secret", path)
	}
	return string(text), nil
}

// openSecret opens path, which must be a regular file: opening a pipe would
// wait for its other end.
func openSecret(path, root string) (*os.File, error) {
	if filepath.IsAbs(path) {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return nil, memory.Errorf(memory.ErrInvalid, "%s is not a regular file", path)
		}
		return os.Open(path)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	st, err := dir.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, memory.Errorf(memory.ErrInvalid, "%s is not a regular file", path)
	}
	return dir.Open(path)
}
