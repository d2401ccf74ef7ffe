package events

import (
	"context"
	"errors"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
)

// Service offers the operations on agents' event logs.
type Service struct {
	reader memory.Borrow[*Reader]
}

// NewService returns the operations over the logs that reader lends. An agent
// for which it answers ErrNotFound has an empty log.
func NewService(reader memory.Borrow[*Reader]) *Service { return &Service{reader: reader} }

// Ops returns the operations this package offers.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New("events.tail", "Show the newest events of the log, oldest first.", op.Read, s.Tail).WithExample(`{"limit": 5}`),
		op.New("events.verify", "Read the whole event log and report every line that is damaged or missing.", op.Read, s.Verify),
	}
}

const (
	defaultTail = 20
	maxTail     = 1000
)

// TailRequest is the input of events.tail.
type TailRequest struct {
	Limit int `json:"limit,omitempty" jsonschema:"most events to show, 1 to 1000; 20 if absent" cli:"arg"`
}

// TailResult is the answer of events.tail.
type TailResult struct {
	Agent  memory.AgentID `json:"agent"`
	Events []memory.Event `json:"events"`
}

// Tail returns the newest events of an agent's log, oldest first.
func (s *Service) Tail(ctx context.Context, agent memory.AgentID, in TailRequest) (TailResult, error) {
	out := TailResult{Agent: agent, Events: []memory.Event{}}
	if in.Limit == 0 {
		in.Limit = defaultTail
	}
	if in.Limit < 1 || in.Limit > maxTail {
		return out, &memory.FieldError{Field: "limit", Reason: "must be between 1 and 1000"}
	}
	err := s.read(ctx, agent, func(r *Reader) error {
		events, err := Newest(ctx, r, in.Limit)
		out.Events = append(out.Events, events...)
		return err
	})
	return out, err
}

// VerifyRequest is the input of events.verify.
type VerifyRequest struct{}

// VerifyResult is the answer of events.verify.
type VerifyResult struct {
	Agent memory.AgentID `json:"agent"`
	Report
}

// Verify reads an agent's whole log. A damaged log is no error of the call: Ok
// is false then.
func (s *Service) Verify(ctx context.Context, agent memory.AgentID, _ VerifyRequest) (VerifyResult, error) {
	out := VerifyResult{Agent: agent, Report: Report{Ok: true, Files: []FileReport{}, Damage: []Damage{}, Gaps: []memory.Range{}, Torn: []Torn{}}}
	err := s.read(ctx, agent, func(r *Reader) (err error) {
		out.Report, err = r.Verify(ctx)
		return err
	})
	return out, err
}

// read runs with the agent's reader, and not at all where the agent has nothing.
func (s *Service) read(ctx context.Context, agent memory.AgentID, with func(*Reader) error) error {
	reader, release, err := s.reader(ctx, agent)
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return with(reader)
}

// Newest returns the n newest events of a log that are no probes, oldest first.
func Newest(ctx context.Context, r *Reader, n int) ([]memory.Event, error) {
	for want := n; ; want += n {
		list, err := r.Tail(ctx, want)
		if err != nil {
			return nil, err
		}
		all := len(list) < want
		list = slices.DeleteFunc(list, func(e memory.Event) bool { return e.Type == memory.Probe })
		if all || len(list) >= n {
			return list[max(0, len(list)-n):], nil
		}
	}
}
