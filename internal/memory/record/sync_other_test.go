//go:build !linux

package record

import "os"

func fdatasync(f *os.File) error { return f.Sync() }
