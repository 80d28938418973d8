package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestHush(t *testing.T) {
	var out bytes.Buffer
	h := &hush{w: &out}
	fmt.Fprint(h, "before ")
	h.during(func() error {
		fmt.Fprint(h, "meanwhile ")
		if out.String() != "before " {
			t.Errorf("%q is written during a question", out.String())
		}
		fmt.Fprint(h, strings.Repeat("x", 2*keptMost)) // a flood
		return nil
	})
	fmt.Fprint(h, "after")
	if got := out.String(); got != "before meanwhile after" {
		t.Errorf("%.80q", got)
	}
}
