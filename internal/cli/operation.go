package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// wholeInputFlag gives an operation's input as one JSON document.
const wholeInputFlag = "params"

// addOperation makes the command of one operation: dots of its name become
// spaces, its cli:"arg" field the words, the others flags.
func (r *Runner) addOperation(root *cobra.Command, o op.Op) {
	r.operation(node(root, strings.Split(o.Name, ".")), o)
}

// operation makes c the command of an operation.
func (r *Runner) operation(c *cobra.Command, o op.Op) {
	path := strings.Split(o.Name, ".")
	c.Short = o.Summary
	c.Long = o.Summary
	c.Example = r.example(o)
	c.Args = func(_ *cobra.Command, args []string) error { return checkArgs(o, args) }
	c.Use = path[len(path)-1]
	for _, f := range o.Fields {
		if f.Arg {
			c.Use += " " + strings.ToUpper(f.Name)
			if variadic(f) {
				c.Use += "…"
			}
			continue
		}
		addFlag(c.Flags(), f)
	}
	input := "-"
	c.Flags().StringVar(&input, wholeInputFlag, "", "the whole input as JSON, or @FILE, or @- for standard input; instead of the other flags")
	c.RunE = func(c *cobra.Command, args []string) error {
		raw, err := r.input(c, o, args)
		if err != nil {
			return err
		}
		return r.Call(c.Context(), o, raw)
	}
}

// example is a command line for the help: the operation's own example input as
// flags, else its name with the agent's flag.
func (r *Runner) example(o op.Op) string {
	line := "  openclawssy " + strings.ReplaceAll(o.Name, ".", " ")
	var values map[string]any
	if o.Example != "" && json.Unmarshal([]byte(o.Example), &values) == nil {
		for _, f := range o.Fields {
			if v, given := values[f.Name]; given {
				line += exampleOf(f, v)
			}
		}
		return line
	}
	for _, f := range o.Fields {
		if f.Required && f.Arg {
			line += " " + strings.ToUpper(f.Name)
		} else if f.Required {
			line += " --" + flagName(f) + " …"
		}
	}
	return line
}

// exampleOf writes the value of a field as it is given on the command line; a
// list of texts one by one.
func exampleOf(f op.Field, v any) string {
	if list, isList := v.([]any); isList && takesTexts(f) {
		var line string
		for _, item := range list {
			line += exampleOf(f, item)
		}
		return line
	}
	if v == true {
		return " --" + flagName(f)
	}
	if v == false {
		return " --" + flagName(f) + "=false"
	}
	word, isText := v.(string)
	if !isText {
		raw, err := json.Marshal(v)
		if err != nil { // v was read from JSON
			return ""
		}
		word = string(raw)
	}
	if word == "" || strings.ContainsAny(word, " '\"\\{}[]()$&|;<>*?!#~`\n") {
		word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	if f.Arg {
		return " " + word
	}
	return " --" + flagName(f) + " " + word
}

// takesTexts reports whether a field is a list of texts.
func takesTexts(f op.Field) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String
}

// variadic reports whether a positional field takes all words: a text is joined
// by spaces, a list gets one word each.
func variadic(f op.Field) bool {
	return f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.String && (f.Name == "text" || f.Name == "query")
}

func checkArgs(o op.Op, args []string) error {
	for _, f := range o.Fields {
		if !f.Arg {
			continue
		}
		if len(args) > 1 && !variadic(f) {
			return &memory.FieldError{Field: f.Name, Reason: "must be one word", Hint: "quote it"}
		}
		return nil
	}
	if len(args) > 0 {
		return memory.Errorf(memory.ErrInvalid, "%s takes no words, but got %q", o.Name, args[0])
	}
	return nil
}

// flagName writes a field's JSON name as a flag: max_results and maxResults are
// --max-results.
func flagName(f op.Field) string {
	var sb strings.Builder
	for _, c := range f.Name {
		switch {
		case c == '_':
			sb.WriteByte('-')
		case c >= 'A' && c <= 'Z':
			sb.WriteByte('-')
			sb.WriteRune(c - 'A' + 'a')
		default:
			sb.WriteRune(c)
		}
	}
	return sb.String()
}

// flagValue keeps a flag's text until the input is put together.
type flagValue struct{ kind, text string }

