// Package embed turns texts into vectors whose nearness is nearness of meaning,
// by asking a model at an endpoint: any that speaks OpenAI's API, Gemini or
// Voyage. The built-in model, which asks nobody, is in package lsa below it.
package embed

import (
	"context"
	"math"
)

// Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in their order, all of one length,
	// finite and not zero; or an error and nothing. They need not have length 1:
	// see Unit. A text must not be blank.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// ModelID names the model together with all that its vectors depend on: the
	// provider, the dimensions and the endpoint where these are not the usual ones.
	// Vectors of two ids are never compared.
	ModelID() string
	// Dimensions is the length of the vectors; 0 as long as it is not known.
	Dimensions() int
}

// QueryEmbedder is an Embedder whose model takes questions otherwise than the
// texts that answer them. Both kinds of vectors are compared with each other.
type QueryEmbedder interface {
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// Cutter is an Embedder whose model reads only so much of a text.
type Cutter interface {
	// Cut returns what the model gets of a text, and whether that is less than all.
	Cut(text string) (string, bool)
}

// Batcher is an Embedder that asks for several texts at once.
type Batcher interface {
	// Batch returns how many of the texts, at least one of them, go into one request,
	// so that whoever keeps vectors loses none of a request that was answered.
	Batch(texts []string) int
}

// Query returns the vector of a question.
func Query(ctx context.Context, e Embedder, text string) ([]float32, error) {
	if q, differs := e.(QueryEmbedder); differs {
		return q.EmbedQuery(ctx, text)
	}
	list, err := e.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Unit scales v, in place, to length 1 and returns it; nil where that cannot be
// done: a zero vector, or one with numbers that are none.
func Unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return v
}
