package scan

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// MaxDim is the most numbers that a vector may have.
const MaxDim = 1 << 14

const (
	codeMax  = 127           // the largest code; -128 is not used, so that the range is symmetric
	fineBits = 16            // bits of a number below its code
	fineUnit = 1 << fineBits // units of the fixed-point form in one code step
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

// row is one vector v of length one: number i is scale·(codes[i] + fine[i]/65536).
// Beside it stand roundings of it, each with its shadow: codes, the nibbles of the
// vector turned by the index's rotation, and the upper two bits of these.
type row struct {
	scale  float32
	rough  shadow  // of the upper halves of nibbles
	coarse shadow  // of nibbles
	close  shadow  // of codes
	nibble []uint8 // 0..15, one a byte: 2·nibble − 15 is the turned number in half steps
	codes  []int8  // padded with zeros to a multiple of lanes
	fine   []int16
	work   []float64
}

// newRow makes room for a vector of dim numbers.
func newRow(dim int) row {
	n := padded(dim)
	return row{nibble: make([]uint8, n), codes: make([]int8, n), fine: make([]int16, dim), work: make([]float64, n)}
}

func padded(dim int) int { return (dim + lanes - 1) / lanes * lanes }

// nibbleStep is the distance of two nibbles in standard deviations: the one that
// leaves out least of normally distributed numbers in 16 steps.
const nibbleStep = .3352

// set fills the row from a vector of any length above zero. On an error the row
// is as before.
func (r *row) set(vector []float32, by turn) error {
	norm, err := length(vector, len(r.fine))
	if err != nil {
		return err
	}
	scale := float32(largest(vector) / norm / codeMax)
	units := fineUnit / (float64(scale) * norm)
	v := r.work
	for i, x := range vector {
		v[i] = float64(x) / norm
		// The largest number is 127 codes but for the rounding of scale.
		n := int32(min(max(math.RoundToEven(float64(x)*units), -codeMax*fineUnit), codeMax*fineUnit))
		c := (n + fineUnit/2) >> fineBits
		r.codes[i], r.fine[i] = int8(c), int16(n-c<<fineBits)
	}
	clear(v[len(vector):])
	r.scale = scale
	r.close = cast(v, func(i int) float64 { return float64(r.codes[i]) })
	by.apply(v)
	steps := math.Sqrt(float64(len(v))) / nibbleStep // in a length of one
	for i, x := range v {
		r.nibble[i] = uint8(min(max(math.Floor(x*steps)+8, 0), 15))
	}
	r.coarse = cast(v, func(i int) float64 { return float64(2*int(r.nibble[i]) - 15) })
	r.rough = cast(v, func(i int) float64 { return float64(2*int(r.nibble[i]>>2) - 3) })
	return nil
}

// shadow says where a vector v of length one stands to a rounded form c of it. c
// times unit has v as its nearest point in the direction of v: products of a query
// with it estimate those with v without shrinking them. tan is the tangent of the
// angle θ between v and c.
type shadow struct{ unit, tan float32 }

// cast measures the shadow of v on c.
func cast(v []float64, c func(i int) float64) shadow {
	var vc, cc float64
	for i, x := range v {
		vc += x * c(i)
		cc += c(i) * c(i)
	}
	var rest float64
	for i, x := range v {
		d := x - vc/cc*c(i)
		rest += d * d
	}
	return shadow{unit: float32(1 / vc), tan: float32(math.Sqrt(rest*cc) / vc * (1 + 1e-6))}
}

// loss is tan², in units of 1/sumUnit.
func (s shadow) loss() int64 { return int64(s.tan * s.tan * sumUnit) }

// rounding is more than what bounds and scores lose as float32 numbers, several
// times over.
const rounding = 1e-6

// span returns the least and the most that the cosine of v and a query can be,
// where the query's product with unit·c is x, but for slack in the query. Angles
// between three directions cannot exceed the sum of two of them nor fall below
// their difference: with φ the angle between query and c, x is cosφ/cosθ and the
// cosine between cos(φ+θ) and cos(φ−θ).
func (s shadow) span(x, slack float64) (least, most float64) {
	tan := float64(s.tan)
	cosine := 1 / math.Sqrt(1+tan*tan)
	sine := tan * cosine
	low, high := x*cosine-slack-rounding, x*cosine+slack+rounding
	least, most = -1, 1
	if low > -cosine { // otherwise φ+θ may go through the opposite of c
		low = min(low, 1)
		least = cosine*low - sine*math.Sqrt(1-low*low)
	}
	if high < cosine { // otherwise φ may be θ
		high = max(high, -1)
		most = cosine*high + sine*math.Sqrt(1-high*high)
	}
	return least - rounding, most + rounding
}

// reach is what a product has to reach for its row's cosine to be able to reach a
// cosine t ≥ 0. From cos(φ−θ) ≥ t follows φ ≤ θ + arccos t, both at most a right
// angle, so cosφ ≥ cosθ·t − sinθ·√(1−t²), and x ≥ t − tanθ·√(1−t²). The query's
// slack counts 1/cosθ ≤ 1+tanθ times.
type reach struct{ least, tan float32 }

// newReach asks for a cosine of t. share is the part of the worst case, in which what
// rounding left out of the row points straight at the query, that is allowed for.
func newReach(t, slack, share float64) reach {
	t -= rounding
	slack += rounding
	r := reach{least: float32(t - slack), tan: float32(share*math.Sqrt(max(1-t*t, 0)) + slack)}
	if t < 0 { // every row can
		r.least = float32(math.Inf(-1))
	}
	return r
}

const (
	// spread is the number of dimensions from which what rounding leaves out of a
	// turned vector is taken to point anywhere.
	spread = 256
	// deviations is how far the cosine of two directions that have nothing to do with
	// each other is taken to stray from 0, in standard deviations, 1/√(dimensions−1)
	// each. The chance of more is 1 in 10^12.
	deviations = 7
)

// share returns the share of the worst case that is allowed for in turned vectors: all
// of it in few dimensions, and less the more there are.
func (t turn) share() float64 {
	width := len(t.signs[0])
	if width < spread {
		return 1
	}
	return deviations / math.Sqrt(float64(width-1))
}

func (r reach) by(s shadow, x float32) bool { return x >= r.least-s.tan*r.tan }

// addTo adds the vector to sum times times, 1 or -1, in units of 1/unitSum: whole
// numbers, so that what is taken off again leaves nothing, and the order of adding
// does not count.
func (r row) addTo(sum []int64, times int64) {
	by := float64(r.scale) / fineUnit * unitSum
	for i, f := range r.fine {
		sum[i] += times * int64(math.RoundToEven(float64(int32(r.codes[i])<<fineBits+int32(f))*by))
	}
}

// unitSum is fine enough for the sum of any vectors to be as exact as they are, and
// coarse enough for 2^27 of them.
const unitSum = 1 << 36

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

// probe is a query made ready for a scan.
type probe struct {
	vector []float32
	length float64
	// Once the query has length one, its number i is about scale·codes[i], and once
	// it is turned too about turnedScale·turned[i].
	scale, turnedScale float64
	codes              []int16
	turned             []int8
	sum                int32 // of turned
	// At least the Euclidean lengths of what codes and turned leave out.
	slack, turnedSlack float64
	share              float64 // see turn.share

	work []float64
}

// set checks the query and rounds it: for codes to as many bits as a kernel can
// sum up in 32 without overflow, 15 up to 1,000 numbers and fewer above.
func (p *probe) set(query []float32, dim int, by turn) error {
	norm, err := length(query, dim)
	if err != nil {
		return err
	}
	n := padded(dim)
	if len(p.work) != n {
		p.work, p.codes, p.turned = make([]float64, n), make([]int16, n), make([]int8, n)
	}
	p.vector, p.length = query, norm
	v := p.work
	for i, x := range query {
		v[i] = float64(x) / norm
	}
	clear(v[dim:])
	p.scale, p.slack = round(p.codes, v, float64(min(1<<14-1, math.MaxInt32/(codeMax*dim))))
	by.apply(v)
	p.turnedScale, p.turnedSlack = round(p.turned, v, codeMax)
	p.share = by.share()
	p.sum = 0
	for _, c := range p.turned {
		p.sum += int32(c)
	}
	return nil
}

// round sets codes to v in units of scale, the largest to top, and returns scale
// and a bound of the Euclidean length of what is left out.
func round[T int8 | int16](codes []T, v []float64, top float64) (scale, slack float64) {
	var most float64
	for _, x := range v {
		most = max(most, math.Abs(x))
	}
	scale = most / top
	var rest float64
	for i, x := range v {
		c := min(max(math.RoundToEven(x/scale), -top), top)
		codes[i] = T(c)
		rest += (x - c*scale) * (x - c*scale)
	}
	return scale, math.Sqrt(rest) * (1 + 1e-6)
}

// turn is a rotation of vectors, the same for all of an index. It spreads what a
// vector has in few numbers over all of them, so that every vector is rounded
// about equally well in equal steps: turned numbers are nearly normally
// distributed, whatever they were before. Angles stay as they are.
//
// It is two rounds of random signs and of Hadamard transforms, of the largest
// power of two that fits, over the beginning and then the end of the vector.
type turn struct {
	window int
	signs  [2][]float64
}

func newTurn(width int) turn {
	t := turn{window: 1 << (bits.Len(uint(width)) - 1)}
	r := rand.New(rand.NewPCG(1, 2)) // any will do, as long as it is always the same
	for i := range t.signs {
		t.signs[i] = make([]float64, width)
		for j := range t.signs[i] {
			t.signs[i][j] = float64(1 - 2*r.IntN(2))
		}
	}
	return t
}

// apply turns v in place.
func (t turn) apply(v []float64) {
	for _, signs := range t.signs {
		for i, s := range signs {
			v[i] *= s
		}
		hadamard(v[:t.window])
		if t.window < len(v) {
			hadamard(v[len(v)-t.window:])
		}
	}
}

// hadamard multiplies v, whose length is a power of two, with the Hadamard matrix
// scaled to be orthogonal.
func hadamard(v []float64) {
	for h := 1; h < len(v); h *= 2 {
		for i := 0; i < len(v); i += 2 * h {
			a, b := v[i:i+h], v[i+h:i+2*h]
			b = b[:len(a)]
			for j, x := range a {
				a[j], b[j] = x+b[j], x-b[j]
			}
		}
	}
	by := 1 / math.Sqrt(float64(len(v)))
	for i := range v {
		v[i] *= by
	}
}
