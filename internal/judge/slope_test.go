package judge

import (
	"math"
	"testing"
	"time"
)

func TestSlope(t *testing.T) {
	began := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	of := func(values ...float64) (list []Sample) {
		for i, v := range values {
			list = append(list, Sample{began.Add(time.Duration(i) * time.Minute), v})
		}
		return list
	}
	for _, tc := range []struct {
		samples []Sample
		want    float64
	}{
		{nil, 0},
		{of(7), 0},
		{of(5, 5, 5), 0},
		{of(1, 2, 3, 4), 60},
		{of(4, 3, 2, 1), -60},
		{of(1, 3, 1, 3), 24}, // by hand: covariance 2 of minutes whose squares sum to 5
		{[]Sample{{began, 1}, {began, 9}}, 0},
	} {
		if got := Slope(tc.samples); math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%v: %g an hour, want %g", tc.samples, got, tc.want)
		}
	}
}
