// Command testsum reads the event streams of "go test -json" and test2json. On
// a stream from standard input it stays quiet about what passes and shows what
// fails in full; given files it prints the slowest tests and the closing count
// that CI reads.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(stderr)
	save := flags.String("save", "", "copy the stream from standard input to `FILE`")
	strict := flags.Bool("strict", false, "count a skipped test as failed")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var ok bool
	var err error
	if flags.NArg() == 0 {
		ok, err = follow(stdin, stdout, *save, *strict)
	} else {
		ok, err = closing(flags.Args(), stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "testsum: error: %v\n", err)
		return 1
	}
	if !ok {
		return 1
	}
	return 0
}

// follow reports one stream as it comes, and saves it where it is to be summed
// up later. It is true when tests ran and none failed.
func follow(in io.Reader, out io.Writer, save string, strict bool) (bool, error) {
	s := newSummary()
	s.Strict = strict
	s.Ended = func(r Result) { show(out, r) }
	s.Package = func(name string, passed bool, seconds float64) {
		verdict := "ok  "
		if !passed {
			verdict = "FAIL"
		}
		fmt.Fprintf(out, "%s %s %.1fs\n", verdict, name, seconds)
	}
	if save != "" {
		f, err := os.Create(save)
		if err != nil {
			return false, fmt.Errorf("saving the stream: %w", err)
		}
		defer f.Close()
		s.Copy = f
	}
	if err := s.Read(in); err != nil {
		return false, err
	}
	for _, r := range s.Results() {
		if r.Outcome == Unfinished {
			show(out, r)
		}
	}
	passed, failed, _ := s.Count()
	return failed == 0 && passed > 0, nil
}

// show prints what did not pass: a failure with all that it said, a skipped
// test with its reason.
func show(out io.Writer, r Result) {
	switch r.Outcome {
	case Passed:
	case Skipped:
		fmt.Fprintf(out, "skip %s%s\n", r.Name(), r.Reason())
	default:
		fmt.Fprintf(out, "--- %s: %s (%.2fs)\n%s", r.Outcome, r.Name(), r.Seconds, r.Output)
	}
}

// closing sums up saved streams. A stream without a single test counts as a
// failure: what should have run did not. It is true when nothing failed.
func closing(files []string, out io.Writer) (bool, error) {
	var all []Result
	passed, failed, skipped := 0, 0, 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return false, fmt.Errorf("reading a stream: %w", err)
		}
		s := newSummary()
		err = s.Read(f)
		f.Close()
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if len(s.Results()) == 0 {
			fmt.Fprintf(out, "no test ran: %s\n", name)
			failed++
		}
		all = append(all, s.Results()...)
	}
	all = without(all)
	for _, r := range all {
		switch r.Outcome {
		case Passed:
			passed++
		case Skipped:
			skipped++
		default:
			failed++
		}
	}
	fmt.Fprintln(out, "slowest tests:")
	for _, r := range slowest(all, 10) {
		fmt.Fprintf(out, "%8.2fs  %s\n", r.Seconds, r.Name())
	}
	fmt.Fprintf(out, "%d passed, %d failed", passed, failed)
	if skipped > 0 {
		fmt.Fprintf(out, ", %d skipped", skipped)
	}
	fmt.Fprintln(out)
	return failed == 0 && passed > 0, nil
}

// without leaves out what was skipped among the unit tests and ran end to end.
func without(all []Result) []Result {
	ran := map[key]bool{}
	for _, r := range all {
		if pkg, ok := strings.CutSuffix(r.Package, endToEnd); ok && r.Outcome != Skipped {
			top, _, _ := strings.Cut(r.Test, "/")
			ran[key{pkg, top}] = true
		}
	}
	var rest []Result
	for _, r := range all {
		if r.Outcome != Skipped || !ran[key{r.Package, r.Test}] {
			rest = append(rest, r)
		}
	}
	return rest
}

// endToEnd marks a package whose tests start real sandboxes.
const endToEnd = " end to end"
