package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// probeCommand is what doctor runs in the sandbox.
const probeCommand = "sandbox-probe"

// Times of a probe.
const (
	probeTime  = 3 * time.Second // for an answer
	probeAtOne = 16              // probes at once
)

// newProbeCmd is not for people: doctor runs it inside a sandbox. Each pair of
// arguments is one thing to try; a line answers each, in order.
func newProbeCmd() *cobra.Command {
	return &cobra.Command{
		Use:    probeCommand,
		Short:  "Try what this sandbox may do (run by doctor)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args)%2 != 0 {
				return usage("%s is run by lazaret doctor, not by hand", probeCommand)
			}
			out := make([]string, len(args)/2)
			slots := make(chan struct{}, probeAtOne)
			var wg sync.WaitGroup
			for i := range out {
				slots <- struct{}{}
				wg.Go(func() {
					out[i] = probe(cmd.Context(), args[2*i], args[2*i+1])
					<-slots
				})
			}
			wg.Wait()
			for _, o := range out {
				fmt.Fprintln(cmd.OutOrStdout(), o)
			}
			return nil
		},
	}
}

// What a probe found.
const (
	probeWorks    = "works"
	probeRefused  = "refused"
	probeSilence  = "silence"
	probeNoAnswer = "no answer"
)

func probe(ctx context.Context, what, arg string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	switch what {
	case "self": // that a probe runs at all
		return probeWorks
	case "leak": // a name: that there is none is an answer too, of somebody who was asked
		_, err := net.DefaultResolver.LookupHost(ctx, arg)
		var dns *net.DNSError
		if err != nil && !(errors.As(err, &dns) && dns.IsNotFound) {
			return probeNoAnswer
		}
		return probeWorks
	case "tcp":
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", arg)
		if err == nil {
			c.Close()
		}
		return found(err)
	case "udp":
		return found(probeUDP(ctx, arg))
	case "name":
		_, err := net.DefaultResolver.LookupHost(ctx, arg)
		if err != nil {
			return probeNoAnswer
		}
		return probeWorks
	case "ask": // a name server other than the router
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, arg)
		}}
		if _, err := r.LookupHost(ctx, unlisted); err != nil {
			var dns *net.DNSError
			if !errors.As(err, &dns) || !dns.IsNotFound {
				return probeNoAnswer
			}
		}
		return probeWorks
	case "unix": // a socket
		return found(probeSocket(ctx, arg, ""))
	case "say": // a socket, a blank, and what to say there
		path, text, _ := strings.Cut(arg, " ")
		if err := probeSocket(ctx, path, text+"\n"); err != nil {
			return probeNoAnswer + ": " + err.Error()
		}
		return probeWorks
	case "rewrite": // a file, with what it holds already
		b, err := os.ReadFile(arg)
		if err == nil && len(b) == 0 {
			return probeNoAnswer
		}
		if err == nil {
			err = os.WriteFile(arg, b, 0)
		}
		return found(err)
	case "setuid":
		return found(os.Chmod(arg, 0o755|os.ModeSetuid))
	case "swap": // two names, and a third that each gets by turns for as long as a probe may take
		n := strings.Fields(arg)
		for len(n) == 3 && ctx.Err() == nil {
			os.Rename(n[0], n[2])
			os.Rename(n[2], n[0])
			os.Rename(n[1], n[2])
			os.Rename(n[2], n[1])
		}
		return probeWorks
	case "raw":
		for _, s := range [][3]int{{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW}, {unix.AF_PACKET, unix.SOCK_RAW, 0}} {
			if fd, err := unix.Socket(s[0], s[1], s[2]); err == nil {
				unix.Close(fd)
				return probeWorks
			}
		}
		return probeRefused
	}
	return "what?"
}

// probeSocket says something at a socket. Only an answer counts.
func probeSocket(ctx context.Context, path, text string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

func found(err error) string {
	var n net.Error
	switch {
	case err == nil:
		return probeWorks
	case errors.As(err, &n) && n.Timeout() || errors.Is(err, os.ErrDeadlineExceeded):
		return probeSilence
	}
	return probeRefused
}

// probeUDP sends something. Only an answer says that it arrived.
func probeUDP(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	if _, err := io.WriteString(c, "lazaret doctor"); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}
