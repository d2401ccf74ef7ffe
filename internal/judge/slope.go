package judge

import "time"

// Sample is a figure at a moment.
type Sample struct {
	At    time.Time
	Value float64
}

// Slope is by how much the samples grow in an hour, as the straight line tells that
// fits them best (least squares); 0 where they are of fewer than two moments.
func Slope(samples []Sample) float64 {
	if len(samples) == 0 {
		return 0
	}
	var n, sumX, sumY, sumXX, sumXY float64
	for _, s := range samples {
		x := s.At.Sub(samples[0].At).Hours()
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+s.Value, sumXX+x*x, sumXY+x*s.Value
	}
	spread := n*sumXX - sumX*sumX
	if spread == 0 {
		return 0
	}
	return (n*sumXY - sumX*sumY) / spread
}
