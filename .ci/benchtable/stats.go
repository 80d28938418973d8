package main

import (
	"math"
	"slices"
)

// Spread is what many measurements say: their median, the middle half of them.
type Spread struct {
	Value float64 `json:"value"` // the quantile that counts
	Low   float64 `json:"low"`   // a quarter is below
	High  float64 `json:"high"`  // a quarter is above
	N     int     `json:"n"`
}

func spread(samples []float64, at float64) Spread {
	s := slices.Sorted(slices.Values(samples))
	return Spread{Value: quantile(s, at), Low: quantile(s, 0.25), High: quantile(s, 0.75), N: len(s)}
}

// quantile takes sorted samples, and goes between the two nearest.
func quantile(sorted []float64, at float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	pos := at * float64(len(sorted)-1)
	i := int(pos)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (pos-float64(i))*(sorted[i+1]-sorted[i])
}

// ratios are those of samples that were taken next to each other.
func ratios(ours, theirs []float64) (out []float64) {
	for i := range min(len(ours), len(theirs)) {
		if theirs[i] != 0 {
			out = append(out, ours[i]/theirs[i])
		}
	}
	return out
}
