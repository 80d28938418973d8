package config

import (
	"regexp"
	"slices"
)

var helperDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// TrustedHelpers gives the digests that the person's own layer lists under
// [trust]: helper programs of other lazarets that may run here without a
// question. It is no part of a Config: a lock must not know of it.
func TrustedHelpers(l Layer) ([]string, error) {
	p := &problems{files: []string{l.Name}}
	n := parse(l, p)
	if n != nil {
		checkLayer(n, l, p)
	}
	if n == nil || len(p.list) > 0 {
		return nil, p.err()
	}
	out := readTrust(table{p, n, ""}.sub("trust"))
	return out, p.err()
}

func readTrust(t table) []string {
	out := list(t, "helpers", func(s string) (string, error) {
		if !helperDigest.MatchString(s) {
			return "", errorf(`"lazaret version" of the lazaret they belong to prints them`, "%s is not sha256: and 64 digits", quote(s))
		}
		return s, nil
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// checkLayer is check for a whole layer. What the person vouches for is not a
// repository's to say, nor that of a file that may lie in one.
func checkLayer(n *node, l Layer, p *problems) {
	check(n, schema(), "", p)
	t, ok := n.value.(map[string]*node)
	if !ok || l.Kind == User {
		return
	}
	if said := t["trust"]; said != nil && !said.bad {
		p.at(said.pos, "trust", errorf("say it in ~/.config/lazaret/config.toml", "is only for your own configuration to say"))
		said.bad = true
	}
}
