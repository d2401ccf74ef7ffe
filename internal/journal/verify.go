package journal

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Report is what Verify found. Lists are never nil.
type Report struct {
	Ok       bool           `json:"ok" jsonschema:"true if no line is damaged or missing"`
	Lines    int64          `json:"lines" jsonschema:"good lines"`
	FirstSeq int64          `json:"first_seq"`
	LastSeq  int64          `json:"last_seq"`
	Files    []FileReport   `json:"files"`
	Damage   []Damage       `json:"damage" jsonschema:"ranges of bytes that hold no good line"`
	Gaps     []memory.Range `json:"gaps" jsonschema:"ranges of seq, both ends included, of which no line is there"`
	Torn     []Torn         `json:"torn" jsonschema:"ends of interrupted writes; nothing in them was ever acknowledged"`
}

// FileReport is what Verify found in one segment.
type FileReport struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	Lines    int64  `json:"lines"`
	FirstSeq int64  `json:"first_seq"`
	LastSeq  int64  `json:"last_seq"`
}

// Torn is the end of a write that was interrupted: moved into a file of its own,
// or still at the end of the newest segment, where the next writer moves it from.
type Torn struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

// Verify reads the whole journal. Lines that check refuses count as damaged;
// check may be nil.
func (r *Reader) Verify(ctx context.Context, check func(Line) error) (Report, error) {
	rep := Report{Files: []FileReport{}, Damage: []Damage{}, Gaps: []memory.Range{}, Torn: []Torn{}}
	v, err := r.view()
	if err != nil {
		return rep, err
	}
	names, err := v.segments()
	if err != nil {
		return rep, err
	}
	for _, name := range names {
		if err := rep.file(ctx, v, name, check); err != nil {
			return rep, err
		}
	}
	if err := rep.tornFiles(v); err != nil {
		return rep, err
	}
	if v.head.Last > rep.LastSeq {
		rep.Gaps = append(rep.Gaps, memory.Range{First: rep.LastSeq + 1, Last: v.head.Last})
	}
	rep.Ok = len(rep.Damage) == 0 && len(rep.Gaps) == 0
	return rep, nil
}

func (rep *Report) file(ctx context.Context, v *view, name string, check func(Line) error) (err error) {
	file, size, err := v.segment(name)
	if err != nil {
		var broken *memory.CorruptError
		if errors.As(err, &broken) {
			rep.Damage = append(rep.Damage, Damage{File: name, Reason: broken.Reason})
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	f := FileReport{File: name, Bytes: size}
	for s := newScanner(file, 0, size); ; {
		p, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if p.torn && name == v.last {
			rep.Torn = append(rep.Torn, Torn{File: name, Offset: p.offset, Bytes: p.length})
			continue
		}
		rep.piece(&f, p, check)
	}
	rep.Files = append(rep.Files, f)
	return nil
}

func (rep *Report) piece(f *FileReport, p piece, check func(Line) error) {
	if p.reason == "" && p.seq <= rep.LastSeq {
		p.reason = reasonDouble
	}
	if p.reason == "" && check != nil {
		if err := check(Line{Seq: p.seq, File: f.File, Offset: p.offset, Data: p.line}); err != nil {
			p.reason = err.Error()
		}
	}
	if p.reason != "" {
		rep.Damage = addDamage(rep.Damage, Damage{File: f.File, Offset: p.offset, Length: p.length, Reason: p.reason})
		return
	}
	if p.seq > rep.LastSeq+1 { // seq begins with 1
		rep.Gaps = append(rep.Gaps, memory.Range{First: rep.LastSeq + 1, Last: p.seq - 1})
	}
	if rep.FirstSeq == 0 {
		rep.FirstSeq = p.seq
	}
	if f.FirstSeq == 0 {
		f.FirstSeq = p.seq
	}
	rep.LastSeq, f.LastSeq = p.seq, p.seq
	rep.Lines++
	f.Lines++
}

// tornFiles adds the files that torn tails were moved into.
func (rep *Report) tornFiles(v *view) error {
	if v.dir == nil {
		return nil
	}
	names, err := v.dir.list(isTorn)
	if err != nil {
		return err
	}
	for _, name := range names {
		size, err := v.sizeOf(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		rep.Torn = append(rep.Torn, Torn{File: name, Bytes: size})
	}
	return nil
}
