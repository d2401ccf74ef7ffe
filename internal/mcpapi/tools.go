package mcpapi

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runlog"
)

// tool describes an operation.
func (f *Face) tool(o op.Op) *mcp.Tool {
	destroys, elsewhere := o.Effect == op.Destroy, false
	description := o.Summary
	if o.Example != "" {
		description += " For example " + o.Example
	}
	return &mcp.Tool{
		Name: toolName(o.Name), Description: description, InputSchema: plainSchema(o.Input), OutputSchema: plainSchema(o.Output),
		Annotations: &mcp.ToolAnnotations{Title: o.Name, ReadOnlyHint: o.Effect == op.Read, DestructiveHint: &destroys,
			IdempotentHint: o.Effect == op.Read, OpenWorldHint: &elsewhere},
	}
}

// plainSchema returns a schema in which each part is an object: a part that allows
// everything is otherwise written as true, which the official TypeScript client takes
// for a mistake, and then knows no tools at all.
func plainSchema(s *jsonschema.Schema) any {
	raw, err := json.Marshal(s)
	var doc map[string]any
	if err != nil || json.Unmarshal(raw, &doc) != nil {
		return s // as it is: the server checks it
	}
	return withoutTrue(doc)
}

// withoutTrue replaces true by an empty schema wherever a schema stands that clients
// look into.
func withoutTrue(schema any) any {
	if schema == true {
		return map[string]any{}
	}
	parts, is := schema.(map[string]any)
	if !is {
		return schema
	}
	if items, has := parts["items"]; has {
		parts["items"] = withoutTrue(items)
	}
	for _, name := range []string{"properties", "patternProperties", "$defs"} {
		if named, has := parts[name].(map[string]any); has {
			for key, part := range named {
				named[key] = withoutTrue(part)
			}
		}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if list, has := parts[name].([]any); has {
			for i, part := range list {
				list[i] = withoutTrue(part)
			}
		}
	}
	if members, has := parts["additionalProperties"].(map[string]any); has {
		parts["additionalProperties"] = withoutTrue(members)
	}
	return parts
}

// call carries out an operation in the name of the client's model. An error of the
// operation is a result with IsError, which the model can read and mend; the text
// of a result is for reading, its structured content the same document as that of
// every other face.
func (f *Face) call(agent memory.AgentID, o op.Op) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		out, err := f.perform(ctx, agent, o, req.Params.Arguments)
		if err != nil {
			return failed(err)
		}
		return result(out)
	}
}

// perform carries out an operation in the name of the client's model, and keeps that it
// was asked for.
func (f *Face) perform(ctx context.Context, agent memory.AgentID, o op.Op, raw json.RawMessage) (any, error) {
	began := f.Now()
	entry := runlog.Entry{Op: o.Name, Effect: o.Effect, Caller: callerOf(ctx), Decision: runlog.Allow}
	out, err := o.Call(memory.WithActor(ctx, memory.OriginAssistant), agent, raw)
	entry.Outcome, entry.Millis = runlog.Outcome(err), f.Now().Sub(began).Milliseconds()
	if err != nil {
		entry.Error = err.Error()
	}
	if kept := f.Audit(context.WithoutCancel(ctx), agent, entry); kept != nil {
		f.Log.Error().Err(kept).Str("agent", string(agent)).Str("op", o.Name).Msg("audit line not kept")
	}
	return out, err
}

func callerOf(ctx context.Context) string {
	if id := access.Caller(ctx).ID; id != "" {
		return Channel + ":" + id
	}
	return Channel
}

// metaError is the member of an answer's _meta that holds the error object of every
// other face.
const metaError = "openclawssy/error"

// failed is an error as the client's model reads it. It has no structured content:
// clients hold that against the operation's own schema, also where it failed, and
// then the model reads of a broken tool and not of its mistake.
func failed(err error) (*mcp.CallToolResult, error) {
	f := op.FailureOf(err)
	text := f.Message
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	return &mcp.CallToolResult{IsError: true, Meta: mcp.Meta{metaError: f}, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// result is a document with its text: compact where the document has one of its
// own, else its JSON.
func result(out any) (*mcp.CallToolResult, error) {
	raw, err := json.Marshal(out)
	if err != nil {
		return failed(memory.Errorf(memory.ErrInternal, "write the answer: %w", err))
	}
	text := string(raw)
	if t, hasText := out.(op.Texting); hasText {
		text = t.Text()
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(raw)}, nil
}
