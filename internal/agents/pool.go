package agents

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Pool keeps one open T per agent and lends it. More than its cap are open only
// while more than that are lent at once; idle ones are closed, longest idle
// first. It is safe for concurrent use.
type Pool[T any] struct {
	open  func(ctx context.Context, agent memory.AgentID) (T, error)
	close func(T) error
	spent func(T) bool // may be nil
	most  int

	mu      sync.Mutex
	all     map[memory.AgentID]*slot[T]
	idle    *list.List // of *slot[T], longest idle first
	closed  bool
	opening sync.WaitGroup
	errs    []error // of closing idle ones, for Close to report
}

type slot[T any] struct {
	agent memory.AgentID
	ready chan struct{} // closed once value or err is set
	value T
	err   error
	users int
	place *list.Element // in idle, when users is 0
}

// NewPool returns a pool that keeps at most most idle and lent things open.
func NewPool[T any](most int, open func(context.Context, memory.AgentID) (T, error), close func(T) error) *Pool[T] {
	return &Pool[T]{open: open, close: close, most: most, all: map[memory.AgentID]*slot[T]{}, idle: list.New()}
}

// Drop has what spent says is of no use any more closed as soon as nobody has it,
// so that the next Borrow opens it anew. It is called before the first Borrow.
func (p *Pool[T]) Drop(spent func(T) bool) { p.spent = spent }

// Borrow lends the agent's T, opening it if need be. Agents that are opened at
// once do not wait for each other. A failed opening is not kept: the next
// Borrow tries again.
func (p *Pool[T]) Borrow(ctx context.Context, agent memory.AgentID) (T, func(), error) {
	var none T
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return none, nil, memory.Errorf(memory.ErrUnavailable, "agent %s: the program is shutting down", agent)
	}
	s, known := p.all[agent]
	if !known {
		s = &slot[T]{agent: agent, ready: make(chan struct{}), users: 1} // the opening is a user
		p.all[agent] = s
	}
	s.users++
	if s.place != nil {
		p.idle.Remove(s.place)
		s.place = nil
	}
	p.mu.Unlock()
	if !known {
		// The opening belongs to all that wait for it: a first caller with a short
		// deadline goes away, and the next finds it open.
		p.opening.Go(func() {
			s.value, s.err = p.open(context.WithoutCancel(ctx), agent)
			p.release(s) // before anybody can give it back, so that theirs is the last
			close(s.ready)
		})
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		p.release(s)
		return none, nil, ctx.Err()
	}
	if s.err != nil {
		p.release(s)
		return none, nil, s.err
	}
	return s.value, sync.OnceFunc(func() { p.release(s) }), nil
}

// Holds reports whether the agent's T is open.
func (p *Pool[T]) Holds(agent memory.AgentID) bool {
	p.mu.Lock()
	s, known := p.all[agent]
	p.mu.Unlock()
	if !known {
		return false
	}
	select {
	case <-s.ready:
		return s.err == nil
	default:
		return false
	}
}

func (p *Pool[T]) release(s *slot[T]) {
	p.mu.Lock()
	s.users--
	var ended []*slot[T]
	if s.users == 0 {
		if s.err != nil {
			if p.all[s.agent] == s {
				delete(p.all, s.agent)
			}
		} else if p.spent != nil && p.spent(s.value) {
			// Closed before anybody can open it anew: both would have the same files.
			delete(p.all, s.agent)
			if err := p.close(s.value); err != nil {
				p.errs = append(p.errs, err)
			}
		} else {
			s.place = p.idle.PushBack(s)
		}
	}
	for p.idle.Len() > 0 && (p.closed || len(p.all) > p.most) {
		old := p.idle.Remove(p.idle.Front()).(*slot[T])
		delete(p.all, old.agent)
		ended = append(ended, old)
	}
	p.mu.Unlock()
	for _, old := range ended {
		if err := p.close(old.value); err != nil {
			p.mu.Lock()
			p.errs = append(p.errs, err)
			p.mu.Unlock()
		}
	}
}

// Close closes what is idle now, and what is lent as soon as it is released;
// Borrow fails from now on. It returns the errors of all closings so far.
func (p *Pool[T]) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.opening.Wait()
	p.mu.Lock()
	var ended []*slot[T]
	for p.idle.Len() > 0 {
		old := p.idle.Remove(p.idle.Front()).(*slot[T])
		delete(p.all, old.agent)
		ended = append(ended, old)
	}
	errs := p.errs
	p.errs = nil
	p.mu.Unlock()
	for _, old := range ended {
		errs = append(errs, p.close(old.value))
	}
	return errors.Join(errs...)
}
