package llm

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/spend"
)

// Provider names the flavour of the API that an endpoint speaks.
type Provider string

// The providers.
const (
	OpenAI  Provider = "openai"
	Generic Provider = "generic" // llama.cpp, vLLM and the like; see Presets for those that are known
)

// OpenAIBaseURL is where provider openai is asked if no other URL is given.
const OpenAIBaseURL = "https://api.openai.com/v1"

// Defaults for zero values in Config.
const (
	DefaultTimeout       = 60 * time.Second
	DefaultMaxReplyBytes = 1 << 20
)

// defaultAnswer is what a call is expected to answer, in tokens, where the
// request sets no limit; the ledger learns the truth afterwards.
const defaultAnswer = 1000

// Config says which model is asked, and how long and often.
type Config struct {
	Provider      Provider
	BaseURL       string        // with /v1; "" for the usual one of a provider that has one
	Model         string        // the model's id at the endpoint
	Key           string        // the key itself, see Secret; "" for endpoints without
	Timeout       time.Duration // of one Chat, retries and waits included; 0 for DefaultTimeout
	MaxRetries    int           // after a failed first try
	MaxReplyBytes int           // of an answer's text and tool arguments; 0 for DefaultMaxReplyBytes
	ContextWindow int           // tokens; a larger request is refused before it is sent; 0 if not known
	Spend         *spend.Ledger // counts and bounds what agents spend; nil for no account
}

// Client asks one model at one endpoint. It is safe for concurrent use.
type Client struct {
	config   Config
	endpoint *Endpoint
	dialect  dialect
}

// New returns a client that sends its requests by out, which should be one of
// package egress that allows the endpoint. jitter returns numbers in [0, 1).
func New(c Config, out *http.Client, now func() time.Time, jitter func() float64) (*Client, error) {
	_, known := PresetOf(c.Provider)
	c.BaseURL = BaseURL(c.Provider, c.BaseURL)
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxReplyBytes <= 0 {
		c.MaxReplyBytes = DefaultMaxReplyBytes
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case !known:
		return nil, &memory.FieldError{Field: "model.provider", Reason: "must be openai, openrouter, requesty, zai, ollama or generic", Hint: "without a model there is the offline answerer"}
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "":
		return nil, &memory.FieldError{Field: "model.base_url", Reason: "must be an http or https URL without user, password or query", Hint: "for example http://localhost:11434/v1"}
	case c.Model == "":
		return nil, &memory.FieldError{Field: "model.name", Reason: "is required", Hint: "the model's id at the provider"}
	case c.MaxRetries < 0:
		return nil, &memory.FieldError{Field: "model.max_retries", Reason: "must not be negative"}
	}
	return &Client{config: c, endpoint: NewEndpoint(Endpoint{
		Host: u.Host, Key: c.Key, Out: out, Now: now, Jitter: jitter, Timeout: c.Timeout, MaxRetries: c.MaxRetries, Spend: c.Spend,
		Keys: Keys{Key: "model.key", BaseURL: "model.base_url", Model: "model.name", Timeout: "model.timeout"},
	})}, nil
}

// Chat asks the model. It tries again, with growing random waits, after failures
// of transport, 5xx and 429, and waits as long as the endpoint asks; it gives up
// where that would pass the timeout, and never repeats an answer of which some
// was streamed. Its errors are a *ReplyError, a *StatusError, a
// *spend.OverError, or failures of transport (ErrUnavailable, or ErrDenied where
// egress forbids); none holds the key. The Reply beside an error has the Usage,
// and with a *ReplyError what there is of the answer.
func (c *Client) Chat(ctx context.Context, req Request) (Reply, error) {
	if err := c.check(req); err != nil {
		return Reply{}, err
	}
	var reply Reply
	used, err := c.endpoint.Retry(ctx, func(ctx context.Context) (Usage, bool, error) {
		var streamed bool
		var err error
		reply, streamed, err = c.ask(ctx, req)
		return reply.Usage, streamed, err
	})
	reply.Usage = used
	return reply, err
}

// check reports what no endpoint would take.
func (c *Client) check(req Request) error {
	if len(req.Messages) == 0 {
		return &memory.FieldError{Field: "messages", Reason: "must not be empty"}
	}
	if n := req.tokensIn(); c.config.ContextWindow > 0 && n > c.config.ContextWindow {
		return memory.WithHint(memory.Errorf(memory.ErrInvalid, "a request of about %d tokens does not fit the model's window of %d", n, c.config.ContextWindow),
			"send less, or correct model.context_window")
	}
	return nil
}

// once makes one HTTP request. streamed says whether some of the answer has
// reached req.Stream.
func (c *Client) once(ctx context.Context, req Request, u understood) (reply Reply, streamed bool, err error) {
	in, expected := req.tokensIn(), req.MaxTokens
	if expected == 0 {
		expected = defaultAnswer
	}
	got := &answer{}
	used, err := c.endpoint.Ask(ctx, req.Agent, Exchange{
		Tokens: in + expected,
		Send:   func(ctx context.Context, w *Wire) error { return c.exchange(ctx, w, req, u, got) },
		Judge:  func() error { return got.judge(c.config.MaxReplyBytes) },
		Used:   func(w *Wire) Usage { return got.usage(w, in, req.MaxTokens, c.config.ContextWindow) },
	})
	reply = got.reply()
	reply.Usage = used
	return reply, got.streamed, err
}

// Name returns what the model is called at its endpoint.
func (c *Client) Name() string { return c.config.Model }

// Close drops idle connections.
func (c *Client) Close() { c.endpoint.Out.CloseIdleConnections() }

// reasons reports whether the model is one of those that take no temperature
// and count their thoughts as output.
func reasons(model string) bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
