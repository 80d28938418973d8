// Command lazaret-escalate asks the host, from inside a sandbox, to run a
// command. This build knows no channel to the host and says so.
package main

import (
	"io"
	"os"
)

const usage = `usage: lazaret-escalate [--reason TEXT] [--] COMMAND [ARGUMENT...]

Asks the person at the host to run COMMAND there. Exits with its status;
77: denied, 75: nobody answered in time, 69: no channel to the host,
76: the host's answer was not understood.
`

// Exit statuses, after sysexits.h.
const (
	exitUsage       = 64
	exitUnavailable = 69
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 0:
		io.WriteString(stderr, usage)
		return exitUsage
	case args[0] == "--help":
		io.WriteString(stdout, usage)
		return 0
	}
	io.WriteString(stderr, "lazaret-escalate: no channel to the host\n")
	return exitUnavailable
}
