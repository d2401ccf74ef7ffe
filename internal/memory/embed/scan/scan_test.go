package scan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// within is how far a score may be from that of float64 numbers: float32 has 24
// bits, and so has the index.
const within = 1e-6

func build(t testing.TB, k kernel, dim int, vectors [][]float32) *Index {
	t.Helper()
	x, err := newIndex(dim, k)
	if err != nil {
		t.Fatal(err)
	}
	err = x.Load(func(put func(int64, []float32) error) error {
		for i, v := range vectors {
			if err := put(int64(i), v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func search(t testing.TB, x *Index, query []float32, k int, keep func(int64) bool) Found {
	t.Helper()
	found, err := x.Search(query, k, keep)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// same fails unless the hits are what the naive loop finds: as many, the same
// scores at each rank, each id with its own score, in the order promised.
func same(t testing.TB, vectors map[int64][]float32, query []float32, got, want []Hit) {
	t.Helper()
	if got == nil || len(got) != len(want) {
		t.Fatalf("got %d hits (%v), want %d", len(got), got, len(want))
	}
	for i, h := range got {
		if math.Abs(h.Score-want[i].Score) > within {
			t.Fatalf("rank %d: score %v, want %v", i, h.Score, want[i].Score)
		}
		if own := naiveCosine(query, vectors[h.ID]); math.Abs(h.Score-own) > within {
			t.Fatalf("rank %d: id %d has the score %v, not %v", i, h.ID, own, h.Score)
		}
		if h.Score < -1 || h.Score > 1 {
			t.Fatalf("rank %d: score %v", i, h.Score)
		}
		if i > 0 && before(got[i-1], h) >= 0 {
			t.Fatalf("ranks %d and %d are out of order: %v, %v", i-1, i, got[i-1], h)
		}
	}
}

// TestKernels is the contract of kernels: the sums of a plain loop, to the bit.
func TestKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	for _, k := range kernels() {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for rows := range 70 {
				pickContract(t, k, r, rows)
			}
			for _, width := range []int{32, 64, 96, 128, 160, 384, 416, 992, 1536, 2016, MaxDim - 32, MaxDim} {
				for _, rows := range []int{0, 1, 2, 3, 5, 16, 33} {
					for _, extreme := range []bool{false, true} {
						dotsContract(t, k, r, rows, width, extreme)
						siftContract(t, k, r, rows, width, extreme)
					}
				}
			}
		})
	}
}

func dotsContract(t *testing.T, k kernel, r *rand.Rand, rows, width int, extreme bool) {
	t.Helper()
	top := min(1<<14-1, math.MaxInt32/(codeMax*width))
	codes, query := make([]int8, rows*width), make([]int16, width)
	for i := range codes {
		codes[i] = int8(r.IntN(2*codeMax+1) - codeMax)
		if extreme {
			codes[i] = int8(codeMax * (1 - 2*(i/width%2)))
		}
	}
	for i := range query {
		query[i] = int16(r.IntN(2*top+1) - top)
		if extreme {
			query[i] = int16(top)
		}
	}
	var some []uint16
	for i := range rows {
		if extreme || r.IntN(3) > 0 {
			some = append(some, uint16(i))
		}
	}
	out := slices.Repeat([]int32{-1}, rows+1) // one more: nothing may be written behind
	k.dots(out, codes, some, query)
	for i, row := range some {
		var want int64
		for j, q := range query {
			want += int64(codes[int(row)*width+j]) * int64(q)
		}
		if int64(out[i]) != want {
			t.Fatalf("dots: width %d, row %d of %d, extreme %v: %d, want %d", width, row, rows, extreme, out[i], want)
		}
	}
	if out[len(some)] != -1 {
		t.Fatalf("dots: width %d, %d rows: wrote behind the last", width, len(some))
	}
}

func siftContract(t *testing.T, k kernel, r *rand.Rand, rows, width int, extreme bool) {
	t.Helper()
	rows = (rows + groupRows - 1) / groupRows * groupRows
	query := make([]int8, width)
	for i := range query {
		query[i] = int8(r.IntN(2*codeMax+1) - codeMax)
		if extreme {
			query[i] = int8(codeMax * (1 - 2*(rows/groupRows%2)))
		}
	}
	high, low := make([]uint8, rows*width/4), make([]uint8, rows*width/4)
	upper, want, back := make([]int32, rows), make([]int32, rows), make([]uint8, width)
	for i := range rows {
		nibble := make([]uint8, width)
		for j := range nibble {
			nibble[j] = uint8(r.IntN(16))
			if extreme {
				nibble[j] = 15
			}
			upper[i] += int32(nibble[j]>>2) * int32(query[j])
			want[i] += int32(nibble[j]) * int32(query[j])
		}
		pack(high, low, i, nibble)
		if unpack(back, high, low, i); !slices.Equal(back, nibble) {
			t.Fatalf("row %d: unpacked %v, want %v", i, back, nibble)
		}
	}
	out := append(make([]int32, rows), -1)
	k.sift(out[:rows], high, query)
	if !slices.Equal(out[:rows], upper) {
		t.Fatalf("sift: width %d, %d rows, extreme %v: %d, want %d", width, rows, extreme, out[:rows], upper)
	}
	k.sift(out[:rows], low, query)
	if !slices.Equal(out[:rows], want) {
		t.Fatalf("sift: width %d, %d rows, extreme %v, lower half: %d, want %d", width, rows, extreme, out[:rows], want)
	}
	if out[rows] != -1 {
		t.Fatalf("sift: width %d, %d rows: wrote behind the last", width, rows)
	}
}

// pickContract: the rows and sums of the definition, in order, nothing behind them.
func pickContract(t *testing.T, k kernel, r *rand.Rand, rows int) {
	t.Helper()
	to := passing{scale: 1e-4, least: .2, tan: .5, shift: int32(r.IntN(200) - 100)}
	if rows%2 == 1 {
		to.least = float32(math.Inf(-1))
	}
	products, shadows := make([]int32, rows), make([]shadow, rows)
	var want []uint16
	var all sums
	for i := range rows {
		products[i], shadows[i] = int32(r.IntN(20000)-10000), shadow{unit: r.Float32(), tan: r.Float32()}
		about := float32(2*products[i]-to.shift) * (to.scale * shadows[i].unit)
		least := to.least - shadows[i].tan*to.tan
		if math.Abs(float64(about-least)) < 1e-5 { // may be rounded to either side
			products[i], about = to.shift/2+9999, float32(2*(to.shift/2+9999)-to.shift)*(to.scale*shadows[i].unit)
		}
		c := int64(about * sumUnit)
		all.first += c
		all.second += c * c
		if about >= least {
			want = append(want, uint16(i))
		}
	}
	got := slices.Repeat([]uint16{9999}, rows+2)
	n, sum := k.pick(got[:rows+1], products, shadows, &to)
	if !slices.Equal(got[:n], want) || sum != all {
		t.Fatalf("pick: %d rows: %v %v, want %v %v", rows, got[:n], sum, want, all)
	}
	if got[rows+1] != 9999 {
		t.Fatalf("pick: %d rows: wrote behind the last", rows)
	}
}

// TestSearchIsTheNaiveLoop is the contract of the index, with every kernel.
func TestSearchIsTheNaiveLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	odd := func(id int64) bool { return id%2 == 1 }
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		data := sets[name]
		for _, dim := range []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 96, 100, 127, 129, 384, 1000, 1536, 2000} {
			r := rand.New(rand.NewPCG(uint64(dim), 7))
			for _, n := range []int{1, 2, 11, 150} {
				vectors := data(r, n+1, dim)
				queries := [][]float32{vectors[0], vectors[n]}
				stored := map[int64][]float32{}
				for i, v := range vectors[:n] {
					stored[int64(i)] = v
				}
				for _, k := range kernels() {
					x := build(t, k, dim, vectors[:n])
					for i, q := range queries {
						all, some := naiveSearch(stored, q, n, nil), naiveSearch(stored, q, n, odd)
						t.Run(fmt.Sprintf("%s/%s %d×%d/query %d", k.name, name, n, dim, i), func(t *testing.T) {
							for _, top := range []int{1, 10, n, n + 5} {
								want := all[:min(top, len(all))]
								got := search(t, x, q, top, nil).Hits
								same(t, stored, q, got, want)
								if slices.Contains(exactTies, name) && !sameIDs(got, want) {
									t.Fatalf("top %d: %v, want %v", top, got, want)
								}
								same(t, stored, q, search(t, x, q, top, odd).Hits, some[:min(top, len(some))])
							}
						})
					}
				}
			}
		}
	}
}

