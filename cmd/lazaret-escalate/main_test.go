package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, test := range []struct {
		args     []string
		status   int
		out, err string // parts
	}{
		{[]string{"--help"}, 0, "usage: lazaret-escalate", ""},
		{nil, exitUsage, "", "usage: lazaret-escalate"},
		{[]string{"--reason", "because", "--", "id"}, exitUnavailable, "", "no channel to the host"},
		{[]string{"id"}, exitUnavailable, "", "no channel to the host"},
	} {
		var out, errs bytes.Buffer
		status := run(test.args, &out, &errs)
		if status != test.status || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.err) ||
			test.out == "" && out.Len() > 0 || test.err == "" && errs.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q", test.args, status, out.String(), errs.String())
		}
	}
}
