package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	maxLine   = 16 << 20   // bytes of a line that is taken
	noSession = "imported" // session of turns that name none
	maxName   = 200        // bytes of a speaker's name or a source id
)

// jsonlLine is one line of the jsonl form. Other members are ignored.
type jsonlLine struct {
	N       any    `json:"n"` // a number or a string
	Role    string `json:"role"`
	Speaker string `json:"speaker"`
	Text    string `json:"text"`
	Content string `json:"content"` // what others call text
	Time    string `json:"time"`
	Session string `json:"session"`
	Tool    string `json:"tool"`
	Channel string `json:"channel"`
	UserID  string `json:"user_id"`
}

func (l *jsonlLine) who() string {
	if l.Role != "" {
		return l.Role
	}
	return l.Speaker
}

// jsonl reads one turn a line.
func (h *history) jsonl(in *bufio.Reader) error {
	return h.lines(in, func(number int, raw []byte) (string, error) {
		turn, reason := jsonlTurn(raw, number)
		if reason != "" {
			return reason, nil
		}
		return "", h.yield(turn)
	})
}

// lines hands the lines that are not blank to read, with their numbers, and
// reports those for which it gives a reason.
func (h *history) lines(in *bufio.Reader, read func(number int, raw []byte) (reason string, err error)) error {
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the history: %w", err)
		}
		reason := fmt.Sprintf("is longer than %d bytes", maxLine)
		if line != nil {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if reason, err = read(number, line); err != nil {
				return err
			}
		}
		if reason != "" {
			h.bad(Bad{Line: number, Reason: reason})
		}
	}
}

// readLine returns the next line; nil for one of more than maxLine bytes.
func readLine(in *bufio.Reader) ([]byte, error) {
	line := []byte{}
	for length := 0; ; {
		part, err := in.ReadSlice('\n')
		if length += len(part); length <= maxLine {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0, err == nil:
		default:
			return nil, err
		}
		if length > maxLine {
			return nil, nil
		}
		return line, nil
	}
}

// jsonlTurn makes a turn of a line, or says why it cannot.
func jsonlTurn(raw []byte, number int) (Turn, string) {
	var l jsonlLine
	if reason := readObject(raw, &l); reason != "" {
		return Turn{}, reason
	}
	text := l.Text
	if text == "" {
		text = l.Content
	}
	if l.who() == "" {
		return Turn{}, "role or speaker is missing"
	}
	if text == "" && l.Tool == "" {
		return Turn{}, "text is missing"
	}
	at, err := parseTime(l.Time)
	if err != nil {
		return Turn{}, err.Error()
	}
	if l.Session == "" {
		l.Session = noSession
	}
	e := speak(l.who(), l.Speaker, l.Tool)
	e.Text, e.SessionID, e.Timestamp = text, sessionID(l.Session), at
	e.Metadata[memory.MetaSourceID] = sourceID(l.N, number)
	return Turn{Event: e, Line: number, Channel: l.Channel, UserID: l.UserID}, ""
}

// readObject reads a line into a struct, or says why it cannot.
func readObject(raw []byte, into any) (reason string) {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return ""
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		kind := wrong.Type.String()
		if kind != "string" {
			return fmt.Sprintf("%s must not be a %s", wrong.Field, wrong.Value)
		}
		return fmt.Sprintf("%s must be a string, not %s", wrong.Field, wrong.Value)
	}
	return "is not a JSON object: " + err.Error()
}

// sourceID writes n as the history does, or else the line's number.
func sourceID(n any, number int) string {
	switch n := n.(type) {
	case string:
		if n != "" {
			return shorten(n, maxName)
		}
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.Itoa(number)
}

// speak makes the event of a turn by who says it. A user and an assistant are
// who they are in any case of letters; anybody else is a person of that name. An
// assistant's turn with a tool is a call, a tool's turn the result.
func speak(role, name, tool string) memory.Event {
	e := memory.Event{Type: memory.UserMessage, Origin: memory.OriginUser, Metadata: map[string]any{}}
	switch strings.ToLower(role) {
	case "user", "human":
	case "assistant", "ai", "bot":
		e.Type, e.Origin = memory.AssistantOutput, memory.OriginAssistant
		if tool != "" {
			e.Type = memory.ToolCall
		}
	case "tool", "function":
		e.Type, e.Origin = memory.ToolResult, memory.OriginTool
		if ofWeb(tool) {
			e.Origin = memory.OriginWeb
		}
	case "system", "developer": // instructions of the program that kept the history: nobody's words
		e.Origin = memory.OriginImport
		name = role
	default:
		if name == "" {
			name = role
		}
	}
	if tool != "" {
		e.Metadata[memory.MetaTool] = tool
	}
	if name != "" && !strings.EqualFold(name, "user") && !strings.EqualFold(name, "assistant") {
		e.Metadata[memory.MetaSpeaker] = shorten(name, maxName)
	}
	return e
}

// ofWeb reports whether what a tool answers comes from the web.
func ofWeb(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.HasPrefix(tool, "web") || strings.HasPrefix(tool, "browser")
}

func shorten(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", time.DateOnly}

// parseTime reads a time; the zero time for "". Without a zone it is UTC.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time must be RFC 3339, such as 2026-05-08T13:56:00+02:00, not %q", shorten(s, 40))
}
