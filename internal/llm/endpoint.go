package llm

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/spend"
)

const (
	backoffBase  = 500 * time.Millisecond
	backoffCap   = 20 * time.Second
	breakerAfter = 5 // failures in a row
	breakerRest  = 30 * time.Second
)

// Keys are the names that an endpoint's settings have in the configuration, for
// hints.
type Keys struct{ Key, BaseURL, Model, Timeout string }

// Endpoint is a place where models are asked: with a key, within a budget and a
// time, again where that may help, and not at all for a while after it has
// failed several times in a row. NewEndpoint makes one that is safe for
// concurrent use.
type Endpoint struct {
	Host       string
	Key        string       // never part of an error
	Out        *http.Client // one of package egress that allows the endpoint
	Now        func() time.Time
	Jitter     func() float64 // numbers in [0, 1)
	Timeout    time.Duration  // of one Retry, waits included
	MaxRetries int            // after a failed first try
	Spend      *spend.Ledger  // nil for no account
	Keys       Keys

	breaker *spend.Breaker
}

// NewEndpoint returns e with a breaker of its own.
func NewEndpoint(e Endpoint) *Endpoint {
	e.breaker = spend.NewBreaker(breakerAfter, breakerRest, e.Now)
	return &e
}

// Exchange is one request and its answer.
type Exchange struct {
	Tokens int // that it is expected to take
	// Send makes the request by the Wire and reads the answer.
	Send func(ctx context.Context, w *Wire) error
	// Judge finds what is wrong with an answer that was read; a *ReplyError, or
	// another error that asking again does not help against.
	Judge func() error
	// Used says what the exchange took, also where it failed.
	Used func(w *Wire) Usage
}

// Retry repeats try, with growing random waits, after failures of transport, 5xx
// and 429, and waits as long as the endpoint asks; it gives up where that would
// pass the timeout. try reports final where another try must not follow. The
// Usage is of all tries.
func (e *Endpoint) Retry(ctx context.Context, try func(context.Context) (u Usage, final bool, err error)) (Usage, error) {
	var used Usage
	if err := e.breaker.Allow(); err != nil {
		return used, err
	}
	limited, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	for n := 0; ; n++ {
		u, final, err := try(limited)
		used.add(u)
		if err == nil || final || !Retryable(err) || n == e.MaxRetries || !Sleep(limited, e.backoff(n, err)) {
			return used, e.tooSlow(ctx, err)
		}
	}
}

// Ask makes one exchange, paid for by agent and watched by the breaker.
func (e *Endpoint) Ask(ctx context.Context, agent memory.AgentID, x Exchange) (Usage, error) {
	settle, err := e.reserve(ctx, agent, x.Tokens)
	if err != nil {
		return Usage{}, err
	}
	w := &Wire{of: e}
	err = x.Send(ctx, w)
	w.close()
	used := x.Used(w)
	if err != nil {
		err = w.classify(err)
	} else {
		err = x.Judge()
	}
	e.report(w, err)
	if settling := settle(used); settling != nil {
		err = errors.Join(err, &accountError{settling})
	}
	return used, err
}

// tooSlow says in err which limit has passed, where it was the endpoint's and
// not the caller's.
func (e *Endpoint) tooSlow(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "%s has not answered within %s: %w", e.Host, e.Timeout, err),
		"if the model is that slow, raise "+e.Keys.Timeout)
}

// backoff is how long to wait after failed try number try, from 0: full jitter
// over a doubling range, on top of what the endpoint asks for.
func (e *Endpoint) backoff(try int, err error) time.Duration {
	span := min(backoffCap, backoffBase<<min(try, 16))
	wait := time.Duration(e.Jitter() * float64(span))
	var status *StatusError
	if errors.As(err, &status) {
		wait += status.RetryAfter
	}
	return wait
}

// Sleep waits, and reports false at once where ctx would end before.
func Sleep(ctx context.Context, wait time.Duration) bool {
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

// report tells the breaker how an exchange went, unless that says nothing about
// the endpoint.
func (e *Endpoint) report(w *Wire, err error) {
	var reply *ReplyError
	var status *StatusError
	switch {
	case !w.sent, errors.Is(err, context.Canceled), w.status == 0 && errors.Is(err, memory.ErrDenied):
	case errors.As(err, &status):
		e.breaker.Report(status.Status < 500)
	default:
		e.breaker.Report(err == nil || errors.As(err, &reply))
	}
}

// reserve asks the ledger for leave, and returns what settles the account.
func (e *Endpoint) reserve(ctx context.Context, agent memory.AgentID, tokens int) (func(Usage) error, error) {
	if e.Spend == nil {
		return func(Usage) error { return nil }, nil
	}
	ticket, err := e.Spend.Reserve(ctx, agent, tokens)
	if err != nil {
		return nil, err
	}
	return func(u Usage) error { return ticket.Settle(ctx, u.TokensIn, u.TokensOut) }, nil
}
