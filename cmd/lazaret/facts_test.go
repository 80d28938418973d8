package main

import (
	"strings"
	"testing"

	"lazaret/launch"
	"lazaret/lock"
)

func TestFacts(t *testing.T) {
	for want, got := range map[string]string{
		"none":                                 networkFact(lock.Network{Deny: []string{"10.0.0.0/8"}}, nil),
		"2 hosts allowed, 1 range denied":      networkFact(lock.Network{Hosts: []string{"a:443", "b:443"}, Deny: []string{"10.0.0.0/8"}}, nil),
		"1 host and 2 ranges allowed":          networkFact(lock.Network{Hosts: []string{"a:443"}, Allow: []string{"1.0.0.0/8", "2.0.0.0/8"}}, nil),
		"everything but 1 range":               networkFact(lock.Network{Allow: []string{"0.0.0.0/0"}, Deny: []string{"10.0.0.0/8"}}, nil),
		"everything, publishes 8080:80":        networkFact(lock.Network{Allow: []string{"::/0"}}, []string{"8080:80"}),
		"lazaret/agent-x":                      gitFact(lock.Git{Mode: "quarantine"}, "lazaret/agent-x", true),
		"no repository here":                   gitFact(lock.Git{Mode: "quarantine"}, "", false),
		"/etc /root":                           stateFact(mounted("/root", "/etc"), false),
		"/etc /root, empty and not kept":       stateFact(mounted("/root", "/etc"), true),
		"commands of this machine, you decide": asksFact(lock.Escalation{Enabled: true}),
		"":                                     asksFact(lock.Escalation{AutoApprove: [][]string{{"x"}}}),
		"commands of this machine, you decide on all but 1": asksFact(lock.Escalation{Enabled: true, AutoApprove: [][]string{{"x"}}}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func mounted(paths ...string) map[string]lock.Mount {
	m := map[string]lock.Mount{"/tmp": {Kind: lock.KindTmpfs}}
	for _, p := range paths {
		m[p] = lock.Mount{Kind: lock.KindOverlay}
	}
	return m
}

// Nothing of a lock or of git acts on the terminal.
func TestFactsHostile(t *testing.T) {
	const evil = "x\x1b[2J\r\n\u202e\u009b"
	f := &lock.File{Profiles: map[string]lock.Profile{"box": {
		Image: lock.Image{Ref: evil}, Ports: []string{evil}, Mounts: mounted("/" + evil), Git: lock.Git{Mode: evil},
	}}}
	p := &launch.Plan{Record: launch.Record{Profile: "box"}, Host: launch.Host{Platform: "linux/amd64"}}
	p.Host.Runsc.Version = evil
	for row, fact := range facts(p, f, false) {
		if strings.ContainsAny(fact, "\x1b\r\n\u202e\u009b") {
			t.Errorf("%s: %q", row, fact)
		}
	}
}
