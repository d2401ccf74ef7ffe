package message

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/erasure"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// Page is a part of the changes of an agent's items.
type Page struct {
	Items []Sourced // as they are now
	Last  Mark      // where to go on
	More  bool
}

// Memory is what messages follow: the items of agents.
type Memory interface {
	// ChangedSince returns items that the changes behind a mark have touched, about
	// limit of them, whole changes. ErrNotFound where the mark is none of the agent's
	// memory, or the agent has none.
	ChangedSince(ctx context.Context, agent memory.AgentID, since Mark, limit int) (Page, error)
	// Find returns items by id or handle; those that are not there are left out.
	Find(ctx context.Context, agent memory.AgentID, names []string) ([]Sourced, error)
	// Turns tells which session the events that items rest on belong to.
	Turns(ctx context.Context, agent memory.AgentID, eventIDs []string) (map[string]Turn, error)
}

// ServiceOptions are what a Service works with. All are required unless said
// otherwise.
type ServiceOptions struct {
	Read  memory.Borrow[*Store] // ErrNotFound for an agent that has no ledger
	Write memory.Borrow[*Store]
	// Has reports whether an agent exists at all: nobody is made by being written to.
	Has     func(agent memory.AgentID) error
	Memory  Memory
	Session func(ctx context.Context, agent memory.AgentID, id string) (memory.Session, error) // ErrNotFound where it is not known
	// Settings of an agent.
	Settings func(agent memory.AgentID) (Settings, error)
	// Route returns a route of an agent's Settings by its name.
	Route func(agent memory.AgentID, name string) (Route, error)
	// Hold keeps erasures out between reading memory, or a message, and writing what
	// comes of it; it may be nil.
	Hold erasure.Hold
	// OnSent is called after a message to another agent has arrived; it may be nil.
	OnSent func(ctx context.Context, m Message)
	Now    func() time.Time
	Rand   func() float64 // in [0, 1), for the spread of retries
	Log    zerolog.Logger
}

// Service keeps the messages of all agents. It is safe for concurrent use, by
// several processes too.
type Service struct{ ServiceOptions }

// NewService returns a service.
func NewService(o ServiceOptions) *Service { return &Service{o} }

// pageOf is about how many items are read at a time, and mostMoves how often a
// look is tried again because another process was faster.
const (
	pageOf    = 500
	mostMoves = 100
)

// Update brings an agent's ledger up to date: with the changes of its memory, with
// what is now known of sessions, and with the clock. It returns what was sent. An
// agent without memory gets no ledger, and where nothing has changed nothing is
// written.
func (s *Service) Update(ctx context.Context, agent memory.AgentID) ([]Message, error) {
	set, err := s.Settings(agent)
	if err != nil || !set.Enabled {
		return nil, err
	}
	ctx, done, err := s.Hold.Begin(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.follow(ctx, agent); err != nil {
		return nil, fmt.Errorf("messages of %s: follow its memory: %w", agent, err)
	}
	if err := s.resettle(ctx, agent); err != nil {
		return nil, err
	}
	return s.send(ctx, agent, set)
}

// send releases what is due; it opens the ledger for writing only if something is.
func (s *Service) send(ctx context.Context, agent memory.AgentID, set Settings) ([]Message, error) {
	due, err := s.Due(ctx, agent)
	if err != nil || due.IsZero() || due.After(s.Now()) {
		return nil, err
	}
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return nil, err
	}
	defer release()
	var all []Message
	for {
		sent, err := store.release(ctx, set)
		all = append(all, sent...)
		if err != nil || len(sent) < mostAtOnce {
			return all, err
		}
	}
}

// Due returns when an agent next has something to send, to try again or to be
// reminded of; zero where it has not.
func (s *Service) Due(ctx context.Context, agent memory.AgentID) (time.Time, error) {
	set, err := s.Settings(agent)
	if err != nil || !set.Enabled {
		return time.Time{}, err
	}
	store, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	return store.due(ctx)
}

// follow brings the ledger up to date with the agent's items.
func (s *Service) follow(ctx context.Context, agent memory.AgentID) error {
	for moves := 0; ; {
		from, err := s.markOf(ctx, agent)
		if err != nil {
			return err
		}
		more, err := s.followPage(ctx, agent, from)
		switch {
		case errors.Is(err, errMoved) && moves < mostMoves:
			moves++
		case err != nil || !more:
			return err
		}
	}
}

func (s *Service) markOf(ctx context.Context, agent memory.AgentID) (Mark, error) {
	store, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return Mark{}, nil
	}
	if err != nil {
		return Mark{}, err
	}
	defer release()
	return store.mark(ctx)
}

// followPage follows some changes behind a mark, and reports whether there are
// more.
func (s *Service) followPage(ctx context.Context, agent memory.AgentID, from Mark) (bool, error) {
	page, err := s.Memory.ChangedSince(ctx, agent, from, pageOf)
	first := from == (Mark{})
	if errors.Is(err, memory.ErrNotFound) && !first {
		// The memory was made anew. What was spoken of stays known by its items.
		first = true
		page, err = s.Memory.ChangedSince(ctx, agent, Mark{}, pageOf)
	}
	if errors.Is(err, memory.ErrNotFound) {
		return false, nil
	}
	if err != nil || len(page.Items) == 0 {
		return false, err
	}
	w, err := s.look(ctx, agent, page.Items)
	if err != nil {
		return false, err
	}
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return false, err
	}
	defer release()
	if w.since, err = store.since(ctx); err != nil {
		return false, err
	}
	if first {
		w.since = w.now.Add(-firstNews)
	}
	st := propose(page.Items, w)
	st.from, st.to, st.since = from, page.Last, w.since
	return page.More, store.advance(ctx, st)
}

