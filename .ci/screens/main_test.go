package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// What a terminal shows is drawn in its colours, escaped, without the rows that
// are empty below it.
func TestDraw(t *testing.T) {
	var b strings.Builder
	capture := "\x1b[1;31mred\x1b[0m \x1b[7m<&>\x1b[0m\n\x1b[38;2;1;2;3mtrue\x1b[39m\x1b[48;5;196mtable\n   \n\n"
	if err := draw(&b, strings.NewReader(capture), 20, "a <title>"); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		`fill="` + palette[1] + `" font-weight="bold">red<`,
		`fill="` + ground + `">&lt;&amp;&gt;<`, // in reverse
		`fill="#010203">true<`,
		`fill="#ff0000"/>`, // behind "table"
		`>a &lt;title&gt;<`,
		` height="94" `, // two rows
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, got)
		}
	}
}