func sameIDs(a, b []Hit) bool {
	return slices.EqualFunc(a, b, func(x, y Hit) bool { return x.ID == y.ID })
}

// TestKernelsAgree: not one bit of a result depends on the kernel, on the order
// in which vectors came, or on how many cores there are.
func TestKernelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	vectors := sets["spectrum"](r, 5*blockRows+77, 100)
	query := vectors[len(vectors)-1]
	first := search(t, build(t, kernels()[0], 100, vectors), query, 25, nil)
	first.rescored = 0
	for _, k := range kernels() {
		x, err := newIndex(100, k)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range r.Perm(len(vectors)) {
			if err := x.Set(int64(i), vectors[i]); err != nil {
				t.Fatal(err)
			}
		}
		got := search(t, x, query, 25, nil)
		got.rescored = 0
		if !slices.Equal(got.Hits, first.Hits) || got.Mean != first.Mean || got.Std != first.Std {
			t.Errorf("%s: %+v, want %+v", k.name, got, first)
		}
	}
}

// TestRecall counts strictly, by id, against float64 on larger sets.
func TestRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing in it runs at the same time, and it is long")
	}
	for _, tc := range []struct {
		set    string
		n, dim int
	}{{"random", 10_000, 384}, {"clustered", 10_000, 384}, {"spectrum", 10_000, 96}, {"spectrum", 10_000, 384}} {
		t.Run(fmt.Sprintf("%s %d×%d", tc.set, tc.n, tc.dim), func(t *testing.T) {
			const queries = 20
			r := rand.New(rand.NewPCG(5, 6))
			vectors := sets[tc.set](r, tc.n+queries, tc.dim)
			stored := map[int64][]float32{}
			for i, v := range vectors[:tc.n] {
				stored[int64(i)] = v
			}
			x := build(t, kernels()[0], tc.dim, vectors[:tc.n])
			hit, all, rescored := 0, 0, 0
			for _, q := range vectors[tc.n:] {
				want := naiveSearch(stored, q, 10, nil)
				found := search(t, x, q, 10, nil)
				same(t, stored, q, found.Hits, want)
				rescored += found.rescored
				for _, h := range want {
					all++
					if slices.ContainsFunc(found.Hits, func(g Hit) bool { return g.ID == h.ID }) {
						hit++
					}
				}
			}
			t.Logf("recall@10 %d/%d, %d of %d vectors rescored a query", hit, all, rescored/queries, tc.n)
			if recall := float64(hit) / float64(all); recall < .999 {
				t.Errorf("recall@10 = %v, want at least .999", recall)
			}
			if rescored/queries > tc.n/10 {
				t.Errorf("%d of %d vectors were rescored: the codes rule out too little", rescored/queries, tc.n)
			}
		})
	}
}

