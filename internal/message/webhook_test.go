package message

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclawssy/openclawssy/internal/egress"
	"github.com/openclawssy/openclawssy/internal/memory"
)

// hook is a server that answers as it is told, and keeps what it was sent.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // the next statuses; 200 when there are none left
	got     []*http.Request
	bodies  [][]byte
	arrived chan struct{}
	hold    chan struct{} // where not nil, answers wait for it
}

func newHook(t *testing.T, answers ...int) *hook {
	h := &hook{answers: answers, arrived: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		h.got, h.bodies = append(h.got, req), append(h.bodies, body)
		status := http.StatusOK
		if len(h.answers) > 0 {
			status, h.answers = h.answers[0], h.answers[1:]
		}
		hold := h.hold
		h.mu.Unlock()
		h.arrived <- struct{}{}
		if hold != nil {
			<-hold
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "3600")
		}
		if status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "http://127.0.0.1:1/")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(h.Close)
	return h
}

func route(t testing.TB, url string, now func() time.Time) Webhook {
	t.Helper()
	client, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: url}}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return Webhook{URL: url + "/in", Client: client, Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of some length")), Now: now}
}

func TestSignatureOfTheSpecification(t *testing.T) {
	// The example of https://www.standardwebhooks.com.
	got, err := Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("Sign = %s, %v, want %s", got, err, want)
	}
	if _, err := Sign("whsec_%%%", "a", "1", nil); !errors.Is(err, memory.ErrInvalid) {
		t.Errorf("Sign with a bad secret = %v", err)
	}
}

