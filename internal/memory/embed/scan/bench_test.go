//go:build linux || darwin

package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// made makes n vectors, as an embedder gives them, the index of them, and queries.
func made(b *testing.B, set string, n, dim int) ([][]float32, *Index, [][]float32) {
	b.Helper()
	r := rand.New(rand.NewPCG(20, 21))
	data := sets[set](r, n+8, dim)
	return data[:n], build(b, kernels()[0], dim, data[:n]), data[n:]
}

// naive is the search that all this is compared with, as one would first write it
// for vectors in memory: the cosine of the query and every vector in float32
// numbers, all three sums anew for each, and a heap of the ten best.
func naive(vectors [][]float32, query []float32, k int) []Hit {
	best := ranking{k: k, hits: make([]Hit, 0, k)}
	for i, v := range vectors {
		best.add(Hit{ID: int64(i), Score: cosine32(query, v)})
	}
	return best.sorted()
}

func cosine32(a, b []float32) float64 {
	var dot, aa, bb float32
	for i := range a {
		dot += a[i] * b[i]
		aa += a[i] * a[i]
		bb += b[i] * b[i]
	}
	return float64(dot) / (math.Sqrt(float64(aa)) * math.Sqrt(float64(bb)))
}

// dotted is the same for vectors that were scaled to length one before and stand
// beside each other: one sum for each.
func dotted(all, query []float32, k int) []Hit {
	dim := len(query)
	best := ranking{k: k, hits: make([]Hit, 0, k)}
	for i := 0; i*dim < len(all); i++ {
		row := all[i*dim : (i+1)*dim]
		var dot float32
		for j, q := range query {
			dot += q * row[j]
		}
		best.add(Hit{ID: int64(i), Score: float64(dot)})
	}
	return best.sorted()
}

// piece is how many vectors the naive loop is timed at a time. On a machine that is
// busy otherwise a long run is never left alone; pieces that take no longer than a
// search are, so the sum of the least times of all is fair to both.
const piece = 2000

// pieces times do for each piece of n vectors.
func pieces(b *testing.B, watches []stopwatch, n int, do func(from, to int)) {
	b.Helper()
	for i := range watches {
		watches[i].measure(b, func() { do(i*piece, min((i+1)*piece, n)) })
	}
}

// sum adds up what the pieces took.
func sum(watches []stopwatch) (total stopwatch) {
	for _, w := range watches {
		total.rounds = w.rounds
		total.least += w.least
		total.processor += w.processor
	}
	return total
}

// BenchmarkSearch gives the time of a search for the ten nearest vectors, and how
// many times faster it is than the naive loop, each query done by both in turn, and
// than the loop over vectors made ready for it: by the clock, and in processor time
// of all cores. By the clock it is the least of all rounds, which on a machine that
// others use too is nearest to what the work takes; with -cpu 1 that is the work of
// one core. Processor time is the mean, as its clock can be coarser than a search.
func BenchmarkSearch(b *testing.B) {
	for _, tc := range []struct {
		set    string
		n, dim int
	}{
		{"clustered", 10_000, 384}, {"clustered", 100_000, 384}, {"random", 100_000, 384}, {"spectrum", 100_000, 96},
		{"spectrum", 1_000_000, 96}, {"spectrum", 100_000, 1536},
	} {
		b.Run(fmt.Sprintf("%s-%dx%d", tc.set, tc.n, tc.dim), func(b *testing.B) {
			vectors, x, queries := made(b, tc.set, tc.n, tc.dim)
			all := make([]float32, 0, tc.n*tc.dim)
			for i := range vectors {
				v, known := x.Vector(int64(i))
				if !known {
					b.Fatalf("vector %d is missing", i)
				}
				all = append(all, v...)
			}
			for _, k := range kernels() {
				b.Run(k.name, func(b *testing.B) {
					x.kernel = k
					var fast stopwatch
					count := (tc.n + piece - 1) / piece
					slows, lesses := make([]stopwatch, count), make([]stopwatch, count)
					rescored := 0
					for b.Loop() {
						q := queries[fast.rounds%len(queries)]
						if fast.rounds < 20 {
							pieces(b, slows, tc.n, func(from, to int) { naive(vectors[from:to], q, 10) })
							pieces(b, lesses, tc.n, func(from, to int) { dotted(all[from*tc.dim:to*tc.dim], q, 10) })
						}
						fast.measure(b, func() {
							found, err := x.Search(q, 10, nil)
							if err != nil {
								b.Fatal(err)
							}
							rescored += found.rescored
						})
					}
					slow, less := sum(slows), sum(lesses)
					b.ReportMetric(0, "ns/op") // of all together: no figure
					b.ReportMetric(fast.least.Seconds()*1e3, "ms")
					b.ReportMetric(slow.least.Seconds()/fast.least.Seconds(), "×naive")
					b.ReportMetric(less.least.Seconds()/fast.least.Seconds(), "×dotted")
					b.ReportMetric(fast.meanProcessor()*1e3, "cpu-ms")
					b.ReportMetric(slow.meanProcessor()/fast.meanProcessor(), "×naive-cpu")
					b.ReportMetric(less.meanProcessor()/fast.meanProcessor(), "×dotted-cpu")
					b.ReportMetric(float64(rescored)/float64(fast.rounds), "rescored")
					b.ReportMetric(float64(x.Bytes())/1e6, "MB")
				})
			}
		})
	}
}

// stopwatch keeps the least that a function takes.
type stopwatch struct {
	rounds    int
	least     time.Duration // by the clock
	processor time.Duration // of all cores, all rounds
}

func (s *stopwatch) measure(b *testing.B, do func()) {
	b.Helper()
	spent, from := processorTime(b), time.Now()
	do()
	took := time.Since(from)
	s.processor += processorTime(b) - spent
	if s.rounds == 0 || took < s.least {
		s.least = took
	}
	s.rounds++
}

func (s *stopwatch) meanProcessor() float64 { return s.processor.Seconds() / float64(s.rounds) }

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkLoad fills an index from blobs, as a store does when it opens.
func BenchmarkLoad(b *testing.B) {
	const n, dim = 100_000, 96
	r := rand.New(rand.NewPCG(22, 23))
	blobs := make([][]byte, n)
	for i, v := range sets["spectrum"](r, n, dim) {
		blobs[i] = AppendFloats(nil, v)
	}
	x, err := New(dim)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n * dim * 4)
	for b.Loop() {
		var v []float32
		err := x.Load(func(put func(int64, []float32) error) error {
			for i, blob := range blobs {
				var err error
				if v, err = Floats(v, blob); err != nil {
					return err
				}
				if err := put(int64(i), v); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSet replaces one vector of many.
func BenchmarkSet(b *testing.B) {
	x := build(b, kernels()[0], 384, gaussian(rand.New(rand.NewPCG(24, 25)), 5000, 384))
	v := gaussian(rand.New(rand.NewPCG(26, 27)), 1, 384)[0]
	for i := 0; b.Loop(); i++ {
		if err := x.Set(int64(i%5000), v); err != nil {
			b.Fatal(err)
		}
	}
}
