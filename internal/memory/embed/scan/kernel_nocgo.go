//go:build !cgo

package scan

// cKernels returns none: this build has no C.
func cKernels() []kernel { return nil }
