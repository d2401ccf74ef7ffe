package evaluate

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// summarise means the figures of some questions.
func summarise(answers []asked) (Metrics, error) {
	sums, latencies := map[string]float64{}, []time.Duration{}
	byConversation := map[int][]asked{}
	for _, a := range answers {
		for name, v := range a.figures {
			sums[name] += v
		}
		latencies = append(latencies, a.latency)
		byConversation[a.conversation] = append(byConversation[a.conversation], a)
	}
	for name := range sums {
		sums[name] /= float64(len(answers))
	}
	var m Metrics
	if err := assign(sums, &m); err != nil {
		return m, err
	}
	m.Questions = len(answers)
	m.LatencyP50MS, m.LatencyP95MS = percentile(latencies, .50), percentile(latencies, .95)
	if len(byConversation) > 1 {
		m.StandardError = standardErrors(byConversation, sums)
	}
	return m, nil
}

// assign sets the members of m by their JSON names.
func assign(figures map[string]float64, m *Metrics) error {
	raw, err := json.Marshal(figures)
	if err != nil {
		return memory.Errorf(memory.ErrInternal, "figures: %w", err)
	}
	return json.Unmarshal(raw, m)
}

// standardErrors returns for each figure the standard error of its mean over
// conversations.
func standardErrors(byConversation map[int][]asked, figures map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name := range figures {
		var means []float64
		for _, answers := range byConversation {
			var sum float64
			for _, a := range answers {
				sum += a.figures[name]
			}
			means = append(means, sum/float64(len(answers)))
		}
		slices.Sort(means) // so that the sum does not depend on the order of a map
		out[name] = standardError(means)
	}
	return out
}

// standardError of the mean: the sample's standard deviation over √n.
func standardError(values []float64) float64 {
	var mean, squares float64
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)-1) / float64(len(values)))
}

// percentile returns a share of durations in milliseconds, by nearest rank.
func percentile(durations []time.Duration, share float64) float64 {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	at := max(0, int(math.Ceil(share*float64(len(sorted))))-1)
	return float64(sorted[at].Microseconds()) / 1000
}

// summariseShipped means the figures of the product as it comes.
func summariseShipped(answers []asked) Shipped {
	answers = slices.DeleteFunc(slices.Clone(answers), func(a asked) bool { return !a.shipped.measured })
	out := Shipped{Questions: len(answers)}
	var latencies []time.Duration
	var withTurns, foreign, refused float64
	for _, a := range answers {
		s := a.shipped
		latencies = append(latencies, s.latency)
		out.Tokens += s.tokens / float64(len(answers))
		if s.abstained {
			out.Abstained += 1 / float64(len(answers))
		}
		if s.degraded {
			out.Degraded++
		}
		if s.latency > shippedDeadline {
			out.Late++
		}
		if s.hasTurns {
			withTurns++
			out.RecallInBlock += s.recall
		}
		foreign += float64(s.foreign)
		refused += float64(s.refused)
	}
	if withTurns > 0 {
		out.RecallInBlock /= withTurns
	}
	if foreign > 0 {
		out.Foreign = refused / foreign
	}
	out.LatencyP50MS, out.LatencyP95MS = percentile(latencies, .50), percentile(latencies, .95)
	return out
}
