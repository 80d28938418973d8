package main

import (
	"fmt"
	"time"
)

// allowance is how many lines a sandbox may still have in the audit log: so many
// at once, and as many again over a day, so that one which runs for a week
// cannot make itself invisible by an hour of noise.
type allowance struct {
	most   float64
	over   string // what the sandbox did once it is used up: "was denied"
	spent  float64
	at     time.Time // of spent
	shut   bool      // used up, and not yet enough of it back
	unsaid uint64    // entries that were left out since it was used up
}

// allowanceBack is the part of an allowance that is back before a sandbox that
// used it up is written down again: else every line would come with one that
// says so.
const allowanceBack = 0.01

// take takes n lines for an entry. Where entries begin to be missing, and where
// they end to be, notice says so: it is to be written first.
func (a *allowance) take(n float64, now time.Time) (ok bool, notice string) {
	if !a.at.IsZero() {
		a.spent = max(0, a.spent-max(0, now.Sub(a.at).Seconds())*a.most/(24*time.Hour).Seconds())
	}
	a.at = now
	room := a.most - a.spent
	if a.shut && room < a.most*allowanceBack || !a.shut && room < n {
		if !a.shut {
			notice = "this sandbox " + a.over + " more than the log shall hold"
		}
		a.shut = true
		a.unsaid++
		return false, notice
	}
	if a.shut {
		notice = fmt.Sprintf("written down again; %d lines are missing before this", a.unsaid)
	}
	a.shut, a.unsaid = false, 0
	a.spent += n
	return true, notice
}

// force takes n lines whether or not there are any.
func (a *allowance) force(n float64) { a.spent += n }
