package lsa

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// version of how models are made; part of their id.
const version = 1

// Model turns the words of a text into a vector. It is not changed once it is made,
// and safe for concurrent use.
type Model struct {
	dims     int
	passages int
	hash     [6]byte          // of the corpus
	terms    map[string]int32 // row of the term's vector
	scales   []float32        // of each row
	codes    []int8           // rows of dims numbers, each to be multiplied with its row's scale
}

// newModel returns a model whose terms have no vectors yet.
func newModel(names []string, dims, passages int, hash []byte) *Model {
	m := &Model{dims: dims, passages: passages, hash: [6]byte(hash), terms: make(map[string]int32, len(names)),
		scales: make([]float32, len(names)), codes: make([]int8, len(names)*dims)}
	for i, name := range names {
		m.terms[name] = int32(i)
	}
	return m
}

// maxCode is the largest number that a code takes; -128 is not used.
const maxCode = 127

// set rounds a term's vector to the byte: what is left out is far below what the
// words of a text differ by.
func (m *Model) set(row int, vector []float64) {
	var largest float64
	for _, v := range vector {
		largest = max(largest, math.Abs(v))
	}
	scale := float32(largest / maxCode)
	if scale == 0 {
		return
	}
	m.scales[row] = scale
	for j, v := range vector {
		m.codes[row*m.dims+j] = int8(math.RoundToEven(v / largest * maxCode))
	}
}

// ModelID names the model, its dimensions and its corpus: two models that give
// different vectors have different ids.
func (m *Model) ModelID() string {
	return fmt.Sprintf("lsa/%d-%d-%s", version, m.dims, hex.EncodeToString(m.hash[:]))
}

// Dimensions is the length of the vectors.
func (m *Model) Dimensions() int { return m.dims }

// Passages is how many passages the model was trained on.
func (m *Model) Passages() int { return m.passages }

// Embed returns the vectors of texts, in their order, as embed.Embedder says, but nil
// in the place of a text that has none: the model knows none of its words.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, s := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = m.Vector(text.Content(s))
	}
	return out, nil
}

// Vector returns the vector of a text with these terms (text.Content), of length 1; nil where the
// model knows none of them. It takes texts of the corpus and any other alike.
func (m *Model) Vector(terms []string) []float32 {
	counts, order := make(map[int32]int, len(terms)), make([]int32, 0, len(terms))
	for _, t := range terms {
		if row, known := m.terms[t]; known {
			if counts[row] == 0 {
				order = append(order, row)
			}
			counts[row]++
		}
	}
	sum := make([]float64, m.dims)
	for _, row := range order {
		weight := repeated(float64(counts[row])) * float64(m.scales[row])
		for j, c := range m.codes[int(row)*m.dims : int(row+1)*m.dims] {
			sum[j] += weight * float64(c)
		}
	}
	var squares float64
	for _, v := range sum {
		squares += v * v
	}
	length := math.Sqrt(squares)
	if length < math.SmallestNonzeroFloat32 {
		return nil
	}
	out := make([]float32, m.dims)
	for j, v := range sum {
		out[j] = float32(v / length)
	}
	return out
}