// look gathers what is known around items.
func (s *Service) look(ctx context.Context, agent memory.AgentID, items []Sourced) (world, error) {
	w := world{now: s.Now(), before: map[string]Sourced{}, sessions: map[string]memory.Session{}}
	var replaced []string
	for _, it := range items {
		if it.Supersedes != "" && it.Status == memory.Active {
			replaced = append(replaced, it.Supersedes)
		}
	}
	if len(replaced) > 0 {
		before, err := s.Memory.Find(ctx, agent, replaced)
		if err != nil {
			return world{}, err
		}
		for _, it := range before {
			w.before[it.ID] = it
		}
	}
	var err error
	if w.turns, err = s.Memory.Turns(ctx, agent, eventIDs(items)); err != nil {
		return world{}, err
	}
	for _, t := range w.turns {
		if _, known := w.sessions[t.Session]; known || t.Session == "" {
			continue
		}
		sess, found, err := s.session(ctx, agent, t.Session)
		if err != nil {
			return world{}, err
		}
		if found {
			w.sessions[t.Session] = sess
		}
	}
	return w, nil
}

// session looks up a session. One whose id no session can have is not known.
func (s *Service) session(ctx context.Context, agent memory.AgentID, id string) (memory.Session, bool, error) {
	sess, err := s.Session(ctx, agent, id)
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrInvalid) {
		return memory.Session{}, false, nil
	}
	return sess, err == nil, err
}

// resettle looks whether the sessions of messages that are held for want of an
// address have one now.
func (s *Service) resettle(ctx context.Context, agent memory.AgentID) error {
	store, release, err := s.Read(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	ids, err := store.strays(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		sess, found, err := s.session(ctx, agent, id)
		if err != nil {
			return err
		}
		a := addressOf(id, sess, found)
		if len(a.missing()) > 0 {
			continue
		}
		writer, releaseWriter, err := s.Write(ctx, agent)
		if err != nil {
			return err
		}
		err = writer.readdress(ctx, a)
		releaseWriter()
		if err != nil {
			return err
		}
	}
	return nil
}

// deliver brings an agent's ledger up to date and carries on to its routes what
// is due there. What fails is tried again later, and is no error of deliver.
func (s *Service) deliver(ctx context.Context, agent memory.AgentID) (Delivered, error) {
	res := Delivered{Sent: []string{}, Done: []string{}, Failed: []string{}}
	ctx, end, err := s.Hold.Begin(ctx, agent)
	if err != nil {
		return res, err
	}
	defer end()
	sent, err := s.Update(ctx, agent)
	if err != nil {
		return res, err
	}
	for _, m := range sent {
		res.Sent = append(res.Sent, m.Handle)
	}
	due, err := s.Due(ctx, agent)
	if err != nil || due.IsZero() || due.After(s.Now()) {
		return res, err
	}
	store, release, err := s.Write(ctx, agent)
	if err != nil {
		return res, err
	}
	defer release()
	for {
		list, err := store.claim(ctx)
		if err != nil || len(list) == 0 {
			return res, err
		}
		for _, c := range list {
			failure := s.carry(ctx, agent, c)
			if err := store.settle(context.WithoutCancel(ctx), c, failure, s.Rand()); err != nil {
				return res, err
			}
			if failure == nil {
				res.Done = append(res.Done, c.Handle+" "+c.route)
			} else {
				res.Failed = append(res.Failed, fmt.Sprintf("%s %s: %v", c.Handle, c.route, failure))
			}
			if err := ctx.Err(); err != nil {
				return res, err
			}
		}
	}
}

// carry takes a message over its route. What is wrong with the configuration may
// be right in another process, which has the variables that it names: it is tried
// again.
func (s *Service) carry(ctx context.Context, agent memory.AgentID, c claimed) error {
	ctx, cancel := context.WithTimeout(ctx, routeTimeout)
	defer cancel()
	if c.route == toAgent {
		return s.mail(ctx, c.Message)
	}
	r, err := s.Route(agent, c.route)
	if err != nil {
		return memory.Errorf(memory.ErrUnavailable, "route %s: %v", c.route, err)
	}
	return r.Deliver(ctx, c.Message)
}

// toAgent is the route to another agent's inbox.
const toAgent = "agent"

// mail puts a message into another agent's inbox, once, however often it is tried.
func (s *Service) mail(ctx context.Context, m Message) error {
	if err := s.Has(m.To); err != nil {
		return err
	}
	store, release, err := s.Write(ctx, m.To)
	if err != nil {
		return err
	}
	defer release()
	if err := store.receive(ctx, m); err != nil {
		return err
	}
	if s.OnSent != nil {
		s.OnSent(ctx, m)
	}
	return nil
}
