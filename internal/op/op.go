// Package op makes one typed function into one operation: a name, a summary, an
// effect, schemas of its input and output, and a call from JSON. Every face
// (command line, HTTP, MCP, the model's tools, the scheduler) shows the
// operations of one Catalog and knows nothing else about them.
package op

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Effect says what a call may do. It drives policy, confirmation and the hints
// that a face gives its clients.
type Effect string

// The effects.
const (
	Read    Effect = "read"    // changes nothing
	Write   Effect = "write"   // adds or changes; can be undone
	Destroy Effect = "destroy" // removes what cannot be brought back
)

// Field is one member of an operation's input, as a command line shows it.
type Field struct {
	Name     string       // JSON name
	Type     reflect.Type // of the Go field
	Usage    string       // from the jsonschema tag
	Required bool
	Arg      bool // is the positional argument: its tag has cli:"arg"
}

// Op is one operation. Make one with New.
type Op struct {
	Name    string // dotted: memory.search
	Summary string // one sentence
	Effect  Effect
	Input   *jsonschema.Schema // of a JSON object; unknown members are refused
	Output  *jsonschema.Schema
	Fields  []Field // of the input, in the order of the struct
	Example string  // the input of a typical call, as JSON; may be empty
	// Unattended says that a schedule may run it though it destroys: it removes
	// only what was given an end when it was written.
	Unattended bool
	call       func(ctx context.Context, agent memory.AgentID, raw json.RawMessage) (any, error)
}

// Func is the form of the function behind an operation. In is a struct.
type Func[In, Out any] func(ctx context.Context, agent memory.AgentID, in In) (Out, error)

// New makes an operation of fn. It panics where In or Out has no JSON schema,
// which is a defect that any test of the caller finds.
func New[In, Out any](name, summary string, effect Effect, fn Func[In, Out]) Op {
	input, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("op %s: input: %v", name, err))
	}
	output, err := jsonschema.For[Out](nil)
	if err != nil {
		panic(fmt.Sprintf("op %s: output: %v", name, err))
	}
	o := Op{Name: name, Summary: summary, Effect: effect, Input: input, Output: output}
	o.Fields = fields(reflect.TypeFor[In](), input.Required)
	o.call = func(ctx context.Context, agent memory.AgentID, raw json.RawMessage) (any, error) {
		var in In
		if err := o.decode(raw, &in); err != nil {
			return nil, err
		}
		return fn(ctx, agent, in)
	}
	return o
}

// WithExample returns o with the input of a typical call, as JSON.
func (o Op) WithExample(input string) Op {
	o.Example = input
	return o
}

// RunUnattended returns o with Unattended set.
func (o Op) RunUnattended() Op {
	o.Unattended = true
	return o
}

// Call checks raw against the input's form and runs the operation for one
// agent. Empty raw stands for {}. A member that is unknown, missing, doubled or
// of the wrong type is a FieldError, and nothing has run.
func (o Op) Call(ctx context.Context, agent memory.AgentID, raw json.RawMessage) (any, error) {
	if o.call == nil {
		return nil, memory.Errorf(memory.ErrInternal, "operation %q has no function", o.Name)
	}
	return o.call(ctx, agent, raw)
}

// Check reports what Call would refuse of raw before running, and runs nothing.
func (o Op) Check(raw json.RawMessage) error {
	_, err := o.members(raw)
	return err
}

// decode fills in, a pointer to the input struct.
func (o Op) decode(raw json.RawMessage, in any) error {
	raw, err := o.members(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, in); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return &memory.FieldError{Field: wrong.Field, Reason: fmt.Sprintf("must be %s, not %s", jsonType(wrong.Type), wrong.Value)}
		}
		return memory.Errorf(memory.ErrInvalid, "input of %s: %w", o.Name, err)
	}
	return nil
}

// members checks that raw is one JSON object whose members are all known, there
// where required, and given once.
func (o Op) members(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') {
		return nil, memory.WithHint(memory.Errorf(memory.ErrInvalid, "input of %s must be one JSON object", o.Name), "for example {} or "+o.exampleOr(`{"name": "value"}`))
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "input of %s is not JSON: %w", o.Name, err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return nil, &memory.FieldError{Field: name, Reason: "must be given once"}
		}
		seen[name] = true
		if !slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Name == name }) {
			return nil, o.unknown(name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, memory.Errorf(memory.ErrInvalid, "input of %s is not JSON: %w", o.Name, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "input of %s is not JSON: %w", o.Name, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, memory.Errorf(memory.ErrInvalid, "input of %s must end after its object", o.Name)
	}
	for _, f := range o.Fields {
		if f.Required && !seen[f.Name] {
			return nil, &memory.FieldError{Field: f.Name, Reason: "is required", Hint: f.Usage}
		}
	}
	return raw, nil
}

func (o Op) exampleOr(other string) string {
	if o.Example != "" {
		return o.Example
	}
	return other
}

func (o Op) unknown(name string) error {
	names := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		names[i] = f.Name
	}
	hint := o.Name + " takes no input"
	if len(names) > 0 {
		hint = o.Name + " takes " + strings.Join(names, ", ")
	}
	if near := memory.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &memory.FieldError{Field: name, Reason: "is not a field of " + o.Name, Hint: hint}
}

// fields lists the exported JSON members of a struct type, embedded ones in
// their place.
func fields(t reflect.Type, required []string) []Field {
	var out []Field
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Anonymous || !sf.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		out = append(out, Field{Name: name, Type: sf.Type, Usage: sf.Tag.Get("jsonschema"),
			Required: slices.Contains(required, name), Arg: sf.Tag.Get("cli") == "arg"})
	}
	return out
}

// jsonType names the JSON type that a Go type is written as.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}
