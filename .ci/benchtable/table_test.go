package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const document = "../../docs/performance.md"

// TestEveryRowIsExplained: the document has a section for every row, in the
// table's order, and none for what is not one.
func TestEveryRowIsExplained(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var explained, want []string
	for _, m := range regexp.MustCompile(`(?m)^### (.*)\n\n\S`).FindAllStringSubmatch(string(text), -1) {
		explained = append(explained, m[1])
	}
	for _, r := range rows {
		want = append(want, r.ID)
	}
	if !slices.Equal(explained, want) {
		t.Errorf("%s explains\n%q\nand the rows are\n%q", document, explained, want)
	}
	_, table, _ := strings.Cut(string(text), tableBegin)
	table, _, _ = strings.Cut(table, tableEnd)
	for _, m := range regexp.MustCompile(`(?m)^\| \[([a-z0-9-]+)\]`).FindAllStringSubmatch(table, -1) {
		if !slices.Contains(want, m[1]) {
			t.Errorf("the table has %s, which is no row: run make bench", m[1])
		}
	}
}

// TestEverySeriesIsMeasured: what a row needs comes from one experiment, since
// only what is measured in turn can be compared.
func TestEverySeriesIsMeasured(t *testing.T) {
	from := map[string]string{}
	for _, e := range experiments {
		for _, s := range e.series {
			if from[s] != "" {
				t.Errorf("%s comes from %s and from %s", s, from[s], e.name)
			}
			from[s] = e.name
		}
	}
	used := map[string]bool{}
	for _, r := range rows {
		used[r.Ours], used[r.Theirs] = true, true
		if from[r.Ours] == "" || r.Theirs != "" && from[r.Theirs] != from[r.Ours] {
			t.Errorf("row %s: %s is from %q, %s from %q", r.ID, r.Ours, from[r.Ours], r.Theirs, from[r.Theirs])
		}
		for _, a := range r.Aims {
			if a.Kind != AtMost && r.Theirs == "" {
				t.Errorf("row %s: %s of what?", r.ID, a.text(r.Unit))
			}
		}
	}
	for s := range from {
		if !used[s] {
			t.Errorf("no row shows %s", s)
		}
	}
}

func TestJudge(t *testing.T) {
	taken := Taken{
		Samples: map[string][]float64{"a": {10, 30, 20, 40, 50}, "b": {10, 10, 10, 20, 10}},
		Missing: map[string]string{"c": "there is none"},
	}
	for _, tt := range []struct {
		row  Row
		want string
	}{
		{Row{Ours: "a", Theirs: "b", Aims: []Aim{times(3)}}, "30.0 ms (20.0–40.0) | 10.0 ms (10.0–10.0) | 3.00 (2.00–3.00) | ≤ 3× | met"},
		{Row{Ours: "a", Theirs: "b", Aims: []Aim{times(2.9)}}, "30.0 ms (20.0–40.0) | 10.0 ms (10.0–10.0) | 3.00 (2.00–3.00) | ≤ 2.9× | missed"},
		{Row{Ours: "a", Theirs: "b", Aims: []Aim{atLeast(0.9), more(19)}}, "30.0 ms (20.0–40.0) | 10.0 ms (10.0–10.0) | 3.00 (2.00–3.00) | ≥ 0.9×, ≤ 19 ms more | missed"},
		{Row{Ours: "a", Theirs: "b", At: 1, Aims: []Aim{atMost(50)}}, "50.0 ms (20.0–40.0) | 20.0 ms (10.0–10.0) | 2.50 (2.00–3.00) | ≤ 50 ms | met"},
		{Row{Ours: "a", Theirs: "c", Aims: []Aim{times(3)}}, "30.0 ms (20.0–40.0) | – | – | ≤ 3× | not measured: there is none"},
		{Row{Ours: "d"}, "– | – | – |  | not measured: it was not asked for"},
	} {
		tt.row.Unit = "ms"
		r := judge(tt.row, taken)
		got := strings.Join([]string{r.Ours.text("ms"), r.Theirs.text("ms"), r.Ratio.text("×"), strings.Join(r.Aims, ", "), r.verdict()}, " | ")
		if got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestPublish: only a whole run on a quiet machine changes the document, and
// nothing of it but the table.
func TestPublish(t *testing.T) {
	const old = "before\n" + tableBegin + "\nold\n" + tableEnd + "\nafter\n"
	for _, tt := range []struct {
		name   string
		report Report
		keeps  bool
	}{
		{"whole and quiet", Report{Whole: true}, false},
		{"some rows", Report{}, true},
		{"a busy machine", Report{Whole: true, Busy: 0.3}, true},
	} {
		doc := t.TempDir() + "/doc.md"
		if err := os.WriteFile(doc, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		tt.report.Rows = []Result{judge(Row{ID: "lock", Ours: "a"}, Taken{Samples: map[string][]float64{"a": {1}}})}
		var out strings.Builder
		if err := publish(tt.report, "", doc, &out); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(doc)
		kept := string(text) == old
		if kept != tt.keeps || !strings.HasPrefix(string(text), "before\n") || !strings.HasSuffix(string(text), "\nafter\n") ||
			!kept && !strings.Contains(string(text), "| [lock](#lock) |") {
			t.Errorf("%s: %s\n%s", tt.name, text, &out)
		}
	}
	if err := publish(Report{Whole: true, Rows: []Result{{ID: "lock", Missing: "it broke", Failed: true}}}, "", "no such file", io.Discard); err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("a row that failed: %v", err)
	}
	if _, err := replaceTable("no place\n", ""); err == nil {
		t.Error("a document without a place for the table was changed")
	}
}
