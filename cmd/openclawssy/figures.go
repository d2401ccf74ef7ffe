package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/vitals"
)

// agentFigures are the figures of each agent of the home for Prometheus: what is noted
// of its health, which is a small file, and for agents that this process has opened
// what they remember. An idle agent is not opened to be counted.
type agentFigures struct{ h *house }

// collectTime bounds what a look at all agents may take.
const collectTime = 5 * time.Second

var (
	agentDegraded = figure("openclawssy_agent_degraded_since_seconds", "Since when something is known to be wrong with the agent's memory, in seconds since 1970; 0 if nothing is. openclawssy status says what.")
	agentLost     = figure("openclawssy_agent_events_lost", "Events that were taken and could not be written, and of which nobody has taken note.")
	agentCanary   = figure("openclawssy_agent_canary_ok", "1 if the last probe was written and recalled, 0 if not.")
	agentItems    = figure("openclawssy_agent_items", "Memories of the agent, by status.", "status")
	agentBacklog  = figure("openclawssy_agent_backlog", "Turns of the agent that wait to be distilled.")
	agentParked   = figure("openclawssy_agent_parked", "Ranges of events that could not be distilled yet.")
)

func figure(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"agent"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (f agentFigures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{agentDegraded, agentLost, agentCanary, agentItems, agentBacklog, agentParked} {
		out <- d
	}
}

// Collect implements prometheus.Collector. An agent that cannot be looked at has no
// figures.
func (f agentFigures) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(f.h.life, collectTime)
	defer cancel()
	agents, err := f.h.home.List()
	if err != nil {
		f.h.log.Warn().Err(err).Msg("list the agents for their figures")
	}
	for _, agent := range agents {
		if err := f.of(ctx, agent, out); err != nil {
			f.h.log.Warn().Err(err).Str("agent", string(agent)).Msg("look at an agent for its figures")
		}
	}
}

// of sends the figures of one agent.
func (f agentFigures) of(ctx context.Context, agent memory.AgentID, out chan<- prometheus.Metric) error {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{string(agent)}, labels...)...)
	}
	dir, err := f.h.home.Find(agent)
	if err != nil {
		return err
	}
	state, err := vitals.Read(dir.Path())
	if err != nil {
		return err
	}
	since := 0.0
	if at, wrong := state.Since(); wrong {
		since = float64(at.Unix())
	}
	send(agentDegraded, since)
	send(agentLost, float64(state.Lost.Open()))
	if state.Canary != nil && !state.Canary.At.IsZero() {
		ok := 0.0
		if state.Canary.Ok {
			ok = 1
		}
		send(agentCanary, ok)
	}
	if !f.h.items.pool.Holds(agent) {
		return nil
	}
	health, err := f.h.sources.look.Health(ctx, agent)
	if err != nil {
		return err
	}
	for status, count := range health.Items {
		send(agentItems, float64(count), string(status))
	}
	send(agentBacklog, float64(health.Backlog))
	send(agentParked, float64(len(health.Parked)))
	return nil
}
