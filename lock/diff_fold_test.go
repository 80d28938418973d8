package lock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func foldOf(t *testing.T, edit func(p *Profile)) (list, out []Change, folded bool) {
	t.Helper()
	f := oneProfile(t)
	profileOf(f, "claude", edit)
	for _, c := range Grants(f) {
		if c.Alarm || !c.Quiet() {
			list = append(list, c)
		}
	}
	out, folded = Fold(list, 60)
	parts := func(l []Change) (keys []string) {
		for _, c := range l {
			for _, p := range c.Parts {
				keys = append(keys, p.Key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	if !slices.Equal(parts(list), parts(out)) {
		t.Error("something is left out, or told twice")
	}
	if len(Groups(list)) != len(Groups(out)) {
		t.Error("the heading of a profile is lost")
	}
	return list, out, folded
}

func linesOf(list []Change) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(c.Line() + "\n")
	}
	return b.String()
}

// TestFoldHidesNothing: among sixty variables that mean nothing, each other
// grant has its line, and the image too.
func TestFoldHidesNothing(t *testing.T) {
	list, out, folded := foldOf(t, func(p *Profile) {
		for i := range 60 {
			p.Env[fmt.Sprintf("LC_A%02d", i)] = "1"
		}
		p.Env["Z_PROXY"] = "http://evil.example/"
	})
	if !folded || len(out) > 60 {
		t.Fatalf("%d lines\n%s", len(out), linesOf(out))
	}
	for _, c := range list {
		if c.Alarm || !strings.HasPrefix(c.Text, "sets ") {
			if !slices.ContainsFunc(out, func(o Change) bool { return o.Text == c.Text }) {
				t.Errorf("not told: %s", c.Line())
			}
		}
	}
	if text := linesOf(out); !strings.Contains(text, " variables: Z_PROXY, ") || !strings.Contains(text, " LC_A00, ") {
		t.Errorf("the variables are not told by name, what leads elsewhere first:\n%s", text)
	}
	if _, out, folded := foldOf(t, func(*Profile) {}); folded {
		t.Errorf("an ordinary profile is folded:\n%s", linesOf(out))
	}
}

// TestFoldCountsReach: thousands of ranges and hosts are few lines, which say
// how many they are and name the riskiest; one alarm among many has its own.
func TestFoldCountsReach(t *testing.T) {
	_, out, _ := foldOf(t, func(p *Profile) {
		p.Network.Allow, p.Network.Hosts, p.Network.Deny = nil, nil, nil
		for i := range 5000 {
			p.Network.Allow = append(p.Network.Allow, fmt.Sprintf("16.%d.%d.0/24", i>>8, i&255))
			p.Network.Allow = append(p.Network.Allow, fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255))
			p.Network.Deny = append(p.Network.Deny, fmt.Sprintf("17.%d.%d.0/24", i>>8, i&255))
		}
		p.Network.Allow = append(p.Network.Allow, "32.0.0.0/3", "169.254.169.254/32")
		for i := range 300 {
			p.Network.Hosts = append(p.Network.Hosts, fmt.Sprintf("h%d.example:443", i))
		}
		p.Network.Hosts = append(p.Network.Hosts, "ssh.example:22", "*.evil.example:22")
	})
	text := linesOf(out)
	if len(out) > 60 || utf8.RuneCountInString(text) > 10_000 {
		t.Fatalf("%d lines\n%s", len(out), text)
	}
	for _, want := range []string{
		"! + reaches 169.254.169.254/32\n",
		"! + reaches 5000 ranges that lead into 10.0.0.0/8: 10.0.0.0/24, ",
		"  + reaches 5001 ranges: 32.0.0.0/3, 16.0.0.0/24, ",
		"  + reaches 302 hosts: *.evil.example:22, ssh.example:22, h0.example:443, ",
		"  + never reaches 5000 ranges: 17.0.0.0/24, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	names := 0
	for line := range strings.Lines(text) {
		if before, more, ok := strings.Cut(line, " … and "); ok && strings.Contains(line, "302 hosts") {
			var n int
			fmt.Sscan(more, &n)
			if names = strings.Count(before, ".example:"); names+n != 302 {
				t.Errorf("%d named and %d more", names, n)
			}
		}
	}
	if names == 0 {
		t.Errorf("no count of the rest:\n%s", text)
	}
}

// TestFoldKeepsAlarms: what is an alarm is folded only where it is a range.
func TestFoldKeepsAlarms(t *testing.T) {
	list, out, _ := foldOf(t, func(p *Profile) {
		for i := range 70 {
			p.Env[fmt.Sprintf("V%d", i)] = fmt.Sprintf("env:V%d", i)
			p.Mounts[fmt.Sprintf("/m%d", i)] = Mount{Kind: KindBind, From: fmt.Sprintf("~/m%d", i), Mode: "rw"}
			p.Mounts["/zz"] = Mount{Kind: KindBind, From: "{workspace_dir}/zz", Mode: "rw"}
			p.Mounts[fmt.Sprintf("/o%d", i)] = Mount{Kind: KindOverlay, Name: fmt.Sprintf("o%d", i)}
			p.Escalation.AutoApprove = append(p.Escalation.AutoApprove, []string{"ls", fmt.Sprint(i)})
			for key, pi := range p.Image.Platforms { // the same on both: told once
				pi.Env = append(slices.Clip(pi.Env), fmt.Sprintf("I%d=1", i))
				p.Image.Platforms[key] = pi
			}
			p.Setup = append(p.Setup, strings.Repeat("x", 10_000))
			p.Ports = append(p.Ports, fmt.Sprint(8000+i))
		}
	})
	if Alarms(list) != Alarms(out) || Alarms(out) < 210 {
		t.Errorf("%d alarms of %d", Alarms(out), Alarms(list))
	}
	calm := 0
	for _, c := range out {
		if !c.Alarm {
			calm++
		}
		if n := utf8.RuneCountInString(c.Text); n > 600 {
			t.Errorf("%d characters: %.100s", n, c.Text)
		}
	}
	if calm > 60 {
		t.Errorf("%d lines beside the alarms\n%s", calm, linesOf(out))
	}
	for _, want := range []string{"publishes 72 loopback ports: 1455, 8080:80, 8000, ", `sets up with 72 commands: "npm install -g claude"; "printf `, "image environment of 72 variables: PATH=/usr/bin; ", "; I0=1; I1=1; ", "; mounts {workspace_dir}/zz at /zz, read-write; keeps "} {
		if !strings.Contains(linesOf(out), want) {
			t.Errorf("no %q in\n%s", want, linesOf(out))
		}
	}
}
