package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

// Outcome of a test. The zero value is the one that must not be overlooked: it
// began and never ended.
type Outcome int

const (
	Unfinished Outcome = iota
	Failed
	Skipped
	Passed
)

func (o Outcome) String() string {
	return [...]string{Unfinished: "UNFINISHED", Failed: "FAIL", Skipped: "SKIP", Passed: "PASS"}[o]
}

// Result is a test without subtests, or a failure that no test accounts for: of
// a test beside its subtests, or of a whole package (Test is empty then).
type Result struct {
	Package, Test string
	Outcome       Outcome
	Seconds       float64
	Output        string
}

// Name is the package and the test.
func (r Result) Name() string {
	if r.Test == "" {
		return r.Package
	}
	return r.Package + " " + r.Test
}

// Reason is what a skipped test said last, after a colon, or nothing.
func (r Result) Reason() string {
	reason := ""
	for line := range strings.Lines(r.Output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			reason = ": " + line
		}
	}
	return reason
}

// event is a line of the stream (go doc test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

type key struct{ pkg, test string }

// summary follows one stream.
type summary struct {
	Strict  bool                                            // a skipped test is a failed one
	Copy    io.Writer                                       // gets the stream as it was taken, when set
	Ended   func(Result)                                    // told of each result as it ends, when set
	Package func(name string, passed bool, seconds float64) // told of each package as it ends, when set

	results map[key]*Result
	order   []key
	parents map[key]bool      // tests with subtests
	builds  map[string]string // what the compiler said, by import path
}

func newSummary() *summary {
	return &summary{results: map[key]*Result{}, parents: map[key]bool{}, builds: map[string]string{}}
}

// Read takes a whole stream. A line that is not an event counts as a failure:
// nothing is known of what ran then.
func (s *summary) Read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := s.line(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}
	}
}

func (s *summary) line(line string) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		e = event{Action: "fail", Package: "(no event) " + strings.TrimSpace(line)}
	}
	if s.Strict && e.Action == "skip" && e.Test != "" {
		e.Action = "fail"
		line = strings.Replace(line, `"skip"`, `"fail"`, 1)
	}
	s.take(e)
	if s.Copy == nil {
		return nil
	}
	if _, err := io.WriteString(s.Copy, line); err != nil {
		return fmt.Errorf("saving the stream: %w", err)
	}
	return nil
}

func (s *summary) take(e event) {
	if e.Action == "build-output" {
		s.builds[e.ImportPath] += e.Output
		return
	}
	if e.Package == "" {
		return
	}
	r := s.result(key{e.Package, e.Test})
	switch e.Action {
	case "output":
		r.Output += e.Output
	case "pass":
		s.end(r, Passed, e)
	case "skip":
		s.end(r, Skipped, e)
	case "fail":
		r.Output += s.builds[e.FailedBuild]
		s.end(r, Failed, e)
	}
}

func (s *summary) result(k key) *Result {
	if r := s.results[k]; r != nil {
		return r
	}
	r := &Result{Package: k.pkg, Test: k.test}
	s.results[k] = r
	s.order = append(s.order, k)
	for name := k.test; ; {
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			break
		}
		name = name[:cut]
		s.parents[key{k.pkg, name}] = true
	}
	return r
}

func (s *summary) end(r *Result, o Outcome, e event) {
	r.Outcome, r.Seconds = o, e.Elapsed
	if s.Ended != nil && s.accountable(key{r.Package, r.Test}) {
		s.Ended(*r)
	}
	if s.Package != nil && r.Test == "" && o != Skipped {
		s.Package(r.Package, o == Passed, r.Seconds)
	}
}

// accountable tells whether a test counts by itself: a test with subtests and a
// package only where they failed and nothing below them did.
func (s *summary) accountable(k key) bool {
	if k.test != "" && !s.parents[k] {
		return true
	}
	if o := s.results[k].Outcome; o != Failed && o != Unfinished {
		return false
	}
	for other, r := range s.results {
		below := other.pkg == k.pkg && other != k &&
			(k.test == "" || strings.HasPrefix(other.test, k.test+"/"))
		if below && (r.Outcome == Failed || r.Outcome == Unfinished) {
			return false
		}
	}
	return true
}

// Results in the order in which they began.
func (s *summary) Results() []Result {
	var rs []Result
	for _, k := range s.order {
		if s.accountable(k) {
			rs = append(rs, *s.results[k])
		}
	}
	return rs
}

// Count of tests. One that never ended has failed.
func (s *summary) Count() (passed, failed, skipped int) {
	for _, r := range s.Results() {
		switch r.Outcome {
		case Passed:
			passed++
		case Skipped:
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}

func slowest(rs []Result, n int) []Result {
	rs = append([]Result(nil), rs...)
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].Seconds > rs[j].Seconds })
	return rs[:min(n, len(rs))]
}
