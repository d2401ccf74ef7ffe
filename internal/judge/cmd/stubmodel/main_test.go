package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// output passes on what it gets, line by line or in larger pieces.
type output chan string

func (o output) Write(p []byte) (int, error) {
	o <- string(p)
	return len(p), nil
}

func TestServesUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	said, ended := make(output, 10), make(chan error)
	go func() { ended <- run(ctx, []string{"--addr", "127.0.0.1:0", "--always", "503"}, said) }()
	url := regexp.MustCompile(`http://\S+/v1`).FindString(<-said)
	resp, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d, %v", resp.StatusCode, err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestListAndRefuse(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"--list"}, &out); err != nil || !strings.Contains(out.String(), "gzip-bomb") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(t.Context(), []string{"--always", "nonsense"}, &out); err == nil || !strings.Contains(err.Error(), "--list") {
		t.Errorf("an unknown behaviour: %v", err)
	}
}
