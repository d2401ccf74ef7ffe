package mcpapi

import (
	"context"
	"encoding/json"

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
		Name: toolName(o.Name), Description: description, InputSchema: o.Input, OutputSchema: o.Output,
		Annotations: &mcp.ToolAnnotations{Title: o.Name, ReadOnlyHint: o.Effect == op.Read, DestructiveHint: &destroys,
			IdempotentHint: o.Effect == op.Read, OpenWorldHint: &elsewhere},
	}
}

// call carries out an operation in the name of the client's model. An error of the
// operation is a result with IsError, which the model can read and mend; the text
// of a result is for reading, its structured content the same document as that of
// every other face.
func (f *Face) call(agent memory.AgentID, o op.Op) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began := f.Now()
		entry := runlog.Entry{Op: o.Name, Effect: o.Effect, Caller: callerOf(ctx), Decision: runlog.Allow}
		out, err := o.Call(memory.WithActor(ctx, memory.OriginAssistant), agent, req.Params.Arguments)
		entry.Outcome, entry.Millis = runlog.Outcome(err), f.Now().Sub(began).Milliseconds()
		if err != nil {
			entry.Error = err.Error()
		}
		if kept := f.Audit(context.WithoutCancel(ctx), agent, entry); kept != nil {
			f.Log.Error().Err(kept).Str("agent", string(agent)).Str("op", o.Name).Msg("audit line not kept")
		}
		if err != nil {
			return failed(err)
		}
		return result(out)
	}
}

func callerOf(ctx context.Context) string {
	if id := access.Caller(ctx).ID; id != "" {
		return Channel + ":" + id
	}
	return Channel
}

// failed is an error as the client's model reads it.
func failed(err error) (*mcp.CallToolResult, error) {
	f := op.FailureOf(err)
	text := f.Message
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: map[string]any{"error": f}}, nil
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
