package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// How many bytes of HTTP body one byte of answer may take: JSON escapes, and in
// a stream a frame around each few characters.
const (
	overheadWhole  = 4
	overheadStream = 16
	overheadFixed  = 64 << 10
)

// emptyResult stands for the empty result of a tool: the library leaves empty
// content out, and endpoints refuse a tool message without any.
const emptyResult = "(no output)"

// answer is what came of one exchange, whole or in part.
type answer struct {
	text, refusal strings.Builder
	calls         []ToolCall
	model, finish string
	counted       openai.Usage
	messages      int  // messages (whole) or pieces of one (stream) that came
	streamed      bool // some text has reached Request.Stream
}

// exchange sends req once and reads the answer into a.
func (c *Client) exchange(ctx context.Context, w *Wire, req Request, u understood, a *answer) error {
	out, err := c.body(req, u)
	if err != nil {
		return err
	}
	settings := openai.DefaultConfig(c.config.Key)
	settings.BaseURL = c.config.BaseURL
	settings.HTTPClient = w
	settings.EmptyMessagesLimit = math.MaxUint32 // comments that keep a stream alive; the size limit bounds them
	client := openai.NewClientWithConfig(settings)
	if req.Stream != nil {
		w.MaxBytes = int64(c.config.MaxReplyBytes)*overheadStream + overheadFixed
		return c.readStream(ctx, client, out, req.Stream, a)
	}
	w.MaxBytes = int64(c.config.MaxReplyBytes)*overheadWhole + overheadFixed
	whole, err := client.CreateChatCompletion(ctx, out)
	if err == nil {
		a.take(whole)
	}
	return err
}

