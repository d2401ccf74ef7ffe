package scan

// kernel does the sums of products that a scan is made of. All kernels return the
// same integers; they differ in speed only.
type kernel struct {
	name string
	// sift sets out to four times itself and the sums of products of a plane, two bits
	// of each number, and query, by row. The rows stand in groups of groupRows, see
	// pack: len(out) is a multiple of it and len(plane) is len(out)·len(query)/4.
	// len(query) is a multiple of lanes, its numbers are within ±codeMax.
	sift func(out []int32, plane []uint8, query []int8)
	// pick takes the products that sift made of the rows with those shadows. It writes
	// the rows whose cosine can reach what to asks for to rows, in order, and returns
	// how many, and the sums of what the products say about all. rows has room for one
	// more than there are.
	pick func(rows []uint16, products []int32, shadows []shadow, to *passing) (int, sums)
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
	return append(append(cKernels(), simdKernels()...), kernel{name: "go", sift: siftGo, pick: pickGo, dots: dotsGo})
}

// siftGo, pickGo and dotsGo are the kernel for every machine.
func siftGo(out []int32, plane []uint8, query []int8) {
	for len(out) > 0 {
		sums := out[:groupRows]
		for r := range sums {
			sums[r] *= 4
		}
		for j := 0; j+16 <= len(query); j += 16 {
			q, step := query[j:j+16:j+16], plane[:4*groupRows]
			for r := range sums {
				c := step[4*r : 4*r+4 : 4*r+4]
				for k, b := range c {
					sums[r] += int32(b&3)*int32(q[k]) + int32(b>>2&3)*int32(q[k+4]) + int32(b>>4&3)*int32(q[k+8]) + int32(b>>6)*int32(q[k+12])
				}
			}
			plane = plane[4*groupRows:]
		}
		out = out[groupRows:]
	}
}

func pickGo(rows []uint16, products []int32, shadows []shadow, to *passing) (int, sums) {
	var all sums
	passed := 0
	products, rows = products[:len(shadows)], rows[:len(shadows)+1]
	for i, s := range shadows {
		about := float32(2*products[i]-to.shift) * (to.scale * s.unit)
		c := int64(int32(about * sumUnit))
		all.first += c
		all.second += c * c
		if about >= to.least-s.tan*to.tan {
			rows[passed] = uint16(i)
			passed++
		}
	}
	return passed, all
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
