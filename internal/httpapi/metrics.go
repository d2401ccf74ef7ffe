package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// counts are the server's own figures.
type counts struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	events   prometheus.Counter
}

func newCounts(registry *prometheus.Registry) counts {
	c := counts{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "openclawssy_http_requests_total", Help: "Requests by face and status."}, []string{"face", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "openclawssy_http_request_seconds", Help: "Time until a request was answered.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"face"}),
		events: prometheus.NewCounter(prometheus.CounterOpts{Name: "openclawssy_ingested_events_total", Help: "Events that other programs told over HTTP and that were new."}),
	}
	registry.MustRegister(c.requests, c.seconds, c.events)
	return c
}

// observe counts a request. Faces are few and fixed, whatever addresses are asked
// for.
func (c counts) observe(r *http.Request, status int, took time.Duration) {
	face := faceOf(r.URL.Path)
	c.requests.WithLabelValues(face, strconv.Itoa(status)).Inc()
	c.seconds.WithLabelValues(face).Observe(took.Seconds())
}

func faceOf(path string) string {
	for _, f := range []struct{ prefix, face string }{
		{"/v1/chat/", "proxy"}, {"/v1/models", "proxy"}, {"/v1/embeddings", "proxy"}, {"/mcp", "mcp"}, {"/admin", "page"}, {"/api/admin/", "admin"},
	} {
		if strings.HasPrefix(path, f.prefix) {
			return f.face
		}
	}
	if rest, ok := strings.CutPrefix(path, "/v1/agents/"); ok {
		_, what, _ := strings.Cut(rest, "/")
		what, _, _ = strings.Cut(what, "/")
		switch what {
		case "ops", "runs", "chat", "events", "recall":
			return what
		}
	}
	return "other"
}

// metrics answers with every figure of the process. They tell of all agents, and
// so are for a token of all agents.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if !access.Caller(r.Context()).Anywhere(access.Read) {
		return memory.WithHint(memory.Errorf(memory.ErrDenied, "figures tell of all agents, and the token is for some"), "openclawssy token create --name metrics --right read makes one for all")
	}
	s.bound(w)
	promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}
