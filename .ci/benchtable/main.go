// Command benchtable measures lazaret beside what people would use in its
// place, and prints one table of ratios. "make bench" runs it: as the account
// for what starts sandboxes, in the clone for what builds, and then to put both
// together.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == insideCommand {
		os.Exit(inside(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "benchtable: error: %v\n", err)
		os.Exit(1)
	}
}

// part is what one call of measure leaves for table.
type part struct {
	Taken
	Rows    string  // the expression that chose them
	Machine Machine // of the account
	Busy    float64
	Seconds float64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("usage: benchtable measure|table FLAGS")
	}
	f := flag.NewFlagSet("benchtable "+args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	switch args[0] {
	case "measure":
		var b bench
		clone := f.Bool("clone", false, "measure what is done in the clone, not what the account does")
		choice := f.String("rows", "", "measure the rows that match `REGEXP` only")
		runs := f.Int("runs", 0, "how `often` each is measured, where that is more than once")
		f.StringVar(&b.dir, "dir", "", "a `directory` of one's own to work in; bin/lazaret and image/helpers are there")
		f.StringVar(&b.debian, "debian", "", "an OCI `layout` with git")
		f.StringVar(&b.srt, "srt", "", "the `program` srt")
		f.StringVar(&b.noSrt, "no-srt", "", "why there is none")
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		p, err := measure(ctx, &b, *clone, *choice, *runs, stderr)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(p)
	case "table":
		out := f.String("json", "", "write the report to `FILE`")
		doc := f.String("doc", "", "put the table into the document `FILE`, where the run was whole and quiet")
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		report, err := combine(f.Args())
		if err != nil {
			return err
		}
		return publish(report, *out, *doc, stdout)
	}
	return fmt.Errorf("no such command: %s", args[0])
}

// choose gives the rows whose IDs match.
func choose(expr string) (out []Row, err error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if re.MatchString(r.ID) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no row matches %q", expr)
	}
	return out, nil
}

func measure(ctx context.Context, b *bench, clone bool, expr string, runs int, talk io.Writer) (p part, err error) {
	need, err := choose(expr)
	if err != nil {
		return p, err
	}
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return p, err
	}
	var here []experiment
	for _, e := range experiments {
		if e.clone == clone {
			here = append(here, e)
		}
	}
	start := time.Now()
	p = part{Rows: expr, Machine: thisMachine()}
	p.Taken, p.Busy, err = take(ctx, b, here, need, runs, talk)
	p.Seconds = time.Since(start).Seconds()
	return p, err
}

// combine makes the report of what the parts measured.
func combine(files []string) (r Report, err error) {
	all, chosen := newTaken(), ""
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return r, err
		}
		var p part
		if err := json.Unmarshal(b, &p); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		maps.Copy(all.Samples, p.Samples)
		maps.Copy(all.Missing, p.Missing)
		maps.Copy(all.Failed, p.Failed)
		chosen, r.Machine = p.Rows, p.Machine
		r.Busy = max(r.Busy, p.Busy)
		r.Seconds += p.Seconds
	}
	need, err := choose(chosen)
	if err != nil {
		return r, err
	}
	r.Date, r.Whole = time.Now().UTC().Format(time.DateOnly), len(need) == len(rows)
	for _, row := range need {
		r.Rows = append(r.Rows, judge(row, all))
	}
	return r, nil
}
