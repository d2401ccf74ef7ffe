//go:build !fault || !linux

package main

import "github.com/openclawssy/openclawssy/internal/judge"

// children are the parts that this binary can play as a child; see fault_on_test.go.
var children map[string]judge.Part
