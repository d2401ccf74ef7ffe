package life

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openclawssy/openclawssy/internal/alf"
	"github.com/openclawssy/openclawssy/internal/workspace"
)

// sessionOrigin is the origin of records that were made of transcripts.
const sessionOrigin = "session"

// maxMessage bounds a line of a transcript.
const maxMessage = 16 << 20

// sessionLine is a line of a transcript: a header or a message.
type sessionLine struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Timestamp json.RawMessage `json:"timestamp"`
	Message   struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		Timestamp json.RawMessage `json:"timestamp"`
	} `json:"message"`
}

// readSessions gives each message of each agent's transcripts as a record. A
// line that cannot be read is left out, and its file named.
func readSessions(ctx context.Context, dir string, agent uuid.UUID, notice func(workspace.Notice), put func(*alf.Record) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "agents", "*", "sessions", "*.jsonl"))
	if err != nil || dir == "" {
		return err
	}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readSession(dir, file, agent, notice, put); err != nil {
			return err
		}
	}
	return nil
}

func readSession(dir, file string, agent uuid.UUID, notice func(workspace.Notice), put func(*alf.Record) error) error {
	origin, err := filepath.Rel(dir, file)
	if err != nil {
		return err
	}
	origin = filepath.ToSlash(origin)
	st, err := os.Lstat(file)
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		notice(workspace.Notice{File: origin, Skipped: true, Reason: err.Error()})
		return nil
	}
	in, err := os.Open(file)
	if err != nil {
		notice(workspace.Notice{File: origin, Skipped: true, Reason: err.Error()})
		return nil
	}
	defer in.Close()
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 64<<10), maxMessage)
	session := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	at, bad, number := st.ModTime(), 0, 0
	for scan.Scan() {
		number++
		if len(strings.TrimSpace(scan.Text())) == 0 {
			continue
		}
		var l sessionLine
		if json.Unmarshal(scan.Bytes(), &l) != nil {
			bad++
			continue
		}
		if t, known := l.time(); known {
			at = t
		}
		text := l.text()
		if text == "" {
			continue
		}
		if err := put(l.record(agent, session, origin, number, text, at)); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		notice(workspace.Notice{File: origin, Line: number + 1, Reason: "the rest is left out: " + err.Error()})
	}
	if bad > 0 {
		notice(workspace.Notice{File: origin, Reason: fmt.Sprintf("%d lines are not JSON and were left out", bad)})
	}
	return nil
}

// time returns when a line was written: text with a zone, or milliseconds.
func (l sessionLine) time() (time.Time, bool) {
	for _, raw := range []json.RawMessage{l.Timestamp, l.Message.Timestamp} {
		var text string
		var ms float64
		if json.Unmarshal(raw, &text) == nil {
			if t, err := alf.ParseTime(text); err == nil {
				return t.Time, true
			}
		}
		if json.Unmarshal(raw, &ms) == nil && ms > 0 && ms < 1e15 {
			return time.UnixMilli(int64(ms)), true
		}
	}
	return time.Time{}, false
}

// text returns what a message says: a text, or the texts among its parts.
func (l sessionLine) text() string {
	if l.Type != "" && l.Type != "message" {
		return ""
	}
	var text string
	if json.Unmarshal(l.Message.Content, &text) == nil {
		return strings.TrimSpace(text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(l.Message.Content, &parts) != nil {
		return ""
	}
	var out []string
	for _, p := range parts {
		if p.Text != "" && (p.Type == "text" || p.Type == "") {
			out = append(out, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func (l sessionLine) record(agent uuid.UUID, session, origin string, number int, text string, at time.Time) *alf.Record {
	name := l.ID
	if name == "" {
		name = fmt.Sprint(number)
	}
	r := &alf.Record{ID: workspace.RecordID(origin + ":" + name), AgentID: agent, Content: text, MemoryType: alf.Episodic, Status: alf.Active, Namespace: "session", Category: l.Message.Role,
		Tags:     alf.List[string]{"session"},
		Source:   alf.Source{Runtime: openclaw, Origin: sessionOrigin, OriginFile: origin, ExtractionMethod: alf.AgentWritten, SessionID: session, InteractionID: name},
		Temporal: alf.Temporal{CreatedAt: alf.At(at), ObservedAt: alf.At(at)}}
	if l.Message.Role == "user" {
		r.Source.ExtractionMethod = alf.UserAuthored
	}
	if l.Message.Role != "" {
		r.Tags = append(r.Tags, l.Message.Role)
	}
	return r
}
