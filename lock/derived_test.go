package lock

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCheckDerivedAccepts: whatever a config leads to is accepted, or nobody
// could launch it.
func TestCheckDerivedAccepts(t *testing.T) {
	example, err := os.ReadFile("../example.toml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"example": string(example),
		"rich":    rich,
		"plain":   base + profileText("aa", "builtin:shell"),
		"odd": base + `
[profiles.x-1]
image = "oci:images/debian"
allow_egress = ["0.0.0.0/0", "::/0"]
persistent_dirs = ["/a b", "/ü"]
volumes = [{ host = "{runtime_dir}/lazaret-not", container = "/x" }, { host = "/srv/{profile_name}", container = "/y", mode = "z" }]
command = ["sh", "-c", "echo $HOME; a\tb\n"]
[profiles.x-1.env]
EMPTY = ""
`,
		"commands": strings.Replace(base, "enabled = false", "enabled = true\n"+`auto_approve_exact = ['date "+a b"', "date 'it''s'", "date \"it's\"", "date a\"'\"b", "date ''"]`, 1) + profileText("aa", "builtin:shell"),
	} {
		f, err := Parse(build(t, request(t, text, &registry{})).Format())
		if err != nil {
			t.Fatal(name, err)
		}
		for p := range f.Profiles {
			if err := f.CheckDerived(p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := richFile(t).CheckDerived("nobody"); err == nil || hint(err) == "" {
		t.Errorf("an unknown profile: %v", err)
	}
}

// TestCheckDerivedRefuses: a lock that was written by hand so as to loosen the
// sandbox. Each of these parses, and in each the difference is one line of a
// long file.
func TestCheckDerivedRefuses(t *testing.T) {
	mount := func(target string, m Mount) func(*File, *Profile) {
		return func(_ *File, p *Profile) { p.Mounts[target] = m }
	}
	without := func(target string) func(*File, *Profile) {
		return func(_ *File, p *Profile) { delete(p.Mounts, target) }
	}
	for _, tt := range []struct {
		name   string
		tamper func(*File, *Profile)
		want   string // in the error
	}{
		{"another runtime", func(_ *File, p *Profile) { p.Runtime = []string{"crun", "host-uds=open"} }, "profiles.claude.runtime:"},
		{"all host sockets", func(_ *File, p *Profile) { p.Runtime = []string{"runsc", "host-uds=all"} }, "profiles.claude.runtime:"},
		{"host network", func(_ *File, p *Profile) { p.Runtime = append(p.Runtime, "network=host") }, "profiles.claude.runtime:"},
		{"a log written anywhere", func(_ *File, p *Profile) { p.Runtime = append(p.Runtime, "debug-log=/home/u/.bashrc") }, "profiles.claude.runtime:"},
		{"one flag given as another", func(_ *File, p *Profile) { p.Runtime = []string{"runsc", "host-uds=open --network=host"} }, "profiles.claude.runtime:"},
		{"a dropped capability kept", func(_ *File, p *Profile) {
			p.Capabilities = slices.Sorted(slices.Values(append(p.Capabilities, "NET_RAW")))
		}, "profiles.claude.capabilities:"},
		{"every capability", func(_ *File, p *Profile) { p.Capabilities = []string{"ALL"} }, "profiles.claude.capabilities:"},
		{"no .git mask", without("/workspace/.git"), `profiles.claude.mounts."/workspace/.git":`},
		{"the host's .git in place of the mask", mount("/workspace/.git", Mount{Kind: KindBind, From: "{workspace_dir}/.git", Mode: "rw"}), `profiles.claude.mounts."/workspace/.git":`},
		{"an emptier mask than git needs", mount("/workspace/.git", Mount{Kind: KindTmpfs, Size: "16m"}), `mounts."/workspace/.git":`},
		{"no .vscode mask", without("/workspace/.vscode"), `mounts."/workspace/.vscode":`},
		{"no .idea mask", without("/workspace/.idea"), `mounts."/workspace/.idea":`},
		{"writable lock", mount("/workspace/lazaret.lock", Mount{Kind: KindBind, From: "{workspace_dir}/lazaret.lock", Mode: "rw"}), `mounts."/workspace/lazaret.lock":`},
		{"unprotected lock", without("/workspace/lazaret.lock"), `mounts."/workspace/lazaret.lock":`},
		{"unprotected config", without("/workspace/lazaret.toml"), `mounts."/workspace/lazaret.toml":`},
		{"writable git shadow", mount("/run/lazaret/git", Mount{Kind: KindGitShadow, Mode: "rw"}), `mounts."/run/lazaret/git":`},
		{"writable certificates", mount("/run/lazaret/certs", Mount{Kind: KindCerts, Mode: "rw"}), `mounts."/run/lazaret/certs":`},
		{"a second certificates mount", mount("/opt/certs", Mount{Kind: KindCerts, Mode: "ro"}), `mounts."/opt/certs":`},
		{"the home as workspace", mount("/workspace", Mount{Kind: KindBind, From: "~", Mode: "rw,z"}), `mounts."/workspace":`},
		{"a tmpfs elsewhere", mount("/etc", Mount{Kind: KindTmpfs, Size: "16m"}), `mounts."/etc":`},
		{"a volume below .git", mount("/workspace/.git/hooks", Mount{Kind: KindBind, From: "/srv", Mode: "rw"}), "volumes"},
		{"a volume over lazaret's own", mount("/run/lazaret/terminfo", Mount{Kind: KindBind, From: "/srv", Mode: "rw"}), "volumes"},
		{"the hidden .git as a volume", mount("/x", Mount{Kind: KindBind, From: "{workspace_dir}/.git", Mode: "rw"}), "volumes"},
		{"the whole profile directory", mount("/x", Mount{Kind: KindBind, From: "{profile_dir}", Mode: "rw"}), "volumes"},
		{"an overlay's directory", mount("/x", Mount{Kind: KindBind, From: "{profile_dir}/root_changes", Mode: "rw"}), "volumes"},
		{"lazaret's own store", mount("/x", Mount{Kind: KindBind, From: "~/.local/share/lazaret/.lazaret", Mode: "rw"}), "volumes"},
		{"another profile's state", mount("/x", Mount{Kind: KindBind, From: "~/.local/share/lazaret/codex/secrets", Mode: "ro"}), "volumes"},
		{"the root", mount("/x", Mount{Kind: KindBind, From: "/", Mode: "ro"}), "volumes"},
		{"lazaret's records", mount("/x", Mount{Kind: KindBind, From: "~/.local/state/lazaret/trust", Mode: "rw"}), "volumes"},
		{"a persistent /proc", mount("/proc", Mount{Kind: KindOverlay, Name: "proc"}), "persistent_dirs"},
		{"metadata not denied", func(_ *File, p *Profile) {
			p.Network.AlwaysDeny = slices.DeleteFunc(p.Network.AlwaysDeny, func(s string) bool { return s == "169.254.0.0/16" })
		}, "profiles.claude.network.always_deny:"},
		{"every name resolved", func(_ *File, p *Profile) { p.Network.DNS = "open" }, "profiles.claude.network.dns:"},
		{"a shell approved", func(_ *File, p *Profile) { p.Escalation.AutoApprove = [][]string{{"bash", "-c"}} }, "auto_approve"},
		{"an empty approval of anything by git", func(_ *File, p *Profile) { p.Escalation.AutoApproveExact = [][]string{{"git", "status"}} }, "auto_approve_exact"},
		{"a shell's metacharacter approved", func(_ *File, p *Profile) { p.Escalation.AutoApprove = [][]string{{"aws", "$(id)"}} }, "auto_approve"},
		{"sockets in the workspace", func(_ *File, p *Profile) { p.Escalation.SocketDir = "{workspace_dir}/s" }, "socket_dir"},
		{"no time limit to speak of", func(_ *File, p *Profile) { p.Escalation.Timeout = "1000h" }, "timeout"},
		{"output without limit", func(_ *File, p *Profile) { p.Escalation.MaxOutput = 1 << 40 }, "max_output"},
		{"a reserved variable", func(_ *File, p *Profile) { p.Env["LD_PRELOAD"] = "/x.so" }, "LD_PRELOAD"},
		{"the engine's own variable", func(_ *File, p *Profile) { p.Env["XDG_CONFIG_HOME"] = "env:PWD" }, "XDG_CONFIG_HOME"},
		{"a short name", func(_ *File, p *Profile) { p.Image.Ref = "node" }, "image"},
		{"state in the root", func(f *File, _ *Profile) { f.Storage.DataRoot = "/" }, "storage.data_root"},
		{"a branch that is an option", func(_ *File, p *Profile) { p.Git.Branch = "--upload-pack=x" }, "branch"},
		{"a setup of nothing", func(_ *File, p *Profile) { p.Setup = []string{" "} }, "setup"},
		{"volumes without relabelling said otherwise", func(_ *File, p *Profile) { p.Command = []string{"", "x"} }, "command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := richFile(t)
			p := f.Profiles["claude"]
			p.Mounts = maps.Clone(p.Mounts)
			tt.tamper(f, &p)
			f.Profiles["claude"] = p
			f, err := Parse(f.Format())
			if err != nil {
				t.Fatalf("refused even before: %v", err)
			}
			err = f.CheckDerived("claude")
			var de *DerivedError
			if !errors.As(err, &de) || !strings.Contains(err.Error(), tt.want) || hint(err) == "" {
				t.Errorf("got %v, want …%s…", err, tt.want)
			}
			if err := f.CheckDerived("plain"); err != nil && f.Storage.DataRoot != "/" {
				t.Errorf("the other profile is refused too: %v", err)
			}
		})
	}
}

// TestEscalationOffTakesAllOfItAway: nothing of the channel is left over.
func TestEscalationOff(t *testing.T) {
	f := build(t, request(t, base+profileText("aa", "builtin:shell"), &registry{}))
	p := f.Profiles["aa"]
	if !slices.Equal(p.Runtime, []string{"runsc"}) {
		t.Errorf("runtime %q", p.Runtime)
	}
	for target := range p.Mounts {
		if strings.Contains(target, "escalate") || strings.Contains(target, "certs") {
			t.Errorf("%s is mounted", target)
		}
	}
	p.Runtime = []string{"runsc", "host-uds=open"}
	f.Profiles["aa"] = p
	if err := f.CheckDerived("aa"); err == nil {
		t.Error("host sockets opened without an escalation channel")
	}
}

func TestForeignHelpers(t *testing.T) {
	f := richFile(t)
	if list, err := f.ForeignHelpers("claude", "linux/amd64", ownHelpers()); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	own := ownHelpers()
	set := func(change func(*Sidecar)) func(*File) {
		return func(f *File) { s := f.Sidecar["linux-amd64"]; change(&s); f.Sidecar["linux-amd64"] = s }
	}
	foreign := digest("foreign")
	// A lock that has this build's image under another manifest, or the like,
	// no lazaret made.
	for name, change := range map[string]func(*File){
		"sidecar":          set(func(s *Sidecar) { s.Binary = foreign }),
		"sidecar layer":    set(func(s *Sidecar) { s.Layer = foreign }),
		"sidecar manifest": set(func(s *Sidecar) { s.Manifest = foreign }),
	} {
		f := richFile(t)
		change(f)
		_, err := f.ForeignHelpers("claude", "linux/amd64", own)
		var he *HelperError
		if !errors.As(err, &he) || he.Name != name || he.Found != foreign {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, "MISMATCH") || !strings.Contains(msg, foreign) || !strings.Contains(msg, he.Own) || hint(err) == "" {
			t.Errorf("not loud enough: %v", msg)
		}
		if _, err := f.ForeignHelpers("claude", "linux/arm64", own); err != nil {
			t.Errorf("another platform is refused too: %v", err)
		}
	}
	// Another lazaret's.
	g := richFile(t)
	set(func(s *Sidecar) { s.Config = foreign })(g)
	g.Escalate["linux-amd64"] = Binary{foreign}
	ref := g.Sidecar["linux-amd64"].Ref
	want := []Foreign{
		{HelperSidecar, "linux/amd64", ref, foreign, own.Sidecar["linux-amd64"].Config},
		{HelperClient, "linux/amd64", ref, foreign, own.Escalate["linux-amd64"].Binary},
	}
	if list, err := g.ForeignHelpers("claude", "linux/amd64", own); err != nil || !slices.Equal(list, want) {
		t.Errorf("got %+v, %v", list, err)
	}
	// What a profile does not need is not asked about.
	p := g.Profiles["claude"]
	p.Network.Allow, p.Network.Hosts, p.Ports, p.Escalation = nil, nil, nil, Escalation{}
	g.Profiles["claude"] = p
	if list, err := g.ForeignHelpers("claude", "linux/amd64", own); err != nil || len(list) != 0 {
		t.Errorf("needs none: %+v, %v", list, err)
	}
	if _, err := f.ForeignHelpers("claude", "linux/riscv64", own); err == nil {
		t.Error("a platform without helpers passed")
	}
}

// TestOverrideIsReadOnly: the --config FILE of a workspace is the agent's to
// read only, and so that it stays the one of that name, the directories above
// it are mounted on themselves.
func TestOverrideIsReadOnly(t *testing.T) {
	for path, want := range map[string][]string{
		"x.toml":      {"/workspace/x.toml"},
		"a/b/x.toml":  {"/workspace/a", "/workspace/a/b", "/workspace/a/b/x.toml"},
		"~/x.toml":    {},
		"/etc/x.toml": {},
	} {
		plain := fixedMounts(Inputs{}, "none", false)
		m := fixedMounts(Inputs{Override: &Input{Path: path}}, "none", false)
		got := []string{}
		for _, target := range slices.Sorted(maps.Keys(m)) {
			if _, ok := plain[target]; !ok {
				got = append(got, target)
			}
			if was, ok := plain[target]; ok && was != m[target] {
				t.Errorf("%s: %s became %+v", path, target, m[target])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		if target := "/workspace/" + path; len(want) > 0 && m[target].Mode != "ro" {
			t.Errorf("%s is mounted %q", target, m[target].Mode)
		}
	}
	// A lock that leaves it out is refused.
	f := richFile(t)
	p := f.Profiles["claude"]
	delete(p.Mounts, "/workspace/ci/lazaret.toml")
	var de *DerivedError
	if err := f.CheckDerived("claude"); !errors.As(err, &de) || !strings.Contains(de.Key, "ci/lazaret.toml") {
		t.Errorf("without it: %v", err)
	}
}

// TestOverrideShowsNothing: a lock that somebody wrote by hand calls a file that
// no sandbox sees its --config FILE, and mounts it as one.
func TestOverrideShowsNothing(t *testing.T) {
	mounted := func(path string) []byte {
		f := richFile(t)
		f.Inputs.Override = &Input{path, f.Inputs.Workspace.SHA256}
		for _, p := range f.Profiles {
			for target := range fixedMounts(Inputs{Override: &Input{Path: "ci/lazaret.toml"}}, p.Git.Mode, p.Escalation.Enabled) {
				delete(p.Mounts, target)
			}
			maps.Copy(p.Mounts, fixedMounts(f.Inputs, p.Git.Mode, p.Escalation.Enabled))
		}
		return f.Format()
	}
	for _, path := range []string{".git/config", ".git", "sub/.git/config", ".vscode/settings.json", ".idea/x", "lazaret.lock", "lazaret.toml/x"} {
		if _, err := Parse(mounted(path)); err == nil || !strings.Contains(err.Error(), "inputs.override.path") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Any other is told, and is no alarm.
	f, err := Parse(mounted("ci/x.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckDerived("claude"); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, c := range Grants(f) {
		for _, p := range c.Parts {
			if seen[p.Key] = true; p.Key == MountKey("claude", "/workspace/ci/x.toml") && (c.Own || c.Quiet() || c.Alarm) {
				t.Errorf("%+v", c)
			}
		}
	}
	if !seen[MountKey("claude", "/workspace/ci/x.toml")] {
		t.Error("it is not told")
	}
}
