package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Erase empties what runs of an agent's jobs ended with where hit finds in it what is
// erased, also in the state before the last change. Messages of jobs stay: they are
// what somebody asked to be done. n counts the runs.
func (s *Scheduler) Erase(ctx context.Context, agent memory.AgentID, hit func([]byte) bool) (n int, err error) {
	holds := func(j Job) bool {
		return j.Agent == agent && slices.ContainsFunc(j.Runs, func(r Run) bool { return hit([]byte(r.Detail)) })
	}
	jobs, err := s.store.load()
	if errors.Is(err, memory.ErrCorrupt) && jobs == nil {
		return 0, nil // nobody can read it; who erases is told that the file holds it
	}
	if err != nil && jobs == nil {
		return 0, err
	}
	before, err := s.store.read(previousFile)
	if err != nil {
		before = nil // there is none, or it is no state any more: it is written over
	}
	if !slices.ContainsFunc(jobs, holds) && !slices.ContainsFunc(before, holds) {
		return 0, nil
	}
	for range 2 { // the second time for the state before
		_, err := s.store.update(ctx, func(jobs *[]Job) (bool, error) {
			for i := range *jobs {
				j := &(*jobs)[i]
				if !holds(*j) {
					continue
				}
				j.Runs = slices.Clone(j.Runs)
				for k := range j.Runs {
					if hit([]byte(j.Runs[k].Detail)) {
						j.Runs[k].Detail = ""
						n++
					}
				}
			}
			return true, nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
