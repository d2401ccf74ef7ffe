package main

import (
	"context"
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/agents"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// held is an open store together with the others that it works on, which it
// gives back when it is closed.
type held[T io.Closer] struct {
	store T
	needs []func()
}

func (x held[T]) close() error {
	err := x.store.Close()
	for _, giveBack := range x.needs {
		giveBack()
	}
	return err
}

// opener opens one store in an agent's directory. needs are the releases of
// what it borrowed for the store.
type opener[T io.Closer] func(ctx context.Context, agent memory.AgentID, dir agents.Dir) (store T, needs []func(), err error)

// stores lends the open stores of one kind.
type stores[T io.Closer] struct {
	home   func() agents.Home // known once the flags are read
	pool   *agents.Pool[held[T]]
	log    func() *zerolog.Logger
	reader opener[T] // opens without writing, where the disk refuses; may be nil
	before func(context.Context, memory.AgentID)
}

// mostOpen is how many agents' stores of one kind stay open.
const mostOpen = 256

func newStores[T io.Closer](h *house, open, reader opener[T]) *stores[T] {
	home := func() agents.Home { return h.home }
	s := &stores[T]{home: home, log: func() *zerolog.Logger { return &h.log }, reader: reader, before: h.endErasure, pool: agents.NewPool(mostOpen, func(ctx context.Context, agent memory.AgentID) (held[T], error) {
		dir, err := home().Make(agent)
		if err != nil {
			return held[T]{}, err
		}
		return hold(open(ctx, agent, dir))
	}, held[T].close)}
	s.pool.Drop(func(x held[T]) bool {
		d, can := any(x.store).(interface{ Damaged() bool })
		return can && d.Damaged()
	})
	return s
}

func hold[T io.Closer](store T, needs []func(), err error) (held[T], error) {
	if err != nil {
		for _, giveBack := range needs {
			giveBack()
		}
		return held[T]{}, err
	}
	return held[T]{store, needs}, nil
}

// write lends an agent's store, creating the agent if need be.
func (s *stores[T]) write(ctx context.Context, agent memory.AgentID) (T, func(), error) {
	s.before(ctx, agent)
	x, release, err := s.pool.Borrow(ctx, agent)
	return x.store, release, err
}

// read lends an agent's store; ErrNotFound for an agent without a directory.
// Where the store cannot be opened for writing (a full or read-only disk, memory
// that is switched off), it lends one for reading.
func (s *stores[T]) read(ctx context.Context, agent memory.AgentID) (T, func(), error) {
	var none T
	dir, err := s.home().Find(agent)
	if err != nil {
		return none, nil, err
	}
	store, release, err := s.write(ctx, agent)
	refused := errors.Is(err, memory.ErrUnavailable) || errors.Is(err, memory.ErrDenied)
	if s.reader == nil || !refused || ctx.Err() != nil {
		return store, release, err
	}
	x, readErr := hold(s.reader(ctx, agent, dir))
	if readErr != nil {
		return none, nil, errors.Join(err, readErr)
	}
	return x.store, func() {
		if err := x.close(); err != nil {
			s.log().Warn().Err(err).Str("agent", string(agent)).Msg("close after reading")
		}
	}, nil
}

func (s *stores[T]) close() error { return s.pool.Close() }
