package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"lazaret/internal/step"
	"lazaret/launch"
	"lazaret/lock"
	"lazaret/lock/config"
)

// check is one thing that doctor tries.
type check struct {
	what, arg string // for the probe
	why       string // what it is, for a person
	want      string // wantWorks, wantDenied or wantOpen

	found  string // by the probe
	denied bool   // the router says so
}

// What a check is to find.
const (
	wantWorks  = "works"      // there is an answer
	wantDenied = "denied"     // nothing answers, and the router counted it
	wantOpen   = "not denied" // whether anybody answers or not
)

// unlisted is a name that nobody allows and that no name server has.
const unlisted = "lazaret-doctor.invalid"

// checksMost bounds how much is tried.
const checksMost = 200

// checksOf works out what to try.
func checksOf(n lock.Network, plan *launch.Plan, own []netip.Addr) (out []check) {
	add := func(c check) {
		if len(out) < checksMost && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	denied := func(a netip.Addr, port uint16, why string) {
		to := netip.AddrPortFrom(a, port)
		if plan.Denies(to) {
			add(check{what: "tcp", arg: to.String(), why: why, want: wantDenied})
		}
	}
	add(check{what: "raw", why: "raw sockets", want: wantDenied})
	metadata := netip.AddrFrom4([4]byte{169, 254, 169, 254})
	denied(metadata, 80, "cloud metadata")
	denied(netip.MustParseAddr("fd00:ec2::254"), 80, "cloud metadata")
	if plan.Denies(netip.AddrPortFrom(metadata, 53)) {
		add(check{what: "udp", arg: "169.254.169.254:53", why: "cloud metadata", want: wantDenied})
	}
	for _, s := range plan.OwnRanges() {
		p := netip.MustParsePrefix(s)
		denied(p.Addr().Next(), 22, "the router's own network")
	}
	denied(netip.AddrFrom4([4]byte{10, 0, 2, 2}), 22, "the router's gateway")
	for _, a := range own {
		if a.IsLoopback() || a.IsLinkLocalUnicast() {
			continue
		}
		// Only a range of just this address would open it.
		only := netip.PrefixFrom(a, a.BitLen())
		if !slices.ContainsFunc(n.Allow, func(s string) bool { e, err := config.ParseEndpoint(s); return err == nil && e.Prefix == only }) {
			add(check{what: "tcp", arg: netip.AddrPortFrom(a, 22).String(), why: "this machine", want: wantDenied})
		}
	}
	for _, s := range n.Deny {
		if p, err := netip.ParsePrefix(s); err == nil {
			denied(inside(p), 443, "deny "+s)
		}
	}
	add(check{what: "ask", arg: "10.0.2.3:53", why: "another name server", want: wantDenied})
	if n.DNS != "open" {
		add(check{what: "name", arg: unlisted, why: "a name that is not listed", want: wantDenied})
	}
	for _, s := range n.Allow {
		e, err := config.ParseEndpoint(s)
		if err != nil || e.Proto == "udp" {
			continue
		}
		port := e.Port
		if port == 0 {
			port = 443
		}
		if to := netip.AddrPortFrom(inside(e.Prefix), port); !plan.Denies(to) {
			add(check{what: "tcp", arg: to.String(), why: "allow " + s, want: wantOpen})
		}
	}
	for _, s := range n.Hosts {
		h, err := config.ParseHost(s)
		if err != nil || h.Proto == "udp" || strings.HasPrefix(h.Name, "*.") {
			continue
		}
		add(check{what: "tcp", arg: net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))), why: "host " + s, want: wantWorks})
	}
	return out
}

// inside is an address of a range that can be somebody's.
func inside(p netip.Prefix) netip.Addr {
	if p.IsSingleIP() {
		return p.Addr()
	}
	if p.Bits() == 0 {
		// Documentation addresses: they belong to nobody.
		if p.Addr().Is4() {
			return netip.AddrFrom4([4]byte{203, 0, 113, 1})
		}
		return netip.MustParseAddr("2001:db8::1")
	}
	return p.Addr().Next()
}

// examine runs the plan, and notes what the probe and the router said.
func examine(cmd *cobra.Command, d *deps, plan *launch.Plan, checks []check) error {
	_, _, stderr := files(cmd)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	answers := make(chan []string, 1)
	go func() {
		var lines []string
		for s := bufio.NewScanner(io.LimitReader(r, 1<<20)); s.Scan(); {
			lines = append(lines, s.Text())
		}
		answers <- lines
	}()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	denied := map[string]bool{}
	status, err := plan.Run(ctx, launch.IO{Stdin: null, Stdout: w, Stderr: stderr, Observe: func(e step.Event) error {
		if e.Kind == step.Denied {
			denied[e.Attr["protocol"]+" "+e.Attr["address"]+" "+e.Attr["port"]] = true
			denied["name "+e.Attr["name"]] = true
		}
		if d.observe != nil {
			return d.observe(e)
		}
		return nil
	}})
	w.Close()
	lines := <-answers
	if err != nil {
		return unlessSignalled(ctx, err)
	}
	if status != 0 || len(lines) != len(checks) {
		return hinted{
			fmt.Errorf("the probe ended with status %d: %s", status, config.Show(strings.Join(lines, " "))),
			"see whether \"lazaret launch\" works with this profile",
		}
	}
	for i := range checks {
		c := &checks[i]
		c.found = lines[i]
		switch c.what {
		case "name":
			c.denied = denied["name "+c.arg]
		case "ask":
			c.denied = denied["udp 10.0.2.3 53"]
		default:
			if to, err := netip.ParseAddrPort(c.arg); err == nil {
				c.denied = denied[c.what+" "+to.Addr().String()+" "+strconv.Itoa(int(to.Port()))]
			}
		}
	}
	return nil
}

// good tells whether a check found what it is to find.
func (c check) good(network, ipv6 bool) bool {
	switch c.want {
	case wantWorks:
		return c.found == probeWorks
	case wantOpen:
		return !c.denied
	}
	// Without IPv6, the sandbox itself has no way to such an address.
	nowhere := !ipv6 && strings.HasPrefix(c.arg, "[")
	return c.found != probeWorks && (c.denied || !network || c.what == "raw" || nowhere)
}

func tellChecks(out io.Writer, checks []check, network bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TRIED\tWHAT IT IS\tMUST BE\tFOUND\t")
	wrong, ipv6 := 0, launch.HostIPv6()
	for _, c := range checks {
		verdict := ""
		if !c.good(network, ipv6) {
			verdict = "WRONG"
			wrong++
		}
		found := config.Show(c.found)
		if c.denied {
			found += ", denied by the router"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", config.Show(strings.TrimSpace(c.what+" "+c.arg)), config.Show(c.why), c.want, found, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return hinted{errors.New(count(wrong, "thing") + " not as the lock has it"), "docs/troubleshooting.md says what each line that is WRONG can mean"}
	}
	return nil
}
