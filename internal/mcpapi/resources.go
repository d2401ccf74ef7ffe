package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// addResources shows what is remembered by address:
//
//	memory://AGENT/items/MEM-12   an item or a passage, with its evidence, as JSON
//	memory://AGENT/block?q=…      the block that a prompt would get
//	memory://AGENT/report         the latest weekly report
func (f *Face) addResources(s *mcp.Server, agent memory.AgentID) {
	root := "memory://" + string(agent)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: root + "/items/{handle}", Name: "item", MIMEType: "application/json",
		Description: "One memory by its handle (MEM-12, EVT-41, REC-3), whole."}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return f.read(ctx, agent, req.Params.URI, "memory.get", map[string]any{"handle": strings.TrimPrefix(req.Params.URI, root+"/items/")})
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: root + "/block{?q}", Name: "block", MIMEType: "text/plain",
		Description: "The block of relevant memory for a question."}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		u, err := url.Parse(req.Params.URI)
		if err != nil {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		text, err := f.block(ctx, agent, u.Query().Get("q"))
		return contents(req.Params.URI, "text/plain", text, err)
	})
	s.AddResource(&mcp.Resource{URI: root + "/report", Name: "report", MIMEType: "text/markdown", Description: "The latest weekly report: what was learned, changed and needs a decision."},
		func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text, err := f.Report(ctx, agent)
			return contents(req.Params.URI, "text/markdown", text, err)
		})
}

// read answers with the JSON of an operation's document.
func (f *Face) read(ctx context.Context, agent memory.AgentID, uri, name string, in map[string]any) (*mcp.ReadResourceResult, error) {
	out, err := f.run(ctx, agent, name, in)
	if err != nil {
		return contents(uri, "", "", err)
	}
	raw, err := json.MarshalIndent(out, "", "  ")
	return contents(uri, "application/json", string(raw), err)
}

// run carries out an operation for a resource or a prompt.
func (f *Face) run(ctx context.Context, agent memory.AgentID, name string, in map[string]any) (any, error) {
	o, err := f.Catalog.Get(name)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return f.perform(ctx, agent, o, raw)
}

// block returns the block of relevant memory, as a prompt gets it.
func (f *Face) block(ctx context.Context, agent memory.AgentID, question string) (string, error) {
	out, err := f.run(ctx, agent, "memory.recall", map[string]any{"text": question})
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return "", err
	}
	var doc struct{ Text string }
	return doc.Text, json.Unmarshal(raw, &doc)
}

func contents(uri, kind, text string, err error) (*mcp.ReadResourceResult, error) {
	if errors.Is(err, memory.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: kind, Text: text}}}, nil
}

// addPrompts adds what a person may call by name: recall for a question, and, for whoever
// may write, a checkpoint now.
func (f *Face) addPrompts(s *mcp.Server, of serverOf) {
	agent := of.agent
	s.AddPrompt(&mcp.Prompt{Name: "recall", Description: "Ask a question with what memory knows about it.",
		Arguments: []*mcp.PromptArgument{{Name: "question", Description: "what you want to know", Required: true}}},
		func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			question := strings.TrimSpace(req.Params.Arguments["question"])
			if question == "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the argument question is required: what you want to know"}
			}
			block, err := f.block(ctx, agent, question)
			if err != nil {
				return nil, err
			}
			if block == "" {
				block = "(memory has nothing relevant)"
			}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{said(block), said(question)}}, nil
		})
	if o, err := f.Catalog.Get("memory.checkpoint"); err != nil || !of.right.Includes(access.Needed(o.Effect)) {
		return
	}
	s.AddPrompt(&mcp.Prompt{Name: "checkpoint", Description: "Distil now what has been said since the last checkpoint, and show what was learned."},
		func(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			out, err := f.run(ctx, agent, "memory.checkpoint", map[string]any{})
			if err != nil {
				return nil, err
			}
			text := fmt.Sprint(out)
			if t, hasText := out.(op.Texting); hasText {
				text = t.Text()
			} else if raw, err := json.MarshalIndent(out, "", "  "); err == nil {
				text = string(raw)
			}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{said("A checkpoint of memory has run. Tell me in a sentence or two what came of it:\n" + text)}}, nil
		})
}

func said(text string) *mcp.PromptMessage {
	return &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: text}}
}
