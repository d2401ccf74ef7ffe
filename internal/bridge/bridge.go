// Package bridge serves hosts in other languages: one JSON request a line in,
// one JSON answer a line out, in the same order. docs/RECORDS.md shows a client.
package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// MaxLine is the most bytes of one request. A longer line is answered with an
// error and skipped.
const MaxLine = 64 << 20

// Call is one call of an adapter's verb.
type Call struct {
	Verb    string
	Args    json.RawMessage // a list, or what else the adapter takes; nil if absent
	Context json.RawMessage // an object; nil if absent
}

// Adapter runs verbs. Its answer is a value for JSON.
type Adapter interface {
	Call(ctx context.Context, call Call) (any, error)
}

// Adapters are the adapters of a bridge by the names that requests use.
type Adapters map[string]Adapter

// request is one line in.
type request struct {
	ID      json.RawMessage `json:"id"`
	Adapter string          `json:"adapter"`
	Verb    string          `json:"verb"`
	Args    json.RawMessage `json:"args"`
	Context json.RawMessage `json:"context"`
}

// failure is the error member of an answer.
type failure struct {
	Class   string `json:"class"` // a memory.Kind
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// Serve answers the requests of in on out until in ends, which is no error, or
// ctx does. Blank lines have no answer; every other line has one, whatever is
// wrong with it. When ctx ends while in has nothing to read, the reading of in
// stays behind: the caller closes in, or ends the process.
func Serve(ctx context.Context, in io.Reader, out io.Writer, adapters Adapters) error {
	lines := make(chan line)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go readLines(ctx, in, lines)
	w := bufio.NewWriter(out)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-lines:
			if errors.Is(l.err, io.EOF) {
				return nil
			}
			if l.err != nil {
				return memory.Errorf(memory.ErrUnavailable, "read requests: %w", l.err)
			}
			_, err := w.Write(adapters.answer(ctx, l))
			if err := errors.Join(err, w.Flush()); err != nil {
				return memory.Errorf(memory.ErrUnavailable, "write an answer: %w", err)
			}
		}
	}
}

// line is one line of input, or why there are no more.
type line struct {
	text    []byte
	tooLong bool
	err     error
}

// readLines sends the lines of in that are not blank, and at last its error.
func readLines(ctx context.Context, in io.Reader, to chan<- line) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(r)
		if l.err == nil && !l.tooLong && len(bytes.TrimSpace(l.text)) == 0 {
			continue
		}
		select {
		case to <- l:
		case <-ctx.Done():
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads one line; the last may lack its line break.
func readLine(r *bufio.Reader) line {
	var l line
	for {
		part, err := r.ReadSlice('\n')
		if !l.tooLong {
			l.text = append(l.text, part...)
		}
		if len(l.text) > MaxLine {
			l = line{tooLong: true}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(l.text) > 0 || l.tooLong):
			return l
		case err != nil:
			return line{err: err}
		}
		return l
	}
}

// answer runs one request and writes its answer as a line.
func (a Adapters) answer(ctx context.Context, l line) []byte {
	var req request
	result, err := a.run(ctx, l, &req)
	if len(req.ID) == 0 {
		req.ID = json.RawMessage("null")
	}
	if err == nil {
		text, encodeErr := encode(struct {
			ID     json.RawMessage `json:"id"`
			Result any             `json:"result"`
		}{req.ID, result})
		if encodeErr == nil {
			return text
		}
		err = memory.Errorf(memory.ErrInternal, "the answer has no JSON form: %w", encodeErr)
	}
	text, encodeErr := encode(struct {
		ID    json.RawMessage `json:"id"`
		Error failure         `json:"error"`
	}{req.ID, failure{string(memory.KindOf(err)), err.Error(), memory.FieldOf(err), memory.HintOf(err)}})
	if encodeErr != nil {
		return []byte(`{"id":null,"error":{"class":"internal","message":"the answer has no JSON form"}}` + "\n")
	}
	return text
}

func (a Adapters) run(ctx context.Context, l line, req *request) (any, error) {
	switch {
	case l.tooLong:
		return nil, memory.Errorf(memory.ErrInvalid, "the request is longer than %d MiB", MaxLine>>20)
	case !utf8.Valid(l.text):
		return nil, memory.Errorf(memory.ErrInvalid, "the request is not UTF-8 text")
	}
	if err := json.Unmarshal(l.text, req); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			if wrong.Field != "" {
				return nil, &memory.FieldError{Field: wrong.Field, Reason: "must not be " + wrong.Value}
			}
			err = errors.New("it is " + wrong.Value)
		}
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "the request is no JSON object: %w", err), `one a line, such as {"id":1,"adapter":"memory","verb":"get","args":["workflow","k","i"]}`)
	}
	adapter, known := a[req.Adapter]
	if !known {
		return nil, &memory.FieldError{Field: "adapter", Reason: fmt.Sprintf("is not known: %q", req.Adapter), Hint: "the adapters are " + strings.Join(slices.Sorted(maps.Keys(a)), ", ")}
	}
	return adapter.Call(ctx, Call{Verb: req.Verb, Args: req.Args, Context: req.Context})
}

// encode writes v as one line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