// body writes req in the API's terms.
func (c *Client) body(req Request, u understood) (openai.ChatCompletionRequest, error) {
	out := openai.ChatCompletionRequest{Model: c.config.Model, ResponseFormat: u.responseFormat(req.Schema)}
	for i, m := range req.Messages {
		if m.Content == "" && len(m.ToolCalls) == 0 && m.Role != Tool {
			return out, &memory.FieldError{Field: fmt.Sprintf("messages[%d].content", i), Reason: "must not be empty"}
		}
		out.Messages = append(out.Messages, c.message(m))
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, openai.Tool{Type: openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	thinking := reasons(c.config.Model)
	if c.config.Provider == OpenAI || thinking {
		out.MaxCompletionTokens = req.MaxTokens
	} else {
		//lint:ignore SA1019 servers other than OpenAI's own know only the older name
		out.MaxTokens = req.MaxTokens
	}
	if req.Temperature != nil && !thinking {
		// Zero would be left out of the request, and mean the endpoint's default.
		out.Temperature = max(float32(*req.Temperature), math.SmallestNonzeroFloat32)
	}
	if req.Stream != nil && !u.noUsageOpt {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return out, nil
}

func (c *Client) message(m Message) openai.ChatCompletionMessage {
	out := openai.ChatCompletionMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
	if m.Role == Developer && c.config.Provider != OpenAI {
		out.Role = string(System)
	}
	if m.Role == Tool && m.Content == "" {
		out.Content = emptyResult
	}
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
	}
	return out
}

// take fills a from a whole answer.
func (a *answer) take(whole openai.ChatCompletionResponse) {
	a.model, a.counted, a.messages = whole.Model, whole.Usage, len(whole.Choices)
	if a.messages == 0 {
		return
	}
	first := whole.Choices[0]
	a.finish = string(first.FinishReason)
	a.text.WriteString(first.Message.Content)
	for _, part := range first.Message.MultiContent {
		a.text.WriteString(part.Text)
	}
	a.refusal.WriteString(first.Message.Refusal)
	for _, call := range first.Message.ToolCalls {
		a.calls = append(a.calls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
}

// readStream reads a streamed answer into a, and passes its text on.
func (c *Client) readStream(ctx context.Context, client *openai.Client, req openai.ChatCompletionRequest, emit func(string), a *answer) error {
	stream, err := client.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return err
	}
	for pieces := 0; ; pieces++ {
		piece, err := stream.Recv()
		switch {
		case err != nil && a.finish != "": // the answer is whole, however its connection ends
			return nil
		case errors.Is(err, io.EOF) && a.messages == 0 && pieces > 0:
			return nil // to be judged as an answer without a message
		case errors.Is(err, io.EOF) && a.messages > 0:
			return io.ErrUnexpectedEOF // the library takes any end of a stream for a good one
		case err != nil:
			return err
		}
		a.add(piece, emit)
		if a.size() > c.config.MaxReplyBytes {
			return egress.ErrTooLarge
		}
	}
}

// add fills a from a piece of a stream.
func (a *answer) add(piece openai.ChatCompletionStreamResponse, emit func(string)) {
	if piece.Model != "" {
		a.model = piece.Model
	}
	if piece.Usage != nil {
		a.counted = *piece.Usage
	}
	if len(piece.Choices) == 0 {
		return
	}
	a.messages++
	first := piece.Choices[0]
	if first.FinishReason != "" {
		a.finish = string(first.FinishReason)
	}
	a.refusal.WriteString(first.Delta.Refusal)
	for _, call := range first.Delta.ToolCalls {
		a.addCall(call)
	}
	if text := first.Delta.Content; text != "" {
		a.text.WriteString(text)
		a.streamed = true
		emit(text)
	}
}

// addCall joins the pieces of tool calls: by index, or where an endpoint sends
// none, by a new id.
func (a *answer) addCall(piece openai.ToolCall) {
	at := len(a.calls) - 1
	switch {
	case piece.Index != nil && *piece.Index >= 0 && *piece.Index <= len(a.calls):
		at = *piece.Index
	case piece.ID != "" && (at < 0 || a.calls[at].ID != piece.ID), at < 0:
		at = len(a.calls)
	}
	if at == len(a.calls) {
		a.calls = append(a.calls, ToolCall{})
	}
	call := &a.calls[at]
	if piece.ID != "" {
		call.ID = piece.ID
	}
	call.Name += piece.Function.Name
	call.Arguments += piece.Function.Arguments
}

func (a *answer) size() int {
	n := a.text.Len() + a.refusal.Len()
	for _, call := range a.calls {
		n += len(call.Name) + len(call.Arguments)
	}
	return n
}

// judge reports why a whole answer is of no use; nil where it is of some.
func (a *answer) judge(maxBytes int) error {
	switch {
	case a.messages == 0:
		return &ReplyError{Class: NoChoices}
	case a.size() > maxBytes:
		return &ReplyError{Class: TooLarge}
	case a.finish == string(openai.FinishReasonLength):
		return &ReplyError{Class: Truncated, Text: a.text.String()}
	case a.finish == string(openai.FinishReasonContentFilter):
		return &ReplyError{Class: Refused, Text: a.text.String() + a.refusal.String()}
	case len(a.calls) > 0 || strings.TrimSpace(a.text.String()) != "":
		return nil
	case a.refusal.Len() > 0:
		return &ReplyError{Class: Refused, Text: a.refusal.String()}
	}
	return &ReplyError{Class: Empty}
}

// reply returns a as the caller sees it. Calls that came without an id get one,
// since the results are sent back under it.
func (a *answer) reply() Reply {
	for i := range a.calls {
		if a.calls[i].ID == "" {
			a.calls[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	return Reply{Text: a.text.String(), ToolCalls: a.calls, Model: a.model, FinishReason: a.finish}
}

// mostUncounted is the most tokens of an answer that are charged where neither the
// endpoint says how many they were nor the request how many they may be: no model
// says more in one go unless it is told to, and a server that sends megabytes of
// garbage has not been asked to be paid for them.
const mostUncounted = 16_000

// usage returns what the exchange cost: what the endpoint says, within what the
// model's window (0 if not known) allows, or an estimate where an answer began.
func (a *answer) usage(w *Wire, in, maxOut, window int) Usage {
	switch {
	case !w.sent:
		return Usage{}
	case w.status == 0 || w.status >= 300:
		return Usage{Calls: 1}
	case a.counted.PromptTokens+a.counted.CompletionTokens > 0:
		return Usage{Calls: 1, TokensIn: credible(a.counted.PromptTokens, window), TokensOut: credible(a.counted.CompletionTokens, window)}
	}
	parts := []string{a.text.String()}
	for _, call := range a.calls {
		parts = append(parts, call.Name, call.Arguments)
	}
	if maxOut == 0 {
		maxOut = mostUncounted
	}
	return Usage{Calls: 1, TokensIn: in, TokensOut: min(estimate(parts...), maxOut), Estimated: true}
}

// credible bounds a count that the endpoint gives, so that a wrong one cannot
// fill an account up: nothing is longer than the model's window, as far as that
// is known.
func credible(tokens, window int) int {
	if window == 0 {
		window = 1 << 30
	}
	return min(max(0, tokens), window)
}
