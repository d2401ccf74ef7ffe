package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/llm"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// Defaults for zero values in Config.
const (
	DefaultTimeout    = 30 * time.Second
	DefaultBatchTexts = 64
)

const (
	batchTokens = 16_000 // of one request at most; the smallest limit among the providers
	// bytesPerToken is on the safe side for every script: a token of English has
	// more than four, one of Chinese or Japanese about three.
	bytesPerToken = 3
)

// Config says which model is asked, and how.
type Config struct {
	Provider       Provider
	BaseURL        string // "" for the provider's own
	Model          string // "" for the provider's usual one
	Key            string // the key itself, see llm.Secret; "" for endpoints without
	Dimensions     int    // asked of the model; 0 for the provider's usual
	MaxInputTokens int    // of one text; 0 for what is known of the model
	BatchTexts     int    // in one request at most; 0 for DefaultBatchTexts
	PerMinute      int    // requests at most; 0 for no limit
	Timeout        time.Duration
	MaxRetries     int
	QueryPrefix    string // stands before every question, for models that want it
	TextPrefix     string // stands before every other text
	Spend          *spend.Ledger
}

// Client asks one model at one endpoint. It is safe for concurrent use.
type Client struct {
	config   Config
	id       string
	input    int // bytes of a text at most
	endpoint *llm.Endpoint
	pace     pace
	dims     atomic.Int64 // 0 as long as they are not known
}

// New returns a client that sends its requests by out, which should be one of
// package egress that allows the endpoint. jitter returns numbers in [0, 1).
func New(c Config, out *http.Client, now func() time.Time, jitter func() float64) (*Client, error) {
	u, known := UsualOf(c.Provider)
	if !known {
		return nil, &memory.FieldError{Field: "embeddings.provider", Reason: fmt.Sprintf("%q is no provider of embeddings", c.Provider), Hint: "openai, openrouter, mistral, gemini, voyage or generic"}
	}
	unusual := c.QueryPrefix + "\x00" + c.TextPrefix
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.BaseURL == "" || c.BaseURL == u.BaseURL {
		c.BaseURL = u.BaseURL
	} else {
		unusual += "\x00" + c.BaseURL
	}
	if c.Model == "" {
		c.Model = u.Model
	}
	what := models[c.Model[strings.LastIndexByte(c.Model, '/')+1:]]
	if c.Dimensions == 0 && c.Model == u.Model {
		c.Dimensions = u.Dimensions
	}
	if c.MaxInputTokens == 0 {
		c.MaxInputTokens = unknownInput
		if what.input > 0 {
			c.MaxInputTokens = what.input
		}
	}
	if c.BatchTexts <= 0 {
		c.BatchTexts = DefaultBatchTexts
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	at, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil || at.RawQuery != "":
		return nil, &memory.FieldError{Field: "embeddings.base_url", Reason: "must be an http or https URL without user, password or query", Hint: "for example http://localhost:11434/v1"}
	case c.Model == "":
		return nil, &memory.FieldError{Field: "embeddings.model", Reason: "is required", Hint: "the model's id at the endpoint"}
	case c.Dimensions < 0 || c.MaxInputTokens < 0 || c.MaxRetries < 0 || c.PerMinute < 0:
		return nil, &memory.FieldError{Field: "embeddings", Reason: "must have no negative numbers"}
	}
	client := &Client{config: c, id: modelID(c, unusual), input: c.MaxInputTokens * bytesPerToken,
		pace: pace{every: interval(c.PerMinute), now: now},
		endpoint: llm.NewEndpoint(llm.Endpoint{
			Host: at.Host, Key: c.Key, Out: out, Now: now, Jitter: jitter, Timeout: c.Timeout, MaxRetries: c.MaxRetries, Spend: c.Spend,
			Keys: llm.Keys{Key: "embeddings.key", BaseURL: "embeddings.base_url", Model: "embeddings.model", Timeout: "embeddings.timeout"},
		})}
	client.dims.Store(int64(c.Dimensions))
	if c.Dimensions == 0 {
		client.dims.Store(int64(what.dims))
	}
	return client, nil
}

// modelID is provider:model, the dimensions where they are asked for, and a
// fingerprint of what else the vectors depend on where that is not the usual.
func modelID(c Config, unusual string) string {
	id := string(c.Provider) + ":" + c.Model
	if c.Dimensions > 0 {
		id += fmt.Sprintf(":%d", c.Dimensions)
	}
	if unusual != "\x00" {
		sum := sha256.Sum256([]byte(unusual))
		id += "@" + hex.EncodeToString(sum[:4])
	}
	return id
}

// ModelID names the model as Embedder says.
func (c *Client) ModelID() string { return c.id }

