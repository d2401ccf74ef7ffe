package alf

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// sums are the SHA-256 sums of entries by their names.
type sums map[string][sha256.Size]byte

// checksum is the manifest's checksum: SHA-256 over a line for each entry but
// the manifest, sorted by name: its sum in hex, two blanks, its name.
func (s sums) checksum() string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		sum := s[name]
		io.WriteString(all, hex.EncodeToString(sum[:])+"  "+name+"\n") // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil))
}

// sumOf adds up all entries but the manifest.
func sumOf(entries map[string]*zip.File, manifest string) (sums, error) {
	out := sums{}
	for name, e := range entries {
		if name == manifest {
			continue
		}
		in, err := e.Open()
		if err != nil {
			return nil, damaged(name, err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, in); err != nil {
			return nil, damaged(name, err)
		}
		if err := in.Close(); err != nil {
			return nil, damaged(name, err)
		}
		out[name] = [sha256.Size]byte(h.Sum(nil))
	}
	return out, nil
}

// Verify reads the whole archive and compares its checksum: ErrCorrupt where it
// is not that of the manifest. An archive without one, or with one of another
// program's form, only has its entries read. ours tells which.
func (r *Reader) Verify() (ours bool, err error) {
	return verify(r.entries, manifestName, r.manifest.Checksum, r.manifest.Agent.Exporter)
}

func verify(entries map[string]*zip.File, manifest, want, by string) (ours bool, err error) {
	have, err := sumOf(entries, manifest)
	if err != nil {
		return false, err
	}
	ours = by == exporter && strings.HasPrefix(want, "sha256:")
	if got := have.checksum(); ours && got != want {
		return ours, memory.WithHint(memory.Errorf(memory.ErrCorrupt, "the archive's contents have the checksum %s, and its manifest says %s", got, want),
			"it was changed after it was written: take another copy")
	}
	return ours, nil
}

// validChecksum reports whether s is of the form algorithm:hex.
func validChecksum(s string) bool {
	algorithm, digits, found := strings.Cut(s, ":")
	lowerOrDigit := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	hexDigit := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' }
	only := func(s string, ok func(rune) bool) bool {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !ok(r) })
	}
	return found && only(algorithm, lowerOrDigit) && only(digits, hexDigit)
}
