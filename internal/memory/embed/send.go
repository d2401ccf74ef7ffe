package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/openclawssy/openclawssy/internal/llm"
)

// send makes one request in the provider's form and reads the answer into r.
func (a asking) send(ctx context.Context, w *llm.Wire, texts []string, query bool, r *reply) error {
	w.MaxBytes, w.Watch = r.mostBytes(), &r.raw
	var err error
	switch a.config.Provider {
	case Gemini:
		err = a.sendGemini(ctx, w, texts, query, r)
	case Voyage:
		err = a.sendVoyage(ctx, w, texts, query, r)
	default:
		err = a.sendOpenAI(ctx, w, texts, r)
	}
	if w.Answered() {
		return r.decoded(err)
	}
	return err
}

func (a asking) sendOpenAI(ctx context.Context, w *llm.Wire, texts []string, r *reply) error {
	settings := openai.DefaultConfig(a.config.Key)
	settings.BaseURL = a.config.BaseURL
	settings.HTTPClient = w
	req := openai.EmbeddingRequest{Input: texts, Model: openai.EmbeddingModel(a.config.Model)}
	switch {
	case a.config.Dimensions == 0:
	case a.config.Provider == Mistral:
		req.ExtraBody = map[string]any{"output_dimension": a.config.Dimensions}
	default:
		req.Dimensions = a.config.Dimensions
	}
	got, err := openai.NewClientWithConfig(settings).CreateEmbeddings(ctx, req)
	if err != nil {
		return err
	}
	for _, e := range got.Data {
		r.entries = append(r.entries, entry{e.Index, e.Embedding})
	}
	r.tokens = got.Usage.TotalTokens
	r.markIndexed()
	return nil
}

// sendVoyage speaks https://docs.voyageai.com/reference/embeddings-api.
func (a asking) sendVoyage(ctx context.Context, w *llm.Wire, texts []string, query bool, r *reply) error {
	kind := "document"
	if query {
		kind = "query"
	}
	var got struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage struct {
			TotalTokens int `json:"total_tokens"`
		} `json:"usage"`
	}
	err := a.post(ctx, w, "/embeddings", "Authorization", "Bearer "+a.config.Key, struct {
		Input           []string `json:"input"`
		Model           string   `json:"model"`
		InputType       string   `json:"input_type"`
		OutputDimension int      `json:"output_dimension,omitempty"`
	}{texts, a.config.Model, kind, a.config.Dimensions}, &got)
	if err != nil {
		return err
	}
	for _, e := range got.Data {
		r.entries = append(r.entries, entry{e.Index, e.Embedding})
	}
	r.tokens = got.Usage.TotalTokens
	r.markIndexed()
	return nil
}

// sendGemini speaks https://ai.google.dev/api/embeddings#method:-models.batchembedcontents,
// whose vectors come in the order of the texts.
func (a asking) sendGemini(ctx context.Context, w *llm.Wire, texts []string, query bool, r *reply) error {
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Parts []part `json:"parts"`
	}
	type one struct {
		Model                string  `json:"model"`
		Content              content `json:"content"`
		TaskType             string  `json:"taskType"`
		OutputDimensionality int     `json:"outputDimensionality,omitempty"`
	}
	kind := "RETRIEVAL_DOCUMENT"
	if query {
		kind = "RETRIEVAL_QUERY"
	}
	name := strings.TrimPrefix(a.config.Model, "models/")
	req := struct {
		Requests []one `json:"requests"`
	}{}
	for _, text := range texts {
		req.Requests = append(req.Requests, one{"models/" + name, content{[]part{{text}}}, kind, a.config.Dimensions})
	}
	var got struct {
		Embeddings []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	if err := a.post(ctx, w, "/models/"+url.PathEscape(name)+":batchEmbedContents", "X-Goog-Api-Key", a.config.Key, req, &got); err != nil {
		return err
	}
	for _, e := range got.Embeddings {
		r.entries = append(r.entries, entry{numbers: e.Values})
	}
	return nil
}

// post sends a JSON document and reads the answer, or the endpoint's words where
// it refuses.
func (a asking) post(ctx context.Context, w *llm.Wire, path, header, key string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.config.Key != "" {
		req.Header.Set(header, key)
	}
	resp, err := w.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return refusal(w, resp)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// refusal reads what Gemini (error.message, and in details how long to wait) or
// Voyage (detail) say; nothing where they say it otherwise.
func refusal(w *llm.Wire, resp *http.Response) error {
	var said struct {
		Detail any `json:"detail"`
		Error  struct {
			Message string `json:"message"`
			Details []struct {
				RetryDelay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	out := &openai.APIError{HTTPStatusCode: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		return out
	}
	out.Message = said.Error.Message
	if text, isText := said.Detail.(string); isText {
		out.Message = text
	}
	for _, d := range said.Error.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			w.Wait(wait)
		}
	}
	return out
}
