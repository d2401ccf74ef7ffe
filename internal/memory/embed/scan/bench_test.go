//go:build linux || darwin

package scan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// flat makes n vectors of length one beside each other, and the index of them.
func flat(b *testing.B, k kernel, set string, n, dim int) ([]float32, *Index, [][]float32) {
	b.Helper()
	r := rand.New(rand.NewPCG(20, 21))
	data := sets[set](r, n+8, dim)
	x := build(b, k, dim, data[:n])
	all := make([]float32, 0, n*dim)
	for i := range n {
		v, known := x.Vector(int64(i))
		if !known {
			b.Fatalf("vector %d is missing", i)
		}
		all = append(all, v...)
		data[i] = nil
	}
	return all, x, data[n:]
}

// loop is the search that all this is compared with: a float32 loop over every
// vector, one beside the other, and the ten best.
func loop(all, query []float32, k int) []Hit {
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

// BenchmarkSearch gives the time of a search for the ten nearest vectors, and how
// many times faster it is than the loop, each query done by both in turn: by the
// clock (the least of all rounds) and in processor time (of all cores, the mean),
// which says more on a machine that others use too.
func BenchmarkSearch(b *testing.B) {
	for _, tc := range []struct {
		set    string
		n, dim int
	}{
		{"clustered", 10_000, 384}, {"clustered", 100_000, 384}, {"spectrum", 100_000, 96},
		{"spectrum", 1_000_000, 96}, {"spectrum", 100_000, 1536},
	} {
		b.Run(fmt.Sprintf("%s-%dx%d", tc.set, tc.n, tc.dim), func(b *testing.B) {
			all, x, queries := flat(b, kernels()[0], tc.set, tc.n, tc.dim)
			for _, k := range kernels() {
				b.Run(k.name, func(b *testing.B) {
					x.kernel = k
					var fast, slow stopwatch
					rescored := 0
					for b.Loop() {
						q := queries[fast.rounds%len(queries)]
						slow.measure(b, func() { loop(all, q, 10) })
						fast.measure(b, func() {
							found, err := x.Search(q, 10, nil)
							if err != nil {
								b.Fatal(err)
							}
							rescored += found.rescored
						})
					}
					b.ReportMetric(0, "ns/op") // of both together: no figure
					b.ReportMetric(fast.least.Seconds()*1e3, "ms")
					b.ReportMetric(slow.least.Seconds()/fast.least.Seconds(), "×loop")
					b.ReportMetric(fast.processor.Seconds()*1e3/float64(fast.rounds), "cpu-ms")
					b.ReportMetric(slow.processor.Seconds()/fast.processor.Seconds(), "×loop-cpu")
					b.ReportMetric(float64(rescored)/float64(fast.rounds), "rescored")
					b.ReportMetric(float64(x.Bytes())/1e6, "MB")
				})
			}
		})
	}
}

// stopwatch adds up what a function takes.
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
