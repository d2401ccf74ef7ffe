package workspace

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Options say how records are read. The zero value reads as the reference
// client does.
type Options struct {
	Split  Split        // "" is SplitClient
	Notice func(Notice) // called for what is left out and what is odd; may be nil
}

// Records reads the workspace's records one file at a time, in the order of
// CreatedAt, OriginFile and LineStart. A file that cannot be read, is not UTF-8
// or vanishes is reported and left out; one that changes meanwhile is read as it
// is then. An error ends the reading: the workspace cannot be listed, or ctx is
// done.
func (w *Workspace) Records(ctx context.Context, o Options) iter.Seq2[Record, error] {
	if o.Notice == nil {
		o.Notice = func(Notice) {}
	}
	if o.Split == "" {
		o.Split = SplitClient
	}
	return func(yield func(Record, error) bool) {
		files, err := w.recordFiles(ctx, o.Notice)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for len(files) > 0 {
			if err := ctx.Err(); err != nil {
				yield(Record{}, err)
				return
			}
			next := files[0]
			files = files[1:]
			text, now, err := w.Read(next.File)
			if err == nil && !utf8.ValidString(text) {
				err = memory.Errorf(memory.ErrInvalid, "it is not UTF-8")
			}
			if err != nil {
				o.Notice(Notice{File: next.Origin(), Skipped: true, Reason: err.Error()})
				continue
			}
			if again, later := next.as(now); later && again.reads < readAttempts {
				at, _ := slices.BinarySearchFunc(files, again, dueFile.compare)
				files = slices.Insert(files, at, again)
				continue
			}
			for r := range RecordsOf(now, text, o.Split, o.Notice) {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// dueFile is a file with the time that its records are sorted by.
type dueFile struct {
	File
	origin  string
	created time.Time
	reads   int
}

func due(f File) dueFile {
	d := dueFile{File: f, origin: f.Origin(), created: f.ModTime}
	if c := classify(d.origin); c.dated {
		d.created = c.day
	}
	return d
}

func (d dueFile) compare(other dueFile) int {
	return cmp.Or(d.created.Compare(other.created), strings.Compare(d.origin, other.origin))
}

// as returns the file as it is now, and whether its turn comes later for it.
func (d dueFile) as(now File) (dueFile, bool) {
	again := due(now)
	again.reads = d.reads + 1
	return again, again.compare(d) > 0
}

// recordFiles lists the files that have records, by the order of those.
func (w *Workspace) recordFiles(ctx context.Context, notice func(Notice)) ([]dueFile, error) {
	files, err := w.Files(ctx, Memory, notice)
	if err != nil {
		return nil, err
	}
	var out []dueFile
	known := map[string]bool{}
	for _, f := range files {
		if !f.HasRecords() {
			continue
		}
		d := due(f)
		if known[d.origin] {
			notice(Notice{File: d.origin, Skipped: true, Reason: "another file has the same name once what is not UTF-8 is replaced"})
			continue
		}
		known[d.origin] = true
		out = append(out, d)
	}
	slices.SortFunc(out, dueFile.compare)
	return out, nil
}
