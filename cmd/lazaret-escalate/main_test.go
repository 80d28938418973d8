package main

import (
	"bytes"
	"strings"
	"testing"

	"lazaret/escalate/wire"
)

func TestRun(t *testing.T) {
	nowhere := wire.Channel{Socket: "/nowhere/socket", Certs: "/nowhere"}
	for _, test := range []struct {
		args     []string
		status   int
		out, err string // parts
	}{
		{[]string{"--help"}, 0, "usage: lazaret-escalate", ""},
		{nil, exitUsage, "", "which command?"},
		{[]string{"--reason"}, exitUsage, "", "--reason takes a value"},
		{[]string{"--stdin=1", "id"}, exitUsage, "", "--stdin takes no value"},
		{[]string{"--timeout", "soon", "id"}, exitUsage, "", `"soon" is no time`},
		{[]string{"--resaon=x", "id"}, exitUsage, "", "no option --resaon"},
		{[]string{"a\x00b"}, exitUsage, "", "holds a NUL"},
		{[]string{strings.Repeat("x", wire.MaxCommand+1)}, exitUsage, "", "longer than"},
		{[]string{"--reason", "because", "--", "id"}, exitUnavailable, "", "no channel to the host"},
		{[]string{"id", "--json"}, exitUnavailable, "", "no channel to the host"},
		{[]string{"--json", "id"}, exitUnavailable, `"status":"no_channel"`, ""},
	} {
		var out, errs bytes.Buffer
		status := run(test.args, nowhere, strings.NewReader(""), &out, &errs)
		if status != test.status || !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.err) ||
			test.out == "" && out.Len() > 0 || test.err == "" && errs.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q", test.args, status, out.String(), errs.String())
		}
	}
}
