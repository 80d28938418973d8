package lock

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// edit applies old→new to the rich lock's text and fails where old is not there.
func edit(t testing.TB, text, old, new string) []byte {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("the lock does not hold %q", old)
	}
	return []byte(strings.Replace(text, old, new, 1))
}

func TestParseRefuses(t *testing.T) {
	text := string(richFile(t).Format())
	for _, tt := range []struct {
		name, old, new string
		want           string // in the error
	}{
		{"unknown key", "version = 1", "version = 1\nextra = 2", "extra: is not a key of a lockfile"},
		{"unknown key in an inline table", `limits = { `, `limits = { swap = "1g", `, "limits.swap: is not a key"},
		{"unknown key with control characters", "version = 1", "version = 1\n\"\\u001b[2J\" = 2", `"\u001B[2J": is not a key`},
		{"newer version", "version = 1", "version = 2", "version: 2 was made by a newer lazaret"},
		{"newer version with other contents", "version = 1", "version = 9\nnew = true", "version: 9 was made by a newer lazaret"},
		{"no version", "version = 1\n", "", "version: is missing"},
		{"version 0", "version = 1", "version = 0", "version: is not a version number"},
		{"version as text", "version = 1", `version = "1"`, "is not valid TOML, or a value has the wrong type"},
		{"key in another case", "version = 1", "Version = 1", "line 2: is not written as lazaret writes it"},
		{"key in another case as well", "version = 1", "version = 1\nVersion = 1", "is not"},
		{"comment", "[storage]", "# hello\n[storage]", "line 10: is not written as lazaret writes it"},
		{"other header", "Review the diff, do not edit.", "All is well.", "line 1: is not written as lazaret writes it"},
		{"spaces", "version = 1", "version  = 1", "line 2: is not written"},
		{"trailing newline", "\n[storage]", "\n\n[storage]", "is not written"},
		{"other order", "data_root = \"~/.local/share/lazaret\"\noverlay = \"native\"", "overlay = \"native\"\ndata_root = \"~/.local/share/lazaret\"", "line 11: is not written"},
		{"list on one line", "allow = [\n  \"10.20.0.0/16\",\n]", "allow = [\"10.20.0.0/16\"]", "is not written"},
		{"literal string", `overlay = "native"`, `overlay = 'native'`, "strings stand in double quotes"},
		{"needless escape", `overlay = "native"`, `overlay = "n\u0061tive"`, "is not written"},
		{"carriage returns", "version = 1\n", "version = 1\r\n", "has the line ends of another system"},
		{"merge conflict", "version = 1\n", "version = 1\n<<<<<<< HEAD\n", "line 3: holds the conflict markers of a merge"},
		{"brackets", "version = 1", "version = " + strings.Repeat("[", 200000), "line 2: brackets nest too deeply"},
		{"braces", "version = 1", "version = " + strings.Repeat("{a=", 200000), "line 2: brackets nest too deeply"},
		{"key of many parts", "version = 1", "version = 1\n" + strings.Repeat("a.", 200000) + "b = 1", "line 3: a key has too many parts"},
		{"table of many parts", "version = 1", "version = 1\n[" + strings.Repeat("a.", 200000) + "b]", "line 3: a key has too many parts"},
		{"string without end", "version = 1", "version = \"", "line 2: a string does not end on its line"},
		{"string without end, escaped", "version = 1", "version = \"\\", "line 2: a string does not end on its line"},

		{"escape sequence", `overlay = "native"`, `overlay = "\u001b[2J"`, "storage.overlay: holds the character U+001B, which cannot be seen"},
		{"bidi", `workdir = "/app"`, `workdir = "/a` + "\u202e" + `pp"`, "workdir: holds the character U+202E"},
		{"zero width", `ref = "registry.example/node:24"`, `ref = "registry.exa` + "\u200b" + `mple/node:24"`, "image.ref: holds the character U+200B"},
		{"no-break space", `["date", "-u"]`, `["date", "-u` + "\u00a0" + `"]`, "auto_approve_exact: holds the character U+00A0"},
		{"variation selector", `["date", "-u"]`, `["date", "-u` + "\U000E0100" + `"]`, "holds the character U+E0100"},
		{"newline in a mode", `mode = "ro"`, `mode = "ro\n"`, "holds the character U+000A"},
		{"bidi in a key", `"/root" = {`, `"/ro` + "\u202e" + `ot" = {`, "is a key that holds the character U+202E"},
		{"bidi in an image's command, unescaped", `a\tb\u202E`, "a\\tb\u202e", "is not written"},
		{"NUL in an image's command", `a\tb\u202E`, `a\u0000`, "holds a NUL character"},

		{"unknown platform", `"linux/amd64", "linux/arm64"`, `"linux/arm64", "plan9/386"`, "inputs.platforms: names a platform that lazaret does not know"},
		{"unsorted platforms", `"linux/amd64", "linux/arm64"`, `"linux/arm64", "linux/amd64"`, "inputs.platforms: is not sorted"},
		{"fewer platforms", `"linux/amd64", "linux/arm64"`, `"linux/amd64"`, "sidecar.linux-arm64: is not one of inputs.platforms"},
		{"input elsewhere", `path = "lazaret.toml"`, `path = "../lazaret.toml"`, "inputs.workspace.path: is not lazaret.toml"},
		{"override by dots", `path = "ci/lazaret.toml"`, `path = "ci/../../x"`, "inputs.override.path: is not a plain path"},
		{"input digest", `override = { path = "ci/lazaret.toml", sha256 = "6`, `override = { path = "ci/lazaret.toml", sha256 = "G`, "inputs.override.sha256: is not a SHA-256"},
		{"data_root by dots", `"~/.local/share/lazaret"`, `"~/.local/../share"`, "storage.data_root: is not a plain path"},
		{"data_root relative", `"~/.local/share/lazaret"`, `"state"`, "storage.data_root: is not an absolute path"},
		{"data_root token", `"~/.local/share/lazaret"`, `"{workspace_dir}/x"`, "storage.data_root: is not an absolute path"},
		{"overlay driver", `overlay = "native"`, `overlay = "none"`, "storage.overlay: is none of auto, native"},
		{"sidecar digest", `binary = "sha256:`, `binary = "sha512:`, "sidecar.linux-amd64.binary: is not a digest"},
		{"short digest", `index = "sha256:c`, `index = "sha256:`, "image.index: is not a digest"},
		{"platform key of an image", "[profiles.claude.image.platforms.linux-arm64]", "[profiles.claude.image.platforms.linux-386]", "image.platforms.linux-386: is not one of inputs.platforms"},
		{"negative size", "size = 4711", "size = -1", "size: is negative"},
		{"profile name like a flag", "[profiles.plain]", "[profiles.--yes]", `profiles.--yes: is not a profile name`},
		{"profile name", "[profiles.plain]", "[profiles.\"../x\"]", `profiles."../x": is not a profile name`},
		{"no runtime", `runtime = ["runsc", "host-uds=open"]`, `runtime = []`, "runtime: is empty"},
		{"state", `state = "workspace"`, `state = "all"`, "state: is none of"},
		{"port", `"8080:80"`, `"8080:0"`, "profiles.claude.ports:"},
		{"limits", `memory = "4g"`, `memory = "4x"`, "limits.memory: is not a size"},
		{"empty limits", `limits = { memory = "4g", cpus = "1.5", pids = 512 }`, `limits = {}`, "limits: is empty"},
		{"git mode", `mode = "quarantine"`, `mode = "off"`, "git.mode: is none of"},
		{"git tree", `tree = "worktree"`, `tree = ""`, "git.tree: is none of"},
		{"env name", "TOKEN = ", `"A B" = `, `env."A B": is not the name of a variable`},
		{"dns", `dns = "listed"`, `dns = "all"`, "network.dns: is none of"},
		{"allow with host bits", `"10.20.0.0/16"`, `"10.20.0.1/16"`, "network.allow:"},
		{"allow unsorted", "  \"9.9.9.9/32:53\",\n  \"10.20.0.0/16\",\n", "  \"10.20.0.0/16\",\n  \"9.9.9.9/32:53\",\n", "network.allow: is not sorted"},
		{"deny twice", "  \"10.0.0.0/8\",\n", "  \"10.0.0.0/8\",\n  \"10.0.0.0/8\",\n", "network.deny: is not sorted, or says something twice"},
		{"host without its port", `"pypi.org:443"`, `"pypi.org"`, "network.hosts: holds an entry that is not written as lazaret writes it"},
		{"timeout", `timeout = "1m30s"`, `timeout = "90s"`, "escalation.timeout: is not a duration"},
		{"escalation off with vectors", "enabled = true", "enabled = false", "escalation: is off and says more"},
		{"vector without a program", `["date", "-u"]`, `[]`, "auto_approve_exact: names no program"},
		{"mount kind", `kind = "overlay", name = "root"`, `kind = "device", name = "root"`, "is not a kind of mount"},
		{"mount target by dots", `"/root/.aws" = {`, `"/root/../.aws" = {`, "is not an absolute path"},
		{"mount target relative", `"/root/.aws" = {`, `"root/.aws" = {`, "is not an absolute path"},
		{"bind without source", `kind = "bind", from = "~/.aws", mode = "ro"`, `kind = "bind", mode = "ro"`, "too few or too many fields"},
		{"tmpfs with source", `kind = "tmpfs", size = "16m"`, `kind = "tmpfs", from = "/", size = "16m"`, "too few or too many fields"},
		{"bind by dots", `from = "~/.aws"`, `from = "~/x/../.aws"`, "from: is not a plain path"},
		{"bind with an unknown token", `from = "~/.aws"`, `from = "{home}/.aws"`, "from: is not an absolute path"},
		{"bind glued to a token", `from = "{profile_dir}/cache"`, `from = "{profile_dir}x{y}"`, "from: holds an unknown {token}"},
		{"mode", `from = "~/.aws", mode = "ro"`, `from = "~/.aws", mode = "ro,exec"`, "mode: is not a mode"},
		{"overlay name twice", `"/workspace" = {`, `"/usr_local" = { kind = "overlay", name = "usr_local" }` + "\n" + `"/workspace" = {`, "name: is that of /usr/local too"},
		{"overlay name", `name = "usr_local"`, `name = "root"`, "name: is not the name that belongs to this path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(edit(t, text, tt.old, tt.new))
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("got %v, want a *ParseError", err)
			}
			if !strings.Contains(pe.Error(), tt.want) {
				t.Errorf("got  %v\nwant …%s…", err, tt.want)
			}
			if pe.Hint() == "" {
				t.Error("no hint")
			}
			if pe.Newer != strings.Contains(tt.name, "newer") {
				t.Errorf("Newer is %v", pe.Newer)
			}
		})
	}
	for _, data := range []string{"", "\x00", "\xff\xfe", "version = 1", "root:x:0:0:secret-value:/root:/bin/sh\n", "SECRET=hunter2\x00HOME=/root\x00"} {
		_, err := Parse([]byte(data))
		if err == nil {
			t.Errorf("Parse(%q) succeeded", data)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error quotes the file: %v", err)
		}
	}
}

