package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/schollz/progressbar/v3"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// outline prints any result for a person: its JSON members in their order,
// indented, one a line.
func outline(w io.Writer, out any) error {
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	var sb strings.Builder
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := outlineValue(&sb, dec, 0, ""); err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.TrimPrefix(sb.String(), "\n"))
	return err
}

// outlineValue prints the next value of dec. label, if any, stands before it.
func outlineValue(sb *strings.Builder, dec *json.Decoder, depth int, label string) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	pad := strings.Repeat("  ", depth)
	switch v := tok.(type) {
	case json.Delim:
		if label != "" {
			fmt.Fprintf(sb, "%s%s", pad, label)
			if !dec.More() {
				sb.WriteString(" –")
			}
			sb.WriteString("\n")
			depth++
		}
		for first := true; dec.More(); first = false {
			name := "-"
			if v == '{' {
				key, err := dec.Token()
				if err != nil {
					return err
				}
				name = clean(fmt.Sprint(key)) + ":"
			} else if label == "" && !first {
				sb.WriteString("\n")
			}
			if err := outlineValue(sb, dec, depth, name); err != nil {
				return err
			}
		}
		_, err := dec.Token()
		return err
	case nil:
		return nil // absent: nothing to read
	case string:
		if v == "" {
			return nil
		}
		fmt.Fprintf(sb, "%s%s %s\n", pad, label, clean(v))
	default:
		fmt.Fprintf(sb, "%s%s %v\n", pad, label, v)
	}
	return nil
}

// clean makes remembered text safe for a terminal: no control characters, one
// line.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			return ' '
		case c < 0x20 || c >= 0x7f && c < 0xa0, c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069:
			return -1
		}
		return c
	}, s)
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// withProgress returns a context whose progress is drawn on a terminal, and a
// function that ends the drawing.
func (r *Runner) withProgress(ctx context.Context, what string) (context.Context, func()) {
	if !r.Terminal || r.Options.Quiet {
		return ctx, func() {}
	}
	var mu sync.Mutex
	var bar *progressbar.ProgressBar
	unit := ""
	draw := func(p op.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if bar == nil {
			total := p.Total
			if total == 0 {
				total = -1
			}
			bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(r.Err), progressbar.OptionSetDescription(what+" ("+p.Unit+")"),
				progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(), progressbar.OptionThrottle(100e6))
			unit = p.Unit
		}
		if p.Unit != unit {
			unit = p.Unit
			bar.Describe(what + " (" + unit + ")")
		}
		if p.Total > 0 && bar.GetMax64() != p.Total {
			bar.ChangeMax64(p.Total)
		}
		if err := bar.Set64(p.Done); err != nil {
			bar = nil // the terminal is gone; the work goes on
		}
	}
	return op.WithProgress(ctx, draw), func() {
		mu.Lock()
		defer mu.Unlock()
		if bar != nil {
			if err := bar.Finish(); err != nil {
				fmt.Fprintln(r.Err)
			}
		}
	}
}

// Open opens a file for reading, or standard input for "-".
func (r *Runner) Open(name string) (io.Reader, func() error, error) {
	if name == "-" {
		return r.In, func() error { return nil }, nil
	}
	// Opening a named pipe waits for a writer, deaf to signals. What a shell hands
	// over as /dev/fd/N is open already.
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() && !st.IsDir() && !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/self/fd/") {
		return nil, nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "%s is not a regular file", name), "to read from a pipe, use - and standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		kind := memory.ErrUnavailable
		if errors.Is(err, os.ErrNotExist) {
			kind = memory.ErrNotFound
		}
		return nil, nil, memory.WithHint(memory.Errorf(kind, "%w", err), "- reads standard input")
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, nil, errors.Join(memory.Errorf(memory.ErrInvalid, "%s is a directory; give a file", name), f.Close())
	}
	return f, f.Close, nil
}

// note tells the person something beside the result.
func (r *Runner) note(format string, args ...any) {
	if !r.Options.Quiet {
		fmt.Fprintf(r.Err, format+"\n", args...)
	}
}
