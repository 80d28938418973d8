package config

import (
	"errors"
	"testing"
)

func hintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint()
	}
	return ""
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"10.20.0.0/16":                 "10.20.0.0/16",
		"0.0.0.0/0":                    "0.0.0.0/0",
		"::/0":                         "::/0",
		"10.0.0.5/32:5432":             "10.0.0.5/32:5432",
		"10.0.0.5/32:53/udp":           "10.0.0.5/32:53/udp",
		"2001:DB8::/32":                "2001:db8::/32",
		"2001:0db8:0:0::/32":           "2001:db8::/32",
		"[2001:db8::/32]:443":          "[2001:db8::/32]:443",
		"[2001:db8::/32]:443/tcp":      "[2001:db8::/32]:443/tcp",
		"64:ff9b::/96":                 "64:ff9b::/96",
		"[::/0]:65535/udp":             "[::/0]:65535/udp",
		"255.255.255.255/32:65535/tcp": "255.255.255.255/32:65535/tcp",
	} {
		e, err := ParseEndpoint(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if e.String() != want {
			t.Errorf("%s gives %s, want %s", in, e, want)
		}
	}
}

func TestParseEndpointErrors(t *testing.T) {
	for _, c := range []struct{ in, msg, hint string }{
		{"", `is empty`, ``},
		{"10.0.0.5", `"10.0.0.5" is an address without a length`, `write "10.0.0.5/32"`},
		{"2001:db8::1", `"2001:db8::1" is an address without a length`, `write "2001:db8::1/128"`},
		{"10.0.0.5:5432", `"10.0.0.5:5432" is an address without a length`, `write "10.0.0.5/32:5432"`},
		{"[2001:db8::1]:443", `"2001:db8::1" is an address without a length`, `write "2001:db8::1/128"`},
		{"10.0.0.5/8", `"10.0.0.5/8": the address goes on after its first 8 bits`, `write "10.0.0.0/8", or "10.0.0.5/32" for the one address`},
		{"2001:db8::1/32", `"2001:db8::1/32": the address goes on after its first 32 bits`, `write "2001:db8::/32", or "2001:db8::1/128" for the one address`},
		{"::ffff:10.0.0.0/104", `"::ffff:10.0.0.0/104" is an IPv4 address written as IPv6`, `write "10.0.0.0/8"`},
		{"::ffff:10.0.0.5/128", `"::ffff:10.0.0.5/128" is an IPv4 address written as IPv6`, `write "10.0.0.5/32"`},
		{"::ffff:a9fe:a9fe", `"::ffff:a9fe:a9fe" is an address without a length`, `write "169.254.169.254/32"`},
		{"010.0.0.0/8", `"010.0.0.0/8": leading zeros are octal to some programs`, `write "10.0.0.0/8"`},
		{"10.000.0.0/8", `"10.000.0.0/8": leading zeros are octal to some programs`, `write "10.0.0.0/8"`},
		{"fe80::1%eth0/64", `"fe80::1%eth0/64": a zone means nothing on another machine`, `write "fe80::/64"`},
		{"fe80::1%eth0", `"fe80::1%eth0" is an address without a length`, `write "fe80::1/128"`},
		{"10/8", `"10/8": an address has four parts`, `write "10.0.0.0/8"`},
		{"192.168/16", `"192.168/16": an address has four parts`, `write "192.168.0.0/16"`},
		{"10.0.0.0/08", `"10.0.0.0/08": "08" is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"10.0.0.0/33", `"10.0.0.0/33": "33" is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"10.0.0.0/-1", `"10.0.0.0/-1": "-1" is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"10.0.0.0/+8", `"10.0.0.0/+8": "+8" is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"10.0.0.0/", `"10.0.0.0/": "" is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"::/129", `"::/129": "129" is not a length for this address`, `write a number from 0 to 128 after the slash`},
		{"10.0.0.0/255.0.0.0", `"10.0.0.0/255.0.0.0": "255.0.0.0" is not a length for this address`, `write "10.0.0.0/8"`},
		{" 10.0.0.0/8", `" 10.0.0.0/8" is not an address range`, `write an address range such as 10.20.0.0/16`},
		{"10.0.0.0/8 ", `"10.0.0.0/8 ": "8 " is not a length for this address`, `write a number from 0 to 32 after the slash`},
		{"pypi.org", `"pypi.org" is a name, not an address range`, `put "pypi.org:443" into allow_hosts`},
		{"10.0.0.0/8/udp", `"10.0.0.0/8/udp": a protocol needs a port`, `write "10.0.0.0/8:53/udp"`},
		{"10.0.0.0/8:", `"10.0.0.0/8:" ends in a colon without a port`, `write "10.0.0.0/8"`},
		{"10.0.0.0/8:0", `"0" is not a port`, `write a number from 1 to 65535`},
		{"10.0.0.0/8:65536", `"65536" is not a port`, `write a number from 1 to 65535`},
		{"10.0.0.0/8:080", `"080" is not a port`, `write a number from 1 to 65535`},
		{"10.0.0.0/8:+80", `"+80" is not a port`, `write a number from 1 to 65535`},
		{"10.0.0.0/8:80/sctp", `"sctp" is not a protocol`, `write tcp or udp, or leave it out for both`},
		{"10.0.0.0/8:80/", `"" is not a protocol`, `write tcp or udp, or leave it out for both`},
		{"10.0.0.0/8:80/TCP", `"TCP" is not a protocol`, `write tcp or udp, or leave it out for both`},
		{"2001:db8::/32:443", `"2001:db8::/32:443": an IPv6 range with a port needs brackets`, `write "[2001:db8::/32]:443"`},
		{"[2001:db8::/32]", `"[2001:db8::/32]": brackets are for a port that follows`, `write "2001:db8::/32"`},
		{"[2001:db8::/32]443", `"[2001:db8::/32]443": brackets are followed by :port`, `write "[2001:db8::/32]:443"`},
		{"[2001:db8::/32", `"[2001:db8::/32" has no ]`, `write [addr/len]:port`},
		{"[2001:db8::/32]:", `"" is not a port`, `write a number from 1 to 65535`},
		{"[10.0.0.0/8]:80", `"[10.0.0.0/8]:80": brackets are for IPv6`, `write "10.0.0.0/8:80"`},
	} {
		e, err := ParseEndpoint(c.in)
		if err == nil {
			t.Errorf("%q gives %s", c.in, e)
			continue
		}
		if err.Error() != c.msg || hintOf(err) != c.hint {
			t.Errorf("%q gives %s; %s\nwant %s; %s", c.in, err, hintOf(err), c.msg, c.hint)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "10.0.0.5/32:5432", "[2001:db8::/32]:443/tcp", "::ffff:1.2.3.4/128", "010.0.0.0/8", "fe80::1%x/64", "10/8", "[::]:1", "a/b:c", "[/]:1", "10.0.0.0/255.0.0.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			return
		}
		if a := e.Prefix.Addr(); a.Is4In6() || a.Zone() != "" || e.Prefix != e.Prefix.Masked() || !e.Prefix.IsValid() {
			t.Fatalf("%q gives the loose range %s", s, e.Prefix)
		}
		if e.Port == 0 && e.Proto != "" {
			t.Fatalf("%q has a protocol and no port", s)
		}
		again, err := ParseEndpoint(e.String())
		if err != nil || again != e {
			t.Fatalf("%q gives %s, which gives %s, %v", s, e, again, err)
		}
	})
}

func FuzzParsePort(f *testing.F) {
	for _, seed := range []string{"1455", "8080:80", "80:80", "0", "1:2:3", "1/udp", "+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePort(s)
		if err != nil {
			return
		}
		if again, err := ParsePort(p.String()); err != nil || again != p || p.Host == 0 || p.Sandbox == 0 {
			t.Fatalf("%q gives %s, which gives %s, %v", s, p, again, err)
		}
	})
}