// Name is what the endpoint calls the model.
func (c *Client) Name() string { return c.config.Model }

// Provider is the provider's name.
func (c *Client) Provider() string { return string(c.config.Provider) }

// BaseURL is that of the API.
func (c *Client) BaseURL() string { return c.config.BaseURL }

// Host is where texts are sent to.
func (c *Client) Host() string { return c.endpoint.Host }

// Close drops idle connections.
func (c *Client) Close() { c.endpoint.Out.CloseIdleConnections() }

// For returns what asks for agent, and is paid for by its budget.
func (c *Client) For(agent memory.AgentID) Embedder { return asking{c, agent} }

// EstimateTokens is about how many tokens a text takes, rather too many than too
// few.
func EstimateTokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// asking is a Client on behalf of one agent.
type asking struct {
	*Client
	agent memory.AgentID
}

func (a asking) Dimensions() int { return int(a.dims.Load()) }

// Cut returns the beginning of a text that the model takes, up to a space where
// there is one.
func (a asking) Cut(text string) (string, bool) {
	if len(text) <= a.input {
		return text, false
	}
	end := a.input
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexFunc(text[:end], unicode.IsSpace); space > end*9/10 {
		end = space
	}
	return text[:end], true
}

func (a asking) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return nil, &memory.FieldError{Field: fmt.Sprintf("texts[%d]", i), Reason: "must not be blank"}
		}
	}
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		batch := a.batch(texts)
		texts = texts[len(batch):]
		got, err := a.request(ctx, batch, false)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

func (a asking) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &memory.FieldError{Field: "text", Reason: "must not be blank"}
	}
	list, err := a.request(ctx, a.batch([]string{text}), true)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// batch returns what goes into one request: as many texts as fit, each cut to
// what the model takes.
func (a asking) batch(texts []string) []string {
	var out []string
	for tokens := 0; len(out) < min(len(texts), a.config.BatchTexts); {
		text, _ := a.Cut(texts[len(out)])
		tokens += EstimateTokens(text)
		if tokens > batchTokens && len(out) > 0 {
			break
		}
		out = append(out, text)
	}
	return out
}

// Batch returns how many of the texts go into one request.
func (a asking) Batch(texts []string) int { return len(a.batch(texts)) }

// request asks for the vectors of one batch, again where that may help.
func (a asking) request(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	prefix, tokens := a.config.TextPrefix, 0
	if query {
		prefix = a.config.QueryPrefix
	}
	sent := make([]string, len(texts))
	for i, text := range texts {
		sent[i] = prefix + text
		tokens += EstimateTokens(sent[i])
	}
	var out [][]float32
	_, err := a.endpoint.Retry(ctx, func(ctx context.Context) (llm.Usage, bool, error) {
		if err := a.pace.wait(ctx, a.endpoint.Host); err != nil {
			return llm.Usage{}, true, err
		}
		got := &reply{texts: len(sent), dims: a.dims.Load()}
		used, err := a.endpoint.Ask(ctx, a.agent, llm.Exchange{
			Tokens: tokens,
			Send:   func(ctx context.Context, w *llm.Wire) error { return a.send(ctx, w, sent, query, got) },
			Judge:  got.judge,
			Used:   func(w *llm.Wire) llm.Usage { return got.usage(w, tokens) },
		})
		out = got.vectors
		return used, false, err
	})
	if err != nil {
		return nil, err
	}
	a.dims.CompareAndSwap(0, int64(len(out[0])))
	return out, nil
}

// pace spreads requests over time.
type pace struct {
	every time.Duration // between two requests at least
	now   func() time.Time

	mu   sync.Mutex
	next time.Time
}

func interval(perMinute int) time.Duration {
	if perMinute == 0 {
		return 0
	}
	return time.Minute / time.Duration(perMinute)
}

// wait waits for the next request's turn, or fails at once where ctx ends before.
func (p *pace) wait(ctx context.Context, host string) error {
	if p.every == 0 {
		return nil
	}
	p.mu.Lock()
	now := p.now()
	turn := p.next
	if turn.Before(now) || turn.Sub(now) > time.Hour { // the clock was set back
		turn = now
	}
	if end, bounded := ctx.Deadline(); bounded && turn.After(end) {
		p.mu.Unlock()
		return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "%s may not be asked again for %s", host, turn.Sub(now).Round(time.Millisecond)), "embeddings.requests_per_minute says so")
	}
	p.next = turn.Add(p.every)
	p.mu.Unlock()
	if turn.After(now) && !llm.Sleep(ctx, turn.Sub(now)) {
		return memory.Errorf(memory.ErrUnavailable, "wait for the turn of %s: %w", host, context.DeadlineExceeded)
	}
	return nil
}
