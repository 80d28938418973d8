package sidecar

import "strings"

// listable tells whether name can be in Policy.Hosts.
func listable(name string) bool {
	name = strings.TrimPrefix(name, "*.")
	if name == "" || len(name) > 253 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// hostTable finds what a name may be used for.
type hostTable struct {
	exact  map[string][]Service
	suffix map[string][]Service // without "*."
}

func newHostTable(hosts []Host) hostTable {
	t := hostTable{map[string][]Service{}, map[string][]Service{}}
	for _, h := range hosts {
		if s, ok := strings.CutPrefix(h.Name, "*."); ok {
			t.suffix[s] = append(t.suffix[s], h.Service)
		} else {
			t.exact[h.Name] = append(t.exact[h.Name], h.Service)
		}
	}
	return t
}

// services gives what name, in lower case, opens: nothing where it is not
// listed. A wildcard does not take in the suffix itself.
func (t hostTable) services(name string) []Service {
	out := append([]Service(nil), t.exact[name]...)
	for rest := name; ; {
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			return out
		}
		rest = rest[i+1:]
		out = append(out, t.suffix[rest]...)
	}
}

// lower lowers A to Z and nothing else, as DNS does, and takes off the final
// dot.
func lower(name string) string {
	b := []byte(strings.TrimSuffix(name, "."))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