// TestManyDimensions: where rounding is taken not to be the worst case, nothing of
// any data is missed all the same.
func TestManyDimensions(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 31))
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		data := sets[name]
		for _, dim := range []int{256, 384, 1000} {
			vectors := data(r, 2*blockRows+100, dim)
			x := build(t, kernels()[0], dim, vectors)
			queries := append(data(r, 5, dim), vectors[:5]...)
			queries = append(queries, gaussian(r, 5, dim)...)
			all := map[int64][]float32{}
			for i, v := range vectors {
				all[int64(i)] = v
			}
			for _, q := range queries {
				t.Run(fmt.Sprintf("%s-%d", name, dim), func(t *testing.T) {
					same(t, all, q, search(t, x, q, 10, nil).Hits, naiveSearch(all, q, 10, nil))
				})
			}
		}
	}
}

func TestMeanAndStd(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		data := sets[name]
		for _, dim := range []int{48, 384} {
			meanAndStd(t, name, dim, data(rand.New(rand.NewPCG(8, 9)), 3000, dim))
		}
	}
}

func meanAndStd(t *testing.T, name string, dim int, vectors [][]float32) {
	t.Helper()
	x := build(t, kernels()[0], dim, vectors)
	for _, q := range vectors[:3] {
		var first, second float64
		for _, v := range vectors {
			c := naiveCosine(q, v)
			first += c
			second += c * c
		}
		mean := first / float64(len(vectors))
		std := math.Sqrt(max(0, second/float64(len(vectors))-mean*mean))
		none := func(int64) bool { return false }
		if f := search(t, x, q, 1, none); len(f.Hits) != 0 || math.Abs(f.Mean-mean) > 1e-6 || math.Abs(f.Std-std) > 2e-2 {
			// In a set of few directions one vector's error is that of all.
			t.Errorf("%s, %d: mean %v, std %v, %d hits, want %v, %v, 0", name, dim, f.Mean, f.Std, len(f.Hits), mean, std)
		}
	}
}

