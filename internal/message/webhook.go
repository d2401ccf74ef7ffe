package message

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Route carries sent messages on from the inbox. A message may come again with
// the same id: whoever receives it must take that for the same one. An error of
// kind invalid, denied or not_found ends the delivery; all others are tried again.
type Route interface {
	Deliver(ctx context.Context, m Message) error
}

// WebhookRoute is the name of the webhook's route.
const WebhookRoute = "webhook"

// Webhook posts messages to a URL, signed as the Standard Webhooks specification
// says (https://www.standardwebhooks.com): webhook-id is the message's id and
// stays the same in every attempt, webhook-timestamp the time of the attempt in
// Unix seconds, webhook-signature "v1," and the base64 of the HMAC-SHA256 of
// id.timestamp.body. The id is also the Idempotency-Key.
type Webhook struct {
	URL    string
	Client *http.Client // with the rules of egress
	// Secret signs; a secret that begins with whsec_ is base64 behind that.
	Secret string
	Now    func() time.Time
}

// payload is the body of a post.
type payload struct {
	Type      string         `json:"type"`
	Timestamp time.Time      `json:"timestamp"` // when it was sent
	Data      payloadMessage `json:"data"`
}

type payloadMessage struct {
	ID        string         `json:"id"`
	Handle    string         `json:"handle"`
	Agent     memory.AgentID `json:"agent"`
	Trigger   Trigger        `json:"trigger"`
	Text      string         `json:"text"`
	Memories  []Ref          `json:"memories"`
	Channel   string         `json:"channel"`
	UserID    string         `json:"user_id"`
	SessionID string         `json:"session_id"`
	CreatedAt time.Time      `json:"created_at"`
}

// mostAnswer bounds what is read of an answer.
const mostAnswer = 4 << 10

// Deliver posts a message. A status of 2xx is success; 408, 425, 429 and 5xx are
// worth trying again, at a time that Retry-After may name in seconds; all others
// are not.
func (w Webhook) Deliver(ctx context.Context, m Message) (err error) {
	sent := m.CreatedAt
	if m.SentAt != nil {
		sent = *m.SentAt
	}
	body, err := json.Marshal(payload{Type: "agent.message", Timestamp: sent, Data: payloadMessage{ID: m.ID, Handle: m.Handle, Agent: m.Agent, Trigger: m.Trigger,
		Text: m.Text, Memories: m.Memories, Channel: m.Channel, UserID: m.UserID, SessionID: m.SessionID, CreatedAt: m.CreatedAt}})
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(w.Now().Unix(), 10)
	signature, err := Sign(w.Secret, m.ID, stamp, body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "post to the webhook: %w", err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "openclawssy", "Idempotency-Key": m.ID,
		"webhook-id": m.ID, "webhook-timestamp": stamp, "webhook-signature": signature} {
		req.Header.Set(name, value)
	}
	req.Close = true // posts are few
	resp, err := w.Client.Do(req)
	if err != nil {
		return fmt.Errorf("post to the webhook: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	return refusal(resp)
}

// refusal is what an answer that is no success stands for.
func refusal(resp *http.Response) error {
	said, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		said = nil // the status says enough
	}
	text := strings.Join(strings.Fields(string(said)), " ")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	kind := memory.ErrDenied
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		kind = memory.ErrUnavailable
	default:
		if resp.StatusCode >= 500 {
			kind = memory.ErrUnavailable
		}
	}
	failure := memory.Errorf(kind, "the webhook answers %d: %s", resp.StatusCode, text)
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 && kind == memory.ErrUnavailable {
		return &LaterError{After: time.Duration(min(seconds, 1<<20)) * time.Second, Err: failure}
	}
	return failure
}

// Sign returns the signature of a webhook's body under a secret. A secret that
// begins with whsec_ and does not go on in base64 is ErrInvalid.
func Sign(secret, id, timestamp string, body []byte) (string, error) {
	key := []byte(secret)
	if encoded, isEncoded := strings.CutPrefix(secret, "whsec_"); isEncoded {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return "", memory.Errorf(memory.ErrInvalid, "the webhook's secret begins with whsec_ and is not base64 behind that")
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
