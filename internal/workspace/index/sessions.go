package index

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// maxTranscript is the size above which a transcript is passed over.
const maxTranscript = 256 << 20

// sessions lists the transcripts of a directory: <session>.jsonl. A directory that
// is not there has none. Links are not followed.
func sessions(dir string, notice func(workspace.Notice)) (docs []document, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "open sessions: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "list sessions: %w", err)
	}
	for _, e := range entries {
		name := sourceSessions + "/" + e.Name()
		if !strings.HasSuffix(e.Name(), ".jsonl") || e.IsDir() {
			continue
		}
		info, err := e.Info()
		switch {
		case err != nil:
			notice(workspace.Notice{File: name, Reason: err.Error()})
		case !info.Mode().IsRegular():
			notice(workspace.Notice{File: name, Reason: "it is no regular file"})
		case info.Size() > maxTranscript:
			notice(workspace.Notice{File: name, Reason: "it is too large"})
		default:
			docs = append(docs, sessionDocument(dir, name, info))
		}
	}
	return docs, nil
}

func sessionDocument(dir, name string, info fs.FileInfo) document {
	d := document{path: name, source: sourceSessions, size: info.Size(), changed: info.ModTime()}
	d.read = func() (text string, now document, err error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return "", d, memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
		defer func() { err = errors.Join(err, root.Close()) }()
		in, err := root.OpenFile(strings.TrimPrefix(name, sourceSessions+"/"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return "", d, memory.Errorf(memory.ErrNotFound, "%w", err)
		}
		if err != nil {
			return "", d, memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		text, err = spoken(io.LimitReader(in, maxTranscript))
		return text, d, err
	}
	return d
}

// transcriptLine is what OpenClaw's index reads of a line.
type transcriptLine struct {
	Type    string `json:"type"`
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// spoken returns what user and assistant said in a transcript, a line each, as
// OpenClaw indexes it: "User: …" and "Assistant: …", with white space folded.
// Lines that are no JSON, and other kinds, are passed over.
func spoken(in io.Reader) (string, error) {
	var said []string
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if text := utterance(line); text != "" {
			said = append(said, text)
		}
		if errors.Is(err, io.EOF) {
			return strings.Join(said, "\n"), nil
		}
		if err != nil {
			return "", memory.Errorf(memory.ErrUnavailable, "%w", err)
		}
	}
}

func utterance(line []byte) string {
	var l transcriptLine
	if json.Unmarshal(line, &l) != nil || l.Type != "message" {
		return ""
	}
	label := map[string]string{"user": "User: ", "assistant": "Assistant: "}[l.Message.Role]
	if label == "" {
		return ""
	}
	text := words(l.Message.Content)
	if text == "" || !utf8.ValidString(text) {
		return ""
	}
	return label + text
}

// words returns a message's text: a string, or the text parts of a list.
func words(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) != nil {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(content, &parts) != nil {
			return ""
		}
		var all []string
		for _, p := range parts {
			if p.Type == "text" {
				all = append(all, p.Text)
			}
		}
		text = strings.Join(all, " ")
	}
	return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
}
