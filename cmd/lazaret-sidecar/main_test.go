package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args     []string
		status   int
		out, err string
	}{
		{[]string{"--help"}, 0, usage, ""},
		{[]string{"--version"}, 0, version, ""},
		{[]string{"--nope"}, 2, "", usage},
	} {
		var out, errs bytes.Buffer
		if status := run(test.args, &out, &errs); status != test.status || out.String() != test.out || errs.String() != test.err {
			t.Errorf("%q: status %d, %q, %q", test.args, status, out.String(), errs.String())
		}
	}
}

// TestWithoutHost: it is of no use by itself, and says so.
func TestWithoutHost(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(nil, &out, &errs); status != 1 || out.Len() > 0 || !strings.Contains(errs.String(), socket) {
		t.Errorf("status %d, %q, %q", status, out.String(), errs.String())
	}
}
