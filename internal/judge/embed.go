package judge

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
)

// EmbedRequest is the part of a request for embeddings that the stub looks at,
// whichever form it has.
type EmbedRequest struct {
	Model      string
	Texts      []string
	Dimensions int    // asked for; 0 for the model's own
	Task       string // Gemini's taskType or Voyage's input_type
}

// EmbedBehaviour is one way to answer a request for embeddings.
type EmbedBehaviour struct {
	Name  string
	Help  string
	serve func(*exchange)
}

// embedding is how requests for embeddings are answered.
type embedding struct {
	next   []EmbedBehaviour
	always *EmbedBehaviour
}

// EmbedBehaviours returns the table of what a request for embeddings can be
// answered with: faults of vectors, and those faults of transport that the chat
// has too.
func EmbedBehaviours() []EmbedBehaviour { return slices.Clone(embedTable) }

var embedTable = append([]EmbedBehaviour{
	{"good", "one vector for each text", vectors(nil)},
	{"reordered", "the last text first, with the right index", vectors(func(list []vector) []vector { slices.Reverse(list); return list })},
	{"no-index", "without an index", vectors(func(list []vector) []vector {
		for i := range list {
			list[i].Index = 0
		}
		return list
	})},
	{"fewer", "no vector for the last text", vectors(func(list []vector) []vector { return list[:len(list)-1] })},
	{"more", "a vector for no text", vectors(func(list []vector) []vector {
		return append(list, vector{Index: len(list), Numbers: list[0].Numbers})
	})},
	{"none", "no vectors at all", vectors(func([]vector) []vector { return []vector{} })},
	{"same-index", "two vectors of the second text", vectors(func(list []vector) []vector { list[0].Index = 1; return list })},
	{"index-beyond", "a vector of a text that there is not", vectors(func(list []vector) []vector { list[0].Index = 1000; return list })},
	{"nan", "NaN, which is no JSON", raw("NaN")},
	{"infinite", "a number that no float32 holds", raw("1e39")},
	{"null-number", "null in place of a number", raw("null")},
	{"text-number", "a number as text", raw(`"0.5"`)},
	{"empty-vector", "a vector without numbers", vectors(func(list []vector) []vector { list[0].Numbers = []float32{}; return list })},
	{"zero-vector", "a vector of zeros", vectors(func(list []vector) []vector {
		list[0].Numbers = make([]float32, len(list[0].Numbers))
		return list
	})},
	{"other-dimension", "vectors of another length", vectors(func(list []vector) []vector {
		for i := range list {
			list[i].Numbers = list[i].Numbers[1:]
		}
		return list
	})},
	{"mixed-dimensions", "vectors of two lengths", vectors(func(list []vector) []vector { list[0].Numbers = list[0].Numbers[1:]; return list })},
	{"truncated-json", "half of the answer", func(x *exchange) {
		text := x.vectors(x.embedded(nil))
		x.w.Header().Set("Content-Type", "application/json")
		send(x.w, text[:len(text)/2])
	}},
	{"empty-object", "{}", func(x *exchange) { writeJSON(x.w, http.StatusOK, map[string]any{}) }},
	{"400-long", "a text is longer than the model takes", func(x *exchange) {
		failWith(x.w, http.StatusBadRequest, "the input exceeds the context length")
	}},
}, transportFaults()...)

// transportFaults are the behaviours of the chat table that do not depend on
// what is asked.
func transportFaults() []EmbedBehaviour {
	shared := []string{"empty-body", "html", "400", "401", "404", "429", "429-5s", "429-1d", "429-negative", "429-garbage", "429-date", "500", "503",
		"hang", "drip", "headers-then-hang", "reset", "endless", "gzip-bomb", "length-too-long", "chunked-garbage", "continue-forever",
		"301", "307", "308", "307-metadata", "307-file"}
	out := make([]EmbedBehaviour, len(shared))
	for i, b := range pick(shared) {
		out[i] = EmbedBehaviour{b.Name, b.Help, b.serve}
	}
	return out
}

func pickEmbed(name string) EmbedBehaviour {
	at := slices.IndexFunc(embedTable, func(b EmbedBehaviour) bool { return b.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("judge: there is no behaviour %q of embeddings", name))
	}
	return embedTable[at]
}

// NextEmbed gives the next requests for embeddings these behaviours, one each.
func (s *Server) NextEmbed(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.embeds.next = append(s.embeds.next, pickEmbed(name))
	}
}

// AlwaysEmbed gives every request for embeddings that NextEmbed says nothing
// about this behaviour; "" ends that.
func (s *Server) AlwaysEmbed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.embeds.always = nil
	if name != "" {
		b := pickEmbed(name)
		s.embeds.always = &b
	}
}

// vector is one entry of an answer.
type vector struct {
	Index   int
	Numbers []float32
}

// vectors answers with the vectors of the texts, distorted.
func vectors(distort func([]vector) []vector) func(*exchange) {
	return func(x *exchange) {
		x.w.Header().Set("Content-Type", "application/json")
		send(x.w, x.vectors(x.embedded(distort)))
	}
}

