package spend

import (
	"sync"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Breaker stops the asking of an endpoint that has failed several times in a
// row. After a cool-down it lets one request through to try: if that succeeds
// it closes, if not it waits again. It is safe for concurrent use.
type Breaker struct {
	after    int // failures in a row
	cooldown time.Duration
	now      func() time.Time

	mu       sync.Mutex
	failures int
	tryAt    time.Time // when an open breaker lets the next request in
}

// NewBreaker returns a closed breaker that opens after so many failures in a
// row; after is at least 1.
func NewBreaker(after int, cooldown time.Duration, now func() time.Time) *Breaker {
	return &Breaker{after: max(1, after), cooldown: cooldown, now: now}
}

// Allow reports whether a request may be made: nil, or an ErrUnavailable that
// says when to try again. In an open breaker that has cooled down it lets one
// caller in per cool-down, so a caller that never reports does no harm.
func (b *Breaker) Allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.after {
		return nil
	}
	now := b.now()
	wait := b.tryAt.Sub(now)
	if wait > b.cooldown { // the clock was set back
		wait = b.cooldown
		b.tryAt = now.Add(wait)
	}
	if wait > 0 {
		return memory.WithHint(memory.Errorf(memory.ErrUnavailable, "the model has failed %d times in a row and is not asked", b.failures),
			"it is tried again in "+wait.Round(time.Second).String())
	}
	b.tryAt = now.Add(b.cooldown)
	return nil
}

// Report says whether a request that was allowed reached the endpoint and got
// an answer, of whatever kind.
func (b *Breaker) Report(answered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answered {
		b.failures = 0
		return
	}
	b.failures++
	b.tryAt = b.now().Add(b.cooldown)
}
