package config

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	long := strings.Repeat("a.", 126) + "b" // 253
	for in, want := range map[string]string{
		"pypi.org":                   "pypi.org:443",
		"PyPI.ORG.":                  "pypi.org:443",
		"pypi.org:443":               "pypi.org:443",
		"pypi.org:8443/tcp":          "pypi.org:8443/tcp",
		"ntp.example.org:123/udp":    "ntp.example.org:123/udp",
		"pypi.org.:80":               "pypi.org:80",
		"*.example.org":              "*.example.org:443",
		"*.Example.org:1":            "*.example.org:1",
		"xn--bcher-kva.example":      "xn--bcher-kva.example:443",
		"my_bucket.s3.amazonaws.com": "my_bucket.s3.amazonaws.com:443",
		"registry":                   "registry:443",
		"1.2.3.example":              "1.2.3.example:443",
		"a.0x":                       "", // an address to some resolvers
		long:                         long + ":443",
	} {
		h, err := ParseHost(in)
		if want == "" {
			if err == nil {
				t.Errorf("%s gives %s", in, h)
			}
			continue
		}
		if err != nil || h.String() != want {
			t.Errorf("%s gives %s, %v; want %s", in, h, err, want)
		}
	}
}

func TestParseHostErrors(t *testing.T) {
	const example = "write a name such as pypi.org or *.example.org"
	for _, c := range []struct{ in, msg, hint string }{
		{"", `is empty`, ``},
		{".", `"" has an empty part`, example},
		{"a..b", `"a..b" has an empty part`, example},
		{".a", `".a" has an empty part`, example},
		{"-a.b", `"-a.b": a part starts or ends with -`, example},
		{"a-.b", `"a-.b": a part starts or ends with -`, example},
		{"a b.c", `"a b.c" is not a name`, example},
		{"user@host.example", `"user@host.example" is not a name`, example},
		{"pypi.org/simple", `"pypi.org/simple" is not a name`, example},
		{"https://pypi.org/simple", `"https://pypi.org/simple" is a URL, not a name`, `write "pypi.org:443"`},
		{"http://pypi.org", `"http://pypi.org" is a URL, not a name`, `write "pypi.org:80"`},
		{"http://pypi.org:8080/", `"http://pypi.org:8080/" is a URL, not a name`, `write "pypi.org:8080"`},
		{"ssh://pypi.org", `"ssh://pypi.org" is a URL, not a name`, `write the name alone`},
		{"bücher.example", `"bücher.example" is not ASCII`, `write it as DNS has it, with xn--`},
		{"pyрi.org", `"pyрi.org" is not ASCII`, `write it as DNS has it, with xn--`}, // a Cyrillic р
		{"\u212aube.example", "\"\u212aube.example\" is not ASCII", `write it as DNS has it, with xn--`},
		{"*", `* would be every name`, `put "0.0.0.0/0" and "::/0" into allow_egress`},
		{"a.*.b", `"a.*.b": * stands only for the whole first part`, `write *.example.org`},
		{"*a.b", `"*a.b": * stands only for the whole first part`, `write *.example.org`},
		{"*.*.b", `"*.*.b": * stands only for the whole first part`, `write *.example.org`},
		{"*.", `* would be every name`, `put "0.0.0.0/0" and "::/0" into allow_egress`},
		{"localhost", `"localhost" is the sandbox itself`, ``},
		{"LocalHost.:80", `"localhost" is the sandbox itself`, ``},
		{"a.localhost", `"a.localhost" is the sandbox itself`, ``},
		{"*.localhost", `"*.localhost" is the sandbox itself`, ``},
		{"10.0.0.1", `"10.0.0.1" is an address, not a name`, `put "10.0.0.1/32:443" into allow_egress`},
		{"10.0.0.1:80", `"10.0.0.1:80" is an address, not a name`, `put "10.0.0.1/32:80" into allow_egress`},
		{"::1", `"::1" is an address, not a name`, `put "[::1/128]:443" into allow_egress`},
		{"[::1]", `"[::1]" is an address, not a name`, `put "[::1/128]:443" into allow_egress`},
		{"[fe80::1%eth0]:80", `"[fe80::1%eth0]:80" is an address, not a name`, `put "[fe80::1/128]:80" into allow_egress`},
		{"::ffff:169.254.169.254", `"::ffff:169.254.169.254" is an address, not a name`, `put "169.254.169.254/32:443" into allow_egress`},
		{"10.0.0.0/8", `"10.0.0.0/8" is an address range, not a name`, `put "10.0.0.0/8" into allow_egress`},
		{"127.1", `"127.1" is an address to resolvers, not a name`, `write four decimal parts and /32 in allow_egress`},
		{"2130706433", `"2130706433" is an address to resolvers, not a name`, `write four decimal parts and /32 in allow_egress`},
		{"0x7f.1", `"0x7f.1" is an address to resolvers, not a name`, `write four decimal parts and /32 in allow_egress`},
		{"0x7f000001", `"0x7f000001" is an address to resolvers, not a name`, `write four decimal parts and /32 in allow_egress`},
		{"010.0.0.1", `"010.0.0.1" is an address to resolvers, not a name`, `write four decimal parts and /32 in allow_egress`},
		{"a.b:", `"" is not a port`, `write a number from 1 to 65535`},
		{"a.b:http", `"http" is not a port`, `write a number from 1 to 65535`},
		{"a.b:1:2", `"1:2" is not a port`, `write a number from 1 to 65535`},
		{"a.b:1/icmp", `"icmp" is not a protocol`, `write tcp or udp, or leave it out for both`},
		{strings.Repeat("a", 64) + ".b", `"` + strings.Repeat("a", 64) + `.b": a part has at most 63 characters`, ``},
		{strings.Repeat("a.", 128), `a name has at most 253 characters`, ``},
	} {
		h, err := ParseHost(c.in)
		if err == nil {
			t.Errorf("%q gives %s", c.in, h)
			continue
		}
		if err.Error() != c.msg || hintOf(err) != c.hint {
			t.Errorf("%q gives %s; %s\nwant %s; %s", c.in, err, hintOf(err), c.msg, c.hint)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"pypi.org", "*.example.org:8443/udp", "PyPI.org.", "10.0.0.1", "[::1]:80", "127.1", "https://x/", "localhost", "xn--a", "a..", "*."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			return
		}
		if h.Port == 0 || h.Name != strings.ToLower(h.Name) || strings.HasSuffix(h.Name, ".") || strings.ContainsAny(h.Name, " /:@%[]") {
			t.Fatalf("%q gives the loose host %+v", s, h)
		}
		if _, err := netip.ParseAddr(h.Name); err == nil {
			t.Fatalf("%q gives the address %s", s, h.Name)
		}
		again, err := ParseHost(h.String())
		if err != nil || again != h {
			t.Fatalf("%q gives %s, which gives %s, %v", s, h, again, err)
		}
	})
}
