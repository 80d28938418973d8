package main

import "time"

// allowance is how many lines a sandbox may still have in the audit log: so many
// at once, and as many again over a day, so that one which runs for a week
// cannot make itself invisible by an hour of noise.
type allowance struct {
	most  float64
	spent float64
	at    time.Time // of spent
	shut  bool      // used up, and not yet enough of it back
}

// allowanceBack is the part of an allowance that is back before a sandbox that
// used it up is written down again: else every line would come with one that
// says so.
const allowanceBack = 0.01

// take takes n lines. out tells whether they are those at which it is used up,
// back whether they are the first that can be had since.
func (a *allowance) take(n float64, now time.Time) (ok, out, back bool) {
	if !a.at.IsZero() {
		a.spent = max(0, a.spent-max(0, now.Sub(a.at).Seconds())*a.most/(24*time.Hour).Seconds())
	}
	a.at = now
	switch room := a.most - a.spent; {
	case a.shut && room < a.most*allowanceBack, !a.shut && room < n:
		out, a.shut = !a.shut, true
		return false, out, false
	}
	back, a.shut = a.shut, false
	a.spent += n
	return true, false, back
}

// force takes n lines whether or not there are any.
func (a *allowance) force(n float64) { a.spent += n }