// raw answers with a first number that is written like this.
func raw(number string) func(*exchange) {
	const mark = float32(123.25)
	return func(x *exchange) {
		list := x.embedded(nil)
		list[0].Numbers[0] = mark
		x.w.Header().Set("Content-Type", "application/json")
		send(x.w, strings.Replace(x.vectors(list), "123.25", number, 1))
	}
}

func (x *exchange) embedded(distort func([]vector) []vector) []vector {
	list := make([]vector, len(x.embed.Texts))
	for i, text := range x.embed.Texts {
		list[i] = vector{i, Embed(x.embed.Model, text, x.embed.Dimensions)}
	}
	if distort != nil {
		list = distort(list)
	}
	return list
}

// vectors writes an answer in the form of the request.
func (x *exchange) vectors(list []vector) string {
	used := 0
	for _, text := range x.embed.Texts {
		used += tokens(text)
	}
	var doc any
	if x.gemini {
		entries := make([]any, len(list))
		for i, v := range list {
			entries[i] = map[string]any{"values": v.Numbers}
		}
		doc = map[string]any{"embeddings": entries}
	} else {
		data := make([]any, len(list))
		for i, v := range list {
			data[i] = map[string]any{"object": "embedding", "index": v.Index, "embedding": v.Numbers}
		}
		doc = map[string]any{"object": "list", "model": x.embed.Model, "data": data, "usage": map[string]int{"prompt_tokens": used, "total_tokens": used}}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("judge: %v", err))
	}
	return string(text)
}

// embeddings answers in the form of OpenAI's API, which is Voyage's too but for
// two members of the request.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model           string          `json:"model"`
		Input           json.RawMessage `json:"input"`
		Dimensions      int             `json:"dimensions"`
		OutputDimension int             `json:"output_dimension"`
		InputType       string          `json:"input_type"`
	}
	x := &exchange{server: s, w: w, r: r}
	raw, there := readJSON(w, r, &req)
	if !there {
		return
	}
	x.embed = EmbedRequest{Model: req.Model, Dimensions: max(req.Dimensions, req.OutputDimension), Task: req.InputType}
	if len(req.Input) > 0 && req.Input[0] == '"' {
		x.embed.Texts = make([]string, 1)
		if json.Unmarshal(req.Input, &x.embed.Texts[0]) != nil {
			x.embed.Texts = nil
		}
	} else if json.Unmarshal(req.Input, &x.embed.Texts) != nil {
		x.embed.Texts = nil
	}
	s.answerEmbed(x, len(raw), r.Header.Get("Authorization"))
}

// geminiEmbeddings answers in the form of Gemini's batchEmbedContents.
func (s *Server) geminiEmbeddings(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Requests []struct {
			Model   string `json:"model"`
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
			TaskType             string `json:"taskType"`
			OutputDimensionality int    `json:"outputDimensionality"`
		} `json:"requests"`
	}
	x := &exchange{server: s, w: w, r: r, gemini: true}
	raw, there := readJSON(w, r, &req)
	if !there {
		return
	}
	name, batch := strings.CutSuffix(r.PathValue("call"), ":batchEmbedContents")
	for _, one := range req.Requests {
		if !batch || one.Model != "models/"+name || len(one.Content.Parts) != 1 {
			x.embed.Texts = nil
			break
		}
		x.embed.Model, x.embed.Dimensions, x.embed.Task = name, one.OutputDimensionality, one.TaskType
		x.embed.Texts = append(x.embed.Texts, one.Content.Parts[0].Text)
	}
	s.answerEmbed(x, len(raw), r.Header.Get("X-Goog-Api-Key"))
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) (raw []byte, there bool) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return nil, false // the client has gone
	}
	if err := json.Unmarshal(raw, into); err != nil {
		failWith(w, http.StatusBadRequest, "the request is not JSON")
		return nil, false
	}
	return raw, true
}

func (s *Server) answerEmbed(x *exchange, size int, auth string) {
	s.running.Add(1)
	defer s.running.Done()
	s.mu.Lock()
	b := embedTable[0]
	switch {
	case len(s.embeds.next) > 0:
		b = s.embeds.next[0]
		s.embeds.next = s.embeds.next[1:]
	case s.embeds.always != nil:
		b = *s.embeds.always
	}
	s.calls = append(s.calls, Call{Path: x.r.URL.Path, Behaviour: b.Name, Bytes: size, Auth: auth, Embed: x.embed})
	x.number = len(s.calls)
	s.mu.Unlock()
	if len(x.embed.Texts) == 0 {
		failWith(x.w, http.StatusBadRequest, "input must be a string or a list of strings")
		return
	}
	b.serve(x)
}

// dimensions of the stub's embeddings where none are asked for.
const dimensions = 64

// Embed is the stub's embedding: a hashed bag of words of length 1. Equal texts
// get equal vectors, texts that share words are near, and two models have
// nothing in common.
func Embed(model, text string, dims int) []float32 {
	if dims == 0 {
		dims = dimensions
	}
	v := make([]float32, dims)
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		send(h, model+" "+word)
		v[h.Sum32()%uint32(dims)]++
	}
	var norm float64
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm > 0 {
		for i := range v {
			v[i] /= float32(math.Sqrt(norm))
		}
	}
	return v
}
