package embed

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// rerank asks a server that answers with a status and a body.
func rerank(t *testing.T, status int, answer string, n int) ([]int, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model, Query string
			Documents    []string
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &asked) != nil || asked.Query != "which tea?" || len(asked.Documents) != n || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("asked %s", raw)
		}
		w.WriteHeader(status)
		io.WriteString(w, answer) //nolint:errcheck // the client may have gone
	}))
	defer server.Close()
	r, err := NewReranker(server.URL+"/v1/rerank", "m", "k", server.Client(), time.Now, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r.Rerank(context.Background(), "default", "which tea?", make([]string, n), nil)
}

func TestRerankerTakesEveryForm(t *testing.T) {
	for name, answer := range map[string]string{
		"cohere": `{"id":"1","results":[{"index":2,"relevance_score":0.9},{"index":0,"relevance_score":0.4}]}`,
		"voyage": `{"object":"list","data":[{"index":0,"relevance_score":0.4},{"index":2,"relevance_score":0.9}]}`,
		"tei":    `[{"index":2,"score":7.5},{"index":0,"score":-1}]`,
	} {
		if got, err := rerank(t, 200, answer, 3); err != nil || !slices.Equal(got, []int{2, 0, 1}) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func TestRerankerRefusesWhatIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
	}{
		"no index":   {200, `{"results":[{"relevance_score":1}]}`},
		"no score":   {200, `{"results":[{"index":0}]}`},
		"outside":    {200, `{"results":[{"index":3,"relevance_score":1}]}`},
		"negative":   {200, `{"results":[{"index":-1,"relevance_score":1}]}`},
		"twice":      {200, `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":2}]}`},
		"empty":      {200, `{"results":[]}`},
		"HTML":       {200, `<html>welcome</html>`},
		"cut":        {200, `{"results":[{"index":0,`},
		"busy":       {429, `{"error":"slow down"}`},
		"broken":     {500, `oops`},
		"not a list": {200, `[1,2]`},
		"huge":       {200, `{"results":[` + strings.Repeat(" ", 2<<20) + `]}`},
	} {
		if got, err := rerank(t, c.status, c.answer, 3); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := NewReranker("not a url", "", "", nil, time.Now, time.Second); !errors.Is(err, memory.ErrInvalid) {
		t.Error(err)
	}
}
