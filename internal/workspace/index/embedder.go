package index

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Embedder turns texts into vectors, one for each, in their order and all of one
// length.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// ModelID names the model. Vectors of two models are never compared.
	ModelID() string
}

// Endpoint says where an Embedder's vectors come from, as the index keeps it.
type Endpoint struct {
	Provider string // openai, gemini, voyage, …
	BaseURL  string // of openai and gemini
	Headers  map[string]string
}

// What the index says of itself where there is no embedder.
const (
	noProvider = "none"
	wordsOnly  = "fts-only"
)

// Key returns OpenClaw's fingerprint of an endpoint and model: the hash of a JSON
// object whose members have a fixed order.
func (e Endpoint) Key(model string) (string, error) {
	var doc any = struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}{e.Provider, model}
	if e.Provider == "openai" || e.Provider == "gemini" {
		doc = struct {
			Provider string      `json:"provider"`
			BaseURL  string      `json:"baseUrl"`
			Model    string      `json:"model"`
			Headers  [][2]string `json:"headers"`
		}{e.Provider, e.BaseURL, model, e.headers()}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // as JavaScript writes it
	if err := enc.Encode(doc); err != nil {
		return "", fmt.Errorf("fingerprint of %s: %w", e.Provider, err)
	}
	sum := sha256.Sum256(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return hex.EncodeToString(sum[:]), nil
}

// headers lists the headers that tell endpoints apart, by name.
func (e Endpoint) headers() [][2]string {
	list := [][2]string{}
	for name, value := range e.Headers {
		secret := strings.EqualFold(name, "authorization") || e.Provider == "gemini" && strings.EqualFold(name, "x-goog-api-key")
		if !secret { // another secret is no other endpoint
			list = append(list, [2]string{name, value})
		}
	}
	slices.SortFunc(list, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a[0]), strings.ToLower(b[0])), cmp.Compare(b[0], a[0]))
	})
	return list
}

// vectorsOf says whose vectors an index has.
type vectorsOf struct{ provider, model, key string }

// vectors returns whose vectors x makes.
func (x *Index) vectors() (vectorsOf, error) {
	if x.o.Embedder == nil {
		key, err := Endpoint{Provider: noProvider}.Key(wordsOnly)
		return vectorsOf{noProvider, wordsOnly, key}, err
	}
	model, e := x.o.Embedder.ModelID(), x.o.Endpoint
	if e.Provider == "" {
		e.Provider = "custom"
	}
	key, err := e.Key(model)
	return vectorsOf{e.Provider, model, key}, err
}
