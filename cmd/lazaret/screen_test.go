package main

import (
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		line    string
		columns int
		want    []string
	}{
		{"  + reaches host example.org", 80, []string{"  + reaches host example.org"}},
		{"  + reaches host example.org:443", 22, []string{"  + reaches host", "      example.org:443"}},
		{"  + mounts " + strings.Repeat("x", 30), 24, []string{"  + mounts", "      xxxxxxxxxxxxxxxxxx", "      xxxxxxxxxxxx"}},
		{"  + a b c", 10, []string{"  + a b c"}}, // too narrow to fold
		{"", 40, []string{""}},
		{"    four in", 40, []string{"    four in"}},
		{"  + " + strings.Repeat("表", 12), 20, []string{"  + 表表表表表表表表", "      表表表表"}},
	} {
		if got := fold(tt.line, tt.columns); !slices.Equal(got, tt.want) {
			t.Errorf("%q at %d: %q, want %q", tt.line, tt.columns, got, tt.want)
		}
	}
}

// Nothing of a folded line begins where a mark or a heading does, whatever
// whoever wrote it put in, and nothing is lost.
func FuzzFold(f *testing.F) {
	f.Add("! + runs \"x                    ! + reaches everything\" on the host", 24)
	f.Add("  + mounts "+strings.Repeat("表 ", 40), 60)
	f.Fuzz(func(t *testing.T, line string, columns int) {
		line = strings.ToValidUTF8(strings.ReplaceAll(line, "\n", ""), "?")
		parts := fold(line, columns)
		letters := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if letters(strings.Join(parts, "")) != letters(line) {
			t.Errorf("%q became %q", line, parts)
		}
		for i, p := range parts {
			n := 0
			for _, r := range p {
				n += width(r)
			}
			if columns >= 20 && n > columns {
				t.Errorf("%q is longer than %d", p, columns)
			}
			if i > 0 && !strings.HasPrefix(p, hang) {
				t.Errorf("%q is not set in", p)
			}
		}
	})
}

func TestFoldLines(t *testing.T) {
	got := foldLines("lazaret: error: it is not there\n  a line of a list that is long\nlazaret: hint", 24, "\r\n")
	if want := "lazaret: error: it is\r\n      not there\r\n  a line of a list that is long\r\nlazaret: hint"; got != want {
		t.Errorf("%q", got)
	}
}