func (v *flagValue) String() string     { return v.text }
func (v *flagValue) Set(s string) error { v.text = s; return nil }
func (v *flagValue) Type() string       { return v.kind }

func addFlag(flags *pflag.FlagSet, f op.Field) {
	usage := f.Usage
	if f.Required {
		usage += " (required)"
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if takesTexts(f) {
		flags.StringArray(flagName(f), nil, strings.TrimPrefix(usage+"; repeatable", "; "))
		return
	}
	kind := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "bool", reflect.Int: "n", reflect.Int64: "n", reflect.Float64: "x"}[t.Kind()]
	if kind == "" {
		kind = "json"
	}
	flag := flags.VarPF(&flagValue{kind: kind}, flagName(f), "", usage)
	if kind == "bool" {
		flag.NoOptDefVal = "true"
	}
}

// input builds the operation's JSON input from flags and words.
func (r *Runner) input(c *cobra.Command, o op.Op, args []string) (json.RawMessage, error) {
	if c.Flags().Changed(wholeInputFlag) {
		text, err := c.Flags().GetString(wholeInputFlag)
		if err != nil {
			return nil, err
		}
		return r.wholeInput(text)
	}
	members := map[string]json.RawMessage{}
	for _, f := range o.Fields {
		text, given, err := fieldText(c.Flags(), f, args)
		if err != nil {
			return nil, err
		}
		if !given {
			continue
		}
		raw, err := literal(f, text)
		if err != nil {
			return nil, err
		}
		members[f.Name] = raw
	}
	return json.Marshal(members)
}

// fieldText returns what the command line says of one field.
func fieldText(flags *pflag.FlagSet, f op.Field, args []string) ([]string, bool, error) {
	if f.Arg {
		return args, len(args) > 0, nil
	}
	flag := flags.Lookup(flagName(f))
	if flag == nil || !flag.Changed {
		return nil, false, nil
	}
	if flag.Value.Type() == "stringArray" {
		list, err := flags.GetStringArray(flag.Name)
		return list, true, err
	}
	return []string{flag.Value.String()}, true, nil
}

// literal writes words as the JSON that the field's type wants. Numbers and
// objects go through as they stand; the operation checks them.
func literal(f op.Field, words []string) (json.RawMessage, error) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if takesTexts(f) {
		return json.Marshal(words)
	}
	text := strings.Join(words, " ")
	if t.Kind() == reflect.String || isTextual(t) {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		want := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number"}[t.Kind()]
		if want == "" {
			want = "JSON"
		}
		return nil, &memory.FieldError{Field: f.Name, Reason: fmt.Sprintf("must be %s, not %q", want, text)}
	}
	return json.RawMessage(text), nil
}

// isTextual reports whether values of t are written as JSON text though they
// are of another kind (times).
func isTextual(t reflect.Type) bool {
	marshaler := reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

func (r *Runner) wholeInput(text string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return json.RawMessage(text), nil
	}
	in, closeIn, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(in, 16<<20))
	if err != nil {
		return nil, memory.Errorf(memory.ErrUnavailable, "read input: %w", err)
	}
	return raw, closeIn()
}

// Call runs an operation for the command's agent and prints its result.
func (r *Runner) Call(ctx context.Context, o op.Op, raw json.RawMessage) error {
	ctx, done := r.withProgress(ctx, o.Name)
	out, err := o.Call(ctx, r.Agent(), raw)
	done()
	if err != nil {
		return err
	}
	return r.Print(out)
}

// Print shows a result: JSON, its own text, or all its fields in order. A
// result that failed ends the command with status 1.
func (r *Runner) Print(out any) error {
	if err := r.show(out); err != nil {
		return memory.Errorf(memory.ErrUnavailable, "print: %w", err)
	}
	if f, isCheck := out.(op.Failing); isCheck && f.Failed() {
		return errFailed
	}
	return nil
}

func (r *Runner) show(out any) error {
	if r.Options.JSON {
		return writeJSON(r.Out, out)
	}
	if t, hasText := out.(op.Texting); hasText {
		_, err := io.WriteString(r.Out, cleanLines(t.Text()))
		return err
	}
	return outline(r.Out, out)
}
