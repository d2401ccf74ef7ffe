package llm

import (
	"context"
	"errors"
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
	Generic Provider = "generic" // Ollama, llama.cpp, vLLM, OpenRouter and the like
)

// OpenAIBaseURL is where provider openai is asked if no other URL is given.
const OpenAIBaseURL = "https://api.openai.com/v1"

// Defaults for zero values in Config.
const (
	DefaultTimeout       = 60 * time.Second
	DefaultMaxReplyBytes = 1 << 20
)

const (
	backoffBase  = 500 * time.Millisecond
	backoffCap   = 20 * time.Second
	breakerAfter = 5 // failures in a row
	breakerRest  = 30 * time.Second
	// defaultAnswer is what a call is expected to answer, in tokens, where the
	// request sets no limit; the ledger learns the truth afterwards.
	defaultAnswer = 1000
)

// Config says which model is asked, and how long and often.
type Config struct {
	Provider      Provider
	BaseURL       string        // with /v1; "" for OpenAIBaseURL where the provider is openai
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
	config  Config
	host    string
	out     *http.Client
	now     func() time.Time
	jitter  func() float64
	breaker *spend.Breaker
	dialect dialect
}

// New returns a client that sends its requests by out, which should be one of
// package egress that allows the endpoint. jitter returns numbers in [0, 1).
func New(c Config, out *http.Client, now func() time.Time, jitter func() float64) (*Client, error) {
	if c.BaseURL == "" && c.Provider == OpenAI {
		c.BaseURL = OpenAIBaseURL
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxReplyBytes <= 0 {
		c.MaxReplyBytes = DefaultMaxReplyBytes
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.Provider != OpenAI && c.Provider != Generic:
		return nil, &memory.FieldError{Field: "model.provider", Reason: "must be openai or generic", Hint: "without a model there is the offline answerer"}
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "":
		return nil, &memory.FieldError{Field: "model.base_url", Reason: "must be an http or https URL without user, password or query", Hint: "for example http://localhost:11434/v1"}
	case c.Model == "":
		return nil, &memory.FieldError{Field: "model.name", Reason: "is required", Hint: "the model's id at the provider"}
	case c.MaxRetries < 0:
		return nil, &memory.FieldError{Field: "model.max_retries", Reason: "must not be negative"}
	}
	return &Client{config: c, host: u.Host, out: out, now: now, jitter: jitter, breaker: spend.NewBreaker(breakerAfter, breakerRest, now)}, nil
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
	if err := c.breaker.Allow(); err != nil {
		return Reply{}, err
	}
	limited, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var used Usage
	for try := 0; ; try++ {
		reply, streamed, err := c.ask(limited, req)
		used.add(reply.Usage)
		reply.Usage = used
		if err == nil || streamed || !retryable(err) || try == c.config.MaxRetries || !sleep(limited, c.backoff(try, err)) {
			return reply, c.tooSlow(ctx, err)
		}
	}
}

// tooSlow says in err which limit has passed, where it was this client's and not
// the caller's.
func (c *Client) tooSlow(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "%s has not answered within %s: %w", c.host, c.config.Timeout, err),
		"if the model is that slow, raise model.timeout")
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

// backoff is how long to wait after failed try number try, from 0: full jitter
// over a doubling range, on top of what the endpoint asks for.
func (c *Client) backoff(try int, err error) time.Duration {
	span := min(backoffCap, backoffBase<<min(try, 16))
	wait := time.Duration(c.jitter() * float64(span))
	var status *StatusError
	if errors.As(err, &status) {
		wait += status.RetryAfter
	}
	return wait
}

// sleep waits, and reports false at once where ctx would end before.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) <= wait {
		return false
	}
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one HTTP request, paid for and watched by the breaker. streamed
// says whether some of the answer has reached req.Stream.
func (c *Client) once(ctx context.Context, req Request, u understood) (reply Reply, streamed bool, err error) {
	in := req.tokensIn()
	settle, err := c.reserve(ctx, req, in)
	if err != nil {
		return Reply{}, false, err
	}
	w := &wire{out: c.out, host: c.host, key: c.config.Key, now: c.now}
	got, err := c.exchange(ctx, w, req, u)
	w.close()
	reply = got.reply()
	reply.Usage = got.usage(w, in, req.MaxTokens, c.config.ContextWindow)
	streamed = got.streamed
	if err != nil {
		err = w.classify(err)
	} else {
		err = got.judge(c.config.MaxReplyBytes)
	}
	c.report(w, err)
	if settling := settle(reply.Usage); settling != nil {
		err = errors.Join(err, &accountError{settling})
	}
	return reply, streamed, err
}

// report tells the breaker how an exchange went, unless that says nothing about
// the endpoint.
func (c *Client) report(w *wire, err error) {
	var reply *ReplyError
	var status *StatusError
	switch {
	case !w.sent, errors.Is(err, context.Canceled), w.status == 0 && errors.Is(err, memory.ErrDenied):
	case errors.As(err, &status):
		c.breaker.Report(status.Status < 500)
	default:
		c.breaker.Report(err == nil || errors.As(err, &reply))
	}
}

// reserve asks the ledger for leave, and returns what settles the account.
func (c *Client) reserve(ctx context.Context, req Request, in int) (func(Usage) error, error) {
	if c.config.Spend == nil {
		return func(Usage) error { return nil }, nil
	}
	expected := req.MaxTokens
	if expected == 0 {
		expected = defaultAnswer
	}
	ticket, err := c.config.Spend.Reserve(ctx, req.Agent, in+expected)
	if err != nil {
		return nil, err
	}
	return func(u Usage) error { return ticket.Settle(ctx, u.TokensIn, u.TokensOut) }, nil
}

// Name returns what the model is called at its endpoint.
func (c *Client) Name() string { return c.config.Model }

// Close drops idle connections.
func (c *Client) Close() { c.out.CloseIdleConnections() }

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