// TestModel changes an index and a map in the same way, and asks both.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 70).Draw(t, "dim")
		all := kernels()
		x, err := newIndex(dim, all[rapid.IntRange(0, len(all)-1).Draw(t, "kernel")])
		if err != nil {
			t.Fatal(err)
		}
		model := map[int64][]float32{}
		number := rapid.SampledFrom([]float32{-2, -1, -.5, 0, .25, 1, 3, 1000})
		vector := rapid.SliceOfN(number, dim, dim)
		id := rapid.Int64Range(-4, 30)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, v := id.Draw(t, "id"), vector.Draw(t, "vector")
				err := x.Set(i, v)
				if zero := !slices.ContainsFunc(v, func(f float32) bool { return f != 0 }); zero != (err != nil) {
					t.Fatalf("Set(%v) = %v", v, err)
				}
				if err == nil {
					model[i] = slices.Clone(v)
					v[0] = 99 // the index must not have kept it
				}
			},
			"delete": func(t *rapid.T) {
				i := id.Draw(t, "id")
				_, want := model[i]
				if got := x.Delete(i); got != want {
					t.Fatalf("Delete(%d) = %v, want %v", i, got, want)
				}
				delete(model, i)
			},
			"": func(t *rapid.T) {
				if x.Len() != len(model) {
					t.Fatalf("Len() = %d, want %d", x.Len(), len(model))
				}
				q := vector.Filter(func(v []float32) bool { return Check(v, dim) == nil }).Draw(t, "query")
				k := rapid.IntRange(1, 12).Draw(t, "k")
				found, err := x.Search(q, k, nil)
				if err != nil {
					t.Fatal(err)
				}
				if want := naiveSearch(model, q, k, nil); len(found.Hits) != len(want) {
					t.Fatalf("%v, want %v", found.Hits, want)
				} else {
					for i, h := range found.Hits {
						if math.Abs(h.Score-want[i].Score) > within || math.Abs(h.Score-naiveCosine(q, model[h.ID])) > within {
							t.Fatalf("%v, want %v", found.Hits, want)
						}
					}
				}
				var mean float64
				for _, v := range model {
					mean += naiveCosine(q, v) / float64(len(model))
				}
				if math.Abs(found.Mean-mean) > within {
					t.Fatalf("mean %v, want %v", found.Mean, mean)
				}
				ids := []int64{30, -4, 5, 99, 5}
				scores, err := x.Scores(q, ids)
				if err != nil {
					t.Fatal(err)
				}
				var want []int64
				for _, i := range ids {
					if _, known := model[i]; known {
						want = append(want, i)
					}
				}
				var got []int64
				for _, h := range scores {
					got = append(got, h.ID)
					if math.Abs(h.Score-naiveCosine(q, model[h.ID])) > within {
						t.Fatalf("Scores: %v", h)
					}
				}
				if !slices.Equal(got, want) || scores == nil {
					t.Fatalf("Scores gave ids %v, want %v", got, want)
				}
				for i, v := range model {
					got, known := x.Vector(i)
					if !known || naiveCosine(got, v) < 1-within || math.Abs(naiveCosine(got, got)-1) > within {
						t.Fatalf("Vector(%d) = %v, want the direction of %v", i, got, v)
					}
				}
			},
		})
	})
}