// TestSalvage: an edited lock still gives its pins away, and only Parse minds.
func TestSalvage(t *testing.T) {
	want := richFile(t)
	text := string(want.Format())
	for _, tt := range [][2]string{{"\n[storage]", "\n# mine\n[storage]"}, {"version = 1\n", "version = 1\r\n"}} {
		f, err := Salvage(edit(t, text, tt[0], tt[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Format(), want.Format()) {
			t.Error("another lock came out")
		}
	}
}

// FuzzParse: whatever Parse accepts is exactly what Format writes, and holds
// nothing that a person cannot see.
func FuzzParse(f *testing.F) {
	text := richFile(f).Format()
	f.Add(text)
	f.Add(build(f, request(f, base+"[profiles.ab]\nimage = \"a.example/b:1\"\n", &registry{})).Format())
	f.Add([]byte("version = 1\n"))
	f.Add([]byte("version = 1\n[inputs]\nplatforms = [\"linux/amd64\"]\n"))
	for i := range 8 {
		f.Add(text[:len(text)*i/8])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			if msg := err.Error() + hint(err); !utf8.ValidString(msg) || strings.ContainsAny(msg, "\x1b\x00\r\u202e") {
				t.Errorf("the error could act on a terminal: %q", msg)
			}
			return
		}
		if again := file.Format(); !bytes.Equal(again, data) {
			t.Errorf("accepted:\n%s\nformatted:\n%s", data, again)
		}
		for _, r := range string(data) {
			if r != '\n' && !visible(r) {
				t.Errorf("accepted a text that holds %U", r)
			}
		}
	})
}

