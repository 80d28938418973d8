// Command lazaret-sidecar is the only program of a sandbox's network sidecar:
// a router that takes its policy from the lazaret that started it.
package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lazaret/sidecar"
)

const usage = `usage: lazaret-sidecar [--help | --version]

Runs as the only process of a sandbox's network sidecar, takes its policy from
the lazaret that started it, and ends with that. It is of no use by itself.
`

const version = "lazaret-sidecar 1\n"

// Where lazaret and podman put what the router needs.
const (
	socket     = "/run/lazaret/sidecar.sock"
	resolvConf = "/etc/resolv.conf"
	link       = "lan0"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
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
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, "unix", socket)
	if err == nil {
		err = sidecar.Run(ctx, conn, sidecar.Options{Link: link, ResolvConf: resolvConf})
	}
	if err != nil && ctx.Err() == nil {
		io.WriteString(stderr, "lazaret-sidecar: "+err.Error()+"\n")
		return 1
	}
	return 0
}
