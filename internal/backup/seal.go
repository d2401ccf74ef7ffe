package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Secret is what a backup is encrypted with; the zero value is nothing.
type Secret struct {
	Passphrase string // where to get it: env:NAME, file:PATH or prompt
	KeyFile    string // path of a file of age keys: public ones are enough to write
}

// Keeper resolves a Secret.
type Keeper struct {
	Getenv func(string) string
	// Prompt asks a person, without showing the answer; twice for a new passphrase.
	Prompt func(label string) (string, error)
}

// scryptWork is the cost of guessing a passphrase: 2 to this power rounds, about a
// second (age's own default).
const scryptWork = 18

// recipients returns whom a new archive is encrypted to; none for no encryption.
func (k Keeper) recipients(s Secret) ([]age.Recipient, error) {
	switch {
	case s.Passphrase != "" && s.KeyFile != "":
		return nil, &memory.FieldError{Field: "passphrase", Reason: "and key_file exclude each other"}
	case s.Passphrase != "":
		word, err := k.passphrase(s.Passphrase, true)
		if err != nil {
			return nil, err
		}
		r, err := age.NewScryptRecipient(word)
		if err != nil {
			return nil, fmt.Errorf("passphrase: %w", err)
		}
		r.SetWorkFactor(scryptWork)
		return []age.Recipient{r}, nil
	case s.KeyFile != "":
		return keyFileRecipients(s.KeyFile)
	}
	return nil, nil
}

// identities returns what an archive is decrypted with.
func (k Keeper) identities(s Secret) ([]age.Identity, error) {
	switch {
	case s.Passphrase != "" && s.KeyFile != "":
		return nil, &memory.FieldError{Field: "passphrase", Reason: "and key_file exclude each other"}
	case s.Passphrase != "":
		word, err := k.passphrase(s.Passphrase, false)
		if err != nil {
			return nil, err
		}
		id, err := age.NewScryptIdentity(word)
		if err != nil {
			return nil, fmt.Errorf("passphrase: %w", err)
		}
		return []age.Identity{id}, nil
	case s.KeyFile != "":
		text, err := readKeys(s.KeyFile)
		if err != nil {
			return nil, err
		}
		ids, err := age.ParseIdentities(bytes.NewReader(text))
		if err != nil {
			return nil, &memory.FieldError{Field: "key_file", Reason: "holds no age secret key", Hint: "the lines begin with AGE-SECRET-KEY-; a public key cannot decrypt"}
		}
		return ids, nil
	}
	return nil, memory.WithHint(memory.Errorf(memory.ErrDenied, "the backup is encrypted"), "give --passphrase env:NAME, file:PATH or prompt, or --key-file PATH")
}

// passphrase gets a passphrase from where ref says. No error holds it.
func (k Keeper) passphrase(ref string, fresh bool) (string, error) {
	where, name, _ := strings.Cut(ref, ":")
	var word string
	switch {
	case ref == "prompt":
		return k.asked(fresh)
	case where == "env" && name != "":
		word = k.Getenv(name)
	case where == "file" && name != "":
		text, err := readKeys(name)
		if err != nil {
			return "", err
		}
		word = strings.TrimRight(string(text), "\r\n")
	default:
		// The value is never repeated: it may be the passphrase itself.
		return "", &memory.FieldError{Field: "passphrase", Reason: "must be env:NAME, file:PATH or prompt", Hint: "put the passphrase into an environment variable or a file and name that"}
	}
	if word == "" {
		return "", &memory.FieldError{Field: "passphrase", Reason: "is empty in " + ref}
	}
	return word, nil
}

func (k Keeper) asked(fresh bool) (string, error) {
	if k.Prompt == nil {
		return "", &memory.FieldError{Field: "passphrase", Reason: "cannot be asked for here", Hint: "use env:NAME or file:PATH"}
	}
	word, err := k.Prompt("Passphrase: ")
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "ask for the passphrase: %w", err)
	}
	if word == "" {
		return "", &memory.FieldError{Field: "passphrase", Reason: "must not be empty"}
	}
	if !fresh {
		return word, nil
	}
	again, err := k.Prompt("Once more: ")
	if err != nil {
		return "", memory.Errorf(memory.ErrUnavailable, "ask for the passphrase: %w", err)
	}
	if again != word {
		return "", &memory.FieldError{Field: "passphrase", Reason: "was not the same the second time"}
	}
	return word, nil
}

const maxKeys = 1 << 20 // bytes of a file of keys

func readKeys(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, memory.Errorf(memory.ErrNotFound, "there is no file %s", path)
	case err != nil:
		return nil, memory.Errorf(memory.ErrUnavailable, "read keys: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxKeys:
		return nil, memory.Errorf(memory.ErrInvalid, "%s is no file of keys", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read keys: %w", err)
	}
	return text, nil
}

// keyFileRecipients reads public keys, or takes those that belong to secret ones.
func keyFileRecipients(path string) ([]age.Recipient, error) {
	text, err := readKeys(path)
	if err != nil {
		return nil, err
	}
	if public, err := age.ParseRecipients(bytes.NewReader(text)); err == nil {
		return public, nil
	}
	secret, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, &memory.FieldError{Field: "key_file", Reason: "holds no age keys", Hint: "age-keygen -o key.txt makes one"}
	}
	var to []age.Recipient
	for _, id := range secret {
		switch id := id.(type) {
		case *age.X25519Identity:
			to = append(to, id.Recipient())
		case *age.HybridIdentity:
			to = append(to, id.Recipient())
		}
	}
	return to, nil
}

// seal returns a writer that compresses, and encrypts where there are recipients,
// into out. Closing it does not close out.
func seal(out io.Writer, to []age.Recipient) (io.WriteCloser, error) {
	var locked io.WriteCloser
	if len(to) > 0 {
		var err error
		if locked, err = age.Encrypt(out, to...); err != nil {
			return nil, fmt.Errorf("encrypt: %w", err)
		}
		out = locked
	}
	// One worker: the same input gives the same bytes.
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return &sealed{z, locked}, nil
}

type sealed struct {
	*zstd.Encoder
	locked io.Closer // nil where nothing is encrypted
}

// Close writes what is left.
func (s *sealed) Close() error {
	err := s.Encoder.Close()
	if s.locked != nil {
		err = errors.Join(err, s.locked.Close())
	}
	return err
}

const (
	ageMagic  = "age-encryption.org/"
	maxWindow = 64 << 20 // bytes of memory that an archive may ask for when it is read
)

// unseal returns what seal was given.
func unseal(in io.Reader, k Keeper, s Secret) (plain io.ReadCloser, encrypted bool, err error) {
	b := bufio.NewReaderSize(in, 1<<16)
	head, err := b.Peek(len(ageMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, memory.Errorf(memory.ErrUnavailable, "read the backup: %w", err)
	}
	var from io.Reader = b
	if encrypted = string(head) == ageMagic; encrypted {
		ids, err := k.identities(s)
		if err != nil {
			return nil, true, err
		}
		if from, err = age.Decrypt(b, ids...); err != nil {
			var none *age.NoIdentityMatchError
			if errors.As(err, &none) {
				return nil, true, memory.Errorf(memory.ErrDenied, "the backup was not encrypted with this key or passphrase")
			}
			return nil, true, damaged("%v", err)
		}
	}
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, encrypted, broken(err)
	}
	return z.IOReadCloser(), encrypted, nil
}