// TestBlocks crosses the borders of blocks by deleting and storing again.
func TestBlocks(t *testing.T) {
	const n, dim = 2*blockRows + 3, 5
	r := rand.New(rand.NewPCG(10, 11))
	vectors := gaussian(r, n, dim)
	x := build(t, kernels()[0], dim, vectors)
	stored := map[int64][]float32{}
	for i, v := range vectors {
		stored[int64(i)] = v
	}
	check := func() {
		t.Helper()
		if x.Len() != len(stored) {
			t.Fatalf("Len() = %d, want %d", x.Len(), len(stored))
		}
		q := gaussian(r, 1, dim)[0]
		same(t, stored, q, search(t, x, q, 40, nil).Hits, naiveSearch(stored, q, 40, nil))
	}
	for round := range 3 {
		for step, i := range r.Perm(n) {
			if !x.Delete(int64(i)) || x.Delete(int64(i)) {
				t.Fatalf("id %d cannot be deleted exactly once", i)
			}
			if delete(stored, int64(i)); step%500 == round {
				check()
			}
		}
		if x.Len() != 0 || x.Bytes() != 0 {
			t.Fatalf("an empty index has %d vectors, %d bytes", x.Len(), x.Bytes())
		}
		if f := search(t, x, vectors[0], 3, nil); f.Hits == nil || len(f.Hits) != 0 || f.Mean != 0 || f.Std != 0 {
			t.Fatalf("an empty index found %+v", f)
		}
		for _, i := range r.Perm(n) {
			stored[int64(i)] = vectors[i]
			if err := x.Set(int64(i), vectors[i]); err != nil {
				t.Fatal(err)
			}
		}
		check()
	}
}

func TestRefusals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	x := build(t, kernels()[0], 3, [][]float32{{1, 2, 3}})
	for name, tc := range map[string]struct {
		vector []float32
		want   string
	}{
		"none":     {nil, "vector has 0 numbers instead of 3"},
		"short":    {[]float32{1, 2}, "vector has 2 numbers instead of 3"},
		"long":     {[]float32{1, 2, 3, 4}, "vector has 4 numbers instead of 3"},
		"NaN":      {[]float32{1, nan, 3}, "vector has NaN at position 1"},
		"infinite": {[]float32{1, 2, inf}, "vector has -Inf at position 2"},
		"zero":     {[]float32{0, 0, 0}, "vector has no direction: every number is zero"},
	} {
		t.Run(name, func(t *testing.T) {
			_, search := x.Search(tc.vector, 1, nil)
			_, scores := x.Scores(tc.vector, nil)
			load := x.Load(func(put func(int64, []float32) error) error {
				if err := put(8, []float32{4, 5, 6}); err != nil {
					return err
				}
				return put(9, tc.vector)
			})
			if want := "vector 9: " + tc.want; load == nil || load.Error() != want {
				t.Errorf("Load: %v, want %s", load, want)
			}
			for _, err := range []error{x.Set(0, tc.vector), x.Set(7, tc.vector), search, scores, Check(tc.vector, 3), errors.Unwrap(load)} {
				var field *memory.FieldError
				if err == nil || err.Error() != tc.want || memory.KindOf(err) != memory.ErrInvalid || !errors.As(err, &field) || field.Hint == "" {
					t.Errorf("%v, want %s", err, tc.want)
				}
			}
			if v, _ := x.Vector(0); x.Len() != 1 || naiveCosine(v, []float32{1, 2, 3}) < 1-within {
				t.Errorf("a refused vector changed the index: %d vectors, %v", x.Len(), v)
			}
		})
	}
	for _, k := range []int{0, -1} {
		if _, err := x.Search([]float32{1, 2, 3}, k, nil); memory.FieldOf(err) != "k" {
			t.Errorf("Search of the best %d: %v", k, err)
		}
	}
	for _, dim := range []int{0, -1, MaxDim + 1} {
		if _, err := New(dim); memory.KindOf(err) != memory.ErrInvalid || memory.FieldOf(err) != "dimensions" {
			t.Errorf("New(%d): %v", dim, err)
		}
	}
	broken := errors.New("disk gone")
	if err := x.Load(func(func(int64, []float32) error) error { return broken }); !errors.Is(err, broken) || x.Len() != 1 {
		t.Errorf("Load = %v, %d vectors; want the caller's error and no change", err, x.Len())
	}
}

