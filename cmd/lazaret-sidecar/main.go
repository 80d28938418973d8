// Command lazaret-sidecar is what runs in the network sidecar: pid 1, and the
// only file, of an image assembled from nothing else.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: lazaret-sidecar [--help | --version]

Runs as the only process of a sandbox's network sidecar until it is told to
end by SIGTERM or SIGINT. lazaret starts it; it is of no use by itself.
`

const version = "lazaret-sidecar 0\n"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	// Before the first line, which says that it is ready to be told.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	switch {
	case len(args) == 0:
	case args[0] == "--help":
		io.WriteString(stdout, usage)
		return 0
	case args[0] == "--version":
		io.WriteString(stdout, version)
		return 0
	default:
		io.WriteString(stderr, usage)
		return 2
	}
	io.WriteString(stdout, version)
	<-ended
	return 0
}
