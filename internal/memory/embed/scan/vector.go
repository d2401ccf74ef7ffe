package scan

import (
	"fmt"
	"math"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// MaxDim is the most numbers that a vector may have.
const MaxDim = 1 << 14

const (
	codeMax  = 127           // the largest code; -128 is not used, so that the range is symmetric
	fineBits = 16            // bits of a number below its code
	fineUnit = 1 << fineBits // units of the fixed-point form in one code step
	queryMax = 16256         // 127·128: halves of 7 bits each fit int8, see kernel.c
	lanes    = 32            // rows are padded with zeros to a multiple of this
)

// Check returns an error of the kind memory.ErrInvalid unless the vector has dim
// numbers, all of them finite, and a length above zero. It is what an embedder's
// reply has to pass before any of it is stored.
func Check(vector []float32, dim int) error {
	_, err := length(vector, dim)
	return err
}

// length checks the vector and returns its Euclidean length.
func length(vector []float32, dim int) (float64, error) {
	if len(vector) != dim {
		return 0, &memory.FieldError{Field: "vector", Reason: fmt.Sprintf("has %d numbers instead of %d", len(vector), dim),
			Hint: "vectors of two models are never compared: embed it with the model of this index"}
	}
	var sum float64
	for i, v := range vector {
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, &memory.FieldError{Field: "vector", Reason: fmt.Sprintf("has %v at position %d", f, i),
				Hint: "embed the text again"}
		}
		sum += f * f
	}
	if sum == 0 {
		return 0, &memory.FieldError{Field: "vector", Reason: "has no direction: every number is zero",
			Hint: "text without a known word has no vector; leave it to the search by words"}
	}
	return math.Sqrt(sum), nil
}

// largest returns the largest absolute value.
func largest(vector []float32) float64 {
	var m float32
	for _, v := range vector {
		m = max(m, v, -v)
	}
	return float64(m)
}

// row is one vector of length one: number i is scale·(codes[i] + fine[i]/65536).
type row struct {
	scale float32
	slack float32 // at least the Euclidean length of what the codes alone leave out
	codes []int8  // padded with zeros to a multiple of lanes
	fine  []int16
}

// newRow makes room for a vector of dim numbers.
func newRow(dim int) row {
	return row{codes: make([]int8, padded(dim)), fine: make([]int16, dim)}
}

func padded(dim int) int { return (dim + lanes - 1) / lanes * lanes }

// set fills the row from a vector of any length above zero. On an error the row
// is as before.
func (r *row) set(vector []float32) error {
	norm, err := length(vector, len(r.fine))
	if err != nil {
		return err
	}
	scale := float32(largest(vector) / norm / codeMax)
	units := fineUnit / (float64(scale) * norm)
	var rest float64
	for i, v := range vector {
		// The largest number is 127 codes but for the rounding of scale.
		n := int32(min(max(math.RoundToEven(float64(v)*units), -codeMax*fineUnit), codeMax*fineUnit))
		c := (n + fineUnit/2) >> fineBits
		f := n - c<<fineBits
		r.codes[i], r.fine[i] = int8(c), int16(f)
		rest += float64(f) * float64(f)
	}
	r.scale = scale
	r.slack = float32(math.Sqrt(rest) * float64(scale) / fineUnit * (1 + 1e-6))
	return nil
}

// vector returns the numbers of the row.
func (r row) vector() []float32 {
	out := make([]float32, len(r.fine))
	for i, f := range r.fine {
		out[i] = float32(float64(int32(r.codes[i])<<fineBits+int32(f)) * float64(r.scale) / fineUnit)
	}
	return out
}

// cosine returns the cosine of the row's vector and a query of the given length.
// Each product of a float32 and a 24-bit number is exact in float64 and the order
// of the sum is fixed, so every machine gets the same bits, fused or not.
func (r row) cosine(query []float32, length float64) float64 {
	codes, fine := r.codes[:len(query)], r.fine[:len(query)]
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(query); i += 4 {
		q, x, f := query[i:i+4:i+4], codes[i:i+4:i+4], fine[i:i+4:i+4]
		a += float64(q[0]) * float64(int32(x[0])<<fineBits+int32(f[0]))
		b += float64(q[1]) * float64(int32(x[1])<<fineBits+int32(f[1]))
		c += float64(q[2]) * float64(int32(x[2])<<fineBits+int32(f[2]))
		d += float64(q[3]) * float64(int32(x[3])<<fineBits+int32(f[3]))
	}
	for ; i < len(query); i++ {
		a += float64(query[i]) * float64(int32(codes[i])<<fineBits+int32(fine[i]))
	}
	cos := (a + b + c + d) / length * (float64(r.scale) / fineUnit)
	return clamp(cos)
}

// clamp brings a cosine that rounding took out of its range back into it.
func clamp(cosine float64) float64 { return min(max(cosine, -1), 1) }

// probe is a query made ready for a scan: its number i is about scale·codes[i]
// once it has length one.
type probe struct {
	vector []float32
	length float64
	scale  float64
	slack  float64 // at least the Euclidean length of what the codes leave out
	codes  []int16 // padded with zeros to a multiple of lanes
}

// newProbe checks the query and rounds it to as many bits as a kernel can sum
// up in 32 without overflow: 15 up to 1,000 numbers, fewer above.
func newProbe(query []float32, dim int) (probe, error) {
	norm, err := length(query, dim)
	if err != nil {
		return probe{}, err
	}
	top := float64(min(queryMax, math.MaxInt32/(codeMax*dim)))
	p := probe{vector: query, length: norm, scale: largest(query) / norm / top, codes: make([]int16, padded(dim))}
	var rest float64
	for i, v := range query {
		x := float64(v) / norm
		c := min(max(math.RoundToEven(x/p.scale), -top), top)
		p.codes[i] = int16(c)
		rest += (x - c*p.scale) * (x - c*p.scale)
	}
	p.slack = math.Sqrt(rest) * (1 + 1e-6)
	return p, nil
}

// bound returns by how much the cosine of a row can differ from the product of
// the codes. With v = c + e the row and q = d + f the query, each split in what
// its codes say and what they leave out, v·q − c·d = e·d + f·v, which is at most
// |e||d| + |f||v|. |v| and |q| are one but for rounding, |d| ≤ |q| + |f|.
func (p probe) bound(slack float32) float64 {
	return (float64(slack)*(1+p.slack)+p.slack)*(1+1e-4) + 1e-9
}
