package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"
)

// format is how firmly an endpoint can be held to a form of answer.
type format int

// The formats, the firmest first.
const (
	byJSONSchema format = iota
	byJSONObject
	byPromptOnly
)

// understood is what an endpoint is taken to understand.
type understood struct {
	format     format
	noUsageOpt bool // it knows no stream_options
}

// dialect remembers what the endpoint has turned out to understand.
type dialect struct {
	mu    sync.Mutex
	known understood
}

func (d *dialect) get() understood {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

func (d *dialect) learn(u understood) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known.format = max(d.known.format, u.format)
	d.known.noUsageOpt = d.known.noUsageOpt || u.noUsageOpt
}

// ask makes one try. Where the endpoint objects to an option that not all
// endpoints have, it asks again without, and remembers what helped.
func (c *Client) ask(ctx context.Context, req Request) (reply Reply, streamed bool, err error) {
	var used Usage
	for u := c.dialect.get(); ; {
		reply, streamed, err = c.once(ctx, req, u)
		used.add(reply.Usage)
		reply.Usage = used
		less, further := u.without(err, req)
		if !further {
			if err == nil {
				c.dialect.learn(u)
			}
			return reply, streamed, err
		}
		u = less
	}
}

// without returns what is left to try once the endpoint has answered err, false
// where err is not about an option that can be left out. Endpoints seldom say
// which option they object to, so any complaint about the request counts.
func (u understood) without(err error, req Request) (understood, bool) {
	var status *StatusError
	if !errors.As(err, &status) || status.Status == http.StatusUnauthorized || status.temporary() {
		return u, false
	}
	said := strings.ToLower(status.Message + " " + status.Code)
	if req.Stream != nil && !u.noUsageOpt && strings.Contains(said, "stream_options") {
		u.noUsageOpt = true
		return u, true
	}
	if req.Schema == nil || u.format == byPromptOnly || strings.Contains(said, "context") && strings.Contains(said, "length") {
		return u, false
	}
	general := status.Status == http.StatusBadRequest || status.Status == http.StatusUnprocessableEntity || status.Status == http.StatusNotImplemented
	if !general && !strings.Contains(said, "response_format") && !strings.Contains(said, "json_schema") && !strings.Contains(said, "structured") {
		return u, false
	}
	u.format++
	return u, true
}

// responseFormat returns what to ask for, nil for nothing.
func (u understood) responseFormat(schema json.Marshaler) *openai.ChatCompletionResponseFormat {
	switch {
	case schema == nil || u.format == byPromptOnly:
		return nil
	case u.format == byJSONObject:
		return &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	return &openai.ChatCompletionResponseFormat{
		Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
		JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: schema, Strict: true},
	}
}
