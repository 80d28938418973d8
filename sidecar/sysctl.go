package sidecar

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Sysctls are the kernel settings of the router's namespace, by file below
// /proc/sys/net.
func Sysctls() map[string]string {
	return map[string]string{
		"ipv4/ip_forward":          "1",
		"ipv6/conf/all/forwarding": "1",
		// Or all but a few of the answers to what is denied would be withheld.
		"ipv4/icmp_ratelimit": "0",
		"ipv6/icmp/ratelimit": "0",
	}
}

// LinkSysctls are the kernel settings of the router's end of the link, by file
// below /proc/sys/net. A fresh interface believes what its neighbour says
// about routes: one router advertisement from the sandbox would make the agent
// the router's own router, and what it then says of names would open any
// address.
func LinkSysctls(link string, ipv6 bool) map[string]string {
	m := map[string]string{}
	for k, v := range map[string]string{
		"accept_redirects": "0", "secure_redirects": "0", "send_redirects": "0", "accept_source_route": "0",
		"rp_filter": "1", "arp_ignore": "1", "proxy_arp": "0",
	} {
		m["ipv4/conf/"+link+"/"+k] = v
	}
	off := "1"
	if ipv6 {
		off = "0"
	}
	for k, v := range map[string]string{
		"disable_ipv6": off, "accept_ra": "0", "autoconf": "0", "accept_redirects": "0", "accept_source_route": "0", "proxy_ndp": "0",
	} {
		m["ipv6/conf/"+link+"/"+k] = v
	}
	return m
}

// procSys is where the settings lie. They are those of the reader's network
// namespace.
const procSys = "/proc/sys/net"

func checkSysctls(want map[string]string) error {
	for name, v := range want {
		b, err := os.ReadFile(filepath.Join(procSys, name))
		if os.IsNotExist(err) && strings.HasPrefix(name, "ipv6/") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("reading back net/%s: %w", name, err)
		}
		if got := strings.TrimSpace(string(b)); got != v {
			return fmt.Errorf("reading back net/%s: %q instead of %q", name, got, v)
		}
	}
	return nil
}
