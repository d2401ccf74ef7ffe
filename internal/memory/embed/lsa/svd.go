package lsa

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// sparse is a matrix by rows: row i has the values at[start[i]:start[i+1]] in the
// columns col[start[i]:start[i+1]].
type sparse struct {
	cols  int
	start []int
	col   []uint32
	at    []float32
}

func (a *sparse) rows() int { return len(a.start) - 1 }

// transpose returns a with rows and columns changed over. Columns of a row are in order.
func (a *sparse) transpose() *sparse {
	t := &sparse{cols: a.rows(), start: make([]int, a.cols+1), col: make([]uint32, len(a.col)), at: make([]float32, len(a.at))}
	for _, c := range a.col {
		t.start[c+1]++
	}
	for i := range a.cols {
		t.start[i+1] += t.start[i]
	}
	next := append([]int(nil), t.start[:a.cols]...)
	for r := range a.rows() {
		for i := a.start[r]; i < a.start[r+1]; i++ {
			c := a.col[i]
			t.col[next[c]], t.at[next[c]] = uint32(r), a.at[i]
			next[c]++
		}
	}
	return t
}

// times returns a·x. Each row is summed by one goroutine in one order, so that
// the result does not depend on how many there are.
func (a *sparse) times(x *mat.Dense) *mat.Dense {
	_, width := x.Dims()
	out := mat.NewDense(a.rows(), width, nil)
	from, to := x.RawMatrix(), out.RawMatrix()
	workers := runtime.GOMAXPROCS(0)
	const block = 256 // rows that a worker takes at a time
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for first := w * block; first < a.rows(); first += workers * block {
				for r := first; r < min(first+block, a.rows()); r++ {
					sum := to.Data[r*to.Stride : r*to.Stride+width]
					for i := a.start[r]; i < a.start[r+1]; i++ {
						c := int(a.col[i]) * from.Stride
						floats.AddScaled(sum, float64(a.at[i]), from.Data[c:c+width])
					}
				}
			}
		})
	}
	wg.Wait()
	return out
}

// negligible is the share of the largest eigenvalue below which a direction is
// taken for rounding.
const negligible = 1e-12

// orthonormal returns a basis of what the columns of y span, with fewer columns
// where some depend on others; nil where y is zero. One pass leaves an error that grows with the square
// of the condition of y; the second takes it away.
func orthonormal(y *mat.Dense) *mat.Dense {
	if y = orthonormalOnce(y); y == nil {
		return nil
	}
	return orthonormalOnce(y)
}

// orthonormalOnce multiplies y by W·Λ^-½ of its Gram matrix W·Λ·Wᵀ. Unlike a
// Cholesky factor this exists whatever the rank, and unlike a QR decomposition it
// needs no more memory than y.
func orthonormalOnce(y *mat.Dense) *mat.Dense {
	values, vectors := gramEigen(y)
	keep := countAbove(values)
	if keep == 0 {
		return nil
	}
	out := &mat.Dense{}
	out.Mul(y, scaledColumns(vectors, keep, func(i int) float64 { return 1 / math.Sqrt(values[i]) }))
	return out
}

// gramOf returns yᵀ·y, summed up in parts of a fixed size, whatever computes them.
func gramOf(y *mat.Dense) *mat.SymDense {
	rows, width := y.Dims()
	const part = 8192 // rows
	parts := make([]*mat.SymDense, (rows+part-1)/part)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			parts[i] = mat.NewSymDense(width, nil)
			parts[i].SymOuterK(1, y.Slice(i*part, min(rows, (i+1)*part), 0, width).T())
		})
	}
	wg.Wait()
	for _, p := range parts[1:] {
		parts[0].AddSym(parts[0], p)
	}
	return parts[0]
}

// gramEigen returns the eigenvalues of yᵀ·y, largest first, and their vectors as
// columns.
func gramEigen(y *mat.Dense) ([]float64, *mat.Dense) {
	_, width := y.Dims()
	gram := gramOf(y)
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, true) {
		return make([]float64, width), mat.NewDense(width, width, nil)
	}
	ascending := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values, out := make([]float64, width), mat.NewDense(width, width, nil)
	for i := range width {
		values[i] = max(0, ascending[width-1-i])
		for r := range width {
			out.Set(r, i, vectors.At(r, width-1-i))
		}
	}
	return values, out
}

// scaledColumns returns the first n columns of m, each times its scale.
func scaledColumns(m *mat.Dense, n int, scale func(int) float64) *mat.Dense {
	rows, _ := m.Dims()
	out := mat.NewDense(rows, n, nil)
	for i := range n {
		s := scale(i)
		for r := range rows {
			out.Set(r, i, s*m.At(r, i))
		}
	}
	return out
}

const (
	oversampling = 10 // columns beyond those wanted
	iterations   = 3  // of the power method
	seed         = 0x6c7361
)

// product is a matrix given by its factors, first to last, and its transpose likewise.
type product struct {
	rows, cols      int
	factors, across []*sparse
}

func newProduct(factors ...*sparse) product {
	p := product{rows: factors[0].rows(), cols: factors[len(factors)-1].cols, factors: factors}
	for _, f := range slices.Backward(factors) {
		p.across = append(p.across, f.transpose())
	}
	return p
}

// chain returns the product of the factors and x.
func chain(factors []*sparse, x *mat.Dense) *mat.Dense {
	for _, f := range slices.Backward(factors) {
		x = f.times(x)
	}
	return x
}

// rightVectors returns the right singular vectors of a with the largest singular
// values, at most rank of them, as columns, and these values: the randomised
// method of Halko, Martinsson and Tropp (SIAM Review 53, 2011, algorithms 4.4 and
// 5.1). Both are nil where a is zero.
func rightVectors(ctx context.Context, a product, rank int) (*mat.Dense, []float64, error) {
	if a.rows == 0 || a.cols == 0 || rank < 1 {
		return nil, nil, nil
	}
	random := rand.New(rand.NewPCG(seed, seed))
	start := mat.NewDense(a.cols, min(rank+oversampling, a.rows, a.cols), nil)
	for i := range start.RawMatrix().Data {
		start.RawMatrix().Data[i] = 2*random.Float64() - 1
	}
	basis := orthonormal(chain(a.factors, start))
	for range iterations {
		if basis == nil || ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if basis = orthonormal(chain(a.across, basis)); basis != nil {
			basis = orthonormal(chain(a.factors, basis))
		}
	}
	if basis == nil {
		return nil, nil, ctx.Err()
	}
	seen := chain(a.across, basis) // what of aᵀ the basis sees
	values, turn := gramEigen(seen)
	keep := min(rank, countAbove(values))
	if keep == 0 {
		return nil, nil, ctx.Err()
	}
	vectors := &mat.Dense{}
	vectors.Mul(seen, scaledColumns(turn, keep, func(i int) float64 { return 1 / math.Sqrt(values[i]) }))
	for i := range keep {
		values[i] = math.Sqrt(values[i])
	}
	return vectors, values[:keep], ctx.Err()
}

// countAbove returns how many of the values, largest first, are not negligible.
func countAbove(values []float64) int {
	n := 0
	for n < len(values) && values[n] > values[0]*negligible {
		n++
	}
	return n
}