func TestLoadReplaces(t *testing.T) {
	x := build(t, kernels()[0], 2, [][]float32{{1, 0}, {0, 1}, {1, 1}})
	reused := make([]float32, 2)
	err := x.Load(func(put func(int64, []float32) error) error {
		for i, v := range [][]float32{{3, 4}, {-1, 0}, {0, 2}} {
			copy(reused, v)
			if err := put(int64(i/2)+10, reused); err != nil { // ids 10, 10, 11: the second 10 stays
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := search(t, x, []float32{-1, .5}, 9, nil).Hits
	stored := map[int64][]float32{10: {-1, 0}, 11: {0, 2}}
	same(t, stored, []float32{-1, .5}, got, naiveSearch(stored, []float32{-1, .5}, 9, nil))
	if _, known := x.Vector(0); known {
		t.Error("a vector from before Load is still there")
	}
}

func TestSizeAndHealth(t *testing.T) {
	x, err := New(384)
	if err != nil {
		t.Fatal(err)
	}
	if x.Kernel() != kernels()[0].name || x.Dim() != 384 || x.Slow() {
		t.Errorf("kernel %q, %d numbers, slow %v", x.Kernel(), x.Dim(), x.Slow())
	}
	for _, tc := range []struct {
		dim, fast int
	}{{384, 1_000_000}, {96, 4_000_000}, {1536, 250_000}} {
		fast := &Index{dim: tc.dim, kernel: kernel{fast: true}}
		plain := &Index{dim: tc.dim}
		if got := fast.slowAbove(); got != tc.fast {
			t.Errorf("%d numbers: slow above %d vectors, want %d", tc.dim, got, tc.fast)
		}
		if got := plain.slowAbove(); got != tc.fast/8 {
			t.Errorf("%d numbers in plain Go: slow above %d vectors, want %d", tc.dim, got, tc.fast/8)
		}
	}
	const n, dim = 3 * blockRows, 384
	x = build(t, kernels()[0], dim, gaussian(rand.New(rand.NewPCG(1, 1)), n, dim))
	if got, want := x.Bytes(), int64(n*(3*dim+dim/2+36)); got != want {
		t.Errorf("%d vectors take %d bytes, want %d", n, got, want)
	}
}

// TestSharedWhileWritten has searches run beside a writer that turns vectors
// round, deletes and restores them. Each vector has one of two directions, so a
// torn one would show.
func TestSharedWhileWritten(t *testing.T) {
	const n, dim = 2 * blockRows, 40
	r := rand.New(rand.NewPCG(12, 13))
	vectors := gaussian(r, n, dim)
	x := build(t, kernels()[0], dim, vectors)
	var readers sync.WaitGroup
	for start := range 4 {
		readers.Go(func() {
			for i := start; i < n; i += 10 {
				found, err := x.Search(vectors[i], 5, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for _, h := range found.Hits {
					if want := naiveCosine(vectors[i], vectors[h.ID]); math.Abs(math.Abs(h.Score)-math.Abs(want)) > within {
						t.Errorf("id %d has the score %v, want ±%v", h.ID, h.Score, want)
						return
					}
				}
				scores, err := x.Scores(vectors[i], []int64{int64(i)})
				if err != nil || len(scores) == 1 && math.Abs(scores[0].Score) < 1-within {
					t.Errorf("Scores = %v, %v: not the vector itself nor its opposite", scores, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		readers.Wait()
		close(done)
	}()
	for round := 0; ; round++ {
		select {
		case <-done:
			return
		default:
		}
		i := r.IntN(n)
		if round%3 == 0 {
			x.Delete(int64(i))
			continue
		}
		v := slices.Clone(vectors[i])
		if round%2 == 0 {
			for j := range v {
				v[j] = -v[j]
			}
		}
		if err := x.Set(int64(i), v); err != nil {
			t.Error(err)
		}
	}
}

func TestBlobs(t *testing.T) {
	v := []float32{1, -2, .5, 0}
	blob := AppendFloats([]byte("x"), v)
	if want := "x\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f\x00\x00\x00\x00"; string(blob) != want {
		t.Errorf("AppendFloats = %q, want %q", blob, want)
	}
	got, err := Floats(make([]float32, 9), blob[1:])
	if err != nil || !slices.Equal(got, v) {
		t.Errorf("Floats = %v, %v", got, err)
	}
	short, err := AppendCode([]byte("y"), []float32{3, -4, 0})
	if want := "y\xa0\x69\xce\x3b\x5f\x81\x00"; err != nil || string(short) != want {
		t.Errorf("AppendCode = %q, %v, want %q", short, err, want)
	}
	back, err := Code(nil, short[1:])
	if err != nil || len(back) != 3 || math.Abs(naiveCosine(back, []float32{3, -4, 0})-1) > 1e-4 {
		t.Errorf("Code = %v, %v", back, err)
	}
	if same, err := AppendCode([]byte("z"), []float32{0}); memory.KindOf(err) != memory.ErrInvalid || string(same) != "z" {
		t.Errorf("AppendCode of a zero vector = %q, %v", same, err)
	}
	for blob, want := range map[string]string{
		"":                                 "has 0 bytes",
		"abc":                              "has 3 bytes",
		"\x00\x00\xc0\x7f":                 "has NaN at position 0",
		"\x00\x00\x00\x00\x00\x00\x80\x7f": "has +Inf at position 1",
	} {
		if _, err := Floats(nil, []byte(blob)); memory.KindOf(err) != memory.ErrCorrupt || !strings.Contains(err.Error(), want) {
			t.Errorf("Floats(%q): %v, want %s", blob, err, want)
		}
	}
	for blob, want := range map[string]string{
		"":                         "has 0 bytes",
		"\xa0\x69\xce\x3b":         "has 4 bytes",
		"\x00\x00\xc0\x7f\x7f":     "the scale NaN",
		"\x00\x00\x00\x00\x7f":     "the scale 0",
		"\x00\x00\x80\xbf\x7f":     "the scale -1",
		"\xa0\x69\xce\x3b\x7f\x80": "-128 at position 1",
		"\xa0\x69\xce\x3b\x7e\x00": "does not use its scale",
	} {
		if _, err := Code(nil, []byte(blob)); memory.KindOf(err) != memory.ErrCorrupt || !strings.Contains(err.Error(), want) {
			t.Errorf("Code(%q): %v, want %s", blob, err, want)
		}
	}
}

// FuzzBlobs: whatever stands in a blob, reading it gives an error or a vector
// that is written back to the same bytes.
func FuzzBlobs(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendFloats(nil, []float32{1, -2, .5}))
	f.Add([]byte("\xa0\x69\xce\x3b\x5f\x81\x00"))
	f.Add([]byte("\x00\x00\xc0\x7f\x7f\x80\x00\x01"))
	f.Fuzz(func(t *testing.T, blob []byte) {
		if v, err := Floats(nil, blob); err != nil {
			if memory.KindOf(err) != memory.ErrCorrupt {
				t.Fatalf("%v is no damage", err)
			}
		} else if again := AppendFloats(nil, v); !slices.Equal(again, blob) {
			t.Fatalf("%x became %x", blob, again)
		}
		v, err := Code(nil, blob)
		if err != nil {
			if memory.KindOf(err) != memory.ErrCorrupt {
				t.Fatalf("%v is no damage", err)
			}
			return
		}
		// The scale of a foreign blob need not make the length one; the codes stay.
		if again, err := AppendCode(nil, v); err != nil || !slices.Equal(again[4:], blob[4:]) {
			t.Fatalf("%x became %x, %v", blob, again, err)
		}
	})
}
