package alf

import (
	"archive/zip"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Limits bound what an archive may make its reader do. An archive beyond them
// is refused.
type Limits struct {
	Entries  int   // entries of the archive
	Bytes    int64 // all entries unpacked
	Document int64 // one JSON document unpacked
	Line     int   // one record
	// Ratio is how many times larger than the archive its contents may be, once
	// they are larger than RatioFrom.
	Ratio     int64
	RatioFrom int64
}

// DefaultLimits allow an agent of many years and no bomb.
var DefaultLimits = Limits{Entries: 200_000, Bytes: 8 << 30, Document: 32 << 20, Line: 32 << 20, Ratio: 200, RatioFrom: 256 << 20}

const encrypted = 0x1 // general purpose flag

// entries checks the directory of a ZIP file and returns its files by name.
func entries(z *zip.Reader, size int64, lim Limits, f *findings) map[string]*zip.File {
	if len(z.File) > lim.Entries {
		f.errorf("", "the archive has %d entries: more than %d", len(z.File), lim.Entries)
		return nil
	}
	byName := make(map[string]*zip.File, len(z.File))
	var total uint64
	for _, e := range z.File {
		if strings.HasSuffix(e.Name, "/") && e.UncompressedSize64 == 0 {
			if err := CheckPath(strings.TrimRight(e.Name, "/")); err != nil {
				f.errorf(printable(e.Name), "%v", err)
			}
			f.should(!strings.HasPrefix(e.Name, rawPrefix), printable(e.Name), "is a directory entry: some readers fail on it")
			continue
		}
		if err := checkEntry(e); err != nil {
			f.errorf(printable(e.Name), "%v", err)
			continue
		}
		if byName[e.Name] != nil {
			f.errorf(e.Name, "stands twice in the archive")
			continue
		}
		byName[e.Name] = e
		if total += e.UncompressedSize64; total > uint64(lim.Bytes) {
			f.errorf("", "the archive unpacks to more than %d bytes", lim.Bytes)
			return nil
		}
	}
	if total > uint64(lim.RatioFrom) && total > uint64(lim.Ratio)*uint64(size) {
		f.errorf("", "the archive unpacks to %d bytes, more than %d times its size: it is taken for a bomb", total, lim.Ratio)
		return nil
	}
	return byName
}

// checkEntry refuses an entry that must not be unpacked.
func checkEntry(e *zip.File) error {
	switch {
	case e.Flags&encrypted != 0:
		return memory.Errorf(memory.ErrInvalid, "is encrypted")
	case e.Method != zip.Store && e.Method != zip.Deflate:
		return memory.Errorf(memory.ErrInvalid, "is packed with method %d: only stored and deflate are read", e.Method)
	case e.Mode()&fs.ModeType != 0:
		return memory.Errorf(memory.ErrDenied, "is not a regular file")
	case e.UncompressedSize64 > 1<<62:
		return memory.Errorf(memory.ErrInvalid, "has no possible size")
	}
	if err := CheckPath(e.Name); err != nil {
		return err
	}
	// What is unpacked is the path below these, which must be safe by itself.
	below, _ := strings.CutPrefix(e.Name, artifactPrefix)
	if raw, found := strings.CutPrefix(e.Name, rawPrefix); found {
		_, below, _ = strings.Cut(raw, "/")
	}
	return CheckPath(cmp.Or(below, e.Name))
}

func printable(name string) string {
	if CheckPath(name) == nil {
		return name
	}
	return fmt.Sprintf("%.120q", name)
}

// readDocument returns the whole of an entry that is small.
func readDocument(e *zip.File, lim Limits) ([]byte, error) {
	if e.UncompressedSize64 > uint64(lim.Document) {
		return nil, memory.Errorf(memory.ErrInvalid, "%s has %d bytes: more than the %d allowed for a document", e.Name, e.UncompressedSize64, lim.Document)
	}
	in, err := e.Open()
	if err != nil {
		return nil, damaged(e.Name, err)
	}
	text, err := io.ReadAll(in)
	if err == nil {
		err = in.Close()
	}
	if err != nil {
		return nil, damaged(e.Name, err)
	}
	return text, nil
}

// damaged says that an entry cannot be unpacked.
func damaged(name string, err error) error {
	return &memory.CorruptError{Path: name, Offset: -1, Reason: plain(err)}
}
