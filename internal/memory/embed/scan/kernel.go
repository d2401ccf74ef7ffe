package scan

// kernel does the sums of products that a scan is made of. All kernels return the
// same integers; they differ in speed only.
type kernel struct {
	name string
	// sift sets out to the sums of products of nibbles and query, by row. The rows
	// stand in groups of groupRows, see pack: len(out) is a multiple of it and
	// len(nibbles) is len(out)·len(query)/2. len(query) is a multiple of lanes, its
	// numbers are within ±codeMax.
	sift func(out []int32, nibbles []uint8, query []int8)
	// dots sets out[i] to the sum over j of codes[rows[i]·s+j]·query[j], s =
	// len(query), a multiple of lanes. Codes are within ±codeMax and the query such
	// that no sum of absolute products exceeds 31 bits.
	dots func(out []int32, codes []int8, rows []uint16, query []int16)
	// fast says that the kernel waits for memory rather than for the processor.
	fast bool
}

// kernels returns what this build has and this processor can run, best first.
// The last is plain Go and always there.
func kernels() []kernel {
	return append(append(cKernels(), simdKernels()...), kernel{name: "go", sift: siftGo, dots: dotsGo})
}

// siftGo and dotsGo are the kernel for every machine.
func siftGo(out []int32, nibbles []uint8, query []int8) {
	for len(out) > 0 {
		sums := out[:groupRows]
		clear(sums)
		for j := 0; j+8 <= len(query); j += 8 {
			q, step := query[j:j+8:j+8], nibbles[:4*groupRows]
			for r := range sums {
				c := step[4*r : 4*r+4 : 4*r+4]
				sums[r] += int32(c[0]&15)*int32(q[0]) + int32(c[1]&15)*int32(q[1]) + int32(c[2]&15)*int32(q[2]) + int32(c[3]&15)*int32(q[3]) +
					int32(c[0]>>4)*int32(q[4]) + int32(c[1]>>4)*int32(q[5]) + int32(c[2]>>4)*int32(q[6]) + int32(c[3]>>4)*int32(q[7])
			}
			nibbles = nibbles[4*groupRows:]
		}
		out = out[groupRows:]
	}
}

func dotsGo(out []int32, codes []int8, rows []uint16, query []int16) {
	for i, r := range rows {
		row := codes[int(r)*len(query):][:len(query)]
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