func TestWebhookIsSignedAndTriedAgain(t *testing.T) {
	r, h := newRoom(t), newHook(t, 503, 429, 500)
	to := route(t, h.URL, func() time.Time { return r.at })
	r.hook(to)
	r.learn("s1", "Mara is allergic to peanuts.")
	var waits []time.Duration
	for range 10 {
		r.deliver()
		due, err := r.service.Due(context.Background(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if due.IsZero() {
			break
		}
		waits = append(waits, due.Sub(r.at))
		if res := r.deliver(); len(res.Done)+len(res.Failed) != 0 {
			t.Errorf("tried before its time: %+v", res)
		}
		r.at = due
	}
	if want := []time.Duration{10 * time.Second, time.Hour, 160 * time.Second}; fmt.Sprint(waits) != fmt.Sprint(want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if len(h.got) != 4 {
		t.Fatalf("%d posts", len(h.got))
	}
	for i, req := range h.got {
		want, err := Sign(to.Secret, req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp"), h.bodies[i])
		if err != nil || req.Header.Get("webhook-signature") != want {
			t.Errorf("post %d: signature %s, want %s, %v", i, req.Header.Get("webhook-signature"), want, err)
		}
		if id := req.Header.Get("Idempotency-Key"); id != h.got[0].Header.Get("webhook-id") || string(h.bodies[i]) != string(h.bodies[0]) {
			t.Errorf("post %d differs from the first: %s %s", i, id, h.bodies[i])
		}
	}
	var body payload
	if err := json.Unmarshal(h.bodies[0], &body); err != nil || body.Data.UserID != "mara" || body.Data.SessionID != "s1" || body.Data.Channel != "cli" || len(body.Data.Memories) != 1 {
		t.Errorf("body %s, %v", h.bodies[0], err)
	}
	if in := r.inbox(); len(in) != 1 {
		t.Errorf("inbox %+v", in)
	}
}

func TestWebhookThatRefusesIsNotAskedAgain(t *testing.T) {
	for _, status := range []int{400, 410, 307} {
		r, h := newRoom(t), newHook(t, status)
		r.hook(route(t, h.URL, func() time.Time { return r.at }))
		r.learn("s1", "One.")
		r.deliver()
		held := r.held()
		if len(held) != 1 || held[0].State != InInbox || held[0].Deliveries[0].State != "failed" || held[0].Deliveries[0].Error == "" {
			t.Fatalf("%d: %+v", status, held)
		}
		if _, err := r.service.Retry(context.Background(), agent, IDRequest{ID: held[0].Handle}); err != nil {
			t.Fatal(err)
		}
		if res := r.deliver(); len(res.Done) != 1 {
			t.Errorf("%d: %+v", status, res)
		}
	}
}

func TestWebhookKeepsToTheRulesOfEgress(t *testing.T) {
	r := newRoom(t)
	h := newHook(t)
	to := route(t, "http://hooks.example", func() time.Time { return r.at })
	to.URL = h.URL // another host than was configured
	if err := to.Deliver(context.Background(), Message{ID: "msg_1"}); !errors.Is(err, memory.ErrDenied) || len(h.got) != 0 {
		t.Errorf("Deliver = %v after %d posts", err, len(h.got))
	}
}

func TestGivesUpAfterSomeDays(t *testing.T) {
	r, h := newRoom(t), newHook(t, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500)
	r.hook(route(t, h.URL, func() time.Time { return r.at }))
	r.learn("s1", "One.")
	from := r.at
	for range 20 {
		r.deliver()
		due, err := r.service.Due(context.Background(), agent)
		if err != nil {
			t.Fatal(err)
		}
		if due.IsZero() {
			break
		}
		r.at = due
	}
	if took := r.at.Sub(from); len(h.got) != mostAttempts || took < 24*time.Hour || took > 72*time.Hour {
		t.Errorf("%d posts in %s", len(h.got), took)
	}
	if held := r.held(); len(held) != 1 || held[0].Deliveries[0].State != "failed" {
		t.Errorf("held %+v", held)
	}
}

func TestTwoProcessesPostOnce(t *testing.T) {
	r, h := newRoom(t), newHook(t)
	r.set.DailyCap, r.set.Cooldown = 1000, 0
	r.hook(route(t, h.URL, func() time.Time { return r.at }))
	both := []*Service{r.service, r.open()}
	for i := range 20 {
		r.learn("s1", fmt.Sprint("Fact ", i))
		r.update()
		r.at = r.at.Add(time.Second)
	}
	var wg sync.WaitGroup
	for _, s := range both {
		wg.Go(func() {
			if _, err := s.deliver(context.Background(), agent); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids := map[string]int{}
	for _, req := range h.got {
		ids[req.Header.Get("webhook-id")]++
	}
	if len(ids) != 20 || len(h.got) != 20 {
		t.Errorf("%d ids in %d posts", len(ids), len(h.got))
	}
}

// childEnv names the directory that a child process delivers from, and its webhook.
const childEnv = "MESSAGE_TEST_CHILD"

func TestKilledBetweenLedgerAndDelivery(t *testing.T) {
	h := newHook(t)
	h.mu.Lock()
	h.hold = make(chan struct{})
	h.mu.Unlock()
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir+"\n"+h.URL+"\n"+fmt.Sprint(round))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-h.arrived // the post is under way: it is in the ledger, and not settled
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
	}
	h.mu.Lock()
	close(h.hold)
	h.hold = nil
	h.mu.Unlock()
	s, err := Open(context.Background(), filepath.Join(dir, "a.db"), Options{Agent: agent, Redact: stars{}, Now: func() time.Time { return childStart.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.claim(context.Background())
	if err != nil || len(list) != 1 || list[0].attempts != 4 {
		t.Fatalf("claimed %+v, %v", list, err)
	}
	if err := route(t, h.URL, s.Now).Deliver(context.Background(), list[0].Message); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(context.Background(), list[0], nil, 0); err != nil {
		t.Fatal(err)
	}
	for _, req := range h.got {
		if req.Header.Get("webhook-id") != list[0].ID {
			t.Errorf("posted %s, want %s", req.Header.Get("webhook-id"), list[0].ID)
		}
	}
	sent, err := s.list(context.Background(), nil, "state = 'sent'", 0)
	if err != nil || len(sent) != 1 || len(h.got) != 4 {
		t.Errorf("inbox %+v, %v after %d posts", sent, err, len(h.got))
	}
}

var childStart = time.Date(2026, 5, 12, 11, 0, 0, 0, time.UTC)

// child sends the same message as every round before it, and posts it.
func child() {
	parts := strings.Split(os.Getenv(childEnv), "\n")
	var round int
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	_, err := fmt.Sscan(parts[2], &round)
	fail(err)
	ctx, now := context.Background(), childStart.Add(time.Duration(round)*10*time.Minute)
	s, err := Open(ctx, filepath.Join(parts[0], "a.db"), Options{Agent: agent, Redact: stars{}, Now: func() time.Time { return now }})
	fail(err)
	fail(s.update(ctx, func(tx *sql.Tx) error {
		return s.tell(ctx, tx, []Draft{{Trigger: Verify, Lead: "Is this still right?", Memories: []Ref{{ID: "mem_1", Handle: "MEM-1", Text: "One."}},
			Address: Address{SessionID: "s1", Channel: "cli", UserID: "mara", Private: true}}}, now)
	}))
	_, err = s.release(ctx, Settings{Enabled: true, DailyCap: 5, Routes: []string{WebhookRoute}})
	fail(err)
	list, err := s.claim(ctx)
	fail(err)
	client, err := egress.New(egress.Options{Allow: []egress.Endpoint{{URL: parts[1]}}})
	fail(err)
	for _, c := range list {
		fail(Webhook{URL: parts[1], Client: client, Secret: "x", Now: s.Now}.Deliver(ctx, c.Message))
	}
}
