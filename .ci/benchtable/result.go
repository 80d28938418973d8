package main

import (
	"cmp"
	"strconv"
)

// Report is a whole run, as bin/bench.json has it.
type Report struct {
	Date    string   `json:"date"`
	Machine Machine  `json:"machine"`
	Busy    float64  `json:"busy"`  // the most of the machine that others took, between the experiments
	Whole   bool     `json:"whole"` // every row was asked for
	Seconds float64  `json:"seconds"`
	Rows    []Result `json:"rows"`
}

// quietBelow is how much of the machine others may take in a run whose numbers
// are worth keeping.
const quietBelow = 0.1

// Quiet tells whether the machine was this run's.
func (r Report) Quiet() bool { return r.Busy < quietBelow }

// Result is a row that was measured, or Missing says why not.
type Result struct {
	ID      string   `json:"id"`
	What    string   `json:"what"`
	Beside  string   `json:"beside,omitempty"`
	Unit    string   `json:"unit"`
	Ours    *Spread  `json:"ours,omitempty"`
	Theirs  *Spread  `json:"theirs,omitempty"`
	Ratio   *Spread  `json:"ratio,omitempty"` // of the two values; the middle half of the pairs'
	Aims    []string `json:"aims,omitempty"`
	Met     *bool    `json:"met,omitempty"`
	Missing string   `json:"missing,omitempty"`
	Failed  bool     `json:"failed,omitempty"` // it is missing, and should not be
}

// Taken is what the experiments yield: samples by series, and why a series has
// none.
type Taken struct {
	Samples map[string][]float64
	Missing map[string]string // this machine cannot have it
	Failed  map[string]string // it should have worked
}

func newTaken() Taken {
	return Taken{map[string][]float64{}, map[string]string{}, map[string]string{}}
}

// judge makes a row's result of what was taken.
func judge(row Row, t Taken) Result {
	r := Result{ID: row.ID, What: row.What, Beside: row.Beside, Unit: row.Unit}
	for _, a := range row.Aims {
		r.Aims = append(r.Aims, a.text(row.Unit))
	}
	at := row.At
	if at == 0 {
		at = 0.5
	}
	for _, series := range []struct {
		name string
		to   **Spread
	}{{row.Ours, &r.Ours}, {row.Theirs, &r.Theirs}} {
		if series.name == "" {
			continue
		}
		if len(t.Samples[series.name]) == 0 {
			r.Missing = cmp.Or(t.Missing[series.name], t.Failed[series.name], "it was not asked for")
			r.Failed = r.Failed || t.Failed[series.name] != ""
			continue
		}
		s := spread(t.Samples[series.name], at)
		*series.to = &s
	}
	if r.Ours == nil || row.Theirs != "" && r.Theirs == nil {
		return r
	}
	if r.Theirs != nil && r.Theirs.Value != 0 {
		s := spread(ratios(t.Samples[row.Ours], t.Samples[row.Theirs]), at)
		s.Value = r.Ours.Value / r.Theirs.Value
		r.Ratio = &s
	}
	if len(row.Aims) > 0 {
		met := true
		for _, a := range row.Aims {
			met = met && a.met(r)
		}
		r.Met = &met
	}
	return r
}

func (a Aim) met(r Result) bool {
	switch a.Kind {
	case RatioAtMost:
		return r.Ratio.Value <= a.Limit
	case RatioAtLeast:
		return r.Ratio.Value >= a.Limit
	case MoreAtMost:
		return r.Ours.Value-r.Theirs.Value <= a.Limit
	}
	return r.Ours.Value <= a.Limit
}

func (a Aim) text(unit string) string {
	limit := strconv.FormatFloat(a.Limit, 'g', 3, 64)
	switch a.Kind {
	case RatioAtMost:
		return "≤ " + limit + "×"
	case RatioAtLeast:
		return "≥ " + limit + "×"
	case MoreAtMost:
		return "≤ " + limit + " " + unit + " more"
	}
	return "≤ " + limit + " " + unit
}
