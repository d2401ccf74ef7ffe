// Package backup writes one agent's whole memory into one file while it is in
// use, checks such a file, and brings it back.
//
// The file is a tar archive compressed by zstd, and encrypted by age where that is
// asked for:
//
//	agent/…         the agent's directory, in the order of the paths
//	manifest.json   last: what must be in the archive, with sizes and SHA-256
//
// It is consistent: each database is one moment of it (SQLite's online backup),
// the graph is copied under its lock, and the event log is cut, at a durable
// event, after all of them, so that it holds every change that they do; what they
// lack is replayed from it when they are opened. Everything is copied verbatim:
// what stood in the agent's directory stands in the archive.
package backup

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	format       = "openclawssy-backup"
	version      = 1
	manifestName = "manifest.json"
	agentPrefix  = "agent/"
	maxManifest  = 256 << 20 // bytes
)

// Manifest says what an archive must hold.
type Manifest struct {
	Format    string         `json:"format"`  // openclawssy-backup
	Version   int            `json:"version"` // of the format
	Program   string         `json:"program"` // version that wrote it
	Agent     memory.AgentID `json:"agent"`
	CreatedAt time.Time      `json:"created_at"`
	LastSeq   int64          `json:"last_seq"` // of the event log, where it was cut
	Schemas   map[string]int `json:"schemas"`  // of the databases, by path
	Files     []File         `json:"files"`    // in the order of the archive
	LeftOut   []LeftOut      `json:"left_out"` // what stood beside them
	Secrets   int            `json:"secrets"`  // found in the files, which are verbatim
}

// File is one file of the agent. Path is relative to the agent's directory, with
// slashes.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// LeftOut is a file of the agent's directory that is not in the archive.
type LeftOut struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Bytes adds up the sizes of the files.
func (m Manifest) Bytes() int64 {
	var sum int64
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// readManifest reads the last entry of an archive.
func readManifest(h *tar.Header, in io.Reader) (Manifest, error) {
	var m Manifest
	if h.Size > maxManifest {
		return m, damaged("its manifest has %d bytes", h.Size)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return m, broken(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, damaged("its manifest cannot be read: %v", err)
	}
	switch {
	case m.Format != format:
		return m, damaged("its manifest is of the format %q", m.Format)
	case m.Version != version:
		return m, memory.WithHint(memory.Errorf(memory.ErrConflict, "the backup has version %d of the format, and this build knows %d", m.Version, version),
			"it was written by a newer openclawssy: install that version or a later one")
	}
	if _, err := memory.ParseAgentID(string(m.Agent)); err != nil {
		return m, damaged("its manifest names no agent")
	}
	return m, nil
}

// checkPath reports why a path of an archive must not be written: it has to name
// a file below the agent's directory, whoever made the archive.
func checkPath(path string) error {
	if !fs.ValidPath(path) || path == "." || strings.ContainsRune(path, 0) || transient(path) {
		return damaged("it holds a file %q, which is no part of an agent's memory", path)
	}
	return nil
}

func damaged(f string, args ...any) error {
	return memory.Errorf(memory.ErrCorrupt, "the backup is damaged: %s", fmt.Sprintf(f, args...))
}

// broken is damaged for an error of reading, unless the disk or the caller is its
// cause.
func broken(err error) error {
	if memory.KindOf(err) != memory.ErrInternal {
		return err
	}
	return memory.Errorf(memory.ErrCorrupt, "the backup is damaged: %w", err)
}
