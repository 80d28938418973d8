package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// publish prints the report, keeps it as JSON, and puts it into the document
// where it deserves that.
func publish(r Report, jsonFile, doc string, out io.Writer) error {
	printTable(out, r)
	if jsonFile != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(jsonFile, append(b, '\n'), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "written to %s\n", jsonFile)
	}
	for _, row := range r.Rows {
		if row.Failed {
			return fmt.Errorf("row %s could not be measured: %s", row.ID, row.Missing)
		}
	}
	if doc == "" {
		return nil
	}
	switch {
	case !r.Whole:
		fmt.Fprintf(out, "%s is left as it is: these are not all rows\n", doc)
		return nil
	case !r.Quiet():
		fmt.Fprintf(out, "%s is left as it is: others had %.0f %% of the machine\n", doc, r.Busy*100)
		return nil
	}
	old, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	text, err := replaceTable(string(old), markdown(r))
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	fmt.Fprintf(out, "%s has this table\n", doc)
	return os.WriteFile(doc, []byte(text), 0o644)
}

func printTable(out io.Writer, r Report) {
	m := r.Machine
	fmt.Fprintf(out, "%s, %d CPUs (%s), %s, Linux %s, podman %s, runsc %s, %.0f s, others had at most %.0f %% of it\n\n",
		r.Date, m.CPUs, m.CPU, m.Memory, m.Kernel, m.Podman, m.Runsc, r.Seconds, r.Busy*100)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tlazaret\tbeside\tratio\taim\t")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.Ours.text(row.Unit), row.Theirs.text(row.Unit), row.Ratio.text("×"), strings.Join(row.Aims, ", "), row.verdict())
	}
	w.Flush()
	fmt.Fprintln(out)
}

// text is a value and its middle half.
func (s *Spread) text(unit string) string {
	switch {
	case s == nil:
		return "–"
	case s.N == 1:
		return number(s.Value) + " " + unit
	case unit == "×":
		return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Value, s.Low, s.High)
	}
	return fmt.Sprintf("%s %s (%s–%s)", number(s.Value), unit, number(s.Low), number(s.High))
}

// number has three digits that say something.
func number(v float64) string {
	digits := 0
	if v != 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return strconv.FormatFloat(v, 'f', min(digits, 2), 64)
}

func (r Result) verdict() string {
	switch {
	case r.Missing != "":
		return "not measured: " + r.Missing
	case r.Met == nil:
		return ""
	case *r.Met:
		return "met"
	}
	return "missed"
}

// What is between these lines of the document is the table.
const (
	tableBegin = "<!-- make bench writes from here -->"
	tableEnd   = "<!-- to here -->"
)

func replaceTable(doc, table string) (string, error) {
	before, rest, ok := strings.Cut(doc, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("there is no place for the table: %q and %q", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + table + tableEnd + after, nil
}

// markdown is the table as the document has it.
func markdown(r Report) string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "\nMeasured on %s in %.0f minutes, on %d CPUs (%s) with %s, Linux %s, podman %s, runsc %s, Go %s;\n"+
		"between the experiments, others had at most %.0f %% of the machine. Medians, in brackets the middle half.\n\n",
		r.Date, math.Ceil(r.Seconds/60), m.CPUs, m.CPU, m.Memory, m.Kernel, m.Podman, m.Runsc, m.Go, r.Busy*100)
	b.WriteString("| Row | What | Beside | lazaret | beside it | Ratio | Aim | |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s | %s | %s |\n", row.ID, row.ID, row.What, row.Beside,
			row.Ours.text(row.Unit), row.Theirs.text(row.Unit), row.Ratio.text("×"), strings.Join(row.Aims, ", "), row.verdict())
	}
	b.WriteString("\n")
	return b.String()
}