// FuzzFormat: whatever strings a File holds, its text reads back as the same
// File, or is refused; it never reads back as another.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"", "a", `"`, `\`, "\n", "\t", "\x00", "\x1b", "é", "\u202e", "\U0001F600", "]\n[x]", "a = 1\n", "'", "#", "{}", "\xff", "\u0085", "\u2028"} {
		f.Add(s, "b", int64(1), true)
		f.Add("b", s, int64(-1), false)
	}
	made := oneProfile(f)
	f.Fuzz(func(t *testing.T, a, b string, n int64, yes bool) {
		file := another(made)
		p := file.Profiles["claude"]
		p.Command = []string{a, b}
		p.Env = map[string]string{"KEY": a, "OTHER": b}
		p.Setup = []string{b}
		p.Limits.PIDs = n
		p.Image.Ref = a
		p.Escalation.AutoApprove = [][]string{{a, b}}
		p.Escalation.Enabled = yes
		pi := p.Image.Platforms["linux-amd64"]
		pi.Annotations = map[string]string{a: b}
		pi.Size = n
		p.Image.Platforms["linux-amd64"] = pi
		p.Mounts["/"+a] = Mount{Kind: KindBind, From: b, Mode: "ro"}
		file.Profiles["claude"] = p
		got, err := Parse(file.Format())
		if err != nil {
			return
		}
		if normal(got) != normal(file) {
			t.Errorf("wrote %+v\nread %+v", file, got)
		}
	})
}

// normal prints a File with nil and empty lists alike.
func normal(f *File) string {
	return strings.ReplaceAll(fmt.Sprintf("%#v", leaves(f)), "[]string(nil)", "[]string{}")
}

func leaves(f *File) (out []string) {
	walk(nil, reflect.ValueOf(f).Elem(), func(l leaf) {
		out = append(out, keyPath(l.path)+"="+show(l.value))
	})
	return out
}
