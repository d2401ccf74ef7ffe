//go:build !(goexperiment.simd && amd64)

package scan

// simdKernels returns none: this build has no package simd/archsimd.
func simdKernels() []kernel { return nil }
