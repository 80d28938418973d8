package config

import (
	"cmp"
	"strconv"
	"strings"
)

// ParsePort reads an entry of ports: "1455", or "8080:80" for host:sandbox.
// The host side is always the loopback address, the protocol always TCP.
func ParsePort(s string) (Port, error) {
	const want = `write "1455", or "8080:80" for host:sandbox`
	if strings.Contains(s, "/") {
		return Port{}, errorf(want, "%s: ports are always TCP", quote(s))
	}
	parts := strings.Split(s, ":")
	if len(parts) > 2 {
		return Port{}, errorf(want, "%s: the host side is always its loopback address", quote(s))
	}
	var p Port
	var err error
	if p.Host, err = portNumber(parts[0]); err != nil {
		return Port{}, err
	}
	p.Sandbox = p.Host
	if len(parts) == 2 {
		if p.Sandbox, err = portNumber(parts[1]); err != nil {
			return Port{}, err
		}
	}
	return p, nil
}

// String gives the text that ParsePort reads back to the same Port.
func (p Port) String() string {
	s := strconv.Itoa(int(p.Host))
	if p.Host != p.Sandbox {
		s += ":" + strconv.Itoa(int(p.Sandbox))
	}
	return s
}

// Compare orders by host port, then by sandbox port.
func (p Port) Compare(o Port) int {
	return cmp.Or(cmp.Compare(p.Host, o.Host), cmp.Compare(p.Sandbox, o.Sandbox))
}
