//go:build goexperiment.simd && amd64

package scan

import "simd/archsimd"

// simdKernels returns the kernels in Go's own SIMD operations that this
// processor can run, best first. They are in builds with GOEXPERIMENT=simd.
func simdKernels() []kernel {
	var out []kernel
	if archsimd.X86.AVX512() {
		out = append(out, kernel{name: "go-avx512", dots: dotsAVX512, fast: true})
	}
	if archsimd.X86.AVX2() {
		out = append(out, kernel{name: "go-avx2", dots: dotsAVX2, fast: true})
	}
	return out
}

// dotsAVX512 widens 32 codes at a time to 16 bits and adds products in pairs.
func dotsAVX512(out []int32, codes []int8, query []int16) {
	for i := range out {
		row := codes[i*len(query):][:len(query)]
		var sum archsimd.Int32x16
		for j := 0; j+32 <= len(query); j += 32 {
			c := archsimd.LoadInt8x32((*[32]int8)(row[j:])).ExtendToInt16()
			sum = sum.Add(c.DotProductPairs(archsimd.LoadInt16x32((*[32]int16)(query[j:]))))
		}
		var s [8]int32
		sum.GetLo().Add(sum.GetHi()).Store(&s)
		out[i] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]
	}
	// The scalar float code that follows would wait for the upper halves.
	archsimd.ClearAVXUpperBits()
}

// dotsAVX2 does the same with 16 codes at a time, in two sums.
func dotsAVX2(out []int32, codes []int8, query []int16) {
	for i := range out {
		row := codes[i*len(query):][:len(query)]
		var a, b archsimd.Int32x8
		for j := 0; j+32 <= len(query); j += 32 {
			c := archsimd.LoadInt8x16((*[16]int8)(row[j:])).ExtendToInt16()
			d := archsimd.LoadInt8x16((*[16]int8)(row[j+16:])).ExtendToInt16()
			a = a.Add(c.DotProductPairs(archsimd.LoadInt16x16((*[16]int16)(query[j:]))))
			b = b.Add(d.DotProductPairs(archsimd.LoadInt16x16((*[16]int16)(query[j+16:]))))
		}
		var s [8]int32
		a.Add(b).Store(&s)
		out[i] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]
	}
	archsimd.ClearAVXUpperBits()
}
