//go:build cgo

package scan

/*
#cgo CFLAGS: -O3
#cgo noescape scan_sift
#cgo nocallback scan_sift
#cgo noescape scan_pick
#cgo nocallback scan_pick
#cgo noescape scan_dots
#cgo nocallback scan_dots
#cgo noescape scan_can
#cgo nocallback scan_can
#include "kernel.h"
*/
import "C"

import "unsafe"

// cKernels returns the kernels in C that this processor can run, best first.
func cKernels() []kernel {
	var out []kernel
	for _, k := range []struct {
		name string
		id   C.int
	}{
		{"c-avx512vnni", C.SCAN_AVX512VNNI},
		{"c-avx2", C.SCAN_AVX2},
		{"c", C.SCAN_PLAIN},
	} {
		if C.scan_can(k.id) == 0 {
			continue
		}
		out = append(out, kernel{name: k.name, fast: true, sift: func(out []int32, plane []uint8, query []int8) {
			if len(out) == 0 {
				return
			}
			_, _ = plane[len(out)*len(query)/4-1], query[lanes-1] // C does not check
			C.scan_sift(k.id, (*C.int32_t)(&out[0]), (*C.uint8_t)(&plane[0]), (*C.int8_t)(&query[0]),
				C.long(len(out)/groupRows), C.long(len(query)))
		}, pick: func(rows []uint16, products []int32, shadows []shadow, to *passing) (int, sums) {
			if len(shadows) == 0 {
				return 0, sums{}
			}
			_, _ = rows[len(shadows)], products[len(shadows)-1]
			var all sums
			n := C.scan_pick(k.id, (*C.uint16_t)(&rows[0]), (*C.int64_t)(&all.first), (*C.int32_t)(&products[0]),
				(*C.scan_shadow)(unsafe.Pointer(&shadows[0])), C.long(len(shadows)), (*C.scan_reach)(unsafe.Pointer(to)))
			return int(n), all
		}, dots: func(out []int32, codes []int8, rows []uint16, query []int16) {
			if len(rows) == 0 {
				return
			}
			// The rows come in order.
			_, _, _ = out[len(rows)-1], codes[(int(rows[len(rows)-1])+1)*len(query)-1], query[lanes-1]
			C.scan_dots(k.id, (*C.int32_t)(&out[0]), (*C.int8_t)(&codes[0]), (*C.uint16_t)(&rows[0]), (*C.int16_t)(&query[0]),
				C.long(len(rows)), C.long(len(query)))
		}})
	}
	return out
}
