package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Redactor takes the secrets out of a text.
type Redactor interface{ Text(string) string }

// maxLine bounds what is held in memory at a time.
const maxLine = 64 << 20

// Redact filters standard input. The redactor is made when the command runs.
func Redact(make func() (Redactor, error)) Command {
	return func(r *Runner) *cobra.Command {
		var lines bool
		c := &cobra.Command{
			Use: "redact", Short: "Take secrets out of standard input", Args: cobra.NoArgs,
			Long:    "Copy standard input to standard output with every secret replaced by [REDACTED:kind#hhhh].\nThe four digits are a keyed hash: the same secret has the same tag.",
			Example: "  openclawssy redact < notes.txt\n  openclawssy redact --jsonl < lines.jsonl > clean.jsonl",
			RunE: func(*cobra.Command, []string) error {
				red, err := make()
				if err != nil {
					return err
				}
				if lines {
					return redactLines(r.In, r.Out, red)
				}
				text, err := io.ReadAll(io.LimitReader(r.In, maxLine+1))
				if err != nil {
					return memory.Errorf(memory.ErrUnavailable, "read standard input: %w", err)
				}
				if len(text) > maxLine {
					return memory.WithHint(memory.Errorf(memory.ErrInvalid, "standard input is larger than 64 MiB"), "split it, or use --jsonl")
				}
				_, err = io.WriteString(r.Out, red.Text(string(text)))
				return err
			},
		}
		c.Flags().BoolVar(&lines, "jsonl", false, `read {"id","text"} lines and write {"id","out"} lines`)
		return c
	}
}

// redactLines redacts the text of each line. Other members are ignored.
func redactLines(in io.Reader, out io.Writer, red Redactor) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for n := 1; scanner.Scan(); n++ {
		var line struct {
			ID   json.RawMessage `json:"id"`
			Text *string         `json:"text"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return errors.Join(w.Flush(), memory.Errorf(memory.ErrInvalid, "line %d is not JSON: %w", n, err))
		}
		if line.Text == nil {
			return errors.Join(w.Flush(), memory.Errorf(memory.ErrInvalid, "line %d has no text", n))
		}
		if line.ID == nil {
			line.ID = json.RawMessage("null")
		}
		if err := enc.Encode(struct {
			ID  json.RawMessage `json:"id"`
			Out string          `json:"out"`
		}{line.ID, red.Text(*line.Text)}); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return errors.Join(w.Flush(), memory.Errorf(memory.ErrInvalid, "read lines: %w", err))
	}
	return w.Flush()
}
