package main

import (
	"errors"
	"testing"
)

// TestMadeOnceItCanBe: what could not be made is no answer for good.
func TestMadeOnceItCanBe(t *testing.T) {
	full, calls := errors.New("too many open files"), 0
	get := made(func() (int, error) {
		if calls++; calls < 3 {
			return 0, full
		}
		return calls, nil
	})
	for range 2 {
		if _, err := get(); !errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	for range 2 {
		if n, err := get(); n != 3 || err != nil {
			t.Fatal(n, err)
		}
	}
}
