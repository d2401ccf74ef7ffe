package life

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// Attachments: a file of up to attachedSize bytes is in the archive, as long as
// all of them have no more than attachedTotal; others are listed with their hash.
const (
	attachedSize  = 100 << 10
	attachedTotal = 64 << 20
	attachedCount = 20_000
)

// sortedPaths returns the keys of a map of files in order.
func sortedPaths[T any](files map[string]T) []string { return slices.Sorted(maps.Keys(files)) }

// attachments writes the list of the workspace's other files, and those of them
// that are small.
func (e *exporting) attachments(ctx context.Context) error {
	list := alf.Attachments{SizeThreshold: attachedSize}
	total := int64(0)
	for i, f := range e.attached {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i == attachedCount {
			e.notice(workspace.Notice{Reason: "more than 20000 files that are no memory: the rest is not listed"})
			break
		}
		a := alf.Attachment{ID: ownID(e.agent, "attachment:"+f.Path), Filename: path.Base(f.Path), MediaType: mediaType(f.Path), SizeBytes: f.Size, SourcePath: f.Path}
		sum := sha256.New()
		if f.Size > attachedSize || total+f.Size > attachedTotal {
			if err := e.w.Copy(f, sum); err != nil {
				e.skip(f.Path, err)
				continue
			}
		} else {
			text, now, err := e.w.Read(f)
			if err != nil {
				e.skip(f.Path, err)
				continue
			}
			text = e.inspect(text)
			io.WriteString(sum, text) // a hash never fails
			name := alf.ArtifactPath(f.Path)
			if err := e.out.File(name, strings.NewReader(text)); err != nil {
				return err
			}
			a.ArchivePath, a.SizeBytes = &name, now.Size
			total += int64(len(text))
		}
		a.Hash = alf.Hash{Algorithm: "sha256", Value: hex.EncodeToString(sum.Sum(nil))}
		list.Attachments = append(list.Attachments, a)
	}
	return e.out.Attachments(list)
}

// mediaType goes by the file's name: the machine's own tables are not asked, so
// that archives are the same everywhere.
func mediaType(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".json", ".jsonl", ".js", ".mjs", ".html", ".css", ".svg", ".xml", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".wasm":
		if t, _, err := mime.ParseMediaType(mime.TypeByExtension(ext)); err == nil {
			return t
		}
	case ".txt", ".log", ".sh", ".py", ".go", ".ts", ".toml", ".yaml", ".yml", ".ini", ".csv":
		return "text/plain"
	}
	return "application/octet-stream"
}
