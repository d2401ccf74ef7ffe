//go:build goexperiment.simd && amd64

package scan

import "simd/archsimd"

// simdKernels returns the kernel in Go's own SIMD operations if this processor can
// run it. It is in builds with GOEXPERIMENT=simd.
func simdKernels() []kernel {
	if !archsimd.X86.AVX2() {
		return nil
	}
	return []kernel{{name: "go-avx2", sift: siftAVX2, pick: pickGo, dots: dotsAVX2, fast: true}}
}

// siftAVX2 is sift_avx2 of kernel.c.
func siftAVX2(out []int32, plane []uint8, query []int8) {
	mask, one := archsimd.BroadcastUint8x32(3), archsimd.BroadcastInt16x16(1)
	for ; len(out) > 0; out = out[groupRows:] {
		var a, b archsimd.Int32x8
		for j := 0; j+32 <= len(query); j += 32 {
			q := query[j : j+32 : j+32]
			var x, y archsimd.Int16x16
			for i := 0; i < 32; i += 16 {
				c := archsimd.LoadUint8x32((*[32]uint8)(plane))
				d := archsimd.LoadUint8x32((*[32]uint8)(plane[32:]))
				for k := 0; k < 16; k += 4 {
					by := four(q[i+k:])
					x = x.Add(c.And(mask).DotProductPairsSaturated(by))
					y = y.Add(d.And(mask).DotProductPairsSaturated(by))
					c, d = c.AsUint16x16().ShiftAllRight(2).AsUint8x32(), d.AsUint16x16().ShiftAllRight(2).AsUint8x32()
				}
				plane = plane[64:]
			}
			a = a.Add(x.DotProductPairs(one))
			b = b.Add(y.DotProductPairs(one))
		}
		a.Add(archsimd.LoadInt32x8((*[8]int32)(out)).ShiftAllLeft(2)).Store((*[8]int32)(out))
		b.Add(archsimd.LoadInt32x8((*[8]int32)(out[8:])).ShiftAllLeft(2)).Store((*[8]int32)(out[8:]))
	}
	// The scalar float code that follows would wait for the upper halves.
	archsimd.ClearAVXUpperBits()
}

// four repeats four numbers of the query.
func four(q []int8) archsimd.Int8x32 {
	return archsimd.BroadcastInt32x8(int32(uint32(uint8(q[0])) | uint32(uint8(q[1]))<<8 | uint32(uint8(q[2]))<<16 | uint32(uint8(q[3]))<<24)).AsInt8x32()
}

// dotsAVX2 is dots_avx2 of kernel.c.
func dotsAVX2(out []int32, codes []int8, rows []uint16, query []int16) {
	for i, r := range rows {
		row := codes[int(r)*len(query):][:len(query)]
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
