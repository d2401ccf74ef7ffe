package scan

// kernel multiplies a query with many rows of codes. All kernels return the same
// integers; they differ in speed only.
type kernel struct {
	name string
	// dots sets out[i] to the sum over j of codes[i·s+j]·query[j], s = len(query).
	// len(codes) is len(out)·s, s a multiple of lanes, codes are within ±127 and
	// the query such that no sum of absolute products exceeds 31 bits.
	dots func(out []int32, codes []int8, query []int16)
	// fast says that the kernel waits for memory rather than for the processor.
	fast bool
}

// kernels returns what this build has and this processor can run, best first.
// The last is plain Go and always there.
func kernels() []kernel {
	return append(append(cKernels(), simdKernels()...), kernel{name: "go", dots: dotsGo})
}

// dotsGo is the kernel for every machine.
func dotsGo(out []int32, codes []int8, query []int16) {
	for i := range out {
		row := codes[i*len(query):][:len(query)]
		var a, b, c, d int32
		for j := 0; j+4 <= len(query); j += 4 {
			x, q := row[j:j+4:j+4], query[j:j+4:j+4]
			a += int32(x[0]) * int32(q[0])
			b += int32(x[1]) * int32(q[1])
			c += int32(x[2]) * int32(q[2])
			d += int32(x[3]) * int32(q[3])
		}
		out[i] = a + b + c + d
	}
}
