package config

import (
	"strings"
	"testing"
)

// Each case is a workspace layer over base; the error is exactly this, with
// file, line, key, what is wrong and, after the semicolon, the hint.
func TestErrors(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	p := "[profiles.p1]\nimage = 'builtin:shell'\n" // two lines in front
	volume := func(host, container string) string {
		return p + "volumes = [{ host = '" + host + "', container = '" + container + "' }]"
	}
	const pathHint = "write an absolute path, or one that starts with ~/ or {workspace_dir}/"
	const portHint = `write "1455", or "8080:80" for host:sandbox`
	for _, c := range []struct{ toml, want string }{
		// syntax: said in our words, never quoting the text
		{"a", `lazaret.toml:1: not valid TOML: the file ends in the middle of a key`},
		{"\n\nsecret=hunter2", `lazaret.toml:3: not valid TOML: the value is neither a string in quotes, number, boolean, array nor table`},
		{"a = \"x\nb", `lazaret.toml:1: not valid TOML: a string is not closed on its line`},
		{"a = 1\na = 2", `lazaret.toml:2: not valid TOML: a key or table is defined twice`},
		{"[a]\n[a]", `lazaret.toml:2: not valid TOML: a key or table is defined twice`},
		{"a = 1\n[a.b]", `lazaret.toml:2: not valid TOML: a key or table is defined twice`},
		{"a = [1 2]", `lazaret.toml:1: not valid TOML: a comma or ] is missing in an array`},
		{"a = {b = 1 c = 2}", `lazaret.toml:1: not valid TOML: a comma or } is missing in an inline table`},
		{"a = [1,,2]", `lazaret.toml:1: not valid TOML: a comma too many`},
		{"a = 012", `lazaret.toml:1: not valid TOML: an integer is malformed`},
		{"a = \"\\q\"", `lazaret.toml:1: not valid TOML: a string holds an unknown \ escape`},
		{"a = '''x\n\n", `lazaret.toml:2: not valid TOML: a string is not closed`},
		{"[a", `lazaret.toml:1: not valid TOML: [ is not closed by ]`},
		{"= 1", `lazaret.toml:1: not valid TOML: = without a key before it`},
		{"# \n\x00", `lazaret.toml:2: not valid TOML: holds a zero byte`},
		{"# \n\n\xff", `lazaret.toml:3: not valid TOML: not UTF-8`},
		{"# \x1b[2J", `lazaret.toml:1: not valid TOML: holds a control character`},
		{"\n\na = " + strings.Repeat("[", 40), `lazaret.toml:3: keys, arrays or tables nest too deeply`},

		// unknown keys and wrong types
		{"[storage]\ndata_rot = 'x'", `lazaret.toml:2: storage.data_rot: unknown key; did you mean data_root?`},
		{"[storage]\nData_Root = '/x'", `lazaret.toml:2: storage.Data_Root: unknown key: keys are case-sensitive; write data_root`},
		{"[Storage]\ndata_root = '/x'", `lazaret.toml:1: Storage: unknown key: keys are case-sensitive; write storage`},
		{"[profile.p1]", `lazaret.toml:1: profile: unknown key; did you mean profiles?`},
		{"[storage]\nxyzzy = 1", `lazaret.toml:2: storage.xyzzy: unknown key; the keys here are data_root, overlay`},
		{"[storage]\nauto_approve = []", `lazaret.toml:2: storage.auto_approve: unknown key here; it belongs in [escalation]`},
		{"[network]\nallow_egress = []", `lazaret.toml:2: network.allow_egress: unknown key here; it belongs in [profiles.NAME]`},
		{"storage.overlay.x = 1", `lazaret.toml:1: storage.overlay: is a table, must be a string`},
		{p + "'a b' = 1", `lazaret.toml:3: profiles.p1."a b": unknown key; the keys here are allow_egress, allow_hosts, branch, command, cpus, env, git, image, memory, persistent_dirs, pids, ports, setup, state, tree, volumes`},
		{p + "\"\\u001b[2J\\u202e\" = 1", `lazaret.toml:3: profiles.p1."\x1b[2J\u202e": unknown key; the keys here are allow_egress, allow_hosts, branch, command, cpus, env, git, image, memory, persistent_dirs, pids, ports, setup, state, tree, volumes`},
		{p + "volumes = [\n  { host = '/a', container = '/b' },\n  { host = '/a', container = '/c', mod = 'ro' } ]", `lazaret.toml:5: profiles.p1.volumes[1].mod: unknown key; did you mean mode?`},
		{p + "[[profiles.p1.volumes]]\nhost = '/a'\ncontainer = '/b'\n[[profiles.p1.volumes]]\nhost = '/a'\ncontainer = '/c'\nMode = 'ro'", `lazaret.toml:9: profiles.p1.volumes[1].Mode: unknown key: keys are case-sensitive; write mode`},
		{"network = 1", `lazaret.toml:1: network: is an integer, must be a table`},
		{"profiles = []", `lazaret.toml:1: profiles: is an array, must be a table`},
		{"[profiles]\np1 = 'x'", `lazaret.toml:2: profiles.p1: is a string, must be a table`},
		{"[escalation]\nenabled = 'yes'", `lazaret.toml:2: escalation.enabled: is a string, must be true or false; write it without quotes`},
		{"[network]\nallow_hosts = 'pypi.org'", `lazaret.toml:2: network.allow_hosts: is a string, must be an array of strings; put it in brackets`},
		{"[network]\nallow_hosts = [\n'pypi.org',\n# one\n1, 2.5]", "lazaret.toml:5: network.allow_hosts[1]: is an integer, must be a string; put it in quotes\nlazaret.toml:5: network.allow_hosts[2]: is a float, must be a string; put it in quotes"},
		{p + "ports = [1455]", `lazaret.toml:3: profiles.p1.ports[0]: is an integer, must be a string; put it in quotes`},
		{p + "env = { A = true }", `lazaret.toml:3: profiles.p1.env.A: is a boolean, must be a string; put it in quotes`},
		{p + "command = 1979-05-27", `lazaret.toml:3: profiles.p1.command: is a date, must be a string or an array of strings; put it in quotes`},
		{p + "volumes = ['/a:/b']", `lazaret.toml:3: profiles.p1.volumes[0]: is a string, must be a table`},

		// characters that do not show
		{p + "persistent_dirs = [\"/a\\u202eb\"]", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: holds the character U+202E, which does not show on a screen`},
		{p + "persistent_dirs = [\"/a\\nb\"]", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: holds the character U+000A, which does not show on a screen`},
		{p + "env = { A = \"\\u001b]52;c;\" }", `lazaret.toml:3: profiles.p1.env.A: holds the character U+001B, which does not show on a screen`},
		{p + "env = { A = \"a\\u0000b\" }", `lazaret.toml:3: profiles.p1.env.A: holds the character U+0000, which does not show on a screen`},
		{p + "setup = [\"a\\u200bb\"]", `lazaret.toml:3: profiles.p1.setup[0]: holds the character U+200B, which does not show on a screen`},
		{p + "command = [\"a\\U000E0100\"]", `lazaret.toml:3: profiles.p1.command[0]: holds the character U+E0100, which does not show on a screen`},
		{"[escalation]\nauto_approve = [\"a\\u00a0b\"]", `lazaret.toml:2: escalation.auto_approve[0]: holds the character U+00A0, which does not show on a screen`},

		// storage and escalation
		{"[storage]\ndata_root = 'state'", `lazaret.toml:2: storage.data_root: "state" is a relative path; ` + pathHint},
		{"[storage]\ndata_root = ''", `lazaret.toml:2: storage.data_root: is empty; write an absolute path, or one that starts with ~/`},
		{"[storage]\ndata_root = '~u/x'", `lazaret.toml:2: storage.data_root: "~u/x": ~ stands for a home directory only alone or before /; write ~/ for your home directory`},
		{"[storage]\ndata_root = '/a/../b'", `lazaret.toml:2: storage.data_root: has a .. segment, which could lead out of where it seems to be; write the path without it`},
		{"[storage]\ndata_root = '{workspace_dir}/.laz'", `lazaret.toml:2: storage.data_root: lies in the workspace, which the sandbox can write; write an absolute path, or one that starts with ~/`},
		{"[storage]\ndata_root = '/a/{profile_name}'", `lazaret.toml:2: storage.data_root: "/a/{profile_name}": takes no tokens; write an absolute path, or one that starts with ~/`},
		{"[storage]\ndata_root = '~/.'", `lazaret.toml:2: storage.data_root: "~/." holds more than lazaret's state; write a directory of its own, such as ~/.local/share/lazaret`},
		{"[storage]\noverlay = 'fuse'", `lazaret.toml:2: storage.overlay: "fuse" is not one of auto, native, fuse-overlayfs; write one of auto, native, fuse-overlayfs`},
		{"[escalation]\nsocket_dir = '{workspace_dir}/s'", `lazaret.toml:2: escalation.socket_dir: lies in the workspace, which the sandbox can write; write {runtime_dir}/lazaret`},
		{"[escalation]\nsocket_dir = '{profile_dir}/s'", `lazaret.toml:2: escalation.socket_dir: lies in {profile_dir}, parts of which the sandbox can write; write {runtime_dir}/lazaret`},
		{"[escalation]\nsocket_dir = '{runtime_dir}'", `lazaret.toml:2: escalation.socket_dir: "{runtime_dir}" holds more than lazaret's sockets; write {runtime_dir}/lazaret`},
		{"[escalation]\nsocket_dir = '{runtime}/s'", `lazaret.toml:2: escalation.socket_dir: unknown token "{runtime}"; did you mean {runtime_dir}?`},
		{"[escalation]\ntimeout = '5'", `lazaret.toml:2: escalation.timeout: "5" is not a time to wait; write a duration such as "5m", from 1s to 24h`},
		{"[escalation]\ntimeout = '-5m'", `lazaret.toml:2: escalation.timeout: "-5m" is not a time to wait; write a duration such as "5m", from 1s to 24h`},
		{"[escalation]\nmax_output = '1t'", `lazaret.toml:2: escalation.max_output: "1t" is not a size; write a size such as "512m" or "4g"`},
		{"[escalation]\nmax_output = 0", `lazaret.toml:2: escalation.max_output: 0 bytes are not a size to keep; write a size from "1b" to "64m"`},
		{"[escalation]\nmax_output = '4g'", `lazaret.toml:2: escalation.max_output: 4294967296 bytes are not a size to keep; write a size from "1b" to "64m"`},
		{"[escalation]\nauto_approve = [\n'date',\n'git status' ]", `lazaret.toml:4: escalation.auto_approve[1]: "git" cannot be approved in advance: it runs programs that its configuration, hooks, aliases and -c options name; leave it to be asked for each time`},
		{"[escalation]\nauto_approve_exact = ['lazaret approve']", `lazaret.toml:2: escalation.auto_approve_exact[0]: "lazaret" cannot be approved in advance: it decides itself what lazaret allows; leave it to be asked for each time`},
		{"[escalation]\nauto_approve = ['date; id']", `lazaret.toml:2: escalation.auto_approve[0]: holds ;, and there is no shell to act on it; write it without, or for a profile's command as an array: ["sh", "-c", "…"]`},
		{"[escalation]\nauto_approve = [\"date 'a\"]", `lazaret.toml:2: escalation.auto_approve[0]: holds a quote that is not closed; close it`},
		{"[escalation]\nauto_approve = [' ']", `lazaret.toml:2: escalation.auto_approve[0]: is empty`},

		// network
		{"[network]\ndefault_allow = ['10.0.0.5']", `lazaret.toml:2: network.default_allow[0]: "10.0.0.5" is an address without a length; write "10.0.0.5/32"`},
		{"[network]\ndefault_deny = ['10.0.0.0/8:53']", `lazaret.toml:2: network.default_deny[0]: "10.0.0.0/8:53": what is denied has no port; write "10.0.0.0/8"`},
		{"[network]\nallow_hosts = ['10.0.0.1']", `lazaret.toml:2: network.allow_hosts[0]: "10.0.0.1" is an address, not a name; put "10.0.0.1/32:443" into allow_egress`},
		{"[network]\non_deny = 'drop'", `lazaret.toml:2: network.on_deny: "drop" is not one of reject, blackhole; write one of reject, blackhole`},
		{"[network]\nsidecar = 'sidecar:1'", `lazaret.toml:2: network.sidecar: "sidecar:1" is a short name; write "docker.io/library/sidecar:1"`},
		{"[network]\nsidecar = 'builtin:shell'", `lazaret.toml:2: network.sidecar: "builtin:shell" is a short name; write "docker.io/library/builtin:shell"`},

		// profiles: name, image, enumerations
		{"[profiles.Claude]\nimage = 'builtin:shell'", `lazaret.toml:1: profiles.Claude: is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles.'../x']\nimage = 'builtin:shell'", `lazaret.toml:1: profiles."../x": is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles.--yes]\nimage = 'builtin:shell'", `lazaret.toml:1: profiles.--yes: is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles.-h]\nimage = 'builtin:shell'", `lazaret.toml:1: profiles.-h: is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles._x]\nimage = 'builtin:shell'", `lazaret.toml:1: profiles._x: is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles.x]\nimage = 'builtin:shell'", `lazaret.toml:1: profiles.x: is not a profile's name; use 2 to 32 of a to z, 0 to 9, _ and -, the first a letter or digit`},
		{"[profiles.p1]\nsetup = []", `lazaret.toml:1: profiles.p1.image: missing; add image = "docker.io/library/debian:trixie"`},
		{"[profiles.p1]\nimage = 'debian:trixie'", `lazaret.toml:2: profiles.p1.image: "debian:trixie" is a short name; write "docker.io/library/debian:trixie"`},
		{"[profiles.p1]\nimage = 'bitnami/redis'", `lazaret.toml:2: profiles.p1.image: "bitnami/redis" is a short name; write "docker.io/bitnami/redis"`},
		{"[profiles.p1]\nimage = 'docker.io/debian@" + digest + "'", `lazaret.toml:2: profiles.p1.image: "docker.io/debian@` + digest[:63] + `…" is a short name; write "docker.io/library/debian@` + digest[:55] + `…"`},
		{"[profiles.p1]\nimage = ''", `lazaret.toml:2: profiles.p1.image: is empty; write REGISTRY/NAME:TAG, such as docker.io/library/debian:trixie`},
		{"[profiles.p1]\nimage = 'docker://docker.io/a/b'", `lazaret.toml:2: profiles.p1.image: "docker://docker.io/a/b": a reference has no scheme; write "docker.io/a/b"`},
		{"[profiles.p1]\nimage = 'ghcr.io/Acme/x:1'", `lazaret.toml:2: profiles.p1.image: "ghcr.io/Acme/x:1": names of images are lower case; write it in lower case`},
		{"[profiles.p1]\nimage = 'ghcr.io/a/x:'", `lazaret.toml:2: profiles.p1.image: "ghcr.io/a/x:": the tag is malformed; write REGISTRY/NAME:TAG, such as docker.io/library/debian:trixie`},
		{"[profiles.p1]\nimage = 'ghcr.io/a/x@sha256:12'", `lazaret.toml:2: profiles.p1.image: "ghcr.io/a/x@sha256:12": the digest is malformed; write @sha256: and 64 hexadecimal digits`},
		{"[profiles.p1]\nimage = 'ghcr.io/a b'", `lazaret.toml:2: profiles.p1.image: "ghcr.io/a b" is not an image reference; write REGISTRY/NAME:TAG, such as docker.io/library/debian:trixie`},
		{"[profiles.p1]\nimage = 'oci:../x'", `lazaret.toml:2: profiles.p1.image: "../x" has a .. segment`},
		{"[profiles.p1]\nimage = 'oci:~/x'", `lazaret.toml:2: profiles.p1.image: "~/x": an image takes no ~ and no tokens; write an absolute path, or one in the workspace`},
		{"[profiles.p1]\nimage = 'oci:./x'", `lazaret.toml:2: profiles.p1.image: "./x" is not in its shortest form; write oci:x`},
		{"[profiles.p1]\nimage = 'oci:'", `lazaret.toml:2: profiles.p1.image: names no directory; write oci:DIR`},
		{"[profiles.p1]\nimage = 'builtin:shel'", `lazaret.toml:2: profiles.p1.image: "builtin:shel": there is no such builtin image; write builtin:shell`},
		{p + "git = 'writebck'", `lazaret.toml:3: profiles.p1.git: "writebck" is not one of quarantine, writeback, none; did you mean writeback?`},
		{p + "tree = 'worktre'", `lazaret.toml:3: profiles.p1.tree: "worktre" is not one of shared, worktree; did you mean worktree?`},
		{p + "state = 'profiles'", `lazaret.toml:3: profiles.p1.state: "profiles" is not one of profile, workspace; did you mean profile?`},
		{p + "git = 'none'\ntree = 'worktree'", `lazaret.toml:4: profiles.p1.tree: a working tree of its own needs git, and git is "none"; write tree = "shared", or another git`},
		{p + "branch = 'a..b'", `lazaret.toml:3: profiles.p1.branch: "a..b" is not a branch name: it holds ..; write "auto", "" or a branch name`},
		{p + "branch = 'refs/heads/x'", `lazaret.toml:3: profiles.p1.branch: "refs/heads/x" is a full reference, not a branch name; write "x"`},

		// profiles: directories
		{p + "persistent_dirs = ['usr']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: "usr" is not an absolute path; write an absolute path in the sandbox`},
		{p + "persistent_dirs = ['/usr/']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: "/usr/" is not in its shortest form; write "/usr"`},
		{p + "persistent_dirs = ['/usr/../etc']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: has a .. segment; write the path without it`},
		{p + "persistent_dirs = ['/']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: / is the image itself; name a directory below it`},
		{p + "persistent_dirs = ['']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: is empty; write an absolute path`},
		{p + "persistent_dirs = ['/workspace/x']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: "/workspace/x" lies in /workspace; the workspace persists by itself`},
		{p + "persistent_dirs = ['/proc', '/sys/x', '/dev', '/run/lazaret']", "lazaret.toml:3: profiles.p1.persistent_dirs[0]: \"/proc\" lies in /proc, which is not the profile's; choose another path\n" +
			"lazaret.toml:3: profiles.p1.persistent_dirs[1]: \"/sys/x\" lies in /sys, which is not the profile's; choose another path\n" +
			"lazaret.toml:3: profiles.p1.persistent_dirs[2]: \"/dev\" lies in /dev, which is not the profile's; choose another path\n" +
			"lazaret.toml:3: profiles.p1.persistent_dirs[3]: \"/run/lazaret\" lies in /run/lazaret, which is not the profile's; choose another path"},
		{p + "persistent_dirs = [\n'/a/b',\n'/a_b']", `lazaret.toml:5: profiles.p1.persistent_dirs[1]: "/a/b" and "/a_b" would be kept under one name, "a_b"; choose another path`},
		{p + "persistent_dirs = ['/a', '/a']", `lazaret.toml:3: profiles.p1.persistent_dirs[1]: "/a" is listed twice; remove it`},
		{p + "persistent_dirs = ['/" + strings.Repeat("a", 248) + "']", `lazaret.toml:3: profiles.p1.persistent_dirs[0]: "/` + strings.Repeat("a", 79) + `…" is too long to be kept under one name; choose a shorter path`},

		// profiles: volumes
		{volume("/srv", "/workspace"), `lazaret.toml:3: profiles.p1.volumes[0].container: /workspace is the workspace; choose another path`},
		{volume("/srv", "/workspace/.git/hooks"), `lazaret.toml:3: profiles.p1.volumes[0].container: "/workspace/.git/hooks" is covered by lazaret; choose another path`},
		{volume("/srv", "/workspace/sub/.git"), `lazaret.toml:3: profiles.p1.volumes[0].container: "/workspace/sub/.git" is covered by lazaret; choose another path`},
		{volume("/srv", "/workspace/lazaret.lock"), `lazaret.toml:3: profiles.p1.volumes[0].container: "/workspace/lazaret.lock" is covered by lazaret; choose another path`},
		{volume("/srv", "/workspace/.vscode"), `lazaret.toml:3: profiles.p1.volumes[0].container: "/workspace/.vscode" is covered by lazaret; choose another path`},
		{volume("/srv", "/run/lazaret/x"), `lazaret.toml:3: profiles.p1.volumes[0].container: "/run/lazaret/x" lies in /run/lazaret, which is not the profile's; choose another path`},
		{volume("/srv", "/"), `lazaret.toml:3: profiles.p1.volumes[0].container: / is the image itself; name a directory below it`},
		{volume("/", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: / cannot be a volume: it holds everything; name a directory below it`},
		{volume("/./", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: / cannot be a volume: it holds everything; name a directory below it`},
		{volume("data", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "data" is a relative path; ` + pathHint},
		{volume("{profile_name}/x", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "{profile_name}/x" is a relative path; ` + pathHint},
		{volume("/x/{profile_dir}", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: {profile_dir} stands for an absolute path and can only come first`},
		{volume("{profile_dir}2/x", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "{profile_dir}2/x": {profile_dir} must be followed by /; write {profile_dir}/`},
		{volume("/x/{home}", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: unknown token "{home}"; the tokens are {profile_name}, {profile_dir}, {workspace_dir}, {runtime_dir}`},
		{volume("/x/{home", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: holds a brace that belongs to no token`},
		{volume("{profile_dir}", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: {profile_dir} holds the profile's overlays and cannot be a volume itself; name a directory in it: {profile_dir}/NAME`},
		{volume("{profile_dir}/.", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: {profile_dir} holds the profile's overlays and cannot be a volume itself; name a directory in it: {profile_dir}/NAME`},
		{volume("{profile_dir}/root_changes/x", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "root_changes" is the name of an overlay's directory; choose another name`},
		{volume("~/.local/share/lazaret/p1/usr_work", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "usr_work" is the name of an overlay's directory; choose another name`},
		{volume("~/.local/share/lazaret/.lazaret", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~/.local/share/lazaret/.lazaret" lies in data_root, where only the profile's own directory is open to it; use {profile_dir}/NAME`},
		{volume("~/.local/share/lazaret/p1-other/x", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~/.local/share/lazaret/p1-other/x" lies in data_root, where only the profile's own directory is open to it; use {profile_dir}/NAME`},
		{volume("~/.local/share", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~/.local/share" holds data_root (~/.local/share/lazaret); name a directory that does not hold it`},
		{volume("~", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~" holds data_root (~/.local/share/lazaret); name a directory that does not hold it`},
		{volume("~/.config", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~/.config" shares files with lazaret's own configuration (~/.config/lazaret); name a directory that is not part of it`},
		{volume("~/.local/state/lazaret/runs", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "~/.local/state/lazaret/runs" shares files with lazaret's own records (~/.local/state/lazaret); name a directory that is not part of it`},
		{volume("{runtime_dir}", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "{runtime_dir}" shares files with socket_dir ({runtime_dir}/lazaret); name a directory that is not part of it`},
		{"[escalation]\nsocket_dir = '~/.local/share/lazaret/p1/s'\n" + volume("{profile_dir}/s", "/x"), `lazaret.toml:5: profiles.p1.volumes[0].host: "{profile_dir}/s" shares files with socket_dir (~/.local/share/lazaret/p1/s); name a directory that is not part of it`},
		{"[escalation]\nsocket_dir = '/run/laz/{profile_name}/s'\n" + volume("/run/laz/other", "/x"), `lazaret.toml:5: profiles.p1.volumes[0].host: "/run/laz/other" shares files with socket_dir (/run/laz); name a directory that is not part of it`},
		{"[storage]\ndata_root = '~/.config'\n[profiles.lazaret]\nimage = 'builtin:shell'\nvolumes = [{ host = '{profile_dir}/x', container = '/x' }]", `lazaret.toml:5: profiles.lazaret.volumes[0].host: "{profile_dir}/x" shares files with lazaret's own configuration (~/.config/lazaret); name a directory that is not part of it`},
		{volume("{workspace_dir}", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: {workspace_dir} is in the sandbox already, at /workspace; name a directory in it`},
		{volume("{workspace_dir}/.git/hooks", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "{workspace_dir}/.git/hooks" is kept from the sandbox; name another directory`},
		{volume("{workspace_dir}/lazaret.toml", "/x"), `lazaret.toml:3: profiles.p1.volumes[0].host: "{workspace_dir}/lazaret.toml" is kept from the sandbox; name another directory`},
		{p + "persistent_dirs = ['/x']\nvolumes = [{host = '/a', container = '/x'}]", `lazaret.toml:4: profiles.p1.volumes[0].container: "/x" is a persistent directory already; choose another path`},
		{p + "volumes = [{host = '/a', container = '/x'},\n{host = '/b', container = '/x'}]", `lazaret.toml:4: profiles.p1.volumes[1].container: "/x" is the target of volumes[0] already; choose another path`},
		{p + "volumes = [{host = '/a', container = '/x', mode = 'rw,ro'}]", `lazaret.toml:3: profiles.p1.volumes[0].mode: says both ro and rw; write a comma list of ro or rw, and z or Z`},
		{p + "volumes = [{host = '/a', container = '/x', mode = 'z,Z'}]", `lazaret.toml:3: profiles.p1.volumes[0].mode: says both z and Z; write a comma list of ro or rw, and z or Z`},
		{p + "volumes = [{host = '/a', container = '/x', mode = 'ro,ro'}]", `lazaret.toml:3: profiles.p1.volumes[0].mode: says ro twice; write a comma list of ro or rw, and z or Z`},
		{p + "volumes = [{host = '/a', container = '/x', mode = 'ro, z'}]", `lazaret.toml:3: profiles.p1.volumes[0].mode: " z" is not a mode; write a comma list of ro or rw, and z or Z`},
		{p + "volumes = [{host = '/a', container = '/x', mode = 'exec'}]", `lazaret.toml:3: profiles.p1.volumes[0].mode: "exec" is not a mode; write a comma list of ro or rw, and z or Z`},

		// profiles: env
		{p + "[profiles.p1.env]\nXDG_CONFIG_HOME = 'env:PWD'", `lazaret.toml:4: profiles.p1.env.XDG_CONFIG_HOME: is reserved (XDG_*): podman finds its configuration by it; remove it`},
		{p + "[profiles.p1.env]\nLD_PRELOAD = '/x'", `lazaret.toml:4: profiles.p1.env.LD_PRELOAD: is reserved (LD_*): the loader obeys it; remove it`},
		{p + "[profiles.p1.env]\nGIT_CONFIG_COUNT = '1'", `lazaret.toml:4: profiles.p1.env.GIT_CONFIG_COUNT: is reserved (GIT_CONFIG*): lazaret configures git in the sandbox by it; remove it`},
		{p + "[profiles.p1.env]\n'A-B' = '1'", `lazaret.toml:4: profiles.p1.env.A-B: is not a variable's name; use letters, digits and _, not starting with a digit`},
		{p + "[profiles.p1.env]\n'' = '1'", `lazaret.toml:4: profiles.p1.env."": is not a variable's name; use letters, digits and _, not starting with a digit`},
		{p + "[profiles.p1.env]\n'A=B' = '1'", `lazaret.toml:4: profiles.p1.env."A=B": is not a variable's name; use letters, digits and _, not starting with a digit`},
		{p + "[profiles.p1.env]\nA = 'env:hunter-2'", `lazaret.toml:4: profiles.p1.env.A: env: is not followed by a variable's name; write env:NAME, or env:NAME? where it may be unset`},
		{p + "[profiles.p1.env]\nA = 'env:'", `lazaret.toml:4: profiles.p1.env.A: env: is not followed by a variable's name; write env:NAME, or env:NAME? where it may be unset`},
		{p + "[profiles.p1.env]\nPATH = 'env:PATH'", `lazaret.toml:4: profiles.p1.env.PATH: cannot come from the host; write the value for the sandbox`},

		// profiles: the rest
		{p + "allow_egress = ['pypi.org']", `lazaret.toml:3: profiles.p1.allow_egress[0]: "pypi.org" is a name, not an address range; put "pypi.org:443" into allow_hosts`},
		{p + "allow_hosts = ['https://pypi.org/simple']", `lazaret.toml:3: profiles.p1.allow_hosts[0]: "https://pypi.org/simple" is a URL, not a name; write "pypi.org:443"`},
		{p + "command = 'a | b'", `lazaret.toml:3: profiles.p1.command: holds |, and there is no shell to act on it; write it without, or for a profile's command as an array: ["sh", "-c", "…"]`},
		{p + "command = ['', 'x']", `lazaret.toml:3: profiles.p1.command: names no program`},
		{p + "setup = ['x', ' ']", `lazaret.toml:3: profiles.p1.setup[1]: is empty; remove it`},
		{p + "ports = ['0']", `lazaret.toml:3: profiles.p1.ports[0]: "0" is not a port; write a number from 1 to 65535`},
		{p + "ports = ['80:65536']", `lazaret.toml:3: profiles.p1.ports[0]: "65536" is not a port; write a number from 1 to 65535`},
		{p + "ports = ['080']", `lazaret.toml:3: profiles.p1.ports[0]: "080" is not a port; write a number from 1 to 65535`},
		{p + "ports = ['0.0.0.0:80:80']", `lazaret.toml:3: profiles.p1.ports[0]: "0.0.0.0:80:80": the host side is always its loopback address; ` + portHint},
		{p + "ports = ['53/udp']", `lazaret.toml:3: profiles.p1.ports[0]: "53/udp": ports are always TCP; ` + portHint},
		{p + "ports = ['80', '80:81']", `lazaret.toml:3: profiles.p1.ports[1]: port 80 of the host is published twice; choose another host port`},
		{p + "memory = '0'", `lazaret.toml:3: profiles.p1.memory: "0" is not a size; write a size such as "512m" or "4g"`},
		{p + "memory = '9999999999g'", `lazaret.toml:3: profiles.p1.memory: "9999999999g" is too large; write a size such as "512m" or "4g"`},
		{p + "cpus = 0", `lazaret.toml:3: profiles.p1.cpus: "0" is not a number of processors; write a decimal above 0, such as "1.5"`},
		{p + "cpus = nan", `lazaret.toml:3: profiles.p1.cpus: "NaN" is not a number of processors; write a decimal above 0, such as "1.5"`},
		{p + "cpus = '1e3'", `lazaret.toml:3: profiles.p1.cpus: "1e3" is not a number of processors; write a decimal above 0, such as "1.5"`},
		{p + "pids = '100'", `lazaret.toml:3: profiles.p1.pids: is a string, must be an integer; write it without quotes`},
		{p + "cpus = true", `lazaret.toml:3: profiles.p1.cpus: is a boolean, must be a string or a number; put it in quotes`},
		{p + "setup = {}", `lazaret.toml:3: profiles.p1.setup: is a table, must be an array of strings`},
		{p + strings.Repeat("a", 300) + " = 1", `lazaret.toml:3: profiles.p1.` + strings.Repeat("a", 188) + `…: unknown key; the keys here are allow_egress, allow_hosts, branch, command, cpus, env, git, image, memory, persistent_dirs, pids, ports, setup, state, tree, volumes`},
		{p + "pids = 0", `lazaret.toml:3: profiles.p1.pids: 0 is not a number of processes; write a number above 0, or leave it out`},
	} {
		_, err := load(c.toml)
		if got := strings.TrimSuffix(all(err), "\n"); got != c.want {
			t.Errorf("%s\ngives  %s\nwanted %s", c.toml, got, c.want)
		}
	}
}

// A layer's own errors are found although a higher layer replaces the value.
func TestErrorsOfReplacedValues(t *testing.T) {
	_, err := Load([]Layer{
		{Name: "a.toml", Data: []byte(base + "[profiles.p1]\nimage = 'builtin:shell'\nports = [1]\n")},
		{Name: "b.toml", Data: []byte("[profiles.p1]\nports = ['1']")},
	})
	if got, want := all(err), "a.toml:14: profiles.p1.ports[0]: is an integer, must be a string; put it in quotes\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// A value of the wrong type is reported once, not again as missing or malformed.
func TestOneErrorPerMistake(t *testing.T) {
	_, err := load("[storage]\ndata_root = 1\n[profiles.p1]\nimage = []\nvolumes = [{host = '{profile_dir}/x', container = '/x'}]")
	want := "lazaret.toml:2: storage.data_root: is an integer, must be a string; put it in quotes\nlazaret.toml:4: profiles.p1.image: is an array, must be a string\n"
	if got := all(err); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
